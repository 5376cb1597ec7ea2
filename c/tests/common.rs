//! Compilers, and the library that programs link.

use std::env::consts::DLL_SUFFIX;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A compiler by the name that `ABIDE_REQUIRE` has for it, the variable that names it, and the names it may have.
pub struct Compiler {
    name: &'static str,
    variable: &'static str,
    programs: &'static [&'static str],
    arguments: &'static [&'static str],
}

pub const C: Compiler = Compiler {
    name: "cc",
    variable: "CC",
    programs: &["cc", "gcc", "clang"],
    arguments: &["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1"],
};

pub const CPP: Compiler = Compiler {
    name: "c++",
    variable: "CXX",
    programs: &["c++", "g++", "clang++"],
    arguments: &["-x", "c++", "-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1"],
};

pub const FORTRAN: Compiler = Compiler {
    name: "gfortran",
    variable: "FC",
    programs: &["gfortran"],
    arguments: &[
        "-std=f2018",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-Wno-compare-reals",
        "-O1",
        "-ffpe-trap=invalid,zero,overflow",
    ],
};

/// How a program links the library.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Linked {
    Shared,
    Static,
}

/// Libraries of the system that the static library needs.
const NEEDS: [&str; 4] = ["-lm", "-lpthread", "-ldl", "-lgcc_s"];

/// A folder in which a program is built and runs, with the libraries in it.
pub struct Place {
    pub folder: TempDir,
}

impl Place {
    pub fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        let built = std::env::current_exe().unwrap();
        for (file, name) in [
            (format!("libabide_c{DLL_SUFFIX}"), format!("libabide_c{DLL_SUFFIX}")),
            (format!("libabide_c{DLL_SUFFIX}"), format!("libabide_c{DLL_SUFFIX}.0")),
        ] {
            std::os::unix::fs::symlink(built.with_file_name(file), folder.path().join(name)).unwrap();
        }
        Place { folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Compiles sources of the crate to objects; `None` where there is no such compiler, which is reported.
    pub fn compile(&self, compiler: &Compiler, sources: &[&str]) -> Option<()> {
        let found = compiler.find()?;
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut command = Command::new(&found);
        command.args(compiler.arguments).arg("-c").args(sources.iter().map(|source| root.join(source)));
        self.done(command, sources);
        Some(())
    }

    /// Compiles and links sources of the crate; `None` where there is no such compiler, which is reported.
    pub fn build(
        &self,
        compiler: &Compiler,
        sources: &[&str],
        linked: Linked,
        more: &[&str],
    ) -> Option<PathBuf> {
        let found = compiler.find()?;
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let program = self.path("program");
        let mut command = Command::new(&found);
        command.args(compiler.arguments).arg("-I").arg(root.join("include"));
        command.args(sources.iter().map(|source| root.join(source))).args(["-x", "none"]).args(more);
        match linked {
            Linked::Shared => {
                command.arg("-L").arg(self.folder.path()).arg("-labide_c");
                command.arg(format!("-Wl,-rpath,{}", self.folder.path().display())).arg("-lm");
            }
            Linked::Static => {
                let library = std::env::current_exe().unwrap().with_file_name("libabide_c.a");
                command.arg(library).args(NEEDS);
            }
        }
        command.arg("-o").arg(&program);
        self.done(command, sources);
        Some(program)
    }

    fn done(&self, mut command: Command, sources: &[&str]) {
        let output = command.current_dir(self.folder.path()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{:?} {sources:?}:\n{said}", command.get_program());
    }

    /// Runs a program with arguments, and returns what it prints.
    pub fn run(&self, program: &Path, arguments: &[&str]) -> String {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.folder.path());
        let output = command.env("ABIDE_CACHE", self.path("cache")).output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{:?}\n{out}\n{err}", output.status);
        out.into_owned()
    }
}

impl Compiler {
    /// Returns the compiler; where there is none, says so, or fails where `ABIDE_REQUIRE` names it.
    fn find(&self) -> Option<String> {
        let named = std::env::var(self.variable).ok().filter(|name| !name.is_empty());
        let answers = |name: &String| {
            let mut command = Command::new(name);
            command.arg("--version").output().is_ok_and(|output| output.status.success())
        };
        let found =
            named.into_iter().chain(self.programs.iter().map(|name| (*name).to_owned())).find(answers);
        if found.is_none() {
            skipped(self.name, "there is no such compiler");
        }
        found
    }
}

/// Reports something as skipped by name, or fails where `ABIDE_REQUIRE` names it.
pub fn skipped(name: &str, reason: &str) {
    let required = std::env::var("ABIDE_REQUIRE").unwrap_or_default();
    assert!(!required.split(',').any(|one| one.trim() == name), "{name} is required and absent: {reason}");
    // Past the test runner's capture, so that it is seen without asking.
    let _ = writeln!(std::io::stdout().lock(), "skipped: {name}: {reason}");
}
