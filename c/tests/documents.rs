//! The programs on the book's pages are built and run.

use std::path::Path;

use crate::common::{C, Linked, Place};
use crate::programs::with_module;

/// Returns the first block of a language on a page.
fn block(page: &str, language: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("docs").join("c").join(page);
    let text = std::fs::read_to_string(path).unwrap();
    let (_, rest) = text.split_once(&format!("```{language}\n")).unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

/// Writes the program of a page into a place; `build` gets its path.
fn runs(page: &str, language: &str, build: impl Fn(&Place, &str) -> Option<std::path::PathBuf>) {
    let place = Place::new();
    let source = place.path(if language == "c" { "page.c" } else { "page.f90" });
    std::fs::write(&source, block(page, language)).unwrap();
    let Some(program) = build(&place, source.to_str().unwrap()) else { return };
    let said = place.run(&program, &[]);
    assert!(said.contains("at the heated cell"), "{said}");
}

#[test]
fn the_program_of_the_page_on_c_runs() {
    runs("README.md", "c", |place, source| place.build(&C, &[source], Linked::Shared, &[]));
}

#[test]
fn the_program_of_the_page_on_fortran_runs() {
    runs("fortran.md", "fortran", with_module);
}
