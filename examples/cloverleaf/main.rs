//! CloverLeaf, the hydrodynamics mini-app, from its input decks: `cloverleaf [DECK] [--backend NAME] [--output
//! DIR]`.
//!
//! Prints the reference's summary every `summary_frequency` steps, and writes each field of its own extents
//! as `.npy` into DIR. Without a deck it runs the built-in test.
//!
//! `cargo run --release --example cloverleaf`

mod deck;

use std::path::PathBuf;

use abide::prelude::*;
use abide::{catalogue, io};
use deck::Deck;

/// 1.4 − 1.0, as the reference subtracts it.
const GAMMA_1: f64 = 1.4 - 1.0;

struct Arguments {
    deck: Option<PathBuf>,
    backend: Choice,
    output: Option<PathBuf>,
}

fn arguments() -> Result<Arguments> {
    let mut found = Arguments { deck: None, backend: Choice::Auto, output: None };
    let mut all = std::env::args_os().skip(1);
    while let Some(argument) = all.next() {
        let usage = || {
            let usage = "use cloverleaf [DECK] [--backend auto|cuda|wgpu|cpu] [--output DIR]";
            Error::invalid(argument.to_string_lossy(), "it has no value, or is not known", usage)
        };
        match argument.to_str() {
            Some("--backend") => {
                found.backend = all.next().as_ref().and_then(|v| v.to_str()).ok_or_else(usage)?.parse()?;
            }
            Some("--output") => found.output = Some(all.next().ok_or_else(usage)?.into()),
            Some(other) if other.starts_with('-') => return Err(usage()),
            _ if found.deck.is_some() => return Err(usage()),
            _ => found.deck = Some(argument.into()),
        }
    }
    Ok(found)
}

fn main() -> std::process::ExitCode {
    match run() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            std::process::ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let Arguments { deck, backend, output } = arguments()?;
    let deck = deck.map_or_else(|| Deck::parse(deck::BUILT_IN), |path| Deck::read(&path))?;
    let name = if deck.cells.len() == 3 { "cloverleaf-3d" } else { "cloverleaf" };
    // The reference ends when the time plus its smallest number is beyond the end.
    let at_least = deck.end_time + f64::from(1e-16_f32) > deck.end_time;
    let mut builder = Simulation::builder(if name == "cloverleaf" {
        catalogue::cloverleaf()?
    } else {
        catalogue::find(name)?.program(3)?
    })
    .size(&deck.cells)
    .dtype(DType::F64)
    .backend(backend)
    .param("dtrise", deck.timestep_rise)
    .param("dtmax", deck.max_timestep)
    .scalar("dt", deck.initial_timestep)
    .until(&format!("time {} {:?}", if at_least { ">=" } else { ">" }, deck.end_time));
    for (name, width) in ["dx", "dy", "dz"].into_iter().zip(deck.widths().into_iter().rev()) {
        builder = builder.param(name, width);
    }
    for (field, values) in deck.generate() {
        builder = builder.input(field, values);
    }
    let mut gas = builder.build()?;

    println!(
        "{:>8} {:>22} {:>22} {:>22} {:>22} {:>22} {:>22} {:>22} {:>22}",
        "step",
        "time",
        "volume",
        "mass",
        "density",
        "pressure",
        "internal energy",
        "kinetic energy",
        "total energy"
    );
    summarise(&deck, &mut gas)?;
    // The reference does one step before it looks whether it is to end.
    let last = deck.end_step.max(1);
    let mut seconds = 0.0;
    while gas.step() < last {
        let step = gas.step();
        let now = match deck.summary_frequency {
            0 => last - step,
            every => (every - step % every).min(last - step),
        };
        seconds += gas.advance(now)?;
        if deck.summary_frequency > 0 && gas.step() % deck.summary_frequency == 0 {
            summarise(&deck, &mut gas)?;
        }
        if gas.step() < step + now {
            break;
        }
    }
    summarise(&deck, &mut gas)?;
    let steps = gas.step();
    println!("{} on {}: {steps} steps in {seconds:.3} s", gas.backend(), gas.plan().device.name);
    match output {
        None => Ok(()),
        Some(folder) => write(&mut gas, &folder),
    }
}

/// Prints the sums over all cells, added in the order of memory.
fn summarise(deck: &Deck, gas: &mut Simulation) -> Result<()> {
    let axes = deck.cells.len();
    let cell_volume: f64 = deck.widths().iter().rev().copied().product();
    let (density, energy) = (gas.field("density0")?.to_f64(), gas.field("energy0")?.to_f64());
    let velocities: Vec<Vec<f64>> = ["xvel0", "yvel0", "zvel0"][..axes]
        .iter()
        .map(|name| Ok(gas.field(name)?.to_f64()))
        .collect::<Result<_>>()?;
    let mut extents = [1; 3];
    extents[3 - axes..].copy_from_slice(&deck.cells);
    let nodes = [0, 1, 2].map(|axis| extents[axis] + usize::from(axis + axes >= 3));
    let [mut volume, mut mass, mut pressure, mut internal, mut kinetic] = [0.0; 5];
    for (cell, (&density, &energy)) in density.iter().zip(&energy).enumerate() {
        let at = [cell / (extents[1] * extents[2]), cell / extents[2] % extents[1], cell % extents[2]];
        let mut squares = 0.0;
        for corner in 0..1 << axes {
            let [z, y, x] = [0, 1, 2].map(|axis| at[axis] + (corner >> (2 - axis) & 1));
            let node = (z * nodes[1] + y) * nodes[2] + x;
            let square = velocities.iter().map(|v| v[node] * v[node]).reduce(|sum, v| sum + v);
            squares += square.unwrap_or(0.0) / f64::from(1 << axes);
        }
        volume += cell_volume;
        mass += cell_volume * density;
        pressure += cell_volume * (GAMMA_1 * density * energy);
        internal += cell_volume * density * energy;
        kinetic += cell_volume * density * 0.5 * squares;
    }
    println!(
        "{:>8} {:>22.15e} {volume:>22.15e} {mass:>22.15e} {:>22.15e} {:>22.15e} {internal:>22.15e} {kinetic:>22.15e} {:>22.15e}",
        gas.step(),
        gas.scalar("time")?,
        mass / volume,
        pressure / volume,
        internal + kinetic
    );
    Ok(())
}

/// Writes every field; the pressure is that of the summary.
fn write(gas: &mut Simulation, folder: &std::path::Path) -> Result<()> {
    std::fs::create_dir_all(folder)
        .map_err(|error| Error::file(folder, error, "give a folder that can be made"))?;
    let names = gas.problem().program.fields().to_vec();
    for (number, name) in names.iter().enumerate() {
        let values = match name.as_str() {
            "pressure" => {
                let (d, e) = (gas.field("density0")?.to_f64(), gas.field("energy0")?.to_f64());
                Array::F64(d.iter().zip(&e).map(|(d, e)| GAMMA_1 * d * e).collect())
            }
            _ => gas.field(name)?,
        };
        let (path, shape) = (folder.join(format!("{name}.npy")), gas.problem().shape_of(number)?);
        io::write(&path, &shape, &[(name, &values)], gas.step(), None)?.commit()?;
    }
    Ok(())
}
