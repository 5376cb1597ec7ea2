//! The parts that all sessions share: fields, parameters, the clock. The launcher launches the steps.

use std::any::Any;
use std::sync::Arc;

use abide_core::backend::{CancelCheck, DeviceCommunicator, Peer, Planes};
use abide_core::communicator::ExportedHandle;
use abide_core::plan::{Exchanging, Schedule};
use abide_core::{Array, Plan, Result, Session};
use cudarc::driver::CudaStream;

use crate::count::Counter;
use crate::driver::{bind, during};
use crate::kernels::Kernels;
use crate::launcher::Launcher;
use crate::lent::DeviceBuffer;
use crate::memory::{Fields, no_field};
use crate::noted::fill_held;
use crate::nvrtc::Nvrtc;
use crate::parameters::{Parameters, set_parameter};
use crate::peer::Neighbours;
use crate::persistent::Persistent;
use crate::puts::PutKernel;
use crate::resident::Resident;
use crate::stepwise::Stepwise;
use crate::streaming::Streaming;
use crate::timing::Timer;

/// Returns the launcher for the steps of a compiled plan.
pub(crate) fn launcher(
    plan: &Plan,
    fields: &Fields,
    kernels: &Kernels,
    nvrtc: &Arc<Nvrtc>,
) -> Result<Box<dyn Launcher>> {
    Ok(match plan.schedule {
        Schedule::Persistent(_) => Box::new(Persistent::new(plan, fields, kernels)?),
        Schedule::Resident(_) => Box::new(Resident::new(plan, fields, kernels)?),
        Schedule::WarpStreaming(_) => Box::new(Streaming::new(plan, fields, kernels, nvrtc)?),
        Schedule::Stepwise(_)
        | Schedule::Overlapped(_)
        | Schedule::PortableStreaming(_)
        | Schedule::PersistentProgram(_)
        | Schedule::Cpu(_) => Box::new(Stepwise::new(plan, kernels)?),
    })
}

/// A problem in progress on a CUDA device.
pub(crate) struct CudaSession {
    plan: Plan,
    fields: Fields,
    parameters: Parameters,
    launcher: Box<dyn Launcher>,
    counter: Arc<Counter>,
    neighbours: Neighbours,
    begun: Begun,
}

/// Where a session's kernels read what varies.
pub(crate) struct Reserved {
    /// Its address on the device.
    pub address: u64,
}

/// The clocks of steps that were begun and not yet waited for, used again once they were.
struct Begun {
    timers: Vec<Timer>,
    count: usize,
}

impl Begun {
    /// Returns a clock for the next steps, which counts once they were begun.
    fn next(&mut self, stream: &CudaStream) -> Result<&Timer> {
        if self.count == self.timers.len() {
            self.timers.push(Timer::new(stream)?);
        }
        Ok(&self.timers[self.count])
    }

    /// Returns the seconds of all steps begun, which the device has done.
    fn seconds(&mut self) -> Result<f64> {
        let count = std::mem::take(&mut self.count);
        self.timers[..count].iter().map(Timer::seconds).sum()
    }
}

impl CudaSession {
    pub fn new(
        plan: Plan,
        fields: Fields,
        launcher: Box<dyn Launcher>,
        counter: Arc<Counter>,
        put_kernel: Arc<PutKernel>,
    ) -> Result<Self> {
        // Made here, because making events takes time that no run should see.
        let begun = Begun { timers: vec![Timer::new(&fields.stream)?], count: 0 };
        let parameters = Parameters::new(&fields.problem);
        let neighbours = Neighbours::new(put_kernel);
        Ok(CudaSession { plan, fields, parameters, launcher, counter, neighbours, begun })
    }
}

impl Session for CudaSession {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn prepare(&mut self, steps: u64) -> Result<bool> {
        bind(&self.fields.stream)?;
        // Each launch but the last has the most steps.
        let most = self.launcher.most_steps();
        for now in [steps.min(most), steps % most] {
            self.launcher.prepare(&self.fields, &mut self.parameters, now)?;
        }
        Ok(true)
    }

    fn advance(&mut self, steps: u64) -> Result<f64> {
        self.begin(steps, &[])?;
        self.finish()
    }

    fn advance_by(&mut self, steps: u64, read: &[f64]) -> Result<f64> {
        self.begin(steps, read)?;
        self.finish()
    }

    fn take_noted(&mut self) -> Result<Vec<f64>> {
        bind(&self.fields.stream)?;
        let mut rows = self.parameters.noted(&self.fields.stream)?;
        let problem = self.fields.problem.clone();
        fill_held(self, &problem, &mut rows)?;
        Ok(rows)
    }

    fn read(&mut self, field: usize) -> Result<Array> {
        self.fields.read(field)
    }

    fn read_window(&mut self, field: usize, low: [usize; 3], high: [usize; 3]) -> Result<Array> {
        self.fields.read_window(field, low, high)
    }

    fn write(&mut self, field: usize, values: &Array) -> Result<()> {
        self.fields.write(field, values)
    }

    fn write_window(
        &mut self,
        field: usize,
        low: [usize; 3],
        high: [usize; 3],
        values: &Array,
    ) -> Result<()> {
        self.fields.write_window(field, low, high, values)
    }

    fn non_finite(&mut self, field: usize) -> Result<u64> {
        self.fields.non_finite(field, &self.counter)
    }

    fn device_buffer(&self, field: usize) -> Option<Box<dyn Any>> {
        self.fields.export(field).map(|buffer| Box::new(buffer) as Box<dyn Any>)
    }

    fn device_buffer_mut(&mut self, field: usize) -> Result<Option<Box<dyn Any>>> {
        Ok(self.device_buffer(field))
    }

    fn peer(&mut self) -> Option<&mut dyn Peer> {
        Some(self)
    }

    fn set_parameter(&mut self, parameter: usize, value: f64) -> Result<()> {
        let problem = &mut self.fields.problem;
        set_parameter(&mut problem.parameters, parameter, value)?;
        self.parameters.set(problem);
        Ok(())
    }
}

impl CudaSession {
    fn buffer(&self, field: usize) -> Result<DeviceBuffer> {
        self.fields.export(field).ok_or_else(|| no_field(field, self.fields.problem.program.fields().len()))
    }
}

impl Peer for CudaSession {
    fn begin(&mut self, steps: u64, read: &[f64]) -> Result<bool> {
        bind(&self.fields.stream)?;
        self.parameters.begin(steps, read, &self.fields.stream)?;
        let mut left = steps;
        while left > 0 {
            let now = left.min(self.launcher.most_steps());
            self.launcher.prepare(&self.fields, &mut self.parameters, now)?;
            let timer = self.begun.next(&self.fields.stream)?;
            timer.start(&self.fields.stream)?;
            self.launcher.launch(&mut self.fields, &mut self.parameters, now)?;
            timer.end(&self.fields.stream)?;
            self.begun.count += 1;
            left -= now;
        }
        Ok(true)
    }

    fn reserve(&mut self, steps: u64, at_a_time: u64) -> Result<Option<Box<dyn Any>>> {
        bind(&self.fields.stream)?;
        let address = self.parameters.reserve(steps, at_a_time, &self.fields.stream)?;
        Ok(Some(Box::new(Reserved { address })))
    }

    fn finish(&mut self) -> Result<f64> {
        bind(&self.fields.stream)?;
        self.fields.stream.synchronize().map_err(during("running the kernels"))?;
        self.neighbours.done();
        self.begun.seconds()
    }

    fn offer(&mut self) -> Option<Vec<u8>> {
        self.neighbours.offer(&self.fields.stream)
    }

    fn accepts(&mut self, offer: &[u8]) -> bool {
        self.neighbours.accepts(offer)
    }

    fn export(&mut self, planes: Planes) -> Result<ExportedHandle> {
        let buffer = self.buffer(planes.field)?;
        self.neighbours.export(buffer, &planes)
    }

    fn take(&mut self, planes: Planes, handle: ExportedHandle) -> Result<()> {
        let buffer = self.buffer(planes.field)?;
        self.neighbours.take(&buffer, &planes, handle)
    }

    fn taken(&mut self) -> Result<ExportedHandle> {
        self.neighbours.taken(&self.fields.stream)
    }

    fn wait_for(&mut self, point: ExportedHandle) -> Result<()> {
        self.neighbours.wait_for(&self.fields.stream, point)
    }

    fn device_communicator(&mut self) -> Option<&mut dyn DeviceCommunicator> {
        Some(self)
    }
}

impl DeviceCommunicator for CudaSession {
    fn key(&mut self, way: Exchanging, is_first: bool) -> Option<Vec<u8>> {
        self.neighbours.key(&self.fields.stream, self.fields.both(), way, is_first)
    }

    fn join(
        &mut self,
        way: Exchanging,
        keys: &[Vec<u8>],
        rank: usize,
        cancel_check: CancelCheck<'_>,
    ) -> Result<bool> {
        self.neighbours.join(&self.fields.stream, way, keys, rank, cancel_check)
    }

    fn exchange(
        &mut self,
        sent: &[(usize, Planes)],
        received: &[(usize, Planes)],
        cancel_check: CancelCheck<'_>,
    ) -> Result<()> {
        let placed = |(rank, planes): &(usize, Planes)| Ok((*rank, *planes, self.buffer(planes.field)?));
        let sent = sent.iter().map(placed).collect::<Result<Vec<_>>>()?;
        let received = received.iter().map(placed).collect::<Result<Vec<_>>>()?;
        self.neighbours.exchange(&sent, &received, cancel_check)
    }

    fn store_to_neighbours(&mut self, beside: [Option<(usize, usize)>; 2]) -> Result<bool> {
        let edges = self.plan.warp_streaming().and_then(|streaming| streaming.edges.as_ref());
        let (Some(edges), Some(stores), [_, Some(_)] | [Some(_), _]) =
            (edges, self.neighbours.stores(), beside)
        else {
            self.launcher.store_to_neighbours(None);
            return Ok(false);
        };
        let from = [edges.own.start, edges.own.end - edges.given[1]];
        let given = stores.put_planes(self.fields.problem.slowest(), from, beside);
        let is_possible = given.is_some();
        Ok(self.launcher.store_to_neighbours(given) && is_possible)
    }

    fn wait_for_neighbours(&mut self) -> Result<()> {
        match self.neighbours.stores() {
            Some(stores) => stores.wait_for_neighbours(),
            None => Ok(()),
        }
    }

    fn flush(&mut self, cancel_check: CancelCheck<'_>) -> Result<()> {
        self.neighbours.flush(cancel_check)
    }
}

impl Drop for CudaSession {
    fn drop(&mut self) {
        self.neighbours.end(&self.fields.stream);
    }
}
