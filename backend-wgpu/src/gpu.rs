//! An open device whose every failure comes back as an error: wgpu panics on errors that nobody catches.
//!
//! Whatever needs an answer of the device is awaited, because in a browser nothing may block. Elsewhere a
//! device answers only the thread that polls it; the awaiting thread polls until the answer is there.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use abide_core::{Error, Result};
use futures_channel::oneshot;

use crate::NAME;
use crate::adapter::Adapter;

/// A compiled kernel, and the way in which its buffers are bound.
#[derive(Clone)]
pub(crate) struct Compiled {
    pub layout: wgpu::BindGroupLayout,
    pub pipeline: wgpu::ComputePipeline,
}

/// A device, its queue, and the first fault outside any call of ours.
pub(crate) struct Gpu {
    pub adapter: Adapter,
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
    pub limits: wgpu::Limits,
    /// The compiled kernels, by their text.
    pub kernels: Mutex<HashMap<String, Compiled>>,
    fault: Arc<Mutex<Option<String>>>,
}

/// Describes the device to open: with all of its adapter's limits, and with those of the used features that
/// the adapter has.
pub fn device_descriptor(adapter: &wgpu::Adapter) -> wgpu::DeviceDescriptor<'static> {
    let mut wanted =
        wgpu::Features::SHADER_F64 | wgpu::Features::TIMESTAMP_QUERY | wgpu::Features::PIPELINE_CACHE;
    // Browsers demand a directive before kernels that use this feature, and naga does not read the directive.
    if cfg!(not(target_arch = "wasm32")) {
        wanted |= wgpu::Features::SUBGROUP;
    }
    wgpu::DeviceDescriptor {
        label: Some("abide"),
        required_features: adapter.features() & wanted,
        required_limits: adapter.limits(),
        memory_hints: wgpu::MemoryHints::Performance,
        ..Default::default()
    }
}

/// Work on its way through the queue.
pub(crate) struct Submission {
    index: wgpu::SubmissionIndex,
    done: oneshot::Receiver<()>,
}

impl Gpu {
    /// Opens an adapter with all its limits and the features that are used.
    pub async fn open(description: Adapter, adapter: &wgpu::Adapter) -> Result<Gpu> {
        let request = quiet("opening the device", || adapter.request_device(&device_descriptor(adapter)))?;
        let (device, queue) = request.await.map_err(|error| Error::Unavailable {
            backend: NAME,
            reason: format!("{} cannot be opened: {error}", description.name),
        })?;
        Ok(Gpu::of(description, device, queue))
    }

    /// Returns a device that is open already. Faults on it that no call catches are reported here from now
    /// on.
    pub fn of(description: Adapter, device: wgpu::Device, queue: wgpu::Queue) -> Gpu {
        let fault = Arc::new(Mutex::new(None));
        let uncaught = fault.clone();
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| report(&uncaught, error.to_string())));
        let lost = fault.clone();
        device.set_device_lost_callback(move |_, message| {
            report(&lost, format!("the device was lost: {message}"))
        });
        let limits = device.limits();
        Gpu { adapter: description, device, queue, limits, kernels: Mutex::default(), fault }
    }

    /// Runs `call`, which uses the device, and returns the first error that it caused.
    pub async fn checked<T>(&self, operation: &str, call: impl FnOnce() -> T) -> Result<T> {
        let (value, errors) = self.scoped(operation, call);
        let mut caused = None;
        for error in errors {
            let error = error.await;
            caused = caused.or(error);
        }
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

    /// Runs `call`. Returns its result and the errors of each kind that it caused, as they become known. The
    /// scopes that catch the errors belong to this thread, and are gone before another task of the thread can
    /// open its own.
    fn scoped<T, F: FnOnce() -> T>(
        &self,
        operation: &str,
        call: F,
    ) -> (Result<T>, [impl Future<Output = Option<wgpu::Error>> + use<T, F>; 3]) {
        let filters =
            [wgpu::ErrorFilter::Internal, wgpu::ErrorFilter::OutOfMemory, wgpu::ErrorFilter::Validation];
        let [internal, memory, validation] = filters.map(|filter| self.device.push_error_scope(filter));
        let value = quiet(operation, call);
        // The scope pushed last is popped first.
        (value, [validation.pop(), memory.pop(), internal.pop()])
    }

    /// Returns an error if the device was lost or reported a fault since it was opened.
    pub fn sound(&self, operation: &str) -> Result<()> {
        match &*self.fault.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(message) => Err(Error::device(NAME, operation, message)),
            None => Ok(()),
        }
    }

    /// Runs `call`, which hands work to the queue and ends with a submission.
    pub async fn submit(
        &self,
        operation: &str,
        call: impl FnOnce() -> wgpu::SubmissionIndex,
    ) -> Result<Submission> {
        self.checked(operation, || {
            let index = call();
            let (sender, done) = oneshot::channel();
            self.queue.on_submitted_work_done(move || {
                // The receiver may be gone already.
                let _ = sender.send(());
            });
            Submission { index, done }
        })
        .await
    }

    /// Waits until a submission is done.
    pub async fn finished(&self, operation: &str, submission: Submission) -> Result<()> {
        self.poll(operation, Some(submission.index))?;
        self.told(operation, submission.done).await
    }

    /// Submits as [`Gpu::submit`] does, and waits until it is done.
    pub async fn run(&self, operation: &str, call: impl FnOnce() -> wgpu::SubmissionIndex) -> Result<()> {
        let submission = self.submit(operation, call).await?;
        self.finished(operation, submission).await
    }

    /// Waits for the value that a callback of the device sends.
    pub async fn told<T>(&self, operation: &str, mut callback: oneshot::Receiver<T>) -> Result<T> {
        let given_up =
            |_| Error::device(NAME, operation, "the driver's interface dropped what would have told its end");
        let value = match callback.try_recv().map_err(given_up)? {
            Some(value) => value,
            None => {
                // Where sessions share the device, the callback may come only after another session's later
                // submission, or from another session's thread, a moment later.
                self.poll(operation, None)?;
                callback.await.map_err(given_up)?
            }
        };
        self.sound(operation).map(|()| value)
    }

    /// Waits until a submission is done, or all are, and runs their callbacks. In a browser it does not wait:
    /// callbacks run later, without polling.
    fn poll(&self, operation: &str, submission: Option<wgpu::SubmissionIndex>) -> Result<()> {
        let wait = wgpu::PollType::Wait { submission_index: submission, timeout: None };
        let polled = quiet(operation, || self.device.poll(wait))?;
        polled.map(|_| ()).map_err(|error| Error::device(NAME, operation, error))
    }

    /// Allocates a buffer of at least `bytes`, rounded up to what copies need.
    pub async fn buffer(&self, label: &str, bytes: u64, usage: wgpu::BufferUsages) -> Result<wgpu::Buffer> {
        let size = bytes.next_multiple_of(16);
        self.checked(&format!("{size} bytes for {label}"), || {
            self.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some(label),
                size,
                usage,
                mapped_at_creation: false,
            })
        })
        .await
    }

    /// Reads the first `bytes` of a buffer that can be mapped.
    pub async fn map<T>(
        &self,
        buffer: &wgpu::Buffer,
        bytes: u64,
        read: impl FnOnce(&[u8]) -> T,
    ) -> Result<T> {
        let operation = "reading back";
        let (sender, receiver) = oneshot::channel();
        self.checked(operation, || {
            // The receiver may be gone already.
            buffer.slice(..bytes).map_async(wgpu::MapMode::Read, move |result| drop(sender.send(result)));
        })
        .await?;
        self.told(operation, receiver).await?.map_err(|error| Error::device(NAME, operation, error))?;
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

/// Runs a call into wgpu. Some calls panic on a lost device whatever handlers are installed; such a panic
/// becomes an error.
fn quiet<T>(operation: &str, call: impl FnOnce() -> T) -> Result<T> {
    // The call leaves behind wgpu's own state only, which wgpu guards by itself; the device counts as lost.
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| {
        let message = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied());
        Error::device(NAME, operation, message.unwrap_or("the driver's interface panicked"))
    })
}
