//! Options as names and values, in the words of the command.

use std::ffi::c_char;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use abide::backend::Devices;
use abide::io;
use abide::program::Probe;
use abide::solve::{Gmres, Method, Parameters, Solve};
use abide::{Builder, Choice, Error, Result, Start};

use crate::handle::{Guarded, free};
use crate::status::{AbideStatus, face};
use crate::text::{given, hand_out, text};

/// Options of a simulation, a system or a gas.
pub struct AbideOptions {
    pub(crate) given: Guarded<Given>,
}

/// The options that may be set several times.
const REPEATED: [&str; 4] = ["input", "param", "probe", "scalar"];

/// Names and values, in the order in which they were given.
pub(crate) type Given = Vec<(String, String)>;

/// Makes options, none of them set. `abide_options_free` frees them.
///
/// # Safety
///
/// `options` is the address of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abide_options_new(options: *mut *mut AbideOptions) -> AbideStatus {
    face(|| {
        let made = AbideOptions { given: Guarded::new("options", Given::new()) };
        // SAFETY: as promised.
        unsafe { hand_out(made, options, "options") }
    })
}

/// Sets an option by the command's name without its dashes: `backend`, `size`, `dtype`, `boundary`, `param`, `tolerance` … The value
/// is what the command takes, as in `64x64` or `kappa=0.1`; `true` or `false` where the command takes none. `param`, `input`,
/// `probe` and `scalar` may be set several times; of others the last value counts.
///
/// Names are checked now, values where the options are used.
///
/// # Safety
///
/// `options` is a handle; `name` and `value` are strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abide_options_set(
    options: *mut AbideOptions,
    name: *const c_char,
    value: *const c_char,
) -> AbideStatus {
    face(|| {
        // SAFETY: as promised.
        let (options, name, value) = unsafe {
            (
                given(options, "options")?,
                text(name, "the name of an option")?,
                text(value, "the value of an option")?,
            )
        };
        let known = || RUN.iter().map(|row| row.0).chain(SOLVE.iter().map(|row| row.0)).chain(GAS);
        if !known().any(|own| own == name) {
            let mut all: Vec<&str> = known().collect();
            all.sort_unstable();
            all.dedup();
            return Err(Error::unknown("option", name, all).into());
        }
        options.given.with(|given| {
            if !REPEATED.contains(&name) {
                given.retain(|(own, _)| own != name);
            }
            given.push((name.to_owned(), value.to_owned()));
            Ok(())
        })
    })
}

/// Frees options. What was made with them stays as it is. A null pointer is ignored.
///
/// # Safety
///
/// `options` is null, or a handle that is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abide_options_free(options: *mut AbideOptions) {
    // SAFETY: as promised.
    unsafe { free(options, |options| &options.given) }
}

/// Returns the names and values of options; none for a null pointer.
///
/// # Safety
///
/// `options` is null or a handle.
pub(crate) unsafe fn of(options: *const AbideOptions) -> crate::status::Outcome<Given> {
    // SAFETY: as promised.
    match unsafe { options.as_ref() } {
        None => Ok(Given::new()),
        Some(options) => options.given.with(|given| Ok(given.clone())),
    }
}

/// The options of a model's text that a simulation follows. The others say what the command reads and writes.
const OF_TEXT: [&str; 7] = ["backend", "batch", "boundary", "dtype", "param", "size", "until"];

/// Returns the options of a model's text as names and values.
pub(crate) fn of_text(options: &[String]) -> Given {
    let split = |option: &String| {
        let bare = option.trim_start_matches('-');
        let (name, value) = bare.split_once('=').unwrap_or((bare, "true"));
        (name.to_owned(), value.to_owned())
    };
    options.iter().map(split).filter(|(name, _)| OF_TEXT.contains(&name.as_str())).collect()
}

/// What an option does to a description.
type Row<T> = (&'static str, fn(T, &str) -> Result<T>);

/// The options of a simulation.
#[rustfmt::skip]
const RUN: [Row<Builder>; 27] = [
    ("backend", |b, v| Ok(b.backend(v.parse()?))),
    ("batch", |b, v| Ok(b.batch(whole("batch", v)?))),
    ("boundary", |b, v| Ok(b.boundary_text(v.parse()?))),
    ("cache", |b, v| Ok(b.cache(v.parse()?))),
    ("depth", |b, v| Ok(b.depth(v.parse()?))),
    ("device-list", |b, v| Ok(b.devices(list(v)?))),
    ("devices", |b, v| Ok(b.devices(v.parse::<Devices>()?))),
    ("dtype", |b, v| Ok(b.dtype(v.parse()?))),
    ("exchange", |b, v| Ok(b.exchange(v.parse()?))),
    ("execution", |b, v| Ok(b.execution(v.parse()?))),
    ("force", |b, v| Ok(b.force(flag("force", v)?))),
    ("fuse", |b, v| Ok(b.fuse(v.parse()?))),
    ("input", input),
    ("jam", |b, v| Ok(b.jam(v.parse()?))),
    ("lowering", |b, v| Ok(b.lowering(v.parse()?))),
    ("param", parameter),
    ("pin", |b, v| Ok(b.pin(flag("pin", v)?))),
    ("probe", |b, v| Probe::parse(v).map(|(field, index)| b.probe(&field, &index))),
    ("record-every", |b, v| Ok(b.record(whole("record-every", v)?))),
    ("resume", |b, v| Ok(b.resume(v))),
    ("rows", |b, v| Ok(b.rows(v.parse()?))),
    ("scalar", |b, v| assigned("scalar", v).map(|(name, value)| b.scalar(name, value))),
    ("size", |b, v| Ok(b.size(v.parse::<abide::Shape>()?.extents()))),
    ("tables", |b, v| Ok(b.tables(v.parse()?))),
    ("team", |b, v| Ok(b.team(v.parse()?))),
    ("tune", |b, v| Ok(b.tune(v.parse()?))),
    ("until", |b, v| Ok(b.until(v))),
];

/// A description of a solve, and the parameters that end it.
pub(crate) struct Solving {
    pub solve: Solve,
    pub parameters: Parameters,
    pub rows: usize,
}

impl Solving {
    fn with(self, change: impl FnOnce(Solve) -> Solve) -> Solving {
        Solving { solve: change(self.solve), ..self }
    }
}

/// The options of a system.
#[rustfmt::skip]
const SOLVE: [Row<Solving>; 14] = [
    ("absolute", |mut s, v| { s.parameters.absolute = number("absolute", v)?; Ok(s) }),
    ("assume-symmetric", |s, v| { let assume = flag("assume-symmetric", v)?; Ok(s.with(|solve| solve.assume_symmetric(assume))) }),
    ("backend", |s, v| { let choice: Choice = v.parse()?; Ok(s.with(|solve| solve.backend(choice))) }),
    ("cache", |s, v| { let cache = v.parse()?; Ok(s.with(|solve| solve.cache(cache))) }),
    ("device-list", |s, v| { let devices = list(v)?; Ok(s.with(|solve| solve.devices(devices))) }),
    ("devices", |s, v| { let devices: Devices = v.parse()?; Ok(s.with(|solve| solve.devices(devices))) }),
    ("dtype", |s, v| { let precision = v.parse()?; Ok(s.with(|solve| solve.precision(precision))) }),
    ("max-iterations", |mut s, v| { s.parameters.iterations = whole("max-iterations", v)?; Ok(s) }),
    ("method", |s, v| { let method = method(v, s.rows)?; Ok(s.with(|solve| solve.method(method))) }),
    ("nullspace", |s, v| { let nullspace = v.parse()?; Ok(s.with(|solve| solve.nullspace(nullspace))) }),
    ("preconditioner", |s, v| { let wanted = v.parse()?; Ok(s.with(|solve| solve.preconditioner(wanted))) }),
    ("stagnation", |mut s, v| { s.parameters.stagnation = stagnation(v)?; Ok(s) }),
    ("time-limit", |mut s, v| { s.parameters.time = Some(seconds(v)?); Ok(s) }),
    ("tolerance", |mut s, v| { s.parameters.relative = number("tolerance", v)?; Ok(s) }),
];

/// The options of a gas, which `gas.rs` reads.
pub(crate) const GAS: [&str; 8] = ["backend", "chung", "closure", "given", "kappa", "kij", "mass", "species"];

/// Adds options to a description by a table. Those of another table are refused by name.
fn apply<T>(table: &[Row<T>], kind: &'static str, mut to: T, given: &Given) -> Result<T> {
    for (name, value) in given {
        match table.iter().find(|(own, _)| own == name) {
            Some((_, change)) => {
                let what = format!("option {name}=`{value}`");
                to = change(to, value).map_err(|error| match error {
                    Error::Invalid { what: own, reason, change } => {
                        Error::Invalid { what: what.clone(), reason: format!("{own}: {reason}"), change }
                    }
                    other => other,
                })?;
            }
            None => return Err(Error::unknown(kind, name.as_str(), table.iter().map(|(own, _)| own))),
        }
    }
    Ok(to)
}

/// Adds options to the description of a simulation, those of the model's text first.
pub(crate) fn apply_run(builder: Builder, of_text: &Given, own: &Given) -> Result<Builder> {
    let builder = apply(&RUN, "option of a simulation", builder, of_text)?;
    apply(&RUN, "option of a simulation", builder, own)
}

/// Adds options to the description of a solve.
pub(crate) fn apply_solve(solving: Solving, own: &Given) -> Result<Solve> {
    let done = apply(&SOLVE, "option of a system", solving, own)?;
    Ok(done.solve.parameters(done.parameters))
}

/// Returns the failure of a value that cannot be read.
fn unread(name: &str, value: &str, reason: &str, change: &str) -> Error {
    Error::invalid(format!("{name} `{value}`"), reason, change)
}

fn whole<T: FromStr>(name: &str, value: &str) -> Result<T> {
    value.parse().map_err(|_| unread(name, value, "not a whole number of 0 or more", "write it like 1000"))
}

fn number(name: &str, value: &str) -> Result<f64> {
    value.trim().parse().map_err(|_| unread(name, value, "not a number", "write it like 1e-8"))
}

/// Reads `true` or `false`.
pub(crate) fn flag(name: &str, value: &str) -> Result<bool> {
    value.parse().map_err(|_| unread(name, value, "neither true nor false", "write true or false"))
}

fn list(value: &str) -> Result<Devices> {
    let numbers: Option<Vec<usize>> = value.split(',').map(|one| one.trim().parse().ok()).collect();
    numbers
        .map(Devices::These)
        .ok_or_else(|| unread("device-list", value, "not numbers", "write it like 0,2"))
}

fn assigned<'a>(name: &str, value: &'a str) -> Result<(&'a str, f64)> {
    let read = value.split_once('=').and_then(|(own, text)| Some((own.trim(), text.trim().parse().ok()?)));
    read.ok_or_else(|| unread(name, value, "not a name and a number", "write it like kappa=0.1"))
}

/// Reads `NAME=VALUE`, or in a batch `NAME=FIRST:LAST`.
fn parameter(builder: Builder, value: &str) -> Result<Builder> {
    let spread = value.split_once('=').and_then(|(name, text)| {
        let (first, last) = text.split_once(':')?;
        Some((name.trim(), first.trim().parse().ok()?, last.trim().parse().ok()?))
    });
    match spread {
        Some((name, first, last)) => Ok(builder.param_spread(name, first, last)),
        None => assigned("param", value).map(|(name, value)| builder.param(name, value)),
    }
}

/// Reads `FIELD=SOURCE`.
fn input(builder: Builder, value: &str) -> Result<Builder> {
    let Some((field, source)) = value.split_once('=') else {
        return Err(unread("input", value, "it names no field", "write it like u=random:1 or u=start.npy"));
    };
    if io::is_input(std::path::Path::new(source)) {
        return Ok(builder.input_file(field, PathBuf::from(source)));
    }
    Ok(builder.start(field, source.parse::<Start>()?))
}

fn method(value: &str, rows: usize) -> Result<Method> {
    match value {
        "gmres" => Ok(Method::Gmres(Gmres::suited(rows))),
        _ => value.parse(),
    }
}

fn stagnation(value: &str) -> Result<Option<usize>> {
    match value {
        "off" => Ok(None),
        _ => whole("stagnation", value).map(Some),
    }
}

fn seconds(value: &str) -> Result<Duration> {
    let read = value.trim().parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    read.ok_or_else(|| unread("time-limit", value, "not a number of seconds", "write it like 2.5"))
}
