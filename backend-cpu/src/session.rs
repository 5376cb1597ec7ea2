//! A problem in progress: a [`State`], and the way in which it advances.
//!
//! A stage of a stepwise run, or a pass of several steps, reads one of the two arrays and writes the other.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use abide_core::floating::standard;
use abide_core::plan::{Cpu, Levels};
use abide_core::{Array, Execution, Plan, Problem, Real, Result, Session};
use abide_planner::MAX_CPU_DEPTH;
use core_affinity::CoreId;

use crate::bytecode::Bytecode;
use crate::in_place::HostBuffer;
use crate::pass::Rings;
use crate::region::Region;
use crate::shared::Shared;
use crate::state::{State, copied};
use crate::stepwise::{Band, Outputs, Stage, sweep};
use crate::threads::{Pool, on};
use crate::tile::{Parameters, Pass, Tile};
use crate::{count, thread_team};

/// The threads and cores that work for a session.
#[derive(Default)]
pub struct Workers {
    /// The threads that share sweeps and passes; those that all share where there is no pool.
    pub pool: Option<Arc<Pool>>,
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
struct Lowered {
    problem: Problem,
    region: Region,
    /// Cells of a chunk.
    chunk: usize,
    /// Each stage's bytecode.
    bytecodes: Vec<Bytecode>,
}

/// A session on all threads of a pool.
pub struct Threaded<T> {
    lowered: Lowered,
    plan: Plan,
    pool: Option<Arc<Pool>>,
    /// The fields that each stage writes.
    writes: Vec<Vec<usize>>,
    way: Way<T>,
    /// The domain that advances, which has the problem's shape. Another may take its place between two advances.
    pub state: State<T>,
}

impl<T: Real> Threaded<T> {
    /// Lowers the problem of which `state` is a domain. Sums of additions are turned into multiply-adds if
    /// `fused` says so (see [`Bytecode::new`]).
    pub fn open(
        problem: &Problem,
        plan: &Plan,
        cpu: &Cpu,
        Workers { pool, cores }: Workers,
        fused: bool,
        state: State<T>,
    ) -> Result<Self> {
        let simplified = problem.program.simplified(problem.dtype);
        let bytecode = |stage: &abide_core::Stage| Bytecode::new(&stage.dag, fused).compiled::<T>();
        let bytecodes: Vec<Bytecode> = simplified.stages().iter().map(bytecode).collect();
        let writes = simplified.stages().iter().map(|stage| stage.writes.clone()).collect();
        // A plan's fields can be changed by any caller, and scratch grows with both.
        let (threads, chunk) = (cpu.threads.clamp(1, 4096), cpu.chunk.clamp(1, 1 << 16));
        let region = Region::new(problem, threads, chunk);
        let way = match &cpu.tiling {
            None => {
                let bytecodes: Vec<&Bytecode> = bytecodes.iter().collect();
                let band = |units| Band::new(units, &region, &bytecodes, chunk);
                Way::Stepwise(region.bands(threads).into_iter().map(band).collect::<Result<_>>()?)
            }
            Some(tiling) => {
                let depth = plan.depth.clamp(1, MAX_CPU_DEPTH) as usize;
                let levels = Levels::new(problem, depth, tiling.block);
                let tiles = thread_team::tiles(&region, tiling, levels.stream);
                let rings = (0..threads.min(tiles.len())).map(|_| Rings::new(&region, &bytecodes, chunk));
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
        let lowered = Lowered { problem: problem.clone(), region, chunk, bytecodes };
        Ok(Threaded { lowered, plan: plan.clone(), pool, writes, way, state })
    }

    /// Does steps, whose stages read the session's parameters or what `read` holds for each of them.
    fn steps(&mut self, steps: u64, read: Option<&[T]>) -> Result<()> {
        let Threaded { lowered, writes, way, state, .. } = self;
        let State { now, new, parameters } = state;
        let parameters = match read {
            Some(read) => Parameters::each(read, parameters.len(), lowered.bytecodes.len()),
            None => Parameters::same(parameters),
        };
        match way {
            Way::Stepwise(bands) => {
                let Lowered { region, chunk, bytecodes, .. } = lowered;
                for step in 0..steps as usize {
                    for (number, (bytecode, writes)) in bytecodes.iter().zip(&*writes).enumerate() {
                        let parameters = parameters.of(step, number);
                        let stage = Stage { region, bytecode, parameters, old: now, chunk: *chunk };
                        sweep(&stage, bands, Outputs::new(new, writes));
                        for &field in writes {
                            std::mem::swap(&mut now[field], &mut new[field]);
                        }
                    }
                }
                Ok(())
            }
            Way::Tiled(tiled) => {
                let done = tiled.advance(lowered, parameters, [now, new], steps)?;
                if done % 2 == 1 {
                    for (now, new) in now.iter_mut().zip(new).filter(|(_, new)| !new.is_empty()) {
                        std::mem::swap(now, new);
                    }
                }
                Ok(())
            }
        }
    }

    /// Does steps on the threads, and returns the seconds that they took.
    fn timed(&mut self, steps: u64, read: Option<&[T]>) -> Result<f64> {
        let begun = Instant::now();
        let alone = match &self.way {
            // Too little work to wake any thread.
            Way::Stepwise(bands) => bands.len() <= 1,
            Way::Tiled(tiled) => tiled.persistent || tiled.rings.len() <= 1,
        };
        match alone {
            true => standard(|| self.steps(steps, read))?,
            false => on(self.pool.clone().as_ref(), || self.steps(steps, read))??,
        }
        Ok(begun.elapsed().as_secs_f64())
    }
}

impl<T: Real> Tiled<T> {
    /// Advances the fields by passes that read one of two arrays and write the other; the first pass reads
    /// `now`. Returns the number of passes.
    fn advance(
        &mut self,
        lowered: &Lowered,
        parameters: Parameters<'_, T>,
        [now, new]: [&mut [Vec<T>]; 2],
        steps: u64,
    ) -> Result<u64> {
        let Lowered { problem, region, chunk, bytecodes } = lowered;
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
        let divided = thread_team::divided(tiles, &levels[0]);
        let passes = full + u64::from(rest > 0);
        let pass = |number: u64| {
            let levels = &levels[usize::from(number >= full)];
            let [now, new] = if number.is_multiple_of(2) { [&now, &new] } else { [&new, &now] };
            let parameters = parameters.from((number * depth) as usize);
            Pass { region, levels, bytecodes, parameters, chunk: *chunk, divided, now, new }
        };
        if *persistent {
            thread_team::persist(passes, pass, region, levels[0].halo, tiles, rings, cores)?;
        } else {
            (0..passes).for_each(|number| thread_team::stream(&pass(number), tiles, rings));
        }
        Ok(passes)
    }
}

impl<T: Real> Session for Threaded<T> {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn advance(&mut self, steps: u64) -> Result<f64> {
        self.timed(steps, None)
    }

    fn advance_by(&mut self, steps: u64, read: &[f64]) -> Result<f64> {
        let read: Vec<T> = standard(|| read.iter().map(|&value| T::from_f64(value)).collect());
        self.timed(steps, Some(&read))
    }

    fn read(&mut self, field: usize) -> Result<Array> {
        let values = self.state.field(&self.lowered.problem, field)?;
        on(self.pool.as_ref(), || copied(values))?.map(T::into_array)
    }

    fn read_window(&mut self, field: usize, low: [usize; 3], high: [usize; 3]) -> Result<Array> {
        self.state.window(&self.lowered.problem, field, low, high)
    }

    fn write(&mut self, field: usize, values: &Array) -> Result<()> {
        self.state.write(&self.lowered.problem, field, values)
    }

    fn write_window(
        &mut self,
        field: usize,
        low: [usize; 3],
        high: [usize; 3],
        values: &Array,
    ) -> Result<()> {
        self.state.write_window(&self.lowered.problem, field, low, high, values)
    }

    fn non_finite(&mut self, field: usize) -> Result<u64> {
        count::non_finite(self.state.field(&self.lowered.problem, field)?, self.pool.as_ref())
    }

    fn device_buffer(&self, field: usize) -> Option<Box<dyn Any>> {
        Some(Box::new(HostBuffer::new(self.state.now.get(field)?)))
    }

    fn set_parameter(&mut self, parameter: usize, value: f64) -> Result<()> {
        self.state.set_parameter(&self.lowered.problem, parameter, value)
    }
}
