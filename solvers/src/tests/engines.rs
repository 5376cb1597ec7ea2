//! An engine of another build than the reference's gives the same bits.

use std::sync::Arc;

use crate::method;
use abide_core::Real;
use abide_core::reduction::{LEAF, Sums, leaf_dot};
use abide_core::solver::{METHODS, Operator, PRECONDITIONERS, Parameters, Report};
use abide_core::sparse::{Csr, Triplets};

use super::random;
use crate::engine::{Engine, Serial};
use crate::registry::preconditioner;

/// Does everything from the back to the front, in pieces, as threads may: in one of the orders that are open
/// to them.
#[derive(Debug, Clone, Copy, Default)]
struct Backwards;

impl<T: Real> Engine<T> for Backwards {
    fn dots<const K: usize>(&self, pairs: [(&[T], &[T]); K]) -> [T; K] {
        pairs.map(|(a, b)| {
            let leaves: Vec<_> = a.chunks(LEAF).zip(b.chunks(LEAF)).collect();
            let mut sums: Vec<T> = leaves.iter().rev().map(|(a, b)| leaf_dot(a, b)).collect();
            let mut all = Sums::new();
            while let Some(sum) = sums.pop() {
                all.push(sum);
            }
            all.finish()
        })
    }

    fn update<const W: usize, const R: usize>(
        &self,
        mut write: [&mut [T]; W],
        read: [&[T]; R],
        f: impl Fn([T; W], [T; R]) -> [T; W] + Sync,
    ) {
        for i in (0..write.first().map_or(0, |w| w.len())).rev() {
            let new = f(std::array::from_fn(|k| write[k][i]), std::array::from_fn(|k| read[k][i]));
            for (write, new) in write.iter_mut().zip(new) {
                write[i] = new;
            }
        }
    }

    fn chunks(&self, out: &mut [T], size: usize, f: impl Fn(usize, &mut [T]) + Sync) {
        let starts: Vec<usize> = (0..out.len()).step_by(size).collect();
        for start in starts.into_iter().rev() {
            let end = out.len().min(start + size);
            f(start, &mut out[start..end]);
        }
    }
}

/// The 1D Laplacian plus 1 with links over 17 rows, of eleven leaves of a reduction and a little more.
struct Line;

/// The rows that are linked, and the weights of the links.
const LINKS: [(usize, f64); 2] = [(1, 1.0), (17, 0.25)];

const ROWS: usize = 11 * LEAF + 77;

impl<T: Real> Operator<T> for Line {
    fn rows(&self) -> usize {
        ROWS
    }

    fn apply(&self, x: &[T], y: &mut [T]) {
        for i in 0..ROWS {
            y[i] = T::from_f64(3.0) * x[i];
            for (far, weight) in LINKS {
                let at = |k: Option<usize>| k.and_then(|k| x.get(k)).copied().unwrap_or(T::ZERO);
                y[i] = y[i] - T::from_f64(weight) * (at(i.checked_sub(far)) + at(Some(i + far)));
            }
        }
    }

    fn entries(&self) -> abide_core::Result<Option<Arc<Csr>>> {
        let mut entries = Triplets::<T>::new(ROWS, ROWS)?;
        for i in 0..ROWS {
            entries.push(i, i, T::from_f64(3.0))?;
            for (far, weight) in LINKS {
                for other in [i.checked_sub(far), Some(i + far)].into_iter().flatten().filter(|&k| k < ROWS) {
                    entries.push(i, other, T::from_f64(-weight))?;
                }
            }
        }
        entries.into_csr().map(|entries| Some(Arc::new(entries)))
    }

    fn diagonal(&self) -> Option<Vec<T>> {
        Some(vec![T::from_f64(3.0); ROWS])
    }

    fn diagonal_block(&self, _start: usize, size: usize) -> Option<Vec<T>> {
        let entry = |k: usize| match (k / size).abs_diff(k % size) {
            0 => 3.0,
            apart => LINKS.iter().find(|(far, _)| *far == apart).map_or(0.0, |(_, weight)| -weight),
        };
        Some((0..size * size).map(|k| T::from_f64(entry(k))).collect())
    }
}

fn same_bits<T: Real>() {
    let b = random::<T>(ROWS, 30);
    let parameters = Parameters { relative: 1e-5, ..Parameters::default() };
    for name in METHODS {
        for preconditioner_name in PRECONDITIONERS {
            let solution = |engine: &dyn Fn(&mut [T]) -> Report| {
                let mut x = vec![T::ZERO; ROWS];
                let report = engine(&mut x);
                (x, report.history, report.true_residual)
            };
            let one = solution(&|x| {
                let mut m = preconditioner(preconditioner_name, &Serial, &Line).unwrap();
                method::<T, _>(name).unwrap().solve_on(&Serial, &Line, &mut m, &b, x, &parameters).unwrap()
            });
            let other = solution(&|x| {
                let mut m = preconditioner(preconditioner_name, &Backwards, &Line).unwrap();
                method::<T, _>(name).unwrap().solve_on(&Backwards, &Line, &mut m, &b, x, &parameters).unwrap()
            });
            assert!(one == other, "{name} with {preconditioner_name}");
            assert!(one.1.len() > 2, "{name} with {preconditioner_name}: {:?}", one.1);
        }
    }
}

#[test]
fn engines_agree_bit_for_bit() {
    same_bits::<f64>();
    same_bits::<f32>();
}
