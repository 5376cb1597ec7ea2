//! `abide view`: the window is a program of its own, so that the command needs no library of a window.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use abide::{Error, Result};
use clap::{Args, CommandFactory};

use super::{Ended, Ending, print};

const EXAMPLES: &str = "\
Examples:
  abide view
  abide view --scene coral
  abide view gray-scott --size 1024x1024 --param feed=0.037 --param kill=0.06
  abide view run.npz
  abide view --solve A.mtx --preconditioner jacobi

The window is a program of its own, abide-view, beside this command. Where it is there, this help is its own and lists all \
options. To build it: in the sources `cargo build --release -p abide-viewer`, or `cargo install --path viewer`.

With --json, why it could not be shown is told as JSON.";

/// The arguments of `view`: the window's program reads them.
#[derive(Args)]
#[command(disable_help_flag = true, after_help = EXAMPLES)]
pub struct View {
    /// A stencil or model, a checkpoint or a picture, and most options of run; `abide view --help` lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

impl View {
    /// Starts the window and waits until it is closed.
    pub fn execute(&self) -> Ended {
        let program = program()?;
        if !program.is_file() {
            return if self.wants_help() { help() } else { Err(missing(&program).into()) };
        }
        let fault = |e| Error::file(&program, e, "build it again");
        let mut window = Command::new(&program);
        if !self.words().any(|word| word == "--json") {
            let status = window.args(&self.arguments).status().map_err(fault)?;
            return ended(status, "");
        }
        // The window's program writes for people; the command repeats its words as JSON.
        let (words, rest) = self.arguments.split_at(self.words().count());
        window.args(words.iter().filter(|word| *word != "--json")).args(rest);
        let output = window
            .stderr(Stdio::piped())
            .spawn()
            .and_then(|child| child.wait_with_output())
            .map_err(fault)?;
        ended(output.status, &String::from_utf8_lossy(&output.stderr))
    }

    /// Returns the arguments that may be options.
    fn words(&self) -> impl Iterator<Item = &OsStr> {
        self.arguments.iter().map(OsString::as_os_str).take_while(|word| *word != "--")
    }

    fn wants_help(&self) -> bool {
        self.words().any(|word| word == "--help" || word == "-h")
    }
}

/// Returns the path where the window's program is, or should be.
fn program() -> Result<PathBuf> {
    let own = std::env::current_exe().map_err(|e| Error::file("abide", e, "start it by its path"))?;
    let name = format!("abide-view{}", std::env::consts::EXE_SUFFIX);
    // A link to the command may stand anywhere; the window's program stands beside the command itself.
    Ok(own.canonicalize().unwrap_or(own).with_file_name(name))
}

/// Prints the help for `view` that the command itself knows.
fn help() -> Ended {
    let mut command = super::Command::command();
    command.build();
    let help = command.find_subcommand_mut("view").map(|view| view.render_help().to_string());
    Ok(print(&help.unwrap_or_default())?)
}

fn ended(status: ExitStatus, words: &str) -> Ended {
    // In either program, status 2 comes from the arguments' parser.
    if status.success() { Ok(()) } else { Err(Ending::of_child(status.code() == Some(2), words)) }
}

fn missing(program: &Path) -> Error {
    let change = "in the sources run `cargo build --release -p abide-viewer`, or to install it beside this command \
                  `cargo install --path viewer`";
    Error::file(program, "the window is a program of its own, and it is not there", change)
}
