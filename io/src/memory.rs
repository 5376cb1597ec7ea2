//! Checks that the machine has the memory that is asked for.
//!
//! Systems grant more memory than they have, and end the process when it is used. So Abide asks first.

pub use abide_core::units::amount;
pub use abide_cpu::memory::room_for_addresses;

use abide_core::{Error, Result};

/// Items held in memory at the same time, in bytes, to be asked for at once.
///
/// ```
/// use abide_io::memory::Budget;
///
/// Budget::new("memory for two vectors").with("b", 8000).with("x", 8000).check("choose a smaller --size")?;
/// # Ok::<(), abide_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Budget {
    what: String,
    items: Vec<(String, u128)>,
}

impl Budget {
    /// Makes an empty budget, for a purpose that errors name.
    pub fn new(what: impl Into<String>) -> Budget {
        Budget { what: what.into(), items: Vec::new() }
    }

    /// Adds an item; an item without bytes is left out.
    pub fn with(mut self, item: impl Into<String>, bytes: u128) -> Budget {
        if bytes > 0 {
            self.items.push((item.into(), bytes));
        }
        self
    }

    /// Returns the sum of the bytes of all items.
    pub fn bytes(&self) -> u128 {
        self.items.iter().fold(0, |sum, item| sum.saturating_add(item.1))
    }

    /// Returns [`Error::Limit`] where this much memory is known to be missing; `change` says what to choose
    /// instead.
    pub fn check(&self, change: &str) -> Result<()> {
        self.check_within(available(), change)
    }

    fn check_within(&self, available: Option<u64>, change: &str) -> Result<()> {
        match available {
            Some(available) if self.bytes() > u128::from(available) => {
                let items: Vec<String> = self
                    .items
                    .iter()
                    .map(|(item, bytes)| format!("{item} {}", amount(*bytes as f64)))
                    .collect();
                let asked = match &items[..] {
                    [one] => one.clone(),
                    all => format!("{}: {}", all.join(", "), amount(self.bytes() as f64)),
                };
                Err(Error::limit(
                    &self.what,
                    asked,
                    format!("{} available", amount(available as f64)),
                    change,
                ))
            }
            _ => Ok(()),
        }
    }
}

/// Returns the bytes of memory that this process may still take; `None` where the system does not report them.
pub fn available() -> Option<u64> {
    abide_cpu::memory::available()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_names_what_wants_how_much() {
        let gb = |count: u128| count * 1_000_000_000;
        let budget =
            Budget::new("memory for the fields").with("2 fields", gb(80)).with("a second copy", gb(40));
        let budget = budget.with("pinned", 0).with("the output", gb(20));
        assert_eq!(budget.bytes(), gb(140));
        let error = budget.check_within(Some(24_000_000_000), "choose f32").unwrap_err().to_string();
        let words = "memory for the fields: 2 fields 80.0 GB, a second copy 40.0 GB, the output 20.0 GB: 140 GB asked, \
                     the limit is 24.0 GB available; choose f32";
        assert_eq!(error, words);
        assert!(
            budget.check_within(Some(140_000_000_000), "").is_ok() && budget.check_within(None, "").is_ok()
        );
        let one = Budget::new("memory")
            .with("a vector", u128::MAX)
            .check_within(Some(7), "")
            .unwrap_err()
            .to_string();
        assert!(one.contains("a vector") && one.contains("7 B available"), "{one}");
    }

    #[test]
    fn a_little_is_there_and_too_much_is_not() {
        assert!(Budget::new("memory").with("a byte", 1).check("").is_ok());
        let much = Budget::new("memory").with("all", u128::from(u64::MAX)).with("more", u128::MAX);
        if abide_cpu::memory::available().is_some() {
            assert!(matches!(much.check(""), Err(Error::Limit { .. })));
        }
    }
}
