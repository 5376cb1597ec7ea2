//! Diffusion problems of the kinds that users have, solved by both multigrids: that of a step, which knows the grid, and that of
//! matrices.

use std::sync::Arc;
use std::time::Instant;

use abide::program::{Centring, Definition, Program, SolveMethod};
use abide::solve::{Matrix, Method, Nullspace, Preconditioning, Solve, SolverError, true_residual};
use abide::sparse::Triplets;
use abide::{Array, Boundaries, Choice, DType, Result, Simulation, Start};
use serde::Serialize;

use crate::rates;

/// The residual, over the right-hand side's norm, at which a solve ends.
pub const TOLERANCE: f64 = 1e-8;
/// The most iterations.
const MOST: usize = 300;

/// What a side of the box is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    /// The value is 0.
    Value,
    /// Nothing flows through it.
    Closed,
    /// It is joined to the other side.
    Joined,
}

use Side::{Closed, Joined, Value};

/// Finite volumes of −∇·(k∇p) + s p = f on a box of cells, slowest axis first.
pub struct Problem {
    /// What it is.
    pub name: &'static str,
    shape: [usize; 3],
    /// The widths of cells along each axis.
    widths: [Vec<f64>; 3],
    sides: [[Side; 2]; 3],
    /// The conductivity of each cell; 0 in those that take no part.
    k: Vec<f64>,
    /// The part of the field itself, for each unit of volume.
    s: f64,
}

/// The result of one method on one problem.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The problem.
    pub problem: &'static str,
    /// Cells.
    pub cells: usize,
    /// `multigrid` in a step, or `amg` of a matrix.
    pub method: &'static str,
    /// Where it ran.
    pub backend: &'static str,
    /// Iterations of conjugate gradients.
    pub iterations: usize,
    /// The factor by which an iteration reduces the residual, in the geometric mean.
    pub factor: f64,
    /// Milliseconds of a solve, the median of the runs.
    pub milliseconds: f64,
    /// Distance from the median to the farthest run, in percent of the median.
    pub spread_percent: f64,
    /// Milliseconds before the first solve, once for a matrix; 0 where each solve has its own set-up.
    pub setup_milliseconds: f64,
    /// The residual over the right-hand side's norm, computed apart from the solver.
    pub true_residual: f64,
}

impl Row {
    /// Returns whether the method reached the tolerance.
    pub fn converged(&self) -> bool {
        self.true_residual <= 2.0 * TOLERANCE
    }

    /// Returns whether the residual is what the solver said: small enough, unless the iterations were used up.
    pub fn holds(&self) -> bool {
        self.converged() || (self.iterations >= MOST && self.true_residual.is_finite())
    }
}

/// Returns fourteen problems on some `size`³ cells, or (4 `size`)² in two dimensions.
pub fn problems(size: usize) -> Vec<Problem> {
    let n = size.max(8);
    let (cube, plane) = ([n; 3], [1, 4 * n, 4 * n]);
    let wide = [n / 2, 3 * n / 2, 3 * n / 2];
    let sides = |z: [Side; 2], y: [Side; 2], x: [Side; 2]| [z, y, x];
    let closed = sides([Closed; 2], [Closed; 2], [Closed; 2]);
    let around = sides([Closed; 2], [Joined; 2], [Joined; 2]);
    let even = |shape: [usize; 3]| shape.map(|cells| vec![1.0 / n as f64; cells]);
    let one = |shape: [usize; 3]| vec![1.0; shape.iter().product()];
    let problem =
        |name, shape: [usize; 3], sides, k| Problem { name, shape, widths: even(shape), sides, k, s: 0.0 };
    let mut all = vec![
        problem("2D periodic", plane, around, one(plane)),
        problem(
            "2D values at the sides, odd",
            [1, 4 * n - 1, 3 * n + 1],
            sides([Closed; 2], [Value; 2], [Value; 2]),
            one([1, 4 * n - 1, 3 * n + 1]),
        ),
        problem("3D periodic", cube, sides([Joined; 2], [Joined; 2], [Joined; 2]), one(cube)),
        problem("3D closed", cube, closed, one(cube)),
        problem(
            "3D mixed sides, odd",
            [n + 1, 3 * n / 4 - 1, n / 2 + 1],
            sides([Closed; 2], [Joined; 2], [Value, Closed]),
            one([n + 1, 3 * n / 4 - 1, n / 2 + 1]),
        ),
        problem(
            "smooth k, 1 to 100",
            cube,
            sides([Closed; 2], [Closed; 2], [Value; 2]),
            of_places(cube, |[z, y, x]| {
                10f64.powf(1.0 + (6.0 * x).sin() * (5.0 * y).cos() * (7.0 * z + 1.0).sin())
            }),
        ),
        problem("bubbles, k 1 to 1000", cube, closed, balls(cube, (8, 0.15, 3), [1000.0, 1.0])),
        problem("blocks, k 1 to 1e6", cube, closed, blocks(cube)),
        problem("solid spheres", cube, around, balls(cube, (12, 0.12, 11), [0.0, 1.0])),
        problem("ocean, wide cells", wide, closed, sea(wide)),
        problem("channel, heights 1 to 100", cube, around, one(cube)),
        problem("wide cells, 1 to 100", wide, closed, one(wide)),
        problem("2D stretched both ways", plane, closed, one(plane)),
        problem("a part of the field itself", cube, sides([Value; 2], [Value; 2], [Value; 2]), one(cube)),
    ];
    for own in &mut all {
        match own.name {
            "ocean, wide cells" => own.widths[0].fill(0.1 / n as f64),
            "channel, heights 1 to 100" => {
                own.widths[0] = stretched(n, 100.0);
                own.widths[1].fill(6.0 / n as f64);
                own.widths[2].fill(3.0 / n as f64);
            }
            "wide cells, 1 to 100" => own.widths[0].fill(0.01 / n as f64),
            "2D stretched both ways" => {
                own.widths[1] = stretched(4 * n, 100.0);
                own.widths[2] = stretched(4 * n, 100.0);
            }
            "a part of the field itself" => own.s = (n * n) as f64 / 10.0,
            _ => {}
        }
    }
    all
}

/// Returns the values of a function of the cells' centres, in units of the box.
fn of_places<T>(shape: [usize; 3], f: impl Fn([f64; 3]) -> T) -> Vec<T> {
    let place = |cell: usize, axis: usize| (cell as f64 + 0.5) / shape[axis] as f64;
    cells(shape).map(|[z, y, x]| f([place(z, 0), place(y, 1), place(x, 2)])).collect()
}

fn cells(shape: [usize; 3]) -> impl Iterator<Item = [usize; 3]> {
    (0..shape[0]).flat_map(move |z| (0..shape[1]).flat_map(move |y| (0..shape[2]).map(move |x| [z, y, x])))
}

/// Balls at random places, around the sides: one value inside of them, another one outside.
fn balls(
    shape: [usize; 3],
    (count, radius, seed): (usize, f64, u64),
    [inside, outside]: [f64; 2],
) -> Vec<f64> {
    let mut random = fastrand::Rng::with_seed(seed);
    let centres: Vec<[f64; 3]> = (0..count).map(|_| [random.f64(), random.f64(), random.f64()]).collect();
    of_places(shape, |place| {
        let square = |centre: &[f64; 3]| {
            (0..3)
                .map(|axis| (place[axis] - centre[axis]).abs())
                .map(|far| far.min(1.0 - far).powi(2))
                .sum::<f64>()
        };
        if centres.iter().any(|centre| square(centre) < radius * radius) { inside } else { outside }
    })
}

/// Blocks of five cells a side, each with a random conductivity.
fn blocks(shape: [usize; 3]) -> Vec<f64> {
    let mut random = fastrand::Rng::with_seed(5);
    let many = shape.map(|cells| cells.div_ceil(5));
    let own: Vec<f64> = (0..many.iter().product()).map(|_| 10f64.powf(6.0 * random.f64())).collect();
    cells(shape).map(|[z, y, x]| own[(z / 5 * many[1] + y / 5) * many[2] + x / 5]).collect()
}

/// A sea over a floor of waves, and a wall with a gap of two cells.
fn sea(shape: [usize; 3]) -> Vec<f64> {
    let (middle, gap) = (shape[2] / 2, shape[1] / 2..shape[1] / 2 + 2);
    let floor =
        of_places(shape, |[z, y, x]| z - (1.0 - (0.65 + 0.3 * (5.0 * x + 1.0).sin() * (7.0 * y).cos())));
    let open = |([z, y, x], above): ([usize; 3], f64)| match x == middle {
        true => gap.contains(&y) && 10 * z > 3 * shape[0],
        false => above > 0.0,
    };
    cells(shape).zip(floor).map(|own| f64::from(u8::from(open(own)))).collect()
}

/// Returns widths by a tanh, small at both ends, the largest `ratio` times the least; their sum is 1.
fn stretched(n: usize, ratio: f64) -> Vec<f64> {
    let widths = |by: f64| -> Vec<f64> {
        let edge = |k: usize| (by * (2.0 * k as f64 / n as f64 - 1.0)).tanh() / by.tanh();
        (0..n).map(|k| (edge(k + 1) - edge(k)) / 2.0).collect()
    };
    let (mut low, mut high) = (1e-3, 20.0);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        let own = widths(middle);
        let (least, most) = own.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), w| (a.min(*w), b.max(*w)));
        if most > ratio * least { high = middle } else { low = middle }
    }
    widths(low)
}

impl Problem {
    /// Returns the number of cells.
    pub fn cells(&self) -> usize {
        self.k.len()
    }

    fn at(&self, [z, y, x]: [usize; 3]) -> usize {
        (z * self.shape[1] + y) * self.shape[2] + x
    }

    fn volume(&self, cell: [usize; 3]) -> f64 {
        (0..3).map(|axis| self.widths[axis][cell[axis]]).product()
    }

    fn is_joined(&self, axis: usize) -> bool {
        self.sides[axis][0] == Joined
    }

    /// Returns whether constants flow nowhere.
    fn is_singular(&self) -> bool {
        self.s == 0.0 && self.sides.iter().flatten().all(|side| *side != Value)
    }

    /// Returns what flows through the face before a cell, or behind the last one, for a difference of 1.
    fn flow(&self, axis: usize, face: [usize; 3]) -> f64 {
        let last = self.shape[axis] - 1;
        let cell = |along: usize| {
            let mut own = face;
            own[axis] = along;
            own
        };
        // What half a cell lets through.
        let half = |own: [usize; 3]| {
            let width = self.widths[axis][own[axis]];
            2.0 * self.k[self.at(own)] * self.volume(own) / (width * width)
        };
        let both =
            |one: f64, other: f64| if one > 0.0 && other > 0.0 { one * other / (one + other) } else { 0.0 };
        match face[axis] {
            0 if self.is_joined(axis) && last > 0 => both(half(cell(0)), half(cell(last))),
            0 if self.sides[axis][0] == Value => half(cell(0)),
            at if at > last && self.sides[axis][1] == Value => half(cell(last)),
            at if at == 0 || at > last => 0.0,
            at => both(half(cell(at - 1)), half(cell(at))),
        }
    }

    /// Returns the right-hand side: random numbers, without their mean where constants flow nowhere.
    fn rhs(&self) -> Vec<f64> {
        let mut random = fastrand::Rng::with_seed(7);
        let mut b: Vec<f64> =
            self.k.iter().map(|&k| if k > 0.0 { 2.0 * random.f64() - 1.0 } else { 0.0 }).collect();
        if self.is_singular() {
            let live = self.k.iter().filter(|&&k| k > 0.0).count();
            let mean = b.iter().sum::<f64>() / live as f64;
            b.iter_mut().zip(&self.k).filter(|(_, k)| **k > 0.0).for_each(|(b, _)| *b -= mean);
        }
        b
    }

    /// Returns the matrix; cells that take no part have rows of the identity.
    fn matrix(&self) -> Result<Matrix> {
        let mut triplets = Triplets::<f64>::new(self.cells(), self.cells())?;
        triplets.reserve(7 * self.cells() as u64)?;
        for cell in cells(self.shape) {
            let row = self.at(cell);
            let mut diagonal = if self.k[row] > 0.0 { self.s * self.volume(cell) } else { 0.0 };
            for axis in 0..3 {
                let (n, at) = (self.shape[axis], cell[axis]);
                let goes_round = self.is_joined(axis) && n > 1;
                let along = |to: usize| {
                    let mut other = cell;
                    other[axis] = to;
                    other
                };
                let behind = if goes_round { (at + 1) % n } else { at + 1 };
                for (face, is_inside, to) in
                    [(at, at > 0, (at + n - 1) % n), (behind, at + 1 < n, (at + 1) % n)]
                {
                    let flow = self.flow(axis, along(face));
                    diagonal += flow;
                    if flow > 0.0 && (is_inside || goes_round) {
                        triplets.push(row, self.at(along(to)), -flow)?;
                    }
                }
            }
            triplets.push(row, row, if diagonal > 0.0 { diagonal } else { 1.0 })?;
        }
        Ok(triplets.into_csr()?.into())
    }

    /// Returns a step that solves the problem.
    fn program(&self) -> Result<Program> {
        let mut p = Definition::new("diffusion", 3);
        p.field("p", Centring::CELL).field("f", Centring::CELL).field("volume", Centring::CELL);
        for (axis, name) in FLOWS.into_iter().enumerate() {
            p.field(name, Centring::face(3, axis));
        }
        p.parameter("s", self.s, "the part of the field itself");
        let how = abide::program::Solve {
            method: SolveMethod::Multigrid,
            tolerance: TOLERANCE,
            most: MOST as u64,
            null_space: self.is_singular(),
        };
        p.step().solve(
            "p",
            &how,
            &|s| {
                let (p, volume) = (s.field("p"), s.field("volume"));
                let own = s.param("s") * volume.here() * p.here();
                FLOWS.into_iter().enumerate().fold(own, |sum, (axis, name)| {
                    let flow = s.field(name);
                    let before = flow.along(axis, 0) * (p.here() - p.along(axis, -1));
                    sum + before + flow.along(axis, 1) * (p.here() - p.along(axis, 1))
                })
            },
            &|s| s.field("f").here(),
        );
        p.build()
    }

    /// Solves in a step, `repeats` times after one that is not timed.
    ///
    /// # Errors
    ///
    /// Those of the run.
    pub fn in_a_step(&self, backend: Choice, repeats: usize) -> Result<Row> {
        let sides = ["z", "y", "x"].into_iter().enumerate().map(|(axis, name)| {
            format!("{name}={}", if self.is_joined(axis) { "periodic" } else { "constant=0" })
        });
        let boundaries =
            Boundaries::parse(&sides.collect::<Vec<_>>().join(","), abide::Boundary::Constant(0.0))?;
        let b = self.rhs();
        let volume =
            cells(self.shape).map(|cell| if self.k[self.at(cell)] > 0.0 { self.volume(cell) } else { 0.0 });
        let mut builder = Simulation::builder(Arc::new(self.program()?))
            .size(&self.shape)
            .dtype(DType::F64)
            .boundaries(boundaries)
            .backend(backend)
            .start("p", Start::Constant(0.0))
            .input("f", Array::F64(b.clone()))
            .input("volume", Array::F64(volume.collect()));
        for (axis, name) in FLOWS.into_iter().enumerate() {
            let mut faces = self.shape;
            faces[axis] += usize::from(!self.is_joined(axis));
            builder =
                builder.input(name, Array::F64(cells(faces).map(|face| self.flow(axis, face)).collect()));
        }
        let mut run = builder.build()?;
        let zeros = Array::zeros(DType::F64, self.cells())?;
        let mut seconds = Vec::new();
        for turn in 0..=repeats {
            run.write("p", &zeros)?;
            let report = run.run(1)?;
            if turn > 0 {
                seconds.push(report.seconds);
            }
        }
        let residual = true_residual(&self.matrix()?, &Array::F64(b), &run.field("p")?)?;
        Ok(self.row("multigrid", run.backend(), run.scalar("p_iterations")? as usize, residual, seconds, 0.0))
    }

    /// Solves the problem's matrix by conjugate gradients with algebraic multigrid, on the CPU, `repeats` times after one that
    /// is not timed.
    ///
    /// # Errors
    ///
    /// Those of the solver that say nothing of iterations.
    pub fn by_amg(&self, repeats: usize) -> Result<Row, SolverError> {
        let (matrix, b) = (self.matrix()?, Array::F64(self.rhs()));
        let begun = Instant::now();
        let whole = self.k.iter().all(|&k| k > 0.0);
        let mut system = Solve::new(matrix)
            .method(Method::Cg)
            .preconditioner(Preconditioning::Amg { strength: 0.08 })
            .nullspace(if self.is_singular() && whole { Nullspace::Constant } else { Nullspace::None })
            .backend(Choice::CPU)
            .tolerance(TOLERANCE)
            .max_iterations(MOST)
            .open()?;
        let setup = begun.elapsed().as_secs_f64();
        let (mut seconds, mut iterations, mut x) = (Vec::new(), 0, Array::zeros(DType::F64, self.cells())?);
        for turn in 0..=repeats {
            x = Array::zeros(DType::F64, self.cells())?;
            let outcome = system.solve_from(&b, &mut x);
            let report = match outcome {
                Ok(report) => report,
                // What is left of the residual says how it ended.
                Err(error) => match error.report() {
                    Some(report) => report.clone(),
                    None => return Err(error),
                },
            };
            iterations = report.iterations;
            if turn > 0 {
                seconds.push(report.iteration_seconds);
            }
        }
        let residual = system.true_residual(&b, &x)?;
        Ok(self.row("amg", "cpu", iterations, residual, seconds, setup))
    }

    fn row(
        &self,
        method: &'static str,
        backend: &'static str,
        iterations: usize,
        residual: f64,
        seconds: Vec<f64>,
        setup: f64,
    ) -> Row {
        let b = self.rhs();
        let norm = b.iter().map(|b| b * b).sum::<f64>().sqrt();
        let (middle, spread) =
            rates(&seconds).map_or((0.0, 0.0), |rates| (rates.median, rates.spread_percent));
        Row {
            problem: self.name,
            cells: self.cells(),
            method,
            backend,
            iterations,
            factor: (residual / norm).powf(1.0 / iterations.max(1) as f64),
            milliseconds: 1e3 * middle,
            spread_percent: spread,
            setup_milliseconds: 1e3 * setup,
            true_residual: residual / norm,
        }
    }
}

const FLOWS: [&str; 3] = ["flow_z", "flow_y", "flow_x"];

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows add up to what the sides and the field itself hold, matrices are symmetric, and both methods find one solution.
    #[test]
    fn matrices_and_steps_are_the_same_problems() {
        for problem in problems(8) {
            let Matrix::Stored(matrix) = problem.matrix().unwrap() else { panic!("it is stored") };
            assert!(matrix.is_symmetric(), "{}", problem.name);
            let sums = matrix.matvec(&Array::F64(vec![1.0; problem.cells()])).unwrap().to_f64();
            if problem.is_singular() {
                let live = sums.iter().zip(&problem.k).filter(|(_, k)| **k > 0.0);
                let most = matrix.diagonal().unwrap().magnitude();
                assert!(live.into_iter().all(|(sum, _)| sum.abs() < 1e-12 * most), "{}", problem.name);
            }
            let own = problem.by_amg(1).unwrap();
            assert!(own.converged() && own.iterations < 40, "{own:?}");
            let other = problem.in_a_step(Choice::CPU, 1).unwrap();
            let is_hard = problem.name.contains("wide") || problem.name.contains("stretched");
            assert!(is_hard || other.converged(), "{other:?}");
        }
    }
}
