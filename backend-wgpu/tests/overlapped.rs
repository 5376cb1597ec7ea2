//! Windows of several steps: every depth, tile and division of a run keeps the bound of a step, and the bits
//! of its parts.

use crate::common;

use abide_core::backend::Backend;
use abide_core::{
    Boundary, DType, Depth, Error, Execution, LinearStencil, Options, Program, Scope, Stencil, catalogue,
};
use abide_planner::overlapped_plans;
use common::random::{Damp, boundary, check_cuts, in_parts, overlapped, pick, program};
use common::{backend, check_plan, problem, values};
use fastrand::Rng;

fn entry(name: &str, dimensions: usize) -> Program {
    catalogue::find(name).unwrap().program(dimensions).unwrap()
}

/// Two fields on a line that move against each other.
struct Shift;

impl Stencil for Shift {
    fn name(&self) -> &str {
        "shift"
    }

    fn dimensions(&self) -> usize {
        1
    }

    fn fields(&self) -> Vec<String> {
        ["u", "v"].map(str::to_owned).to_vec()
    }

    fn define(&self, s: &Scope<'_>) {
        let (u, v) = (s.field("u"), s.field("v"));
        s.set("u", u.at([-2]) * 0.75 + v.here() * 0.125);
        s.set("v", u.at([-1]) * v.at([2]));
    }
}

/// A stage that taps no neighbour begins without a barrier. It must not overwrite values that late threads
/// still read for the stage before.
#[test]
fn a_stage_without_neighbours_waits_for_readers() {
    let Some(backend) = backend() else { return };
    let programs: [&[&dyn Stencil]; 3] =
        [&[&Shift, &Damp(1)], &[&Shift, &Damp(1), &Damp(1)], &[&Damp(1), &Shift]];
    let mut cases = Vec::new();
    for stages in programs {
        for boundary in Boundary::each_plain(0.5) {
            for (extent, dtype) in [(12, DType::F64), (64, DType::F32), (777, DType::F64), (1500, DType::F32)]
            {
                cases.push((stages, boundary.to_string(), extent, dtype));
            }
        }
    }
    for (stages, boundary, extent, dtype) in common::sampled(cases, 4) {
        let program = Program::sequence("shift and damp", stages).unwrap();
        let problem = problem(program, &[extent], dtype, &boundary).unwrap();
        let plan = backend.plan(&problem, &overlapped(Depth::Auto)).unwrap();
        check_plan(&backend, &problem, &plan, &values(&problem, 31), 3);
    }
}

/// The bound of a step holds whatever the depth, the window and the calls; tried on random stencils, extents
/// and boundaries.
#[test]
fn depth_tile_and_submissions_leave_the_bound_as_it_is() {
    let Some(backend) = backend() else { return };
    let mut tried = 0;
    for seed in common::sampled(0..40, 3) {
        let mut rng = Rng::with_seed(seed);
        let program = program(seed, &mut rng);
        let most = [0, 700, 90, 24][program.dimensions()];
        let extents: Vec<usize> = (0..program.dimensions()).map(|_| rng.usize(1..=most)).collect();
        let dtype = if rng.bool() { DType::F32 } else { DType::F64 };
        let boundary = boundary(&mut rng, |_| true);
        let Ok(problem) = problem(program, &extents, dtype, &boundary) else { continue };
        let depth = rng.u32(1..=9);
        let Some(plan) = pick(&backend, &problem, overlapped_plans, depth, &mut rng) else { continue };
        let fields = values(&problem, seed);
        check_plan(&backend, &problem, &plan, &fields, 4);
        let steps = u64::from(plan.depth) + rng.u64(1..=7);
        check_cuts(&backend, &problem, &plan, &fields, steps, &mut rng);
        tried += 1;
    }
    assert!(tried > if common::is_whole() { 25 } else { 6 }, "{tried}");
}

/// Small domains in one window, with hundreds of steps per dispatch.
#[test]
fn a_small_domain_stays_in_one_window() {
    let Some(backend) = backend() else { return };
    for (name, extents) in
        [("1d3pt", vec![777]), ("2d9pt", vec![29, 31]), ("fdtd-tm", vec![17, 19]), ("3d7pt", vec![7, 6, 9])]
    {
        for boundary in
            Boundary::each(0.5).into_iter().filter(|kind| kind.is_plain()).map(|kind| kind.to_string())
        {
            let problem = problem(entry(name, extents.len()), &extents, DType::F32, &boundary).unwrap();
            let plan = backend.plan(&problem, &overlapped(Depth::Auto)).unwrap();
            let overlapped = plan.overlapped().unwrap();
            assert!(overlapped.blocks == [1; 3] && plan.depth > 100, "{}", plan.summary());
            check_plan(&backend, &problem, &plan, &values(&problem, 1), 3);
            let fields = values(&problem, 2);
            let mut session = backend.open(&problem, &plan, fields.clone()).unwrap();
            session.advance(700).unwrap();
            let found = in_parts(&backend, &problem, &plan, &fields, 700, &mut Rng::with_seed(3));
            assert!(found[0].same_bits(&session.read(0).unwrap()), "{name} {boundary}");
        }
    }
}

#[test]
fn what_no_window_holds_is_refused_with_a_reason() {
    let Some(backend) = backend() else { return };
    let wide = LinearStencil::new("wide", &[([-200, 0], 0.25), ([0, 0], 0.5), ([0, 200], 0.25)]).unwrap();
    let problem = problem(Program::new(&wide).unwrap(), &[703, 503], DType::F32, "fixed").unwrap();
    let error = backend.plan(&problem, &overlapped(Depth::Steps(50))).unwrap_err();
    assert!(matches!(error, Error::Limit { .. }) && error.to_string().contains("50 steps deep"), "{error}");
    let auto = backend.plan(&problem, &Options::default()).unwrap();
    assert_eq!(auto.execution, Execution::Stepwise);
    let why = "one step per launch because several cannot be: windows of several steps";
    assert!(auto.notes.iter().any(|note| note.starts_with(why)), "{:?}", auto.notes);
}
