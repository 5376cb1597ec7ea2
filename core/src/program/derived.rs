//! Parameters that are computed from other parameters.
//!
//! The host computes them in f64 and rounds the result once to the type of the run, as numpy does with a formula of
//! Python's floats. A formula of parameters inside a stage is rounded after each operation instead.

use super::{Problem, Program};
use crate::error::{Error, Result};
use crate::expr::{Binary, Dag, Id, Node, Unary, binary, unary};
use crate::real::DType;

/// A parameter that is a formula of the parameters before it.
#[derive(Debug, Clone, PartialEq)]
pub struct Derived {
    /// The number of the parameter among [`Program::parameters`].
    pub parameter: usize,
    /// The formula: one output, of literals and parameters alone.
    pub dag: Dag,
}

impl Derived {
    /// Returns the numbers of the parameters that the formula reads.
    pub fn uses(&self) -> impl Iterator<Item = usize> + '_ {
        self.dag.parameters()
    }
}

/// Returns the value of a formula of parameters with these values, computed in f64.
pub(super) fn value(dag: &Dag, parameters: &[f64]) -> f64 {
    let mut values: Vec<f64> = Vec::with_capacity(dag.nodes.len());
    for &node in &dag.nodes {
        let at = |id: Id| values[id as usize];
        let value = match node {
            Node::Const(constant) => constant.value(),
            Node::Param(number) => parameters.get(usize::from(number)).copied().unwrap_or(f64::NAN),
            // A definition refuses them.
            Node::Tap(_) | Node::Coord(_) | Node::Draw(..) => f64::NAN,
            Node::Unary(op, a) => host_unary(op, at(a)),
            Node::Binary(op, a, b) => host_binary(op, at(a), at(b)),
            Node::Fma(a, b, c) => at(a).mul_add(at(b), at(c)),
            Node::Select(condition, yes, no) => {
                if at(condition) != 0.0 {
                    at(yes)
                } else {
                    at(no)
                }
            }
        };
        values.push(value);
    }
    dag.outputs.first().map_or(f64::NAN, |&output| values[output as usize])
}

/// Returns the value of an operator. Elementary functions are those of the machine's mathematical library, which Python
/// calls too; `erf`, which Rust lacks, is that of formulas.
fn host_unary(op: Unary, x: f64) -> f64 {
    match op {
        Unary::Exp => x.exp(),
        Unary::Log => x.ln(),
        Unary::Sin => x.sin(),
        Unary::Cos => x.cos(),
        Unary::Tanh => x.tanh(),
        Unary::Cbrt => x.cbrt(),
        Unary::Expm1 => x.exp_m1(),
        Unary::Log1p => x.ln_1p(),
        Unary::Neg
        | Unary::Abs
        | Unary::Sqrt
        | Unary::Floor
        | Unary::RoundF32
        | Unary::RoundF16
        | Unary::RoundBf16
        | Unary::Widened
        | Unary::Erf => unary(op, x),
    }
}

/// Returns the value of an operator, as [`host_unary`] does.
fn host_binary(op: Binary, a: f64, b: f64) -> f64 {
    match op {
        Binary::Pow => a.powf(b),
        Binary::Atan2 => a.atan2(b),
        _ => binary(op, a, b),
    }
}

impl Program {
    /// Returns the parameters that are formulas of other parameters, each after those that it reads.
    pub fn derived(&self) -> &[Derived] {
        &self.derived
    }

    /// Returns whether a parameter, by its number, is a formula of others, so that nothing else sets it.
    pub fn is_derived(&self, parameter: usize) -> bool {
        self.derived.iter().any(|derived| derived.parameter == parameter)
    }

    /// Computes those of these parameters' values that are formulas of others.
    pub fn derive(&self, parameters: &mut [f64]) {
        for derived in &self.derived {
            let value = value(&derived.dag, parameters);
            if let Some(own) = parameters.get_mut(derived.parameter) {
                *own = value;
            }
        }
    }

    /// Returns these parameters and all that are formulas of them, by their numbers.
    pub fn dependents(&self, parameters: &[usize]) -> Vec<usize> {
        let mut all = parameters.to_vec();
        for derived in &self.derived {
            if derived.uses().any(|number| all.contains(&number)) {
                all.push(derived.parameter);
            }
        }
        all
    }

    /// Checks that a host may set a parameter.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] for a name that is no parameter's; [`Error::Invalid`] for one that is a formula of others.
    pub fn settable(&self, name: &str) -> Result<usize> {
        let number = self.parameter(name)?;
        match self.derived.iter().find(|derived| derived.parameter == number) {
            None => Ok(number),
            Some(derived) => Err(Error::invalid(
                format!("parameter {name}"),
                "it is computed from other parameters",
                format!("set {}", self.names_of(derived)),
            )),
        }
    }

    /// Checks that the parameters that are formulas of others are numbers of a type, where all have these values.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for the first that is not.
    pub fn check_derived(&self, parameters: &[f64], dtype: DType) -> Result<()> {
        let value = |number: usize| parameters.get(number).copied().unwrap_or(f64::NAN);
        let Some(derived) = self.derived.iter().find(|derived| !dtype.is_finite(value(derived.parameter)))
        else {
            return Ok(());
        };
        let used: Vec<String> = self
            .used(derived)
            .map(|number| format!("{} = {:?}", self.parameters[number].name, value(number)))
            .collect();
        let name = &self.parameters[derived.parameter].name;
        Err(Error::invalid(
            format!("parameter {name}"),
            format!(
                "it has no value: it is {:?} in {dtype} where {}",
                value(derived.parameter),
                used.join(" and ")
            ),
            "give other parameters",
        ))
    }

    /// Returns the parameters that a formula reads, each once, in the program's order.
    fn used<'a>(&self, derived: &'a Derived) -> impl Iterator<Item = usize> + use<'a> {
        let all = 0..self.parameters.len();
        all.filter(|number| derived.uses().any(|used| used == *number))
    }

    fn names_of(&self, derived: &Derived) -> String {
        let names: Vec<&str> = self.used(derived).map(|number| &*self.parameters[number].name).collect();
        names.join(", ")
    }
}

impl Problem {
    /// Computes the parameters that are formulas of others, in a batch those of each member.
    pub fn derive(&mut self) {
        let Problem { program, parameters, batch, .. } = self;
        program.derive(parameters);
        batch.iter_mut().for_each(|member| program.derive(&mut member.parameters));
    }
}
