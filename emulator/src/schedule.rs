//! What a program's host launches: one kernel after another, or the schedules of a persistent kernel.

use abide_core::Problem;
use abide_core::plan::PersistentProgram;
use abide_core::program::{Boxes, Launches, Storage};
use abide_shaders::cuda::{KernelLaunch, Launched, ProgramKernels, TaskSchedule};

/// The launches of a problem whose stages may be in parts.
pub struct Script<'a> {
    pub split: &'a Problem,
    pub storage: &'a Storage,
    pub kernels: &'a ProgramKernels,
    /// The kernels' names, in the order of the host's table.
    pub entries: &'a [String],
}

/// What a host launches.
pub enum Own<'a> {
    /// A stage, a group of them or a chain.
    Launch(Launched<'a>),
    /// What ends a step, where something does.
    End(&'a Launches),
    /// A kernel that names no buffer.
    Kernel(&'a KernelLaunch),
}

impl<'s> Script<'s> {
    /// Adds the launches of some steps to a script.
    pub fn add_launches(&self, script: &mut Vec<u8>, steps: u64) -> Result<(), String> {
        let steps = (0..steps).map(|step| self.storage.launches(step));
        self.add_each(script, steps.flat_map(|step| self.own(step).chain([Own::End(step)])))
    }

    /// Adds the launches of steps with loops, by the phases of each step that are carried out, turn by turn. Behind the last turn
    /// of a loop that a condition ends comes another one, which is to change nothing. Returns the buffers of the fields then.
    pub fn add_phases(&self, script: &mut Vec<u8>, steps: &[Vec<usize>]) -> Result<&'s [usize], String> {
        let (storage, phases) = (self.storage, self.split.program.phases());
        let (mut all, mut place, mut turns) = (Vec::new(), 0, 0);
        for step in steps {
            let mut left = &step[..];
            loop {
                let here = &storage.steps[place];
                let launches = || self.own(here);
                let phase = phases.get(here.number).ok_or("a step has phases that the program has not")?;
                let loops = self.kernels.loops.as_ref();
                let turn = loops.and_then(|loops| Some((loops.turns.get(&here.number)?, &loops.leave)));
                let is_turn = left.first() == Some(&here.number);
                let is_tested = phase.repeat.is_some_and(|repeat| turns < repeat.most);
                all.extend(turn.filter(|_| is_tested).map(|(turn, _)| Own::Kernel(turn)));
                if is_turn {
                    all.extend(launches());
                    (left, place, turns) = (&left[1..], here.next, turns + 1);
                    if phase.repeat.is_some() {
                        continue;
                    }
                } else {
                    if let Some((_, leave)) = turn {
                        all.extend(launches().filter(|_| is_tested).chain([Own::Kernel(leave)]));
                    }
                    place = here.end;
                }
                turns = 0;
                if phase.ends_step {
                    all.push(Own::End(here));
                    break;
                }
            }
        }
        self.add_each(script, all.into_iter())?;
        Ok(&storage.steps[place].before)
    }

    /// Returns what a device is given of a step, one launch after another.
    fn own(&self, step: &'s Launches) -> impl Iterator<Item = Own<'s>> + use<'s> {
        self.kernels.launched(&step.launches).into_iter().map(Own::Launch)
    }

    /// Adds launches to a script.
    pub fn add_each<'l>(
        &self,
        script: &mut Vec<u8>,
        all: impl Iterator<Item = Own<'l>>,
    ) -> Result<(), String> {
        let mut launches: Vec<u64> = Vec::new();
        let mut count = 0;
        let mut launch =
            |kernel: &KernelLaunch, buffers: &[Option<usize>]| {
                let entry = self.entries.iter().position(|entry| *entry == kernel.entry).ok_or("no entry")?;
                launches.extend([entry as u64, kernel.blocks as u64, kernel.threads as u64]);
                let slots = kernel.slots_of_chain().unwrap_or(self.kernels.slots);
                launches.extend((0..slots).map(|slot| {
                    buffers.get(slot).copied().flatten().map_or(u64::MAX, |buffer| buffer as u64)
                }));
                count += 1;
                Ok::<(), String>(())
            };
        for own in all {
            match (own, &self.kernels.end) {
                (Own::Launch(Launched::Chain(number, own)), _) => {
                    launch(&self.kernels.chains[number].kernel, &self.kernels.buffers_of(own))?;
                }
                (Own::Launch(Launched::Group(own)), _) => {
                    let group = self.kernels.of(own).ok_or("no kernels")?;
                    group.launches.iter().try_for_each(|kernel| launch(kernel, &group.buffers(own)))?;
                }
                (Own::End(step), Some(end)) => launch(&end.kernel, &end.buffers(step))?,
                (Own::End(_), None) => {}
                (Own::Kernel(kernel), _) => launch(kernel, &[])?,
            }
        }
        add(script, count);
        launches.iter().for_each(|&number| add(script, number));
        Ok(())
    }

    /// Adds the schedules of a persistent kernel and its launches, the first of which is of a single step.
    pub fn add_schedules(
        &self,
        script: &mut Vec<u8>,
        plan: &PersistentProgram,
        steps: u64,
        seed: usize,
    ) -> Result<(), String> {
        let boxes = Boxes::of(self.split).map_err(|error| error.to_string())?;
        let (storage, repeated) = (self.storage, self.storage.repeated);
        let mut schedules = Vec::new();
        for steps in [0..repeated, repeated..storage.steps.len()] {
            let schedule = TaskSchedule::new(self.split, &boxes, storage, steps, self.kernels, plan)
                .map_err(|error| error.to_string())?;
            add(script, schedule.tasks.len() as u64);
            for (task, buffers) in schedule.tasks.iter().zip(&schedule.buffers) {
                task.iter().for_each(|&number| add(script, number.into()));
                for slot in 0..self.kernels.slots {
                    add(
                        script,
                        buffers.get(slot).copied().flatten().map_or(u64::MAX, |buffer| buffer as u64),
                    );
                }
            }
            add(script, schedule.first.len() as u64);
            schedule.first.iter().for_each(|&number| add(script, number.into()));
            add(script, schedule.waits.len() as u64);
            schedule.waits.iter().flatten().for_each(|&number| add(script, number.into()));
            schedules.push(schedule);
        }
        let (mut launches, mut done) = (Vec::new(), 0);
        while done < steps {
            let now = if done == 0 && seed % 2 == 1 { 1 } else { steps - done };
            let (which, place) = match repeated as u64 {
                first if done < first => (0, done as usize),
                first => (1, storage.place(done) - first as usize),
            };
            let now = if which == 0 { now.min(repeated as u64 - done) } else { now };
            let (begin, count) = schedules[which].span(place, now);
            launches.push([which as u64, begin.into(), count]);
            done += now;
        }
        add(script, launches.len() as u64);
        launches.iter().flatten().for_each(|&number| add(script, number));
        Ok(())
    }
}

/// Adds a number to a script.
pub fn add(script: &mut Vec<u8>, number: u64) {
    script.extend(number.to_ne_bytes());
}
