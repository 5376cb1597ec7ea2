use abide_core::domain::Source;
use abide_core::sparse::{Affine, Bucket, Csr, MAX_EXTENT, Offsets, RowLengths, Triplets};
use abide_core::{Array, Boundaries, DType, Error, LinearStencil, Program, Real, Result, Shape, Start};
use proptest::prelude::*;

use super::generate::{arrow, hpcg, laplacian_2d, laplacian_3d, trefethen};
use abide_core::domain::Boundary;

const BOTH: [DType; 2] = [DType::F32, DType::F64];

fn dense(matrix: &Csr) -> Vec<Vec<f64>> {
    (0..matrix.rows()).map(|i| (0..matrix.columns()).map(|j| matrix.get(i, j)).collect()).collect()
}

fn random(len: usize, seed: u64, dtype: DType) -> Array {
    let shape = Shape::new(&[len]).unwrap();
    Start::Random { seed, low: -1.0, high: 1.0 }.fill(&shape, dtype).unwrap()
}

/// Computes one step of a stencil by the evaluation of its formula, cell by cell.
fn step<T: Real>(stencil: &LinearStencil, shape: &Shape, boundaries: &Boundaries, old: &[T]) -> Vec<T> {
    let program = Program::new(stencil).unwrap();
    let (radius, extents) = (program.radius(), shape.padded());
    let dag = &program.stages()[0].dag;
    let mut scratch = Vec::new();
    (0..shape.cells())
        .map(|index| {
            let cell = shape.cell(index);
            let kept =
                |axis: usize| !boundaries.computed(axis, extents[axis], radius[axis]).contains(&cell[axis]);
            if (0..3).any(kept) {
                return old[index];
            }
            dag.evaluate(&mut scratch, &[], cell.map(|i| i as isize), |tap| {
                let mut at = [0; 3];
                for axis in 0..3 {
                    let index = cell[axis] as isize + tap.offset[axis] as isize;
                    match boundaries.source(axis, index, extents[axis]) {
                        Source::Cell(index) => at[axis] = index,
                        Source::Value(value) => return T::from_f64(value),
                    }
                }
                old[shape.index(at)]
            });
            scratch[dag.outputs[0] as usize]
        })
        .collect()
}

fn plus(a: &Array, b: &Array) -> Array {
    let (x, y) = (a.to_f64(), b.to_f64());
    Array::from_fn(a.dtype(), x.len(), |i| x[i] + y[i])
}

fn box_of_27() -> LinearStencil {
    let taps: Vec<([i32; 3], f64)> =
        (0..27).map(|n| ([n / 9 - 1, n / 3 % 3 - 1, n % 3 - 1], 0.01 + f64::from(n) / 700.0)).collect();
    LinearStencil::new("box", &taps).unwrap()
}

fn long_star() -> LinearStencil {
    let taps =
        [([-3, 0], 0.07), ([0, -2], 0.21), ([0, 0], 0.4), ([0, 1], 0.13), ([0, 2], -0.3), ([2, 0], 0.17)];
    LinearStencil::new("star", &taps).unwrap()
}

fn shifted() -> LinearStencil {
    LinearStencil::new("shift", &[([-2], 0.3), ([0], 0.2), ([1], 0.4)]).unwrap()
}

/// Stencils and domains: odd extents, one as thin as its stencil, one line.
fn cases() -> Vec<(LinearStencil, Shape)> {
    [
        (box_of_27(), "5x3x7"),
        (long_star(), "9x8"),
        (long_star(), "3x2"),
        (shifted(), "11"),
        (box_of_27(), "1x1x1"),
    ]
    .map(|(stencil, size)| (stencil, size.parse().unwrap()))
    .into()
}

#[test]
fn triplets_are_sorted_and_added_in_order() -> Result<()> {
    // 2^53 + 1 is rounded to even: the order of the additions shows.
    let large = 9_007_199_254_740_992.0;
    let mut triplets = Triplets::new(3, 4)?;
    for (row, column, value) in
        [(2, 3, large), (0, 1, 5.0), (2, 3, 1.0), (2, 0, 7.0), (2, 3, 1.0), (2, 3, -large)]
    {
        triplets.push(row, column, value)?;
    }
    let matrix = triplets.into_csr()?;
    assert_eq!(matrix.offsets(), &Offsets::U32(vec![0, 1, 1, 3]));
    assert_eq!(matrix.indices(), [1, 0, 3]);
    assert_eq!(matrix.values(), &Array::F64(vec![5.0, 7.0, 0.0]));
    assert_eq!(matrix.row(2).collect::<Vec<_>>(), [(0, 7.0), (3, 0.0)]);
    assert_eq!(matrix.row(1).count() + matrix.row(3).count() + matrix.row(usize::MAX).count(), 0);
    Ok(())
}

#[test]
fn entries_outside_are_named_with_the_limit() {
    let mut triplets = Triplets::<f32>::new(3, 4).unwrap();
    let row = triplets.push(3, 0, 1.0).unwrap_err().to_string();
    assert!(row.contains("row of an entry: 3 asked, the limit is below 3"), "{row}");
    let column = triplets.push(0, 9, 1.0).unwrap_err().to_string();
    assert!(column.contains("column of an entry: 9 asked, the limit is below 4"), "{column}");
    assert!(matches!(Triplets::<f32>::new(MAX_EXTENT + 1, 1), Err(Error::Limit { .. })));
    assert!(triplets.is_empty());
}

#[test]
fn arrays_are_checked() {
    let make = |columns, offsets: &[u64], indices: &[u32], values: usize| {
        Csr::new(columns, Offsets::U64(offsets.to_vec()), indices.to_vec(), Array::F32(vec![1.0; values]))
    };
    assert_eq!(make(3, &[0, 2, 3], &[0, 2, 1], 3).unwrap().rows(), 2);
    assert_eq!(make(0, &[0], &[], 0).unwrap().rows(), 0);
    assert!(make(3, &[], &[], 0).is_err());
    assert!(make(3, &[1, 2], &[0, 1], 2).is_err());
    assert!(make(3, &[0, 2, 1, 3], &[0, 1, 2], 3).is_err());
    assert!(make(3, &[0, 9, 3], &[0, 1, 2], 3).is_err());
    assert!(make(3, &[0, 2], &[0, 1, 2], 3).is_err());
    assert!(make(3, &[0, 3], &[0, 1, 2], 2).is_err());
    assert!(make(3, &[0, 2], &[1, 1], 2).is_err());
    assert!(make(3, &[0, 2], &[1, 0], 2).is_err());
    assert!(make(3, &[0, 2], &[1, 3], 2).is_err());
}

#[test]
fn offsets_are_as_narrow_as_they_can_be() -> Result<()> {
    assert_eq!(Offsets::narrowest(vec![0, u64::from(u32::MAX)])?, Offsets::U32(vec![0, u32::MAX]));
    assert_eq!(Offsets::narrowest(vec![0, 1 << 32])?, Offsets::U64(vec![0, 1 << 32]));
    let narrow = laplacian_2d(7, 5, DType::F32)?;
    let wide = narrow.with_wide_offsets();
    assert_eq!((narrow.offsets().width(), wide.offsets().width()), (4, 8));
    assert_eq!(wide.bytes() - narrow.bytes(), 36 * 4);
    let x = random(35, 1, DType::F32);
    assert_eq!(narrow.matvec(&x)?, wide.matvec(&x)?);
    Ok(())
}

#[test]
fn known_matrices_have_their_published_numbers_of_entries() -> Result<()> {
    assert_eq!(laplacian_2d(300, 300, DType::F32)?.nnz(), 448_800);
    assert_eq!(laplacian_2d(1000, 999, DType::F32)?.nnz(), 4_991_002);
    assert_eq!(laplacian_3d(20, 30, 40, DType::F64)?.nnz(), 7 * 24_000 - 2 * (600 + 800 + 1200));
    assert_eq!(hpcg(64, 64, 64, DType::F32)?.nnz(), 6_859_000);
    assert_eq!(hpcg(3, 4, 5, DType::F64)?.nnz(), 7 * 10 * 13);
    // SuiteSparse, JGD_Trefethen: Trefethen_20, _200, _2000 and _20000.
    for (n, nnz) in [(20, 158), (200, 2890), (2000, 41_906), (20_000, 554_466)] {
        assert_eq!(trefethen(n, DType::F64)?.nnz(), nnz);
    }
    Ok(())
}

#[test]
fn generated_matrices_are_symmetric_and_dominated_by_their_diagonals() -> Result<()> {
    for dtype in BOTH {
        for (matrix, diagonal) in [
            (laplacian_2d(6, 9, dtype)?, 4.0),
            (laplacian_3d(4, 5, 6, dtype)?, 6.0),
            (hpcg(4, 3, 5, dtype)?, 26.0),
        ] {
            assert!(matrix.is_symmetric());
            assert!(matrix.diagonal().unwrap().to_f64().iter().all(|&d| d == diagonal));
            for row in 0..matrix.rows() {
                let off: f64 =
                    matrix.row(row).filter(|(column, _)| *column != row).map(|(_, value)| value).sum();
                assert!((-diagonal..0.0).contains(&off));
            }
        }
    }
    Ok(())
}

#[test]
fn trefethens_matrix_has_primes_and_powers_of_two() -> Result<()> {
    let matrix = trefethen(150, DType::F64)?;
    let primes: Vec<f64> =
        (2u32..).filter(|n| (2..*n).all(|d| n % d != 0)).take(150).map(f64::from).collect();
    assert_eq!(matrix.diagonal(), Ok(Array::F64(primes)));
    for i in 0..150usize {
        for j in (0..150).filter(|j| *j != i) {
            assert_eq!(matrix.get(i, j), f64::from(i.abs_diff(j).is_power_of_two()), "{i} {j}");
        }
    }
    for n in 0..8 {
        assert_eq!(
            trefethen(n, DType::F32)?.diagonal()?.to_f64(),
            [2.0, 3.0, 5.0, 7.0, 11.0, 13.0, 17.0][..n]
        );
    }
    Ok(())
}

#[test]
fn an_arrow_has_a_dense_row_and_a_positive_schur_complement() -> Result<()> {
    let matrix = arrow(1500, DType::F64)?;
    assert_eq!((matrix.nnz(), matrix.row_lengths().max), (3 * 1500 - 2, 1500));
    assert!(matrix.is_symmetric());
    // The matrix is positive definite, because the diagonal beyond the corner is positive, and so is what
    // eliminating it leaves of the corner.
    let diagonal = matrix.diagonal().unwrap().to_f64();
    assert!(diagonal.iter().all(|value| (1.0..=1000.0).contains(value)));
    let corner = diagonal[0] - (1..1500).map(|j| matrix.get(0, j).powi(2) / diagonal[j]).sum::<f64>();
    assert!(corner >= 1.0, "{corner}");
    assert_eq!((arrow(1, DType::F32)?.nnz(), arrow(0, DType::F32)?.nnz()), (1, 0));
    Ok(())
}

#[test]
fn the_laplacian_has_its_known_eigenvectors() -> Result<()> {
    // sin(πky/(ny+1)) sin(πlx/(nx+1)) has the eigenvalue 4 − 2cos(πk/(ny+1)) − 2cos(πl/(nx+1)).
    let (ny, nx) = (7, 11);
    let matrix = laplacian_2d(ny, nx, DType::F64)?;
    let angle = |k: usize, at: usize, n: usize| std::f64::consts::PI * (k * at) as f64 / (n + 1) as f64;
    for (k, l) in [(1, 1), (3, 2), (7, 11)] {
        let wave = |i: usize| angle(k, i / nx + 1, ny).sin() * angle(l, i % nx + 1, nx).sin();
        let eigenvalue = 4.0 - 2.0 * angle(k, 1, ny).cos() - 2.0 * angle(l, 1, nx).cos();
        let product = matrix.matvec(&Array::from_fn(DType::F64, ny * nx, wave))?.to_f64();
        for (i, value) in product.iter().enumerate() {
            assert!((value - eigenvalue * wave(i)).abs() < 1e-14, "{k} {l} {i}");
        }
    }
    Ok(())
}

#[test]
fn a_stencil_and_its_matrix_give_the_same_bits() -> Result<()> {
    for (stencil, shape) in cases() {
        for boundary in ["fixed", "constant=0"] {
            let boundaries = Boundaries::parse(boundary, Boundary::Fixed)?;
            for dtype in BOTH {
                let affine = Affine::new(&stencil, &shape, &boundaries, dtype)?;
                let old = random(shape.cells(), 5, dtype);
                let new = affine.matrix.matvec(&old)?;
                let expected = match &old {
                    Array::F32(old) => Array::F32(step(&stencil, &shape, &boundaries, old)),
                    Array::F64(old) => Array::F64(step(&stencil, &shape, &boundaries, old)),
                };
                assert_eq!(new, expected, "{stencil:?} {shape} {boundary} {dtype}");
                assert!(affine.constant.to_f64().iter().all(|&c| c == 0.0));
            }
        }
    }
    Ok(())
}

#[test]
fn boundaries_fold_into_the_matrix_and_the_constant() -> Result<()> {
    for (stencil, shape) in cases() {
        for boundary in [
            "periodic",
            "mirror",
            "constant=1.5",
            "x-=mirror,x+=constant=2",
            "y=periodic,x-=constant=-3",
            "z-=constant=5,y+=constant=-2,x+=mirror",
        ] {
            let boundaries = Boundaries::parse(boundary, Boundary::Fixed)?;
            if boundaries.check(&shape, Program::new(&stencil)?.radius(), DType::F64).is_err() {
                assert!(Affine::new(&stencil, &shape, &boundaries, DType::F64).is_err());
                continue;
            }
            for dtype in BOTH {
                let affine = Affine::new(&stencil, &shape, &boundaries, dtype)?;
                let old = random(shape.cells(), 6, dtype);
                let new = plus(&affine.matrix.matvec(&old)?, &affine.constant);
                let expected = match &old {
                    Array::F32(old) => Array::F32(step(&stencil, &shape, &boundaries, old)),
                    Array::F64(old) => Array::F64(step(&stencil, &shape, &boundaries, old)),
                };
                // Sums of at most 27 terms in two orders.
                let distance = new.scaled_ulp_distance(&expected, expected.magnitude().max(1.0));
                assert!(
                    distance.is_some_and(|d| d < 20.0),
                    "{stencil:?} {shape} {boundary} {dtype} {distance:?}"
                );
            }
        }
    }
    Ok(())
}

#[test]
fn a_periodic_mean_keeps_constants_and_a_small_ring_by_hand() -> Result<()> {
    let ring = |n: usize| {
        Affine::new(&shifted(), &Shape::new(&[n])?, &Boundaries::all(Boundary::Periodic), DType::F64)
    };
    assert_eq!(
        dense(&ring(4)?.matrix),
        [[0.2, 0.4, 0.3, 0.0], [0.0, 0.2, 0.4, 0.3], [0.3, 0.0, 0.2, 0.4], [0.4, 0.3, 0.0, 0.2]]
    );
    // On three cells the taps −2 and 1 are one cell.
    let three = ring(3)?.matrix;
    assert_eq!((three.nnz(), three.get(0, 1)), (6, 0.3 + 0.4));
    let mirror =
        Affine::new(&shifted(), &Shape::new(&[3])?, &Boundaries::all(Boundary::Mirror), DType::F64)?.matrix;
    assert_eq!(dense(&mirror), [[0.2, 0.3 + 0.4, 0.0], [0.3, 0.2, 0.4], [0.3, 0.0, 0.2 + 0.4]]);
    Ok(())
}

#[test]
fn a_stencil_on_the_wrong_domain_is_refused() {
    let fixed = Boundaries::all(Boundary::Fixed);
    assert!(Affine::new(&shifted(), &Shape::new(&[3, 3]).unwrap(), &fixed, DType::F32).is_err());
    let half = Boundaries::parse("x-=periodic", Boundary::Fixed).unwrap();
    assert!(Affine::new(&shifted(), &Shape::new(&[9]).unwrap(), &half, DType::F32).is_err());
    assert!(matches!(laplacian_2d(70_000, 70_000, DType::F32), Err(Error::Limit { .. })));
}

#[test]
fn products_ask_for_the_right_vector() -> Result<()> {
    let matrix = laplacian_2d(3, 3, DType::F64)?;
    assert!(matrix.matvec(&Array::zeros(DType::F32, 9)?).is_err());
    let error = matrix.matvec(&Array::zeros(DType::F64, 8)?).unwrap_err().to_string();
    assert!(error.contains("8 asked, the limit is 9"), "{error}");
    Ok(())
}

#[test]
fn symmetry_sees_values_and_places() -> Result<()> {
    let make = |entries: &[(usize, usize, f64)], n| {
        let mut triplets = Triplets::new(n, 3).unwrap();
        entries.iter().try_for_each(|&(i, j, v)| triplets.push(i, j, v)).unwrap();
        triplets.into_csr().unwrap()
    };
    assert!(make(&[(0, 1, 2.0), (1, 0, 2.0), (2, 2, 1.0)], 3).is_symmetric());
    assert!(!make(&[(0, 1, 2.0), (1, 0, 2.5)], 3).is_symmetric());
    assert!(!make(&[(0, 1, 2.0), (2, 0, 2.0)], 3).is_symmetric());
    assert!(!make(&[(0, 1, 2.0)], 3).is_symmetric());
    assert!(!make(&[(1, 0, 2.0)], 3).is_symmetric());
    assert!(!make(&[(0, 1, 2.0), (1, 0, 2.0)], 2).is_symmetric());
    let zeros = make(&[(0, 1, 0.0), (1, 0, -0.0)], 3);
    assert!(zeros.is_symmetric() && !zeros.is_symmetric_to_the_bit());
    assert!(make(&[], 3).is_symmetric());
    Ok(())
}

#[test]
fn row_lengths_are_counted_by_powers_of_two() -> Result<()> {
    let lengths = RowLengths::of([0, 1, 2, 3, 4, 5, 8, 9, 0, 16]);
    assert_eq!((lengths.rows, lengths.entries, lengths.min, lengths.max, lengths.empty), (10, 48, 0, 16, 2));
    let bucket = |longest, rows, entries| Bucket { longest, rows, entries };
    assert_eq!(
        lengths.buckets,
        [bucket(1, 1, 1), bucket(2, 1, 2), bucket(4, 2, 7), bucket(8, 2, 13), bucket(16, 2, 25)]
    );
    assert_eq!(lengths.mean(), 4.8);
    assert_eq!(lengths.share_of_rows(&lengths.buckets[4]), 0.2);
    assert_eq!(lengths.share_of_entries(&lengths.buckets[4]), 25.0 / 48.0);
    let none = RowLengths::of([]);
    assert_eq!((none.min, none.max, none.mean()), (0, 0, 0.0));

    // Corners have 3 entries, edges 4, the inside 5.
    let laplacian = laplacian_2d(10, 20, DType::F32)?.row_lengths();
    assert_eq!((laplacian.min, laplacian.max), (3, 5));
    assert_eq!(laplacian.buckets[2].rows, 4 + 2 * (8 + 18));
    assert_eq!(laplacian.buckets[3].rows, 8 * 18);
    Ok(())
}

/// A small matrix: its extents, and entries of which several may share a place.
type Listed = (usize, usize, Vec<(usize, usize, f64)>);

pub(super) fn any_matrix() -> impl Strategy<Value = Listed> {
    (1usize..14, 1usize..14).prop_flat_map(|(rows, columns)| {
        let value = prop_oneof![proptest::num::f64::NORMAL, -4.0..4.0f64, Just(0.0), Just(-0.0)];
        let value = value.prop_map(|v| if v.abs() > 1e300 { v * 1e-10 } else { v });
        (Just(rows), Just(columns), prop::collection::vec((0..rows, 0..columns, value), 0..80))
    })
}

pub(super) fn assembled((rows, columns, entries): &Listed) -> Csr {
    let mut triplets = Triplets::new(*rows, *columns).unwrap();
    entries.iter().try_for_each(|&(i, j, v)| triplets.push(i, j, v)).unwrap();
    triplets.into_csr().unwrap()
}

proptest! {
    #[test]
    fn assembly_agrees_with_a_dense_sum(listed in any_matrix()) {
        let matrix = assembled(&listed);
        let (rows, columns, entries) = listed;
        let mut sums = vec![vec![None; columns]; rows];
        for (i, j, v) in entries {
            sums[i][j] = Some(sums[i][j].map_or(v, |sum: f64| sum + v));
        }
        prop_assert_eq!(matrix.nnz(), sums.iter().flatten().flatten().count());
        for i in 0..rows {
            let expected: Vec<_> = (0..columns).filter_map(|j| sums[i][j].map(|v| (j, v))).collect();
            prop_assert_eq!(matrix.row(i).collect::<Vec<_>>(), expected);
        }
        let again = Csr::new(columns, matrix.offsets().clone(), matrix.indices().to_vec(), matrix.values().clone());
        prop_assert_eq!(again.unwrap(), matrix);
    }

    #[test]
    fn transposing_mirrors_and_returns(listed in any_matrix()) {
        let matrix = assembled(&listed);
        let transposed = matrix.transpose().unwrap();
        for i in 0..matrix.rows() {
            for j in 0..matrix.columns() {
                prop_assert_eq!(matrix.get(i, j), transposed.get(j, i));
            }
        }
        prop_assert_eq!(matrix.is_symmetric(), matrix == transposed);
        prop_assert_eq!(transposed.transpose().unwrap(), matrix);
    }

    #[test]
    fn products_agree_with_the_dense_matrix(listed in any_matrix()) {
        let matrix = assembled(&listed).cast(DType::F32).unwrap();
        let x = random(matrix.columns(), 3, DType::F32);
        let product = matrix.matvec(&x).unwrap().to_f64();
        for (i, row) in dense(&matrix).iter().enumerate() {
            let terms: Vec<f64> = row.iter().zip(x.to_f64()).map(|(a, x)| a * x).collect();
            let (sum, size) = (terms.iter().sum::<f64>(), terms.iter().map(|t| t.abs()).sum::<f64>());
            if size < f64::from(f32::MAX) {
                let bound = terms.len() as f64 * f64::from(f32::EPSILON) * size + f64::from(f32::MIN_POSITIVE);
                prop_assert!((product[i] - sum).abs() <= bound, "row {} {} {}", i, product[i], sum);
            }
        }
    }
}
