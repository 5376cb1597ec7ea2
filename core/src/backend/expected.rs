//! How many turns of a loop a device is given before the host looks whether it is over.

/// Turns that follow where a loop takes longer than the last time.
const MORE: u64 = 8;

/// The turns that each loop had the last time; a loop in a step mostly takes about as many as in the step before.
#[derive(Debug, Clone, Default)]
pub struct ExpectedTurns {
    last: Vec<u64>,
}

impl ExpectedTurns {
    /// Returns how many turns to begin of the loop of a number, which has had so many, before the host looks: those of the last time.
    pub fn next(&self, number: usize, had: u64) -> u64 {
        let last = self.last.get(number).copied().unwrap_or(MORE - 1);
        last.checked_sub(had).filter(|&more| more > 0).unwrap_or(MORE)
    }

    /// Takes note of a loop that is over after so many turns.
    pub fn had(&mut self, number: usize, turns: u64) {
        if self.last.len() <= number {
            self.last.resize(number + 1, MORE);
        }
        self.last[number] = turns;
    }
}
