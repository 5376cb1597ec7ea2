//! Memory is asked for before it is taken; threads and caches that are not available are reported in words.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

use abide::Array;

use super::{Place, exists, noise, words};

impl Place {
    /// Runs the command under limits that the shell sets first, as in `ulimit -v 300000`.
    fn limited(&self, limits: &str, line: &str) -> Output {
        let script = format!("{limits}; exec \"$0\" {line}");
        let mut shell = Command::new("sh");
        shell.current_dir(self.0.path()).args(["-c", &script, env!("CARGO_BIN_EXE_abide")]).output().unwrap()
    }

    /// Runs the command under limits, where it must fail with an error that says all of `reasons`.
    fn refuses(&self, limits: &str, line: &str, reasons: &[&str]) {
        let output = self.limited(limits, line);
        let reported = words(&output);
        assert_eq!(output.status.code(), Some(1), "abide {line}: {reported}");
        assert!(
            reported.starts_with("error: ") && !reported.contains("panicked"),
            "abide {line}: {reported}"
        );
        for reason in reasons {
            assert!(reported.contains(reason), "abide {line}: {reported} does not say {reason}");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn threads_that_are_not_granted_are_an_error() {
    let place = Place::new();
    let limits = "ulimit -v 1000000; export RAYON_NUM_THREADS=1000";
    for line in
        ["run heat --backend cpu --size 30x30 --steps 1", "solve --matrix laplacian2d:5x5 --backend cpu"]
    {
        place.refuses(limits, line, &["threads: 1000 asked", "RAYON_NUM_THREADS"]);
    }
    let output = place.limited(limits, "devices");
    assert!(output.status.success() && !words(&output).contains("panicked"), "{}", words(&output));
}

/// The whole need is reported at once, each part by name, and none of it was taken.
#[test]
fn a_run_asks_for_all_that_it_will_hold() {
    let place = Place::new();
    let line = "run gray-scott --size 30000000x300000 --steps 1 --backend cpu";
    let parts =
        ["memory for the fields: 2 fields 72.0 TB", "the CPU's second copy 72.0 TB", "the output 36.0 TB"];
    place.fails(
        line,
        &[&parts[..], &[" asked, the limit is ", " available; choose a smaller --size"]].concat(),
    );
    place.fails(&format!("{line} --output all.vti"), &["the output 72.0 TB"]);
    place.fails(&format!("{line} --output u.png --output v.npy"), &["the output 63.0 TB"]);
}

#[cfg(target_os = "linux")]
#[test]
fn limits_on_address_space_are_kept() {
    let place = Place::new();
    let limits = "ulimit -v 2000000";
    place.refuses(
        limits,
        "run heat --backend cpu --size 20000x20000 --steps 1",
        &["1 field 1.60 GB", "available"],
    );
    for line in [
        "solve --operator laplacian1d --size 3000000000 --backend cpu",
        "solve --operator laplacian1d --size 40000000 --backend cpu",
    ] {
        place.refuses(limits, line, &["memory for a solve: b and x", "the vectors of cg", "available"]);
    }
    place.refuses(
        limits,
        "solve --matrix hpcg:300x300x300 --backend cpu",
        &["memory for a matrix: hpcg:300x300x300 "],
    );
    // A small run needs little memory, whichever of its threads allocates first.
    for _ in 0..40 {
        let output = place.limited("ulimit -v 120000", "run heat --backend cpu --size 8x8 --steps 1");
        assert!(output.status.success(), "{}", words(&output));
    }
}

/// Drivers that corrupt their memory where there is little are not looked for in a small address space.
#[cfg(target_os = "linux")]
#[test]
fn drivers_are_not_looked_for_in_a_small_address_space() {
    let place = Place::new();
    for line in ["devices", "run heat --size 8x8 --steps 1 --verbose"] {
        let output = place.limited("ulimit -v 300000", line);
        let reported = String::from_utf8_lossy(&output.stdout).into_owned() + &words(&output);
        assert!(output.status.success(), "abide {line}: {reported}");
        assert!(
            reported.contains("of address space") && reported.contains("ulimit -v"),
            "abide {line}: {reported}"
        );
    }
}

#[test]
fn headers_of_matrices_and_vectors_are_believed_only_so_far() {
    let place = Place::new();
    let write = |name: &str, text: &str| {
        fs::write(place.path(name), format!("%%MatrixMarket matrix coordinate real general\n{text}"))
            .unwrap();
    };
    write("a.mtx", "2 2 2\n1 1 2\n2 2 3\n");
    write("big.mtx", "500000000 500000000 1\n1 1 1\n");
    write("v.mtx", "300000000 1 1\n1 1 1\n");
    for line in ["solve big.mtx --backend cpu", "solve a.mtx --rhs v.mtx --backend cpu"] {
        place.fails(line, &["00000000"]);
    }
    place.fails("solve big.mtx --backend cpu", &["big.mtx", "1 entries in 500000000 rows", "singular"]);
    place.fails(
        "solve a.mtx --rhs v.mtx --backend cpu",
        &["v.mtx", "300000000 values for a matrix of 2 rows"],
    );
}

/// A picture of many pixels in few bytes is refused: its size is compared, and memory asked for, before a
/// pixel is decoded.
#[test]
fn pictures_are_refused_by_their_headers() {
    let place = Place::new();
    let picture = image::GrayImage::new(16, 16);
    picture.save(place.path("p.png")).unwrap();
    let mut bytes = fs::read(place.path("p.png")).unwrap();
    bytes[16..24].copy_from_slice(&[0, 0, 200, 0, 0, 0, 200, 0]);
    let check = crc32(&bytes[12..29]).to_be_bytes();
    bytes[29..33].copy_from_slice(&check);
    fs::write(place.path("bomb.png"), bytes).unwrap();
    let line = "run heat --input bomb.png --steps 0 --backend cpu";
    place.fails(&format!("{line} --size 8x8"), &["bomb.png", "its size is 51200x51200, the domain's is 8x8"]);
    if cfg!(target_os = "linux") {
        place.refuses("ulimit -v 2000000", line, &["memory for the fields", "1 field 10.5 GB", "available"]);
    }
}

/// Returns the checksum of a PNG's chunk.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ if sum & 1 == 1 { 0xedb8_8320 } else { 0 })
    })
}

#[test]
fn inputs_are_read_as_they_were() {
    let place = Place::new();
    place.write("x.npy", &[6, 5], &Array::F64(noise(30, 9)));
    place.works("run heat --input x.npy --steps 0 --dtype f64 --output y.npy --backend cpu");
    assert_eq!(place.read("x.npy"), place.read("y.npy"));
    let text = place.works("run heat --input x.npy --steps 0 --output z.npy --backend cpu");
    assert!(text.contains("field u: input in f64 rounded to f32"), "{text}");
    assert_eq!(place.read("z.npy").values, place.read("x.npy").values.cast(abide::DType::F32).unwrap());
    // A pipe can be read only once.
    let script = "mkfifo p.npy; cat x.npy > p.npy & \"$0\" run heat --input p.npy --steps 0 --dtype f64 --output w.npy --backend cpu";
    let mut shell = Command::new("sh");
    let output =
        shell.current_dir(place.0.path()).args(["-c", script, env!("CARGO_BIN_EXE_abide")]).output().unwrap();
    assert!(output.status.success(), "{}", words(&output));
    assert_eq!(place.read("x.npy"), place.read("w.npy"));
}

/// Returns the most memory that a run held, in bytes, as far as it can be seen while the run lasts.
#[cfg(target_os = "linux")]
fn peak(place: &Place, line: &str) -> u64 {
    let mut child = place.command(line).stdout(std::process::Stdio::null()).spawn().unwrap();
    let path = format!("/proc/{}/status", child.id());
    let mut most = 0;
    loop {
        let text = fs::read_to_string(&path).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok()).unwrap_or(0);
        most = most.max(peak * 1024);
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success());
            return most;
        }
    }
}

/// A few cells need neither the machine's bandwidth nor the memory that measuring the bandwidth takes.
#[cfg(target_os = "linux")]
#[test]
fn a_small_run_takes_little_memory() {
    let place = Place::new();
    for line in
        ["run heat --backend cpu --size 8x8 --steps 1000", "solve --matrix laplacian2d:9x9 --backend cpu"]
    {
        // One of several, because a run may end between two looks at it.
        let peak = (0..10).map(|_| peak(&place, line)).max().unwrap_or(0);
        assert!((1 << 20..40_000_000).contains(&peak), "abide {line}: {peak} bytes");
    }
}

#[test]
fn a_cache_of_others_is_not_used_and_that_is_told() {
    let place = Place::new();
    let run = || {
        let mut command = place.command("run heat --backend cpu --size 300x300 --steps 1");
        let output = command.env("ABIDE_CACHE", place.0.path()).output().unwrap();
        assert!(output.status.success(), "{}", words(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let folder = place.path("abide");
    assert!(!run().contains("nothing is kept"));
    let rates = folder.join("rates");
    let kept: Vec<_> = fs::read_dir(&rates).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(kept.len(), 1);
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    fs::remove_file(&kept[0]).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    let text = run();
    assert!(text.contains("nothing is kept in") && text.contains("others can write to it"), "{text}");
    assert!(!exists(&kept[0]));
}
