//! The emulated cases of systems on several slabs of one device: every method, with what crosses from slab to slab.

use abide_core::DType;
use abide_core::solver::plan::krylov::{Configuration, Division, Slabs, Space};
use abide_core::solver::{Matrix, Method, PipelinedCg, Preconditioning, SolveCache};
use abide_solvers::sparse::{hpcg, laplacian_2d, trefethen};

use crate::cases::{configuration, gmres, options};
use crate::solver::Case;
use crate::systems::{stencil, wind};

const SLICED: Division = Division::Sliced { width: None };

/// Returns a configuration of so many slabs with so many blocks each.
fn slabs(count: usize, blocks: usize, division: Division) -> Configuration {
    Configuration {
        slabs: Slabs { count, of_a_device: count },
        ..configuration(Space::Grid, count * blocks, division)
    }
}

/// Returns a case for each method, all products that slabs have, and preconditioners with products of their own.
pub fn cases() -> Vec<Case> {
    use Preconditioning as M;
    let pipelined = Method::PipelinedCg(PipelinedCg { replacement: 7 });
    let chebyshev = Method::Chebyshev(abide_core::solver::Chebyshev::default());
    let plane = || -> Matrix { laplacian_2d(23, 19, DType::F64).unwrap().into() };
    let case =
        |name, matrix, options, configuration| Case { name, matrix, options, configuration, shared: None };
    let mixed = |method, preconditioner| options(method, preconditioner, SolveCache::Mixed);
    vec![
        case("slabs-cg", plane(), mixed(Method::Cg, M::None), slabs(2, 2, SLICED)),
        // The first slab and the last read each other's rows, and the middle one those of both.
        case(
            "slabs-cg-ring",
            stencil(&[21, 17], "y=periodic,x=mirror"),
            mixed(Method::Cg, M::Jacobi),
            slabs(3, 1, Division::Stencil),
        ),
        // No room for others' directions in a block: those of other slabs are made in the memory of each.
        case(
            "slabs-cg-apart",
            plane(),
            options(Method::Cg, M::None, SolveCache::None),
            slabs(3, 2, Division::Split { lanes: 2 }),
        ),
        case(
            "slabs-cg-blocks",
            plane(),
            options(Method::Cg, M::BlockJacobi { size: 5 }, SolveCache::Matrix),
            slabs(2, 1, SLICED),
        ),
        case(
            "slabs-cg-single",
            laplacian_2d(17, 23, DType::F32).unwrap().into(),
            mixed(Method::Cg, M::Jacobi),
            slabs(2, 2, SLICED),
        ),
        // Products of the preconditioner between the sums.
        case(
            "slabs-cg-polynomial",
            plane(),
            mixed(Method::Cg, M::Chebyshev { degree: 2 }),
            slabs(2, 1, SLICED),
        ),
        // So many blocks that several warps join the nodes.
        case(
            "slabs-cg-groups",
            trefethen(16_500, DType::F64).unwrap().into(),
            mixed(Method::Cg, M::Jacobi),
            slabs(2, 40, SLICED),
        ),
        // Columns far from the diagonal; blocks of rows that no slab cuts.
        case(
            "slabs-cg-split",
            trefethen(331, DType::F64).unwrap().into(),
            options(Method::Cg, M::BlockJacobi { size: 5 }, SolveCache::Matrix),
            slabs(2, 1, Division::Split { lanes: 4 }),
        ),
        case(
            "slabs-single",
            hpcg(7, 6, 5, DType::F32).unwrap().into(),
            mixed(Method::SingleReductionCg, M::Jacobi),
            slabs(2, 1, SLICED),
        ),
        case("slabs-pipelined", plane(), mixed(pipelined, M::None), slabs(3, 1, SLICED)),
        case(
            "slabs-bicgstab",
            wind([19, 17], DType::F64),
            options(Method::BiCgStab, M::None, SolveCache::None),
            slabs(2, 2, SLICED),
        ),
        case("slabs-minres", plane(), mixed(Method::Minres, M::Jacobi), slabs(2, 1, SLICED)),
        case("slabs-gmres", wind([13, 11], DType::F64), mixed(gmres(6), M::Jacobi), slabs(2, 1, SLICED)),
        case("slabs-chebyshev", plane(), mixed(chebyshev, M::Chebyshev { degree: 2 }), slabs(2, 1, SLICED)),
    ]
}

/// What is taken away from the kernels, and found: words of a case's text, and what stands in their place.
pub const DEFECTS: [(&str, &str, &str); 19] = [
    // Rows that another slab reads, nodes of its sums, and arrivals must get there;
    ("slabs-cg", "*beyond(a, place, other) = value;", ";"),
    ("slabs-cg-ring", "i - __ldg(given) < __ldg(given + 1)", "i - __ldg(given) < __ldg(given + 1) / 2"),
    ("slabs-cg", "*beyond(a, place, other) = node;", ";"),
    // those of nodes with their own tags too: each word has the tag of its sum;
    ("slabs-cg", "node.store(beyond(a, nodes + slot, other));", ";"),
    ("slabs-cg", "unsigned(a.tags) + ++tagged", "unsigned(a.tags) + 1"),
    ("slabs-cg", "part < WORDS; ++part) all = all", "part < 1; ++part) all = all"),
    // and sums of groups take the places of runs' sums when those are joined;
    (
        "slabs-cg-groups",
        "void await_together(const Team&) const { __syncthreads(); }",
        "void await_together(const Team&) const {}",
    ),
    ("slabs-single", "add_devices(beyond(a, a.arrived, other), 1u);", ";"),
    // a block arrives behind what it has stored, in the memory of all devices and in its own;
    ("slabs-cg", "fence_devices();", ""),
    ("slabs-cg", "fence_devices();", "__threadfence();"),
    ("slabs-cg-apart", "add_release(a.arrived + OWN_ARRIVED, 1u)", "atomicAdd(a.arrived + OWN_ARRIVED, 1u)"),
    // all blocks of all slabs are waited for;
    ("slabs-cg", "barriers * unsigned(BLOCKS)", "barriers * unsigned(OWN)"),
    // what is made of other slabs' residuals is that of all rows that are read, after they are there and before the product;
    ("slabs-cg-apart", "team.give(residuals(team) + team.own.first + i, i, z);", ";"),
    ("slabs-cg-apart", "n < a.low_rows ? a.low + n : a.high + (n - a.low_rows)", "a.low + n"),
    ("slabs-cg-apart", "residuals(team)[row] + beta * here[row]", "residuals(team)[row]"),
    ("slabs-cg-apart", "        team.meet_own();", "        __syncthreads();"),
    ("slabs-cg-blocks", "here[team.own.first + i] = p.get(k, i);", ";"),
    ("slabs-cg-apart", ">= own_barriers * unsigned(OWN)", ">= own_barriers"),
    // and a turn of the exchanged vector is one of all slabs.
    ("slabs-pipelined", "if constexpr (TURNS > 1) turn ^= 1;", ""),
];

/// Makes one block abort a wait. (All blocks read the abort word more often than on a device.)
pub const IMPATIENT: [(&str, &str); 3] = [
    ("clock64() - begun <= DEADLINE", "!(blockIdx.x == 1 && barriers >= 3)"),
    ("constexpr unsigned LOOKS = 1024;", "constexpr unsigned LOOKS = 8;"),
    ("if (*lost() != 0) end_thread();", "if (*lost() != 0) emulated::end_lane();"),
];
