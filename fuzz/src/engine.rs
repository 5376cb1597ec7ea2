//! libFuzzer, in this process: it chooses the inputs by the branches that they take, and saves one that goes
//! wrong.

use std::ffi::{CString, c_char, c_int};
use std::sync::OnceLock;

use abide_fuzz::{Target, execute, mutate};
use anyhow::{Context as _, Result, bail};

unsafe extern "C" {
    /// libFuzzer's loop. `main` is ours, so that one program has all targets.
    fn LLVMFuzzerRunDriver(
        count: *mut c_int,
        arguments: *mut *mut *mut c_char,
        callback: extern "C" fn(*const u8, usize) -> c_int,
    ) -> c_int;
}

/// What this process fuzzes.
static TARGET: OnceLock<&'static Target> = OnceLock::new();

/// Hands a target and arguments of its own to libFuzzer; it ends the process where something is found.
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
    // SAFETY: a count and as many pointers to strings, and a null pointer behind them, all of which outlive
    // the call.
    match unsafe { LLVMFuzzerRunDriver(&mut count, &mut all, one) } {
        0 => Ok(()),
        status => bail!("libFuzzer ended with {status}"),
    }
}

/// Takes one input; a finding ends the process, by which libFuzzer saves the input.
extern "C" fn one(start: *const u8, length: usize) -> c_int {
    let input: &[u8] = match length {
        0 => &[],
        // SAFETY: libFuzzer passes that many bytes, which nobody changes until this returns.
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

/// libFuzzer's hook for mutations: its own, on what is inside of the input.
#[unsafe(no_mangle)]
extern "C" fn LLVMFuzzerCustomMutator(start: *mut u8, length: usize, most: usize, seed: u32) -> usize {
    // SAFETY: libFuzzer passes so many bytes that are this function's own until it returns.
    let whole = unsafe { std::slice::from_raw_parts_mut(start, most) };
    let Some(target) = TARGET.get().filter(|target| !target.wrappings.is_empty()) else {
        return libfuzzer_sys::fuzzer_mutate(whole, length, most);
    };
    let mut input = whole[..length].to_vec();
    mutate::mutate(target, &mut input, seed.into(), &mut |bytes| {
        let length = bytes.len();
        // What is inside may be longer than the packed whole.
        bytes.resize(2 * length.max(most), 0);
        let room = bytes.len();
        let length = libfuzzer_sys::fuzzer_mutate(bytes, length, room);
        bytes.truncate(length);
    });
    let length = input.len().min(most);
    whole[..length].copy_from_slice(&input[..length]);
    length
}

/// What libfuzzer-sys's own entry calls, which this program does not use.
#[unsafe(no_mangle)]
fn rust_fuzzer_test_input(_: &[u8]) -> i32 {
    0
}
