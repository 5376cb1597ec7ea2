//! The tables by which kernels find the cells whose values they note.

use abide_core::Problem;
use abide_core::domain::Axes;
use abide_core::program::Probe;

/// What kernels' `Noted` points to: the values that a problem's kernels note after each step, in the order of the kernels' axes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Noted {
    /// The column of each of the problem's noted values: the same for the same value.
    pub column_of: Vec<usize>,
    /// The indices of each column's cell along the swept axis and the two across. Columns follow the planes, and in a line the
    /// cells.
    pub places: Vec<[i32; 3]>,
    /// For each plane, and behind the last, the first column that lies in it or behind it.
    pub firsts: Vec<i32>,
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
        let place = |probe: &Probe| {
            let [s, y, x] = axes.order(probe.index);
            [s, y, probe.field, x]
        };
        let mut all: Vec<[usize; 4]> = problem.noted.iter().map(place).collect();
        let asked = all.clone();
        all.sort_unstable();
        all.dedup();
        let column_of = asked.iter().map(|place| all.partition_point(|other| other < place)).collect();
        let firsts = (0..=planes).map(|plane| all.partition_point(|place| place[0] < plane) as i32).collect();
        let places = all.iter().map(|&[s, y, _, x]| [s, y, x].map(|index| index as i32)).collect();
        let lines = vec![-1; fields * planes * rows];
        let mut noted = Noted { column_of, places, firsts, lines, columns: Vec::new() };
        for (column, [s, y, field, x]) in all.into_iter().enumerate() {
            let line = &mut noted.lines[(field * planes + s) * rows + y];
            if *line < 0 {
                *line = (noted.columns.len() / cells) as i32;
                noted.columns.resize(noted.columns.len() + cells, -1);
            }
            noted.columns[*line as usize * cells + x] = column as i32;
        }
        noted
    }
}
