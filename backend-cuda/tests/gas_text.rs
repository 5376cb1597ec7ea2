//! Properties of real-gas mixtures, compiled for CUDA with no device.

use crate::common;

use std::sync::Arc;
use std::time::Instant;

use abide_core::plan::{Execution, Jam, LoopRows, Lowering, Options, Placement};
use abide_core::program::{Centring, Definition};
use abide_core::{DType, DeviceSpec, Problem, Shape};
use abide_cuda::{Nvrtc, report, target};
use abide_gas::{Flow, Interactions, Mixture, Property, States, Sums, Table};
use abide_planner::plan;

use common::present;

/// Returns the six properties of the first species of the built-in table at many points.
fn problem(count: usize, is_interacting: bool, sums: Sums) -> Problem {
    let table = Table::builtin().unwrap();
    let names: Vec<&str> = table.species().iter().map(|species| &*species.name).collect();
    let pairs = (0..names.len()).flat_map(|j| (0..j).map(move |i| (i, j)));
    let pairs = pairs.map(|(i, j)| (names[i].to_owned(), names[j].to_owned(), 1e-3 * (1 + i + j) as f64));
    let interactions = Interactions::new(&table, pairs).unwrap();
    let gas = Mixture::of(&table, &names[..count]).unwrap().fewest_operations();
    let gas = if is_interacting { gas.interactions(&interactions) } else { gas };
    let six = Property::named(&["rho", "h", "cp", "c", "mu", "lambda"]).unwrap();
    let program = States { sums, ..States::default() }.program(&gas, &six).unwrap();
    Problem::new(Arc::new(program), Shape::new(&[1 << 20]).unwrap(), DType::F64).unwrap()
}

/// The formulas compile in seconds, of 53 species with interactions of all pairs too; a thread holds those of ten species
/// in its registers, and as loops those of all.
#[test]
fn properties_compile_in_seconds() {
    let Some(nvrtc) = present("nvrtc", Nvrtc::open()) else { return };
    let device = DeviceSpec::preset("h200").unwrap();
    println!("NVRTC {:?}", nvrtc.version());
    for (count, is_interacting, lowering) in [
        (10, true, Lowering::Straight),
        (53, false, Lowering::Straight),
        (53, true, Lowering::Straight),
        (53, true, Lowering::Loops),
        (53, true, Lowering::Jammed),
    ] {
        let sums = if lowering.keeps_loops() { Sums::Loops } else { Sums::Terms };
        let problem = problem(count, is_interacting, sums);
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

/// A flow of the 53 species of the built-in table whose time step is computed: where loops are kept no kernel spills.
#[test]
fn flows_of_many_species_do_not_spill() {
    let Some(nvrtc) = present("nvrtc", Nvrtc::open()) else { return };
    let table = Table::builtin().unwrap();
    let names: Vec<&str> = table.species().iter().map(|species| &*species.name).collect();
    let device = DeviceSpec::preset(if nvrtc.version().0 >= 13 { "h200" } else { "a100" }).unwrap();
    let gas = Mixture::of(&table, &names).unwrap().fewest_operations();
    let program = Flow::of(&gas, 3).courant(0.3).program().unwrap();
    let problem = Problem::new(Arc::new(program), Shape::new(&[64; 3]).unwrap(), DType::F64).unwrap();
    let plan = plan(&problem, &device, &Options { lowering: Lowering::Loops, ..Options::default() }).unwrap();
    for kernel in report(&problem, &plan, &target(&device)).unwrap() {
        println!("{}: {} registers", kernel.kernel, kernel.registers);
        assert_eq!(kernel.spill_bytes, 0, "{kernel:?}");
    }
}

/// The ways whose registers are reported: a lowering, the points of a thread, the number of outer iterations of double
/// sums that share one inner loop, and where tables lie.
type Way = (Lowering, Jam, LoopRows, Placement);

/// Compiles a way for a device, and prints and returns its registers and spilled bytes.
fn registers(problem: &Problem, device: &DeviceSpec, (lowering, jam, rows, tables): Way) -> [usize; 2] {
    let options =
        Options { execution: Execution::Stepwise, lowering, jam, rows, tables, ..Options::default() };
    let compiled = report(problem, &plan(problem, device, &options).unwrap(), &target(device)).unwrap();
    let found = [compiled[0].registers, compiled[0].spill_bytes];
    println!("| {} | {lowering} {jam:?} {rows:?} {tables} | {}, {} |", target(device), found[0], found[1]);
    found
}

/// The registers and spilled bytes of every number of points and placement of tables (the table of docs/internals/gas.md).
#[test]
#[ignore = "compiles for some minutes"]
fn registers_of_loops() {
    let Some(nvrtc) = present("nvrtc", Nvrtc::open()) else { return };
    let names = if nvrtc.version().0 >= 13 { &["a100", "h200"][..] } else { &["v100", "a100", "h200"] };
    let ways = [
        (Lowering::Loops, Jam::Auto, Placement::Memory),
        (Lowering::Loops, Jam::Auto, Placement::Constant),
        (Lowering::Loops, Jam::Auto, Placement::Shared),
        (Lowering::Jammed, Jam::Points(2), Placement::Memory),
        (Lowering::Jammed, Jam::Points(2), Placement::Constant),
        (Lowering::Jammed, Jam::Points(2), Placement::Shared),
        (Lowering::Jammed, Jam::Points(4), Placement::Constant),
        (Lowering::Jammed, Jam::Points(4), Placement::Shared),
        (Lowering::Jammed, Jam::Points(8), Placement::Shared),
    ];
    for (count, is_interacting) in [(10, true), (10, false), (33, true), (33, false), (53, true), (53, false)]
    {
        let problem = problem(count, is_interacting, Sums::Loops);
        let held = problem.program.stages()[0].looped.as_ref().map_or(0, |looped| looped.most_held(1));
        println!("{count} species, interacting {is_interacting}: {held} values held");
        for device in names.iter().map(|name| DeviceSpec::preset(name).unwrap()) {
            for (lowering, jam, tables) in ways {
                let [_, spills] = registers(&problem, &device, (lowering, jam, LoopRows::Turns(1), tables));
                // What the planner takes for a thread's registers is no less than what the compiler spills of.
                let options = |jam| Options {
                    execution: Execution::Stepwise,
                    lowering,
                    jam,
                    tables,
                    ..Options::default()
                };
                let points = |jam| {
                    plan(&problem, &device, &options(jam)).unwrap().stepwise().map(|tiles| tiles.points)
                };
                assert!(points(jam) != points(Jam::Auto) || spills == 0, "{lowering} {jam:?} {tables}");
            }
        }
    }
}

/// The registers and spilled bytes of double sums whose outer iterations share one inner loop (the table of
/// docs/internals/gas.md).
#[test]
#[ignore = "compiles for some minutes"]
fn registers_of_rows() {
    let Some(nvrtc) = present("nvrtc", Nvrtc::open()) else { return };
    println!("NVRTC {:?}", nvrtc.version());
    let device = DeviceSpec::preset("h200").unwrap();
    // Without interactions, 33 and 53 species have no double sum.
    for (count, is_interacting) in [(10, false), (10, true), (33, true), (53, true)] {
        let problem = problem(count, is_interacting, Sums::Loops);
        let looped = problem.program.stages()[0].looped.as_ref().unwrap();
        for rows in [1, 2, 4, 8, 16] {
            let held = looped.most_held(rows as usize);
            println!("{count} species, interacting {is_interacting}, {rows} rows: {held} values held");
            let rows = LoopRows::Turns(rows);
            for tables in [Placement::Memory, Placement::Constant, Placement::Shared] {
                let [_, spills] = registers(&problem, &device, (Lowering::Loops, Jam::Auto, rows, tables));
                assert_eq!(spills, 0);
            }
            registers(&problem, &device, (Lowering::Jammed, Jam::Points(2), rows, Placement::Shared));
        }
    }
}

/// The registers of the kernel of `abide bench gas --only slides` (the table of docs/internals/gas.md).
#[test]
fn registers_of_slides() {
    let Some(nvrtc) = present("nvrtc", Nvrtc::open()) else { return };
    let names = if nvrtc.version().0 >= 13 { &["a100", "h200"][..] } else { &["v100", "a100", "h200"] };
    println!("NVRTC {:?}", nvrtc.version());
    let mut p = Definition::new("products of components", 1);
    for name in ["ax", "bx", "ay", "by"] {
        p.components(name, 64, Centring::CELL);
    }
    p.components("out", 64 * 64, Centring::CELL);
    p.step().stage("products", |s| {
        let [ax, bx, ay, by] = ["ax", "bx", "ay", "by"].map(|name| s.components(name));
        s.set_components_of("out", 64, |y, x| bx.at(x).mul_add(by.at(y), ax.at(x) * ay.at(y)));
    });
    let program = Arc::new(p.build().unwrap());
    let problem = Problem::new(program, Shape::new(&[960 * 256]).unwrap(), DType::F64).unwrap();
    for device in names.iter().map(|name| DeviceSpec::preset(name).unwrap()) {
        let rows = [1, 2, 4, 8, 16].map(|rows| (Lowering::Loops, Jam::Auto, LoopRows::Turns(rows)));
        let jammed = [(2, 1), (2, 8), (4, 1)]
            .map(|(points, rows)| (Lowering::Jammed, Jam::Points(points), LoopRows::Turns(rows)));
        for (lowering, jam, rows) in rows.into_iter().chain(jammed) {
            let [_, spills] = registers(&problem, &device, (lowering, jam, rows, Placement::Auto));
            assert_eq!(spills, 0, "{lowering} {jam:?} {rows:?}");
        }
    }
}
