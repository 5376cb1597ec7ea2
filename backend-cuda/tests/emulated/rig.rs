//! The way from a kernel's text to the result of a launch: the rewriting of its PTX, and the compiled program.
//!
//! A few lines of PTX mean nothing to a C++ compiler; [`words`] returns their replacements.

mod compiler;

use std::process::Command;

use abide_core::plan::Schedule;
use abide_core::plan::resident::Exchange;
use abide_core::{Array, DType, Plan, Problem};

pub use compiler::{Compilation, compiler, succeeds};

/// The files that stand for CUDA.
const FILES: [(&str, &str); 3] = [
    ("lanes.h", include_str!("lanes.h")),
    ("cuda.h", include_str!("cuda.h")),
    ("main.cc", include_str!("main.cc")),
];

/// Words that only the device understands, and their replacements.
#[allow(dead_code)] // Not every test that has this module replaces words of its own.
pub type Words = [(&'static str, &'static str)];

/// The words of shared memory whose size the launch gives, once in a kernel that has some.
#[allow(dead_code)] // Not every test that has this module names it.
pub const SHARED: (&str, &str) = (
    "extern __shared__ __align__(16) unsigned char shared[];",
    "unsigned char* const shared = emulated::shared_memory();",
);

/// The statement that prefetches a value, once in a kernel of groups.
#[allow(dead_code)] // Not every test that has this module names it.
pub const AHEAD: (&str, &str) =
    (r#"asm volatile("prefetch.global.L2 [%0];" ::"l"(from));"#, "emulated::prefetch(from);");

/// The words of copies, each exactly once in a kernel that copies.
const COPIES: [(&str, &str); 5] = [
    ("const unsigned address = unsigned(__cvta_generic_to_shared(to));", ""),
    (
        r#"asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");"#,
        "emulated::copy(to, from, 16);",
    ),
    (
        r#"asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(address), "l"(from), "n"(BYTES) : "memory");"#,
        "emulated::copy(to, from, BYTES);",
    ),
    (r#"asm volatile("cp.async.commit_group;" ::: "memory");"#, "emulated::copies_commit();"),
    (r#"asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");"#, "emulated::copies_await(N);"),
];

/// The words of flags and counters, each exactly once in a kernel whose blocks wait for each other.
pub const FLAGS: [(&str, &str); 3] = [
    (
        r#"asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");"#,
        "emulated::pause(); v = *p;",
    ),
    (r#"asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");"#, "*p = v;"),
    (r#"asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");"#, "*p += v;"),
];

/// The words of values with tags, each exactly once in a kernel that sends them. The two halves of an access come and go
/// one by one.
const TAGGED: [(&str, &str); 4] = [
    (
        r#"asm volatile("st.relaxed.gpu.global.v2.b64 [%0], {%1, %2};" ::"l"(to), "l"(word[0]), "l"(word[TAGGED_WORDS - 1]) : "memory");"#,
        "{ emulated::aligned(to, 16); to[0] = word[0]; emulated::sometimes(); to[1] = word[TAGGED_WORDS - 1]; }",
    ),
    (
        r#"asm volatile("st.relaxed.gpu.global.b64 [%0], %1;" ::"l"(to), "l"(word[0]) : "memory");"#,
        "{ emulated::aligned(to, 8); *to = word[0]; }",
    ),
    (
        r#"asm volatile("ld.relaxed.gpu.global.v2.b64 {%0, %1}, [%2];" : "=l"(word[0]), "=l"(word[TAGGED_WORDS - 1]) : "l"(from) : "memory");"#,
        "{ emulated::sometimes(); word[0] = from[0]; emulated::sometimes(); word[TAGGED_WORDS - 1] = from[1]; }",
    ),
    (
        r#"asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];" : "=l"(word[0]) : "l"(from) : "memory");"#,
        "{ emulated::sometimes(); word[0] = *from; }",
    ),
];

/// What hides a number from the compiler.
const OPAQUE: (&str, &str) = (r#"asm volatile("" : "+r"(number));"#, "");

/// What approximates a reciprocal, in kernels of formulas that have one.
const RECIPROCALS: [(&str, &str); 2] = [
    (
        r#"asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(near) : "f"(x));"#,
        "near = emulated::near_reciprocal<unsigned>(x);",
    ),
    (
        r#"asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(near) : "d"(x));"#,
        "near = emulated::near_reciprocal<unsigned long long>(x);",
    ),
];

/// Returns the words that only the device understands in the kernel of a plan.
pub fn words(plan: &Plan) -> Vec<(&'static str, &'static str)> {
    if plan.stepwise().is_some() {
        return vec![SHARED];
    }
    let copies = plan.persistent().is_none();
    let some =
        |words: &[(&'static str, &'static str)], are: bool| if are { words.to_vec() } else { Vec::new() };
    let resident = plan.resident().is_some();
    let tagged = plan.resident().is_some_and(|resident| resident.exchange == Exchange::Tagged);
    [vec![SHARED], some(&COPIES, copies), FLAGS.to_vec(), some(&[OPAQUE], resident), some(&TAGGED, tagged)]
        .concat()
}

/// Replaces words in a text, which must have each of them exactly once.
pub fn replaced(text: &str, words: &[(&str, &str)]) -> std::result::Result<String, String> {
    let mut text = text.to_owned();
    for (from, to) in words {
        let places = text.matches(from).count();
        if places != 1 {
            return Err(format!("the kernel's text has {places} times and not once: {from}"));
        }
        text = text.replace(from, to);
    }
    Ok(text)
}

/// Returns a kernel's text as C++.
pub fn rewritten(text: &str, words: &[(&str, &str)]) -> std::result::Result<String, String> {
    let text = replaced(text, words)?;
    let text = RECIPROCALS.iter().fold(text, |text, (from, to)| text.replace(from, to));
    match text
        .lines()
        .find(|line| line.contains("asm(") || line.contains("asm volatile") || line.contains("__cvta"))
    {
        Some(line) => Err(format!("nothing is known to stand for: {}", line.trim())),
        None => Ok(text),
    }
}

/// A launch of a kernel, compiled: a program in a folder of its own.
pub struct Launch {
    folder: tempfile::TempDir,
    dtype: DType,
    cells: usize,
}

impl Launch {
    /// Compiles the launch of a plan for an architecture from the kernel's text as [`rewritten`], for `steps` steps: whole
    /// passes where it streams, one where it launches its only stage.
    pub fn compile(
        compiler: &[String],
        problem: &Problem,
        plan: &Plan,
        architecture: u32,
        steps: u64,
        text: &str,
    ) -> std::result::Result<Launch, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        for (name, content) in FILES.into_iter().chain([("kernel.h", text)]) {
            std::fs::write(folder.path().join(name), content).map_err(|error| format!("{name}: {error}"))?;
        }
        let (blocks, threads, shared) = match &plan.schedule {
            Schedule::WarpStreaming(s) => (s.shares, s.threads_per_block(), s.shared_bytes),
            Schedule::Persistent(p) => (p.blocks, p.threads_per_block(), p.shared_bytes),
            // Of a batch a block for each member.
            Schedule::Resident(r) => (r.blocks() * plan.members(), r.threads_per_block(), r.shared_bytes),
            Schedule::Stepwise(s) if problem.program.stages().len() == 1 => (
                s.launched(problem.shape.padded()),
                s.threads_per_block(),
                s.shared_bytes[0] + s.table_bytes(0),
            ),
            _ => {
                return Err(
                    "the plan is of several launches, or neither streams nor stays on the chip".to_owned()
                );
            }
        };
        // Each stage that writes a field of a persistent kernel swaps the field's buffers; each pass of a
        // streaming kernel swaps those of all fields that change; a resident kernel swaps none.
        let passes = steps / u64::from(plan.depth.max(1));
        let flipped = (0..problem.program.fields().len()).map(|field| {
            let stages =
                problem.program.stages().iter().filter(|stage| stage.writes.contains(&field)).count() as u64;
            let swaps = match &plan.schedule {
                Schedule::Persistent(_) => stages * steps,
                Schedule::Resident(_) => 0,
                _ => u64::from(stages > 0) * passes,
            };
            if swaps % 2 == 1 { "true" } else { "false" }
        });
        let mut command = Compilation::new(compiler, folder.path(), "launch");
        command.arg(format!("-DBLOCKS_LAUNCHED={blocks}")).arg(format!("-DTHREADS_LAUNCHED={threads}"));
        command.arg(format!("-DSHARED_BYTES={shared}")).arg(format!("-DARCHITECTURE={architecture}"));
        command.arg(format!("-DFLIPPED={}", flipped.collect::<Vec<_>>().join(",")));
        let ends: Vec<String> = problem.program.arrays().iter().map(|array| array.end.to_string()).collect();
        command.arg(format!("-DARRAY_ENDS={}", ends.join(",")));
        command.arg(match plan.schedule {
            Schedule::WarpStreaming(_) => format!("-DPASSES={passes}"),
            Schedule::Stepwise(_) => "-DSTAGE".to_owned(),
            _ => format!("-DSTEPS={steps}"),
        });
        if plan.resident().is_some() {
            command.arg("-DRESIDENT");
        }
        if let Some(resident) = plan.resident().filter(|resident| resident.exchange == Exchange::Tagged) {
            command.arg(format!("-DEXCHANGES_LAUNCHED={}", resident.exchanges_in(steps)));
        }
        if plan.is_at_once() {
            command.arg(format!("-DMEMBERS_LAUNCHED={}", plan.members()));
        }
        command.run()?;
        Ok(Launch { folder, dtype: problem.dtype, cells: plan.cells() })
    }

    /// Returns the bytes of each field after a launch whose lanes take turns in the order that the seed
    /// gives. Of a batch, fields and parameters have those of all members, one after another.
    pub fn run(
        &self,
        start: &[Array],
        parameters: &[f64],
        seed: usize,
    ) -> std::result::Result<Vec<Vec<u8>>, String> {
        let folder = self.folder.path();
        let fields: Vec<u8> = start.iter().flat_map(|field| field.as_bytes().iter().copied()).collect();
        let parameters: Vec<u8> = match self.dtype {
            DType::F32 => parameters.iter().flat_map(|&value| (value as f32).to_ne_bytes()).collect(),
            DType::F64 => parameters.iter().flat_map(|value| value.to_ne_bytes()).collect(),
        };
        for (name, content) in [("fields", fields), ("parameters", parameters)] {
            std::fs::write(folder.join(name), content).map_err(|error| format!("{name}: {error}"))?;
        }
        succeeds(Command::new(folder.join("launch")).arg(folder).arg(seed.to_string()))?;
        let result = std::fs::read(folder.join("result")).map_err(|error| format!("result: {error}"))?;
        Ok(result.chunks(self.cells * self.dtype.bytes()).map(<[u8]>::to_vec).collect())
    }
}
