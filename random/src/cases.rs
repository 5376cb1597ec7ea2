//! Programs that are not plain, on domains of odd extents: fields of all centrings and boundaries,
//! temporaries that reach beyond the domain, reductions, scalars that steer, cycles of several steps, masks
//! and copies.

use std::sync::Arc;

use abide_core::program::{Centring, Definition, Program, Reduction, Region, Step, Wall};
use abide_core::{
    Array, Boundaries, Boundary, DType, Expr, Field, Precision, Problem, Result, Scope, Shape, Start,
};

/// A problem, its start and a number of steps.
pub struct Case {
    /// The name, with the domain, the type and the boundary.
    pub name: String,
    /// The problem.
    pub problem: Problem,
    /// The initial fields.
    pub start: Vec<Array>,
    /// The number of steps.
    pub steps: u64,
}

impl Case {
    pub(crate) fn new(
        name: &str,
        program: Program,
        boundary: &str,
        extents: &[usize],
        dtype: DType,
        steps: u64,
    ) -> Result<Case> {
        let mut problem = Problem::unchecked(Arc::new(program), Shape::new(extents)?, dtype);
        problem.boundaries = Boundaries::parse(boundary, problem.program.boundary())?;
        problem.lower_walls()?;
        problem.check()?;
        assert!(!problem.is_plain(), "{name} is plain");
        let name = format!("{name} {} {dtype} {boundary}", problem.shape);
        let start = (0..problem.program.fields().len()).map(|field| {
            let start = Start::Random { seed: 3 + field as u64, low: -0.9, high: 0.9 };
            let mut values = start.fill(&problem.shape_of(field)?, dtype)?;
            problem.round(field, &mut values);
            Ok(values)
        });
        Ok(Case { name, start: start.collect::<Result<_>>()?, problem, steps })
    }
}

/// Returns the sum of a field's values at distances along an axis, each with a weight.
fn along<'g>(field: Field<'_, 'g>, axis: usize, taps: &[(i32, f64)]) -> Expr<'g> {
    let terms = taps.iter().map(|&(by, weight)| field.along(axis, by) * weight);
    terms.reduce(|sum, term| sum + term).unwrap_or_else(|| field.along(axis, 0))
}

/// Fields on cells, nodes and faces; temporaries that are read two beyond the domain; two steps by turns.
fn staggered(dimensions: usize, own: &[(&str, &str)]) -> Result<Program> {
    let (slow, fast) = (0, dimensions - 1);
    let mut p = Definition::new("staggered", dimensions);
    p.boundary(Boundary::Mirror).field("c", Centring::CELL).field("n", Centring::NODE);
    p.field("f", Centring::face(dimensions, fast)).field("g", Centring::face(dimensions, slow));
    p.field("spare", Centring::CELL).temporary("t", Centring::CELL).temporary("s", Centring::NODE);
    p.temporary("unread", Centring::CELL);
    p.parameter("rate", 0.07, "weight of what flows");
    p.scalar("largest", None, "largest value").scalar("steps", Some(0.0), "steps done");
    p.scalar("total", Some(1.0), "sum of all nodes but the outermost");
    for (field, boundary) in own {
        p.boundary_of(field, boundary);
    }
    let temporaries = |step: &mut Step<'_>| {
        step.stage("cells", |s| {
            let (c, f, g) = (s.field("c"), s.field("f"), s.field("g"));
            let value = along(c, fast, &[(-1, 0.2), (0, 0.3), (1, 0.1)])
                + along(f, fast, &[(0, 0.1), (1, -0.1)])
                + along(g, slow, &[(0, 0.15), (1, -0.12)]);
            s.set("t", value);
            s.set("unread", 2.0 * value);
        });
        // The first node of an axis lies between the cells -1 and 0.
        step.stage("nodes", |s| {
            let corner = vec![-1; dimensions];
            s.set(
                "s",
                0.5 * (s.field("t").at_slice(&corner) + s.field("t").along(slow, 0)) + s.coord(fast) * 1e-3,
            );
        });
    };
    let mut step = p.step();
    step.reduce("largest", Reduction::Max, Centring::CELL, |s| s.field("c").here().abs());
    temporaries(&mut step);
    step.stage("faces", |s| {
        let weight = s.param("rate") / (1.0 + s.param("largest"));
        let flow = along(s.field("s"), fast, &[(-2, 1.0), (2, -1.0)]);
        s.set("f", 0.9 * s.field("f").here() + weight * flow);
    });
    step.stage("other faces", |s| {
        let flow =
            along(s.field("s"), slow, &[(-2, 0.5), (1, -0.5)]) + along(s.field("t"), slow, &[(-2, 0.1)]);
        s.set("g", 0.9 * s.field("g").here() + s.param("rate") * flow);
    });
    step.stage("cells again", |s| {
        let (c, f, g, n) = (s.field("c"), s.field("f"), s.field("g"), s.field("n"));
        let change = along(f, fast, &[(0, 0.2), (1, -0.2)]) + along(g, slow, &[(0, 0.2), (1, -0.2)]);
        s.set("c", 0.8 * c.here() + change + 0.1 * n.at_slice(&vec![1; dimensions]));
    });
    step.compute("steps", |s| s.param("steps") + 1.0);
    let mut step = p.step();
    temporaries(&mut step);
    step.stage("nodes by nodes", |s| {
        let n = s.field("n");
        let next =
            along(n, slow, &[(-2, 0.1), (0, 0.5), (2, 0.1)]) + along(n, fast, &[(-1, 0.15), (1, 0.05)]);
        s.set("n", next + 0.1 * s.field("s").here());
    });
    step.stage("masked", |s| {
        s.only_where(s.field("c").here().gt(0.0));
        s.set("c", s.field("c").here() * 0.5 + s.param("total") * 1e-3);
    });
    step.stage("spared", |s| s.set("spare", s.field("c").here()));
    step.stage("written back", |s| {
        s.set("c", 0.5 * s.field("spare").along(fast, -1) + 0.25 * s.field("c").along(slow, 1))
    });
    let inner = (0..dimensions).fold(Region::from(Centring::NODE), |region, axis| {
        region.without(3 - dimensions + axis, usize::from(axis == 0), 0)
    });
    step.reduce("total", Reduction::Sum, inner, |s| s.field("n").here() * s.field("n").along(fast, -1));
    step.compute("steps", |s| s.param("steps") + 1.0);
    p.build()
}

/// One field that is tapped two away along each axis and across, and what it becomes on each side.
fn ring(dimensions: usize, own: &str) -> Result<Program> {
    let mut p = Definition::new("ring", dimensions);
    p.boundary(Boundary::Clamp).field("u", Centring::CELL).field("v", Centring::NODE).boundary_of("u", own);
    p.boundary_of("v", own);
    for field in ["u", "v"] {
        p.field(
            if field == "u" { "w" } else { "x" },
            if field == "u" { Centring::CELL } else { Centring::NODE },
        );
    }
    let spread = |s: &Scope<'_>, from: &str, to: &str| {
        let field = s.field(from);
        let near = (0..dimensions)
            .map(|axis| along(field, axis, &[(-2, 0.11), (-1, 0.07), (1, 0.05), (2, 0.13)]))
            .reduce(|sum, term| sum + term)
            .unwrap_or_else(|| s.constant(0.0));
        let corners = field.at_slice(&vec![-2; dimensions]) - 0.5 * field.at_slice(&vec![1; dimensions]);
        s.set(to, 0.4 * field.here() + near + 0.05 * corners);
    };
    let mut step = p.step();
    step.stage("u", |s| spread(s, "u", "u")).stage("v", |s| spread(s, "v", "v"));
    step.stage("w", |s| spread(s, "u", "w")).stage("x", |s| spread(s, "v", "x"));
    p.build()
}

/// A clock that f32 cannot count, and what follows from it: scalars by elementary functions, of parameters and of
/// reductions, which a stage, a point and a ghost value read; and a coefficient that is tapped beyond the domain.
fn clock(dimensions: usize) -> Result<Program> {
    let mut p = Definition::new("clock", dimensions);
    let fast = dimensions - 1;
    p.field("u", Centring::CELL).field("k", Centring::CELL).boundary_of("u", "x-=constant=wave");
    p.parameter("dt", 1e-3, "time step").scalar("time", Some(40_000.0), "the clock");
    p.scalar("wave", Some(0.1), "what comes in").scalar("total", None, "sum").scalar("mean", None, "mean");
    p.step()
        .compute("time", |s| s.param("time") + s.param("dt"))
        .compute("wave", |s| {
            let time = s.param("time");
            0.4 * (0.3 * time).sin() * (time * -1e-5).exp() / (1.0 + time.pow(s.constant(0.3)).log())
        })
        .stage("spread", |s| {
            let (u, k) = (s.field("u"), s.field("k"));
            let flow = along(u, fast, &[(-1, 0.2), (0, -0.3), (1, 0.1)]);
            let weight = along(k, 0, &[(-1, 0.5), (2, 0.5)]) + 0.25 * k.along(fast, -2);
            s.set("u", 0.9 * u.here() + weight * flow + 1e-3 * s.param("wave"));
        })
        .points_slice("source", &[vec![0; dimensions]], |s| {
            s.set("u", 0.5 * s.field("u").here() + 1e-6 * s.param("time"));
        })
        .reduce("total", Reduction::Sum, Centring::CELL, |s| s.field("u").here() * s.param("wave"))
        .compute("mean", |s| s.param("total") / 3.0 + s.param("dt") * 1e-9);
    p.build()
}

/// Fields that keep their outermost values, beside others of the same centring that do not; copies and swaps.
fn walls(dimensions: usize) -> Result<Program> {
    let mut p = Definition::new("walls", dimensions);
    let fast = dimensions - 1;
    p.field("a", Centring::CELL).field("b", Centring::CELL).field("free", Centring::CELL);
    p.field("node", Centring::NODE).boundary_of("free", "periodic").temporary("t", Centring::CELL);
    let mut step = p.step();
    step.stage("both", |s| {
        let (a, b) = (s.field("a"), s.field("b"));
        s.set("a", 0.5 * a.here() + along(a, fast, &[(-2, 0.2), (1, 0.2)]) + 0.1 * b.here());
        s.set("t", a.here() * 0.5 + b.here());
    });
    step.stage("where it lies", |s| {
        s.set("b", 0.9 * s.field("b").here() + 0.1 * s.field("t").here());
    });
    step.stage("boxes that differ", |s| {
        s.set("b", 0.9 * s.field("b").here() + 0.1 * s.field("free").along(fast, 1));
        s.set("free", 0.9 * s.field("free").along(fast, -1) + 0.01 * s.field("b").here());
    });
    step.stage("copied", |s| s.set("b", s.field("a").here()));
    step.stage("free copied", |s| s.set("free", s.field("free").along(fast, 2)));
    step.stage("nodes", |s| {
        let node = s.field("node");
        s.set(
            "node",
            0.5 * node.here()
                + along(node, 0, &[(-1, 0.2), (1, 0.2)])
                + 0.1 * s.field("a").at_slice(&vec![-1; dimensions]),
        );
    });
    step.stage("swapped", |s| {
        s.set("a", s.field("b").here() * 0.5);
        s.set("b", s.field("a").here());
    });
    p.build()
}

/// Returns the place along the slowest axis, which is normal to no wall at the fastest one; a number where there is no other.
fn along_wall<'g>(s: &Scope<'g>, on: Centring) -> Expr<'g> {
    if s.dimensions() > 1 { s.position(0, on) } else { s.constant(0.75) }
}

/// Conditions at walls of every kind, of numbers, scalars and places along the wall, for fields on cells and nodes that are
/// tapped two away and across; a temporary and a reduction that read beyond the walls.
fn conditions(dimensions: usize) -> Result<Program> {
    let fast = dimensions - 1;
    let mut p = Definition::new("conditions", dimensions);
    p.boundary(Boundary::Mirror).field("u", Centring::CELL).field("k", Centring::CELL);
    p.field("n", Centring::NODE).temporary("flux", Centring::face(dimensions, fast));
    p.parameter("dx", 0.3, "cell in m").scalar("time", Some(0.5), "in s").scalar("total", None, "a sum");
    p.spacing(fast, |s| s.param("dx")).origin(0, |s| s.constant(-0.25));
    p.wall("u", "x-", |s| Wall::dirichlet((along_wall(s, Centring::CELL) + s.param("time")).sin()));
    p.wall("u", "x+", |s| Wall::robin(s.constant(0.5), s.param("dx"), s.param("time") * 0.125));
    p.wall("n", "x+", |s| Wall::neumann(along_wall(s, Centring::NODE) * 0.0625));
    p.wall("n", "x-", |s| Wall::dirichlet(s.param("time").cos()));
    match dimensions {
        1 => {}
        2 => drop(p.boundaries("u:y-=neumann=0.25,u:y+=constant=time,n:y=dirichlet=dx")),
        _ => drop(p.boundaries("u:y-=-mirror,u:y+=neumann=time,u:z=periodic,k:z=periodic,n:z-=dirichlet=1")),
    }
    p.step()
        .stage("flux", |s| {
            let (u, k) = (s.field("u"), s.field("k"));
            s.set("flux", (u.along(fast, 0) - u.along(fast, -1)) * (0.5 + 0.1 * k.along(fast, -1)));
        })
        .reduce("total", Reduction::Sum, Centring::CELL, |s| {
            s.field("u").along(fast, -2) - s.field("u").along(0, 1)
        })
        .stage("u", |s| {
            let (u, flux) = (s.field("u"), s.field("flux"));
            let across = u.at_slice(&vec![-1; dimensions]) - u.at_slice(&vec![1; dimensions]);
            let flow = along(flux, fast, &[(-1, 0.02), (0, -0.1), (1, 0.1), (2, -0.02)]);
            let near = along(u, 0, &[(-2, 0.04), (-1, 0.1), (1, 0.1), (2, 0.03)]);
            s.set("u", 0.6 * u.here() + flow + near + 0.05 * across + 1e-3 * s.param("total"));
        })
        .stage("n", |s| {
            let n = s.field("n");
            let near =
                along(n, 0, &[(-1, 0.1), (1, 0.1)]) + along(n, fast, &[(-2, 0.1), (1, 0.1), (2, 0.02)]);
            s.set("n", 0.5 * n.here() + near + 0.1 * s.field("u").at_slice(&vec![-1; dimensions]));
        })
        .compute("time", |s| s.param("time") + 0.125);
    p.build()
}

/// Random numbers: in a temporary that is read beside the cell and beyond the domain, on nodes, at a point, in a mask and in a
/// reduction.
fn draws(dimensions: usize) -> Result<Program> {
    let fast = dimensions - 1;
    let mut p = Definition::new("draws", dimensions);
    p.boundary(Boundary::Mirror).field("u", Centring::CELL).field("n", Centring::NODE);
    p.temporary("flux", Centring::face(dimensions, fast)).scalar("total", None, "a sum");
    p.parameter("seed", 3.0, "seed");
    p.step()
        .stage("flux", |s| {
            let u = s.field("u");
            let noise = 0.125 * s.normal(0) + s.uniform(700) - 0.5;
            s.set("flux", 0.1 * (u.along(fast, 0) - u.along(fast, -1)) + 0.0625 * noise);
        })
        .reduce("total", Reduction::Sum, Centring::CELL, |s| s.field("u").here() * s.uniform(1))
        .stage("u", |s| {
            let (u, flux) = (s.field("u"), s.field("flux"));
            s.only_where(s.bernoulli(2, s.constant(0.75)));
            let flow = along(flux, fast, &[(-1, 0.02), (0, -1.0), (1, 1.0), (2, -0.02)]);
            s.set("u", u.here() + flow + 1e-3 * s.param("total"));
        })
        .stage("n", |s| {
            let (n, u) = (s.field("n"), s.field("u"));
            let near = along(n, 0, &[(-1, 0.1), (1, 0.1)]) + 0.2 * u.at_slice(&vec![-1; dimensions]);
            s.set("n", 0.5 * n.here() + near + 0.03125 * s.exponential(3));
        })
        .points_slice("kicks", &[vec![0; dimensions], vec![1; dimensions]], |s| {
            s.set("u", s.field("u").here() + s.uniform(4));
        });
    p.build()
}

/// A stencil with noise, which schedules do several steps at a time.
fn noisy(dimensions: usize, boundary: Boundary) -> Result<Program> {
    let mut p = Definition::new("noisy", dimensions);
    p.boundary(boundary).field("u", Centring::CELL).field("v", Centring::CELL);
    p.step().stage("step", |s| {
        let (u, v) = (s.field("u"), s.field("v"));
        s.set("u", u.here() + 0.1 * u.laplacian() + 0.125 * v.here() * (s.uniform(0) - 0.5));
        s.set("v", s.bernoulli(1, s.constant(0.25)).select(v.along(0, 1), v.along(dimensions - 1, -1)));
    });
    p.build()
}

/// Coarser grids: what a cell joins, read from one and from two levels below with what lies beside it, stencils and sums there, and
/// what comes back by the place among the cells that are one.
fn levels(dimensions: usize, own: &str) -> Result<Program> {
    let fast = dimensions - 1;
    let (one, two) = (Centring::CELL.on_level(1), Centring::CELL.on_level(2));
    let mut p = Definition::new("levels", dimensions);
    p.boundary(Boundary::Clamp).field("u", Centring::CELL).field("one", one).field("again", one);
    p.field("two", two).field("faces", Centring::face(dimensions, fast).on_level(1)).boundary_of("one", own);
    p.boundary_of("u", own).boundary_of("two", own).temporary("flux", Centring::face(dimensions, fast));
    p.scalar("total", Some(0.0), "sum of a coarse grid").scalar("most", Some(0.0), "of both");
    let mut step = p.step();
    step.stage("join", |s| {
        let u = s.field("u");
        let pair = |axis: usize| 0.2 * u.along(axis, -1) + 0.3 * u.along(axis, 0) + 0.25 * u.along(axis, 1);
        s.set("one", pair(fast) + 0.1 * u.along(0, 2) + s.coord(fast) * 1e-3);
        s.set("again", 0.4 * (u.along(0, 0) + u.along(0, 1)));
    });
    step.stage("faces", |s| {
        let u = s.field("u");
        s.set("faces", 0.5 * (u.along(fast, 0) - u.along(fast, -1)) + 0.01 * s.field("one").along(fast, -1));
    });
    step.stage("join again", |s| {
        s.set(
            "two",
            0.3 * s.field("one").along(0, 1)
                + 0.1 * s.field("u").along(fast, 5)
                + 0.2 * s.field("u").along(0, -1),
        );
    });
    step.reduce("total", Reduction::Sum, two, |s| s.field("two").here());
    step.stage("spread", |s| {
        let one = s.field("one");
        let around = 0.05 * (one.along(fast, -1) + one.along(0, 1)) + 0.3 * one.here();
        s.set("one", around + 0.5 * s.field("two").along(fast, 0) + 0.1 * s.field("faces").along(fast, 1));
    });
    step.reduce("most", Reduction::Max, Centring::CELL, |s| {
        s.field("u").here() + s.field("one").along(0, 0).abs()
    });
    step.stage("flux", |s| {
        let u = s.field("u");
        s.set("flux", 0.1 * (u.along(fast, 0) - u.along(fast, -1)) + 0.01 * s.field("two").along(fast, -1));
    });
    step.stage("back", |s| {
        let (place, one) = (s.coord(fast), s.field("one"));
        let is_second = (place - 2.0 * (0.5 * place).floor()).gt(0.5);
        let beside = is_second.select(one.along(fast, 1), one.along(fast, -1));
        let flow = s.field("flux").along(fast, 1) - s.field("flux").along(fast, 0);
        let coarse = 0.1 * beside + 0.02 * one.along(0, -2) + 0.05 * s.field("again").along(0, 0);
        s.set(
            "u",
            0.7 * s.field("u").here() + flow + coarse + 1e-3 * (s.param("total") + s.param("most")).sin(),
        );
    });
    p.build()
}

/// Fields of every precision, which a device stores in fewer bytes: read beyond the domain, copied onto each other, written where they
/// lie and elsewhere, reduced, masked, made too large and too small for their precision.
fn precisions(dimensions: usize) -> Result<Program> {
    let fast = dimensions - 1;
    let mut p = Definition::new("precisions", dimensions);
    p.boundary(Boundary::Mirror).field("wide", Centring::CELL);
    p.field("single", Centring::CELL).precision("single", Precision::F32);
    p.field("half", Centring::CELL).precision("half", Precision::F16);
    p.field("other half", Centring::CELL).precision("other half", Precision::F16);
    p.field("faces", Centring::face(dimensions, fast)).precision("faces", Precision::Bf16);
    p.field("beside", Centring::face(dimensions, fast)).precision("beside", Precision::F16);
    p.boundary_of("half", "constant=0.1").boundary_of("faces", "-reflect").temporary("t", Centring::CELL);
    p.scalar("total", None, "a sum").scalar("most", None, "a maximum");
    let mut step = p.step();
    step.stage("join", |s| {
        let (half, faces) = (s.field("half"), s.field("faces"));
        s.set(
            "t",
            half.laplacian()
                + 0.2 * (faces.along(fast, 1) - faces.along(fast, 0))
                + s.field("single").along(0, -1),
        );
    });
    step.stage("turn", |s| {
        s.set("half", s.field("other half").here());
        s.set("other half", s.field("half").here());
    });
    step.stage("halves", |s| {
        s.set("half", s.field("half").here() + 0.1 * s.field("t").along(fast, 1));
        s.only_where(s.field("wide").here().gt(-0.5).select(s.constant(1.0), 0.0));
    });
    step.reduce("total", Reduction::Sum, Centring::CELL, |s| s.field("half").here());
    step.stage("beside", |s| {
        let t = s.field("t").here();
        s.set("single", 0.7 * s.field("single").along(fast, 1) + 1e-3 * t);
        // Beyond the largest number, or below the least normal one.
        let is_far = s.field("wide").here().gt(0.85);
        s.set("other half", is_far.select(9e4 * t, 1e-6 * t));
    });
    // The last face reads beyond the cells, where 0.1 is none of the numbers of 16 bits.
    step.stage("copy to faces", |s| s.set("beside", s.field("half").along(fast, 0)));
    step.stage("faces", |s| {
        let other = s.field("other half").along(fast, -1).max(-1.0).min(1.0);
        s.set("faces", 0.3 * s.field("faces").here() + other + 1e-3 * s.param("total"));
    });
    step.reduce("most", Reduction::Max, Centring::CELL, |s| s.field("single").here().abs());
    step.stage("wide", |s| {
        let sum = s.field("half").along(0, -1) + s.field("faces").along(fast, 1) + s.field("single").here();
        s.set("wide", 0.9 * s.field("wide").here() + 0.02 * sum + 1e-4 * s.param("most"));
    });
    p.build()
}

/// Loops: sweeps until they change little, turns of a number that differs from step to step, one at the beginning and one at the
/// end of a step, one that is over before its first turn, and one that is carried out once; what they make changes buffers in each
/// turn.
fn loops(dimensions: usize) -> Result<Program> {
    let fast = dimensions - 1;
    let mut p = Definition::new("loops", dimensions);
    p.boundary(Boundary::Mirror).field("u", Centring::CELL).field("f", Centring::face(dimensions, fast));
    p.field("old", Centring::CELL).temporary("flux", Centring::face(dimensions, fast));
    p.field("base", Centring::CELL).field("grown", Centring::CELL).parameter(
        "rate",
        0.25,
        "of what is made once",
    );
    p.scalar("change", Some(1.0), "largest change").scalar("left", Some(2.0), "turns that are left");
    p.scalar("turns", Some(0.0), "turns so far").scalar("total", None, "a sum");
    let mut step = p.step();
    step.repeat(3, Some("left <= 0"), |turn| {
        turn.stage("drift", |s| {
            let u = s.field("u");
            s.set("u", u.here() + 0.03125 * (u.along(fast, -1) - u.along(0, 1)) + 0.01 * s.param("left"));
        });
        turn.compute("left", |s| s.param("left") - 1.0);
        turn.compute("turns", |s| s.param("turns") + 1.0);
    });
    step.stage("keep", |s| s.set("old", s.field("u").here()));
    step.compute("change", |s| s.constant(1.0));
    step.repeat(40, Some("change <= 0.02"), |turn| {
        turn.stage("flux", |s| {
            let u = s.field("u");
            s.set("flux", 0.21 * (u.along(fast, 0) - u.along(fast, -1)) + 0.01 * s.field("f").here());
        });
        turn.reduce("change", Reduction::Max, Centring::CELL, |s| {
            let flux = s.field("flux");
            (flux.along(fast, 1) - flux.along(fast, 0)).abs()
        });
        turn.stage("relax", |s| {
            let flux = s.field("flux");
            s.set("u", s.field("u").here() + flux.along(fast, 1) - flux.along(fast, 0));
        });
        turn.points_slice("leak", &[vec![0; dimensions]], |s| s.set("u", 0.9 * s.field("u").here()));
        turn.compute("turns", |s| s.param("turns") + 1.0);
    });
    step.repeat(5, Some("turns >= 0"), |turn| {
        turn.stage("never", |s| s.set("u", s.field("u").here() * 0.0));
    });
    step.stage("faces", |s| {
        let (u, old) = (s.field("u"), s.field("old"));
        s.set("f", 0.5 * s.field("f").here() + u.along(fast, 0) - old.along(fast, -1));
    });
    let mut step = p.step();
    step.once(|first| {
        first.stage("grown", |s| {
            let base = s.field("base");
            s.set(
                "grown",
                s.param("rate") * (base.along(fast, 1) - base.along(0, -1)) + 0.125 * s.coord(fast).sin(),
            );
        });
    });
    step.reduce("total", Reduction::Sum, Centring::CELL, |s| s.field("u").here() * s.field("old").here());
    step.repeat(3, None, |turn| {
        turn.stage("mix", |s| {
            let (u, old) = (s.field("u"), s.field("old"));
            s.set("old", 0.5 * (u.along(fast, -1) + old.along(0, 1)));
            let grown = s.field("grown").along(0, 1);
            s.set("u", 0.5 * (u.here() - old.here()) + 1e-3 * s.param("total") + 0.125 * grown);
        });
    });
    step.compute("left", |s| {
        let turns = s.param("turns");
        turns - 2.0 * (0.5 * turns).floor()
    });
    p.until("turns >= 1000").shown("u");
    p.build()
}

/// Names that mean the same buffer, and change by turns.
fn names() -> Result<Program> {
    let mut p = Definition::new("names", 1);
    p.boundary(Boundary::Periodic);
    for name in ["a", "b", "c"] {
        p.field(name, Centring::NODE);
    }
    let mut step = p.step();
    step.stage("rotated", |s| {
        s.set("a", s.field("b").here());
        s.set("b", s.field("c").here());
        s.set("c", s.field("a").here());
    });
    step.stage("changed", |s| s.set("a", 0.5 * s.field("a").here() + 0.25 * s.field("b").along(0, 1)));
    step.stage("doubled", |s| s.set("c", s.field("b").here()));
    p.build()
}

/// Every reduction over every region, of values among which are zeros of both signs, and NaN at last.
fn reductions(dimensions: usize) -> Result<Program> {
    let mut p = Definition::new("reductions", dimensions);
    p.boundary(Boundary::Mirror)
        .field("u", Centring::CELL)
        .field("zero", Centring::CELL)
        .field("nan", Centring::CELL);
    p.field("node", Centring::NODE).scalar("steps", Some(0.0), "steps done");
    let all = [("min", Reduction::Min), ("max", Reduction::Max), ("sum", Reduction::Sum)];
    for (name, _) in all {
        for field in ["u", "zero", "nan", "node"] {
            p.scalar(&format!("{name} {field}"), None, "one of the reductions");
        }
    }
    let mut step = p.step();
    let last = |region: Region| region.without(2, 1, 0);
    for (name, reduction) in all {
        for (field, centring) in [
            ("u", Centring::CELL),
            ("zero", Centring::CELL),
            ("nan", Centring::CELL),
            ("node", Centring::NODE),
        ] {
            let region = if field == "u" { last(centring.into()) } else { centring.into() };
            step.reduce(&format!("{name} {field}"), reduction, region, |s| s.field(field).here());
        }
    }
    step.stage("steered", |s| {
        let mean = s.param("sum u") * 1e-3 + s.param("max node") * 0.25;
        s.set("u", 0.5 * s.field("u").here() + mean);
        s.set("zero", -s.field("zero").here());
    });
    step.stage("steered nodes", |s| s.set("node", s.field("node").here() - s.param("min node")));
    step.compute("steps", |s| s.param("steps") + 1.0);
    p.build()
}

/// The boundaries of the ring: on each side, and what differs from side to side.
const SIDES: [&str; 9] = [
    "mirror",
    "-mirror",
    "reflect",
    "-reflect",
    "clamp",
    "constant=0.375",
    "periodic",
    "x-=-mirror,x+=constant=-0.5",
    "x-=-reflect,x+=-mirror",
];

/// Fields that stay as they are on a domain of which fixed sides leave nothing: new values from around the old ones, of several
/// fields at once, on cells, faces and nodes.
fn sealed(dimensions: usize) -> Result<Program> {
    let fast = dimensions - 1;
    let mut p = Definition::new("sealed", dimensions);
    p.boundary(Boundary::Fixed).field("u", Centring::CELL).field("v", Centring::CELL);
    p.field("f", Centring::face(dimensions, fast)).field("n", Centring::NODE);
    p.scalar("time", Some(0.0), "steps done");
    p.step()
        .compute("time", |s| s.param("time") + 1.0)
        .stage("both", |s| {
            let (u, v) = (s.field("u"), s.field("v"));
            s.set("u", along(v, fast, &[(-1, 0.5), (1, 0.25)]) + s.param("time"));
            s.set("v", along(u, 0, &[(-1, 0.5), (0, 0.125), (1, 0.25)]));
        })
        .stage("faces", |s| s.set("f", along(s.field("f"), 0, &[(-1, 0.5), (1, 0.5)])))
        .stage("nodes", |s| s.set("n", along(s.field("n"), fast, &[(-1, 0.25), (0, 1.5)])));
    p.build()
}

/// Boundaries of single fields of the staggered program.
const OWN: [&[(&str, &str)]; 3] = [
    &[("c", "x=-mirror"), ("n", "x=-reflect"), ("f", "x=-reflect"), ("g", "x=reflect")],
    &[("c", "periodic"), ("n", "periodic"), ("f", "periodic"), ("g", "periodic"), ("spare", "periodic")],
    &[("n", "x-=constant=0.25,x+=-reflect"), ("f", "x=clamp"), ("g", "x-=-mirror,x+=reflect")],
];

/// Returns all cases.
pub fn cases() -> Result<Vec<Case>> {
    use DType::{F32, F64};
    let mut all = Vec::new();
    for (dimensions, extents) in [
        (1, &[&[37][..], &[300], &[1]]),
        (2, &[&[27, 101][..], &[21, 35], &[1, 1]]),
        (3, &[&[7, 11, 101][..], &[3, 2, 67], &[1, 1, 1]]),
    ] {
        for (turn, (own, extents)) in OWN.iter().zip(extents).enumerate() {
            let boundary = if turn == 1 { "periodic" } else { "mirror" };
            let dtype = if (turn + dimensions) % 2 == 0 { F64 } else { F32 };
            all.push(Case::new("staggered", staggered(dimensions, own)?, boundary, extents, dtype, 5)?);
        }
        all.push(Case::new("walls", walls(dimensions)?, "fixed", extents[0], F64, 4)?);
        all.push(Case::new("walls", walls(dimensions)?, "fixed", extents[1], F32, 3)?);
        for dtype in [F32, F64] {
            all.push(Case::new("clock", clock(dimensions)?, "constant=0.75", extents[1], dtype, 5)?);
        }
        for (turn, dtype) in [F64, F32].into_iter().enumerate() {
            // Wider than formulas reach.
            let extents = if dimensions == 3 && turn == 1 { &[5, 4, 67] } else { extents[turn] };
            all.push(Case::new("conditions", conditions(dimensions)?, "mirror", extents, dtype, 5)?);
            all.push(Case::new("draws", draws(dimensions)?, "mirror", extents, dtype, 3)?);
            all.push(Case::new(
                "loops",
                loops(dimensions)?,
                ["mirror", "periodic"][turn],
                extents,
                dtype,
                5,
            )?);
            let sides = ["mirror", "periodic"][turn];
            all.push(Case::new("precisions", precisions(dimensions)?, sides, extents, dtype, 3)?);
            let own = SIDES[(2 * dimensions + turn) % SIDES.len()];
            all.push(Case::new("levels", levels(dimensions, own)?, "clamp", extents, dtype, 3)?);
            let boundary = [Boundary::Periodic, Boundary::Fixed][turn];
            all.push(Case::new("noisy", noisy(dimensions, boundary)?, boundary.name(), extents, dtype, 7)?);
        }
        let mut reduced = Case::new("reductions", reductions(dimensions)?, "mirror", extents[1], F64, 3)?;
        marked(&mut reduced);
        all.push(reduced);
    }
    let thin: [&[usize]; 4] = [&[2], &[3, 2], &[1, 33], &[2, 3, 3]];
    for (turn, own) in SIDES.into_iter().enumerate() {
        let extents = thin[turn % 4];
        let dtype = if turn % 3 == 0 { F32 } else { F64 };
        all.push(Case::new("ring", ring(extents.len(), own)?, "clamp", extents, dtype, 3)?);
    }
    // A single value, or two, which taps beyond the domain show several times.
    for (turn, own) in SIDES.into_iter().enumerate() {
        let extents = [&[1][..], &[2, 1], &[1, 1, 2]][turn % 3];
        let dtype = if turn % 2 == 0 { F64 } else { F32 };
        all.push(Case::new("ring", ring(extents.len(), own)?, "clamp", extents, dtype, 3)?);
    }
    // After an odd number of steps fields are in other buffers than at first.
    let sealed_in: [&[usize]; 7] = [&[1], &[2], &[1, 40], &[33, 2], &[2, 2], &[1, 1, 1], &[2, 5, 37]];
    for (turn, extents) in sealed_in.into_iter().enumerate() {
        let dtype = if turn % 2 == 0 { F64 } else { F32 };
        all.push(Case::new("sealed", sealed(extents.len())?, "fixed", extents, dtype, 1 + turn as u64 % 3)?);
    }
    let corners = "y-=-mirror,y+=constant=-0.5,x-=constant=0.25,x+=-reflect";
    all.push(Case::new("ring", ring(2, corners)?, "clamp", &[29, 103], F64, 3)?);
    let corners = "z-=-mirror,z+=reflect,y-=constant=0.5,y+=-reflect,x=periodic";
    all.push(Case::new("ring", ring(3, corners)?, "clamp", &[7, 13, 99], F64, 2)?);
    all.push(Case::new("names", names()?, "periodic", &[41], F64, 7)?);
    let mut large = Case::new("reductions", reductions(1)?, "mirror", &[17_001], F32, 3)?;
    marked(&mut large);
    all.push(large);
    Ok(all)
}

/// Returns random programs; those that read beyond a fixed side, reduce nothing or are plain are left out.
pub fn random(seeds: std::ops::Range<u64>) -> Vec<Case> {
    let case = |seed: u64| {
        let (problem, start) = crate::programs::problem(seed).ok()?;
        let name = format!("random {seed} {} {}", problem.shape, problem.dtype);
        (!problem.is_plain()).then_some(Case { name, problem, start, steps: 5 })
    };
    seeds.filter_map(case).collect()
}

/// Puts zeros of both signs and a NaN into the fields that are there for them.
fn marked(case: &mut Case) {
    let (dtype, cells) = (case.problem.dtype, case.problem.shape.cells());
    case.start[1] = Array::from_fn(dtype, cells, |i| if i % 7 == 3 { -0.0 } else { 0.0 });
    let old = case.start[2].clone();
    case.start[2] =
        Array::from_fn(dtype, cells, |i| if i == cells / 2 { f64::NAN } else { old.get(i).unwrap_or(0.0) });
}
