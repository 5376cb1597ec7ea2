//! Random problems for long runs, whose results depend on every value of every step.
//!
//! A stencil that smooths forgets: after thousands of steps a value that was wrong once leaves no trace. So
//! half the problems here are lattices of coupled logistic maps (Kaneko, Prog. Theor. Phys. 72, 1984), which
//! are chaotic: the smallest difference grows until it shows everywhere.

use std::sync::Arc;

use abide_core::{
    Array, Boundaries, Boundary, DType, Expr, Problem, Program, Result, Scope, Shape, Start, Stencil,
    catalogue,
};
use fastrand::Rng;

/// The parameter of the logistic map `u' = GROWTH·u·(1 − u)`; chaotic, and maps 0 to 1 into itself.
const GROWTH: f64 = 3.9;

/// The part of a weighted mean that is not the cell's own. The map tears neighbours apart by e^½ per step on
/// average; a coupling that contracts them by less leaves a lattice chaotic under any boundary.
const COUPLING: f64 = 0.15;

/// The computation of a lattice's stage.
#[derive(Debug, Clone, Copy)]
enum Stage {
    /// The map of one field's weighted mean.
    One,
    /// Two fields, each with a little of the other.
    Two,
    /// The first half of a step: the weighted mean of the first field into the second.
    Mean,
    /// The second half: the map of a mean of both into the first.
    Map,
}

/// A lattice of coupled maps whose weights are all different, so that no neighbour can stand for another.
struct Lattice {
    axes: usize,
    taps: Vec<(Vec<i32>, f64)>,
    stage: Stage,
}

impl Lattice {
    fn random(rng: &mut Rng, axes: usize, stage: Stage) -> Lattice {
        let radius: i32 = [6, 3, 2][axes - 1];
        let radius = rng.i32(1..=radius);
        let mut offsets = Vec::new();
        if rng.bool() && axes > 1 {
            // A box of radius 1.
            let each = |number: usize| {
                (0..axes).map(|axis| (number / 3usize.pow(axis as u32) % 3) as i32 - 1).collect()
            };
            offsets.extend((0..3usize.pow(axes as u32)).map(each));
        } else {
            offsets.push(vec![0; axes]);
            for (axis, distance) in (0..axes).flat_map(|axis| (-radius..=radius).map(move |d| (axis, d))) {
                let mut offset = vec![0; axes];
                offset[axis] = distance;
                if distance != 0 {
                    offsets.push(offset);
                }
            }
        }
        offsets.sort_unstable();
        let shares: Vec<f64> = offsets.iter().map(|_| 0.1 + rng.f64()).collect();
        let sum: f64 = shares.iter().sum();
        let weight = |(offset, share): (Vec<i32>, f64)| {
            let own = if offset.iter().all(|&o| o == 0) { 1.0 - COUPLING } else { 0.0 };
            (offset, own + COUPLING * share / sum)
        };
        Lattice { axes, taps: offsets.into_iter().zip(shares).map(weight).collect(), stage }
    }

    /// Returns a weighted mean around the cell, summed in one chain as a linear stencil is.
    fn mean<'g>(&self, s: &Scope<'g>, field: &str) -> Expr<'g> {
        let field = s.field(field);
        let mut taps = self.taps.iter().map(|(offset, weight)| (field.at_slice(offset), *weight));
        let first = taps.next().map_or_else(|| s.constant(0.0), |(tap, weight)| weight * tap);
        taps.fold(first, |sum, (tap, weight)| tap.mul_add(weight, sum))
    }
}

fn logistic(u: Expr<'_>) -> Expr<'_> {
    GROWTH * u * (1.0 - u)
}

impl Stencil for Lattice {
    fn name(&self) -> &str {
        match self.stage {
            Stage::One => "lattice",
            Stage::Two => "lattices",
            Stage::Mean => "mean",
            Stage::Map => "map",
        }
    }

    fn dimensions(&self) -> usize {
        self.axes
    }

    fn fields(&self) -> Vec<String> {
        let names: &[&str] = if matches!(self.stage, Stage::One) { &["a"] } else { &["a", "b"] };
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn define(&self, s: &Scope<'_>) {
        match self.stage {
            Stage::One => s.set("a", logistic(self.mean(s, "a"))),
            Stage::Two => {
                for (own, other) in [("a", "b"), ("b", "a")] {
                    s.set(own, logistic(0.9 * self.mean(s, own) + 0.1 * s.field(other).here()));
                }
            }
            Stage::Mean => s.set("b", self.mean(s, "a")),
            Stage::Map => s.set("a", logistic(0.8 * self.mean(s, "b") + 0.2 * s.field("a").here())),
        }
    }
}

/// Makes a chaotic program of one or two fields, or of two stages.
pub fn lattice(rng: &mut Rng, axes: usize) -> Result<Program> {
    match rng.u8(0..3) {
        0 => Program::new(&Lattice::random(rng, axes, Stage::One)),
        1 => Program::new(&Lattice::random(rng, axes, Stage::Two)),
        _ => {
            let (mean, map) =
                (Lattice::random(rng, axes, Stage::Mean), Lattice::random(rng, axes, Stage::Map));
            Program::sequence("lattice of two stages", &[&mean, &map])
        }
    }
}

/// Makes a problem and its initial fields, by number: a lattice, or every other time an entry of the
/// catalogue, on a line of at most 100 000 cells, a square of 300² or a cube of 40³, often thin along an
/// axis.
pub fn random(number: usize, seed: u64) -> Result<(Problem, Vec<Array>)> {
    let mut rng = Rng::with_seed(seed);
    let axes = [2, 3, 2, 1, 3][number / 2 % 5];
    let program = if number.is_multiple_of(2) {
        lattice(&mut rng, axes)?
    } else {
        let entries: Vec<_> = catalogue::plain().filter(|entry| entry.dimensions.contains(&axes)).collect();
        entries[rng.usize(0..entries.len())].program(axes)?
    };
    let most = [100_000, 300, 40][axes - 1];
    let dtype = [DType::F64, DType::F32][number / 2 % 2];
    let program = Arc::new(program);
    let mut problem = Problem::unchecked(program, Shape::new(&[1])?, dtype);
    problem.boundaries = Boundaries::all(Boundary::Fixed);
    // A domain thinner than the radius has no periodic or mirrored ghosts: then the next one is drawn.
    loop {
        let extent = |rng: &mut Rng| if rng.u8(0..4) == 0 { rng.usize(1..=12) } else { rng.usize(12..=most) };
        let extents: Vec<usize> = (0..axes).map(|_| extent(&mut rng)).collect();
        problem.shape = Shape::new(&extents)?;
        problem.set_boundaries(Boundaries([(); 3].map(|()| {
            let kinds = Boundary::each_alone(0.3);
            match rng.u8(0..3) {
                0 => [Boundary::Periodic; 2],
                1 => [Boundary::Fixed; 2],
                _ => [(); 2].map(|()| kinds[rng.usize(0..kinds.len())]),
            }
        })));
        if problem.is_plain() && problem.check().is_ok() {
            break;
        }
    }
    let names = problem.program.fields().iter().enumerate();
    let start = |(field, name): (usize, &String)| {
        let seed = seed + 1000 * (1 + field as u64);
        let start = match (problem.program.name(), name.as_str()) {
            ("life", _) => Start::Coin { seed, probability: 0.4 },
            // A conductivity beyond 1/6 would grow without bound in 3D.
            (_, "kappa") => Start::Random { seed, low: 0.01, high: 0.15 },
            _ => Start::Random { seed, low: 0.05, high: 0.95 },
        };
        start.fill(&problem.shape, problem.dtype)
    };
    let fields = names.map(start).collect::<Result<_>>()?;
    Ok((problem, fields))
}

/// Describes a problem, with the seed that makes it again.
pub fn words(problem: &Problem, number: usize, seed: u64) -> String {
    let boundaries = problem.boundaries.describe(problem.shape.dimensions());
    let (name, shape, dtype) = (problem.program.name(), problem.shape, problem.dtype);
    format!("domain {number} (seed {seed}): {name} {shape} {dtype} {boundaries}")
}
