//! NVRTC, the run-time compiler: found when first needed, any version from 11 on; and its report, read.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use abide_core::plan::Compiled;
use abide_core::{Error, Result};
#[cfg(unix)]
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_LAZY, Symbol};
#[cfg(windows)]
use libloading::os::windows::{Library, Symbol};

/// The environment variable that names a folder with the library and its builtins, searched before the system.
pub const FOLDER_VARIABLE: &str = "ABIDE_NVRTC";

/// How the names of the library's file and of its builtins begin.
const FILES: [&str; 2] =
    if cfg!(windows) { ["nvrtc64_", "nvrtc-builtins64_"] } else { ["libnvrtc.so", "libnvrtc-builtins.so"] };

/// Where systems install the library.
const SYSTEM: &[&str] = if cfg!(windows) {
    &["nvrtc64_130_0.dll", "nvrtc64_120_0.dll", "nvrtc64_112_0.dll"]
} else {
    &[
        "libnvrtc.so.13",
        "libnvrtc.so.12",
        "libnvrtc.so.11.2",
        "libnvrtc.so",
        "/usr/local/cuda/lib64/libnvrtc.so",
    ]
};

type Program = *mut c_void;
type Status = c_int;

/// The status of an option that the compiler does not know: `NVRTC_ERROR_INVALID_OPTION`.
const INVALID_OPTION: Status = 5;

/// The compiler's functions, with the signatures of `nvrtc.h`.
struct Api {
    create: Symbol<
        unsafe extern "C" fn(
            *mut Program,
            *const c_char,
            *const c_char,
            c_int,
            *const c_void,
            *const c_void,
        ) -> Status,
    >,
    compile: Symbol<unsafe extern "C" fn(Program, c_int, *const *const c_char) -> Status>,
    log_size: Symbol<unsafe extern "C" fn(Program, *mut usize) -> Status>,
    log: Symbol<unsafe extern "C" fn(Program, *mut c_char) -> Status>,
    cubin_size: Symbol<unsafe extern "C" fn(Program, *mut usize) -> Status>,
    cubin: Symbol<unsafe extern "C" fn(Program, *mut c_char) -> Status>,
    destroy: Symbol<unsafe extern "C" fn(*mut Program) -> Status>,
    words: Symbol<unsafe extern "C" fn(Status) -> *const c_char>,
    version: (i32, i32),
    /// Whether the compiler has not refused to do without its own cache, as those of CUDA 12.8 and older do.
    knows_no_cache: AtomicBool,
    _libraries: Vec<Library>,
}

/// The compiler of this machine.
pub struct Nvrtc(&'static Api);

/// A compiled kernel file and the compiler's report on each kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Cubin {
    /// The machine code.
    pub image: Vec<u8>,
    /// Registers and spills.
    pub report: Vec<Compiled>,
}

impl Nvrtc {
    /// Finds and opens the library, once per process; `Unavailable` where there is none.
    pub fn open() -> Result<Nvrtc> {
        static API: OnceLock<std::result::Result<Api, String>> = OnceLock::new();
        match API.get_or_init(load) {
            Ok(api) => Ok(Nvrtc(api)),
            Err(reason) => Err(Error::Unavailable { backend: "cuda", reason: reason.clone() }),
        }
    }

    /// Returns the compiler's version, as in (12, 8).
    pub fn version(&self) -> (i32, i32) {
        self.0.version
    }

    /// Compiles CUDA C++ for a target such as `sm_90`.
    pub fn compile(&self, text: &str, target: &str, options: &[&str]) -> Result<Cubin> {
        let c_string = |text: &str| {
            CString::new(text).map_err(|_| {
                Error::invalid("kernel text", "it contains a zero byte", "report this as a fault of Abide")
            })
        };
        let source = c_string(text)?;
        let architecture = format!("--gpu-architecture={target}");
        let all =
            options.iter().copied().chain([architecture.as_str(), "-default-device", "--ptxas-options=-v"]);
        let options: Vec<CString> = all.map(c_string).collect::<Result<_>>()?;
        // A compiler that keeps what it has made says nothing of registers and spills where it finds a kernel again.
        let without_cache: Vec<CString> = options.iter().cloned().chain([c_string("--no-cache")?]).collect();
        let knows_option = self.0.knows_no_cache.load(Ordering::Relaxed);
        let own = if knows_option { &without_cache } else { &options };
        let (mut program, mut status) = self.run(&source, own)?;
        if status == INVALID_OPTION && knows_option {
            self.0.knows_no_cache.store(false, Ordering::Relaxed);
            (program, status) = self.run(&source, &options)?;
        }
        // SAFETY: the sizes are asked of the same program, as the calls require.
        let log = unsafe { program.bytes(&self.0.log_size, &self.0.log) }?;
        let log = String::from_utf8_lossy(&log).trim_end_matches('\0').to_owned();
        if status != 0 {
            return Err(Error::Compile {
                backend: "cuda",
                target: target.to_owned(),
                log: log.chars().take(8000).collect(),
            });
        }
        // SAFETY: as above; a cubin exists because the target is a real architecture.
        let image = unsafe { program.bytes(&self.0.cubin_size, &self.0.cubin) }?;
        Ok(Cubin { image, report: read_report(&log, target) })
    }

    /// Lets the compiler make a program of a text; returns it with the status of the compilation.
    fn run(&self, source: &CStr, options: &[CString]) -> Result<(Handle, Status)> {
        let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let mut program = Handle { api: self.0, program: std::ptr::null_mut() };
        // SAFETY: the strings outlive the call, there are no headers, and the handle is destroyed by its
        // owner.
        let status = unsafe {
            (self.0.create)(
                &mut program.program,
                source.as_ptr(),
                c"abide.cu".as_ptr(),
                0,
                std::ptr::null(),
                std::ptr::null(),
            )
        };
        self.check("making a program", status)?;
        // SAFETY: the program was made above; the options' strings outlive the call.
        let status = unsafe { (self.0.compile)(program.program, pointers.len() as c_int, pointers.as_ptr()) };
        Ok((program, status))
    }

    fn check(&self, operation: &str, status: Status) -> Result<()> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: the function returns a static string for any status.
        let words = unsafe { CStr::from_ptr((self.0.words)(status)) };
        Err(Error::device("cuda", operation, words.to_string_lossy()))
    }
}

/// A program, destroyed when dropped.
struct Handle {
    api: &'static Api,
    program: Program,
}

impl Handle {
    /// # Safety
    /// `size` and `get` must be a pair of the API's calls that take this program.
    unsafe fn bytes(
        &self,
        size: &unsafe extern "C" fn(Program, *mut usize) -> Status,
        get: &unsafe extern "C" fn(Program, *mut c_char) -> Status,
    ) -> Result<Vec<u8>> {
        let mut length = 0;
        // SAFETY: the caller's promise; `length` outlives the call.
        Nvrtc(self.api).check("asking a size", unsafe { size(self.program, &mut length) })?;
        let mut bytes = vec![0u8; length];
        // SAFETY: the caller's promise; the buffer is as long as the compiler asked for.
        let status = unsafe { get(self.program, bytes.as_mut_ptr().cast()) };
        Nvrtc(self.api).check("reading the result", status)?;
        Ok(bytes)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if !self.program.is_null() {
            // SAFETY: made by this API and destroyed only here.
            unsafe { (self.api.destroy)(&mut self.program) };
        }
    }
}

/// Opens the library from the folder of [`FOLDER_VARIABLE`], else by the names that systems install it under.
fn load() -> std::result::Result<Api, String> {
    let mut tried = Vec::new();
    if let Some(folder) = std::env::var_os(FOLDER_VARIABLE).map(PathBuf::from) {
        match load_folder(&folder) {
            Ok(api) => return Ok(api),
            Err(reason) => tried.push(reason),
        }
    }
    for name in SYSTEM {
        match open_library(Path::new(name)).and_then(|library| bind(vec![library])) {
            Ok(api) => return Ok(api),
            Err(reason) => tried.push(reason),
        }
    }
    Err(format!(
        "the run-time compiler NVRTC was not found; install CUDA 11.2 or newer, or set {FOLDER_VARIABLE} to the folder that holds it ({})",
        tried.first().cloned().unwrap_or_default()
    ))
}

fn load_folder(folder: &Path) -> std::result::Result<Api, String> {
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    // On Windows the wheel has a second library of each kind, for a runtime of its own: `nvrtc64_120_0.alt.dll`.
    let named = |prefix: &str| {
        let is_name = |name: &str| name.starts_with(prefix) && !name.contains(".alt.");
        let matches = |f: &&PathBuf| f.file_name().is_some_and(|name| is_name(&name.to_string_lossy()));
        files.iter().find(matches).cloned()
    };
    let [compiler, builtins] = FILES;
    let library = named(compiler).ok_or_else(|| format!("{}: no {compiler}* there", folder.display()))?;
    // The compiler opens its builtins by bare name; opened here before, they are found wherever they lie.
    let builtins = named(builtins).map(|path| open_library(&path)).transpose()?;
    let library = open_library(&library)?;
    bind(builtins.into_iter().chain([library]).collect())
}

fn open_library(path: &Path) -> std::result::Result<Library, String> {
    // SAFETY: the vendor's libraries run nothing of consequence when opened.
    #[cfg(unix)]
    let opened = unsafe { Library::open(Some(path), RTLD_LAZY | RTLD_GLOBAL) };
    // SAFETY: likewise.
    #[cfg(windows)]
    let opened = unsafe { Library::new(path) };
    opened.map_err(|e| format!("{}: {e}", path.display()))
}

/// Looks the functions up in the last of `libraries`.
fn bind(libraries: Vec<Library>) -> std::result::Result<Api, String> {
    let library = libraries.last().ok_or("no library")?;
    // SAFETY: the names and signatures are those of nvrtc.h, stable since CUDA 11.1.
    unsafe {
        let get = |name: &'static str| move |e: libloading::Error| format!("{name}: {e}");
        let version: Symbol<unsafe extern "C" fn(*mut c_int, *mut c_int) -> Status> =
            library.get(b"nvrtcVersion\0").map_err(get("nvrtcVersion"))?;
        let (mut major, mut minor) = (0, 0);
        version(&mut major, &mut minor);
        Ok(Api {
            create: library.get(b"nvrtcCreateProgram\0").map_err(get("nvrtcCreateProgram"))?,
            compile: library.get(b"nvrtcCompileProgram\0").map_err(get("nvrtcCompileProgram"))?,
            log_size: library.get(b"nvrtcGetProgramLogSize\0").map_err(get("nvrtcGetProgramLogSize"))?,
            log: library.get(b"nvrtcGetProgramLog\0").map_err(get("nvrtcGetProgramLog"))?,
            cubin_size: library.get(b"nvrtcGetCUBINSize\0").map_err(get("nvrtcGetCUBINSize"))?,
            cubin: library.get(b"nvrtcGetCUBIN\0").map_err(get("nvrtcGetCUBIN"))?,
            destroy: library.get(b"nvrtcDestroyProgram\0").map_err(get("nvrtcDestroyProgram"))?,
            words: library.get(b"nvrtcGetErrorString\0").map_err(get("nvrtcGetErrorString"))?,
            version: (major, minor),
            knows_no_cache: AtomicBool::new(true),
            _libraries: libraries,
        })
    }
}

/// Reads registers and spills of each kernel out of the assembler's report.
fn read_report(log: &str, target: &str) -> Vec<Compiled> {
    let mut report: Vec<Compiled> = Vec::new();
    let mut spill_bytes = 0;
    for line in log.lines() {
        if let Some(rest) = line.split("Compiling entry function '").nth(1) {
            let kernel = rest.split('\'').next().unwrap_or_default().to_owned();
            report.push(Compiled { kernel, target: target.to_owned(), registers: 0, spill_bytes: 0 });
            spill_bytes = 0;
        } else if line.contains("bytes spill stores") {
            spill_bytes =
                number_before(line, " bytes spill stores").max(number_before(line, " bytes spill loads"));
        } else if line.contains(": Used ")
            && let Some(last) = report.last_mut()
        {
            last.registers = number_before(line, " registers");
            last.spill_bytes = spill_bytes;
        }
    }
    report
}

fn number_before(line: &str, words: &str) -> usize {
    let before = line.split(words).next().unwrap_or_default();
    before.rsplit(|c: char| !c.is_ascii_digit()).next().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_assemblers_report_is_read() {
        let log = "ptxas info    : 0 bytes gmem\n\
            ptxas info    : Compiling entry function 'stage_0' for 'sm_90'\n\
            ptxas info    : Function properties for stage_0\n    \
            520 bytes stack frame, 516 bytes spill stores, 644 bytes spill loads\n\
            ptxas info    : Used 168 registers, used 1 barriers, 384 bytes cmem[0]\n";
        let expected = Compiled {
            kernel: "stage_0".to_owned(),
            target: "sm_90".to_owned(),
            registers: 168,
            spill_bytes: 644,
        };
        assert_eq!(read_report(log, "sm_90"), vec![expected]);
    }
}
