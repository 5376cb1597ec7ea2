//! The tables by which kernels find the cells whose values they note.

use abide_core::domain::{Axes, Boundary};
use abide_core::plan::{Schedule, WarpStreaming};
use abide_core::program::Probe;
use abide_core::{Plan, Problem};

/// The values that a problem's kernels note after each step, in the order of the kernels' axes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Noted {
    /// The column of each of the problem's noted values: the same for the same value.
    column_of: Vec<usize>,
    /// The cell of each column. Columns follow the planes, and in a line the cells.
    cells: Vec<Cell>,
}

/// A noted cell: its plane, row, field and place in the row.
type Cell = [usize; 4];

impl Noted {
    /// Returns the values that kernels note of a problem.
    pub fn of(problem: &Problem) -> Noted {
        let axes = Axes::of(problem.shape.dimensions());
        let place = |probe: &Probe| {
            let [s, y, x] = axes.order(probe.index);
            [s, y, probe.field, x]
        };
        let mut cells: Vec<Cell> = problem.noted.iter().map(place).collect();
        let asked = cells.clone();
        cells.sort_unstable();
        cells.dedup();
        let column_of = asked.iter().map(|place| cells.partition_point(|other| other < place)).collect();
        Noted { column_of, cells }
    }

    /// Returns the tables of a plan's kernel, in the order in which its `Noted` points to them: `cells` and `firsts` of one that
    /// streams, which are those of its windows; `lines` and `columns` of another. None where nothing is noted.
    pub fn tables(&self, problem: &Problem, plan: &Plan) -> [Vec<i32>; 4] {
        match &plan.schedule {
            _ if self.cells.is_empty() => Default::default(),
            Schedule::WarpStreaming(streaming) => {
                let [cells, firsts] = of_windows(problem, streaming, &self.cells);
                [cells, firsts, Vec::new(), Vec::new()]
            }
            _ => {
                let [lines, columns] = of_lines(problem, &self.cells);
                [Vec::new(), Vec::new(), lines, columns]
            }
        }
    }

    /// Returns the values that kernels note of a step.
    pub fn columns(&self) -> usize {
        self.cells.len()
    }

    /// Returns, row by row, the values that the problem asked for, of those that kernels noted.
    pub fn gathered<T: Copy>(&self, noted: &[T], value: impl Fn(T) -> f64) -> Vec<f64> {
        let rows = noted.chunks_exact(self.columns().max(1));
        let mut gathered = Vec::with_capacity(rows.len() * self.column_of.len());
        rows.for_each(|row| gathered.extend(self.column_of.iter().map(|&column| value(row[column]))));
        gathered
    }
}

/// Returns the cells of each window, plane by plane, and the first of each.
fn of_windows(problem: &Problem, streaming: &WarpStreaming, all: &[Cell]) -> [Vec<i32>; 2] {
    let axes = Axes::of(problem.shape.dimensions());
    let (across, fields) = ([1, 2], problem.program.fields().len());
    // As `enter` of the kernels' windows: which of them stores a cell.
    let window_along = |number: usize, index: usize| {
        let (tile, margin) = (streaming.window()[number], streaming.margin[1 + number]);
        let wraps = problem.boundaries.0[axes.0[across[number]]][0] == Boundary::Periodic;
        let shifted = if wraps { index } else { index.saturating_sub(margin) };
        (shifted / (tile - 2 * margin).max(1)).min(streaming.tiles[number] - 1)
    };
    let window = |&[_, y, _, x]: &Cell| window_along(0, y) * streaming.tiles[1] + window_along(1, x);
    let mut ordered: Vec<(usize, usize)> =
        all.iter().enumerate().map(|(column, cell)| (window(cell), column)).collect();
    ordered.sort_unstable();
    let windows = streaming.tiles[0] * streaming.tiles[1];
    let firsts = (0..=windows).map(|window| ordered.partition_point(|of| of.0 < window) as i32).collect();
    let cells = ordered.into_iter().flat_map(|(_, column)| {
        let [s, y, field, x] = all[column];
        [s, y, x, column * fields + field].map(|word| word as i32)
    });
    [cells.collect(), firsts]
}

/// Returns, of each line of cells of each field, which of the lines that have noted values it is, or -1, and of each cell of these
/// lines its column, or -1.
fn of_lines(problem: &Problem, all: &[Cell]) -> [Vec<i32>; 2] {
    let [planes, rows, cells] = Axes::of(problem.shape.dimensions()).order(problem.shape.padded());
    let mut lines = vec![-1; problem.program.fields().len() * planes * rows];
    let mut columns: Vec<i32> = Vec::new();
    for (column, &[s, y, field, x]) in all.iter().enumerate() {
        let line = &mut lines[(field * planes + s) * rows + y];
        if *line < 0 {
            *line = (columns.len() / cells) as i32;
            columns.resize(columns.len() + cells, -1);
        }
        columns[*line as usize * cells + x] = column as i32;
    }
    [lines, columns]
}
