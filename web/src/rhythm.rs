//! The number of steps in a frame: as many as leave the browser time to draw it.

/// The time that the steps of a frame should take, in seconds: most of a sixtieth.
const TARGET: f64 = 0.012;

/// Factor by which a frame may grow over the frame before.
const GROWTH: u64 = 2;

/// The steps of the next frame, in whole passes of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rhythm {
    depth: u64,
    passes: u64,
}

impl Rhythm {
    /// Begins with a single pass of `depth` steps.
    pub fn new(depth: u32) -> Rhythm {
        Rhythm { depth: u64::from(depth.max(1)), passes: 1 }
    }

    /// Returns the steps of the next frame, where `left` remain in all.
    pub fn steps(&self, left: u64) -> u64 {
        (self.passes * self.depth).min(left)
    }

    /// Learns from a frame whose `steps` steps took `seconds`. A frame of fewer steps than planned
    /// does not show how many fit.
    pub fn learn(&mut self, steps: u64, seconds: f64) {
        if steps >= self.passes * self.depth {
            let fitting = (TARGET / seconds.max(1e-6) * self.passes as f64) as u64;
            self.passes = fitting.clamp(1, GROWTH * self.passes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_grow_to_what_fits_and_stay_there() {
        let mut rhythm = Rhythm::new(8);
        assert_eq!(rhythm.steps(u64::MAX), 8);
        let mut seconds = 0.0;
        for _ in 0..20 {
            let steps = rhythm.steps(u64::MAX);
            assert_eq!(steps % 8, 0);
            seconds = steps as f64 * 2e-5 + 1e-4;
            rhythm.learn(steps, seconds);
        }
        assert!((0.5 * TARGET..=1.01 * TARGET).contains(&seconds), "{seconds}");
        // A frame that suddenly takes long is followed by a short one at once.
        rhythm.learn(rhythm.steps(u64::MAX), 1.2);
        assert!(rhythm.steps(u64::MAX) <= 8);
    }

    #[test]
    fn the_last_frame_is_what_is_left() {
        let mut rhythm = Rhythm::new(8);
        assert_eq!(rhythm.steps(3), 3);
        rhythm.learn(3, 1e-9);
        assert_eq!(rhythm, Rhythm::new(8));
    }
}
