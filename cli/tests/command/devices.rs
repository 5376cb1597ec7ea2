//! `--devices`: several ranks write what one does, and go on from what another number of them wrote.

use std::fs;
use std::time::{Duration, Instant};

use super::{Place, json};

#[test]
fn files_are_the_same_bytes_from_any_number_of_devices() {
    let place = Place::new();
    let line = "run gray-scott --size 47x23 --dtype f64 --backend cpu --every 20";
    let bytes = |name: &str| fs::read(place.path(name)).unwrap();
    for devices in 1..=4 {
        let report = place.works(&format!(
            "{line} --steps 40 --devices {devices} --output v=v{devices}.npy --checkpoint c{devices}.npz"
        ));
        assert_eq!(report.matches("% efficiency").count(), if devices > 1 { devices } else { 0 }, "{report}");
        assert!(bytes(&format!("v{devices}.npy")) == bytes("v1.npy"), "{devices} devices");
        assert!(bytes(&format!("c{devices}.npz")) == bytes("c1.npz"), "{devices} devices");
    }
    place.works("run gray-scott --backend cpu --resume c1.npz --steps 9 --output one.npy");
    let reported = json(&place.works(
        "run gray-scott --backend cpu --resume c4.npz --steps 9 --devices 3 --output three.npy --json",
    ));
    assert!(bytes("one.npy") == bytes("three.npy"));
    assert_eq!(reported["ranks"].as_array().unwrap().len(), 3);
    assert_eq!(reported["plan"]["ranks"]["own"].as_array().unwrap().len(), 3);
}

/// CloverLeaf's time step is a reduction, which steers all that follows and is in the record.
#[test]
fn reductions_have_the_same_bytes_from_any_number_of_devices() {
    let place = Place::new();
    for (model, size, numbers) in
        [("cloverleaf", "133x9", &[1, 2, 3, 4][..]), ("cloverleaf-3d", "131x5x3", &[1, 4])]
    {
        let line = format!("run {model} --size {size} --dtype f64 --backend cpu --steps 30 --every 15");
        let bytes = |name: &str| fs::read(place.path(name)).unwrap();
        for &devices in numbers {
            let report = place.works(&format!(
                "{line} --devices {devices} --output energy0=e{devices}.npy --checkpoint c{devices}.npz \
                 --record r{devices}.csv"
            ));
            let reported = report.matches("% efficiency").count();
            assert_eq!(reported, if devices > 1 { devices } else { 0 }, "{report}");
            for name in ["e#.npy", "c#.npz", "r#.csv"] {
                let [own, one] = [devices, 1].map(|n| bytes(&name.replace('#', &n.to_string())));
                assert!(own == one, "{model}, {devices} devices: {name}");
            }
        }
        let go_on = format!("run {model} --backend cpu --steps 7");
        place.works(&format!("{go_on} --resume c1.npz --output density0=one.npy"));
        place.works(&format!("{go_on} --resume c4.npz --devices 3 --output density0=three.npy"));
        assert!(bytes("one.npy") == bytes("three.npy"), "{model}");
    }
}

#[test]
fn the_number_comes_from_the_environment_unless_it_is_given() {
    let place = Place::new();
    let devices = |line: &str| {
        let output = place.command(line).env("ABIDE_DEVICES", "2").output().unwrap();
        String::from_utf8(output.stdout).unwrap().matches("% efficiency").count()
    };
    assert_eq!(devices("run heat --size 20x20 --steps 5 --backend cpu"), 2);
    assert_eq!(devices("run heat --size 20x20 --steps 5 --backend cpu --devices 3"), 3);
    assert_eq!(devices("run heat --size 20x20 --steps 5 --backend cpu --devices 1"), 0);
}

/// Thousands of groups of a few threads are refused at once, by whatever asks for them.
#[test]
fn a_cpu_is_cut_into_few_more_devices_than_it_has_threads() {
    let place = Place::new();
    let begun = Instant::now();
    let words = ["devices of backend cpu: ", "groups of threads", "ask for fewer"];
    for asked in ["2000", "20000", "18446744073709551615"] {
        for line in ["run heat --size 30000x2 --steps 3", "solve --operator laplacian2d --size 64x64"] {
            let asked_for = format!("{asked} asked");
            let words = [&words[..], &[&asked_for]].concat();
            place.fails(&format!("{line} --backend cpu --devices {asked}"), &words);
        }
    }
    let output =
        place.command("run heat --steps 3 --backend cpu").env("ABIDE_DEVICES", "20000").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && words.iter().all(|words| said.contains(words)), "{said}");
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    // Some more devices than threads still work.
    place.works("run heat --size 64x9 --steps 3 --backend cpu --devices 9");
}

#[test]
fn plans_tell_the_cut_and_why_there_are_fewer_devices() {
    let place = Place::new();
    let plan = place.works("plan 3d7pt --size 61x20x20 --backend cpu --devices 4");
    for words in ["4, each a slab of z: planes 0..16", "exchange      every ", "a device sends "] {
        assert!(plan.contains(words), "{plan}");
    }
    let plan = place.works("plan 2ds25pt --size 13x40 --backend cpu --devices 4");
    assert!(plan.contains("4 devices were asked for: 13 planes along y are enough for 2 devices"), "{plan}");
    let plan = place.works("plan 2ds25pt --size 11x40 --backend cpu --devices 4");
    assert!(plan.contains("are enough for 1 device,"), "{plan}");
    let plan = place.works("plan cloverleaf --size 120x20 --backend cpu --devices 2");
    assert!(plan.contains("reductions    1 reduction a step, each gathered from all devices"), "{plan}");
    let plan = place.works("plan cloverleaf --size 24x24 --backend cpu --devices 4");
    assert!(plan.contains("in whole leaves of 8 planes of its reductions' tree"), "{plan}");
}

/// A slower link between devices makes a step longer and exchanges rarer. Of many devices, the first and last are
/// listed.
#[test]
fn devices_are_planned_for_by_what_connects_them() {
    let place = Place::new();
    let reported = |more: &str| {
        let line =
            format!("plan 3d7pt --size 2048x256x256 --dtype f64 --device h200 --devices 16 --json {more}");
        let plan = json(&place.works(&line));
        (plan["estimated_seconds"].as_f64().unwrap(), plan["ranks"]["depth"].as_u64().unwrap())
    };
    let (near, far) = (reported(""), reported("--link 400,10"));
    assert!(near.0 < far.0 && near.1 < far.1, "{near:?} {far:?}");
    // A link that is given is a network. Copies between these devices take as long as over one of 30 µs and their bandwidth; stores
    // take less.
    let (copies, network) = (reported("--exchange copies"), reported("--link 30,390"));
    assert!(
        (copies.0 - network.0).abs() < 1e-12 * network.0 && copies.1 == network.1,
        "{copies:?} {network:?}"
    );
    assert!(near.0 < copies.0 && near.1 <= copies.1, "{near:?} {copies:?}");
    let plan = place.works("plan 3d7pt --size 2048x256x256 --device h200 --devices 16");
    assert!(
        plan.contains("16, each a slab of z: planes 0..128, 128..256, 256..384, 384..512, … 1920..2048"),
        "{plan}"
    );
    for wrong in ["40", "40,0", "x,1", "1,2,3", "1,inf"] {
        place.fails(&format!("plan 3d7pt --device h200 --devices 2 --link {wrong}"), &["write it as 40,45"]);
    }
}

/// A slab that a kernel keeps on the chip has no room there for the halos of some depths: these run otherwise.
#[test]
fn slabs_near_the_size_of_a_chip_have_plans() {
    let place = Place::new();
    let plan = place.works("plan 2d5pt --size 8352x8352 --dtype f64 --device h200 --devices 64");
    assert!(plan.contains("64, each a slab of y: planes 0..131, "), "{plan}");
}

/// A device that need not be here is planned for as one that is: the exchange over its link is in the estimate.
#[test]
fn several_devices_that_are_not_here_are_planned_for() {
    let place = Place::new();
    let reported = |devices: usize, rows: usize| {
        let line =
            format!("plan 2d5pt --size {rows}x8352 --dtype f64 --device h200 --devices {devices} --json");
        json(&place.works(&line))
    };
    let (one, two, four) = (reported(1, 8352), reported(2, 2 * 8352), reported(4, 8352));
    let seconds = |plan: &serde_json::Value| plan["estimated_seconds"].as_f64().unwrap();
    // A device beside another takes a little longer for as much; four take less than a third of the time.
    let weak = seconds(&one) / seconds(&two);
    assert!((0.85..1.0).contains(&weak), "{weak}");
    let strong = seconds(&one) / seconds(&four);
    assert!((2.5..4.0).contains(&strong), "{strong}");
    let depth = two["ranks"]["depth"].as_u64().unwrap();
    assert!(depth >= two["depth"].as_u64().unwrap() && two["ranks"]["own"].as_array().unwrap().len() == 2);
}

#[test]
fn what_several_devices_cannot_do_is_refused() {
    let place = Place::new();
    place.fails("run heat --steps 1 --backend cpu --devices 0", &["devices: 0 asked"]);
    let line = "run heat --steps 1 --devices 2 --backend wgpu";
    place.fails(line, &["backend wgpu cannot run this: 2 devices", "--backend cpu"]);
    // Whether there is no driver or no such device.
    for (devices, words) in [("--devices 99", "cuda"), ("--device-list 98,99", "cuda")] {
        place.fails(&format!("run heat --steps 1 {devices} --backend cuda"), &[words]);
    }
    for devices in ["--devices all", "--device-list 0,1"] {
        let line = format!("run heat --steps 1 {devices} --backend cpu");
        place.fails(&line, &["backend cpu cannot run this", "groups of threads", "--devices 2"]);
    }
    place.fails("run heat --steps 1 --devices some --backend cpu", &["neither a whole number nor `all`"]);
    place.fails("run heat --steps 1 --devices 2 --device-list 0 --backend cpu", &["--device-list"]);
    place.fails(
        "run heat --size 24x24 --batch 3 --steps 1 --backend cpu --devices 2",
        &["a batch of 3 members"],
    );
    place.fails("run heat --steps 1 --backend cpu --devices 2 --pin", &["leave --pin out"]);
    place.fails("plan heat --device h200 --devices all", &["--device h200", "all devices"]);
    place.fails("plan heat --backend cpu --measured --devices 2", &["--measured", "2 devices"]);
}

/// A solve's files and report are those of one device, and the report has a line for each.
#[test]
fn systems_have_the_same_solutions_from_any_number_of_devices() {
    let place = Place::new();
    let bytes = |name: &str| fs::read(place.path(name)).unwrap();
    let systems = [
        "--matrix laplacian2d:43x41 --rhs random:3",
        "--operator laplacian3d --size 13x12x11 --preconditioner chebyshev --dtype f32 --tolerance 1e-4",
        "--matrix random:1503:9001 --method bicgstab --preconditioner jacobi",
        "--operator laplacian2d --size 37x39 --dtype mixed --preconditioner block-jacobi:3",
    ];
    for system in systems {
        for devices in 1..=4 {
            let report = place.works(&format!(
                "solve {system} --backend cpu --devices {devices} --output x{devices}.npy --history h{devices}.csv"
            ));
            // Whole blocks of three rows and whole leaves are 768 rows.
            let ranks = if system.contains("block-jacobi:3") { devices.min(2) } else { devices };
            let reported = report.matches("% efficiency").count();
            assert_eq!(reported, if ranks > 1 { ranks } else { 0 }, "{report}");
            for name in ["x#.npy", "h#.csv"] {
                let [own, one] = [devices, 1].map(|n| bytes(&name.replace('#', &n.to_string())));
                assert!(own == one, "{system}, {devices} devices: {name}");
            }
        }
    }
    let line = "solve --matrix laplacian2d:43x41 --backend cpu --json";
    let reported = json(&place.works(&format!("{line} --devices 3")));
    assert_eq!(reported["report"]["ranks"].as_array().unwrap().len(), 3);
    assert_eq!(reported["plan"]["ranks"][2]["end"].as_u64(), Some(43 * 41));
    let output = place.command(line).env("ABIDE_DEVICES", "2").output().unwrap();
    let reported = json(std::str::from_utf8(&output.stdout).unwrap());
    assert_eq!(reported["report"]["ranks"].as_array().unwrap().len(), 2);
    assert!(json(&place.works(line))["report"]["ranks"].is_null());
}

#[test]
fn solves_on_several_devices_are_refused_where_there_are_none() {
    let place = Place::new();
    for (line, says) in [
        ("--backend wgpu --devices 2", "2 devices were asked for"),
        ("--backend cpu --devices 0", "at least 1"),
        ("--backend cpu --devices all", "groups of threads"),
        ("--backend cpu --device-list 0,1", "groups of threads"),
    ] {
        place.fails(&format!("solve --matrix laplacian2d:9x9 {line}"), &[says]);
    }
}

/// A step that sets points alone leaves the other devices nothing to do.
#[test]
fn a_step_of_points_alone_runs_on_several_devices() {
    let place = Place::new();
    let model = "axes = 2\nboundary = \"mirror\"\n[fields]\nu = \"random:1\"\n[scalars]\nt = 0\n\
                 [[steps]]\n[[steps.stages]]\npoints = [[3, 4]]\nu = \"u + 0.5\"\n\
                 [[steps]]\n[[steps.stages]]\nt = \"t + 1\"\n[[steps.stages]]\nu = \"u + 0.1*laplacian(u)\"\n\
                 [[steps]]\n[[steps.stages]]\npoints = [[20, 0], [3, 4]]\nu = \"2*u\"\n";
    std::fs::write(place.path("p.toml"), model).unwrap();
    for devices in 1..=4 {
        let line = format!(
            "run p.toml --size 24x9 --steps 11 --backend cpu --devices {devices} --output u{devices}.npy"
        );
        place.works(&line);
        assert_eq!(place.read(&format!("u{devices}.npy")), place.read("u1.npy"), "{devices}");
    }
}

/// Mesa's Vulkan layer looks for the session of Wayland, if an instance may make surfaces of it, and libwayland prints
/// an error where there is none.
#[cfg(target_os = "linux")]
#[test]
fn nothing_is_printed_where_there_is_no_session() {
    let place = Place::new();
    let hidden = [
        "XDG_RUNTIME_DIR",
        "WAYLAND_DISPLAY",
        "WAYLAND_SOCKET",
        "DISPLAY",
        "NODEVICE_SELECT",
        "DRI_PRIME",
        "MESA_VK_DEVICE_SELECT",
    ];
    for (name, value) in [("ABIDE_NOTHING", ""), ("DISPLAY", ":99"), ("WAYLAND_DISPLAY", "wayland-7")] {
        let mut command = place.command("devices");
        for name in hidden {
            command.env_remove(name);
        }
        let output = command.env(name, value).output().unwrap();
        assert!(output.status.success());
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{name}={value}");
    }
}

/// A depth of several devices is the steps between two exchanges, whatever the depth of their kernels is, and changes no bit.
#[test]
fn a_depth_is_that_of_an_exchange() {
    let place = Place::new();
    place.works("run 2d5pt --size 240x33 --steps 97 --backend cpu --output one.npy");
    for depth in [1, 7, 40] {
        let line = format!("run 2d5pt --size 240x33 --steps 97 --backend cpu --devices 2 --depth {depth}");
        let report = json(&place.works(&format!("{line} --output two.npy --json")));
        assert_eq!(report["plan"]["ranks"]["depth"], depth, "{report}");
        assert!(report["plan"]["depth"].as_u64().unwrap() <= depth, "{report}");
        assert!(
            fs::read(place.path("one.npy")).unwrap() == fs::read(place.path("two.npy")).unwrap(),
            "{depth}"
        );
        fs::remove_file(place.path("two.npy")).unwrap();
    }
    let plan = place.works("plan 2d5pt --size 8352x8352 --device h100 --devices 2 --depth 40");
    assert!(plan.contains("every 40 steps"), "{plan}");
}
