//! The kernels of a clock: what it makes from one reduction of fields to the next, by one thread.

use abide_core::DType;
use abide_core::expr::Dag;
use abide_core::program::{Clock, Stretch, Timed};

use super::{Cuda, DEVICE, FUNCTIONS};
use crate::emit::formula;
use crate::functions;
use crate::text::Text;

const CLOCK: &str = include_str!("../../kernels/cuda/program/clock.cuh");

/// The kernels' argument: addresses in device memory.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct ClockArguments {
    /// The values of [`Clock::all_values`].
    pub values: u64,
    /// What varies in each stage of each step of the stretch, in the type of the fields; a stretch fills it.
    pub table: u64,
    /// All scalars in f64 as a reduction has them, and as it reads them in the type of the fields.
    pub exact: u64,
    /// See [`ClockArguments::exact`].
    pub rounded: u64,
    /// Where the value of the reduction goes that a stretch follows.
    pub reduced: u64,
}

/// Returns the name of the kernel of a stretch.
pub fn stretch_entry(number: usize) -> String {
    format!("stretch_{number}")
}

/// Returns the text of the kernels of a clock, one for each of its [`Clock::stretches`]; `None` if it has none.
pub fn clock_kernels(clock: &Clock) -> Option<String> {
    let stretches = clock.stretches();
    if stretches.is_empty() {
        return None;
    }
    let dtype = clock.plain().dtype;
    let made = made(&stretches, dtype);
    let mut text = Text::default();
    text.push(format!("typedef {} real;", if dtype == DType::F32 { "float" } else { "double" }));
    text.push(format!("constexpr int VALUES = {};", clock.all_values().len()));
    text.push(format!("constexpr int SCALARS = {};", clock.values().len()));
    text.file(DEVICE);
    text.file(CLOCK);
    // Formulas of scalars are in f64, parts of those of fields in the fields' type.
    let of = |exact: bool| {
        let own = made.iter().filter(|made| made.exact == exact);
        functions::of(own.flat_map(|made| &made.dag.nodes))
    };
    let [of_fields, of_scalars] = [false, true].map(of);
    if !of_fields.is_empty() || !of_scalars.is_empty() {
        text.file(FUNCTIONS);
    }
    for (exact, dtype, functions) in [(false, dtype, of_fields), (true, DType::F64, of_scalars)] {
        text.blank();
        text.push(format!("namespace {} {{", space(exact)));
        if exact {
            text.push("typedef double real;");
        }
        functions::write(&mut text, "", &Cuda::PLAIN, dtype, &functions);
        for (number, made) in made.iter().enumerate().filter(|(_, made)| made.exact == exact) {
            let body = formula(&made.dag, &Cuda::PLAIN, dtype, |_| String::new());
            text.push("template <class Values>");
            text.push(format!("__device__ __forceinline__ real value_{number}(const Values& u)\n{{"));
            text.extend(&body.statements);
            text.push(format!("return {};\n}}", body.outputs[0]));
        }
        text.push("}");
    }
    let varying = clock.plain().program.varying();
    for (number, stretch) in stretches.iter().enumerate() {
        text.blank();
        let entry = stretch_entry(number);
        text.push(format!("extern \"C\" __global__ void __launch_bounds__(1) {entry}(Clock clock)\n{{"));
        text.push("Values<real> u(clock);");
        text.push(format!("u.take(clock, {});", stretch.after));
        text.push("real* row = clock.table;");
        for (times, part) in &stretch.parts {
            if *times > 1 {
                text.push("#pragma unroll 1");
                text.push(format!("for (unsigned long long n = 0; n < {times}; ++n) {{"));
            }
            part.iter().for_each(|stage| make(&mut text, stage, &made, &varying, dtype));
            if *times > 1 {
                text.push("}");
            }
        }
        text.push("u.give(clock);\n}");
    }
    Some(text.into())
}

/// A formula of values that all cells have in common.
#[derive(PartialEq)]
struct Made {
    dag: Dag,
    /// Whether a scalar is made, in f64.
    exact: bool,
}

/// Returns the namespace of formulas.
fn space(exact: bool) -> &'static str {
    if exact { "of_scalars" } else { "of_fields" }
}

/// Returns what a stage's formulas make, and the numbers of the values.
fn formulas(stage: &Timed, dtype: DType) -> Vec<(Made, usize)> {
    let of_dag = |dag: &Dag, exact: bool| {
        let dtype = if exact { DType::F64 } else { dtype };
        Made { dag: dag.simplified(dtype), exact }
    };
    match stage {
        Timed::Scalar(dag, scalar) => vec![(of_dag(dag, true), *scalar)],
        Timed::Fields(parts) => parts.iter().map(|(dag, number)| (of_dag(dag, false), *number)).collect(),
        Timed::Reduction(..) => Vec::new(),
    }
}

/// Returns all formulas, each once.
fn made(stretches: &[Stretch], dtype: DType) -> Vec<Made> {
    let mut all: Vec<Made> = Vec::new();
    let stages = stretches.iter().flat_map(|stretch| &stretch.parts).flat_map(|(_, part)| part);
    for (made, _) in stages.flat_map(|stage| formulas(stage, dtype)) {
        if !all.contains(&made) {
            all.push(made);
        }
    }
    all
}

/// Writes what a stage makes, and a row of what a stage of fields reads.
fn make(text: &mut Text, stage: &Timed, all: &[Made], varying: &[usize], dtype: DType) {
    for (made, number) in formulas(stage, dtype) {
        let known = all.iter().position(|known| *known == made).unwrap_or_default();
        let of = if made.exact { "u.exact()" } else { "u" };
        text.push(format!("u.values[{number}] = {}::value_{known}({of});", space(made.exact)));
    }
    if matches!(stage, Timed::Fields(_)) {
        for (place, number) in varying.iter().enumerate() {
            text.push(format!("row[{place}] = real(u.values[{number}]);"));
        }
        text.push(format!("row += {};", varying.len()));
    }
}
