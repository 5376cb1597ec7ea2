//! Runs that go on from checkpoints: scalars of any bits are written and read, and another formula of the same names is
//! refused.

use std::sync::{Arc, LazyLock};

use abide::backend::{Opened, open};
use abide::io::checkpoint::write;
use abide::program::{Centring, Definition};
use abide::{Array, DType, Problem, Program, Result as Outcome, Shape, Simulation};

use super::{ensure, refused};

/// The backend, whose threads take longer to start than a run.
static OPENED: LazyLock<Outcome<Opened>> = LazyLock::new(|| open("cpu"));

/// The bytes of an input: two scalars, the factors of two programs, and the extent of the domain.
pub const KEY: usize = 33;

/// Writes the checkpoint of a program and goes on from it, with the same program and with another one.
pub fn run(input: &[u8]) -> Result<(), String> {
    let mut key = [0; KEY];
    let given = input.len().min(KEY);
    key[..given].copy_from_slice(&input[..given]);
    let [first, second, factor, other] =
        std::array::from_fn(|number| f64::from_le_bytes(std::array::from_fn(|byte| key[8 * number + byte])));
    let extent = 3 + usize::from(key[KEY - 1] % 8);
    // Formulas hold finite numbers.
    let finite = |value: f64| if value.is_finite() { value } else { 0.5 };
    let (factor, other) = (finite(factor), finite(other));
    let (Ok(own), Ok(changed)) = (program(factor), program(other)) else { return Ok(()) };
    let values = Array::from_fn(DType::F64, extent, |cell| factor + cell as f64);

    let folder = tempfile::tempdir().map_err(|e| format!("the fuzzer's own folder: {e}"))?;
    let path = folder.path().join("c.npz");
    let shape = Shape::new(&[extent]).map_err(|e| e.to_string())?;
    let mut problem = Problem::new(Arc::new(own.clone()), shape, DType::F64).map_err(|e| e.to_string())?;
    problem.scalars = vec![first, second];
    let written = write(&path, &problem, 5, |_| Ok(values.clone())).and_then(|staged| staged.commit());
    written.map_err(|e| format!("it is not written: {e}"))?;

    let opened = OPENED.as_ref().map_err(ToString::to_string)?;
    let resumed = |program: Program| -> Outcome<(Vec<f64>, Array)> {
        let builder = Simulation::builder(program).on(opened).resume(&path);
        let mut simulation = builder.build()?;
        Ok((simulation.scalars()?.into_iter().map(|(_, value)| value).collect(), simulation.field("u")?))
    };
    let (scalars, field) = resumed(own).map_err(|e| format!("its own program does not go on: {e}"))?;
    // A text holds that a value is no number, not which.
    let same = |a: f64, b: f64| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
    let kept = scalars.len() == 2 && same(scalars[0], first) && same(scalars[1], second);
    ensure(kept, || format!("scalars {first:?} and {second:?} come back as {scalars:?}"))?;
    ensure(field.same_bits(&values), || "a field comes back otherwise".to_owned())?;
    match resumed(changed) {
        Ok(_) => ensure(factor.to_bits() == other.to_bits(), || {
            format!("a run with the factor {factor:?} goes on with {other:?}")
        }),
        Err(error) => {
            ensure(factor.to_bits() != other.to_bits(), || format!("the same program is refused: {error}"))?;
            refused(&error)
        }
    }
}

/// Returns a program of two scalars, one of which is soon no number, and a field.
fn program(factor: f64) -> Outcome<Program> {
    let mut p = Definition::new("held", 1);
    p.field("u", Centring::CELL);
    p.scalar("s", Some(0.0), "").scalar("t", Some(0.0), "");
    let mut step = p.step();
    step.compute("s", |s| (s.param("s") - 1.0).sqrt());
    step.compute("t", |s| s.param("t") + s.constant(factor));
    step.stage("u", |s| s.set("u", s.field("u").here() * factor));
    p.build()
}
