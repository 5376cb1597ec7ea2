//! An open device whose every failure comes back as an error: wgpu panics on errors that nobody catches.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use abide_core::{Error, Result};

use crate::NAME;
use crate::adapter::Adapter;
use crate::pipelines::Pipelines;

/// The longest that a finished copy may take to be handed over.
const HANDED_OVER: std::time::Duration = std::time::Duration::from_secs(10);

/// A device, its queue, and what went wrong outside any call of ours.
pub(crate) struct Gpu {
    pub adapter: Adapter,
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
    pub limits: wgpu::Limits,
    /// What was compiled, by its text.
    pub pipelines: Pipelines,
    fault: Arc<Mutex<Option<String>>>,
}

impl Gpu {
    /// Opens an adapter with all its limits and the features that are used.
    pub fn open(description: Adapter, adapter: &wgpu::Adapter) -> Result<Gpu> {
        let wanted = wgpu::Features::SHADER_F64 | wgpu::Features::TIMESTAMP_QUERY | wgpu::Features::PIPELINE_CACHE;
        let limits = adapter.limits();
        let request = adapter.request_device(&wgpu::DeviceDescriptor {
            label: Some("abide"),
            required_features: adapter.features() & wanted,
            required_limits: limits.clone(),
            memory_hints: wgpu::MemoryHints::Performance,
            ..Default::default()
        });
        let opened = quiet("opening the device", || pollster::block_on(request))?;
        let (device, queue) = opened.map_err(|error| Error::Unavailable {
            backend: NAME,
            reason: format!("{} cannot be opened: {error}", description.name),
        })?;
        let fault = Arc::new(Mutex::new(None));
        let uncaught = fault.clone();
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| report(&uncaught, error.to_string())));
        let lost = fault.clone();
        device.set_device_lost_callback(move |_, message| report(&lost, format!("the device was lost: {message}")));
        Ok(Gpu { adapter: description, device, queue, limits, pipelines: Pipelines::default(), fault })
    }

    /// Runs `call`, which uses the device, and returns the first error that it caused.
    pub fn checked<T>(&self, operation: &str, call: impl FnOnce() -> T) -> Result<T> {
        let filters = [wgpu::ErrorFilter::Internal, wgpu::ErrorFilter::OutOfMemory, wgpu::ErrorFilter::Validation];
        let scopes = filters.map(|filter| self.device.push_error_scope(filter));
        let value = quiet(operation, call);
        // The last pushed is the first popped.
        let errors = scopes.into_iter().rev().map(|scope| pollster::block_on(scope.pop()));
        let caused = errors.collect::<Vec<_>>().into_iter().flatten().next();
        let value = value?;
        match caused {
            Some(wgpu::Error::OutOfMemory { .. }) => Err(Error::limit(
                format!("memory of {}", self.adapter.name),
                operation,
                "what the device has free",
                "choose a smaller size, f32 or another backend",
            )),
            Some(error) => Err(Error::device(NAME, operation, error)),
            None => self.sound(operation).map(|()| value),
        }
    }

    /// An error if the device was lost or reported a fault since it was opened.
    pub fn sound(&self, operation: &str) -> Result<()> {
        match &*self.fault.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(message) => Err(Error::device(NAME, operation, message)),
            None => Ok(()),
        }
    }

    /// Waits until a submission is done, or the last one.
    pub fn wait(&self, operation: &str, submission: Option<wgpu::SubmissionIndex>) -> Result<()> {
        let wait = wgpu::PollType::Wait { submission_index: submission, timeout: None };
        let polled = quiet(operation, || self.device.poll(wait))?;
        polled.map_err(|error| Error::device(NAME, operation, error))?;
        self.sound(operation)
    }

    /// A buffer of at least `bytes`, rounded up to what copies need.
    pub fn buffer(&self, label: &str, bytes: u64, usage: wgpu::BufferUsages) -> Result<wgpu::Buffer> {
        let size = bytes.next_multiple_of(16);
        self.checked(&format!("{size} bytes for {label}"), || {
            self.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some(label),
                size,
                usage,
                mapped_at_creation: false,
            })
        })
    }

    /// Reads the first `bytes` of a buffer that can be mapped.
    pub fn map<T>(&self, buffer: &wgpu::Buffer, bytes: u64, read: impl FnOnce(&[u8]) -> T) -> Result<T> {
        let operation = "reading back";
        let (sender, receiver) = std::sync::mpsc::channel();
        self.checked(operation, || {
            buffer.slice(..bytes).map_async(wgpu::MapMode::Read, move |result| {
                // The receiver is gone only where the wait below has failed already.
                let _ = sender.send(result);
            });
        })?;
        self.wait(operation, None)?;
        // Where sessions share the device, another thread's wait may be the one that hands the result over, a moment later.
        let mapped = receiver.recv_timeout(HANDED_OVER).map_err(|error| Error::device(NAME, operation, error))?;
        mapped.map_err(|error| Error::device(NAME, operation, error))?;
        let value = match buffer.slice(..bytes).get_mapped_range() {
            Ok(view) => Ok(read(&view)),
            Err(error) => Err(Error::device(NAME, operation, error)),
        };
        buffer.unmap();
        value
    }
}

fn report(fault: &Mutex<Option<String>>, message: String) {
    fault.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(message);
}

/// Runs a call into wgpu. A lost device makes some of them panic whatever handlers are installed: that becomes an error.
fn quiet<T>(operation: &str, call: impl FnOnce() -> T) -> Result<T> {
    // What the call leaves behind is wgpu's own state, which it guards by itself; the device counts as lost.
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| {
        let message =
            panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
        Error::device(NAME, operation, message.unwrap_or("the driver's interface panicked"))
    })
}
