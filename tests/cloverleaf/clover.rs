//! CloverLeaf's problem and start, from a deck.

use std::sync::Arc;

use abide::{Array, DType, Problem, Result, Shape, catalogue};

use crate::deck::Deck;

/// Returns a deck's problem and its initial fields.
pub fn clover(deck: &Deck) -> Result<(Problem, Vec<Array>)> {
    let is_3d = deck.cells.len() == 3;
    let program = Arc::new(if is_3d { catalogue::cloverleaf_3d()? } else { catalogue::cloverleaf()? });
    let mut problem = Problem::unchecked(program.clone(), Shape::new(&deck.cells)?, DType::F64);
    for (name, width) in ["dx", "dy", "dz"].into_iter().zip(deck.widths().iter().rev()) {
        problem.parameters[program.parameter(name)?] = *width;
    }
    problem.parameters[program.parameter("dtrise")?] = deck.timestep_rise;
    problem.parameters[program.parameter("dtmax")?] = deck.max_timestep;
    problem.scalars[program.scalar("dt")?] = deck.initial_timestep;
    problem.check()?;
    let zeros = (0..program.fields().len()).map(|field| Array::zeros(DType::F64, problem.values_of(field)));
    let mut fields = zeros.collect::<Result<Vec<_>>>()?;
    for (name, values) in deck.generate() {
        fields[program.field(name)?] = values;
    }
    Ok((problem, fields))
}
