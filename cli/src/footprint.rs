//! Footprints as text.

use std::collections::BTreeSet;

use abide::Stage;

/// Draws the taps of a stage, one picture for all fields that are read alike: a plane for each offset along
/// the slowest of three axes, with the cell itself in the middle.
pub fn pictures(stage: &Stage, fields: &[String]) -> Vec<(String, Vec<String>)> {
    let mut groups: Vec<(Vec<&str>, BTreeSet<[i32; 3]>)> = Vec::new();
    for (number, name) in fields.iter().enumerate() {
        let taps: BTreeSet<_> =
            stage.dag.taps().filter(|tap| usize::from(tap.field) == number).map(|tap| tap.offset).collect();
        match groups.iter_mut().find(|group| group.1 == taps) {
            _ if taps.is_empty() => {}
            Some(group) => group.0.push(name),
            None => groups.push((vec![name], taps)),
        }
    }
    groups.into_iter().map(|(names, taps)| (names.join(", "), picture(&taps))).collect()
}

fn picture(taps: &BTreeSet<[i32; 3]>) -> Vec<String> {
    // The cell itself is in the picture, whether it is read or not.
    let reach = |axis: usize| {
        let offsets = || taps.iter().map(|tap| tap[axis]).chain([0]);
        offsets().min().unwrap_or(0)..=offsets().max().unwrap_or(0)
    };
    let planes: Vec<i32> = reach(0).collect();
    let width = 2 * reach(2).count() - 1;
    let mut lines = Vec::new();
    if planes.len() > 1 {
        let heads = planes.iter().map(|z| {
            if *z == 0 { format!("{:<width$}", "z") } else { format!("{:<width$}", format!("z{z:+}")) }
        });
        lines.push(heads.collect::<Vec<_>>().join("   ").trim_end().to_owned());
    }
    for y in reach(1) {
        let row = |z: i32| {
            let mark = |x: i32| match (taps.contains(&[z, y, x]), [z, y, x] == [0; 3]) {
                (true, true) => "◉",
                (true, false) => "●",
                (false, true) => "○",
                (false, false) => "·",
            };
            let row = reach(2).map(mark).collect::<Vec<_>>().join(" ");
            // As wide as the plane's heading, where that is wider.
            let head = if planes.len() > 1 && z != 0 { format!("z{z:+}").len() } else { 1 };
            row + &" ".repeat(head.saturating_sub(width))
        };
        lines.push(planes.iter().map(|z| row(*z)).collect::<Vec<_>>().join("   ").trim_end().to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use abide::catalogue;

    use super::*;

    fn of(name: &str, dimensions: usize, stage: usize) -> Vec<(String, Vec<String>)> {
        let program = catalogue::find(name).unwrap().program(dimensions).unwrap();
        pictures(&program.stages()[stage], program.fields())
    }

    #[test]
    fn stars_boxes_and_staggered_fields() {
        assert_eq!(
            of("2d5pt", 2, 0),
            [("u".to_owned(), ["· ● ·", "● ◉ ●", "· ● ·"].map(str::to_owned).to_vec())]
        );
        let cube = &of("3d7pt", 3, 0)[0].1;
        assert_eq!(cube[0], "z-1     z       z+1");
        assert_eq!(cube[1], "· · ·   · ● ·   · · ·");
        assert_eq!(cube[2], "· ● ·   ● ◉ ●   · ● ·");
        let magnetic = of("fdtd-tm", 2, 0);
        assert_eq!(magnetic[0].1, ["◉ ●", "● ·"]);
        assert_eq!(magnetic[1].0, "hx, hy");
        assert_eq!(of("life", 2, 0)[0].1[1], "● ◉ ●");
    }
}
