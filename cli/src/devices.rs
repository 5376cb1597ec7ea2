//! `abide devices`.

use std::fmt::Write as _;

use abide::backend::{self, Kind, Listed, Opened};
use abide::device::Caches;
use abide::{DeviceSpec, Result};
use clap::Args;
use serde_json::{Value, json};

use super::{Ended, bytes};

/// The arguments of `devices`.
#[derive(Args)]
pub struct Devices {
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl Devices {
    /// Prints every backend with its device, or the reason why it has none.
    pub fn execute(&self) -> Ended {
        let all: Vec<(&str, Result<Opened>)> =
            backend::names().map(|name| (name, backend::open(name))).collect();
        if self.json {
            let each = all.iter().map(|(name, opened)| match opened {
                Ok(opened) => json!({
                    "backend": name,
                    "kind": kind(opened.kind),
                    "device": opened.backend.device(),
                    "devices": others(name).iter().map(as_json).collect::<Vec<_>>(),
                }),
                Err(error) => json!({ "backend": name, "unavailable": error.to_string() }),
            });
            super::print_json(&each.collect::<Vec<_>>())?;
            return Ok(());
        }
        let mut text = String::new();
        for (name, opened) in &all {
            // Writing to a string cannot fail.
            let _ = match opened {
                Ok(opened) => write!(
                    text,
                    "{name:<6}{} ({})\n{}",
                    opened.backend.device().name,
                    kind(opened.kind),
                    numbers(opened.backend.device())
                ),
                Err(error) => writeln!(text, "{name:<6}{error}"),
            };
            let several = if opened.is_ok() { others(name) } else { Vec::new() };
            for Listed { number, device, reaches } in &several {
                let reaches: Vec<String> = reaches.iter().map(usize::to_string).collect();
                let reaches = match &reaches[..] {
                    [] => "reaches no other's memory: planes go by way of the host".to_owned(),
                    all => format!("copies directly from {}", all.join(", ")),
                };
                let _ = writeln!(text, "      --device-list {number}: {}, {reaches}", device.name);
            }
        }
        let first = all.iter().find(|(_, opened)| opened.as_ref().is_ok_and(|o| o.kind != Kind::Software));
        if let Some((name, _)) = first {
            let _ = writeln!(text, "\n--backend auto tries {name} first");
        }
        super::print(&text)?;
        Ok(())
    }
}

/// Returns the devices of a backend that has more than one to choose from.
fn others(name: &str) -> Vec<Listed> {
    match backend::count(name) {
        // Why a device cannot be listed is reported when that device is asked for.
        Ok(2..) => backend::list(name).unwrap_or_default(),
        _ => Vec::new(),
    }
}

fn as_json(listed: &Listed) -> Value {
    json!({ "number": listed.number, "device": listed.device, "copies_directly_from": listed.reaches })
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Gpu => "GPU",
        Kind::Software => "software driver: never chosen by auto",
        Kind::Cpu => "CPU",
    }
}

/// Formats the numbers that the device reports, and leaves out all others.
fn numbers(d: &DeviceSpec) -> String {
    let mut parts = Vec::new();
    if let Some((major, minor)) = d.compute_capability {
        parts.push(format!("compute capability {major}.{minor}"));
    }
    let mut number = |value: f64, text: String| {
        if value > 0.0 && value.is_finite() {
            parts.push(text);
        }
    };
    number(d.memory_bytes as f64, format!("{} of memory", bytes(d.memory_bytes as f64)));
    number(d.memory_bandwidth, format!("{:.0} GB/s", d.memory_bandwidth / 1e9));
    number(
        d.multiprocessors as f64,
        format!("{} {}", d.multiprocessors, if d.caches.is_some() { "cores" } else { "multiprocessors" }),
    );
    if d.registers.is_some() {
        number(
            d.on_chip_bytes() as f64,
            format!("{} in registers and shared memory", bytes(d.on_chip_bytes() as f64)),
        );
    } else {
        let block = d.shared_bytes_per_block as f64;
        number(block, format!("{} of workgroup memory", bytes(block)));
    }
    if let Some(Caches { level1_bytes, level2_bytes }) = d.caches {
        for (level, cache) in [("first", level1_bytes), ("second", level2_bytes)] {
            let cache = cache.unwrap_or(0) as f64;
            number(cache, format!("{} of {level}-level cache per core", bytes(cache)));
        }
    }
    number(d.l2_bytes as f64, format!("{} of last-level cache", bytes(d.l2_bytes as f64)));
    number(d.f32_flops, format!("{:.2} TFlop/s in f32", d.f32_flops / 1e12));
    number(d.f64_flops, format!("{:.2} TFlop/s in f64", d.f64_flops / 1e12));
    if d.registers.is_some() {
        for (what, seconds) in [
            ("from kernel to kernel", d.launch_seconds),
            ("a barrier of all blocks", d.barrier_seconds),
            ("an exchange with the blocks beside", d.exchange_seconds),
        ] {
            number(seconds, format!("{:.2} µs {what}", 1e6 * seconds));
        }
    }
    if d.f64_flops == 0.0 && d.f32_flops > 0.0 {
        parts.push("no f64".to_owned());
    }
    parts.chunks(4).map(|line| format!("      {}\n", line.join(", "))).collect()
}
