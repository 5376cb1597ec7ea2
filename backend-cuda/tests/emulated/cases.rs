//! The emulated cases of solvers: every method, product, space and policy, and rows that are spread.

use abide_core::DType;
use abide_core::solver::plan::krylov::{Configuration, Division, Slabs, Space};
use abide_core::solver::{
    Gmres, Jacobi, Matrix, Method, PipelinedCg, Preconditioning, SolveCache, SolveOptions,
};
use abide_solvers::sparse::{hpcg, laplacian_2d, trefethen};

use crate::solver::Case;
use crate::systems::{arrow, long_rows, stencil, wind};

const SLICED: Division = Division::Sliced { width: None };

pub fn configuration(space: Space, blocks: usize, division: Division) -> Configuration {
    Configuration {
        space,
        blocks,
        threads: 128,
        division,
        registers: usize::MAX,
        run: usize::MAX,
        ahead: true,
        spread: None,
        slabs: Slabs::default(),
    }
}

/// Returns a configuration on a grid that spreads rows of more than 60 entries over its blocks.
fn spread(blocks: usize, division: Division) -> Configuration {
    Configuration { spread: Some(60), ..configuration(Space::Grid, blocks, division) }
}

pub fn options(method: Method, preconditioner: Preconditioning, cache: SolveCache) -> SolveOptions {
    SolveOptions { method, preconditioner, cache, ..SolveOptions::default() }
}

pub fn gmres(restart: usize) -> Method {
    Method::Gmres(Gmres { restart })
}

/// Returns the systems and the layouts that solve them.
pub fn cases() -> Vec<Case> {
    use Preconditioning as M;
    let single = Method::SingleReductionCg;
    let pipelined = Method::PipelinedCg(PipelinedCg { replacement: 7 });
    let chebyshev = Method::Chebyshev(abide_core::solver::Chebyshev::default());
    let jacobi = Method::Jacobi(Jacobi::default());
    let plane = || -> Matrix { laplacian_2d(23, 19, DType::F64).unwrap().into() };
    let primes = || -> Matrix { trefethen(331, DType::F64).unwrap().into() };
    let cube = || -> Matrix { hpcg(7, 6, 5, DType::F32).unwrap().into() };
    let case =
        |name, matrix, options, configuration| Case { name, matrix, options, configuration, shared: None };
    vec![
        // Conjugate gradients: every product, every space, every policy.
        case(
            "cg-sliced",
            plane(),
            options(Method::Cg, M::None, SolveCache::Mixed),
            configuration(Space::Grid, 3, SLICED),
        ),
        Case {
            shared: Some(6000),
            ..case(
                "cg-sliced-partly",
                plane(),
                options(Method::Cg, M::Jacobi, SolveCache::Matrix),
                configuration(Space::Grid, 3, SLICED),
            )
        },
        case(
            "cg-split",
            primes(),
            options(Method::Cg, M::Jacobi, SolveCache::None),
            configuration(Space::Grid, 2, Division::Split { lanes: 4 }),
        ),
        Case {
            shared: Some(16000),
            ..case(
                "cg-split-partly",
                primes(),
                options(Method::Cg, M::BlockJacobi { size: 5 }, SolveCache::Matrix),
                configuration(Space::Grid, 2, Division::Split { lanes: 8 }),
            )
        },
        case(
            "cg-merged",
            arrow(301),
            options(Method::Cg, M::Jacobi, SolveCache::Mixed),
            configuration(Space::Grid, 2, Division::Merged { items: 3 }),
        ),
        Case {
            shared: Some(9000),
            ..case(
                "cg-merged-partly",
                arrow(301),
                options(Method::Cg, M::None, SolveCache::Mixed),
                configuration(Space::Grid, 3, Division::Merged { items: 1 }),
            )
        },
        case(
            "cg-stencil",
            stencil(&[21, 17], "constant=0"),
            options(Method::Cg, M::None, SolveCache::Mixed),
            configuration(Space::Grid, 3, Division::Stencil),
        ),
        // Others' directions are made of what blocks of rows make of the residual.
        case(
            "cg-blocks",
            primes(),
            options(Method::Cg, M::BlockJacobi { size: 5 }, SolveCache::Mixed),
            configuration(Space::Grid, 2, Division::Split { lanes: 8 }),
        ),
        case(
            "cg-stencil-sides",
            stencil(&[13, 17], "y=periodic,x=mirror"),
            options(Method::Cg, M::Jacobi, SolveCache::Vectors),
            configuration(Space::Cluster, 2, Division::Stencil),
        ),
        case(
            "cg-cluster",
            cube(),
            options(Method::Cg, M::Jacobi, SolveCache::Mixed),
            configuration(Space::Cluster, 3, Division::Split { lanes: 16 }),
        ),
        // Of so many rows that a lane joins more runs than it loads at once.
        case(
            "cg-many-rows",
            stencil(&[131, 257], "constant=0"),
            options(Method::Cg, M::None, SolveCache::None),
            Configuration { run: 1, ..configuration(Space::Grid, 2, Division::Stencil) },
        ),
        case(
            "cg-block-many-rows",
            stencil(&[131, 129], "constant=0"),
            options(Method::Cg, M::None, SolveCache::None),
            Configuration { run: 1, ..configuration(Space::Block, 1, Division::Stencil) },
        ),
        case(
            "cg-block",
            plane(),
            options(Method::Cg, M::Chebyshev { degree: 2 }, SolveCache::Mixed),
            configuration(Space::Block, 1, Division::Split { lanes: 2 }),
        ),
        // Conjugate gradients with one reduction.
        case(
            "single-grid",
            plane(),
            options(single, M::Jacobi, SolveCache::Mixed),
            configuration(Space::Grid, 3, SLICED),
        ),
        case(
            "single-cluster",
            primes(),
            options(single, M::Jacobi, SolveCache::Mixed),
            configuration(Space::Cluster, 3, Division::Split { lanes: 32 }),
        ),
        case(
            "single-block",
            cube(),
            options(single, M::BlockJacobi { size: 8 }, SolveCache::Vectors),
            configuration(Space::Block, 1, SLICED),
        ),
        case(
            "single-polynomial",
            plane(),
            options(single, M::Chebyshev { degree: 3 }, SolveCache::Mixed),
            configuration(Space::Grid, 2, SLICED),
        ),
        // Pipelined conjugate gradients.
        case(
            "pipelined-grid",
            plane(),
            options(pipelined, M::None, SolveCache::Mixed),
            configuration(Space::Grid, 3, SLICED),
        ),
        case(
            "pipelined-cluster",
            primes(),
            options(pipelined, M::Jacobi, SolveCache::Mixed),
            configuration(Space::Cluster, 2, Division::Split { lanes: 8 }),
        ),
        case(
            "pipelined-blocks",
            plane(),
            options(pipelined, M::BlockJacobi { size: 8 }, SolveCache::None),
            configuration(Space::Grid, 2, Division::Split { lanes: 2 }),
        ),
        case(
            "pipelined-polynomial",
            plane(),
            options(pipelined, M::Chebyshev { degree: 2 }, SolveCache::Mixed),
            configuration(Space::Cluster, 2, SLICED),
        ),
        // The other methods.
        case(
            "minres-grid",
            plane(),
            options(Method::Minres, M::Jacobi, SolveCache::Mixed),
            configuration(Space::Grid, 3, SLICED),
        ),
        case(
            "minres-cluster",
            arrow(211),
            options(Method::Minres, M::BlockJacobi { size: 4 }, SolveCache::Mixed),
            configuration(Space::Cluster, 3, Division::Merged { items: 5 }),
        ),
        case(
            "minres-split",
            plane(),
            options(Method::Minres, M::None, SolveCache::None),
            configuration(Space::Grid, 2, Division::Split { lanes: 4 }),
        ),
        case(
            "minres-polynomial",
            plane(),
            options(Method::Minres, M::Chebyshev { degree: 2 }, SolveCache::Vectors),
            configuration(Space::Cluster, 2, SLICED),
        ),
        case(
            "bicgstab-grid",
            plane(),
            options(Method::BiCgStab, M::Jacobi, SolveCache::Mixed),
            configuration(Space::Grid, 3, SLICED),
        ),
        case(
            "bicgstab-cluster",
            arrow(211),
            options(Method::BiCgStab, M::BlockJacobi { size: 4 }, SolveCache::Mixed),
            configuration(Space::Cluster, 3, Division::Merged { items: 5 }),
        ),
        case(
            "bicgstab-polynomial",
            plane(),
            options(Method::BiCgStab, M::Chebyshev { degree: 2 }, SolveCache::None),
            configuration(Space::Grid, 2, SLICED),
        ),
        // GMRES: cycles that are cut by launches, and cycles longer than one group of sums holds.
        case(
            "gmres-grid",
            wind([23, 19], DType::F64),
            options(gmres(30), M::None, SolveCache::Mixed),
            configuration(Space::Grid, 3, SLICED),
        ),
        case(
            "gmres-long",
            laplacian_2d(13, 11, DType::F64).unwrap().into(),
            options(gmres(40), M::None, SolveCache::Auto),
            configuration(Space::Grid, 2, Division::Split { lanes: 4 }),
        ),
        case(
            "gmres-short",
            wind([17, 21], DType::F64),
            options(gmres(4), M::Jacobi, SolveCache::None),
            configuration(Space::Grid, 3, Division::Merged { items: 3 }),
        ),
        case(
            "gmres-cluster",
            arrow(211),
            options(gmres(7), M::BlockJacobi { size: 4 }, SolveCache::Mixed),
            configuration(Space::Cluster, 3, Division::Merged { items: 5 }),
        ),
        case(
            "gmres-cluster-f32",
            wind([19, 13], DType::F32),
            options(gmres(11), M::Jacobi, SolveCache::Vectors),
            configuration(Space::Cluster, 2, Division::Split { lanes: 2 }),
        ),
        case(
            "gmres-polynomial",
            plane(),
            options(gmres(20), M::Chebyshev { degree: 2 }, SolveCache::Mixed),
            configuration(Space::Grid, 2, SLICED),
        ),
        case(
            "gmres-block",
            wind([13, 11], DType::F64),
            options(gmres(40), M::BlockJacobi { size: 8 }, SolveCache::Mixed),
            configuration(Space::Block, 1, SLICED),
        ),
        case(
            "gmres-rows",
            wind([25, 23], DType::F64),
            options(gmres(12), M::Jacobi, SolveCache::Mixed),
            configuration(Space::Block, 1, SLICED),
        ),
        case(
            "gmres-stencil",
            stencil(&[13, 17], "y=periodic,x=mirror"),
            options(gmres(9), M::Jacobi, SolveCache::Matrix),
            configuration(Space::Grid, 2, Division::Stencil),
        ),
        case(
            "gmres-stencil-polynomial",
            stencil(&[19, 23], "constant=0"),
            options(gmres(6), M::Chebyshev { degree: 3 }, SolveCache::Auto),
            configuration(Space::Cluster, 2, Division::Stencil),
        ),
        case(
            "chebyshev-grid",
            stencil(&[19, 23], "constant=0"),
            options(chebyshev, M::None, SolveCache::Mixed),
            configuration(Space::Grid, 3, Division::Stencil),
        ),
        case(
            "chebyshev-cluster",
            primes(),
            options(chebyshev, M::Jacobi, SolveCache::Mixed),
            configuration(Space::Cluster, 2, Division::Split { lanes: 4 }),
        ),
        case(
            "jacobi-grid",
            stencil(&[11, 13], "y=constant=0,x=periodic"),
            options(jacobi, M::None, SolveCache::Mixed),
            configuration(Space::Grid, 2, Division::Stencil),
        ),
        case(
            "jacobi-block",
            stencil(&[9, 11], "constant=0"),
            options(jacobi, M::BlockJacobi { size: 3 }, SolveCache::Mixed),
            configuration(Space::Block, 1, Division::Stencil),
        ),
        // Long rows spread over all blocks: every method, product and exchange; one or several rows, in one
        // block or many.
        // one block or many.
        case("spread-cg", arrow(301), options(Method::Cg, M::Jacobi, SolveCache::Mixed), spread(3, SLICED)),
        case(
            "spread-cg-split",
            long_rows(307, &[5, 6, 7, 90, 91, 92, 306], true, DType::F32),
            options(Method::Cg, M::None, SolveCache::None),
            spread(2, Division::Split { lanes: 4 }),
        ),
        case(
            "spread-cg-polynomial",
            long_rows(307, &[0, 150], true, DType::F64),
            options(Method::Cg, M::Chebyshev { degree: 2 }, SolveCache::Mixed),
            spread(3, SLICED),
        ),
        case(
            "spread-single",
            long_rows(299, &[100, 298, 102], true, DType::F64),
            options(single, M::BlockJacobi { size: 4 }, SolveCache::Vectors),
            spread(3, Division::Merged { items: 3 }),
        ),
        case(
            "spread-single-polynomial",
            arrow(211),
            options(single, M::Chebyshev { degree: 3 }, SolveCache::Mixed),
            spread(2, Division::Split { lanes: 2 }),
        ),
        case(
            "spread-pipelined",
            arrow(301),
            options(pipelined, M::Jacobi, SolveCache::Mixed),
            spread(3, SLICED),
        ),
        case(
            "spread-pipelined-polynomial",
            long_rows(211, &[3, 70, 71, 72, 140], true, DType::F64),
            options(pipelined, M::Chebyshev { degree: 2 }, SolveCache::None),
            spread(3, SLICED),
        ),
        case(
            "spread-bicgstab",
            long_rows(307, &[33, 300], false, DType::F64),
            options(Method::BiCgStab, M::None, SolveCache::Mixed),
            spread(3, Division::Split { lanes: 2 }),
        ),
        case(
            "spread-bicgstab-polynomial",
            long_rows(307, &[306], false, DType::F64),
            options(Method::BiCgStab, M::Chebyshev { degree: 2 }, SolveCache::Mixed),
            spread(2, SLICED),
        ),
        case(
            "spread-gmres",
            long_rows(307, &[33, 300], false, DType::F64),
            options(gmres(8), M::Jacobi, SolveCache::Mixed),
            spread(3, SLICED),
        ),
        case(
            "spread-gmres-polynomial",
            long_rows(307, &[306], false, DType::F32),
            options(gmres(5), M::Chebyshev { degree: 2 }, SolveCache::Mixed),
            spread(2, Division::Split { lanes: 2 }),
        ),
        case(
            "spread-chebyshev",
            long_rows(307, &[0, 1], true, DType::F32),
            options(chebyshev, M::Jacobi, SolveCache::Mixed),
            spread(3, SLICED),
        ),
        case(
            "spread-jacobi",
            long_rows(301, &[17, 299], false, DType::F64),
            options(jacobi, M::BlockJacobi { size: 5 }, SolveCache::Mixed),
            spread(3, SLICED),
        ),
    ]
}
