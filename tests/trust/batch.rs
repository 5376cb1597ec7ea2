//! Each member of a batch has the bits of the same domain run alone.

use abide::{
    Array, Boundary, Builder, DType, Error, Execution, Options, Result, Simulation, Start, program::Member,
};

use crate::trust::subject::{Subject, describe, each, entry, fields};

/// Members of a batch.
const MEMBERS: usize = 5;

/// A model, its extents, its boundary, and a parameter that is spread.
type Case = (&'static str, &'static [usize], Boundary, Option<(&'static str, f64, f64)>);

const CASES: &[Case] = &[
    ("1d3pt", &[101], Boundary::Fixed, None),
    ("2d9pt", &[19, 23], Boundary::Clamp, None),
    ("heat", &[33, 47], Boundary::Mirror, Some(("kappa", 0.05, 0.24))),
    ("gray-scott", &[31, 29], Boundary::Periodic, Some(("feed", 0.02, 0.06))),
    // Periodic sides that lie in one tile, of rows with space behind them and without.
    ("gray-scott", &[31, 32], Boundary::Periodic, Some(("feed", 0.02, 0.06))),
    ("2d9pt", &[12, 96], Boundary::Periodic, None),
    ("2d13pt", &[40, 61], Boundary::Mirror, None),
    ("wave", &[7, 9, 11], Boundary::Constant(0.25), None),
    ("fdtd-tm", &[17, 13], Boundary::Fixed, None),
];

/// Returns the values of one member in a field of the batch.
fn member(all: &Array, number: usize) -> Array {
    let values = all.len() / MEMBERS;
    all.part(number * values..(number + 1) * values).unwrap()
}

pub fn members_have_the_bits_of_single_runs(subject: &Subject) -> Result<()> {
    for &(name, extents, boundary, spread) in CASES {
        for dtype in subject.dtypes() {
            let mut problem = entry(name, extents, dtype, boundary)?;
            problem.repeat(MEMBERS)?;
            if let Some((parameter, first, last)) = spread {
                let number = problem.program.parameter(parameter)?;
                for (at, Member { parameters, .. }) in problem.batch.iter_mut().enumerate() {
                    parameters[number] = first + (last - first) * at as f64 / (MEMBERS - 1) as f64;
                }
            }
            let own: Vec<Vec<Array>> =
                (0..MEMBERS).map(|at| fields(&problem.member(at), 40 + at as u64)).collect::<Result<_>>()?;
            let all = (0..problem.program.fields().len()).map(|field| {
                let parts = own.iter().map(|own| own[field].try_clone());
                Array::join(dtype, problem.values_of(field) * MEMBERS, parts)
            });
            let all: Vec<Array> = all.collect::<Result<_>>()?;
            let ways = [Execution::Auto, Execution::Stepwise, Execution::Streaming, Execution::Persistent];
            each(&ways, |&execution| {
                let options = Options { execution, ..Options::default() };
                let backend = &subject.opened.backend;
                let plan = match backend.plan(&problem, &options) {
                    // Not every backend has every schedule for every problem.
                    Err(Error::Unsupported { .. } | Error::Limit { .. }) if execution != Execution::Auto => {
                        return Ok(());
                    }
                    plan => plan?,
                };
                assert_eq!(plan.members(), MEMBERS);
                // All of these fit a block, but for the periodic sides that no tile holds.
                let fits = execution == Execution::Auto && extents[extents.len() - 1] != 29;
                assert!(!fits || backend.name() != "cuda" || plan.is_at_once(), "{:?}", plan.notes);
                let given = all.iter().map(Array::try_clone).collect::<Result<_>>()?;
                let mut batch = backend.open(&problem, &plan, given)?;
                for steps in [1, 13] {
                    batch.advance(steps)?;
                }
                for (at, own) in own.iter().enumerate() {
                    let alone = problem.member(at);
                    let given = own.iter().map(Array::try_clone).collect::<Result<_>>()?;
                    let mut single = backend.open(&alone, &backend.plan(&alone, &options)?, given)?;
                    single.advance(14)?;
                    for field in 0..own.len() {
                        let (of_batch, of_single) = (member(&batch.read(field)?, at), single.read(field)?);
                        let same = of_batch.same_bits(&of_single);
                        assert!(same, "member {at} of {} {execution}", describe(&problem));
                    }
                }
                Ok(())
            })?;
        }
    }
    Ok(())
}

fn gray_scott(subject: &Subject, dtype: DType, width: usize) -> Builder {
    let start = Start::Random { seed: 7, low: 0.0, high: 0.5 };
    let builder = Simulation::builder("gray-scott").size(&[21, width]).dtype(dtype).on(&subject.opened);
    builder.start("u", Start::Constant(1.0)).start("v", start)
}

fn spread(builder: Builder) -> Builder {
    builder
        .batch(MEMBERS)
        .param_spread("feed", 0.02, 0.06)
        .param_each("kill", [0.06, 0.061, 0.062, 0.063, 0.064])
}

/// What happens to a batch between its steps happens to each member, and a checkpoint keeps all of it.
pub fn a_batch_is_changed_and_kept(subject: &Subject) -> Result<()> {
    // Of the second width a block may hold a member.
    [34, 32].into_iter().try_for_each(|width| is_changed_and_kept(subject, width))
}

fn is_changed_and_kept(subject: &Subject, width: usize) -> Result<()> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("batch.npz");
    let dtype = *subject.dtypes().last().expect("a type");
    let mut batch = spread(gray_scott(subject, dtype, width)).build()?;
    let report = batch.run(9)?;
    assert_eq!(report.cells, (MEMBERS * 21 * width) as u64);
    let cells: Vec<f64> = (0..MEMBERS * 6).map(|i| 0.01 * i as f64).collect();
    let window = Array::from_fn(dtype, cells.len(), |i| cells[i]);
    let (low, high) = ([0, 3, 5], [1, 5, 8]);
    batch.write_window("v", low, high, &window)?;
    assert!(batch.window("v", low, high)?.same_bits(&window));
    batch.set_parameter("du", 0.15)?;
    batch.run(4)?;
    batch.checkpoint(&file)?;
    batch.run(6)?;

    let resumed = Simulation::builder("gray-scott").resume(&file).on(&subject.opened).build()?;
    assert_eq!(resumed.problem().batch, batch.problem().batch);
    let mut resumed = resumed;
    resumed.run(6)?;
    for at in 0..MEMBERS {
        let start = Start::Random { seed: 7 + at as u64, low: 0.0, high: 0.5 };
        let own = gray_scott(subject, dtype, width).start("v", start);
        let feed = 0.02 + (0.06 - 0.02) * at as f64 / 4.0;
        let mut single =
            own.param("feed", feed).param("kill", [0.06, 0.061, 0.062, 0.063, 0.064][at]).build()?;
        single.run(9)?;
        single.write_window("v", low, high, &window.part(6 * at..6 * (at + 1))?)?;
        single.set_parameter("du", 0.15)?;
        single.run(10)?;
        for field in ["u", "v"] {
            let expected = single.field(field)?;
            assert!(member(&batch.field(field)?, at).same_bits(&expected), "member {at}, {field}");
            assert!(member(&resumed.field(field)?, at).same_bits(&expected), "member {at}, {field}, resumed");
        }
    }
    // One value of one member is not finite.
    let mut poisoned = batch.field("u")?.to_f64();
    poisoned[2 * 21 * width + 5] = f64::NAN;
    batch.write("u", &Array::from_fn(dtype, poisoned.len(), |i| poisoned[i]))?;
    assert_eq!(batch.non_finite()?, 1);
    Ok(())
}

/// A program that is not plain has scalars of each member.
pub fn members_have_their_own_scalars(subject: &Subject) -> Result<()> {
    if !subject.has(DType::F64) {
        return Ok(());
    }
    let builder = || Simulation::builder("cloverleaf").size(&[9, 11]).dtype(DType::F64).on(&subject.opened);
    let density =
        |at: usize| Array::from_fn(DType::F64, 99, |i| 1.0 + 0.1 * at as f64 + 0.01 * (i % 7) as f64);
    let all = Array::join(DType::F64, 3 * 99, (0..3).map(|at| Ok(density(at))))?;
    let mut batch = builder().batch(3).input("density0", all).build()?;
    let report = batch.run(8)?;
    assert!(report.scalars.is_empty() && batch.scalars().is_err() && batch.scalar("time").is_err());
    assert!(matches!(batch.scalars_of(3), Err(Error::Limit { .. })));
    let mut times = Vec::new();
    for at in 0..3 {
        let mut single = builder().input("density0", density(at)).build()?;
        single.run(8)?;
        assert_eq!(batch.scalars_of(at)?, single.scalars()?, "member {at}");
        times.push(single.scalar("time")?);
        let (all, own) = (batch.field("xvel0")?, single.field("xvel0")?);
        assert!(all.part(at * own.len()..(at + 1) * own.len())?.same_bits(&own), "member {at}");
    }
    assert!(
        times[0] != times[1] && times[1] != times[2],
        "members that differ keep times of their own: {times:?}"
    );
    Ok(())
}

pub fn bad_batches_are_refused(subject: &Subject) -> Result<()> {
    let refused = |builder: Builder, words: &[&str]| {
        let error = builder.build().err().expect("an error").to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    };
    let builder = || gray_scott(subject, DType::F32, 34);
    refused(builder().batch(0), &["members of a batch", "at least 1"]);
    refused(builder().batch(usize::MAX), &["memory for the parameters of a batch"]);
    refused(builder().batch(4).record(2), &["a batch of 4 members", "a record", "leave it out"]);
    refused(builder().param_spread("feed", 0.1, 0.2), &["parameter feed", "give one value, or a batch"]);
    refused(builder().batch(3).param_each("feed", [0.1]), &["values of parameter feed", "a batch of 3"]);
    refused(builder().batch(2).param_spread("feed", 0.1, f64::INFINITY), &["not a finite number"]);
    let values = |extents: &[usize]| ndarray::ArrayD::<f32>::zeros(extents);
    refused(builder().batch(3).input("u", values(&[2, 21, 34])), &["for 2 members, the batch has 3"]);
    refused(builder().batch(3).input("u", values(&[3, 20, 34])), &["its size is 20x34"]);
    refused(builder().batch(3).input("u", vec![0.5f32; 2 * 21 * 34]), &["3 members of 21x34"]);
    Ok(())
}
