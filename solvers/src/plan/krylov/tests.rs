use super::pack;
use abide_core::solver::plan::krylov::{
    Configuration, Division, Home, Krylov, SLICE, SPREAD_ROWS, Slabs, Space, Vector,
};
use abide_core::solver::{
    Gmres, GridOperator, Jacobi, Matrix, Method, PipelinedCg, Place, Preconditioning, Product, SolveCache,
    SolveOptions, SolvePlan, SolveSync,
};
use abide_core::sparse::{Csr, Triplets};
use abide_core::{Array, Boundaries, DType, DeviceSpec, LinearStencil, Shape};

use super::pack::{Columns, Packed};
use super::product::configurations;
use super::{plan_krylov, plan_krylov_configuration, spread, vectors};
use crate::sparse::{arrow, hpcg, laplacian_2d, laplacian_3d, trefethen};
use abide_core::Boundary;

fn device(name: &str) -> DeviceSpec {
    DeviceSpec::preset(name).unwrap()
}

fn planned(matrix: &Matrix, name: &str, options: &SolveOptions) -> SolvePlan {
    plan_krylov(matrix, &device(name), options).unwrap()
}

fn gmres(restart: usize) -> Method {
    Method::Gmres(Gmres { restart })
}

fn stencil(extents: &[usize]) -> Matrix {
    let taps = [([-1, 0], -1.0), ([0, -1], -1.0), ([0, 0], 4.0), ([0, 1], -1.0), ([1, 0], -1.0)];
    let laplacian = LinearStencil::new("laplacian", &taps).unwrap();
    let boundaries = Boundaries::all(Boundary::Constant(0.0));
    GridOperator::new(laplacian, Shape::new(extents).unwrap(), boundaries, DType::F64).unwrap().into()
}

/// Makes rows of one entry, except for a few dense ones.
fn skewed(rows: usize, dense: usize) -> Csr {
    let mut entries = Triplets::new(rows, rows).unwrap();
    for row in 0..rows {
        entries.push(row, row, 2.0).unwrap();
        if row % (rows / dense) == 0 {
            (0..rows)
                .filter(|&column| column != row)
                .for_each(|column| entries.push(row, column, 0.001).unwrap());
        }
    }
    entries.into_csr().unwrap()
}

fn matrices() -> Vec<Matrix> {
    vec![
        trefethen(50, DType::F64).unwrap().into(),
        trefethen(2000, DType::F64).unwrap().into(),
        laplacian_2d(300, 300, DType::F64).unwrap().into(),
        laplacian_3d(31, 29, 37, DType::F32).unwrap().into(),
        hpcg(16, 17, 18, DType::F64).unwrap().into(),
        skewed(4000, 5).into(),
        arrow(100_000, DType::F64).unwrap().into(),
        stencil(&[999, 1000]),
        stencil(&[3, 5]),
    ]
}

#[test]
fn small_systems_go_to_one_cluster_where_there_are_clusters() {
    let primes: Matrix = trefethen(2000, DType::F64).unwrap().into();
    let options = SolveOptions::default();
    for (name, space) in [("h100", Space::Cluster), ("h200", Space::Cluster)] {
        let plan = planned(&primes, name, &options);
        let krylov = plan.krylov().unwrap();
        assert_eq!((krylov.space, plan.synchronisation), (space, SolveSync::Cluster), "{name}");
        // The whole matrix stays on the chip: nothing is left to the last-level cache.
        assert_eq!(krylov.shares.iter().map(|share| share.cached_entries).sum::<usize>(), primes.nonzeros());
        assert!(krylov.vectors.iter().all(|(_, home)| *home != Home::Device));
        assert_eq!(plan.traffic.moved, 0.0);
    }
    for name in ["a100", "v100"] {
        assert_ne!(planned(&primes, name, &options).krylov().unwrap().space, Space::Cluster, "{name}");
    }
    let tiny: Matrix = trefethen(50, DType::F64).unwrap().into();
    assert_eq!(planned(&tiny, "v100", &options).krylov().unwrap().space, Space::Block);
}

#[test]
fn large_systems_go_to_all_multiprocessors_and_fill_shared_memory() {
    for (matrix, kept) in [
        // Directions of others' rows take room, too.
        (Matrix::from(laplacian_2d(1000, 999, DType::F64).unwrap()), 0.05..0.9),
        (Matrix::from(hpcg(64, 64, 64, DType::F64).unwrap()), 0.2..0.9),
    ] {
        let plan = planned(&matrix, "h200", &SolveOptions::default());
        let krylov = plan.krylov().unwrap();
        assert_eq!((krylov.space, krylov.blocks, krylov.column_bytes), (Space::Grid, 132, 2));
        assert_eq!(plan.product, Product::Sliced);
        let (cached, all) = krylov
            .shares
            .iter()
            .fold((0, 0), |sum, share| (sum.0 + share.cached_entries, sum.1 + share.entries));
        let share = cached as f64 / all as f64;
        assert!(kept.contains(&share), "{share}");
        // Less than a slice is left over.
        assert!(krylov.regions.total + 32 * 32 * 10 > 227 << 10, "{}", krylov.regions.total);
        assert!(krylov.imbalance() < 1.05, "{}", krylov.imbalance());
    }
}

#[test]
fn products_follow_the_lengths_of_rows() {
    let chosen = |matrix: Matrix| planned(&matrix, "h200", &SolveOptions::default()).product;
    assert_eq!(chosen(stencil(&[500, 500])), Product::MatrixFree);
    assert_eq!(chosen(skewed(4000, 5).into()), Product::Merge);
    assert_eq!(chosen(trefethen(2000, DType::F64).unwrap().into()), Product::Rows);
    assert_eq!(chosen(hpcg(48, 48, 48, DType::F64).unwrap().into()), Product::Sliced);
}

#[test]
fn shares_and_places_fit_on_every_preset() {
    let pipelined = Method::PipelinedCg(PipelinedCg::default());
    let methods = [
        Method::Cg,
        Method::SingleReductionCg,
        pipelined,
        Method::BiCgStab,
        gmres(200),
        Method::Jacobi(Jacobi::default()),
    ];
    for (number, matrix) in matrices().into_iter().enumerate() {
        for (turn, name) in ["v100", "a100", "h100", "h200"].into_iter().enumerate() {
            for cache in [
                SolveCache::Auto,
                SolveCache::None,
                SolveCache::Vectors,
                SolveCache::Matrix,
                SolveCache::Mixed,
            ] {
                let preconditioner = Preconditioning::OF_KERNELS[(number + turn) % 4];
                let options = SolveOptions {
                    method: methods[(number + turn) % methods.len()],
                    preconditioner,
                    cache,
                    ..SolveOptions::default()
                };
                for configuration in configurations(&matrix, &device(name), &options) {
                    let Ok(plan) =
                        plan_krylov_configuration(&matrix, &device(name), &options, &configuration)
                    else {
                        continue;
                    };
                    let words = format!("matrix {number} on {name}: {plan}");
                    let krylov = plan.krylov().unwrap();
                    let mut next = 0;
                    for share in &krylov.shares {
                        assert_eq!(share.first, next, "{words}");
                        next += share.rows;
                        assert!(
                            share.cached <= share.rows && share.cached_entries <= share.entries,
                            "{words}"
                        );
                        assert!(share.rows <= krylov.rows_per_thread * krylov.threads, "{words}");
                        if let (Preconditioning::BlockJacobi { size }, true) =
                            (preconditioner, next < matrix.rows())
                        {
                            assert_eq!(next % size, 0, "{words}");
                        }
                    }
                    assert_eq!((next, krylov.shares.len()), (matrix.rows(), krylov.blocks), "{words}");
                    assert!(krylov.regions.total <= plan.device.shared_bytes_for(1), "{words}");
                    assert_eq!(krylov.vectors.len(), krylov.regions.vectors.len());
                    if cache == SolveCache::None || cache == SolveCache::Matrix {
                        assert!(krylov.vectors.iter().all(|(_, home)| *home == Home::Device), "{words}");
                    }
                    if cache == SolveCache::None || cache == SolveCache::Vectors {
                        assert!(krylov.shares.iter().all(|share| share.cached_entries == 0), "{words}");
                        assert!(
                            !plan.residents.iter().any(|r| r.what == "matrix" && r.place == Place::Shared)
                        );
                    }
                }
            }
        }
    }
}

/// Does with the packed arrays what a kernel does, lane by lane: every product's own way through them gives
/// `A x`.
#[test]
fn packed_matrices_multiply_as_the_stored_ones() {
    for matrix in matrices().into_iter().chain([arrow(4000, DType::F32).unwrap().into()]) {
        let Matrix::Stored(stored) = &matrix else { continue };
        let x = Array::from_fn(stored.dtype(), stored.rows(), |i| ((i * 37) % 101) as f64 - 50.0);
        let expected = stored.matvec(&x).unwrap().to_f64();
        let x = x.to_f64();
        let slices = Division::Sliced { width: None };
        let divisions = [slices, Division::Split { lanes: 4 }, Division::Merged { items: 3 }];
        for (division, spread) in divisions.into_iter().flat_map(|d| [(d, None), (d, Some(300))]) {
            let configuration = Configuration {
                space: Space::Grid,
                blocks: 7,
                threads: 128,
                division,
                registers: 0,
                run: 8,
                ahead: true,
                spread,
                slabs: Slabs::default(),
            };
            let plan =
                plan_krylov_configuration(&matrix, &device("h200"), &SolveOptions::default(), &configuration)
                    .unwrap();
            let krylov = plan.krylov().unwrap();
            let long = spread
                .map_or(0, |most| (0..stored.rows()).filter(|&row| stored.range(row).len() > most).count());
            assert_eq!(krylov.spread_rows.len(), long);
            let packed = pack(stored, krylov).unwrap();
            let product = multiply(&packed, krylov, &x);
            for (row, (a, b)) in product.iter().zip(&expected).enumerate() {
                assert!((a - b).abs() <= 1e-5 * (1.0 + b.abs()), "{division:?}, row {row}: {a} {b}");
            }
        }
    }
}

fn multiply(packed: &Packed, krylov: &Krylov, x: &[f64]) -> Vec<f64> {
    let column = |entry: usize| match &packed.columns {
        Columns::U16(columns) => usize::from(columns[entry]),
        Columns::U32(columns) => columns[entry] as usize,
    };
    let mut product = Vec::new();
    let mut sums = vec![0.0; krylov.spread_rows.len()];
    for (share, [entries, offsets, searches]) in krylov.shares.iter().zip(&packed.firsts) {
        let term = |entry: usize| {
            packed.values.get(entries + entry).unwrap() * x[share.base + column(entries + entry)]
        };
        let offset = |number: usize| packed.offsets[offsets + number] as usize;
        for (number, sum) in sums.iter_mut().enumerate() {
            let offset =
                |number: usize| packed.offsets[offsets - krylov.spread_rows.len() - 1 + number] as usize;
            let piece = entries + offset(number)..entries + offset(number + 1);
            *sum += piece.map(|e| packed.values.get(e).unwrap() * x[share.first + column(e)]).sum::<f64>();
        }
        match krylov.division {
            Division::Sliced { width } => {
                for row in 0..share.rows {
                    let begin =
                        width.map_or_else(|| offset(row / SLICE), |width| row / SLICE * SLICE * width);
                    let end = width.map_or_else(|| offset(row / SLICE + 1), |width| begin + SLICE * width);
                    product.push((begin + row % SLICE..end).step_by(SLICE).map(term).sum());
                }
            }
            Division::Merged { items } => {
                // Each thread takes its items by its own searched coordinates; an open sum goes on to the
                // next thread.
                let all = share.rows + offset(share.rows);
                let mut sum = 0.0;
                for (number, diagonal) in (0..all).step_by(items).enumerate() {
                    let search = |number: usize| packed.searches[searches + number] as usize;
                    let (mut row, last) = (search(number), search(number + 1));
                    let (mut entry, end) = (diagonal - row, (diagonal + items).min(all) - last);
                    while row < last {
                        while entry < offset(row + 1) {
                            sum += term(entry);
                            entry += 1;
                        }
                        product.push(sum);
                        (sum, row) = (0.0, row + 1);
                    }
                    while entry < end {
                        sum += term(entry);
                        entry += 1;
                    }
                }
            }
            Division::Split { .. } | Division::Stencil => {
                product
                    .extend((0..share.rows).map(|row| (offset(row)..offset(row + 1)).map(term).sum::<f64>()));
            }
        }
    }
    for (&row, sum) in krylov.spread_rows.iter().zip(sums) {
        assert_eq!(product[row], 0.0);
        product[row] = sum;
    }
    product
}

#[test]
fn long_rows_are_spread_over_all_blocks() {
    let matrix: Matrix = arrow(300_000, DType::F64).unwrap().into();
    let smaller: Matrix = arrow(60_000, DType::F32).unwrap().into();
    for name in ["v100", "a100", "h100", "h200"] {
        for method in [Method::Cg, Method::PipelinedCg(PipelinedCg::default()), Method::BiCgStab] {
            let options = SolveOptions::with_method(method);
            assert_eq!(
                planned(&smaller, name, &options).krylov().unwrap().spread_rows,
                [0],
                "{name}, {method}"
            );
            let plan = planned(&matrix, name, &options);
            let krylov = plan.krylov().unwrap();
            assert_eq!(
                (krylov.space, &krylov.spread_rows[..], plan.product),
                (Space::Grid, &[0][..], Product::Sliced)
            );
            // Every block has as much to do, and there is no barrier more than without.
            assert!(krylov.imbalance() < 1.05, "{}", krylov.imbalance());
            assert_eq!(krylov.barriers, vectors::barriers(method, Preconditioning::None));
            assert!(plan.notes.iter().any(|note| note.contains("no barrier more")), "{plan}");
            assert!(krylov.describe().contains("1 long row spread"), "{}", krylov.describe());
            // Kept whole, the row belongs to one block alone: a configuration that loses, and says why.
            let configuration = Configuration {
                division: Division::Merged { items: 7 },
                spread: None,
                ..krylov.configuration()
            };
            let whole = plan_krylov_configuration(&matrix, &device(name), &options, &configuration).unwrap();
            assert!(whole.krylov().unwrap().imbalance() > 10.0 && whole.notes.len() == 1, "{whole}");
            assert!(whole.krylov().unwrap().seconds > 1.5 * krylov.seconds, "{name}");
        }
    }
    // Rows of a cluster or of one block are not spread.
    let configuration = Configuration {
        space: Space::Cluster,
        blocks: 8,
        ..planned(&matrix, "h200", &SolveOptions::default()).krylov().unwrap().configuration()
    };
    let error = plan_krylov_configuration(&matrix, &device("h200"), &SolveOptions::default(), &configuration)
        .unwrap_err()
        .to_string();
    assert!(error.contains("grid"), "{error}");
}

#[test]
fn no_more_rows_are_spread_than_there_is_room_for() {
    let few = skewed(4000, 200);
    assert_eq!(spread::threshold(&few, 132), None, "all are as long");
    // Rows of 1000, 1001, 1002 … entries, and many of one.
    let (rows, long) = (40_000, 300);
    let mut entries = Triplets::new(rows, rows).unwrap();
    for row in 0..rows {
        let length = if row < long { 1000 + row } else { 1 };
        (0..length).for_each(|column| entries.push(row, (row + column) % rows, 1.0).unwrap());
    }
    let matrix: Matrix = entries.into_csr().unwrap().into();
    let Matrix::Stored(stored) = &matrix else { unreachable!() };
    let threshold = spread::threshold(stored, 132);
    assert_eq!(threshold, Some(1000 + long - 1 - SPREAD_ROWS));
    let configuration = Configuration {
        space: Space::Grid,
        blocks: 132,
        threads: 512,
        division: Division::Merged { items: 7 },
        registers: 0,
        run: usize::MAX,
        ahead: true,
        spread: threshold,
        slabs: Slabs::default(),
    };
    let plan = plan_krylov_configuration(&matrix, &device("h200"), &SolveOptions::default(), &configuration)
        .unwrap();
    assert_eq!(plan.krylov().unwrap().spread_rows.len(), SPREAD_ROWS);
    let configuration = Configuration { spread: Some(1000), ..configuration };
    let error = plan_krylov_configuration(&matrix, &device("h200"), &SolveOptions::default(), &configuration)
        .unwrap_err()
        .to_string();
    assert!(error.contains("299") && error.contains("128"), "{error}");
}

#[test]
fn what_it_cannot_do_is_refused_by_name() {
    let matrix: Matrix = trefethen(50, DType::F64).unwrap().into();
    let preconditioner = Preconditioning::BlockJacobi { size: 65 };
    let options = SolveOptions { preconditioner, ..SolveOptions::default() };
    let error = plan_krylov(&matrix, &device("h200"), &options).unwrap_err().to_string();
    assert!(error.contains("65") && error.contains("64"), "{error}");
    let options =
        SolveOptions { preconditioner: Preconditioning::BlockJacobi { size: 0 }, ..SolveOptions::default() };
    let error = plan_krylov(&matrix, &device("h200"), &options).unwrap_err().to_string();
    assert!(error.contains("at least 1"), "{error}");
    let long: Matrix = skewed(4000, 1).into();
    let plan = planned(&long, "h200", &SolveOptions::default());
    assert!(
        plan.krylov().unwrap().space == Space::Block || plan.notes.iter().any(|note| note.contains("mean")),
        "{plan}"
    );
}

#[test]
fn cycles_of_gmres_have_their_basis_in_device_memory() {
    let matrix: Matrix = laplacian_2d(1000, 999, DType::F64).unwrap().into();
    let of = |restart| planned(&matrix, "h200", &SolveOptions::with_method(gmres(restart)));
    for restart in [1, 30, 200] {
        let plan = of(restart);
        let krylov = plan.krylov().unwrap();
        assert_eq!((krylov.restart, krylov.basis(), krylov.barriers), (restart, restart + 1, 3));
        // The iterate changes once per cycle, so it is worth no place on the chip; the newest vector of the
        // basis is worth one.
        let home = |vector| krylov.vectors.iter().find(|(own, _)| *own == vector).map(|(_, home)| *home);
        assert_eq!(home(Vector::X), Some(Home::Device));
        assert_ne!(home(Vector::W), Some(Home::Device));
        let in_memory = plan.residents.iter().filter(|resident| resident.place == Place::Memory);
        let in_memory: usize =
            in_memory.filter(|resident| resident.what == "vectors").map(|part| part.bytes).sum();
        assert_eq!(in_memory, (restart + 2) * matrix.rows() * 8);
        assert!(plan.to_string().contains(&format!("cycles of {restart}")), "{plan}");
    }
    // Each basis vector so far is read four times per iteration: half of all vectors, on average over a
    // cycle. One vector is written. The longer cycle's rotations leave a little less room for the matrix.
    let vector = (matrix.rows() * 8) as f64;
    let more = of(200).traffic.moved - of(100).traffic.moved;
    assert!((more / vector - 4.0 * 50.0).abs() < 1.0, "{}", more / vector);
    assert!(of(200).krylov().unwrap().seconds > 1.5 * of(100).krylov().unwrap().seconds);
    // A basis adds no traffic if the last-level cache holds it.
    let small: Matrix = laplacian_2d(60, 60, DType::F64).unwrap().into();
    let plan = planned(&small, "h200", &SolveOptions::with_method(gmres(30)));
    assert_eq!(plan.traffic.moved, 0.0);
}

#[test]
fn a_cycle_too_long_is_refused_with_the_limit() {
    let refused = |matrix: &Matrix, name: &str, restart| {
        plan_krylov(matrix, &device(name), &SolveOptions::with_method(gmres(restart)))
            .unwrap_err()
            .to_string()
    };
    let primes: Matrix = trefethen(2000, DType::F64).unwrap().into();
    let error = refused(&primes, "h200", 1025);
    assert!(error.contains("1025") && error.contains("1024") && error.contains("restart earlier"), "{error}");
    assert!(refused(&primes, "h200", 0).contains("at least 1"));
    // 1001 vectors of 20 MB do not fit into 16 GiB.
    let large: Matrix = stencil(&[1600, 1600]);
    let error = refused(&large, "v100", 1000);
    assert!(error.contains("GMRES's basis") && error.contains("restart earlier"), "{error}");
    // The longest cycles possible, on the device with the least shared memory; and no cycle is longer than
    // the system.
    for (name, restart) in [("v100", 1024), ("a100", 200)] {
        let plan = planned(&primes, name, &SolveOptions::with_method(gmres(restart)));
        assert_eq!(plan.krylov().unwrap().restart, restart);
    }
    let tiny: Matrix = trefethen(50, DType::F64).unwrap().into();
    let plan = planned(&tiny, "v100", &SolveOptions::with_method(gmres(1_000_000)));
    assert_eq!(plan.krylov().unwrap().restart, 50);
}
