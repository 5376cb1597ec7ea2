//! Movies from frames.

use std::sync::Mutex;

use abide::Shape;
use pyo3::prelude::*;

use crate::arrays::given;
use crate::errors::{exception, raise};
use crate::guard::caught;

/// A .gif in the making: frames are added one after the other.
#[pyclass(frozen, module = "pyabide._pyabide")]
pub struct Movie {
    inner: Mutex<Option<abide::io::Movie>>,
    folder: tempfile::TempDir,
}

const NAME: &str = "movie.gif";

#[pymethods]
impl Movie {
    /// Begins a movie of frames of a shape. Without a range, the colours span all values of all frames.
    #[new]
    #[pyo3(signature = (shape, range = None))]
    fn new(shape: Vec<usize>, range: Option<(f64, f64)>) -> PyResult<Movie> {
        let shape = Shape::new(&shape).map_err(exception)?;
        let folder = tempfile::tempdir().map_err(|error| raise("FileError", error.to_string()))?;
        let range = range.map(|(low, high)| abide::io::Range { low, high });
        let movie =
            caught(|| abide::io::Movie::new(&folder.path().join(NAME), &shape, range).map_err(exception))?;
        Ok(Movie { inner: Mutex::new(Some(movie)), folder })
    }

    /// Adds a frame.
    fn add(&self, values: &Bound<'_, PyAny>) -> PyResult<()> {
        let values = given(values)?.values;
        caught(|| match self.lock().as_mut() {
            Some(movie) => movie.add(&values, "", 0).map_err(exception),
            None => Err(finished()),
        })
    }

    /// Completes the movie and returns the file's bytes.
    fn finish(&self) -> PyResult<Vec<u8>> {
        caught(|| {
            let movie = self.lock().take().ok_or_else(finished)?;
            movie.finish().and_then(abide::io::Staged::commit).map_err(exception)?;
            std::fs::read(self.folder.path().join(NAME)).map_err(|e| raise("FileError", e.to_string()))
        })
    }
}

impl Movie {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<abide::io::Movie>> {
        self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

fn finished() -> PyErr {
    raise("Invalid", "the movie is finished; begin another one".to_owned())
}
