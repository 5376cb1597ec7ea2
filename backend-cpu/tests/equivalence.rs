//! The threaded path against the reference, bit for bit: every entry of the catalogue, every boundary, both
//! types.

use std::sync::Arc;

use abide_core::plan::{Cpu, Schedule};
use abide_core::{
    Array, Backend, Boundaries, Boundary, DType, Depth, Execution, Options, Parameter, Problem, Program,
    Scope, Shape, Start, Stencil, catalogue,
};
use abide_cpu::{CpuBackend, reference};

fn boundaries() -> Vec<Boundaries> {
    let mixed = [
        "z=periodic,y=mirror,x=constant=-1.5",
        "z-=constant=2,y+=constant=3,x-=mirror",
        "z=mirror,y-=constant=0.1,y+=mirror,x=periodic",
    ];
    let mixed = mixed.iter().map(|text| Boundaries::parse(text, Boundary::Fixed).unwrap());
    Boundary::each_plain(0.375).into_iter().map(Boundaries::all).chain(mixed).collect()
}

fn fields(problem: &Problem) -> Vec<Array> {
    let start = |seed| Start::Random { seed, low: -0.5, high: 1.0 };
    (0..problem.program.fields().len() as u64)
        .map(|field| start(field + 1).fill(&problem.shape, problem.dtype).unwrap())
        .collect()
}

/// Runs both paths and compares; does nothing where the boundary does not fit the domain. Returns whether it
/// ran. Each tiled run has a form of its own: depth, tiles and planes per turn come from a sequence of random
/// numbers.
fn check(backend: &CpuBackend, problem: &Problem, chunk: usize, fields: Vec<Array>, steps: u64) -> bool {
    if !problem.is_plain() || problem.check().is_err() {
        return false;
    }
    let mut expected = fields.clone();
    reference::advance(problem, &mut expected, steps).unwrap();
    let mut random = fastrand::Rng::with_seed(problem.shape.cells() as u64 + 31 * chunk as u64);
    for execution in [Execution::Stepwise, Execution::Streaming, Execution::Persistent] {
        let depth =
            if execution == Execution::Stepwise { Depth::Auto } else { Depth::Steps(random.u32(1..=3)) };
        let mut plan = backend.plan(problem, &Options { execution, depth, ..Options::default() }).unwrap();
        if let Schedule::Cpu(rows) = &mut plan.schedule {
            rows.chunk = chunk;
            if let Some(tiling) = &mut rows.tiling {
                tiling.block = random.usize(1..=5);
                tiling.tiles = tiling.tiles.map(|tiles| tiles.max(random.usize(1..=3)));
            }
        }
        let mut session = backend.open(problem, &plan, fields.clone()).unwrap();
        session.advance(steps).unwrap();
        for (field, expected) in expected.iter().enumerate() {
            let found = session.read(field).unwrap();
            assert!(
                found.same_bits(expected),
                "{} {} {} {} field {field}, {}: {:?} ulp",
                problem.program.name(),
                problem.shape,
                problem.dtype,
                problem.boundaries.describe(problem.shape.dimensions()),
                plan.summary(),
                found.ulp_distance(expected)
            );
        }
    }
    true
}

fn check_all(backend: &CpuBackend, program: Program, extents: &[usize], chunk: usize, steps: u64) -> usize {
    let program = Arc::new(program);
    let mut ran = 0;
    for dtype in [DType::F32, DType::F64] {
        for boundaries in boundaries() {
            let mut problem = Problem::unchecked(program.clone(), Shape::new(extents).unwrap(), dtype);
            problem.set_boundaries(boundaries);
            ran += usize::from(check(backend, &problem, chunk, fields(&problem), steps));
        }
    }
    ran
}

#[test]
fn every_entry_at_awkward_sizes() {
    let backend = CpuBackend::with_threads(2).unwrap();
    let mut ran = 0;
    for entry in catalogue::plain() {
        for dimensions in entry.dimensions.clone() {
            let sizes: &[&[usize]] = match dimensions {
                1 => &[&[1], &[2], &[3], &[17], &[97]],
                2 => &[&[1, 1], &[2, 3], &[13, 17], &[1, 61], &[53, 2], &[16, 37]],
                _ => &[&[1, 1, 1], &[3, 2, 5], &[1, 7, 23], &[13, 5, 3], &[7, 8, 11]],
            };
            for (number, extents) in sizes.iter().enumerate() {
                let chunk = [512, 16, 7][number % 3];
                ran += check_all(&backend, entry.program(dimensions).unwrap(), extents, chunk, 3);
            }
        }
    }
    assert!(ran > 1500, "{ran}");
}

/// The threads have each turn of a loop written out, the reference goes through it.
#[test]
fn loops_at_awkward_sizes() {
    let backend = CpuBackend::with_threads(2).unwrap();
    let mut ran = 0;
    for (number, extents) in
        [&[1][..], &[97], &[13, 17], &[1, 61], &[3, 2, 5], &[7, 8, 11]].iter().enumerate()
    {
        let program = abide_random::looped::program(extents.len(), number % 3 == 2).unwrap();
        ran += check_all(&backend, program, extents, [512, 16, 7][number % 3], 3);
    }
    assert!(ran > 50, "{ran}");
}

#[test]
fn results_of_loops_have_the_bits_of_the_reference() {
    let backend = CpuBackend::with_threads(2).unwrap();
    // Of 12, more fields than are addressed one by one elsewhere.
    for (n, extents, chunk) in [(3, &[97][..], 16), (3, &[13, 17], 512), (12, &[31], 7)] {
        let program = abide_random::looped::products(n, extents.len()).unwrap();
        assert!(check_all(&backend, program, extents, chunk, 3) > 0);
    }
}

#[test]
fn domains_of_many_bands() {
    let backend = CpuBackend::with_threads(3).unwrap();
    let sizes: [(&str, &[usize]); 7] = [
        ("1d3pt", &[40_009]),
        ("2d5pt", &[211, 197]),
        ("2ds25pt", &[3, 20_011]),
        ("2d25pt", &[10_007, 4]),
        ("gray-scott", &[151, 211]),
        ("fdtd-tm", &[131, 257]),
        ("poisson", &[29, 31, 37]),
    ];
    for (name, extents) in sizes {
        let program = catalogue::find(name).unwrap().program(extents.len()).unwrap();
        for boundary in [Boundary::Fixed, Boundary::Periodic] {
            let problem =
                Problem::new(Arc::new(program.clone()), Shape::new(extents).unwrap(), DType::F64).unwrap();
            let mut problem = problem;
            problem.set_boundaries(Boundaries::all(boundary));
            // A star of radius 6 does not fit into three periodic rows.
            let fits = problem.is_plain();
            assert_eq!(check(&backend, &problem, 512, fields(&problem), 2), fits);
        }
    }
}

/// Rings that go round many times, and rows longer than a few vectors, in which a level goes on from turn to
/// turn.
#[test]
fn deep_passes() {
    let backend = CpuBackend::with_threads(2).unwrap();
    let sizes: [(&str, &[usize]); 7] = [
        ("2d5pt", &[203, 149]),
        ("2d9pt", &[101, 263]),
        ("2ds25pt", &[90, 71]),
        ("3d7pt", &[37, 41, 83]),
        ("2d5pt", &[8, 700]),
        ("gray-scott", &[83, 90]),
        ("fdtd-tm", &[61, 70]),
    ];
    for ((name, extents), dtype) in
        sizes.into_iter().flat_map(|size| [(size, DType::F32), (size, DType::F64)])
    {
        let program = catalogue::find(name).unwrap().program(extents.len()).unwrap();
        let problem = Problem::new(Arc::new(program), Shape::new(extents).unwrap(), dtype).unwrap();
        let start = fields(&problem);
        let mut expected = start.clone();
        reference::advance(&problem, &mut expected, 40).unwrap();
        for (depth, block, tiles) in
            [(17, 4, [1, 1, 1]), (24, 3, [1, 2, 3]), (9, 1, [2, 3, 1]), (32, 7, [1, 1, 2])]
        {
            let options = Options {
                execution: Execution::Persistent,
                depth: Depth::Steps(depth),
                ..Options::default()
            };
            let mut plan = backend.plan(&problem, &options).unwrap();
            if let Schedule::Cpu(Cpu { tiling: Some(tiling), .. }) = &mut plan.schedule {
                (tiling.block, tiling.tiles) = (block, tiles);
            }
            let mut session = backend.open(&problem, &plan, start.clone()).unwrap();
            session.advance(40).unwrap();
            for (field, expected) in expected.iter().enumerate() {
                let found = session.read(field).unwrap();
                assert!(found.same_bits(expected), "{name} {dtype} {depth} {block} {tiles:?} field {field}");
            }
        }
    }
}

#[test]
fn not_a_number_and_infinity_are_carried() {
    let backend = CpuBackend::new();
    for name in ["2d5pt", "gray-scott", "life", "burgers", "fdtd-tm"] {
        for dtype in [DType::F32, DType::F64] {
            let program = Arc::new(catalogue::find(name).unwrap().program(2).unwrap());
            let problem = Problem::new(program, Shape::new(&[19, 23]).unwrap(), dtype).unwrap();
            let mut fields = fields(&problem);
            for (at, value) in [(200, f64::NAN), (300, f64::INFINITY), (77, f64::NEG_INFINITY), (78, -0.0)] {
                match &mut fields[0] {
                    Array::F32(v) => v[at] = value as f32,
                    Array::F64(v) => v[at] = value,
                }
            }
            assert!(check(&backend, &problem, 512, fields, 4));
        }
    }
}

/// Two fields, functions whose rounding is the library's, coordinates along all axes, comparisons and
/// selections.
struct Own {
    dimensions: usize,
}

impl Stencil for Own {
    fn name(&self) -> &str {
        "own"
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn fields(&self) -> Vec<String> {
        ["a", "b", "c"].map(str::to_owned).to_vec()
    }

    fn parameters(&self) -> Vec<Parameter> {
        vec![Parameter::new("p", 0.7, "a number")]
    }

    fn define(&self, s: &Scope<'_>) {
        let (a, b, c, p) = (s.field("a"), s.field("b"), s.field("c"), s.param("p"));
        let place = s.sum(0..self.dimensions, |axis| s.coord(axis) * (axis as f64 + 0.1));
        let first = self.dimensions - 1;
        let wave = (place * p).sin() + (a.along(first, -2) * 3.0).cos().tanh();
        let root = (b.here().abs() + p.exp()).sqrt().log() + a.here().abs().pow(p);
        s.set("a", a.along(0, 1).lt(b.here()).select(wave, root / 3.0));
        s.set("b", a.laplacian().max(c.here()).min(place) - b.along(0, -1));
        s.set("c", a.along(first, 1));
    }
}

/// Copies, constants and swaps: formulas without any operation on lanes.
struct Plain;

impl Stencil for Plain {
    fn name(&self) -> &str {
        "plain"
    }

    fn dimensions(&self) -> usize {
        2
    }

    fn fields(&self) -> Vec<String> {
        ["a", "b", "c", "d", "e"].map(str::to_owned).to_vec()
    }

    fn define(&self, s: &Scope<'_>) {
        s.set("c", s.field("a").at([1, -1]));
        s.set("a", s.field("b").here());
        s.set("b", s.field("a").here());
        s.set("d", s.constant(0.1) + s.coord(0));
        s.set("e", s.coord(1));
    }
}

/// Two outputs of the same value, which is also used inside the other formula's sum.
struct Shared;

impl Stencil for Shared {
    fn name(&self) -> &str {
        "shared"
    }

    fn dimensions(&self) -> usize {
        1
    }

    fn fields(&self) -> Vec<String> {
        ["a", "b", "c"].map(str::to_owned).to_vec()
    }

    fn define(&self, s: &Scope<'_>) {
        let (a, b) = (s.field("a"), s.field("b"));
        let mean = 0.5 * a.at([-1]) + 0.5 * a.at([1]);
        s.set("a", mean);
        s.set("b", mean);
        s.set("c", (b.at([-1]) + b.at([1])).mul_add(0.25, mean) + mean * mean);
    }
}

/// A plain sum over a box of nine by nine cells and a sum of products, both longer than one step of a bytecode.
struct Long;

impl Stencil for Long {
    fn name(&self) -> &str {
        "long"
    }

    fn dimensions(&self) -> usize {
        2
    }

    fn fields(&self) -> Vec<String> {
        ["a", "b"].map(str::to_owned).to_vec()
    }

    fn define(&self, s: &Scope<'_>) {
        let at = |field: &str, i: usize| s.field(field).at([i as i32 / 9 - 4, i as i32 % 9 - 4]);
        s.set("a", s.sum(0..81, |i| at("b", i)) / 81.0);
        let first = at("a", 0) * 0.01;
        s.set("b", (1..81).fold(first, |sum, i| at("a", i).mul_add(0.01 + i as f64 / 1e4, sum)));
    }
}

#[test]
fn stencils_of_a_users_own() {
    let backend = CpuBackend::new();
    let sizes: [&[usize]; 3] = [&[83], &[11, 67], &[5, 7, 19]];
    for extents in sizes {
        let program = Program::new(&Own { dimensions: extents.len() }).unwrap();
        assert!(check_all(&backend, program, extents, 16, 3) >= 12);
    }
    assert!(check_all(&backend, Program::new(&Plain).unwrap(), &[9, 41], 16, 3) >= 12);
    assert!(check_all(&backend, Program::new(&Shared).unwrap(), &[61], 16, 3) >= 12);
    assert!(check_all(&backend, Program::new(&Long).unwrap(), &[9, 41], 16, 3) >= 12);
    let staged = Program::sequence("staged", &[&Own { dimensions: 2 }, &Own { dimensions: 2 }]).unwrap();
    assert!(check_all(&backend, staged, &[12, 31], 512, 2) >= 12);
}
