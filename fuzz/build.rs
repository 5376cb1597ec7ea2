//! Makes the corpus part of the program: a new file there changes the program.

fn main() {
    for folder in ["corpus", "regressions"] {
        println!("cargo::rerun-if-changed={folder}");
    }
}
