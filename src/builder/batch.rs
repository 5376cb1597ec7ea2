//! What a batch adds to a description: members, their parameters and their starts.

use std::ops::RangeInclusive;

use super::{Values, check_parameter};
use crate::io::Axes;
use crate::memory::Budget;
use crate::program::Problem;
use crate::{Array, Error, Result, Shape, Start};

/// What a parameter is set to.
pub(super) enum Setting {
    /// One value for all members of a batch, or for the single domain.
    All(f64),
    /// Values from the first member's to the last's.
    Spread(f64, f64),
    /// Each member's value.
    Each(Vec<f64>),
}

impl Setting {
    /// Sets a parameter of a problem, in a batch of all members.
    pub(super) fn set(&self, problem: &mut Problem, name: &str) -> Result<()> {
        let number = problem.program.settable(name)?;
        let members = problem.members();
        match self {
            Setting::Spread(first, last) if !problem.is_batch() => {
                return Err(Error::invalid(
                    format!("parameter {name}"),
                    format!(
                        "it is spread from {first} to {last}, over the members of a batch, and there is none"
                    ),
                    "give one value, or a batch (--batch N, Builder::batch)",
                ));
            }
            Setting::Each(values) if values.len() != members || !problem.is_batch() => {
                let limit = match problem.is_batch() {
                    true => format!("a batch of {members}"),
                    false => "a single domain".to_owned(),
                };
                let what = format!("values of parameter {name}");
                return Err(Error::limit(what, values.len(), limit, "give one for each member of a batch"));
            }
            _ => {}
        }
        let dtype = problem.dtype;
        let own = |member: usize| -> Result<f64> {
            let value = match self {
                Setting::All(value) => *value,
                Setting::Spread(first, _) if members == 1 => *first,
                Setting::Spread(first, last) => first + (last - first) * member as f64 / (members - 1) as f64,
                Setting::Each(values) => values.get(member).copied().unwrap_or(f64::NAN),
            };
            check_parameter(name, value, dtype)?;
            Ok(value)
        };
        problem.parameters[number] = own(0)?;
        for (member, set) in problem.batch.iter_mut().enumerate() {
            set.parameters[number] = own(member)?;
        }
        Ok(())
    }
}

/// Makes a problem a batch, once the machine is found to have memory for what each member has of its own.
pub(super) fn make_batch(problem: &mut Problem, members: usize) -> Result<()> {
    let values = problem.parameters.len() + problem.scalars.len();
    // Beside the values, two vectors and what the allocator keeps of each.
    let bytes = members as u128 * (8 * values as u128 + 96);
    let budget = Budget::new(format!("memory for the parameters of a batch of {members}"));
    budget.with("one set for each member", bytes).check("choose a smaller batch")?;
    problem.repeat(members)
}

/// Returns how files and arrays are to be understood: in a batch of so many members, of domains of so many axes.
pub(super) fn axes(members: Option<usize>, dimensions: RangeInclusive<usize>) -> Axes {
    members.map_or(Axes::DOMAIN, |members| Axes::of_batch(members, dimensions))
}

/// Returns how files and arrays of a problem are to be understood.
pub(super) fn axes_of(problem: &Problem) -> Axes {
    let dimensions = problem.shape.dimensions();
    axes(problem.is_batch().then_some(problem.members()), dimensions..=dimensions)
}

impl Values {
    /// Returns the domain's shape by the values' own extents, if they have any.
    pub(super) fn shape(&self, field: &str, axes: &Axes) -> Result<Option<Shape>> {
        let Some(extents) = &self.extents else { return Ok(None) };
        let split = axes.split(extents).map_err(|error| match error {
            Error::Invalid { what, reason, change } => {
                Error::invalid(format!("input of field {field}: {what}"), reason, change)
            }
            other => other,
        });
        split.map(|(_, shape)| Some(shape))
    }
}

/// Returns the number of a field's values, summed over all members.
pub(super) fn all_values(problem: &Problem, field: usize) -> usize {
    problem.values_of(field) * problem.members()
}

/// Returns the values of a start, of all members one after another.
pub(super) fn started(problem: &Problem, start: &Start, shape: &Shape) -> Result<Array> {
    if !problem.is_batch() {
        return start.fill(shape, problem.dtype);
    }
    let members = (0..problem.members()).map(|member| start.of_member(member).fill(shape, problem.dtype));
    Array::join(problem.dtype, shape.cells() * problem.members(), members)
}

/// Returns values that are given for one domain once for each member; others as they are.
pub(super) fn for_all(problem: &Problem, field: usize, values: Array) -> Result<Array> {
    let all = all_values(problem, field);
    if problem.members() == 1 || values.len() != problem.values_of(field) {
        return Ok(values);
    }
    Array::join(problem.dtype, all, (0..problem.members()).map(|_| values.try_clone()))
}
