//! The way from a kernel's text to the result of a launch: the rewriting of its PTX, the C++ compiler, and
//! the compiled program.
//!
//! A few lines of PTX mean nothing to a C++ compiler; [`words`] returns their replacements.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use abide_core::plan::Schedule;
use abide_core::plan::resident::Exchange;
use abide_core::{Array, DType, Error, Plan, Problem, Result};

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

/// The words that ask for a value ahead, once in a kernel of groups.
#[allow(dead_code)] // Not every test that has this module names it.
pub const AHEAD: (&str, &str) =
    (r#"asm volatile("prefetch.global.L2 [%0];" ::"l"(from));"#, "emulated::ask_ahead(from);");

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
        r#"asm volatile("st.relaxed.gpu.global.v2.b64 [%0], {%1, %2};" ::"l"(to), "l"(word[0]), "l"(word[PARCEL - 1]) : "memory");"#,
        "{ emulated::aligned(to, 16); to[0] = word[0]; emulated::sometimes(); to[1] = word[PARCEL - 1]; }",
    ),
    (
        r#"asm volatile("st.relaxed.gpu.global.b64 [%0], %1;" ::"l"(to), "l"(word[0]) : "memory");"#,
        "{ emulated::aligned(to, 8); *to = word[0]; }",
    ),
    (
        r#"asm volatile("ld.relaxed.gpu.global.v2.b64 {%0, %1}, [%2];" : "=l"(word[0]), "=l"(word[PARCEL - 1]) : "l"(from) : "memory");"#,
        "{ emulated::sometimes(); word[0] = from[0]; emulated::sometimes(); word[PARCEL - 1] = from[1]; }",
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

/// Returns the compiler's command: `CXX`, else the first of the usual names that can compile and link C++20
/// and what the lanes need.
pub fn compiler() -> Result<Vec<String>> {
    let named = std::env::var("CXX").ok().filter(|named| !named.trim().is_empty());
    let names = named.map_or_else(|| vec!["c++".to_owned(), "g++".to_owned()], |name| vec![name]);
    let mut reasons = Vec::new();
    for name in names {
        let command: Vec<String> = name.split_whitespace().map(str::to_owned).collect();
        match try_compiler(&command) {
            Ok(()) => return Ok(command),
            Err(reason) => reasons.push(format!("{name}: {reason}")),
        }
    }
    let reason = format!("no compiler of C++20 with ucontext.h ({}); name one in CXX", reasons.join("; "));
    Err(Error::Unavailable { backend: "c++", reason })
}

fn try_compiler(command: &[String]) -> std::result::Result<(), String> {
    let probe = "#include <ucontext.h>\nstatic_assert(__cplusplus >= 202002L);\n\
                 int main() { ucontext_t here; return getcontext(&here); }\n";
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        .args(["-std=c++20", "-x", "c++", "-", "-o"])
        .arg(folder.path().join("probe"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    if let Some(mut input) = child.stdin.take() {
        // A compiler that does not read its input fails below, with the reason.
        let _ = input.write_all(probe.as_bytes());
    }
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
    }
}

/// How kernels become programs: without contraction, because the formula says where to contract; warnings are the CUDA
/// compiler's business.
const COMPILATION: [&str; 4] = ["-std=c++20", "-O1", "-ffp-contract=off", "-w"];

/// Returns the compilation of the file `main.cc` in a folder into a program there; what it needs to know of the launch is to
/// be added.
pub fn compilation(compiler: &[String], folder: &Path, program: &str) -> Command {
    static STANDARD: OnceLock<Option<PathBuf>> = OnceLock::new();
    let mut command = Command::new(&compiler[0]);
    command.args(&compiler[1..]).current_dir(folder).args(COMPILATION);
    if let Some(header) = STANDARD.get_or_init(|| standard(compiler)) {
        command.arg("-include").arg(header);
    }
    command.args(["main.cc", "-o", program]);
    command
}

/// Compiles the headers of the standard library once, because they take as long as a kernel; returns the file to include.
/// Where that is not possible, each program reads them.
fn standard(compiler: &[String]) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("emulated");
    std::fs::create_dir_all(&folder).ok()?;
    let header = folder.join("standard.h");
    std::fs::write(&header, include_str!("standard.h")).ok()?;
    // Another process may read the file that is there.
    let compiled = tempfile::NamedTempFile::new_in(&folder).ok()?.into_temp_path();
    let mut command = Command::new(&compiler[0]);
    command
        .args(&compiler[1..])
        .args(COMPILATION)
        .args(["-x", "c++-header"])
        .arg(&header)
        .arg("-o")
        .arg(&compiled);
    succeeds(&mut command).ok()?;
    compiled.persist(folder.join("standard.h.gch")).ok()?;
    Some(header)
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
        let mut command = compilation(compiler, folder.path(), "launch");
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
            command.arg(format!("-DOUTBOXES={}", resident.exchanges_in(steps)));
        }
        if plan.is_at_once() {
            command.arg(format!("-DMEMBERS_LAUNCHED={}", plan.members()));
        }
        succeeds(&mut command)?;
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

/// Runs a program; if it fails, its output is the error.
pub fn succeeds(command: &mut Command) -> std::result::Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let first: Vec<&str> = said.lines().take(20).collect();
    Err(format!("{}: {}", output.status, first.join("\n")))
}
