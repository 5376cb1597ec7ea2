//! The kernel that ends each step of a program that is not plain, where the run may end or halt there, or has a
//! record.

use abide_core::program::{Boxes, Launches, Until};
use abide_core::{DType, Problem};

use super::super::literal;
use super::super::pitch::buffer_pitch;
use super::kinds::stored;
use super::{KernelLaunch, Part};
use crate::text::Text;

const END: &str = include_str!("../../../kernels/cuda/program/end.cuh");

/// Threads of the block that writes a row.
const THREADS: usize = 256;

/// The kernel that ends a step, and what its arguments name.
#[derive(Debug, Clone)]
pub struct StepEnd {
    /// The kernel.
    pub kernel: KernelLaunch,
    /// The fields that the first slots name.
    fields: Vec<usize>,
}

/// Returns the statement that names a computed scalar `value`.
pub(super) fn value_of(problem: &Problem, scalar: usize) -> String {
    format!("const double value = arguments.exact[{}];", problem.program.parameters().len() + scalar)
}

/// Returns whether a condition on `value` holds, as an expression.
pub(super) fn holds(until: Until) -> String {
    let relation = until.relation.relation().unwrap_or("==");
    format!("value != value || value {relation} {}", literal(DType::F64, until.value))
}

impl StepEnd {
    /// Returns what the kernel of a problem will be; `None` if nothing is noted at the end of a step, or the host does so, which is
    /// there between the steps of a program with loops.
    pub(super) fn of(problem: &Problem) -> Option<StepEnd> {
        let is_noted = problem.until.is_some() || problem.marks.is_some() || problem.record.is_some();
        if !is_noted || problem.program.has_loops() {
            return None;
        }
        let mut fields: Vec<usize> = Vec::new();
        for probe in problem.record.iter().flat_map(|record| &record.probes) {
            if !fields.contains(&probe.field) {
                fields.push(probe.field);
            }
        }
        let threads = if problem.record.is_some() { THREADS } else { 1 };
        let kernel = KernelLaunch {
            entry: "end_of_step_kernel".to_owned(),
            blocks: 1,
            threads,
            shared_bytes: 0,
            carries: false,
            part: Part::End,
        };
        Some(StepEnd { kernel, fields })
    }

    /// Returns the number of slots that the kernel needs.
    pub(super) fn slots(&self) -> usize {
        self.fields.len()
    }

    /// Returns the numbers of the buffers that the kernel names after a step, slot by slot.
    pub fn buffers(&self, step: &Launches) -> Vec<Option<usize>> {
        self.fields.iter().map(|&field| step.fields.get(field).copied()).collect()
    }

    /// Writes what the kernel does.
    pub(super) fn write(&self, text: &mut Text, problem: &Problem, boxes: &Boxes) {
        text.file(END);
        text.blank();
        let columns = self.columns(problem, boxes);
        if !columns.is_empty() {
            text.push(format!("__device__ const Column columns[] = {{{}}};", columns.join(", ")));
            text.blank();
        }
        text.push("struct End {");
        text.push(format!("static constexpr int THREADS = {};", self.kernel.threads));
        text.push(format!("static constexpr int COLUMNS = {};", columns.len()));
        let every = problem.record.as_ref().map_or(0, |record| record.every);
        text.push(format!("static constexpr unsigned long long EVERY = {every}ull;"));
        if !columns.is_empty() {
            text.push("__device__ static __forceinline__ Column column(int i) { return columns[i]; }");
        }
        text.push("__device__ static __forceinline__ unsigned long long stopped(const Arguments& arguments)");
        text.push("{");
        text.push("unsigned long long stopped = 0;");
        if let Some(until) = problem.until {
            text.push("{");
            text.push(value_of(problem, until.scalar));
            text.push(format!("if ({}) stopped |= ENDED;", holds(until)));
            text.push("}");
        }
        if let Some(marks) = problem.marks {
            text.push("{");
            text.push(value_of(problem, marks.scalar));
            text.push("if (value != value) stopped |= ENDED;");
            text.push("if (value >= arguments.progress->mark) stopped |= AT_MARK;");
            text.push("}");
        }
        text.push("return stopped;");
        text.push("}");
        text.push("};");
    }

    /// Writes the kernel.
    pub(super) fn write_kernel(&self, text: &mut Text) {
        let KernelLaunch { entry, threads, .. } = &self.kernel;
        text.push(format!(
            "extern \"C\" __global__ void __launch_bounds__({threads}) \
             {entry}(const __grid_constant__ Arguments arguments)"
        ));
        text.push("{");
        text.push(self.call());
        text.push("}");
    }

    /// Returns the statement of the kernel.
    pub(super) fn call(&self) -> &'static str {
        "end_of_step<End>(arguments);"
    }

    /// Returns the columns of a row, as they are written in a table.
    fn columns(&self, problem: &Problem, boxes: &Boxes) -> Vec<String> {
        let Some(record) = &problem.record else { return Vec::new() };
        let first = problem.program.parameters().len();
        let scalars = record.scalars.iter().map(|number| format!("{{-1, {}, Column::REAL}}", first + number));
        let probes = record.probes.iter().filter_map(|probe| {
            let slot = self.fields.iter().position(|&field| field == probe.field)?;
            let buffer = &boxes.buffers[probe.field];
            let [z, y, x] = probe.index;
            let at = (z * buffer.extents[1] + y) * buffer_pitch(buffer, problem.dtype) + x;
            Some(format!("{{{slot}, {at}, Column::{}}}", stored(buffer).to_uppercase()))
        });
        scalars.chain(probes).collect()
    }
}
