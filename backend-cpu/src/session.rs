//! A problem in progress: two arrays for each field that changes, one for each that does not.
//!
//! A stage of a stepwise run, or a pass of several steps, reads one of the two arrays and writes the other.

use std::sync::Arc;
use std::time::Instant;

use abide_core::backend::{check_field, check_values, check_window, rows_of, write_rows};
use abide_core::plan::{Cpu, Levels, MAX_CPU_DEPTH};
use abide_core::{Array, Error, Execution, Plan, Problem, Real, Result, Session, memory};
use core_affinity::CoreId;
use rayon::ThreadPool;
use rayon::prelude::*;

use crate::count;
use crate::crew;
use crate::pass::Rings;
use crate::region::Region;
use crate::shared::Shared;
use crate::stepwise::{Band, Outputs, Stage, sweep};
use crate::tape::Tape;
use crate::tile::{Pass, Tile};

/// The threads and cores that work for a session.
#[derive(Default)]
pub struct Workers {
    /// The threads that share sweeps and passes; rayon's global ones where there is no pool.
    pub pool: Option<Arc<ThreadPool>>,
    /// The cores of the threads of a persistent run, which last as long as the run; none where the system
    /// chooses.
    pub cores: Vec<CoreId>,
}

/// The schedule by which a session advances.
enum Way<T> {
    /// One stage of a step at a time, in bands.
    Stepwise(Vec<Band<T>>),
    /// Several steps at a time, in tiles.
    Tiled(Box<Tiled<T>>),
}

/// Tiles, and the rings that each thread needs to advance them.
struct Tiled<T> {
    /// The pipeline of a full pass, and that of the last shorter pass.
    levels: [Levels; 2],
    tiles: Vec<Tile>,
    rings: Vec<Rings<T>>,
    persistent: bool,
    /// The cores of the threads, as in [`Workers`].
    cores: Vec<CoreId>,
}

/// A problem lowered to rows.
struct Lowered<T> {
    problem: Problem,
    region: Region,
    /// Cells of a chunk.
    chunk: usize,
    /// Each stage's tape.
    tapes: Vec<Tape>,
    parameters: Vec<T>,
}

/// A session on all threads of a pool.
pub struct Threaded<T> {
    lowered: Lowered<T>,
    plan: Plan,
    pool: Option<Arc<ThreadPool>>,
    /// The fields that each stage writes.
    writes: Vec<Vec<usize>>,
    way: Way<T>,
    /// The current values of each field.
    now: Vec<Vec<T>>,
    /// The array to which a stage writes the new values; empty for a field that no stage writes. Cells that
    /// are not computed always hold the same values here as in `now`.
    new: Vec<Vec<T>>,
}

impl<T: Real> Threaded<T> {
    /// Lowers the problem and takes over its fields, whose number and sizes have been checked. Sums of
    /// additions are turned into multiply-adds if `fused` says so (see [`Tape::new`]).
    pub fn open(
        problem: &Problem,
        plan: &Plan,
        cpu: &Cpu,
        Workers { pool, cores }: Workers,
        fused: bool,
        fields: Vec<Vec<T>>,
    ) -> Result<Self> {
        let simplified = problem.program.simplified(problem.dtype);
        let tapes: Vec<Tape> = simplified.stages().iter().map(|stage| Tape::new(&stage.dag, fused)).collect();
        let writes = simplified.stages().iter().map(|stage| stage.writes.clone()).collect();
        // A plan's fields can be changed by any caller, and scratch grows with both.
        let (threads, chunk) = (cpu.threads.clamp(1, 4096), cpu.chunk.clamp(1, 1 << 16));
        let region = Region::new(problem, threads, chunk);
        let way = match &cpu.tiling {
            None => {
                let tapes: Vec<&Tape> = tapes.iter().collect();
                let band = |units| Band::new(units, &region, &tapes, chunk);
                Way::Stepwise(region.bands(threads).into_iter().map(band).collect::<Result<_>>()?)
            }
            Some(tiling) => {
                let depth = plan.depth.clamp(1, MAX_CPU_DEPTH) as usize;
                let levels = Levels::new(problem, depth, tiling.block);
                let tiles = crew::tiles(&region, tiling, levels.stream);
                let rings = (0..threads.min(tiles.len())).map(|_| Rings::new(&region, &tapes, chunk));
                let rings = rings.collect::<Result<_>>()?;
                let persistent = plan.execution == Execution::Persistent;
                Way::Tiled(Box::new(Tiled {
                    levels: [levels.clone(), levels],
                    tiles,
                    rings,
                    persistent,
                    cores,
                }))
            }
        };
        let new = fields
            .iter()
            .enumerate()
            .map(
                |(field, values)| {
                    if problem.program.is_written(field) { copied(values) } else { Ok(Vec::new()) }
                },
            )
            .collect::<Result<_>>()?;
        let parameters = problem.parameters.iter().map(|&value| T::from_f64(value)).collect();
        let lowered = Lowered { problem: problem.clone(), region, chunk, tapes, parameters };
        Ok(Threaded { lowered, plan: plan.clone(), pool, writes, way, now: fields, new })
    }

    fn steps(&mut self, steps: u64) -> Result<()> {
        let Threaded { lowered, writes, way, now, new, .. } = self;
        match way {
            Way::Stepwise(bands) => {
                let Lowered { region, chunk, tapes, parameters, .. } = lowered;
                for _ in 0..steps {
                    for (tape, writes) in tapes.iter().zip(&*writes) {
                        let stage = Stage { region, tape, parameters, old: now, chunk: *chunk };
                        sweep(&stage, bands, Outputs::new(new, writes));
                        for &field in writes {
                            std::mem::swap(&mut now[field], &mut new[field]);
                        }
                    }
                }
                Ok(())
            }
            Way::Tiled(tiled) => {
                let done = tiled.advance(lowered, [now, new], steps)?;
                if done % 2 == 1 {
                    for (now, new) in now.iter_mut().zip(new).filter(|(_, new)| !new.is_empty()) {
                        std::mem::swap(now, new);
                    }
                }
                Ok(())
            }
        }
    }

    fn field(&self, field: usize) -> Result<&Vec<T>> {
        let names = self.lowered.problem.program.fields();
        self.now.get(field).ok_or_else(|| Error::unknown("field", field.to_string(), names))
    }
}

impl<T: Real> Tiled<T> {
    /// Advances the fields by passes that read one of two arrays and write the other; the first pass reads
    /// `now`. Returns the number of passes.
    fn advance(&mut self, lowered: &Lowered<T>, [now, new]: [&mut [Vec<T>]; 2], steps: u64) -> Result<u64> {
        let Lowered { problem, region, chunk, tapes, parameters } = lowered;
        let Tiled { levels, tiles, rings, persistent, cores } = self;
        if rings.is_empty() {
            return Ok(0);
        }
        let depth = levels[0].depth as u64;
        let (full, rest) = (steps / depth, (steps % depth) as usize);
        if rest > 0 && levels[1].depth != rest {
            levels[1] = Levels::new(problem, rest, levels[0].block);
        }
        let most = [0, 1, 2].map(|axis| tiles.iter().map(|tile| tile.cells[axis].len()).max().unwrap_or(0));
        for rings in &mut *rings {
            levels.iter().try_for_each(|levels| rings.fit(levels, most))?;
        }
        let now: Vec<Shared<'_, T>> = now.iter_mut().map(|field| Shared::new(field)).collect();
        // A field that no stage writes is the same in both.
        let pairs = new.iter_mut().zip(&now);
        let new: Vec<Shared<'_, T>> =
            pairs.map(|(new, now)| if new.is_empty() { *now } else { Shared::new(new) }).collect();
        let divided = crew::divided(tiles, &levels[0]);
        let passes = full + u64::from(rest > 0);
        let pass = |number: u64| {
            let levels = &levels[usize::from(number >= full)];
            let [now, new] = if number.is_multiple_of(2) { [&now, &new] } else { [&new, &now] };
            Pass { region, levels, tapes, parameters, chunk: *chunk, divided, now, new }
        };
        if *persistent {
            crew::persist(passes, pass, region, levels[0].halo, tiles, rings, cores)?;
        } else {
            (0..passes).for_each(|number| crew::stream(&pass(number), tiles, rings));
        }
        Ok(passes)
    }
}

/// Copies values with all threads, which are then the first to touch the memory; an error where there is not
/// enough memory.
fn copied<T: Real>(values: &[T]) -> Result<Vec<T>> {
    let mut copy = reserved(values.len())?;
    copy.par_extend(values.par_iter().copied());
    Ok(copy)
}

/// Returns an empty vector with room for `len` values; an error where there is not that much memory.
fn reserved<T: Real>(len: usize) -> Result<Vec<T>> {
    memory::reserved(len, "a field", "choose a smaller size or f32")
}

impl<T: Real> Session for Threaded<T> {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn advance(&mut self, steps: u64) -> Result<f64> {
        let begun = Instant::now();
        let alone = match &self.way {
            // Too little work to wake any thread.
            Way::Stepwise(bands) => bands.len() <= 1,
            Way::Tiled(tiled) => tiled.persistent || tiled.rings.len() <= 1,
        };
        match self.pool.clone() {
            _ if alone => self.steps(steps)?,
            Some(pool) => pool.install(|| self.steps(steps))?,
            None => rayon::scope(|_| self.steps(steps))?,
        }
        Ok(begun.elapsed().as_secs_f64())
    }

    fn read(&mut self, field: usize) -> Result<Array> {
        let values = self.field(field)?;
        let copy = match &self.pool {
            Some(pool) => pool.install(|| copied(values)),
            None => copied(values),
        };
        copy.map(T::into_array)
    }

    fn read_window(&mut self, field: usize, low: [usize; 3], high: [usize; 3]) -> Result<Array> {
        let extents = self.lowered.problem.shape.padded();
        let count = check_window(extents, low, high)?.iter().product();
        let values = self.field(field)?;
        let mut window = reserved(count)?;
        rows_of(extents, low, high).for_each(|row| window.extend_from_slice(&values[row]));
        Ok(T::into_array(window))
    }

    fn write(&mut self, field: usize, values: &Array) -> Result<()> {
        self.field(field)?;
        check_field(&self.lowered.problem, field, values)?;
        if let Some(values) = T::slice(values) {
            self.now[field].copy_from_slice(values);
            if !self.new[field].is_empty() {
                self.new[field].copy_from_slice(values);
            }
        }
        Ok(())
    }

    fn write_window(
        &mut self,
        field: usize,
        low: [usize; 3],
        high: [usize; 3],
        values: &Array,
    ) -> Result<()> {
        check_values(&self.lowered.problem, field, low, high, values)?;
        let extents = self.lowered.problem.shape.padded();
        if let Some(values) = T::slice(values) {
            write_rows(extents, &mut self.now[field], low, high, values);
            if !self.new[field].is_empty() {
                write_rows(extents, &mut self.new[field], low, high, values);
            }
        }
        Ok(())
    }

    fn non_finite(&mut self, field: usize) -> Result<u64> {
        Ok(count::non_finite(self.field(field)?, self.pool.as_deref()))
    }

    fn set_parameter(&mut self, parameter: usize, value: f64) -> Result<()> {
        let names = self.lowered.problem.program.parameters().iter().map(|p| p.name.as_str());
        match self.lowered.parameters.get_mut(parameter) {
            Some(known) => {
                *known = T::from_f64(value);
                Ok(())
            }
            None => Err(Error::unknown("parameter", parameter.to_string(), names)),
        }
    }
}
