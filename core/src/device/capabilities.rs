//! The capabilities beyond memory that a schedule may need of a device, a row each, and the one refusal where
//! a capability is missing.

use super::DeviceSpec;
use crate::error::{Error, Result};

/// An ability that a device may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capability {
    /// All blocks wait for each other within a kernel, and their registers can be planned.
    Barrier,
    /// Warps of 32 threads shuffle values, and their registers can be planned.
    Warps,
    /// Blocks of a cluster read each other's shared memory.
    Clusters,
}

impl Capability {
    /// Returns the capability in words.
    fn words(self) -> &'static str {
        match self {
            Capability::Barrier => "a barrier among all blocks of a kernel, and registers to plan with",
            Capability::Warps => "warps of 32 threads that shuffle values, and registers to plan with",
            Capability::Clusters => "clusters of blocks",
        }
    }

    fn is_of(self, device: &DeviceSpec) -> bool {
        let plannable = device.registers.is_some() && device.multiprocessors > 0;
        match self {
            Capability::Barrier => plannable,
            Capability::Warps => plannable && device.warp == Some(32),
            Capability::Clusters => device.compute_capability.is_some_and(|(major, _)| major >= 9),
        }
    }
}

impl DeviceSpec {
    /// Returns whether the device has a capability.
    pub fn has(&self, capability: Capability) -> bool {
        capability.is_of(self)
    }

    /// Refuses `what` on a device that does not have the capability.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`].
    pub fn require(&self, capability: Capability, what: &str) -> Result<()> {
        if self.has(capability) {
            return Ok(());
        }
        Err(Error::unsupported(
            self.name.clone(),
            format!("{what} needs {}", capability.words()),
            "use --execution stepwise, or another --backend",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_tells_nothing_of_its_registers_is_refused_by_name() {
        let a100 = DeviceSpec::preset("a100").unwrap();
        assert!(
            a100.has(Capability::Barrier) && a100.has(Capability::Warps) && !a100.has(Capability::Clusters)
        );
        let adapter = DeviceSpec { name: "adapter".to_owned(), registers: None, ..a100.clone() };
        let error = adapter.require(Capability::Barrier, "a persistent kernel").unwrap_err().to_string();
        assert!(error.contains("adapter cannot run this: a persistent kernel needs a barrier"), "{error}");
        assert!(!DeviceSpec { warp: Some(64), ..a100 }.has(Capability::Warps));
    }
}
