//! Rates as a table for people.

use abide::DType;

use crate::{Domain, Row};

/// The boundary that needs no word.
const FIXED: &str = "fixed";

/// Returns the names of the columns.
pub fn header(baseline: bool) -> String {
    let stepwise = if baseline { format!("{:>10}", "×stepwise") } else { String::new() };
    format!(
        "{:<9}{:<5}{:>12}{:>9}{:>10}{:>7}{:>11}{:>8}{stepwise}  plan\n",
        "stencil", "type", "domain", "steps", "GCells/s", "± %", "% ceiling", "% peak"
    )
}

/// Formats a row; where a comparison failed, lines below say so.
pub fn row(row: &Row, baseline: bool) -> String {
    let stepwise = match row.ratio_to_stepwise() {
        Some(ratio) => format!("{ratio:>10.2}"),
        None if baseline => format!("{:>10}", "-"),
        None => String::new(),
    };
    let mut text = format!(
        "{:<9}{:<5}{:>12}{:>9}{:>10}{:>7.1}{:>11}{:>8.1}{stepwise}  {}\n",
        row.stencil,
        row.dtype,
        row.shape.to_string(),
        row.steps,
        rate(row.gcells_per_s),
        row.spread_percent,
        percent(row.share_of_ceiling),
        100.0 * row.share_of_projected_peak,
        if row.boundary == FIXED { row.plan.clone() } else { format!("{}; {}", row.boundary, row.plan) },
    );
    for fault in row.checked.iter().flat_map(|checked| &checked.faults) {
        text += &format!("{:<9}WRONG: {fault}\n", "");
    }
    text
}

/// Formats a row that could not be measured.
pub fn missing(stencil: &str, dtype: DType, domain: &str, reason: &str) -> String {
    format!("{stencil:<9}{:<5}{domain:>12}  {reason}\n", dtype.name())
}

/// Returns, for each stencil and type, the best of its domains, and the rate of unfriendly extents against
/// friendly extents of their size; empty where no stencil was measured on several domains.
pub fn best(rows: &[Row]) -> String {
    let key = |row: &Row| (row.stencil.clone(), row.dtype, row.boundary.clone());
    let mut keys = Vec::new();
    for own in rows.iter().map(key) {
        if !keys.contains(&own) {
            keys.push(own);
        }
    }
    let mut text = String::new();
    for own_key in keys {
        let (stencil, dtype, boundary) = &own_key;
        let own: Vec<&Row> = rows.iter().filter(|row| key(row) == own_key && row.holds()).collect();
        let on =
            |domain: Domain| own.iter().find(|row| row.domain == Some(domain)).map(|row| row.gcells_per_s);
        let over = |domain: Domain| match (on(domain), on(domain.friendly())) {
            (Some(rate), Some(friendly)) => format!("{:.2}", rate / friendly),
            _ => "-".to_owned(),
        };
        let Some(best) = own.iter().max_by(|a, b| a.gcells_per_s.total_cmp(&b.gcells_per_s)) else {
            continue;
        };
        if own.len() > 1 {
            let boundary = if boundary == FIXED { String::new() } else { format!("  {boundary}") };
            text += &format!(
                "{stencil:<9}{:<5}{:>12}{:>10}{:>11}{:>9}{:>8}{boundary}\n",
                dtype.name(),
                best.shape.to_string(),
                rate(best.gcells_per_s),
                percent(best.share_of_ceiling),
                over(Domain::UnfriendlyOnChip),
                over(Domain::UnfriendlyLarge),
            );
        }
    }
    if text.is_empty() {
        return text;
    }
    let over = "at unfriendly extents, over the rate at friendly ones";
    let header = format!(
        "{:<9}{:<5}{:>12}{:>10}{:>11}{:>9}{:>8}\n",
        "stencil", "type", "domain", "GCells/s", "% ceiling", "on-chip", "large"
    );
    format!("\nBest of the domains; {over} of that size\n{header}{text}")
}

/// Formats a rate with three digits or more.
fn rate(gcells_per_s: f64) -> String {
    match gcells_per_s {
        rate if rate >= 100.0 => format!("{rate:.0}"),
        rate if rate >= 10.0 => format!("{rate:.1}"),
        rate => format!("{rate:.3}"),
    }
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{:.1}", 100.0 * share))
}

#[cfg(test)]
mod tests {
    use crate::{Checked, Settings, measure, problem};

    use super::*;

    fn measured() -> Row {
        let problem = problem("2d5pt", "16x24".parse().unwrap(), DType::F64).unwrap();
        let settings = Settings { steps: Some(3), seconds: 1e-4, ..Settings::quick() };
        measure(&abide::backend::open("cpu").unwrap(), &problem, &settings).unwrap()
    }

    #[test]
    fn columns_stand_under_their_names() {
        let (header, row) = (header(true), row(&measured(), true));
        let end_of =
            |text: &str, words: &str| text.find(words).map(|at| text[..at].chars().count() + words.len());
        assert_eq!(end_of(&header, "domain"), end_of(&row, "16x24"));
        assert_eq!(
            header[..header.find("plan").unwrap()].chars().count(),
            row[..row.find("stepwise").unwrap()].chars().count()
        );
        assert!(missing("2d5pt", DType::F64, "16x24", "refused").contains("16x24  refused"));
    }

    #[test]
    fn a_wrong_row_says_so_and_is_never_the_best() {
        let (mut fast, mut slow) = (measured(), measured());
        (fast.gcells_per_s, fast.domain) = (200.0, Some(Domain::OnChip));
        (slow.gcells_per_s, slow.domain) = (100.0, Some(Domain::UnfriendlyOnChip));
        let text = best(&[fast.clone(), slow.clone()]);
        let line = text.lines().last().unwrap();
        assert!(line.contains(" 200 ") && line.contains(" 0.50 "), "{text}");
        fast.checked = Some(Checked { faults: vec!["one value differs".to_owned()], ..Checked::default() });
        assert!(row(&fast, false).contains("\n         WRONG: one value differs\n"));
        assert!(best(&[fast, slow.clone(), slow.clone()]).lines().last().unwrap().contains(" 100 "));
        assert_eq!(best(&[slow]), "");
    }
}
