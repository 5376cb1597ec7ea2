//! The tables by which kernels find the cells whose values they note.

use std::collections::HashMap;

use abide_core::Problem;
use abide_core::domain::Axes;

/// What kernels' `Noted` points to: the values that a problem's kernels note after each step, in the order of the kernels' axes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Noted {
    /// The column of each of the problem's noted values: the same for the same value.
    pub column_of: Vec<usize>,
    /// The indices of each column's cell along the swept axis and the two across.
    pub places: Vec<[i32; 3]>,
    /// Of each line of cells of each field, which of the lines that have noted values it is; -1 for one that has none.
    pub lines: Vec<i32>,
    /// Of each cell of these lines its column; -1 for a cell without.
    pub columns: Vec<i32>,
}

impl Noted {
    /// Returns the tables of the values that a problem notes.
    pub fn of(problem: &Problem) -> Noted {
        let axes = Axes::of(problem.shape.dimensions());
        let [planes, rows, cells] = axes.order(problem.shape.padded());
        let fields = problem.program.fields().len();
        let mut noted = Noted { lines: vec![-1; fields * planes * rows], ..Noted::default() };
        let mut known: HashMap<(usize, [usize; 3]), usize> = HashMap::new();
        for probe in &problem.noted {
            let place @ [s, y, x] = axes.order(probe.index);
            let next = known.len();
            let column = *known.entry((probe.field, place)).or_insert(next);
            noted.column_of.push(column);
            if column < next {
                continue;
            }
            noted.places.push(place.map(|index| index as i32));
            let line = &mut noted.lines[(probe.field * planes + s) * rows + y];
            if *line < 0 {
                *line = (noted.columns.len() / cells) as i32;
                noted.columns.resize(noted.columns.len() + cells, -1);
            }
            noted.columns[*line as usize * cells + x] = column as i32;
        }
        noted
    }
}
