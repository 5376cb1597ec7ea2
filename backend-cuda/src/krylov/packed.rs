//! A system as the solvers' kernels read it: the arrays of the layout and of the preconditioner.

use abide_solvers::{build_preconditioner, estimate_bounds};
use std::sync::Arc;

use abide_core::solver::plan::krylov::{Krylov, Vector, applied};
use abide_core::solver::{Matrix, Method, Operator, Preconditioning, SolveOptions, SolverError};
use abide_core::{Array, DType, Error, Real, Result};
use abide_shaders::cuda::{KRYLOV_ALWAYS, KrylovShare};
use abide_solvers::plan::krylov::{Columns, pack};
use abide_solvers::{BlockDiagonal, Diagonal, Serial, polynomial_bounds, polynomial_factors};

/// The arrays that are uploaded once per session; the fields are named as in the kernels' `Arguments`.
#[derive(Debug, Clone, PartialEq)]
pub struct PackedSystem {
    /// The `Share` of each block.
    pub shares: Vec<u8>,
    /// Row or slice offsets.
    pub offsets: Vec<u8>,
    /// Merge-path searches.
    pub searches: Vec<u8>,
    /// Where blocks write their nodes of sums.
    pub nodes: Vec<u8>,
    /// Where windows have their chains of nodes.
    pub chains: Vec<u8>,
    /// Nodes of sums. A node that no block writes changes no sum.
    pub partials: Vec<u8>,
    /// Nodes that carry their own tag, for the kernels of slabs. A node that no block writes has a tag that always matches.
    pub tagged: Vec<u8>,
    /// The rows that are spread.
    pub spread: Vec<u8>,
    /// Columns.
    pub columns: Vec<u8>,
    /// Values.
    pub values: Vec<u8>,
    /// Inverse blocks of block-Jacobi, each row as long as a block.
    pub inverse: Vec<u8>,
    /// Factors of the polynomial preconditioner.
    pub factors: Vec<u8>,
    /// The inverse diagonal, and the number of its vector, where the kernels read it as one.
    pub diagonal: Option<(usize, Array)>,
    /// For each block and each slab but its own, the first of the block's rows that the slab reads, and how many.
    pub given: Vec<u8>,
    /// The first entry, offset and search of each block, and the ends of the last.
    pub(super) firsts: Vec<[usize; 3]>,
    /// Bytes of a value.
    pub(super) real: usize,
    /// Values from one vector in device memory to the next.
    pub stride: usize,
    /// Centre and half width of Chebyshev iteration's interval.
    pub interval: [f64; 2],
    /// The damping of Jacobi's method.
    pub weight: f64,
    /// Iterations from one replacement to the next in pipelined conjugate gradients.
    pub replacement: u32,
}

impl PackedSystem {
    /// Gives back the memory of what devices have copies of.
    pub fn unload(&mut self) {
        let PackedSystem { offsets, searches, columns, values, inverse, .. } = self;
        [offsets, searches, columns, values, inverse].into_iter().for_each(|part| *part = Vec::new());
    }

    /// Packs a system under a layout. Eigenvalues are estimated here, and blocks inverted.
    pub fn new(
        matrix: &Matrix,
        options: &SolveOptions,
        layout: &Krylov,
    ) -> Result<PackedSystem, SolverError> {
        match matrix.dtype() {
            DType::F32 => PackedSystem::of(&matrix.operator::<f32>()?, matrix, options, layout),
            DType::F64 => PackedSystem::of(&matrix.operator::<f64>()?, matrix, options, layout),
        }
    }

    fn of<T: Real>(
        operator: &Arc<dyn Operator<T>>,
        matrix: &Matrix,
        options: &SolveOptions,
        layout: &Krylov,
    ) -> Result<PackedSystem, SolverError> {
        let packed = match matrix {
            Matrix::Stored(stored) => Some(pack(stored, layout)?),
            Matrix::Stencil(_) => None,
        };
        let mut shares = Vec::new();
        for (number, share) in layout.shares.iter().enumerate() {
            let [entries, offsets, searches] = packed.as_ref().map_or([0; 3], |packed| packed.firsts[number]);
            let spread_before = |row: usize| layout.spread_rows.partition_point(|&spread| spread < row);
            let spread_first = spread_before(share.first);
            let spread_rows = spread_before(share.first + share.rows) - spread_first;
            let own = KrylovShare {
                entries: entries as u64,
                offsets: offsets as u64,
                reach: share.reach as u64,
                first: narrow_number(share.first)?,
                rows: narrow_number(share.rows)?,
                cached: narrow_number(share.cached)?,
                cached_entries: narrow_number(share.cached_entries)?,
                base: narrow_number(share.base)?,
                searches: narrow_number(searches)?,
                spread_first: narrow_number(spread_first)?,
                spread_rows: narrow_number(spread_rows)?,
                read_before: narrow_number(share.seams[0])?,
                read_from: narrow_number(share.seams[1])?,
            };
            shares.extend(own.bytes());
        }
        let mut system = PackedSystem {
            shares,
            offsets: Vec::new(),
            searches: Vec::new(),
            nodes: layout.sums.nodes.iter().flat_map(|node| node.to_ne_bytes()).collect(),
            chains: layout.sums.chains.iter().flat_map(|chain| chain.to_ne_bytes()).collect(),
            partials: Array::from_fn(matrix.dtype(), layout.partials(), |_| -0.0).as_bytes().to_vec(),
            tagged: tagged(layout, options, matrix.dtype()),
            spread: Vec::new(),
            columns: Vec::new(),
            values: Vec::new(),
            inverse: Vec::new(),
            factors: Vec::new(),
            diagonal: None,
            given: Vec::new(),
            firsts: packed.as_ref().map_or_else(Vec::new, |packed| packed.firsts.clone()),
            real: matrix.dtype().bytes(),
            stride: matrix.rows().next_multiple_of(64),
            interval: [1.0, 0.0],
            weight: 1.0,
            replacement: 0,
        };
        for &row in &layout.spread_rows {
            system.spread.extend(narrow_number(row)?.to_ne_bytes());
        }
        for given in &layout.given {
            for number in [given.first, given.rows] {
                system.given.extend(narrow_number(number)?.to_ne_bytes());
            }
        }
        if let Some(packed) = packed {
            system.firsts.push([packed.values.len(), packed.offsets.len(), packed.searches.len()]);
            system.offsets = packed.offsets.iter().flat_map(|offset| offset.to_ne_bytes()).collect();
            system.searches = packed.searches.iter().flat_map(|search| search.to_ne_bytes()).collect();
            system.columns = match packed.columns {
                Columns::U16(columns) => columns.iter().flat_map(|column| column.to_ne_bytes()).collect(),
                Columns::U32(columns) => columns.iter().flat_map(|column| column.to_ne_bytes()).collect(),
            };
            system.values = packed.values.as_bytes().to_vec();
        }
        system.precondition::<T>(operator, options, layout)?;
        match options.method {
            Method::Jacobi(method) => {
                method.check()?;
                system.weight = method.weight;
            }
            Method::PipelinedCg(method) => {
                system.replacement = u32::try_from(method.replacement).unwrap_or(u32::MAX)
            }
            Method::Chebyshev(method) => {
                let bounds = match method.bounds {
                    Some(bounds) => bounds,
                    None => {
                        let mut m =
                            build_preconditioner(&options.preconditioner, &Serial, Arc::clone(operator))?;
                        estimate_bounds(&Serial, operator, &mut m, 30)?.widened(0.9, 1.1)?
                    }
                };
                system.interval =
                    [(bounds.high() + bounds.low()) / 2.0, (bounds.high() - bounds.low()) / 2.0];
            }
            Method::Cg | Method::SingleReductionCg | Method::Minres | Method::BiCgStab | Method::Gmres(_) => {
            }
        }
        Ok(system)
    }

    fn precondition<T: Real>(
        &mut self,
        operator: &Arc<dyn Operator<T>>,
        options: &SolveOptions,
        layout: &Krylov,
    ) -> Result<(), SolverError> {
        let number = layout.vectors.iter().position(|(vector, _)| *vector == Vector::Inverse);
        let diagonal = |values: Vec<T>| number.map(|number| (number, T::into_array(values)));
        match applied(options) {
            Preconditioning::None => {}
            host @ (Preconditioning::Ilu | Preconditioning::Amg { .. }) => host.check_kernels()?,
            Preconditioning::Jacobi => self.diagonal = diagonal(Diagonal::new(operator)?.inverse().to_vec()),
            Preconditioning::BlockJacobi { size } => {
                let blocks = BlockDiagonal::new(operator, size)?;
                // The last block's rows are filled up to the length of the others'.
                let (inverses, own) = (blocks.inverses(), blocks.size());
                let mut rows: Vec<T> = Vec::new();
                let mut at = 0;
                for start in (0..operator.rows()).step_by(own) {
                    let n = own.min(operator.rows() - start);
                    for row in inverses[at..at + n * n].chunks_exact(n) {
                        rows.extend_from_slice(row);
                        rows.resize(rows.len() + size - n, T::ZERO);
                    }
                    at += n * n;
                }
                self.inverse = T::into_array(rows).as_bytes().to_vec();
            }
            Preconditioning::Chebyshev { degree } => {
                let (scale, bounds) = polynomial_bounds(&Serial, operator)?;
                let values =
                    scale.map_or_else(|| vec![T::ONE; operator.rows()], |scale| scale.inverse().to_vec());
                self.diagonal = diagonal(values);
                self.factors =
                    polynomial_factors(bounds, degree).into_iter().flat_map(f64::to_ne_bytes).collect();
            }
        }
        Ok(())
    }
}

/// Returns the nodes that carry their own tag, before any sum: words of 64 bits, each 32 bits of a value below a tag.
fn tagged(layout: &Krylov, options: &SolveOptions, dtype: DType) -> Vec<u8> {
    const NEVER: u32 = 0;
    if layout.slabs.count == 1 || options.method != Method::Cg {
        return Vec::new();
    }
    let written = layout.sums.told();
    let neutral = Array::from_fn(dtype, 1, |_| -0.0);
    let words = |written: bool| {
        let tag = if written { NEVER } else { KRYLOV_ALWAYS };
        neutral
            .as_bytes()
            .chunks(4)
            .flat_map(move |part| [part, &tag.to_ne_bytes()].concat())
            .collect::<Vec<u8>>()
    };
    written.into_iter().flat_map(words).collect()
}

fn narrow_number(value: usize) -> Result<u32> {
    let change = "choose --backend cpu";
    u32::try_from(value).map_err(|_| Error::limit("numbers of a solver's layout", value, u32::MAX, change))
}
