//! The loads and stores of a thread's cells, from and to device memory and through the boundary.

use super::Writer;
use crate::text::{LETTERS, Text};
use crate::wgsl::{moved, vector};

impl Writer<'_> {
    /// Returns the index in a plane of the thread's first vector.
    pub(super) fn across(&self) -> String {
        match self.streaming.lanes {
            1 => format!("y * {} + x", self.stride(1)),
            lanes => format!("y * {} + x / {lanes}", self.stride(1) / lanes),
        }
    }

    /// Returns the first cell of each vector of a thread's block, and the vector's offset from the block's
    /// first.
    fn vectors(&self) -> impl Iterator<Item = (usize, String)> + use<'_> {
        let lanes = self.streaming.lanes;
        (0..self.volume()).step_by(lanes).map(move |cell| {
            let [row, column] = self.place(cell);
            (cell, moved(((row * self.stride(1) + column) / lanes) as isize))
        })
    }

    /// Writes the loads of the cells of the plane that is `AHEAD` of the arriving one.
    pub(super) fn fetch(&self, text: &mut Text, edge: bool) {
        let lanes = self.streaming.lanes;
        if edge {
            let fetch =
                |(field, cell)| format!("let l{field}_{cell} = {};", self.load(field, "p + AHEAD", cell));
            text.extend(self.cells().map(fetch));
            return;
        }
        for field in 0..self.fields() {
            for (cell, offset) in self.vectors() {
                if lanes == 1 {
                    text.push(format!("let l{field}_{cell} = old_{field}[begin{offset}];"));
                    continue;
                }
                text.push(format!("let m{field}_{cell} = old_{field}[begin{offset}];"));
                text.extend(
                    (0..lanes).map(|lane| format!("let l{field}_{} = m{field}_{cell}[{lane}];", cell + lane)),
                );
            }
        }
    }

    /// Returns the names of the values that cells had when they arrived at a level, from the latest plane to
    /// the plane that leaves now. Cells that are not computed keep those values. Fields that the stage does
    /// not write are left out, because they come along anyway.
    fn arrived(&self, level: usize) -> impl Iterator<Item = (usize, usize, Vec<String>)> + use<'_> {
        let number = level % self.stages.len();
        let delay = self.arrivals[number].delay();
        let cells = move |field: usize| (0..self.volume()).map(move |cell| (field, cell));
        self.stages[number].writes.iter().flat_map(move |&field| cells(field)).map(move |(field, cell)| {
            let ages = (0..delay).map(|age| format!("h{level}_{age}_{field}_{cell}"));
            (field, cell, std::iter::once(format!("u{level}_{field}_{cell}")).chain(ages).collect())
        })
    }

    /// Returns the declarations of the values that `arrived` names. They are declared anew where the loop
    /// that tests cells begins, so that they take no registers from the other loop.
    pub(super) fn remember(&self) -> Text {
        if !self.masked.contains(&true) {
            return Text::default();
        }
        let all = (0..self.levels()).flat_map(|level| self.arrived(level));
        all.flat_map(|(_, _, names)| names.into_iter().skip(1))
            .map(|name| format!("var {name}: real;"))
            .collect()
    }

    /// Writes the assignments that give cells that are not computed their values: cells at fixed sides keep
    /// theirs, ghost cells the constant.
    pub(super) fn bound(&self, text: &mut Text, level: usize, behind: usize) {
        if !self.masked.contains(&true) {
            return;
        }
        let swept = self.masked[0].then_some("beyond".to_owned());
        let across = self.masked[1] || self.masked[2];
        let any: Vec<String> = swept.clone().into_iter().chain(across.then(|| "beside".to_owned())).collect();
        text.push("{");
        text.push(format!("let s = p - {behind};"));
        if self.masked[0] {
            text.push(format!("let beyond = {};", held("s", "S")));
        }
        text.push(format!("if {} {{", any.join(" || ")));
        for (field, cell, names) in self.arrived(level) {
            let place = self.place(cell);
            let beside = [1, 2].into_iter().filter(|&axis| self.masked[axis]);
            let beside = beside.map(|axis| format!("held_{}{}", LETTERS[axis][1], place[axis - 1]));
            let terms: Vec<String> = swept.clone().into_iter().chain(beside).collect();
            let (new, old) = (format!("u{}_{field}_{cell}", level + 1), &names[names.len() - 1]);
            text.push(format!("{new} = select({new}, {old}, {});", terms.join(" || ")));
        }
        text.push("}");
        for (_, _, names) in self.arrived(level) {
            text.extend(names.windows(2).rev().map(|pair| format!("{} = {};", pair[1], pair[0])));
        }
        text.push("}");
    }

    /// Writes the stores to device memory of those cells of a plane of the result that the window keeps.
    pub(super) fn store(&self, text: &mut Text, level: usize, behind: usize) {
        text.push("{");
        text.push(format!("let s = p - {behind};"));
        text.push("if s >= first && s < last {");
        let lanes = self.streaming.lanes;
        text.push(format!("let to = s * {} + {};", self.stride(0) / lanes, self.across()));
        for (cell, offset) in self.vectors() {
            let [row, column] = self.place(cell);
            text.push(format!("if keeps_y{row} && keeps_x{column} {{"));
            text.extend(self.written().iter().map(|field| {
                let values: Vec<String> =
                    (cell..cell + lanes).map(|cell| format!("u{level}_{field}_{cell}")).collect();
                let value = match &values[..] {
                    [value] => value.clone(),
                    many => format!("{}({})", vector(lanes), many.join(", ")),
                };
                format!("new_{field}[to{offset}] = {value};")
            }));
            text.push("}");
        }
        text.extend(["}", "}"]);
    }
}

/// Returns the expression for whether an index along an axis is that of a cell that is needed but not
/// computed.
pub(super) fn held(index: &str, suffix: &str) -> String {
    format!("held({index}, FIRST_{suffix}, END_{suffix}, FROM_{suffix}, TO_{suffix})")
}
