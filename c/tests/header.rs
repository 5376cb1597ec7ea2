//! The header says what the crate exports.

use std::path::Path;

/// `ABIDE_UPDATE=1` writes it anew.
#[test]
fn the_header_is_that_of_the_sources() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).unwrap();
    // The modules follow from the root.
    let builder = cbindgen::Builder::new().with_config(config).with_src(root.join("src").join("lib.rs"));
    let mut made = Vec::new();
    builder.generate().unwrap().write(&mut made);
    let made = String::from_utf8(made).unwrap().replace("// # Safety\n//\n", "// Requires:\n");
    let path = root.join("include").join("abide.h");
    if std::env::var_os("ABIDE_UPDATE").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap();
    assert!(there == made, "include/abide.h is stale: ABIDE_UPDATE=1 cargo test -p abide-c header");
}

/// What names the shared library names it by the number of the interface.
#[test]
fn the_library_is_named_by_its_interface() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let number = abide_c::ABIDE_INTERFACE;
    for (file, words) in [
        ("build.rs", format!("-soname,libabide_c.so.{number}\"")),
        ("../xtask/src/c.rs", format!("libabide_c{{ending}}.{number}\"")),
        ("fortran/abide_binding.f90", format!("ABIDE_INTERFACE = {number}\n")),
    ] {
        let text = std::fs::read_to_string(root.join(file)).unwrap();
        assert!(text.contains(&words), "{file} lacks {words}");
    }
}

/// The Fortran module binds all functions and has all constants of the header.
#[test]
fn the_fortran_module_has_all_of_the_header() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let header = std::fs::read_to_string(root.join("include").join("abide.h")).unwrap();
    let module =
        std::fs::read_to_string(root.join("fortran").join("abide_binding.f90")).unwrap().to_lowercase();
    let code = header.lines().filter(|line| !line.starts_with("//") && !line.starts_with(" *"));
    let code: String = code.flat_map(|line| [line, "\n"]).collect();
    let word = |text: &str| -> String {
        text.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect()
    };
    let mut missing = Vec::new();
    for (at, _) in code.match_indices("abide_") {
        let name = word(&code[at..]);
        let is_called = code[at + name.len()..].starts_with('(');
        if is_called && !module.contains(&format!("bind(c, name=\"{name}\")")) {
            missing.push(name);
        }
    }
    for line in code.lines().filter_map(|line| line.strip_prefix("#define ABIDE_")) {
        let mut words = line.split_whitespace();
        let (Some(name), Some(value)) = (words.next(), words.next()) else { continue };
        let name = format!("abide_{}", name.to_lowercase());
        if !module.contains(&format!("{name} = {value}")) {
            missing.push(format!("{name} = {value}"));
        }
    }
    assert!(missing.is_empty(), "fortran/abide_binding.f90 lacks {missing:?}");
}
