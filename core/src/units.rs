//! Amounts and rates in words, each with the unit that fits it.

/// Returns a count with its noun, in the plural where it is not 1.
pub fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Returns extents as in `3×4`.
pub fn times(extents: &[usize]) -> String {
    extents.iter().map(usize::to_string).collect::<Vec<_>>().join("×")
}

/// Formats a number of bytes with its unit.
pub fn amount(bytes: f64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    let (mut value, mut unit) = (bytes, 0);
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    let digits = if value >= 100.0 || unit == 0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.digits$} {}", units[unit])
}

/// Formats a rate, given in 10⁹ cells times steps per second, with its unit.
///
/// ```
/// use abide_core::units::rate;
///
/// assert_eq!(rate(1.5), "1.500 GCells/s");
/// assert_eq!(rate(4.2e-5), "42.000 kCells/s");
/// ```
pub fn rate(gcells_per_s: f64) -> String {
    let units = [("GCells/s", 1.0), ("MCells/s", 1e3), ("kCells/s", 1e6), ("cells/s", 1e9)];
    let fits = |(_, factor): &&(&str, f64)| gcells_per_s * factor >= 0.9995;
    let least = &units[if gcells_per_s > 0.0 { 3 } else { 0 }];
    let (unit, factor) = units.iter().find(fits).unwrap_or(least);
    format!("{:.3} {unit}", gcells_per_s * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_three_digits() {
        assert_eq!(amount(12.0), "12 B");
        assert_eq!(amount(1234.0), "1.23 kB");
        assert_eq!(amount(999.9e6), "1.00 GB");
        assert_eq!(amount(45.6e9), "45.6 GB");
    }

    #[test]
    fn rates_have_the_unit_that_fits() {
        for (gcells_per_s, words) in [
            (1803.0, "1803.000 GCells/s"),
            (0.9999, "1.000 GCells/s"),
            (0.999, "999.000 MCells/s"),
            (1.2e-7, "120.000 cells/s"),
            (1e-12, "0.001 cells/s"),
            (0.0, "0.000 GCells/s"),
        ] {
            assert_eq!(rate(gcells_per_s), words);
        }
    }
}
