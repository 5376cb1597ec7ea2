//! Outputs that may be written, the fate of existing files, and the behaviour of a run that cannot write.

#[cfg(unix)]
use std::process::{Command, Stdio};
use std::sync::Arc;

use abide::io::checkpoint;
use abide::program::Problem;
use abide::{Array, DType, LinearStencil, Program, Shape, catalogue};

use super::{Place, words};
#[cfg(unix)]
use super::{exists, json};

/// Makes a place with a matrix, an array, and a file that must survive.
fn place() -> Place {
    let place = Place::new();
    let matrix = "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 2\n2 2 3\n";
    std::fs::write(place.path("a.mtx"), matrix).unwrap();
    place.write("u.npy", &[8, 8], &Array::F32(vec![0.5; 64]));
    place.write("b.npy", &[2], &Array::F64(vec![1.0; 2]));
    std::fs::write(place.path("y.npy"), "precious").unwrap();
    place
}

#[test]
fn no_output_replaces_another() {
    let place = place();
    std::fs::create_dir(place.path("d")).unwrap();
    for line in [
        "solve a.mtx --output y.npy --history ./y.npy",
        "solve a.mtx --history h --plot d/../h",
        "run 2d5pt --size 8x8 --steps 4 --output y.npy --output u=d/../y.npy",
        "run 2d5pt --size 8x8 --steps 4 --every 1 --frames g%d.npy --output g2.npy",
        "run 2d5pt --size 8x8 --steps 4 --every 2 --frames g%d.npy --checkpoint ./g2.npy",
        "run 2d5pt --size 8x8 --steps 4 --every 1 --frames d/g%03d.npy --checkpoint d/g004.npy",
        "bench stencils --quick --csv r --plot ./r",
    ] {
        place.fails(&format!("{line} --backend cpu"), &["give each its own"]);
    }
    // Only numbers that occur collide: the frames here end at number 2.
    place.works("run 2d5pt --size 8x8 --steps 4 --every 2 --frames g%d.npy --output g3.npy --backend cpu");
}

#[test]
fn no_output_replaces_an_input_but_the_same_thing() {
    let place = place();
    place.works("run gray-scott --size 8x8 --steps 1 --every 1 --checkpoint c.npz --backend cpu");
    std::fs::write(place.path("r.csv"), "").unwrap();
    std::fs::copy(place.path("u.npy"), place.path("f3.npy")).unwrap();
    for line in [
        "solve a.mtx --history a.mtx",
        "solve a.mtx --plot ./a.mtx",
        "solve a.mtx --output a.mtx",
        "solve a.mtx --rhs b.npy --output b.npy",
        "run heat --steps 1 --every 1 --input u.npy --checkpoint u.npy",
        "run heat --steps 9 --every 1 --input f3.npy --frames f%d.npy",
        "run gray-scott --steps 1 --input u=u.npy --output v=u.npy",
        "run heat --steps 1 --input kappa=u.npy --output u=u.npy",
        "bench solvers --quick --matrix a.mtx --csv a.mtx",
    ] {
        place.fails(&format!("{line} --backend cpu"), &["would replace the input"]);
    }
    place.fails("bench roofline r.csv --output r.csv", &["would replace the input"]);
    let before = place.read("u.npy");
    place.works("run heat --steps 3 --input u=gaussian --size 8x8 --output u.npy --backend cpu");
    place.works("run heat --steps 3 --input u.npy --output u.npy --backend cpu");
    place.works("run heat --steps 3 --input u=u.npy --output u=./u.npy --backend cpu");
    assert_ne!(place.read("u.npy"), before);
    place.works("run gray-scott --resume c.npz --steps 2 --every 1 --checkpoint c.npz --backend cpu");
    assert_eq!(checkpoint::read_head(&place.path("c.npz")).unwrap().steps, 3);
}

/// Writes a checkpoint of a program after `steps` steps.
fn write_checkpoint(place: &Place, program: Program, steps: u64) {
    let problem = Problem::new(Arc::new(program), Shape::new(&[4]).unwrap(), DType::F32).unwrap();
    let fields = |_| Ok(Array::F32(vec![1.0; 4]));
    checkpoint::write(&place.path("c.npz"), &problem, steps, fields).unwrap().commit().unwrap();
}

#[test]
fn a_checkpoint_of_too_many_steps_is_refused() {
    let place = place();
    write_checkpoint(&place, catalogue::find("1d3pt").unwrap().program(1).unwrap(), u64::MAX - 3);
    place.fails(
        "run 1d3pt --resume c.npz --steps 4 --output y.npy --backend cpu",
        &["steps since the start: 18446744073709551612 and 4 more"],
    );
    place.works("run 1d3pt --resume c.npz --steps 3 --backend cpu");
}

/// Writes the checkpoint's program another name.
fn rename(place: &Place, name: &str) {
    use std::io::{Read, Write};

    let mut old = zip::ZipArchive::new(std::fs::File::open(place.path("c.npz")).unwrap()).unwrap();
    let mut new = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for number in 0..old.len() {
        let mut entry = old.by_index(number).unwrap();
        let entry_name = entry.name().unwrap().into_owned();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        if entry_name == "abide.json" {
            bytes = String::from_utf8(bytes).unwrap().replace("NAME", name).into_bytes();
        }
        let options =
            zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        new.start_file(entry_name, options).unwrap();
        new.write_all(&bytes).unwrap();
    }
    std::fs::write(place.path("c.npz"), new.finish().unwrap().into_inner()).unwrap();
}

/// One check covers every file of a run: what it reads and what it writes, under whatever name.
#[test]
fn no_file_of_a_run_replaces_another() {
    let place = place();
    let model = "axes = 2\n[fields]\nu = 1.0\n[scalars]\nt = 0\n[[stages]]\nt = \"t + 1\"\n[[stages]]\nu = \"0.5*u\"\n";
    std::fs::write(place.path("m.toml"), model).unwrap();
    std::fs::hard_link(place.path("m.toml"), place.path("hard.csv")).unwrap();
    std::fs::hard_link(place.path("m.toml"), place.path("h2.npy")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("m.toml", place.path("soft.csv")).unwrap();
    place.works("run m.toml --size 8x8 --steps 1 --every 1 --checkpoint c.npz --backend cpu");
    let line = "run m.toml --size 8x8 --steps 4 --backend cpu";
    for rest in [
        "--record m.toml",
        "--record ./m.toml",
        "--record hard.csv",
        "--record soft.csv",
        "--write-config m.toml",
        "--write-config hard.csv",
        "--every 2 --checkpoint m.toml",
        "--every 1 --frames h%d.npy",
    ] {
        if cfg!(unix) {
            place.fails(&format!("{line} {rest}"), &["would replace the input"]);
        }
    }
    for rest in [
        "--write-config x.npy --output u=x.npy",
        "--write-config r.toml --record r.toml",
        "--write-config r.toml --record ./r.toml",
        "--every 1 --write-config f3 --frames f%d.npy --checkpoint f3",
        "--every 1 --write-config f3.npy --frames f%d.npy",
        "--every 1 --record f3.npy --frames f%d.npy",
    ] {
        place.fails(&format!("{line} {rest}"), &["give each its own"]);
    }
    place.fails(&format!("{line} --resume c.npz --record c.npz"), &["would replace the input"]);
    place.fails(&format!("{line} --resume c.npz --write-config c.npz"), &["would replace the input"]);
    place.fails(
        "run heat --input u.npy --steps 1 --backend cpu --record u.npy --probe u@1,1",
        &["would replace the input"],
    );
    // A name says what a file holds.
    place.fails(&format!("{line} --record r.png"), &["it would hold a record", "name it .csv"]);
    place.fails(
        &format!("{line} --every 1 --checkpoint c.csv"),
        &["it would hold a checkpoint", "name it .npz"],
    );
    place.fails(&format!("{line} --write-config c.npy"), &["it would hold a model file", "name it .toml"]);
    for name in ["u.jpg", "u.mp4", "u.jpeg", "u"] {
        place.fails(
            &format!("{line} --output {name}"),
            &["name it .npy, .npz, .png, .vti, .gif, .tif or .h5"],
        );
    }
    place.works(&format!("{line} --record table.txt --every 1 --checkpoint state --write-config again"));
}

/// Nothing is written among the data that Abide keeps for itself.
#[test]
fn no_output_goes_into_the_cache() {
    let place = place();
    for kind in ["kernels", "tuned"] {
        std::fs::create_dir_all(place.path("cache/abide").join(kind)).unwrap();
    }
    for rest in ["--output cache/abide/kernels/u.npy", "--every 1 --frames cache/abide/tuned/f%d.npy"] {
        let mut command = place.command(&format!("run heat --size 8x8 --steps 2 --backend cpu {rest}"));
        let reported = words(&command.env("ABIDE_CACHE", place.path("cache")).output().unwrap());
        assert!(reported.contains("Abide's own cache folder"), "{reported}");
    }
}

#[test]
fn names_from_a_checkpoint_reach_no_terminal_as_they_are() {
    let place = place();
    let stencil = LinearStencil::new("red", &[([-1], 0.5), ([1], 0.5)]).unwrap();
    assert!(Program::sequence("\u{1b}[31mred", &[&stencil]).is_err());
    write_checkpoint(&place, Program::sequence("NAME", &[&stencil]).unwrap(), 1);
    rename(&place, "\\u001b[31mred");
    let output = place.command("run heat --resume c.npz --steps 1 --backend cpu").output().unwrap();
    let words = words(&output);
    assert!(words.contains(r"\u{1b}[31mred") && !words.contains('\u{1b}'), "{words:?}");
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
    use std::os::unix::process::CommandExt;

    use super::*;

    fn make_pipe(place: &Place, name: &str) {
        assert!(Command::new("mkfifo").arg(place.path(name)).status().unwrap().success());
    }

    #[test]
    fn a_pipe_gets_the_result_and_stays() {
        let place = place();
        make_pipe(&place, "f.npy");
        let pipe = place.path("f.npy");
        let reader = std::thread::spawn(move || std::fs::read(pipe).unwrap());
        place.works("run heat --size 8x8 --steps 4 --output f.npy --output g.npy --backend cpu");
        assert_eq!(reader.join().unwrap(), std::fs::read(place.path("g.npy")).unwrap());
        assert!(place.path("f.npy").metadata().unwrap().file_type().is_fifo());
        // An output that is refused is refused without waiting for a reader.
        place.fails(
            "run heat --size 8x8 --steps 4 --output f.npy --output no/g.npy --backend cpu",
            &["is not there"],
        );
        place.fails(
            "run heat --size 8x8 --steps 4 --every 1 --checkpoint f.npy --backend cpu",
            &["again and again", "give a file's name"],
        );
    }

    #[test]
    fn a_device_stays_a_device() {
        let place = place();
        let made = Command::new("mknod")
            .arg(place.path("null"))
            .args(["c", "1", "3"])
            .stderr(Stdio::null())
            .status();
        if !made.is_ok_and(|status| status.success()) {
            return;
        }
        let lines = [
            "solve a.mtx --history null --plot null --backend cpu",
            "run heat --size 8x8 --steps 4 --every 1 --checkpoint null --backend cpu",
        ];
        for line in lines {
            // A file system may forbid devices, and then refuses to open one.
            let output = place.command(line).output().unwrap();
            assert!(
                output.status.success() || words(&output).contains("ermission denied"),
                "{}",
                words(&output)
            );
            assert!(place.path("null").metadata().unwrap().file_type().is_char_device());
        }
    }

    #[test]
    fn standard_output_gets_a_file_before_the_report() {
        if !exists("/proc/self/fd/1".as_ref()) {
            return;
        }
        let place = place();
        // Stands in for the system's own link.
        symlink("/proc/self/fd/1", place.path("stdout")).unwrap();
        let solve = "solve a.mtx --backend cpu --history stdout";
        let piped = place.works(solve);
        let file = std::fs::File::create(place.path("out")).unwrap();
        let mut command = place.command(solve);
        assert!(command.stdout(file).status().unwrap().success());
        let redirected = std::fs::read_to_string(place.path("out")).unwrap();
        for text in [piped, redirected] {
            assert!(text.starts_with("iteration,residual\n0,") && text.contains("\nsystem "), "{text}");
        }
        for (line, reason) in [
            ("solve a.mtx --backend cpu --history out", "standard output goes into it too"),
            ("solve a.mtx --backend cpu --history stdout --plot stdout", "two outputs have this name"),
            ("run heat --size 8x8 --steps 4 --every 2 --checkpoint stdout --backend cpu", "again and again"),
        ] {
            let file = std::fs::File::create(place.path("out")).unwrap();
            let output = place.command(line).stdout(file).output().unwrap();
            assert!(
                !output.status.success() && words(&output).contains(reason),
                "{line}: {}",
                words(&output)
            );
        }
        assert!(place.path("stdout").is_symlink());
    }

    #[test]
    fn links_are_followed_to_files_that_are_not_there_yet() {
        let place = place();
        symlink("there.npy", place.path("link.npy")).unwrap();
        place.works("run heat --size 8x8 --steps 1 --output link.npy --backend cpu");
        assert!(place.path("link.npy").is_symlink() && !place.path("there.npy").is_symlink());
        assert_eq!(place.read("there.npy").shape.extents(), [8, 8]);
        symlink("a.npy", place.path("b1.npy")).unwrap();
        symlink("b1.npy", place.path("a.npy")).unwrap();
        place.fails("run heat --size 8x8 --steps 1 --output a.npy --backend cpu", &["lead in a circle"]);
    }

    /// Returns the command as a user other than root; `None` where that cannot be arranged.
    fn as_a_user(place: &Place, line: &str) -> Option<Command> {
        let mut command = place.command(line);
        if place.path(".").metadata().unwrap().uid() == 0 {
            std::fs::set_permissions(place.path("."), std::fs::Permissions::from_mode(0o755)).unwrap();
            command.uid(65534).gid(65534);
            // The command itself may lie where no other user can reach it.
            let status = place.command("--version").uid(65534).gid(65534).stdout(Stdio::null()).status();
            return status.is_ok_and(|status| status.success()).then_some(command);
        }
        Some(command)
    }

    #[test]
    fn rights_are_kept_and_obeyed() {
        let place = place();
        let mode = |name: &str| place.path(name).metadata().unwrap().mode() & 0o777;
        let set = |name: &str, mode| {
            std::fs::set_permissions(place.path(name), std::fs::Permissions::from_mode(mode)).unwrap();
        };
        std::fs::create_dir(place.path("d")).unwrap();
        set("d", 0o777);
        std::fs::write(place.path("d/x.npy"), "secret").unwrap();
        set("d/x.npy", 0o600);
        place.works("run heat --size 8x8 --steps 1 --output d/x.npy --backend cpu");
        assert_eq!(mode("d/x.npy"), 0o600);
        let refused = |mode, folder, reason: &str| {
            set("d/x.npy", mode);
            set("d", folder);
            let before = std::fs::read(place.path("d/x.npy")).ok();
            let line = "run heat --size 8x8 --steps 1 --output d/x.npy --backend cpu";
            let Some(mut command) = as_a_user(&place, line) else { return };
            let output = command.output().unwrap();
            assert!(
                !output.status.success() && words(&output).contains(reason),
                "{mode:o}: {}",
                words(&output)
            );
            assert_eq!(std::fs::read(place.path("d/x.npy")).ok(), before);
            assert_eq!(std::fs::read_dir(place.path("d")).unwrap().count(), 1);
        };
        refused(0o444, 0o777, "cannot be written to");
        // Another user's file, in a folder where everyone may make files and nobody may replace others'.
        if place.path(".").metadata().unwrap().uid() == 0 {
            refused(0o666, 0o1777, "another user's");
        }
    }

    /// Runs under the shell's limit on a file's size, which stands for a full disk: a field fits, a
    /// checkpoint of two fields does not.
    fn with_little_room(place: &Place, line: &str) -> std::process::Output {
        let shell = format!("trap '' XFSZ; ulimit -f 2; exec {} {line}", env!("CARGO_BIN_EXE_abide"));
        Command::new("bash").args(["-c", &shell]).current_dir(place.path(".")).output().unwrap()
    }

    #[test]
    fn a_checkpoint_that_does_not_fit_ends_no_run() {
        let place = place();
        let line = "run gray-scott --size 16x16 --backend cpu --every 2 --checkpoint c.npz";
        place.works(&format!("{line} --steps 2"));
        let before = std::fs::read(place.path("c.npz")).unwrap();
        let output = with_little_room(&place, &format!("{line} --steps 8 --output u=v.npy --json"));
        let reported = words(&output);
        assert_eq!(output.status.code(), Some(1), "{reported}");
        assert!(
            reported.starts_with("warning: c.npz: writing failed") && reported.contains("\nerror: c.npz: "),
            "{reported}"
        );
        assert_eq!(reported.lines().count(), 2, "said once on the way and once at the end: {reported}");
        let report = json(std::str::from_utf8(&output.stdout).unwrap());
        assert_eq!(report["steps"], 8);
        assert!(report["error"].as_str().unwrap().contains("c.npz"));
        assert!(report["notes"].to_string().contains("4 checkpoints on the way"), "{report}");
        assert_eq!(std::fs::read(place.path("c.npz")).unwrap(), before);
        place.works("run gray-scott --size 16x16 --backend cpu --steps 8 --output u=w.npy");
        assert_eq!(place.read("v.npy"), place.read("w.npy"));
        assert_eq!(place.names(), ["a.mtx", "b.npy", "c.npz", "u.npy", "v.npy", "w.npy", "y.npy"]);
    }

    #[test]
    fn a_file_that_does_not_fit_holds_up_no_other() {
        let place = place();
        let line = "run gray-scott --size 16x16 --steps 4 --every 2 --backend cpu --frames u=f%d.npy";
        let output = with_little_room(&place, &format!("{line} --output all.vti --output v=v.npy"));
        assert_eq!(output.status.code(), Some(1));
        assert!(words(&output).starts_with("error: all.vti: writing failed"), "{}", words(&output));
        assert_eq!(
            place.names(),
            ["a.mtx", "b.npy", "f0.npy", "f1.npy", "f2.npy", "u.npy", "v.npy", "y.npy"]
        );
        let output = with_little_room(&place, "solve a.mtx --output x.npy --plot p.svg --backend cpu --json");
        assert_eq!(output.status.code(), Some(1));
        let reported = json(std::str::from_utf8(&output.stdout).unwrap());
        assert!(
            reported["error"].as_str().unwrap().contains("p.svg") && reported["converged"] == true,
            "{reported}"
        );
        assert!(exists(&place.path("x.npy")) && !exists(&place.path("p.svg")));
    }
}
