//! A plan in words.

use std::fmt::Write as _;

use super::streaming::portable::Handover;
use super::{
    Execution, Overlapped, Persistent, Plan, PortableStreaming, Schedule, Synchronisation, Tiling, WarpStreaming,
    perks::Bound,
};

impl Plan {
    /// The plan in one line.
    pub fn summary(&self) -> String {
        match &self.schedule {
            Schedule::Cpu(rows) => match &rows.tiling {
                None => format!("stepwise, rows on {} threads", rows.threads),
                Some(tiling) => format!(
                    "{}, {} steps a pass, {} tiles of {} on {} threads",
                    self.execution,
                    self.depth,
                    times(&tiling.tiles),
                    times(&tiling.tile),
                    rows.threads
                ),
            },
            Schedule::Stepwise(tiles) => {
                format!("stepwise, tiles of {}, {} threads", times(&tiles.tile), tiles.threads_per_block())
            }
            Schedule::Persistent(persistent) => format!(
                "persistent, cache {}, {:.1} % on the chip, {} blocks of {} threads, {} + {} of {} planes in registers + shared memory",
                self.cache,
                100.0 * self.cached_share(),
                persistent.blocks,
                persistent.threads_per_block(),
                persistent.planes_registers,
                persistent.planes_shared,
                persistent.planes[1],
            ),
            Schedule::Overlapped(blocks) => format!(
                "streaming, {} steps a pass, {} windows of {}, {} threads × {} cells",
                blocks.configuration.depth,
                times(&blocks.blocks),
                times(&blocks.window()),
                blocks.threads_per_block(),
                times(&blocks.configuration.cells),
            ),
            Schedule::PortableStreaming(planes) => format!(
                "streaming, {} steps a pass, {} windows of {} in {} shares, {} threads × {} cells of a plane",
                planes.configuration.depth,
                times(&planes.tiles),
                times(&planes.window()),
                planes.configuration.shares,
                planes.threads_per_block(),
                times(&planes.configuration.cells),
            ),
            Schedule::WarpStreaming(stream) => format!(
                "streaming, {} steps a pass, {} windows of {} in {} shares, {} warps × {} a multiprocessor",
                stream.depth,
                times(&stream.tiles),
                times(&stream.window()),
                stream.shares,
                stream.warps,
                stream.blocks_per_multiprocessor,
            ),
        }
    }

    /// The plan as an explanation: what is asked, where the cells stay, what that projects to and what bounds it.
    pub fn explain(&self) -> String {
        let mut text = String::new();
        let line = |text: &mut String, name: &str, value: &str| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name:<14}{value}");
        };
        let t = &self.traffic;
        line(
            &mut text,
            "problem",
            &format!(
                "{} on {} {}, boundary {}, {:.1} MB for all fields together",
                self.program,
                self.shape,
                self.dtype,
                self.boundaries.describe(self.shape.dimensions()),
                t.cells * t.cell_bytes / 1e6,
            ),
        );
        let d = &self.device;
        let mut device = match d.memory_bandwidth {
            rate if rate > 0.0 => format!("{}: {:.0} GB/s", d.name, rate / 1e9),
            _ => format!("{}: the bandwidth of memory was not needed", d.name),
        };
        if d.on_chip_bytes() > 0 && d.registers > 0 {
            let _ = write!(
                device,
                ", {} multiprocessors of {} KiB registers and {} KiB shared memory ({:.1} MB on the chip), {:.0} MB L2",
                d.multiprocessors,
                d.registers / 256,
                d.shared_bytes / 1024,
                d.on_chip_bytes() as f64 / 1e6,
                d.l2_bytes as f64 / 1e6,
            );
        }
        line(&mut text, "device", &device);
        let on_cpu = matches!(self.schedule, Schedule::Cpu(_));
        line(
            &mut text,
            "execution",
            match self.execution {
                Execution::Persistent if on_cpu => "persistent: threads keep their tiles and wait for neighbours alone",
                Execution::Streaming if on_cpu => {
                    "streaming: several steps a pass, the domain passes through the caches"
                }
                _ if on_cpu => "stepwise: a sweep of all threads a stage and step",
                Execution::Persistent => "persistent: the time loop lives in the kernel",
                Execution::Streaming => "streaming: several steps a launch, the domain passes through the chip",
                _ => "stepwise: a launch a stage and step",
            },
        );
        match &self.schedule {
            Schedule::Cpu(rows) => {
                let pinned = if rows.pinned { ", each pinned to a core" } else { "" };
                line(&mut text, "rows", &format!("{} threads{pinned}, chunks of {} cells", rows.threads, rows.chunk));
                if let Some(tiling) = &rows.tiling {
                    explain_wavefront(&mut text, tiling, self.depth, line);
                }
            }
            Schedule::Stepwise(tiles) => line(
                &mut text,
                "tiles",
                &format!(
                    "{} cells by {} threads, {} bytes of shared memory",
                    times(&tiles.tile),
                    times(&tiles.threads),
                    tiles.shared_bytes.iter().max().copied().unwrap_or(0),
                ),
            ),
            Schedule::Persistent(persistent) => self.explain_persistent(&mut text, persistent, line),
            Schedule::Overlapped(blocks) => explain_blocks(&mut text, blocks, line),
            Schedule::PortableStreaming(planes) => explain_planes(&mut text, planes, line),
            Schedule::WarpStreaming(stream) => explain_warp_streaming(&mut text, stream, line),
        }
        let p = self.project(1000);
        line(
            &mut text,
            "projection",
            &format!(
                "{:.2} µs a step, {:.0} GCells/s, bound by {} (memory {:.2}, halo {:.2}, shared {:.2}, arithmetic {:.2} µs)",
                p.seconds * 1e3,
                p.gcells_per_s,
                match p.bound {
                    Bound::Memory => "device memory",
                    Bound::Shared => "shared memory",
                    Bound::Arithmetic => "arithmetic",
                },
                p.memory_seconds * 1e3,
                p.halo_seconds * 1e3,
                p.shared_seconds * 1e3,
                p.arithmetic_seconds * 1e3,
            ),
        );
        line(
            &mut text,
            "moved",
            &format!(
                "{:.2} bytes a cell and step through device memory over 1000 steps ({:.2} by a launch a step)",
                p.memory_bytes / t.cells / 1000.0,
                (t.load_bytes + t.store_bytes) * f64::from(self.depth),
            ),
        );
        for c in &self.compiled {
            line(
                &mut text,
                "compiled",
                &format!("{} for {}: {} registers, {} bytes spilled", c.kernel, c.target, c.registers, c.spill_bytes),
            );
        }
        for note in &self.notes {
            line(&mut text, "note", note);
        }
        text
    }

    fn explain_persistent(&self, text: &mut String, persistent: &Persistent, line: impl Fn(&mut String, &str, &str)) {
        let plane = persistent.plane();
        line(
            text,
            "tiles",
            &format!(
                "{} of {} planes of {}×{} cells, {} blocks of {}×{} threads owning {}×{} cells a plane, {} a multiprocessor",
                times(&persistent.tiles),
                if persistent.planes[0] == persistent.planes[1] {
                    persistent.planes[0].to_string()
                } else {
                    format!("{}–{}", persistent.planes[0], persistent.planes[1])
                },
                plane[0],
                plane[1],
                persistent.blocks,
                persistent.threads[0],
                persistent.threads[1],
                persistent.cells_per_thread[0],
                persistent.cells_per_thread[1],
                persistent.blocks_per_multiprocessor,
            ),
        );
        line(
            text,
            "planes",
            &format!(
                "{} in registers, {} in shared memory, {} in device memory; {} between barriers",
                persistent.planes_registers,
                persistent.planes_shared,
                persistent.planes[1]
                    - (persistent.planes_registers + persistent.planes_shared).min(persistent.planes[1]),
                persistent.chunk,
            ),
        );
        let share = self.cached_share();
        let fits = if share >= 1.0 { "all of it fits" } else { "the rest streams through device memory each step" };
        let total = self.traffic.cells.max(1.0);
        line(
            text,
            "cached",
            &format!(
                "{}: {:.1} % of the domain stays on the chip ({:.1} % in registers, {:.1} % in shared memory); {fits}",
                self.cache,
                100.0 * share,
                100.0 * self.traffic.cached_registers / total,
                100.0 * self.traffic.cached_shared / total,
            ),
        );
        line(
            text,
            "budget",
            &format!(
                "up to {} registers a thread, {} bytes of shared memory a block",
                persistent.registers, persistent.shared_bytes
            ),
        );
        line(
            text,
            "waits",
            match persistent.synchronisation {
                Synchronisation::Neighbours => "each block for the blocks whose tiles touch its own",
                Synchronisation::Grid => "every block for all, once a stage",
            },
        );
    }
}

fn explain_blocks(text: &mut String, blocks: &Overlapped, line: impl Fn(&mut String, &str, &str)) {
    line(
        text,
        "windows",
        &format!(
            "{} of {} cells by {} threads of {} cells in registers, {} bytes of workgroup memory",
            times(&blocks.blocks),
            times(&blocks.window()),
            times(&blocks.configuration.threads),
            times(&blocks.configuration.cells),
            blocks.shared_bytes,
        ),
    );
    let barriers =
        if blocks.configuration.double { "one barrier" } else { "a barrier before and after the new values" };
    line(
        text,
        "depth",
        &format!("{} steps a pass; {barriers} a stage whose cells are exchanged", blocks.configuration.depth),
    );
    let halo = blocks.halo.map(|[low, high]| low + high);
    line(
        text,
        "overlap",
        &format!("{} cells around a tile: {:.0} % of what is computed is kept", times(&halo), 100.0 * blocks.valid),
    );
}

fn explain_planes(text: &mut String, planes: &PortableStreaming, line: impl Fn(&mut String, &str, &str)) {
    line(
        text,
        "windows",
        &format!(
            "{} of {} cells by {} threads of {} cells, the planes of each in {} shares, at a side in {}; {} bytes of \
             workgroup memory",
            times(&planes.tiles),
            times(&planes.window()),
            times(&planes.configuration.threads),
            times(&planes.configuration.cells),
            planes.configuration.shares,
            planes.side_shares,
            planes.shared_bytes,
        ),
    );
    let handover = match planes.configuration.handover {
        Handover::Slots => "two barriers a plane",
        Handover::DoubleSlots => "one barrier a plane",
        Handover::Shuffles => "threads shuffle cells, without barriers",
    };
    line(
        text,
        "depth",
        &format!(
            "{} steps a pass, {} planes behind what arrives; {handover}",
            planes.configuration.depth, planes.behind
        ),
    );
    line(
        text,
        "overlap",
        &format!(
            "{} cells where windows and shares meet: {:.0} % of what is computed is kept (EBISU's V)",
            times(&planes.margin.map(|[low, high]| low + high)),
            100.0 * planes.valid,
        ),
    );
    line(
        text,
        "carried",
        &format!(
            "{} values a thread in registers; planes are loaded {} before they are needed, {} cells at a time",
            planes.carried, planes.configuration.ahead, planes.lanes
        ),
    );
}

fn explain_wavefront(text: &mut String, tiling: &Tiling, depth: u32, line: impl Fn(&mut String, &str, &str)) {
    line(text, "tiles", &format!("{} of {} cells", times(&tiling.tiles), times(&tiling.tile)));
    line(
        text,
        "depth",
        &format!(
            "{depth} steps a pass; a thread keeps {:.0} kB of planes between them in its caches",
            tiling.ring_bytes as f64 / 1e3
        ),
    );
    line(
        text,
        "overlap",
        &format!("{:.1} % of the cells are computed once more where tiles meet", 100.0 * (tiling.overlap - 1.0)),
    );
}

fn explain_warp_streaming(text: &mut String, stream: &WarpStreaming, line: impl Fn(&mut String, &str, &str)) {
    let window = stream.window();
    line(
        text,
        "windows",
        &format!(
            "{} of {}×{} cells, their planes in {} equal shares; {} warps owning {}×{} cells a thread, {} blocks a \
             multiprocessor",
            times(&stream.tiles),
            window[0],
            window[1],
            stream.shares,
            stream.warps,
            stream.cells_per_thread[0],
            stream.cells_per_thread[1],
            stream.blocks_per_multiprocessor,
        ),
    );
    line(
        text,
        "depth",
        &format!(
            "{} steps a pass ({:.1} would take device memory out of the way, EBISU eq. 17); stages {}",
            stream.depth,
            stream.sufficient_depth,
            if stream.lag { "a plane apart" } else { "one right after the other" },
        ),
    );
    line(
        text,
        "overlap",
        &format!(
            "{} cells where windows meet: {:.0} % of what is computed is kept (EBISU's V)",
            times(&stream.margin.map(|margin| 2 * margin)),
            100.0 * stream.valid,
        ),
    );
    line(
        text,
        "carried",
        &format!(
            "{} values a cell and stage in registers, {} in shared memory; {} planes of input in shared memory",
            stream.carried_registers, stream.carried_shared, stream.ahead
        ),
    );
    line(
        text,
        "budget",
        &format!(
            "up to {} registers a thread, {} bytes of shared memory a block",
            stream.registers, stream.shared_bytes
        ),
    );
}

fn times(extents: &[usize]) -> String {
    extents.iter().map(usize::to_string).collect::<Vec<_>>().join("×")
}
