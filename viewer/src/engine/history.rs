//! The computed scalars of a run, from its start on.

/// The most rows kept.
const ROWS: usize = 1024;

/// The values of a run's computed scalars after some of its steps: the first and the newest always, and rows in
/// between. When the rows are too many, every other one goes, and from then on rows are about as far apart as
/// those that stayed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct History {
    width: usize,
    steps: Vec<u64>,
    values: Vec<f64>,
    /// The least number of steps between rows.
    apart: u64,
}

impl History {
    /// Makes a history without rows, of so many scalars.
    pub fn new(width: usize) -> History {
        History { width, ..History::default() }
    }

    /// Adds the values after a step. They take the place of the newest row where that is no longer needed.
    pub fn add(&mut self, step: u64, values: &[f64]) {
        let spare = match self.steps.as_slice() {
            [.., before, newest] => *newest == step || newest - before < self.apart,
            newest => newest == [step],
        };
        if spare {
            self.steps.pop();
            self.values.truncate(self.steps.len() * self.width);
        }
        self.steps.push(step);
        self.values.extend(values.iter().copied().chain(std::iter::repeat(f64::NAN)).take(self.width));
        if self.steps.len() > ROWS {
            self.thin();
        }
    }

    /// Takes every other row away, neither the first nor the newest.
    fn thin(&mut self) {
        let newest = self.steps.len() - 1;
        let stays = |number: &usize| number.is_multiple_of(2) || *number == newest;
        let rows = self.rows().enumerate().filter(|(number, _)| stays(number)).map(|(_, row)| row);
        let (steps, values): (Vec<u64>, Vec<&[f64]>) = rows.unzip();
        self.values = values.concat();
        self.steps = steps;
        if let [first, .., newest] = self.steps.as_slice() {
            self.apart = (newest - first).div_ceil(ROWS as u64 / 2);
        }
    }

    /// Returns the rows in the order of the steps: the step, and the scalars in the program's order.
    pub fn rows(&self) -> impl Iterator<Item = (u64, &[f64])> {
        let row = |number: usize| &self.values[number * self.width..(number + 1) * self.width];
        self.steps.iter().enumerate().map(move |(number, &step)| (step, row(number)))
    }

    /// Returns the newest value of a scalar by its number.
    pub fn newest(&self, scalar: usize) -> Option<f64> {
        self.rows().last().and_then(|(_, values)| values.get(scalar)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(history: &History) -> Vec<u64> {
        history.rows().map(|(step, _)| step).collect()
    }

    #[test]
    fn a_short_run_is_kept_whole() {
        let mut history = History::new(2);
        assert_eq!((history.newest(0), history.rows().count()), (None, 0));
        for step in 0..ROWS as u64 {
            history.add(step, &[step as f64, -1.0]);
        }
        assert_eq!(steps(&history), (0..ROWS as u64).collect::<Vec<_>>());
        assert_eq!((history.newest(0), history.newest(1)), (Some(1023.0), Some(-1.0)));
        assert_eq!(history.newest(2), None);
    }

    #[test]
    fn a_long_run_keeps_its_first_and_newest_values_and_an_even_share_between() {
        // Epochs become longer, as those of a run do.
        let mut history = History::new(1);
        let (mut step, mut most) = (37, 0);
        for epoch in 0..40_000_u64 {
            history.add(step, &[step as f64]);
            assert!(history.rows().all(|(step, values)| values == [step as f64]));
            assert_eq!((steps(&history)[0], history.newest(0)), (37, Some(step as f64)));
            most = most.max(history.rows().count());
            if epoch > 2000 && epoch.is_multiple_of(1000) {
                let (steps, span) = (steps(&history), step - 37);
                assert!(steps.len() > ROWS / 4, "{}", steps.len());
                let widest = steps.windows(2).map(|pair| pair[1] - pair[0]).max();
                assert!(widest <= Some(span / 64), "{widest:?} of {span}");
            }
            step += 1 + epoch / 1000;
        }
        assert_eq!(most, ROWS);
    }

    #[test]
    fn a_step_has_one_row() {
        let mut history = History::new(1);
        for value in [1.0, 2.0] {
            history.add(5, &[value]);
        }
        history.add(6, &[3.0]);
        history.add(6, &[4.0]);
        assert_eq!(history.rows().collect::<Vec<_>>(), [(5, &[2.0][..]), (6, &[4.0])]);
    }

    #[test]
    fn a_run_without_scalars_has_rows_without_values() {
        let mut history = History::new(0);
        history.add(0, &[]);
        history.add(9, &[1.0]);
        assert_eq!(history.rows().collect::<Vec<_>>(), [(0, &[][..]), (9, &[])]);
    }
}
