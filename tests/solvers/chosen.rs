//! The method that is chosen for the caller, and what the choice rests on.

use abide::solve::{Matrix, Method, Solution, SolverError, System, named, random_vector};
use abide::{Array, DType, Solve};

use crate::solvers::subject::{Subject, Way, tolerance};
use crate::solvers::systems::{entries, verify};

/// Opens a system whose method is chosen by the matrix.
fn open(subject: &Subject, matrix: &Matrix) -> System {
    Solve::new(matrix.clone()).tolerance(tolerance(matrix.dtype())).on(&subject.opened).open().unwrap()
}

/// Returns a chain of `n` rows, with more entries.
fn chain(n: usize, diagonal: f64, more: &[(usize, usize, f64)], dtype: DType) -> Matrix {
    let mut all: Vec<_> = (0..n).map(|i| (i, i, diagonal)).collect();
    all.extend((1..n).flat_map(|i| [(i, i - 1, -1.0), (i - 1, i, -1.0)]));
    all.extend(more);
    entries(n, &all, dtype).into()
}

/// Returns the solution, whose residual is checked.
fn solved(system: &mut System, b: &Array, relative: f64) -> Solution {
    let solution = system.solve(b).unwrap_or_else(|error| panic!("{error}"));
    verify(system.plan().method.name(), system.matrix(), b, &solution.x, relative, 1e4);
    solution
}

/// Sums of elements that cancel exactly in one order leave 7e-18 in the other.
pub fn rounding_is_no_asymmetry(subject: &Subject) {
    for dtype in subject.dtypes() {
        let rounded = [(3, 7, 7e-18), (0, 31, -2e-17), (31, 0, 1e-17), (20, 4, 3e-17)];
        let matrix = chain(32, 2.3, &rounded, dtype);
        let b = random_vector(dtype, 32, 3).unwrap();
        for method in subject.methods().into_iter().filter(Method::needs_definite) {
            let way = Way::new(method, tolerance(dtype));
            solved(&mut subject.describe(&matrix, &way).open().unwrap(), &b, way.relative);
        }
        let mut system = open(subject, &matrix);
        assert_eq!(system.plan().method, Method::Cg);
        let said = system.notes().iter().any(|note| note.contains("symmetric within rounding"));
        assert!(said, "{:?}", system.notes());
        solved(&mut system, &b, tolerance(dtype));
        // Rows without a diagonal are measured by their largest entries.
        let bipartite = entries(2, &[(0, 1, 2.0), (1, 0, 2.0 + 1e-16)], dtype);
        assert!(Matrix::from(bipartite).is_symmetric().unwrap());
        let skewed = chain(32, 2.3, &[(3, 7, 1e-2)], dtype);
        assert!(!skewed.is_symmetric().unwrap());
        assert_eq!(open(subject, &skewed).plan().method.name(), "gmres");
    }
}

pub fn a_matrix_may_be_taken_as_symmetric(subject: &Subject) {
    for dtype in subject.dtypes() {
        // Off by more than rounding, by far less than the tolerance.
        let matrix = chain(40, 3.0, &[(3, 7, if dtype == DType::F32 { 2e-3 } else { 1e-6 })], dtype);
        let b = random_vector(dtype, 40, 3).unwrap();
        let describe = || Solve::new(matrix.clone()).tolerance(1e-2).on(&subject.opened);
        assert!(matches!(describe().method(Method::Cg).open(), Err(SolverError::NotSymmetric { .. })));
        let mut system = describe().method(Method::Cg).assume_symmetric(true).open().unwrap();
        solved(&mut system, &b, 1e-2);
        let chosen = describe().assume_symmetric(true).open().unwrap();
        assert_eq!(chosen.plan().method, Method::Cg);
        assert!(chosen.notes()[0].contains("taken as symmetric"), "{:?}", chosen.notes());
    }
}

pub fn gmres_takes_the_place_of_cg_on_an_indefinite_matrix(subject: &Subject) {
    for dtype in subject.dtypes() {
        // Eigenvalues on both sides of 0, a diagonal of 1.
        let matrix = chain(64, 1.0, &[], dtype);
        let b = random_vector(dtype, 64, 4).unwrap();
        let mut system = open(subject, &matrix);
        assert_eq!(system.plan().method, Method::Cg);
        for _ in 0..2 {
            let solution = solved(&mut system, &b, tolerance(dtype));
            assert_eq!((solution.report.method, system.plan().method.name()), ("gmres", "gmres"));
            assert_eq!(solution.report.history.len(), solution.report.iterations + 1);
            let said = system.notes().iter().filter(|note| note.contains("gmres took its place")).count();
            assert_eq!(said, 1, "{:?}", system.notes());
        }
        // A method that was asked for is kept.
        let way = Way::new(Method::Cg, tolerance(dtype));
        let error = subject.solve(&matrix, &b, &way).unwrap_err();
        assert!(matches!(error, SolverError::Indefinite { .. }), "{error}");
    }
}

pub fn negative_definite_systems_are_solved_by_their_opposites(subject: &Subject) {
    for dtype in subject.dtypes() {
        let positive = Matrix::from(named::matrix("laplacian2d:13x14", dtype).unwrap());
        let grid = crate::solvers::systems::shifted(&[13, 14], 0.0, abide::Boundary::Constant(0.0), dtype);
        let b = random_vector(dtype, 182, 5).unwrap();
        for positive in subject.sampled([positive, grid.into()]) {
            let negative = positive.negated().unwrap().unwrap();
            let minus = |array: &Array| Array::from_fn(dtype, array.len(), |i| -array.get(i).unwrap());
            let mut system = open(subject, &negative);
            assert_eq!(system.plan().method, Method::Cg);
            let own = solved(&mut system, &b, tolerance(dtype));
            assert_eq!(own.report.method, "cg");
            let expected = open(subject, &positive).solve(&minus(&b)).unwrap();
            assert!(own.x.same_bits(&expected.x), "{} {dtype}", subject.name);
            assert_eq!(own.report.history, expected.report.history);
            for method in subject.able(&["cg", "cg-single", "cg-pipelined"]) {
                let way = Way::new(method, tolerance(dtype));
                solved(&mut subject.describe(&negative, &way).open().unwrap(), &b, way.relative);
            }
        }
    }
}

/// A shift moves a residual by a row in each iteration: no cycle shorter than the matrix lowers it.
pub fn cycles_of_small_systems_are_whole(subject: &Subject) {
    for dtype in subject.dtypes() {
        let n = 67;
        let shift: Vec<_> = (0..n).map(|i| (i, (i + 1) % n, 1.0)).collect();
        let matrix = Matrix::from(entries(n, &shift, dtype));
        let b = Array::from_fn(dtype, n, |i| if i == 0 { 1.0 } else { 0.0 });
        let mut system = open(subject, &matrix);
        let solution = solved(&mut system, &b, tolerance(dtype));
        assert_eq!((solution.report.iterations, solution.report.cycle), (n, Some(n)));
        let way = Way::new("gmres:30".parse().unwrap(), tolerance(dtype));
        let error = subject.solve(&matrix, &b, &way).unwrap_err();
        assert!(matches!(error, SolverError::Stagnation { .. }), "{error}");
        assert!(error.to_string().contains("later than after 30 iterations (gmres:60)"), "{error}");
    }
}
