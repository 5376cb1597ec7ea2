//! `cargo xtask web`: the page that runs Abide in a browser. What builds and opens it is compiled only for this task, with the
//! feature `page`.

#[cfg(feature = "page")]
mod browser;
#[cfg(feature = "page")]
mod compare;
#[cfg(feature = "page")]
mod needs;
#[cfg(feature = "page")]
mod page;
#[cfg(feature = "page")]
mod serve;

use anyhow::Result;
use clap::Args;

/// The options of `cargo xtask web`, for work besides building.
#[derive(Args)]
pub struct Web {
    /// Open the page in a headless browser without a GPU, hold 100 steps against the CPU, and keep a
    /// screenshot
    #[arg(long)]
    pub check: bool,

    /// Serve the page to browsers on this machine until Ctrl-C
    #[arg(long)]
    pub serve: bool,
}

impl Web {
    /// Builds the page and does what was asked for; returns whether all of that succeeded.
    #[cfg(feature = "page")]
    pub fn run(&self) -> Result<bool> {
        let folder = page::build()?;
        if self.check && !compare::check(&folder)? {
            return Ok(false);
        }
        if self.serve {
            let server = serve::Server::start(&folder)?;
            println!("the page is at {} until Ctrl-C", server.address());
            server.wait();
        }
        Ok(true)
    }

    /// Runs this task by a build that has the feature; returns whether all succeeded.
    #[cfg(not(feature = "page"))]
    pub fn run(&self) -> Result<bool> {
        use crate::cargo::{cargo, succeeds};
        let mut task = cargo(&["run", "--quiet", "--package", "xtask", "--features", "page", "--", "web"]);
        let options = [("--check", self.check), ("--serve", self.serve)];
        succeeds(task.args(options.into_iter().filter_map(|(name, is_on)| is_on.then_some(name))))
    }
}
