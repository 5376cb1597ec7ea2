//! The arguments that say what is computed: the stencil, its domain, its parameters and its initial fields.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use abide::domain::{BoundaryText, Condition};
use abide::io::checkpoint::Head;
use abide::io::{self, Axes, Loaded};
use abide::program::check_members;
use abide::{
    Boundary, Builder, DType, Error, IntoModel, Model, Program, Result, Shape, Simulation, Start, text,
};
use clap::Args;

/// What is computed, where not from what.
#[derive(Args)]
pub struct Domain {
    /// The stencil or model; `abide list` shows them. Or a model file, NAME.toml
    pub stencil: String,

    /// Extents, slowest axis first, as in 512x512. Unless given: an input's, or 512x512 in two dimensions,
    /// 4096 in one, 128x128x128 in three
    #[arg(long, value_name = "NxN")]
    pub size: Option<Shape>,

    /// The type of all fields, f32 or f64 [default: f32]
    #[arg(long)]
    pub dtype: Option<DType>,

    #[arg(long, allow_hyphen_values = true, help = format!(
        "{}; or a condition at a wall, {}; per axis as in y=periodic,x=fixed; per side as in x-=mirror,x+=fixed; for \
         one field as in u:x-=-reflect [default: the model's own]",
        Boundary::names(),
        Condition::all().map(Condition::notation).collect::<Vec<_>>().join(" or "),
    ))]
    pub boundary: Option<String>,

    /// A parameter of the model; may be given several times. NAME=FIRST:LAST spreads it over the members of a
    /// batch
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parameter)]
    pub parameters: Vec<(String, Setting)>,

    /// Run so many independent domains at once, each with parameters, seed and files' part of its own; files of
    /// fields have their axis first
    #[arg(long, value_name = "N", value_parser = members, allow_negative_numbers = true)]
    pub batch: Option<usize>,
}

/// What a parameter is set to: a value, or the first and the last of a batch's members.
#[derive(Clone, Copy)]
pub enum Setting {
    All(f64),
    Spread(f64, f64),
}

impl FromStr for Setting {
    type Err = std::num::ParseFloatError;

    fn from_str(text: &str) -> std::result::Result<Setting, Self::Err> {
        match text.split_once(':') {
            Some((first, last)) => Ok(Setting::Spread(first.trim().parse()?, last.trim().parse()?)),
            None => Ok(Setting::All(text.trim().parse()?)),
        }
    }
}

fn parameter(text: &str) -> Result<(String, Setting)> {
    let parsed = text
        .split_once('=')
        .and_then(|(name, value)| Some((name.trim().to_owned(), value.trim().parse().ok()?)));
    parsed.ok_or_else(|| {
        let change = "write it like kappa=0.1, or in a batch like kappa=0.1:0.2";
        Error::invalid(format!("parameter `{text}`"), "not a name and a number", change)
    })
}

fn members(text: &str) -> Result<usize> {
    let members = super::whole("members of a batch", text, 0, "--batch 64")?;
    check_members(members).map(|()| members)
}

/// One `--input`.
#[derive(Clone)]
pub struct Input {
    field: Option<String>,
    from: From,
}

#[derive(Clone)]
enum From {
    Start(Start),
    Own,
    File(PathBuf),
}

impl FromStr for Input {
    type Err = Error;

    fn from_str(text: &str) -> Result<Input> {
        let (field, rest) = super::named(text);
        let path = Path::new(rest);
        let from = match rest.parse() {
            Ok(start) => From::Start(start),
            Err(_) if rest == "own" => From::Own,
            Err(_) if io::is_input(path) => From::File(path.to_owned()),
            Err(_) if path.extension().is_none() => {
                let file = format!("or a {} file", io::inputs());
                let known = ["random:SEED", "gaussian", "point", "own", &file];
                return Err(Error::unknown("start", rest, known));
            }
            Err(_) => {
                return Err(Error::file(
                    path,
                    "no input format has this extension",
                    format!("give a {} file, or random:SEED, gaussian, point or own", io::inputs()),
                ));
            }
        };
        let from = match (from, field) {
            // In a file of several fields, the one of this name.
            (From::File(path), Some(field)) => From::File(io::naming(&path, field)),
            (from, _) => from,
        };
        Ok(Input { field: field.map(str::to_owned), from })
    }
}

impl Input {
    /// Returns the file that the input is read from, with the field that was named.
    pub fn file(&self) -> Option<(Option<&str>, &Path)> {
        match &self.from {
            From::File(path) => Some((self.field.as_deref(), path)),
            _ => None,
        }
    }
}

/// Returns inputs with one for each field of the program that a file of several holds, where none is named.
///
/// # Errors
///
/// [`Error::File`] where such a file holds no field of the program.
pub fn each(inputs: &[Input], program: &Program) -> Result<Vec<Input>> {
    let mut all = Vec::new();
    for input in inputs {
        let (None, From::File(path)) = (&input.field, &input.from) else {
            all.push(input.clone());
            continue;
        };
        let Some(names) = io::names(path)?.filter(|_| io::is_of_several(path)) else {
            all.push(input.clone());
            continue;
        };
        let own = program.fields().iter().filter(|field| names.contains(field));
        let before = all.len();
        all.extend(
            own.map(|field| Input { field: Some(field.clone()), from: From::File(io::naming(path, field)) }),
        );
        if all.len() == before {
            let message =
                format!("it holds {}, the fields are {}", names.join(", "), program.fields().join(", "));
            return Err(Error::file(path, message, "name one of its arrays, as in --input u=FILE:NAME"));
        }
    }
    Ok(all)
}

/// A description checked as far as it can be without a device.
pub struct Described {
    /// The program.
    pub program: Arc<Program>,
    /// The domain.
    pub shape: Shape,
    /// The description of the run, complete but for the backend.
    pub builder: Builder,
}

impl Domain {
    /// Returns the model file that describes the computation, if one does.
    pub fn model_file(&self) -> Option<&Path> {
        io::model::is_model(&self.stencil).then_some(Path::new(&self.stencil))
    }

    /// Returns the program as far as it is known before inputs are read; their number of axes is not known
    /// yet.
    pub fn program(&self, inputs: &[Input], resumed: Option<&Head>) -> Result<Arc<Program>> {
        let model = self.model(inputs, resumed)?;
        let shape = self.size.or(resumed.map(|head| head.shape));
        model.program(shape.map_or(*model.dimensions().start(), |shape| shape.dimensions()))
    }

    /// Reads the inputs and describes the simulation; `resumed` is the checkpoint that the run goes on from.
    pub fn describe(&self, inputs: &[Input], resumed: Option<&Head>) -> Result<Described> {
        let model = self.model(inputs, resumed)?;
        let mut loaded: Vec<(Option<&str>, Initial)> = Vec::new();
        let mut implied = self.size.or(resumed.map(|head| head.shape));
        let axes = self.axes(&model);
        for input in inputs {
            let initial = match &input.from {
                From::Own => Initial::Own,
                From::Start(start) => Initial::Start(start.clone()),
                From::File(path) => {
                    // The values are read once the machine is known to have memory for them, unless they can
                    // be read only now.
                    let (shape, initial) = match io::announced_as(path, &axes)? {
                        Some(announced) => (announced.shape, Initial::File(path.clone())),
                        None => {
                            let file = io::read_as(path, self.dtype.unwrap_or(DType::F32), &axes)?;
                            (file.shape, Initial::Loaded(file))
                        }
                    };
                    // What stands on faces and nodes is held against its field's extents by the builder.
                    let named = input.field.as_deref();
                    let on_cells = named.is_none_or(|field| model.is_on_cells(field, shape.dimensions()));
                    let size = if on_cells { *implied.get_or_insert(shape) } else { shape };
                    if shape != size {
                        let message = format!("its size is {shape}, the domain's is {size}");
                        return Err(Error::file(
                            path,
                            message,
                            "give inputs of one size, and that as --size or none",
                        ));
                    }
                    initial
                }
            };
            loaded.push((input.field.as_deref(), initial));
        }
        let shape = implied.map_or_else(|| model.default_size(), Ok)?;
        let program = model.program(shape.dimensions())?;
        let dtype = self.dtype;
        let mut builder = Simulation::builder(program.clone()).size(shape.extents());
        if let Some(members) = self.batch {
            builder = builder.batch(members);
        }
        if let Some(dtype) = dtype {
            builder = builder.dtype(dtype);
        }
        if let Some(text) = &self.boundary {
            let text: BoundaryText = text.parse()?;
            builder = builder.boundary_text(text);
        }
        for (name, value) in &self.parameters {
            builder = match *value {
                Setting::All(value) => builder.param(name, value),
                Setting::Spread(first, last) => builder.param_spread(name, first, last),
            };
        }
        super::once("--param", self.parameters.iter().map(|(name, _)| name))?;
        for input in inputs {
            if let Some(name) = &input.field {
                program.field(name)?;
            }
        }
        let mut given: Vec<String> = Vec::new();
        for (field, initial) in loaded {
            // An input without a name goes to every field that the model changes, so that a wave starts at
            // rest.
            let all = (0..program.fields().len())
                .filter(|&f| program.is_written(f))
                .map(|f| program.fields()[f].as_str());
            let fields: Vec<&str> = field.map_or_else(|| all.collect(), |name| vec![name]);
            for name in fields {
                if given.iter().any(|other| other == name) {
                    let change = "give each field one; without a name, an input is for every field that the model changes";
                    return Err(Error::invalid(
                        format!("--input for field {name}"),
                        "it is given twice",
                        change,
                    ));
                }
                given.push(name.to_owned());
                builder = initial.clone().give(builder, &program, name)?;
            }
        }
        Ok(Described { program, shape, builder })
    }

    /// Returns how the axes of inputs are to be understood.
    fn axes(&self, model: &Model) -> Axes {
        let dimensions = self.size.map_or(model.dimensions(), |size| size.dimensions()..=size.dimensions());
        self.batch.map_or(Axes::DOMAIN, |members| Axes::of_batch(members, dimensions))
    }

    /// Returns the model. Heat conduction takes its form with a conductivity field where one is given.
    fn model(&self, inputs: &[Input], resumed: Option<&Head>) -> Result<Model> {
        if io::model::is_model(&self.stencil) {
            return text::read(&super::config::contents(&self.stencil)?, &self.stencil)?.into_model();
        }
        const CONDUCTIVITY: &str = "heat-conductivity";
        let given = inputs.iter().any(|input| input.field.as_deref() == Some("kappa"));
        let stored = resumed.is_some_and(|head| head.program == CONDUCTIVITY);
        let name = if self.stencil == "heat" && (given || stored) { CONDUCTIVITY } else { &self.stencil };
        name.into_model().map_err(|error| unlike_a_model_file(name).unwrap_or(error))
    }
}

/// Returns the error for a name that is a file's, but no model file's.
fn unlike_a_model_file(name: &str) -> Option<Error> {
    let path = Path::new(name);
    let toml = path.with_extension("toml");
    if path.extension().is_none() && !path.is_file() && !toml.is_file() {
        return None;
    }
    let change = match toml.is_file() {
        true => format!("did you mean `{}`?", toml.display()),
        false => "give a stencil or model of `abide list`, or a model file, NAME.toml".to_owned(),
    };
    let reason = "no stencil has this name, and the name of a model file ends in .toml";
    Some(Error::invalid(format!("`{name}`"), reason, change))
}

#[derive(Clone)]
enum Initial {
    Own,
    Start(Start),
    File(PathBuf),
    Loaded(Loaded),
}

impl Initial {
    fn give(self, builder: Builder, program: &Program, field: &str) -> Result<Builder> {
        Ok(match self {
            Initial::Own => builder.start(field, program.start(program.field(field)?).clone()),
            Initial::Start(start) => builder.start(field, start),
            Initial::File(path) => builder.input_file(field, path),
            Initial::Loaded(loaded) => builder.input(field, loaded),
        })
    }
}
