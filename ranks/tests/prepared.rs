//! What ranks compile for an advance is done before its clock begins, on all of them.

use crate::common;

use std::thread::sleep;
use std::time::Duration;

use abide_core::{DType, Options, Result, Session};

/// How long the slow one of two ranks takes to prepare.
const LONG: Duration = Duration::from_secs(1);

/// A session that prepares so long.
struct Preparing {
    inner: Box<dyn Session>,
    takes: Duration,
}

impl Session for Preparing {
    common::as_inner!();

    fn prepare(&mut self, _: u64) -> Result<bool> {
        sleep(self.takes);
        Ok(true)
    }

    fn advance(&mut self, steps: u64) -> Result<f64> {
        self.inner.advance(steps)
    }
}

/// One rank compiles while the other is ready: neither one's time has it.
#[test]
fn compiling_is_no_part_of_an_advance() {
    const WRAPS: &[Option<common::Wrap>] = &[
        Some(|inner| Box::new(Preparing { inner, takes: LONG })),
        Some(|inner| Box::new(Preparing { inner, takes: Duration::ZERO })),
    ];
    let problem = common::problem("2d5pt", &[40, 24], DType::F64);
    let backend = common::wrapped(WRAPS).every(4);
    let mut several = common::open(&backend, &problem, &Options::default());
    for steps in [4, 3, 11] {
        let seconds = several.advance(steps).unwrap();
        assert!(seconds < 0.9 * LONG.as_secs_f64(), "{steps} steps: {seconds} s");
        for rank in several.take_ranks().unwrap() {
            assert!(rank.exchange_seconds < 0.9 * LONG.as_secs_f64(), "{rank:?}");
        }
    }
}
