//! Models: what a simulation computes.

use std::ffi::c_char;
use std::path::Path;

use abide::{IntoModel, Model};

use crate::status::{AbideStatus, face};
use crate::text::{hand_out, text};

/// A model of the catalogue, or of a text.
pub struct AbideModel {
    pub(crate) model: Model,
    /// The options of the text's table `run`.
    pub(crate) options: Vec<String>,
}

/// Finds a model of the catalogue by its name; `abide list` prints them. `abide_model_free` frees it.
///
/// # Safety
///
/// `name` is a string, and `model` the address of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abide_model_named(name: *const c_char, model: *mut *mut AbideModel) -> AbideStatus {
    face(|| {
        // SAFETY: as promised.
        let name = unsafe { text(name, "the name of a model") }?;
        let found = AbideModel { model: name.into_model()?, options: Vec::new() };
        // SAFETY: as promised.
        unsafe { hand_out(found, model, "model") }
    })
}

/// Reads the text of a model file (TOML). `source` names the text in errors, and the model where the text gives no name.
///
/// # Safety
///
/// `model_text` and `source` are strings, and `model` the address of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abide_model_text(
    model_text: *const c_char,
    source: *const c_char,
    model: *mut *mut AbideModel,
) -> AbideStatus {
    face(|| {
        // SAFETY: as promised.
        let (written, source) = unsafe {
            (text(model_text, "the text of a model")?, text(source, "the source of a model's text")?)
        };
        let read = made(abide::text::read(written, source)?)?;
        // SAFETY: as promised.
        unsafe { hand_out(read, model, "model") }
    })
}

/// Reads a model file.
///
/// # Safety
///
/// `path` is a string, and `model` the address of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abide_model_file(path: *const c_char, model: *mut *mut AbideModel) -> AbideStatus {
    face(|| {
        // SAFETY: as promised.
        let path = unsafe { text(path, "the path of a model file") }?;
        let read = made(abide::io::model::read(Path::new(path))?)?;
        // SAFETY: as promised.
        unsafe { hand_out(read, model, "model") }
    })
}

/// Frees a model. Simulations that were made of it stay as they are. A null pointer is ignored.
///
/// # Safety
///
/// `model` is null, or a handle that is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abide_model_free(model: *mut AbideModel) {
    if !model.is_null() {
        face(|| {
            // SAFETY: it was made by `Box::into_raw`, and nobody uses it any more.
            drop(unsafe { Box::from_raw(model) });
            Ok(())
        });
    }
}

fn made(read: abide::text::Model) -> abide::Result<AbideModel> {
    abide::io::model::check_options(&read.options)?;
    let options = read.options.clone();
    Ok(AbideModel { model: read.into_model()?, options })
}
