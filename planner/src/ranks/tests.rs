use std::cell::Cell;
use std::sync::Arc;

use abide_core::{DType, Depth, DeviceSpec, Execution, Options, Plan, Problem, Result, Shape, catalogue};

use super::{Alike, Devices, plan_ranks};
use crate::choice::plan;

/// Two devices whose compiler leaves no streaming kernel more than so many steps.
struct Shallow<'a> {
    device: &'a DeviceSpec,
    most: u32,
    compiled: Cell<usize>,
}

impl Devices for Shallow<'_> {
    fn asked(&self) -> usize {
        2
    }

    fn weights(&self, ranks: usize) -> Result<Vec<usize>> {
        Ok(vec![1; ranks])
    }

    fn plan(&self, _: usize, _: usize, slab: &Problem, options: &Options) -> Result<Plan> {
        plan(slab, self.device, options)
    }

    fn fitted(&self, _: usize, _: usize, slab: &Problem, own: &Plan) -> Result<Plan> {
        self.compiled.set(self.compiled.get() + 1);
        if own.warp_streaming().is_none() || own.depth <= self.most {
            return Ok(own.clone());
        }
        let depth = Depth::Steps(self.most);
        plan(slab, self.device, &Options { depth, execution: Execution::Streaming, ..Options::default() })
    }
}

fn problem(name: &str, extents: &[usize], dtype: DType) -> Problem {
    let program = catalogue::find(name).unwrap().program(extents.len()).unwrap();
    Problem::new(Arc::new(program), Shape::new(extents).unwrap(), dtype).unwrap()
}

/// Steps between exchanges are whole passes of the kernels that run, of all slabs, whatever depth was planned at first.
#[test]
fn exchanges_follow_the_kernels_that_run() {
    let device = DeviceSpec::preset("h100").unwrap();
    for (name, extents, dtype) in [("2d5pt", [16704, 8352], DType::F64), ("heat", [8352, 8352], DType::F32)] {
        let problem = problem(name, &extents, dtype);
        let options = Options::default();
        let planned = plan_ranks(&problem, &options, &Alike { device: &device, count: 2 }).unwrap();
        assert!(planned.depth > 3, "{}", planned.summary());
        for most in [planned.depth - 2, 3] {
            let devices = Shallow { device: &device, most, compiled: Cell::default() };
            let ran = plan_ranks(&problem, &options, &devices).unwrap();
            let ranks = ran.ranks.as_ref().unwrap();
            assert!(ran.depth <= most && ran.depth > 0, "{}", ran.summary());
            assert!(ranks.slabs.iter().all(|slab| slab.depth == ran.depth), "{}", ran.summary());
            assert!(ranks.depth.is_multiple_of(ran.depth), "{most}: {}", ran.summary());
            assert!(devices.compiled.get() > 0);
        }
        // A kernel as deep as planned changes nothing.
        let devices = Shallow { device: &device, most: planned.depth, compiled: Cell::default() };
        assert_eq!(plan_ranks(&problem, &options, &devices).unwrap(), planned);
    }
}

/// A depth that is asked for of several devices is that of an exchange: kernels have passes that fill it.
#[test]
fn a_depth_is_that_of_an_exchange() {
    let device = DeviceSpec::preset("h100").unwrap();
    let problem = problem("2d5pt", &[8352, 8352], DType::F64);
    for depth in [1, 2, 7, 12, 40, 96] {
        for count in [2, 4] {
            let options = Options { depth: Depth::Steps(depth), ..Options::default() };
            let found = plan_ranks(&problem, &options, &Alike { device: &device, count }).unwrap();
            assert_eq!(found.ranks.as_ref().unwrap().depth, depth);
            assert!(found.depth <= depth, "{}", found.summary());
        }
        let devices = Shallow { device: &device, most: 5, compiled: Cell::default() };
        let options = Options { depth: Depth::Steps(depth), ..Options::default() };
        let found = plan_ranks(&problem, &options, &devices).unwrap();
        assert_eq!(found.ranks.as_ref().unwrap().depth, depth);
        assert!(found.depth <= 5.min(depth), "{}", found.summary());
    }
    let forty = Options { depth: Depth::Steps(40), ..Options::default() };
    let found = plan_ranks(&problem, &forty, &Alike { device: &device, count: 2 }).unwrap();
    assert!(40 % found.depth == 0 && found.depth > 1, "{}", found.summary());
}
