//! Batches in one launch without a GPU: kernels of a block for each member, compiled as C++ (`emulated.rs` says
//! what that finds). Each member has a start and parameters of its own, and the bits of the reference run of it alone.
#![cfg(target_os = "linux")]

use crate::common;
use crate::common::{by_parts, part};

use std::sync::Arc;

use abide_core::plan::resident;
use abide_core::{
    Array, Boundaries, Boundary, DType, DeviceSpec, Error, Plan, Problem, Result, Shape, Start, catalogue,
};
use abide_emulator::{Compiler, Launch, replaced};

const MEMBERS: usize = 3;

/// Orders of the lanes that each case runs in.
const SEEDS: std::ops::Range<usize> = 0..3;

/// A batch that is emulated.
struct Case {
    name: &'static str,
    program: &'static str,
    extents: &'static [usize],
    dtype: DType,
    boundaries: &'static str,
    /// Warps, planes of a warp, those in registers, and cells of a thread.
    tile: (usize, usize, usize, [usize; 2]),
    steps: u64,
}

#[rustfmt::skip]
const CASES: [Case; 7] = [
    Case { name: "reaction", program: "gray-scott", extents: &[21, 32], dtype: DType::F64, boundaries: "periodic", tile: (3, 7, 5, [1, 1]), steps: 7 },
    // Rows with space behind them, and warps that overlap.
    Case { name: "reaction-mirror", program: "gray-scott", extents: &[19, 45], dtype: DType::F32, boundaries: "mirror", tile: (4, 5, 5, [1, 2]), steps: 6 },
    // Lines whose cells are no power of two.
    Case { name: "box", program: "2d9pt", extents: &[24, 96], dtype: DType::F32, boundaries: "periodic", tile: (4, 6, 4, [1, 3]), steps: 5 },
    Case { name: "star", program: "2d5pt", extents: &[10, 160], dtype: DType::F64, boundaries: "y=fixed,x=periodic", tile: (2, 4, 3, [1, 5]), steps: 5 },
    Case { name: "maxwell", program: "fdtd-tm", extents: &[17, 31], dtype: DType::F64, boundaries: "fixed", tile: (5, 3, 3, [1, 1]), steps: 5 },
    Case { name: "cube", program: "wave", extents: &[5, 11, 31], dtype: DType::F64, boundaries: "z=periodic,y=clamp,x=constant=0.5", tile: (4, 5, 3, [3, 1]), steps: 4 },
    Case { name: "line", program: "1d3pt", extents: &[101], dtype: DType::F64, boundaries: "mirror", tile: (1, 1, 1, [1, 4]), steps: 9 },
];

impl Case {
    /// Returns the batch; each of a member's parameters differs from the others'.
    fn problem(&self) -> Result<Problem> {
        let program = catalogue::find(self.program)?.program(self.extents.len())?;
        let mut problem = Problem::new(Arc::new(program), Shape::new(self.extents)?, self.dtype)?;
        problem.set_boundaries(Boundaries::parse(self.boundaries, Boundary::Fixed)?);
        problem.repeat(MEMBERS)?;
        for (number, member) in problem.batch.iter_mut().enumerate() {
            member.parameters.iter_mut().for_each(|value| *value *= 1.0 - 0.1 * number as f64);
        }
        problem.check()?;
        Ok(problem)
    }

    fn plan(&self, problem: &Problem) -> Result<Plan> {
        let (warps, planes, planes_registers, cells_per_thread) = self.tile;
        let configuration = resident::Configuration {
            depth: 1,
            warps,
            planes,
            planes_registers,
            cells_per_thread,
            blocks_per_multiprocessor: 2,
            exchange: resident::Exchange::Counted,
        };
        let plan = abide_planner::resident::plan_configuration(
            problem,
            &DeviceSpec::preset("h200")?,
            &configuration,
        );
        plan.ok_or_else(|| Error::invalid(self.name, "its configuration does not fit", "give another"))
    }

    /// Runs the case with some words of its kernel replaced; the error describes what is wrong with the result.
    fn run(&self, compiler: &Compiler, changes: &[(&str, &str)]) -> std::result::Result<(), String> {
        let said = |error: Error| error.to_string();
        let problem = self.problem().map_err(said)?;
        let plan = self.plan(&problem).map_err(said)?;
        let text = abide_shaders::cuda::kernel(&problem, &plan).map_err(said)?;
        let text = replaced(&text, changes)?;
        let fields = problem.program.fields().len();
        let cells = problem.shape.cells();
        let start = |field: usize, member: usize| {
            let seed = (1 + field + 10 * member) as u64;
            Start::Random { seed, low: 0.1, high: 0.9 }.fill(&problem.shape, problem.dtype)
        };
        let joined = |field: usize| {
            Array::join(problem.dtype, MEMBERS * cells, (0..MEMBERS).map(|member| start(field, member)))
        };
        let all: Vec<Array> = (0..fields).map(joined).collect::<Result<_>>().map_err(said)?;
        let parameters: Vec<f64> =
            problem.batch.iter().flat_map(|member| member.parameters.clone()).collect();
        let launch = Launch::compile(compiler, &problem, &plan, 900, self.steps, &text)?;
        let results = SEEDS.map(|seed| launch.run(&all, [&parameters, &[]], seed));
        let results = results.collect::<std::result::Result<Vec<_>, _>>()?;
        for member in 0..MEMBERS {
            let own = (0..fields).map(|field| start(field, member)).collect::<Result<_>>();
            let mut expected: Vec<Array> = own.map_err(said)?;
            abide_cpu::reference::advance(&problem.member(member), &mut expected, self.steps)
                .map_err(said)?;
            for (seed, result) in results.iter().enumerate() {
                for (field, expected) in expected.iter().enumerate() {
                    let bytes = expected.as_bytes();
                    if result[field][member * bytes.len()..(member + 1) * bytes.len()] != *bytes {
                        let name = &problem.program.fields()[field];
                        return Err(format!("seed {seed}: {name} of member {member} is not the reference's"));
                    }
                }
            }
        }
        Ok(())
    }
}

fn all_are_right<'a, T: 'a>(
    items: impl IntoIterator<Item = &'a T>,
    work: impl Fn(&T) -> std::result::Result<(), String>,
) {
    let wrong: Vec<String> = items.into_iter().filter_map(|item| work(item).err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

by_parts!(members_have_the_references_bits_without_a_gpu);

fn members_have_the_references_bits_without_a_gpu(is_other: bool) {
    let Some(compiler) = common::compiler() else { return };
    all_are_right(part(&CASES, is_other), |case| {
        case.run(&compiler, &[]).map_err(|why| format!("{}: {why}", case.name))
    });
}

#[test]
#[ignore = "a kernel for each defect: minutes"]
fn defects_are_found() {
    let Some(compiler) = common::compiler() else { return };
    let defects = [
        // Every member is at the place of the first, ...
        ("maxwell", "first.current[f.value] + before", "first.current[f.value]"),
        // ... or follows without the space behind rows, ...
        ("reaction-mirror", "EXTENT_Y * PITCH)", "EXTENT_Y * EXTENT_X)"),
        // ... or has the first one's parameters.
        ("reaction", "parameters[blockIdx.x]", "parameters[0]"),
    ];
    all_are_right(&defects, |&(name, words, instead)| {
        let case = CASES.iter().find(|case| case.name == name).ok_or_else(|| format!("no case {name}"))?;
        match case.run(&compiler, &[(words, instead)]) {
            Err(why) if why.contains("not the reference's") => Ok(()),
            Err(why) => Err(format!("{name}: {why}")),
            Ok(()) => Err(format!("{name} has the reference's bits without: {words}")),
        }
    });
}
