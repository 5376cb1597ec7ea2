//! Properties of real-gas mixtures, compiled for CUDA with no device.

mod common;

use std::sync::Arc;
use std::time::Instant;

use abide_core::plan::{Execution, Lowering, Options, plan};
use abide_core::{DType, DeviceSpec, Problem, Shape};
use abide_cuda::{Nvrtc, report, target};
use abide_gas::{Interactions, Mixture, Property, Sums, Table};

use common::present;

/// The formulas compile in seconds, of 53 species with interactions of all pairs too; a thread holds those of ten species
/// in its registers, and as loops those of all.
#[test]
fn properties_compile_in_seconds() {
    let Some(nvrtc) = present("nvrtc", Nvrtc::open()) else { return };
    let table = Table::builtin().unwrap();
    let names: Vec<&str> = table.species().iter().map(|species| &*species.name).collect();
    let pairs = (0..names.len()).flat_map(|j| (0..j).map(move |i| (i, j)));
    let pairs = pairs.map(|(i, j)| (names[i].to_owned(), names[j].to_owned(), 1e-3 * (1 + i + j) as f64));
    let interactions = Interactions::new(&table, pairs).unwrap();
    let six = Property::named(&["rho", "h", "cp", "c", "mu", "lambda"]).unwrap();
    let device = DeviceSpec::preset("h200").unwrap();
    println!("NVRTC {:?}", nvrtc.version());
    for (count, is_interacting, lowering) in [
        (10, true, Lowering::Straight),
        (53, false, Lowering::Straight),
        (53, true, Lowering::Straight),
        (53, true, Lowering::Loops),
        (53, true, Lowering::Jammed),
    ] {
        let gas = Mixture::of(&table, &names[..count]).unwrap().fewest_operations();
        let gas = if is_interacting { gas.interactions(&interactions) } else { gas };
        let sums = if lowering.keeps_loops() { Sums::Loops } else { Sums::Terms };
        let program = gas.program_of(&six, sums).unwrap();
        let problem = Problem::new(Arc::new(program), Shape::new(&[1 << 20]).unwrap(), DType::F64).unwrap();
        let begun = Instant::now();
        let options = Options { execution: Execution::Stepwise, lowering, ..Options::default() };
        let plan = plan(&problem, &device, &options).unwrap();
        let compiled = report(&problem, &plan, &target(&device)).unwrap();
        let seconds = begun.elapsed().as_secs_f64();
        for kernel in &compiled {
            println!(
                "{count} species, interacting {is_interacting}, {lowering}: {seconds:.1} s, {} registers, {} bytes \
                 spilt",
                kernel.registers, kernel.spill_bytes
            );
            let may_spill = count > 10 && !lowering.keeps_loops();
            assert!(may_spill || kernel.spill_bytes == 0, "{kernel:?}");
        }
        // Ten times what it takes on a machine that does nothing else.
        assert!(seconds < 60.0, "{count} species took {seconds:.0} s to compile");
    }
}
