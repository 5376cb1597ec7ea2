//! Every entry of the catalogue against the reference: all boundaries, both types, awkward extents.

use crate::common;

use abide_core::backend::Backend;
use abide_core::{Boundary, DType, Error, Execution, Options, Tune, catalogue};
use common::{backend, check_plan, is_whole, problem, values};

fn boundaries() -> Vec<String> {
    let mixed = "z=mirror,y-=fixed,y+=constant=0.25,x=periodic".to_owned();
    let plain = Boundary::each(0.5).into_iter().filter(|kind| kind.is_plain());
    plain.map(|kind| kind.to_string()).chain([mixed]).collect()
}

fn extents(dimensions: usize) -> (&'static [usize], [&'static [usize]; 5]) {
    match dimensions {
        1 => (&[2053], [&[1], &[2], &[3], &[7], &[1031]]),
        2 => (&[37, 131], [&[1, 1], &[3, 2], &[1, 257], &[263, 1], &[13, 7]]),
        _ => (&[11, 13, 37], [&[1, 1, 1], &[2, 3, 5], &[1, 1, 67], &[5, 1, 3], &[17, 9, 2]]),
    }
}

fn run(dtype: DType) {
    let Some(backend) = backend() else { return };
    let (boundaries, mut refused) = (boundaries(), 0);
    for entry in catalogue::plain() {
        for dimensions in entry.dimensions.clone() {
            let (main, small) = extents(dimensions);
            let rotated =
                small.iter().enumerate().map(|(i, &extents)| (extents, &boundaries[i % boundaries.len()]));
            let shifted = small
                .iter()
                .enumerate()
                .map(|(i, &extents)| (extents, &boundaries[(i + 2) % boundaries.len()]));
            let cases = boundaries.iter().map(|boundary| (main, boundary)).chain(rotated).chain(shifted);
            let mut most = [0.0f64; 2];
            let cases = cases
                .enumerate()
                .filter(|(number, _)| is_whole() || number % 8 == (dimensions + entry.name.len()) % 8);
            for (number, (extents, boundary)) in cases {
                match problem(entry.program(dimensions).unwrap(), extents, dtype, boundary) {
                    Ok(problem) => {
                        // The backend's own choice and a launch per stage take turns; `overlapped.rs` varies
                        // the backend's choice.
                        let execution = [Execution::Auto, Execution::Stepwise][number % 2];
                        let options = Options { execution, tune: Tune::Off, ..Options::default() };
                        let plan = backend.plan(&problem, &options).unwrap();
                        let fields = values(&problem, number as u64);
                        let [off, bound] = check_plan(&backend, &problem, &plan, &fields, 3);
                        most = [most[0].max(off), most[1].max(bound)];
                    }
                    // A domain thinner than the radius under a boundary that reflects.
                    Err(Error::Limit { .. }) => refused += 1,
                    Err(error) => panic!("{error}"),
                }
            }
            println!(
                "{:20} {dimensions}D {dtype}  off by {:6.2} a step, bound {:6.2}",
                entry.name, most[0], most[1]
            );
        }
    }
    assert!(refused < 60, "{refused}");
}

#[test]
fn every_entry_in_f32() {
    run(DType::F32);
}

#[test]
fn every_entry_in_f64() {
    run(DType::F64);
}
