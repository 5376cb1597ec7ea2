//! One V cycle of geometric multigrid, which preconditions conjugate gradients: its grids, their set-up, and its stages. The set-up is
//! made once where the operator follows from parameters and places ([`Step::once`]).
//!
//! The operator is read as flow through the faces between cells: (A p)ᵢ = sᵢ pᵢ + Σ wᵢ pᵢ + Σ t (pᵢ − pⱼ), where s is what its coefficients add up
//! to, t the opposite of the coefficient of the neighbour behind a face, and w what a side or a wall adds to the cell at it. A coarse
//! cell joins two along each axis: t, of the faces between them, and w add up, halved along their axis, where centres are twice as far
//! apart; s adds up. What is left of a defect goes to the coarse cell as a sum, and its correction comes back to both as it is.
//!
//! The cycle's fields are f32 whatever the run's type, and what flows through faces bf16, of which diagonals are made: it is the
//! preconditioner of an iteration that has its own vectors in that type, and memory is what it takes time for.
//!
//! Smoothing is Jacobi's method with the weights of Chebyshev's polynomial of degree 3 on the upper three quarters of the spectrum, which ends at 2 for
//! any such operator (Gershgorin), before and after the coarser grids. It has no order of cells, so that a cycle has the same bits
//! wherever it runs, and is symmetric, as conjugate gradients need.

use super::linear;
use super::{Centring, Definition, Expr, Scope, Step, System};
use crate::domain::axis_name;
use crate::precision::Precision;

/// The coarsest grids, by the number of axes: a domain has those down to a single cell.
const DEEPEST: [u8; 3] = [16, 12, 10];

/// The degree of the smoother's polynomial.
const DEGREE: usize = 3;

/// The part of the spectrum that it smooths, from the highest down: a fourth is left to coarser grids.
const RATIO: f64 = 4.0;

/// Returns the weights of the smoother's sweeps.
fn weights() -> [f64; DEGREE] {
    let (top, low) = (2.0, 2.0 / RATIO);
    std::array::from_fn(|sweep| {
        let root = (std::f64::consts::PI * (2 * sweep + 1) as f64 / (2 * DEGREE) as f64).cos();
        1.0 / (0.5 * (top + low) - 0.5 * (top - low) * root)
    })
}

/// The fields of each grid.
const CORRECTION: &str = "correction";
const REST: &str = "rest";
const LEFT: &str = "left";
const OWN: &str = "own";
const WALLS: &str = "walls";
const DIAGONAL: &str = "diagonal";
const INVERSE: &str = "of_diagonal";

/// The grids of a system.
pub(super) struct Grids<'s, 'a> {
    system: &'s System<'a>,
    dimensions: usize,
}

impl<'s, 'a> Grids<'s, 'a> {
    pub fn new(system: &'s System<'a>, dimensions: usize) -> Self {
        Grids { system, dimensions }
    }

    fn levels(&self) -> std::ops::RangeInclusive<u8> {
        0..=DEEPEST[self.dimensions.clamp(1, 3) - 1]
    }

    fn is_last(&self, level: u8) -> bool {
        level == *self.levels().end()
    }

    fn axes(&self) -> std::ops::Range<usize> {
        0..self.dimensions
    }

    /// Returns the name of a field of a grid.
    pub fn name(&self, what: &str, level: u8) -> String {
        self.system.name(&format!("{what}_{level}"))
    }

    /// Returns the letter of an axis, counted from the slowest.
    fn letter(&self, axis: usize) -> &'static str {
        axis_name(3 - self.dimensions + axis)
    }

    /// Returns the name of the field of the faces at the high side of each cell of a grid.
    fn faces(&self, axis: usize, level: u8) -> String {
        self.name(&format!("face_{}", self.letter(axis)), level)
    }

    /// Returns the name of the scalar of the domain's cells along an axis.
    fn cells(&self, axis: usize) -> String {
        self.system.name(&format!("cells_{}", self.letter(axis)))
    }

    /// Declares the fields of all grids, and the scalars.
    pub fn declare(&self, p: &mut Definition) {
        let unknown = self.system.unknown;
        let inside = self.system.name("inside");
        p.inside(&inside, unknown).internal(&inside).precision(&inside, Precision::Bf16);
        for axis in self.axes() {
            let cells = self.cells(axis);
            p.extent(&cells, axis, "cells along the axis").internal(&cells);
        }
        for level in self.levels() {
            let faces = self.axes().map(|axis| (self.faces(axis, level), Precision::Bf16));
            let others: &[&str] = match level {
                0 => &[CORRECTION, REST, DIAGONAL, INVERSE],
                // The set-up, which may be left out, makes nothing that anything else makes.
                _ => &[CORRECTION, REST, LEFT, DIAGONAL, INVERSE, OWN, WALLS][..6 + self.dimensions / 3],
            };
            let others = others.iter().map(|what| (self.name(what, level), Precision::F32));
            for (name, precision) in others.chain(faces) {
                // No flow crosses a side but a periodic one: what stands beyond the others counts nothing.
                match level {
                    0 => p.inside(&name, unknown),
                    _ => p.field(&name, Centring::CELL.on_level(level)).boundary_of(&name, "periodic"),
                };
                p.internal(&name).precision(&name, precision);
            }
        }
    }

    fn here<'g>(&self, s: &Scope<'g>, what: &str, level: u8) -> Expr<'g> {
        s.field(&self.name(what, level)).here()
    }

    /// Returns a number of cells, of which f32 has those up to 2²⁴ along an axis; a line may have more.
    fn whole<'g>(&self, cells: Expr<'g>) -> Expr<'g> {
        if self.dimensions > 1 { cells.round_f32() } else { cells }
    }

    /// Returns the place of a cell along an axis.
    fn place<'g>(&self, s: &Scope<'g>, axis: usize) -> Expr<'g> {
        self.whole(s.coord(axis))
    }

    /// Returns the cells of a grid along an axis.
    fn extent<'g>(&self, s: &Scope<'g>, axis: usize, level: u8) -> Expr<'g> {
        let finest = self.whole(s.param(&self.cells(axis)));
        let cells = (1u64 << level) as f64;
        if level == 0 { finest } else { ((finest + (cells - 1.0)) / cells).floor() }
    }

    /// Returns a value of a field of the next finer grid, in one of the cells that the own one joins: 0 in a cell that is not there.
    fn of_child<'g>(
        &self,
        s: &Scope<'g>,
        level: u8,
        child: &[i32],
        value: impl Fn(&[i32]) -> Expr<'g>,
    ) -> Expr<'g> {
        let second = self.axes().filter(|&axis| child[axis] == 1);
        second.fold(value(child), |value, axis| {
            let last = self.extent(s, axis, level - 1) - 1.0;
            (2.0 * self.place(s, axis)).lt(last).select(value, 0.0)
        })
    }

    /// Returns the sum over the cells that a cell joins, of those that lie on one side of it along an axis if one is given.
    fn joined<'g>(
        &self,
        s: &Scope<'g>,
        level: u8,
        along: Option<usize>,
        value: impl Fn(&[i32]) -> Expr<'g>,
    ) -> Expr<'g> {
        let free: Vec<usize> = self.axes().filter(|axis| along != Some(*axis)).collect();
        let terms = (0..1usize << free.len()).map(|bits| {
            let mut child = vec![0; self.dimensions];
            for (place, &axis) in free.iter().enumerate() {
                child[axis] = (bits >> place & 1) as i32;
            }
            self.of_child(s, level, &child, &value)
        });
        terms.reduce(|a, b| a + b).unwrap_or_else(|| s.constant(0.0))
    }

    /// Returns the place of what a wall along an axis adds, until the grid's diagonal is made. On the finest grid each solve makes
    /// all these anew.
    fn walls(&self, axis: usize, level: u8) -> String {
        self.name([INVERSE, DIAGONAL, if level == 0 { CORRECTION } else { WALLS }][axis], level)
    }

    /// Returns the place of what the coefficients of a cell add up to, until the grid's diagonal is made.
    fn sum(&self, level: u8) -> String {
        self.name(if level == 0 { REST } else { OWN }, level)
    }

    /// Returns the sum of the products of faces with values behind them, around a cell at an offset.
    fn across<'g>(
        &self,
        s: &Scope<'g>,
        level: u8,
        at: &[i32],
        value: &dyn Fn(usize, i32) -> Expr<'g>,
    ) -> Expr<'g> {
        let terms = self.axes().map(|axis| {
            let faces = self.faces(axis, level);
            let mut below = at.to_vec();
            below[axis] -= 1;
            s.field(&faces).at_slice(&below) * value(axis, -1) + s.field(&faces).at_slice(at) * value(axis, 1)
        });
        terms.reduce(|a, b| a + b).unwrap_or_else(|| s.constant(0.0))
    }

    /// Returns the same for values that are 0 beyond sides that close the finest grid: coefficients that are the same everywhere
    /// stand for its faces.
    fn flow<'g>(
        &self,
        s: &Scope<'g>,
        level: u8,
        at: &[i32],
        value: &dyn Fn(usize, i32) -> Expr<'g>,
    ) -> Expr<'g> {
        let Some(even) = self.system.even.as_ref().filter(|_| level == 0) else {
            return self.across(s, level, at, value);
        };
        let sides = self.axes().flat_map(|axis| [(axis, -1), (axis, 1)]);
        let terms = sides
            .enumerate()
            .map(|(number, (axis, by))| -(s.graph().grafted(even, number) * value(axis, by)));
        terms.reduce(|a, b| a + b).unwrap_or_else(|| s.constant(0.0))
    }

    /// Returns the cell of a stage itself, as an offset.
    pub fn own(&self) -> Vec<i32> {
        vec![0; self.dimensions]
    }

    /// Makes the faces and the diagonals of all grids from the operator.
    pub fn set_up(&self, step: &mut Step<'_>) {
        let (system, direction) = (self.system, self.system.name("direction"));
        step.stage(&direction, |s| s.set(&direction, s.constant(1.0)));
        let inside = system.name("inside");
        step.stage(&inside, |s| s.set(&inside, s.constant(1.0)));
        step.stage(&self.name("faces", 0), |s| {
            let own = s.field(&inside);
            let all = own.here() * linear::of_ones(s, (system.operator)(s), system.unknown, None);
            s.set(&self.sum(0), all);
            for axis in self.axes() {
                let flows = own.here() * own.along(axis, 1);
                let beside = linear::beside(s, (system.operator)(s), system.unknown, (axis, 1));
                s.set(&self.faces(axis, 0), -(flows * beside));
                let operator = (system.operator)(s);
                let at_walls = linear::of_ones(s, operator, system.unknown, Some((axis, &*direction)));
                s.set(&self.walls(axis, 0), own.here() * at_walls - all);
            }
        });
        for level in self.levels() {
            self.set_up_diagonal(step, level);
        }
    }

    /// Makes the faces of the next coarser grid, and then the diagonal of one.
    fn set_up_diagonal(&self, step: &mut Step<'_>, level: u8) {
        let next = level + 1;
        if !self.is_last(level) {
            step.stage(&self.name("faces", next), |s| {
                let sum = self.joined(s, next, None, |child| s.field(&self.sum(level)).at_slice(child));
                s.set(&self.sum(next), sum);
                for axis in self.axes() {
                    let finer = self.extent(s, axis, level);
                    let is_joined = finer.gt(1.5);
                    // The last cell is alone where their number is odd: its centre is half as far from a wall, and one and a half cells
                    // from the next.
                    let (last, place) = (self.extent(s, axis, next) - 1.0, self.place(s, axis));
                    let is_alone = (2.0 * place + 1.0).eq(finer);
                    let walls =
                        self.joined(s, next, None, |child| s.field(&self.walls(axis, level)).at_slice(child));
                    let joined_walls = is_alone.select(s.constant(1.0), 0.5);
                    s.set(&self.walls(axis, next), is_joined.select(joined_walls, 1.0) * walls);
                    let faces = self.faces(axis, level);
                    let face = self.joined(s, next, Some(axis), |child| {
                        let mut second = child.to_vec();
                        second[axis] = 1;
                        let field = s.field(&faces);
                        // Behind a cell that is alone is its own face.
                        is_alone.select(field.at_slice(child), field.at_slice(&second))
                    });
                    let is_before_alone = (2.0 * place + 3.0).eq(finer);
                    let nearer = is_before_alone.select(s.constant(2.0 / 3.0), 0.5);
                    s.set(&self.faces(axis, next), last.gt(0.5).select(nearer * face, 0.0));
                }
            });
        }
        step.stage(&self.name(DIAGONAL, level), |s| {
            let walls = self.axes().map(|axis| s.field(&self.walls(axis, level)).here());
            let own = walls.fold(s.field(&self.sum(level)).here(), |sum, walls| sum + walls);
            let diagonal = own + self.across(s, level, &self.own(), &|_, _| s.constant(1.0));
            s.set(&self.name(DIAGONAL, level), diagonal);
            s.set(&self.name(INVERSE, level), diagonal.ne(0.0).select(1.0 / diagonal, 0.0));
        });
    }

    /// Sets the defect with which a cycle begins, and its first sweep.
    pub fn begin<'g>(&self, s: &Scope<'g>, defect: Expr<'g>) {
        s.set(&self.name(REST, 0), defect);
        s.set(&self.name(CORRECTION, 0), self.first_sweep(s, 0, defect));
    }

    /// Returns a defect of the finest grid without its mean, where the operator has a null space. What takes no part gets another value
    /// than 0, which nothing may read.
    fn without_mean<'g>(&self, s: &Scope<'g>, defect: Expr<'g>) -> Expr<'g> {
        if self.system.how.null_space { defect - self.system.param(s, "mean") } else { defect }
    }

    /// Returns the name of the field of the defect with which a cycle begins.
    pub fn first_rest(&self) -> String {
        self.name(REST, 0)
    }

    /// Returns a grid's defect at an offset, as the cycle has it.
    pub fn rest<'g>(&self, s: &Scope<'g>, level: u8, at: &[i32]) -> Expr<'g> {
        let rest = s.field(&self.name(REST, level)).at_slice(at);
        if level == 0 { self.without_mean(s, rest) } else { rest }
    }

    /// Returns the smoother's first sweep from zeros, for a defect.
    fn first_sweep<'g>(&self, s: &Scope<'g>, level: u8, rest: Expr<'g>) -> Expr<'g> {
        weights()[0] * (self.here(s, INVERSE, level) * rest)
    }

    /// Adds a sweep.
    fn sweep(&self, step: &mut Step<'_>, level: u8, weight: f64) {
        let name = self.name(CORRECTION, level);
        step.stage(&name, |s| {
            let own = s.field(&name);
            let flow = self.flow(s, level, &self.own(), &|axis, by| own.along(axis, by));
            let inverse = self.here(s, INVERSE, level);
            let jacobi = inverse * (self.rest(s, level, &self.own()) + flow);
            let swept = own.here() + weight * (jacobi - own.here());
            s.set(&name, inverse.ne(0.0).select(swept, 0.0));
        });
    }

    /// Adds what brings the correction of the coarser grid to a grid. Cells that take no part get none.
    fn correct(&self, step: &mut Step<'_>, level: u8) {
        let name = self.name(CORRECTION, level);
        step.stage(&name, |s| {
            let corrected = s.field(&name).here() + s.field(&self.name(CORRECTION, level + 1)).along(0, 0);
            s.set(&name, self.here(s, INVERSE, level).ne(0.0).select(corrected, 0.0));
        });
    }

    /// Adds a cycle. The first sweep of the finest grid has been made.
    pub fn cycle(&self, step: &mut Step<'_>) {
        let [first, others @ ..] = weights();
        for level in self.levels() {
            others.into_iter().for_each(|weight| self.sweep(step, level, weight));
            if !self.is_last(level) {
                self.restrict(step, level);
            }
        }
        for level in self.levels().rev() {
            if !self.is_last(level) {
                self.correct(step, level);
            }
            for weight in others.into_iter().rev().chain([first]) {
                self.sweep(step, level, weight);
            }
        }
    }

    /// Returns what a grid's correction leaves of its defect in a cell at an offset.
    fn left<'g>(&self, s: &Scope<'g>, level: u8, at: &[i32]) -> Expr<'g> {
        let [diagonal, correction] =
            [DIAGONAL, CORRECTION].map(|what| s.field(&self.name(what, level)).at_slice(at));
        let beside = s.field(&self.name(CORRECTION, level));
        let flow = self.flow(s, level, at, &|axis, by| {
            let mut place = at.to_vec();
            place[axis] += by;
            beside.at_slice(&place)
        });
        let left = self.rest(s, level, at) - diagonal * correction + flow;
        // Outermost cells that are held have no faces, and cells that take no part no mean.
        let may_take_no_part = self.system.even.is_some() || self.system.how.null_space;
        if level == 0 && may_take_no_part { diagonal.ne(0.0).select(left, 0.0) } else { left }
    }

    /// Adds what takes the rest of a grid to the next coarser one, with the first sweep there.
    fn restrict(&self, step: &mut Step<'_>, level: u8) {
        let next = level + 1;
        // On few cells a device waits for what a stage is, not for its values: two stages are shorter than one.
        let name = (level > 0).then(|| self.name(LEFT, level));
        if let Some(name) = &name {
            step.stage(name, |s| s.set(name, self.left(s, level, &self.own())));
        }
        step.stage(&self.name(REST, next), |s| {
            let joined = self.joined(s, next, None, |child| match &name {
                Some(name) => s.field(name).at_slice(child),
                None => self.left(s, level, child),
            });
            s.set(&self.name(REST, next), joined);
            s.set(&self.name(CORRECTION, next), self.first_sweep(s, next, joined));
        });
    }

    /// Returns the name of the field of the preconditioned defect.
    pub fn correction(&self) -> String {
        self.name(CORRECTION, 0)
    }
}
