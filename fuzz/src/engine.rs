//! libFuzzer, in this process: it chooses the inputs by the branches that they take, and saves an input that
//! goes wrong.

use std::ffi::{CString, c_char, c_int};
use std::sync::OnceLock;

use abide_fuzz::{Target, execute, mutate};
use anyhow::{Context as _, Result, bail};

unsafe extern "C" {
    /// libFuzzer's loop. The program's `main` is its own, so that one program has all targets.
    fn LLVMFuzzerRunDriver(
        count: *mut c_int,
        arguments: *mut *mut *mut c_char,
        callback: extern "C" fn(*const u8, usize) -> c_int,
    ) -> c_int;
}

/// The target of this process.
static TARGET: OnceLock<&'static Target> = OnceLock::new();

/// Hands a target and libFuzzer's own arguments to libFuzzer, which ends the process where something is
/// found.
pub fn drive(target: &'static Target, arguments: Vec<String>) -> Result<()> {
    if TARGET.set(target).is_err() {
        bail!("one process fuzzes one target");
    }
    let arguments: Vec<CString> = arguments
        .into_iter()
        .map(CString::new)
        .collect::<Result<_, _>>()
        .context("an argument holds a zero byte")?;
    let mut pointers: Vec<*mut c_char> = arguments.iter().map(|text| text.as_ptr().cast_mut()).collect();
    let mut count = c_int::try_from(pointers.len()).context("too many arguments")?;
    pointers.push(std::ptr::null_mut());
    let mut all = pointers.as_mut_ptr();
    // SAFETY: the arguments are a count, as many pointers to strings, and a null pointer after them; all of
    // them outlive the call.
    match unsafe { LLVMFuzzerRunDriver(&mut count, &mut all, one) } {
        0 => Ok(()),
        status => bail!("libFuzzer ended with {status}"),
    }
}

/// Takes one input. A finding ends the process, and libFuzzer then saves the input.
extern "C" fn one(start: *const u8, length: usize) -> c_int {
    let input: &[u8] = match length {
        0 => &[],
        // SAFETY: libFuzzer passes this many bytes, which nobody changes until this function returns.
        _ => unsafe { std::slice::from_raw_parts(start, length) },
    };
    if let Some(target) = TARGET.get()
        && let Err(fault) = execute(target, input)
    {
        eprintln!("finding: {}: {fault}", target.name);
        std::process::abort();
    }
    0
}

/// libFuzzer's hook for mutations: applies its own mutations inside of the input's wrapping.
#[unsafe(no_mangle)]
extern "C" fn LLVMFuzzerCustomMutator(start: *mut u8, length: usize, most: usize, seed: u32) -> usize {
    // SAFETY: libFuzzer passes this many bytes, which are this function's own until it returns.
    let whole = unsafe { std::slice::from_raw_parts_mut(start, most) };
    let Some(target) = TARGET.get().filter(|target| !target.wrappings.is_empty()) else {
        return libfuzzer_sys::fuzzer_mutate(whole, length, most);
    };
    let mut input = whole[..length].to_vec();
    mutate::mutate(target, &mut input, seed.into(), &mut |bytes| {
        let length = bytes.len();
        // The inside may be longer than the packed whole.
        bytes.resize(2 * length.max(most), 0);
        let room = bytes.len();
        let length = libfuzzer_sys::fuzzer_mutate(bytes, length, room);
        bytes.truncate(length);
    });
    let length = input.len().min(most);
    whole[..length].copy_from_slice(&input[..length]);
    length
}

/// The function that libfuzzer-sys's own entry calls; this program does not use it.
#[unsafe(no_mangle)]
fn rust_fuzzer_test_input(_: &[u8]) -> i32 {
    0
}
