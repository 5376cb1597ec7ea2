//! `abide view`: the window, a program of its own, so that the command needs none of what a window needs.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use abide::{Error, Result};
use clap::Args;

use super::Outcome;

/// The arguments of `view`: the window's program reads them.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub struct View {
    /// A stencil or model, a checkpoint or a picture, and most options of run; `abide view --help` lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

impl View {
    /// Starts the window and waits until it is closed.
    pub fn execute(&self) -> Result<Outcome> {
        let own = std::env::current_exe().map_err(|e| Error::file("abide", e, "start it by its path"))?;
        let name = format!("abide-view{}", std::env::consts::EXE_SUFFIX);
        // A link to the command stands where its user put it; the window's program stands beside the command itself.
        let beside = own.canonicalize().unwrap_or(own).with_file_name(name);
        if !beside.is_file() {
            return Err(missing(&beside));
        }
        let status = Command::new(&beside).args(&self.arguments).status();
        let status = status.map_err(|e| Error::file(&beside, e, "build it again"))?;
        Ok(if status.success() { Outcome::Done } else { Outcome::Failed })
    }
}

fn missing(program: &Path) -> Error {
    let change = "in the sources run `cargo build --release -p abide-viewer`, or to install it beside this command \
                  `cargo install --path viewer`";
    Error::file(program, "the window is a program of its own, and it is not there", change)
}
