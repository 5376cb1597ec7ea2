//! DeviceArguments slabs on a backend's devices, or on one of them, against the definition on the whole domain.

use abide::backend::{Devices, open_on};
use abide::{Boundary, Depth, Execution, Options, Result, Tune};

use crate::trust::subject::{Subject, entry, fields};

/// Planes go from session to session by copies where the backend has them, under every plain boundary kind at the sides
/// of the domain, in rings too, for every schedule of a slab.
pub fn slabs_have_the_bits_of_the_whole(subject: &Subject) -> Result<()> {
    let devices = match subject.name {
        // Three slabs of one GPU exchange as those of three do.
        "cuda" => vec![Devices::These(vec![0; 3]), Devices::All],
        "cpu" => vec![Devices::Count(3)],
        _ => Vec::new(),
    };
    let own = Options { tune: Tune::Off, ..Options::default() };
    let streaming = Options { execution: Execution::Streaming, depth: Depth::Steps(3), ..own };
    let ways = [
        own,
        Options { execution: Execution::Stepwise, depth: Depth::Steps(2), ..own },
        streaming,
        Options { execution: Execution::Persistent, depth: Depth::Steps(4), ..own },
    ];
    let domains: [(&str, &[usize]); 6] = [
        ("2d5pt", &[97, 61]),
        ("2ds25pt", &[103, 41]),
        ("3d7pt", &[61, 19, 23]),
        ("1d3pt", &[301]),
        ("wave", &[77, 45]),
        ("fdtd-tm", &[71, 33]),
    ];
    for devices in &devices {
        let several = Subject::of(subject.name, open_on(subject.name, devices)?);
        for (name, extents) in domains {
            for boundary in [Boundary::Fixed, Boundary::Periodic, Boundary::Mirror, Boundary::Constant(0.25)]
            {
                for dtype in subject.dtypes() {
                    let problem = entry(name, extents, dtype, boundary)?;
                    let able = |options: &&Options| several.opened.backend.plan(&problem, options).is_ok();
                    let ways: Vec<Options> = ways.iter().filter(able).copied().collect();
                    several.compare(&problem, &ways, &fields(&problem, 3)?, 13)?;
                }
            }
        }
    }
    Ok(())
}
