//! Two sessions of a problem against the CPU's reference, step by step.

use abide_core::backend::Backend;
use abide_core::{Array, DType, Plan, Problem, Result, Session};
use abide_random::cases::Case;
use abide_wgpu::{WgpuBackend, ulp_bound_per_step_of};

use super::{distance, magnitude, read_all};

/// The most units in the last place, at the largest magnitude of a state, by which a step differs from the
/// reference's where its program has no stated bound. No comparison of these programs is so close that a driver
/// decides it.
const WITHOUT_BOUND: f64 = 16.0;

pub fn reference(problem: &Problem, fields: &mut [Array], steps: u64) -> Result<Vec<f64>> {
    abide_cpu::reference::run_program(problem, fields, steps, |_, _, _| {})
}

fn epsilon(dtype: DType) -> f64 {
    match dtype {
        DType::F32 => f64::from(f32::EPSILON),
        DType::F64 => f64::EPSILON,
    }
}

/// Two sessions of a problem: one goes step by step, each of which is held against the reference's step from
/// the same values, and the other goes as far in one call.
pub struct Pair {
    pub name: String,
    pub single: Box<dyn Session>,
    pub several: Box<dyn Session>,
    pub problem: Problem,
    /// The largest difference of a step, and its bound, in units in the last place.
    pub worst: [f64; 2],
}

impl Pair {
    pub fn open(backend: &WgpuBackend, case: &Case, plan: &Plan) -> Result<Pair> {
        let open = || backend.open(&case.problem, plan, case.start.clone());
        let (name, problem) = (case.name.clone(), case.problem.clone());
        Ok(Pair { name, single: open()?, several: open()?, problem, worst: [0.0; 2] })
    }

    pub fn advance(&mut self, steps: u64) -> Result<()> {
        for _ in 0..steps {
            let old = read_all(&mut *self.single, &self.problem);
            self.problem.scalars = self.single.scalars()?;
            let mut expected = old.clone();
            let scalars = reference(&self.problem, &mut expected, 1)?;
            self.single.advance(1)?;
            let new = read_all(&mut *self.single, &self.problem);
            let scale = magnitude(&old).max(magnitude(&expected)).max(0.5);
            let bound = ulp_bound_per_step_of(&self.problem, scale);
            let off = distance(&new, &expected, scale);
            let at = self.problem.first_step;
            assert!(
                scale.is_finite() && off <= bound.min(WITHOUT_BOUND),
                "{}: {off} of {bound} in step {at}",
                self.name
            );
            self.worst = [self.worst[0].max(off), self.worst[1].max(bound)];
            for (found, expected) in self.single.scalars()?.into_iter().zip(scalars) {
                let limit = 1e2 * epsilon(self.problem.dtype) * (self.problem.shape.cells() as f64) * scale;
                // The signs of zeros count too.
                let is_zero = found == 0.0 && expected == 0.0;
                let alike = (is_zero && found.to_bits() == expected.to_bits())
                    || (found == expected && !is_zero)
                    || (found - expected).abs() <= limit
                    || (found.is_nan() && expected.is_nan());
                assert!(alike, "{}: a scalar is {found}, not {expected}, after step {at}", self.name);
            }
            self.problem.first_step += 1;
        }
        self.several.advance(steps)?;
        self.compare()
    }

    /// Panics where the sessions differ.
    pub fn compare(&mut self) -> Result<()> {
        let at = self.problem.first_step;
        let [a, b] =
            [&mut self.single, &mut self.several].map(|session| read_all(&mut **session, &self.problem));
        for (number, (a, b)) in a.iter().zip(&b).enumerate() {
            let field = &self.problem.program.fields()[number];
            assert!(a.same_bits(b), "{}: field {field} after {at} steps", self.name);
        }
        let [a, b] = [self.single.scalars()?, self.several.scalars()?];
        let is_same = |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
        assert!(a.iter().zip(&b).all(is_same), "{}: {a:?}, not {b:?} after {at} steps", self.name);
        Ok(())
    }

    /// Replaces a field by other values, and finds all others as they were.
    pub fn write(&mut self, field: usize) -> Result<()> {
        let before = read_all(&mut *self.single, &self.problem);
        let (old, len) = (&before[field], before[field].len());
        let new =
            Array::from_fn(self.problem.dtype, len, |i| 0.5 * old.get((i + 1) % len).unwrap_or(0.0) + 0.125);
        self.single.write(field, &new)?;
        self.several.write(field, &new)?;
        for (number, now) in read_all(&mut *self.single, &self.problem).iter().enumerate() {
            let expected = if number == field { &new } else { &before[number] };
            assert!(now.same_bits(expected), "{}: field {number}, written {field}", self.name);
        }
        self.compare()
    }
}
