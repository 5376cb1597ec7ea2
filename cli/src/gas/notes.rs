//! What is remarkable about rows of a table: which rows, in few words.

use std::fmt::{self, Display};

/// The most stretches of rows that a note lists.
const MOST: usize = 100;

/// Numbers of rows, counted from 1, in rising order.
#[derive(Debug, Default)]
pub struct Rows {
    count: u64,
    stretches: Vec<(u64, u64)>,
}

impl Rows {
    /// Adds a row beyond all others.
    pub fn push(&mut self, row: u64) {
        self.count += 1;
        let known = self.stretches.len();
        match self.stretches.last_mut() {
            Some((_, last)) if *last + 1 == row => *last = row,
            // One more than a note lists, which marks that there are others.
            _ if known <= MOST => self.stretches.push((row, row)),
            _ => {}
        }
    }

    /// Returns a note on the rows, or none where there are none.
    pub fn note(&self, what: &str) -> Option<String> {
        (self.count > 0).then(|| format!("{what} in {self}"))
    }
}

impl Display for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count {
            1 => write!(f, "row ")?,
            count => write!(f, "{count} rows: ")?,
        }
        for (number, (first, last)) in self.stretches.iter().take(MOST).enumerate() {
            let separator = if number == 0 { "" } else { ", " };
            match first == last {
                true => write!(f, "{separator}{first}")?,
                false => write!(f, "{separator}{first}-{last}")?,
            }
        }
        match self.stretches.len() > MOST {
            true => write!(f, ", and others"),
            false => Ok(()),
        }
    }
}

/// What is remarkable about states and their properties.
#[derive(Debug, Default)]
pub struct Remarks {
    /// Rows below the lowest temperature of a species' polynomials.
    pub below: u64,
    /// Rows above the highest temperature of a species' polynomials.
    pub above: Rows,
    /// Rows whose equation of state has three volumes.
    pub three: Rows,
    /// Rows whose viscosity is not positive.
    pub viscosity: Rows,
    /// Rows whose conductivity is not positive.
    pub conductivity: Rows,
    /// Rows with a property that is no finite number.
    pub lost: Rows,
}

impl Remarks {
    /// Returns the notes, in words.
    pub fn notes(&self) -> Vec<String> {
        let rows = if self.below == 1 { "row" } else { "rows" };
        let below = (self.below > 0).then(|| {
            format!("below the lowest temperature of a species' polynomials, which are extrapolated, in {} {rows}", self.below)
        });
        let named = [
            self.above.note("the temperature that was found is above a species' polynomials"),
            self.three
                .note("three molar volumes at the temperature and pressure, of which an outer one is taken,"),
            self.viscosity.note("mu is not positive"),
            self.conductivity.note("lambda is not positive"),
            self.lost.note("a property is no finite number"),
        ];
        below.into_iter().chain(named.into_iter().flatten()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_told_in_stretches() {
        let mut rows = Rows::default();
        assert_eq!(rows.note("mu"), None);
        rows.push(3);
        assert_eq!(rows.note("mu is not positive").unwrap(), "mu is not positive in row 3");
        [4, 5, 9, 11].into_iter().for_each(|row| rows.push(row));
        assert_eq!(rows.to_string(), "5 rows: 3-5, 9, 11");
        (0..1000).for_each(|row| rows.push(20 + 2 * row));
        let text = rows.to_string();
        assert!(
            text.starts_with("1005 rows: ") && text.ends_with(", and others") && text.len() < 800,
            "{text}"
        );
    }
}
