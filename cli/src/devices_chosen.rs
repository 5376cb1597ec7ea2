//! The options that choose the devices of a run.

use abide::Result;
use abide::backend::{self, Devices};
use abide_console::headings::DEVICES;
use clap::Args;

/// The devices that a run takes, or a plan is made for.
#[derive(Args)]
pub struct DeviceArguments {
    /// Take so many devices of the backend, or `all`: each has a slab of the domain, in a solve of the rows, and the bits are
    /// those of one. The devices of --backend cpu are groups of its threads [default: ABIDE_DEVICES, else 1]
    #[arg(long, help_heading = DEVICES, value_name = "N")]
    devices: Option<Devices>,

    /// Take the devices of these numbers, as in 0,2; a device that is named twice has two slabs
    #[arg(long, help_heading = DEVICES, value_name = "NUMBERS", value_delimiter = ',', conflicts_with = "devices")]
    device_list: Option<Vec<usize>>,
}

impl DeviceArguments {
    /// Returns what was asked for; `None` if nothing was.
    pub fn asked(&self) -> Option<Devices> {
        let these = self.device_list.clone().map(Devices::These);
        these.or_else(|| self.devices.clone())
    }

    /// Returns the devices, be it by the environment's word.
    pub fn devices(&self) -> Result<Devices> {
        backend::devices(self.asked())
    }
}
