//! `abide completions` and `abide man`: what shells and `man` read, made of the description of the arguments.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use abide::io::Staged;
use abide::{Error, Result};
use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;

use super::{Ended, described, print};

const COMPLETIONS: &str = "\
Examples:
  abide completions bash > ~/.local/share/bash-completion/completions/abide
  abide completions zsh > ~/.zfunc/_abide     # with fpath+=~/.zfunc before compinit in ~/.zshrc
  abide completions fish > ~/.config/fish/completions/abide.fish
  abide completions powershell >> $PROFILE";

const MAN: &str = "\
Examples:
  abide man | man -l -
  abide man --output ~/.local/share/man/man1

A folder gets a page for the command and one for each of its commands: abide.1, abide-run.1 and so on.";

/// The arguments of `completions`.
#[derive(Args)]
#[command(after_help = COMPLETIONS)]
pub struct Completions {
    /// The shell that reads the script
    shell: Shell,
}

impl Completions {
    /// Prints the script.
    pub fn execute(&self) -> Ended {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut described(), "abide", &mut script);
        Ok(print(&String::from_utf8_lossy(&script))?)
    }
}

/// The arguments of `man`.
#[derive(Args)]
#[command(after_help = MAN)]
pub struct Pages {
    /// Write all pages into this folder, which is made if it is missing
    #[arg(long, alias = "out", value_name = "FOLDER")]
    output: Option<PathBuf>,
}

impl Pages {
    /// Prints the command's page, or writes all pages.
    pub fn execute(&self) -> Ended {
        // Each page names the others that there are, and `help` is none.
        let mut command = described().disable_help_subcommand(true);
        command.build();
        let Some(folder) = &self.output else {
            let (_, text) = page(command)?;
            return Ok(print(&String::from_utf8_lossy(&text))?);
        };
        std::fs::create_dir_all(folder).map_err(|error| Error::file(folder, error, "name another folder"))?;
        let mut written = 0;
        write(command, folder, &mut written)?;
        Ok(print(&format!("wrote       {} ({written} pages)\n", folder.display()))?)
    }
}

/// Writes the page of a command, and those of its commands, into a folder.
fn write(command: Command, folder: &Path, written: &mut usize) -> Result<()> {
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        write(inner.clone(), folder, written)?;
    }
    let (name, text) = page(command)?;
    Staged::new(&folder.join(name))?.fill(|out| out.write_all(&text))?.commit()?;
    *written += 1;
    Ok(())
}

/// Returns the file name and the text of a command's page.
fn page(command: Command) -> Result<(String, Vec<u8>)> {
    let page = Man::new(command);
    let mut text = Vec::new();
    page.render(&mut text).map_err(|error| Error::file(page.get_filename(), error, "report it"))?;
    Ok((page.get_filename(), text))
}
