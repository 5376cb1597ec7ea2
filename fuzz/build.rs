//! The corpus is part of the program: a new file there is a change of it.

fn main() {
    for folder in ["corpus", "regressions"] {
        println!("cargo::rerun-if-changed={folder}");
    }
}
