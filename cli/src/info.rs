//! `abide info`: what a file holds.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use abide::io::checkpoint::{Head, read_head};
use abide::io::{self, Format, Number, Provenance};
use abide::{Result, text};
use clap::Args;
use serde::Serialize;

use super::{Ended, print, print_json};

/// The arguments of `info`.
#[derive(Args)]
pub struct Info {
    /// A file that Abide wrote or reads: .h5, .nc, .npz, a checkpoint, .npy, .vti, .tif, .png, .jpg, or a model file
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

/// An array in a file.
#[derive(Serialize)]
struct Array {
    name: String,
    extents: Vec<usize>,
    dtype: String,
}

/// What a file holds.
#[derive(Serialize)]
struct Held {
    /// The kind of the file in words.
    kind: &'static str,
    arrays: Vec<Array>,
    /// Other facts in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    facts: Vec<(&'static str, String)>,
    /// Where the result comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    provenance: Option<Provenance>,
}

impl Info {
    /// Reads the file's headers and prints what they say.
    pub fn execute(&self) -> Ended {
        let held = held(&self.file)?;
        match self.json {
            true => print_json(&held)?,
            false => print(&text_of(&self.file, &held))?,
        }
        Ok(())
    }
}

fn held(path: &Path) -> Result<Held> {
    let extension =
        path.extension().map(|own| own.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    match (extension.as_str(), Format::of(path)) {
        ("toml", _) => model(path),
        (_, Ok(Format::Npz)) => match read_head(path) {
            Ok(head) => Ok(checkpoint(&head)),
            Err(_) => archive(path),
        },
        (_, Ok(Format::Hdf5)) => hdf5(path),
        (_, Ok(Format::Vti)) => image(path),
        _ => field(path),
    }
}

fn model(path: &Path) -> Result<Held> {
    let program = text::read(&io::model::contents(path)?, &path.display().to_string())?.program;
    let of = |names: &[String]| names.join(", ");
    let parameters: Vec<String> = program.parameters().iter().map(|own| own.name.clone()).collect();
    let facts = vec![
        ("program", program.name().to_owned()),
        ("axes", program.dimensions().to_string()),
        ("fields", of(&program.public_fields())),
        ("parameters", of(&parameters)),
    ];
    Ok(Held { kind: "model file", arrays: Vec::new(), facts, provenance: None })
}

fn checkpoint(head: &Head) -> Held {
    let pairs = |own: &[(String, f64)]| {
        own.iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
    };
    let mut facts = vec![
        ("program", head.program.clone()),
        ("size", head.shape.to_string()),
        ("steps", head.steps.to_string()),
        ("boundary", head.boundaries.describe(head.shape.dimensions())),
        ("parameters", pairs(&head.parameters)),
        ("scalars", pairs(&head.scalars)),
    ];
    facts.extend(head.members().map(|members| ("members", members.to_string())));
    facts.retain(|(_, value)| !value.is_empty());
    let extents = io::extents(head.members(), &head.shape);
    let array =
        |name: &String| Array { name: name.clone(), extents: extents.clone(), dtype: head.dtype.to_string() };
    Held { kind: "checkpoint", arrays: head.fields.iter().map(array).collect(), facts, provenance: None }
}

fn archive(path: &Path) -> Result<Held> {
    let names = io::npz::names(path)?;
    let array = |name: &String| {
        let announced = io::announced(&io::naming(path, name))?;
        let (extents, dtype) = announced.map_or((Vec::new(), "other".to_owned()), |own| {
            (
                io::extents(own.members, &own.shape),
                own.dtype.map_or("other".to_owned(), |own| own.to_string()),
            )
        });
        Ok(Array { name: name.clone(), extents, dtype })
    };
    let arrays = names.iter().map(array).collect::<Result<_>>()?;
    Ok(Held { kind: "NumPy archive", arrays, facts: Vec::new(), provenance: io::provenance(path)? })
}

fn hdf5(path: &Path) -> Result<Held> {
    // What VTK finds are the same arrays once more, and the provenance is shown by itself.
    let is_own = |name: &str| !name.starts_with("VTKHDF/") && !name.starts_with("abide_provenance/");
    let all = io::hdf5::contents(path)?.into_iter().filter(|own| is_own(&own.name));
    let arrays = all.map(|own| Array { name: own.name, extents: own.extents, dtype: own.dtype }).collect();
    Ok(Held { kind: "HDF5 file", arrays, facts: Vec::new(), provenance: io::provenance(path)? })
}

fn image(path: &Path) -> Result<Held> {
    let about = io::vti::about(path)?;
    let array = |(name, dtype): (String, String)| Array { name, extents: about.extents.clone(), dtype };
    let facts = about.facts;
    let arrays = about.arrays.into_iter().map(array).collect();
    Ok(Held { kind: "VTK image", arrays, facts, provenance: None })
}

fn field(path: &Path) -> Result<Held> {
    let (extents, dtype) = match io::announced(path)? {
        Some(own) => (own.shape.extents().to_vec(), own.dtype),
        // A file that says too little, or that can be read only once.
        None => {
            let read = io::read(path)?;
            (read.shape.extents().to_vec(), Some(read.values.dtype()))
        }
    };
    let dtype = dtype.map_or("whole numbers".to_owned(), |own| own.to_string());
    let arrays = vec![Array { name: "field".to_owned(), extents, dtype }];
    Ok(Held { kind: "field", arrays, facts: Vec::new(), provenance: None })
}

fn joined(extents: &[usize]) -> String {
    extents.iter().map(usize::to_string).collect::<Vec<_>>().join("x")
}

fn text_of(path: &Path, held: &Held) -> String {
    let mut all = String::new();
    let mut line = |name: &str, value: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(all, "{name:<12}{value}");
    };
    line("file", &format!("{}: {}", path.display(), held.kind));
    for (name, value) in &held.facts {
        line(name, value);
    }
    for Array { name, extents, dtype } in &held.arrays {
        line("array", &format!("{name} {} {dtype}", joined(extents)));
    }
    let Some(own) = &held.provenance else { return all };
    let parameter = |(name, Number(value)): &(String, Number)| format!("{name} {value}");
    let parameters: Vec<String> = own.parameters.iter().map(parameter).collect();
    for (name, value) in [
        ("program", own.program.as_str()),
        ("parameters", &parameters.join(", ")),
        ("steps", &own.steps.to_string()),
        ("plan", &own.plan),
        ("device", &format!("{} by {}", own.device, own.backend)),
        ("version", &own.abide),
        ("digest", own.digest.as_deref().unwrap_or("none: the run has not ended")),
    ] {
        if !value.is_empty() {
            line(name, value);
        }
    }
    if !own.model.is_empty() {
        let _ = write!(all, "\n{}", own.model);
    }
    all
}
