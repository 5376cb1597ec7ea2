use crate::report::report;
use std::sync::Arc;

use abide_core::plan::fused::{COPIES_AHEAD, Group, Load, Partition, Ring, Source};
use abide_core::plan::{Carrier, Chain};
use abide_core::program::{Boxes, Centring, Definition, Solve, SolveMethod, Storage, outlasts};
use abide_core::reduction::Reduction;
use abide_core::{DType, DeviceSpec, Execution, Fuse, Options, Plan, Problem, Program, Shape, catalogue};

use super::geometry::fused;
use super::partition::{self, Passing, greedy, partition_of, worthwhile};
use super::search::searched;
use crate::report::{Report, Row};
use abide_core::domain::Boundary;

fn clover(extents: &[usize]) -> (Problem, Boxes) {
    let program = if extents.len() == 2 { catalogue::cloverleaf() } else { catalogue::cloverleaf_3d() };
    let shape = Shape::new(extents).unwrap();
    let problem = Problem::new(Arc::new(program.unwrap()), shape, DType::F64).unwrap();
    let boxes = Boxes::of(&problem).unwrap();
    (problem, boxes)
}

/// The stages from the pressure to the time step, and what outlasts them.
fn time_step(problem: &Problem, boxes: &Boxes) -> ([usize; 3], Vec<bool>) {
    let number = |name: &str| problem.program.stages().iter().position(|stage| stage.name == name).unwrap();
    let stages = ["ideal gas", "viscosity", "dt_stable"].map(number);
    (stages, outlasts(problem, boxes, &stages))
}

/// The loops of a step of CloverLeaf become a few kernels, whose order keeps every precedence; what nobody reads is
/// not computed, and copies stay names.
#[test]
fn cloverleaf_becomes_a_few_kernels() {
    let device = DeviceSpec::preset("h200").unwrap();
    for (extents, most) in [(&[3840, 3840][..], 15), (&[7680, 7680], 14), (&[256, 256, 256], 30)] {
        let (problem, boxes) = clover(extents);
        let partition = greedy(&problem, &boxes, &device, Passing::Allowed);
        let groups = partition.groups();
        groups.check(&problem, &boxes).unwrap();
        let storage = Storage::of_groups(&problem, &boxes, &groups).unwrap();
        for step in &storage.steps {
            assert!(step.launches.len() <= most, "{extents:?}: {} launches", step.launches.len());
        }
        let named = |group: &Group, name: &str| {
            group.stages.iter().any(|&stage| problem.program.stages()[stage].name == name)
        };
        assert!(!partition.all().any(|group| named(group, "revert")));
        assert!(partition.all().any(|group| named(group, "reset cells") && group.stages.len() == 1));
    }
}

/// A member computes as far beyond a tile as those read that need it, and follows when they are there.
#[test]
fn members_follow_what_they_read() {
    let (problem, boxes) = clover(&[40, 70]);
    let (stages, outlasts) = time_step(&problem, &boxes);
    let group = fused(&problem, &boxes, &stages, &outlasts, [1, 16, 32], 64, false).unwrap();
    let members: Vec<_> = group.members.iter().map(|member| (member.lag, member.beyond)).collect();
    // The viscosity taps the pressure of the four cells around; the time step takes the rest at the cell itself.
    assert_eq!(members, [(0, [[0; 2], [1; 2], [1; 2]]), (2, [[0; 2]; 3]), (2, [[0; 2]; 3])]);
    let pressure = problem.program.field("pressure").unwrap();
    // Three rows are read while the next one is made.
    assert_eq!(group.rings[0], Ring { name: pressure, rows: 4 });
    assert!(group.members[2].sources.iter().any(|(_, source)| *source == Source::Passed(1, 0)));
    assert_eq!((group.blocks, group.first), ([1, 3, 3], [0; 3]));
    assert!(fused(&problem, &boxes, &stages, &outlasts, [1, 12, 32], 64, false).is_err(), "no whole leaves");
}

/// A group that copies what it reads has a ring for each of these names, long enough for the rows of a turn and those on their
/// way; rows are whole words of 16 bytes, and begin where these do.
#[test]
fn groups_copy_the_rows_that_they_read() {
    let (problem, boxes) = clover(&[40, 70]);
    let (stages, outlasts) = time_step(&problem, &boxes);
    let group = fused(&problem, &boxes, &stages, &outlasts, [1, 16, 32], 64, true).unwrap();
    let name = |load: &Load| problem.program.names()[load.name].clone();
    let mut names: Vec<String> = group.loads.iter().map(name).collect();
    names.sort_unstable();
    // Pressure, sound speed and viscosity are made.
    assert_eq!(names, ["density0", "energy0", "xvel0", "yvel0"]);
    for load in &group.loads {
        assert_eq!(load.rows, load.window + COPIES_AHEAD + 1, "{load:?}");
        // Energy is read by the first stage alone, density by stages two rows apart, velocities by both of these on two rows.
        let [top, window] = match name(load).as_str() {
            "energy0" => [0, 0],
            "density0" => [0, 2],
            _ => [-1, 1],
        };
        assert_eq!((load.top, load.window as isize), (top, window), "{}", name(load));
    }
    // The viscosity's neighbours, rounded up to two values of f64; of the velocities one column behind the tile.
    assert_eq!((group.copied[2], group.wide()[2] % 2, group.first[2] % 2), ([2, 2], 0, 0));
    assert!(group.shared_bytes(&problem) > group.values(&problem) * 8);
}

/// Devices that cannot copy while they compute have groups that read where values lie, and so has one persistent kernel.
#[test]
fn groups_copy_where_devices_can() {
    let (problem, boxes) = clover(&[256, 256, 256]);
    let copies = |device: &str, passing: Passing| {
        let partition = greedy(&problem, &boxes, &DeviceSpec::preset(device).unwrap(), passing);
        let fused: Vec<bool> = partition
            .all()
            .filter_map(|group| group.fused.as_ref())
            .map(|fused| !fused.loads.is_empty())
            .collect();
        assert!(!fused.is_empty(), "{device}");
        fused.into_iter().any(|copies| copies)
    };
    assert!(copies("h200", Passing::Allowed) && copies("a100", Passing::Allowed));
    assert!(!copies("v100", Passing::Allowed) && !copies("h200", Passing::Refused));
}

/// CloverLeaf's groups were measured to take 0.79 of the time of its stages by themselves in three dimensions (H200, 256³) and 0.63 in
/// two (3840²).
#[test]
fn groups_are_chosen_unasked_where_they_save_a_tenth() {
    for extents in [&[256, 256, 256][..], &[3840, 3840]] {
        let (problem, boxes) = clover(extents);
        let device = DeviceSpec::preset("h200").unwrap();
        let partition = worthwhile(&problem, &boxes, &device, Passing::Allowed);
        let several = partition.all().filter(|group| group.stages.len() > 3).count();
        assert!(several > 5, "{several} groups at {extents:?}");
    }
}

/// The fluxes of all three momenta and their updates pay as one kernel, though no pair of these does.
#[test]
fn groups_that_pay_with_a_third_stage_are_found() {
    let (problem, boxes) = clover(&[256, 256, 256]);
    let partition = greedy(&problem, &boxes, &DeviceSpec::preset("h200").unwrap(), Passing::Allowed);
    let fluxes = |group: &&Group| {
        let named = |stage: &&usize| problem.program.stages()[**stage].name == "momentum flux";
        group.stages.iter().filter(named).count() == 3
    };
    // Three sweeps in each of two steps.
    assert_eq!(partition.all().filter(fluxes).count(), 6);
}

/// Where a temporary is stored beyond a periodic domain, what it is made of is computed there too; and what taps a
/// temporary that lies in memory is not computed farther beyond.
#[test]
fn what_is_stored_beyond_a_periodic_domain_has_its_sources() {
    let mut p = Definition::new("beyond", 1);
    p.boundary(Boundary::Periodic).field("u", Centring::CELL).field("v", Centring::CELL);
    p.temporary("t", Centring::CELL).temporary("s", Centring::CELL);
    p.step()
        .stage("u", |s| s.set("u", s.field("u").at([1]) * 0.5))
        .stage("t", |s| s.set("t", s.field("u").at([-1]) + s.field("u").at([1])))
        .stage("v", |s| s.set("v", s.field("t").at([-1])))
        .stage("s", |s| s.set("s", s.field("v").here()))
        .stage("u again", |s| s.set("u", s.field("s").here() + s.field("v").here()))
        .stage("v again", |s| s.set("v", s.field("u").at([1])));
    let program = Arc::new(p.build().unwrap());
    let problem = Problem::new(program, Shape::new(&[40]).unwrap(), DType::F64).unwrap();
    let boxes = Boxes::of(&problem).unwrap();
    let group = |stages: &[usize]| {
        fused(&problem, &boxes, stages, &outlasts(&problem, &boxes, stages), [1, 1, 16], 64, false)
    };
    let made = group(&[0, 1]).unwrap();
    assert_eq!((made.first[2], made.wraps[2]), (-1, true));
    // The first index is -1, which needs -2.
    assert!(made.members[0].beyond[2][0] >= 2, "{:?}", made.members[0].beyond);
    assert!(group(&[4, 5]).is_err() && group(&[3, 4, 5]).is_ok());
}

/// A group names no more buffers than a kernel of the device can.
#[test]
fn groups_fit_the_buffers_that_a_kernel_names() {
    let (problem, boxes) = clover(&[3840, 3840]);
    let most_of = |kernel_buffers: Option<usize>| {
        let device = DeviceSpec { kernel_buffers, ..DeviceSpec::preset("h200").unwrap() };
        let partition = greedy(&problem, &boxes, &device, Passing::Allowed);
        let fused = partition.all().filter_map(|group| group.fused.as_ref());
        fused.map(|fused| fused.buffers(&problem, &boxes)).max().unwrap_or(0)
    };
    let (free, bound) = (most_of(None), most_of(Some(8)));
    assert!(free > 8 && bound > 0 && bound <= 8, "{free} {bound}");
}

/// Unasked, groups come where they save much and on devices like those that were measured alone.
#[test]
fn groups_come_unasked_where_they_are_worthwhile() {
    let device = DeviceSpec::preset("h200").unwrap();
    let launches = |extents: &[usize], device: &DeviceSpec| {
        let (problem, boxes) = clover(extents);
        worthwhile(&problem, &boxes, device, Passing::Allowed)
            .groups()
            .steps
            .iter()
            .map(Vec::len)
            .sum::<usize>()
    };
    let alone = launches(&[96, 96], &device);
    assert!(launches(&[3840, 3840], &device) < alone / 2);
    let stages = clover(&[3840, 3840]).0.program.stages().len();
    assert_eq!(launches(&[3840, 3840], &DeviceSpec { registers: None, ..device }), stages);
}

/// The search's groups keep every precedence too, and are estimated to take no longer than the greedy ones.
#[test]
fn a_search_is_no_worse_than_greed() {
    let device = DeviceSpec::preset("h200").unwrap();
    let (problem, boxes) = clover(&[3840, 3840]);
    let seconds = |partition: &Partition| -> f64 {
        partition.groups().check(&problem, &boxes).unwrap();
        let mut costs = partition::Costs::new(&problem, &boxes, &device, Passing::Allowed);
        partition.all().filter_map(|group| costs.of(&group.stages)).sum()
    };
    let begun = std::time::Instant::now();
    let found = searched(&problem, &boxes, &device, &[], Passing::Allowed).unwrap();
    println!("{:?}", begun.elapsed());
    let (found, greedy) = (seconds(&found), seconds(&greedy(&problem, &boxes, &device, Passing::Allowed)));
    println!("{found} {greedy}");
    assert!(found <= greedy * 1.0001, "{found} s, {greedy} s by greed");
}

/// A search goes on without the groups that it may not have, and finds others.
#[test]
fn a_search_goes_on_without_refused_groups() {
    let device = DeviceSpec::preset("h200").unwrap();
    let (problem, boxes) = clover(&[3840, 3840]);
    let several = |partition: &Partition| -> Vec<Vec<usize>> {
        partition.all().map(|group| group.stages.clone()).filter(|stages| stages.len() > 1).collect()
    };
    let first = searched(&problem, &boxes, &device, &[], Passing::Allowed).unwrap();
    let refused = several(&first);
    assert!(!refused.is_empty());
    let places: Vec<_> = refused.iter().map(|group| first.places(&problem.program, group)).collect();
    let second = searched(&problem, &boxes, &device, &places, Passing::Allowed).unwrap();
    second.groups().check(&problem, &boxes).unwrap();
    assert!(!several(&second).is_empty());
    assert!(several(&second).iter().all(|group| !refused.contains(group)));
}

/// Groups are made again with the same kernels; what is no partition of the program, in whatever way, gives none.
#[test]
fn groups_are_made_again_and_others_refused() {
    let device = DeviceSpec::preset("h200").unwrap();
    let (problem, boxes) = clover(&[3840, 3840]);
    let partition = greedy(&problem, &boxes, &device, Passing::Allowed);
    let groups = partition.groups();
    assert_eq!(partition_of(&problem, &boxes, &device, &groups, Passing::Allowed), Some(partition));
    let several = groups.steps[0].iter().position(|group| group.len() > 1).unwrap();
    type Spoil<'a> = &'a dyn Fn(&mut Vec<Vec<Vec<usize>>>);
    let spoilt: [Spoil<'_>; 8] = [
        &|steps| steps.clear(),
        &|steps| steps[0].clear(),
        &|steps| steps[0].push(Vec::new()),
        &|steps| steps[0].reverse(),
        &|steps| steps[0][several].reverse(),
        &|steps| steps[0][several].push(usize::MAX),
        &|steps| drop(steps[0].remove(several)),
        // All stages at once, reductions and scalars among them.
        &|steps| steps[0] = vec![problem.program.steps()[0].clone().collect()],
    ];
    for (which, spoil) in spoilt.iter().enumerate() {
        let mut other = groups.clone();
        spoil(&mut other.steps);
        assert_eq!(partition_of(&problem, &boxes, &device, &other, Passing::Allowed), None, "{which}");
    }
    let small = DeviceSpec { shared_bytes_per_block: 64, ..device };
    assert_eq!(partition_of(&problem, &boxes, &small, &groups, Passing::Allowed), None);
}

/// Bytes of groups are those of a count by hand; a step's scalars cost a launch.
#[test]
fn a_report_counts_arrays() {
    let device = DeviceSpec::preset("h200").unwrap();
    let (problem, _) = clover(&[3840, 3840]);
    let number = |name: &str| problem.program.stages().iter().position(|stage| stage.name == name).unwrap();
    let plan = |fuse| {
        let options = abide_core::Options { fuse, ..Default::default() };
        crate::plan(&problem, &device, &options).unwrap()
    };
    let off = plan(abide_core::Fuse::Off);
    let mut reported = report(&problem, &off, &[]).unwrap().unwrap();
    let row = |reported: &Report, name: &str| {
        reported.groups.iter().find(|row| row.stages == [number(name)]).cloned().unwrap()
    };
    // Density and energy in, pressure and the speed of sound out, each of 3840² values.
    let gas = row(&reported, "ideal gas");
    assert_eq!((gas.bytes, gas.bytes_alone), (4.0 * 8.0 * 3840.0 * 3840.0, gas.bytes));
    assert_eq!(gas.projected, gas.projected_alone);
    let scalar = row(&reported, "dt");
    assert_eq!(scalar.bytes, 0.0);
    assert!(scalar.projected < 1.01 * device.launch_seconds, "{scalar:?}");
    assert!(!reported.has_groups() && reported.error().is_none());
    // Twice the projected time is an error of one half, wherever something was measured.
    let times = |reported: &Report, factor: f64| -> Vec<abide_core::backend::LaunchTime> {
        let of = |row: &Row| abide_core::backend::LaunchTime {
            stages: row.stages.clone(),
            seconds: factor * row.projected,
        };
        reported.groups.iter().map(of).collect()
    };
    let alone = times(&reported, 2.0);
    reported.set_times(&alone, &alone);
    let error = reported.error().unwrap();
    assert!((error.median - 0.5).abs() < 1e-12 && (error.worst - 0.5).abs() < 1e-12, "{error:?}");
    // Of groups that take ten times what is projected, all are slower, and FE is a share of bytes over one of time.
    let mut reported = report(&problem, &plan(abide_core::Fuse::Greedy), &[]).unwrap().unwrap();
    let together = times(&reported, 10.0);
    reported.set_times(&together, &alone);
    let several: Vec<usize> =
        (0..reported.groups.len()).filter(|&place| reported.groups[place].is_group()).collect();
    assert!(!several.is_empty() && reported.slower() == several);
    let (mut bytes, mut seconds) = ([0.0; 2], [0.0; 2]);
    for row in several.iter().map(|&place| &reported.groups[place]) {
        assert!(row.bytes < row.bytes_alone && row.projected < row.projected_alone);
        let measured_alone = row.measured_alone.unwrap();
        assert!((measured_alone - 2.0 * row.projected_alone).abs() < 1e-9 * measured_alone, "{row:?}");
        bytes = [bytes[0] + row.bytes, bytes[1] + row.bytes_alone];
        seconds = [seconds[0] + row.measured.unwrap(), seconds[1] + measured_alone];
    }
    let expected = bytes[0] / bytes[1] * seconds[1] / seconds[0];
    assert!((reported.efficiency().unwrap() - expected).abs() < 1e-9, "{expected}");
}

/// A pressure whose greatest value the second of two results needs, so that the first alone can go on beside it: as the
/// textbook has it both are one loop. Of the last stage's results nobody reads the second.
fn two_results(extents: &[usize]) -> Problem {
    let mut p = Definition::new("two results", 2);
    p.boundary(Boundary::Mirror);
    for field in ["u", "x", "y", "q"] {
        p.field(field, Centring::CELL);
    }
    p.temporary("p", Centring::CELL).temporary("lost", Centring::CELL).scalar("most", None, "of p");
    let mut step = p.step();
    step.stage("pressure", |s| s.set("p", s.field("u").at([0, 1]) * s.field("u").at([1, 0])));
    step.reduce("most", Reduction::Max, Centring::CELL, |s| s.field("p").here());
    step.stage("both", |s| {
        s.set("x", s.field("x").here() * 0.5 + s.field("p").here());
        s.set("y", s.field("y").here() * s.param("most") + s.field("q").here());
    });
    step.stage("last", |s| {
        s.set("u", s.field("y").here() * 0.25);
        s.set("lost", s.field("q").at([1, 1]) + s.field("x").here());
    });
    Problem::new(Arc::new(p.build().unwrap()), Shape::new(extents).unwrap(), DType::F64).unwrap()
}

/// A stage runs in parts where that is estimated to pay: one result goes beside what makes its pressure, which then never
/// reaches memory, and the other waits for the scalar. What nobody reads is not computed.
#[test]
fn a_search_splits_stages_where_that_pays() {
    let device = DeviceSpec::preset("h200").unwrap();
    let problem = two_results(&[4096, 4096]);
    let boxes = Boxes::of(&problem).unwrap();
    let partition = searched(&problem, &boxes, &device, &[], Passing::Allowed).unwrap();
    let split = partition.split_problem(&problem).unwrap();
    let named = |stages: &[usize]| -> Vec<&str> {
        stages.iter().map(|&stage| &*split.program.stages()[stage].name).collect()
    };
    let groups: Vec<Vec<&str>> = partition.all().map(|group| named(&group.stages)).collect();
    assert_eq!(groups, [&["pressure", "most", "both (x)"][..], &["both (y)", "last (u)"]]);
    partition.groups().check(&split, &Boxes::of(&split).unwrap()).unwrap();
    // By hand: u and x, then y and q are read; x, y and u are written.
    let options = abide_core::Options { fuse: abide_core::Fuse::Search, ..Default::default() };
    let plan = crate::plan(&problem, &device, &options).unwrap();
    let bytes = (plan.traffic.load_bytes, plan.traffic.store_bytes);
    assert!((bytes.0 - 32.0).abs() < 1e-9 && (bytes.1 - 24.0).abs() < 1e-9, "{bytes:?}");
    let reported = plan.explain();
    assert!(reported.contains("stage 2 of the program runs in parts, as stages 2 to 3"), "{reported}");
    let reported = report(&problem, &plan, &[]).unwrap().unwrap().to_string();
    assert!(reported.contains("pressure, most, both (x)"), "{reported}");
    // The groups are made again from what is kept of them, and not for a program of other stages.
    let (splits, groups) = (&partition.splits, partition.groups());
    let again = crate::stepwise::plan_grouped(&problem, &device, &options, splits, &groups).unwrap();
    assert_eq!(again.stepwise().unwrap().partition, partition);
    assert!(crate::stepwise::plan_grouped(&split, &device, &options, splits, &groups).is_none());
    // A group that is refused is refused of parts too.
    let refused = partition.places(&problem.program, &groups.steps[0][0]);
    assert_eq!(refused, [[0, 0], [1, 0], [2, 0]]);
    let other =
        searched(&problem, &boxes, &device, std::slice::from_ref(&refused), Passing::Allowed).unwrap();
    assert!(other.all().all(|group| other.places(&problem.program, &group.stages) != refused));
}

/// Where parts save nothing, stages stay whole: a launch more for a small domain, or copies that are names anyway.
#[test]
fn stages_stay_whole_where_parts_do_not_pay() {
    let device = DeviceSpec::preset("h200").unwrap();
    let mut p = Definition::new("apart", 2);
    for field in ["u", "v"] {
        p.field(field, Centring::CELL);
    }
    p.step().stage("both", |s| {
        s.set("u", s.field("u").here() * 0.5);
        s.set("v", s.field("v").here() * 0.25);
    });
    p.step().stage("again", |s| s.set("u", s.field("v").here() + s.field("u").here()));
    let problem =
        Problem::new(Arc::new(p.build().unwrap()), Shape::new(&[64, 64]).unwrap(), DType::F64).unwrap();
    let boxes = Boxes::of(&problem).unwrap();
    assert_eq!(problem.splits(&boxes).len(), 1);
    assert_eq!(searched(&problem, &boxes, &device, &[], Passing::Allowed).unwrap().splits, []);
    // Of CloverLeaf only copies fall apart.
    let (clover, boxes) = clover(&[384, 384]);
    assert_eq!(clover.splits(&boxes), []);
}

/// A step of a projection: what drives a pressure, sweeps of it, and what it drives.
fn sweeps(count: usize, extents: &[usize], dtype: DType) -> Problem {
    let mut p = Definition::new("projection", 2);
    p.boundary(Boundary::Mirror)
        .field("u", Centring::CELL)
        .field("p", Centring::CELL)
        .temporary("rhs", Centring::CELL)
        .parameter("k", 0.25, "of the sweeps");
    let mut step = p.step();
    step.stage("drive", |s| s.set("rhs", s.field("u").at([0, 1]) - s.field("u").at([0, -1])));
    for _ in 0..count {
        step.stage("sweep", |s| {
            let p = s.field("p");
            let around = p.at([-1, 0]) + p.at([0, -1]) + p.at([0, 1]) + p.at([1, 0]);
            s.set("p", s.param("k") * (around - s.field("rhs").here()));
        });
    }
    step.stage("correct", |s| {
        let p = s.field("p");
        s.set("u", s.field("u").here() - 0.5 * (p.at([0, 1]) - p.at([0, -1])));
    });
    Problem::new(Arc::new(p.build().unwrap()), Shape::new(extents).unwrap(), dtype).unwrap()
}

/// Sweeps of one formula are levels of a few passes, which take a fraction of their launches.
#[test]
fn sweeps_of_one_formula_become_passes() {
    let device = DeviceSpec::preset("h200").unwrap();
    for (extents, dtype) in [([4096, 4096], DType::F32), ([2048, 2048], DType::F64)] {
        let problem = sweeps(20, &extents, dtype);
        let boxes = Boxes::of(&problem).unwrap();
        let of = |passing| {
            let partition = worthwhile(&problem, &boxes, &device, passing);
            let mut costs = partition::Costs::new(&problem, &boxes, &device, passing);
            (costs.sum(&partition.groups()), partition)
        };
        let ((with, partition), (without, others)) = (of(Passing::Allowed), of(Passing::Refused));
        assert!(with < 0.6 * without, "{extents:?}: {with:e} and {without:e}");
        assert!(others.all().all(|group| group.pass.is_none()));
        let depths: Vec<usize> = partition.all().filter_map(|group| Some(group.pass?.depth)).collect();
        assert!(depths.iter().sum::<usize>() == 20 && depths.len() < 6, "{depths:?}");
        assert!(depths.iter().max().unwrap() - depths.iter().min().unwrap() < 2, "{depths:?}");
        // What a search finds is no worse, and what was found before is found again.
        let searched = searched(&problem, &boxes, &device, &[], Passing::Allowed).unwrap();
        let mut costs = partition::Costs::new(&problem, &boxes, &device, Passing::Allowed);
        assert!(costs.sum(&searched.groups()) <= 1.001 * with);
        let again = partition_of(&problem, &boxes, &device, &partition.groups(), Passing::Allowed);
        assert_eq!(again, Some(partition));
    }
}

/// Whole plans have the estimate of their passes, say what they are, and one persistent kernel has none.
#[test]
fn plans_have_passes_where_they_are_launches() {
    let (device, problem) = (DeviceSpec::preset("h200").unwrap(), sweeps(12, &[4096, 4096], DType::F32));
    let of = |options: Options| crate::plan(&problem, &device, &options).unwrap();
    let [own, alone] = [Fuse::Greedy, Fuse::Off].map(|fuse| of(Options { fuse, ..Options::default() }));
    assert!(own.estimated_seconds < 0.5 * alone.estimated_seconds, "{}", own.explain());
    assert!(own.explain().contains("repeat one formula"), "{}", own.explain());
    let has_passes = |plan: &Plan| plan.stages().unwrap().partition.all().any(|group| group.pass.is_some());
    assert!(has_passes(&own) && !has_passes(&alone));
    let persistent =
        of(Options { execution: Execution::Persistent, fuse: Fuse::Greedy, ..Options::default() });
    assert!(!has_passes(&persistent));
    let report = report(&problem, &own, &[]).unwrap().unwrap();
    let pass = report.groups.iter().find(|row| row.stages.len() > 1).unwrap();
    assert!(pass.projected < 0.4 * pass.projected_alone, "{pass:?}");
}

/// Poisson's equation by conjugate gradients with multigrid, from zeros.
fn poisson(dimensions: usize, boundary: Boundary) -> Program {
    let mut p = Definition::new("poisson", dimensions);
    p.boundary(boundary).field("u", Centring::CELL).field("f", Centring::CELL);
    let mut step = p.step();
    step.stage("move", |s| {
        let f = s.field("f");
        s.set("f", 0.9 * f.along(dimensions - 1, 1) + 0.1 * f.along(0, -1));
    });
    step.stage("zero", |s| s.set("u", 0.0 * s.field("u").here()));
    let how = Solve { method: SolveMethod::Multigrid, null_space: true, ..Solve::default() };
    step.solve("u", &how, &|s| s.field("u").laplacian(), &|s| s.field("f").here());
    p.build().unwrap()
}

/// However many turns loops have, their fields come back to few assignments of buffers.
#[test]
fn loops_have_few_assignments_of_buffers() {
    let device = DeviceSpec::preset("h200").unwrap();
    let programs: [(Program, &[&[usize]]); 4] = [
        (catalogue::navier_stokes(2).unwrap(), &[&[67, 53], &[128, 128]]),
        (catalogue::navier_stokes(3).unwrap(), &[&[40, 17, 29]]),
        (poisson(3, Boundary::Periodic), &[&[17, 40, 31], &[64, 64, 64], &[256, 256, 256]]),
        (poisson(3, Boundary::Mirror), &[&[33, 20, 35]]),
    ];
    for (program, domains) in programs {
        let program = Arc::new(program);
        for (extents, dtype) in domains.iter().flat_map(|own| [(own, DType::F32), (own, DType::F64)]) {
            let shape = Shape::new(extents).unwrap();
            let problem = Problem::new(program.clone(), shape, dtype).unwrap();
            let plan = crate::plan(&problem, &device, &Options::default()).unwrap();
            let partition = &plan.stages().unwrap().partition;
            let split = partition.split_problem(&problem).unwrap();
            let storage =
                Storage::of_groups(&split, &Boxes::of(&split).unwrap(), &partition.groups()).unwrap();
            println!("{} {extents:?} {dtype}: {}", program.name(), storage.steps.len());
            assert!(storage.steps.len() <= 32, "{extents:?} {dtype}: {}", storage.steps.len());
        }
    }
}

/// Stages of coarse grids are one launch, which a report shows as one; a slab has none, because its reductions are joined outside.
#[test]
fn stages_of_few_values_are_chained() {
    let device = DeviceSpec::preset("h200").unwrap();
    let program = Arc::new(catalogue::navier_stokes(2).unwrap());
    let problem = Problem::new(program, Shape::new(&[128, 128]).unwrap(), DType::F64).unwrap();
    let plan_of = |options: &Options, device: &DeviceSpec| crate::plan(&problem, device, options).unwrap();
    let plan = plan_of(&Options::default(), &device);
    let partition = &plan.stages().unwrap().partition;
    let blocks = |chain: &Chain| match chain.by {
        Carrier::Blocks { blocks, .. } => Some(blocks),
        Carrier::Reduction => None,
    };
    let longest = partition.chains.iter().max_by_key(|chain| chain.groups.len()).unwrap();
    assert!(longest.groups.len() > 30 && blocks(longest) == Some(8), "{longest:?}");
    assert!(partition.chains.iter().any(|chain| chain.by == Carrier::Reduction));
    let rows = report(&problem, &plan, &[]).unwrap().unwrap().groups;
    let row = rows.iter().find(|row| row.stages.len() == longest.groups.len()).unwrap();
    assert!(row.projected > 5e-6 && row.projected < 40e-6, "{row:?}");
    let alone = plan_of(&Options { fuse: Fuse::Off, ..Options::default() }, &device);
    assert!(plan.estimated_seconds < 0.6 * alone.estimated_seconds, "{}", plan.estimated_seconds);
    assert!(plan.explain().contains("go over few values"), "{}", plan.explain());
    // An A100 has no clusters.
    let other = plan_of(&Options::default(), &DeviceSpec::preset("a100").unwrap());
    assert!(other.stages().unwrap().partition.chains.iter().filter_map(blocks).all(|count| count == 1));
    for options in [
        Options { slab: true, ..Options::default() },
        Options { fuse: Fuse::Off, ..Options::default() },
        Options { fuse: Fuse::Greedy, ..Options::default() },
    ] {
        assert!(plan_of(&options, &device).stages().unwrap().partition.chains.is_empty(), "{options:?}");
    }
}
