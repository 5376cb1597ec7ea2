//! Programs in C, C++ and Fortran are built and run, and give the bits of the library.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use abide::gas::{Basis, Columns, Mixture, Points, Property, States, Table};
use abide::io::Loaded;
use abide::{Array, Choice, DType, Shape, Simulation};

use crate::common::{C, CPP, FORTRAN, Linked, Place, skipped};

/// The Fortran module, in the order in which its parts are compiled.
const MODULE: [&str; 3] = ["fortran/abide_binding.f90", "fortran/abide_support.f90", "fortran/abide.f90"];

/// Builds a Fortran program with the module, which is compiled once.
pub fn with_module(place: &Place, source: &str) -> Option<PathBuf> {
    static COMPILED: OnceLock<Option<Place>> = OnceLock::new();
    let compiled = COMPILED.get_or_init(|| {
        let place = Place::new();
        place.compile(&FORTRAN, &MODULE).map(|()| place)
    });
    let folder = compiled.as_ref()?.folder.path().to_str().unwrap();
    let objects = MODULE.map(|part| {
        let name = Path::new(part).file_stem().unwrap().to_str().unwrap();
        format!("{folder}/{name}.o")
    });
    let more: Vec<&str> = ["-I", folder].into_iter().chain(objects.iter().map(String::as_str)).collect();
    place.build(&FORTRAN, &[source], Linked::Shared, &more)
}

#[test]
fn handles_of_cpp_free_themselves_and_failures_are_thrown() {
    let place = Place::new();
    let Some(program) = place.build(&CPP, &["examples/spots.cpp"], Linked::Shared, &[]) else { return };
    let said = place.run(&program, &[]);
    assert!(said.contains("500 steps on cpu") && said.contains("did you mean"), "{said}");
}

#[test]
fn heat_decays_as_it_must_in_c_and_cpp() {
    for (compiler, linked) in [(C, Linked::Static), (CPP, Linked::Shared)] {
        let place = Place::new();
        let Some(program) = place.build(&compiler, &["examples/heat.c"], linked, &[]) else { continue };
        let said = place.run(&program, &[]);
        assert!(said.contains("500 steps on cpu"), "{said}");
    }
}

/// What `cargo xtask c` lays out, pkg-config finds.
#[test]
fn an_installed_library_is_found_by_pkg_config() {
    let place = Place::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("abide.pc.in")).unwrap();
    let text =
        text.replace("@prefix@", root.to_str().unwrap()).replace("@version@", env!("CARGO_PKG_VERSION"));
    std::fs::write(place.path("abide.pc"), text).unwrap();
    let ask = |arguments: &[&str]| {
        let mut command = Command::new("pkg-config");
        let output =
            command.args(arguments).arg("abide").env("PKG_CONFIG_PATH", place.folder.path()).output();
        output.ok().map(|output| String::from_utf8(output.stdout).unwrap())
    };
    let Some(flags) = ask(&["--cflags", "--libs"]) else {
        return skipped("pkg-config", "it is not installed");
    };
    assert!(flags.contains("c/include") && flags.contains("-labide_c"), "{flags}");
    assert_eq!(ask(&["--modversion"]).unwrap().trim(), env!("CARGO_PKG_VERSION"));
    assert!(ask(&["--static", "--libs"]).unwrap().contains("-lpthread"));
}

#[test]
fn systems_are_solved_in_c() {
    let place = Place::new();
    let Some(program) = place.build(&C, &["examples/poisson.c"], Linked::Shared, &[]) else { return };
    let said = place.run(&program, &[]);
    assert!(said.contains("iterations, |b - A x| / |b|"), "{said}");
}

#[test]
fn whatever_crosses_the_border_is_checked() {
    let place = Place::new();
    let more = ["-I", concat!(env!("CARGO_MANIFEST_DIR"), "/examples"), "-pthread"];
    let Some(program) = place.build(&C, &["tests/border.c"], Linked::Shared, &more) else { return };
    let folder = place.folder.path().to_str().unwrap();
    place.run(&program, &[folder]);
}

#[test]
fn arrays_on_a_device_are_packed_there() {
    let place = Place::new();
    let more = ["-I", concat!(env!("CARGO_MANIFEST_DIR"), "/examples"), "-ldl"];
    let Some(program) = place.build(&C, &["tests/device.c"], Linked::Shared, &more) else { return };
    let said = place.run(&program, &[]);
    match said.trim() {
        "0 faults" => {}
        reason => skipped("cuda", &format!("arrays on a device: {reason}")),
    }
}

#[test]
fn gas_properties_in_c_are_those_of_the_library() {
    let place = Place::new();
    let Some(program) = place.build(&C, &["examples/gas.c"], Linked::Shared, &[]) else { return };
    let said = place.run(&program, &[]);
    let found: Vec<f64> = said.split_whitespace().map(|number| number.parse().unwrap()).collect();
    let mixture = Mixture::of(&Table::builtin().unwrap(), &["CH4", "O2"]).unwrap().fewest_operations();
    let (mut t, mut p, mut y) = (Vec::new(), Vec::new(), [Vec::new(), Vec::new()]);
    for k in 0..4 {
        for j in 0..5 {
            for i in 0..6 {
                t.push(f64::from(200 + 100 * i));
                p.push(5e6 + 1e6 * f64::from(j));
                let methane = 0.1 + 0.2 * f64::from(k);
                y.iter_mut().zip([methane, 1.0 - methane]).for_each(|(y, part)| y.push(part));
            }
        }
    }
    let count = t.len();
    let by_mass = States { basis: Basis::Mass, ..States::LOOPS };
    let mut points =
        Points::new(&mixture, by_mass, &Property::named(&["rho", "c"]).unwrap(), count, Choice::CPU).unwrap();
    let states = Columns { given: [t, p].map(Array::F64), fractions: y.map(Array::F64).into() };
    let values = points.evaluate(&states).unwrap();
    assert_eq!(found.len(), 2 * count);
    for (property, values) in values.iter().enumerate() {
        let own = Array::F64(found.iter().copied().skip(property).step_by(2).collect());
        assert!(own.same_bits(values), "property {property}");
    }
}

/// The host code cuts the domain into blocks with fringes and exchanges them itself; a run of the whole domain has the bits of
/// its result.
#[test]
fn blocks_of_a_fortran_code_have_the_bits_of_a_run() {
    const NK: usize = 32;
    const NJ: usize = 20;
    const NI: usize = 24;
    let place = Place::new();
    let Some(program) = with_module(&place, "examples/blocks.f90") else { return };
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/spots.toml");
    place.run(&program, &[model, "result"]);
    let start = |number: usize| {
        let [k, j, i] = [number / (NJ * NI) + 1, number / NI % NJ + 1, number % NI + 1];
        ((7 * i + 5 * j + 3 * k) % 11) as f64 / 32.0
    };
    let shape = Shape::new(&[NK, NJ, NI]).unwrap();
    let field = |value: &dyn Fn(usize) -> f64| Loaded {
        values: Array::from_fn(DType::F64, NK * NJ * NI, value),
        shape,
        members: None,
    };
    let text = std::fs::read_to_string(model).unwrap();
    let program = abide::text::read(&text, model).unwrap();
    let builder = Simulation::builder(program).dtype(DType::F64).backend(Choice::CPU);
    let builder = builder.input("v", field(&start)).input("u", field(&|number| 1.0 - start(number) / 2.0));
    let mut whole = builder.build().unwrap();
    whole.run(60).unwrap();
    let bytes = std::fs::read(place.path("result")).unwrap();
    let values: Vec<f64> =
        bytes.chunks_exact(8).map(|chunk| f64::from_ne_bytes(chunk.try_into().unwrap())).collect();
    assert_eq!(values.len(), 2 * NK * NJ * NI);
    for (name, values) in ["u", "v"].iter().zip(values.chunks_exact(NK * NJ * NI)) {
        assert!(Array::F64(values.to_vec()).same_bits(&whole.field(name).unwrap()), "field {name}");
    }
}

#[test]
fn the_fortran_module_does_what_it_says() {
    let place = Place::new();
    let Some(program) = with_module(&place, "tests/module.f90") else { return };
    let folder = place.folder.path().to_str().unwrap();
    place.run(&program, &[folder]);
}
