//! Bounds of a step's difference from the reference, derived from the formula, not from experience.
//!
//! WGSL promises less than IEEE 754. Its `fma` may round twice, a driver may fuse a multiplication into an
//! addition, and division, root and the elementary functions have error bounds instead of correct rounding.
//! This module walks a program's formulas with intervals of the values, and with bounds of the difference
//! between the reference's value and any that WGSL allows. It assumes, as holds for all drivers known, that
//! `+ - *` round to nearest and that sums are not reassociated. It leaves out that numbers below the smallest
//! normal one may be flushed to zero.

mod interval;

use abide_core::expr::{Binary, Dag, Node, Unary};
use abide_core::functions;
use abide_core::program::{Boxes, Reduction, StageKind};
use abide_core::{Boundaries, DType, Problem, Program};

use interval::Interval;

/// Returns the most units in the last place, taken at the largest magnitude among the fields' old and new
/// values, by which one step from the same old values differs from the reference.
///
/// The bound holds for the program's default parameters and initial scalars, for any step of its cycle, fields
/// of magnitude 1 and coordinates below 1024; where those differ and the program is not linear, ask
/// [`ulp_bound_per_step_of`]. It is infinite where WGSL states no bound: a comparison of rounded values may
/// fall either way, a divisor's interval may contain 0, or the operand of a root or the base of a power may come
/// near 0. So it is for CloverLeaf, whose steps are compared with the reference's as a whole.
///
/// Over many steps the differences add up, and change with the program as any disturbance does. Where a step
/// magnifies no difference (as the catalogue's linear stencils, whose weights are positive and sum to at most
/// 1), `n` steps are within `n` times the bound.
pub fn ulp_bound_per_step(program: &Program) -> f64 {
    let parameters = program.parameters().iter().map(|parameter| parameter.default);
    let scalars = program.scalars().iter().map(|scalar| match scalar.extent {
        Some(_) => 1024.0,
        None => scalar.initial.unwrap_or(0.0),
    });
    let farthest = [1023.0; 3];
    let sides = program.kinds().iter().map(|kind| kind.sides.over(program.boundaries())).collect();
    bound(
        program,
        sides,
        parameters.chain(scalars).collect(),
        farthest,
        1024_f64.powi(program.dimensions() as i32),
        1.0,
    )
}

/// Returns [`ulp_bound_per_step`] for a problem's own parameters, scalars and extents, and for fields (boundary
/// constants included) whose largest magnitude is `magnitude`.
pub fn ulp_bound_per_step_of(problem: &Problem, magnitude: f64) -> f64 {
    let mut farthest = problem.shape.padded().map(|extent| extent as f64 - 1.0);
    let mut values = problem.shape.cells() as f64;
    if !problem.is_plain() {
        let Ok(boxes) = Boxes::of(problem) else { return f64::INFINITY };
        let all = boxes.stages.iter().flatten();
        for indices in all {
            for (farthest, range) in farthest.iter_mut().zip(indices) {
                *farthest = farthest.max(-range.start as f64).max(range.end as f64 - 1.0);
            }
            values = values.max(indices.iter().map(|range| range.len() as f64).product());
        }
    }
    let scalars = problem.parameters.iter().chain(&problem.scalars).copied().collect();
    let sides = (0..problem.program.fields().len()).map(|field| problem.boundaries_of(field)).collect();
    bound(&problem.program, sides, scalars, farthest, values, magnitude)
}

/// Returns the bound for boundaries of each field, scalars, the parameters first, coordinates up to `farthest`, reductions
/// of at most so many `values`, and fields of a magnitude.
fn bound(
    program: &Program,
    sides: Vec<Boundaries>,
    scalars: Vec<f64>,
    farthest: [f64; 3],
    values: f64,
    magnitude: f64,
) -> f64 {
    if program.has_loops() {
        // How many turns a loop has is not known.
        return f64::INFINITY;
    }
    let start = Value { range: Interval::around_zero(magnitude), error: 0.0 };
    // Simplification changes no bit, so the parts that it removes cannot differ.
    let program = program.simplified(DType::F64);
    let count = program.fields().len();
    let coordinates = farthest.map(|farthest| match program.is_plain() {
        true => Interval { low: 0.0, high: farthest },
        // Temporaries are computed beyond the domain too.
        false => Interval::around_zero(farthest),
    });
    let mut worst = 0.0_f64;
    for step in program.steps() {
        let mut fields = vec![start; count + program.temporaries().len()];
        let mut scalars: Vec<Value> =
            scalars.iter().map(|&value| Value::exact(Interval::point(value))).collect();
        for stage in &program.stages()[step.clone()] {
            let new =
                values_of(&stage.dag, &shown(&program, &sides, &fields, &scalars), &scalars, coordinates);
            let new = |output: usize| new[stage.dag.outputs[output] as usize];
            match stage.does {
                StageKind::Scalar(scalar) => scalars[scalar] = new(0),
                StageKind::Reduce(Reduction::Sum, _, scalar) => scalars[scalar] = sum(new(0), values),
                StageKind::Reduce(_, _, scalar) => scalars[scalar] = new(0),
                // What a matrix makes of errors is not known.
                StageKind::Transform(_) => return f64::INFINITY,
                StageKind::Update => {
                    for (output, &field) in stage.writes.iter().enumerate() {
                        let new = new(output);
                        fields[field] = match field < count {
                            // Cells at a fixed side keep their old values.
                            true => fields[field].or(new, program.is_plain()),
                            false => new,
                        };
                    }
                }
            }
        }
        worst = fields[..count].iter().map(|field| field.error).fold(worst, f64::max);
    }
    if worst == 0.0 { 0.0 } else { worst / magnitude }
}

/// Returns the values of fields and of what their ghost cells show: a computed scalar may differ, too.
fn shown(program: &Program, sides: &[Boundaries], fields: &[Value], scalars: &[Value]) -> Vec<Value> {
    let mut shown = fields.to_vec();
    for (field, sides) in shown.iter_mut().zip(sides) {
        for scalar in sides.scalars().filter_map(|name| program.number_of_scalar(name.as_str()).ok()) {
            *field = field.or(scalars[scalar], program.is_plain());
        }
    }
    shown
}

/// Returns the sum of so many values in the tree of reductions: the same values have the same sum, and other
/// ones are rounded differently at each level.
fn sum(value: Value, count: f64) -> Value {
    let (range, depth) = (value.range, count.max(1.0).log2().ceil());
    let all = Interval { low: count * range.low.min(0.0), high: count * range.high.max(0.0) };
    let rounding = if value.error > 0.0 { depth * count * range.magnitude() } else { 0.0 };
    Value { range: all, error: count * value.error + rounding }
}

/// The possible values of a node, and the most by which two correct implementations may differ in it, in
/// units of the type's epsilon.
#[derive(Debug, Clone, Copy)]
struct Value {
    range: Interval,
    error: f64,
}

impl Value {
    fn exact(range: Interval) -> Value {
        Value { range, error: 0.0 }
    }

    /// Returns the value of an operator that rounds correctly: the same operands give the same value;
    /// operands that differ also land on different neighbours.
    fn rounded(range: Interval, error: f64) -> Value {
        Value { range, error: if error > 0.0 { error + range.magnitude() } else { 0.0 } }
    }

    /// Returns the value of a field that a stage may have given a new value. Ghost values may show it with the
    /// opposite sign, unless the program is plain.
    fn or(self, new: Value, is_plain: bool) -> Value {
        let range = self.range.hull(new.range);
        Value {
            range: if is_plain { range } else { Interval::around_zero(range.magnitude()) },
            error: self.error.max(new.error),
        }
    }

    /// Returns the error that operands with errors bring to a product.
    fn times(self, other: Value) -> f64 {
        scaled(self.error, other.range.magnitude()) + scaled(other.error, self.range.magnitude())
    }
}

/// Returns `error * factor`; an error of 0 stays 0 however large the factor.
fn scaled(error: f64, factor: f64) -> f64 {
    if error == 0.0 || factor == 0.0 { 0.0 } else { error * factor }
}

/// Returns the error of a value that jumps where operands change a little.
fn jumping(error: f64) -> f64 {
    if error > 0.0 { f64::INFINITY } else { 0.0 }
}

/// Rounds to a type with this distance from 1 to the next number: two numbers beside each other may become neighbours there.
fn narrowed(x: Value, distance: f64, largest: f64) -> Value {
    let magnitude = x.range.magnitude();
    let range = if magnitude < largest { x.range } else { Interval::around_zero(f64::INFINITY) };
    let error = if x.error == 0.0 { 0.0 } else { x.error + distance * magnitude };
    Value { range, error }
}

fn values_of(dag: &Dag, fields: &[Value], scalars: &[Value], coordinates: [Interval; 3]) -> Vec<Value> {
    let mut values: Vec<Value> = Vec::with_capacity(dag.nodes.len());
    for &node in &dag.nodes {
        let at = |id: u32| values[id as usize];
        // The error of a product whose rounding a driver may skip by fusing it with the operation that
        // follows.
        let skipped = |id: u32| match dag.nodes[id as usize] {
            Node::Binary(Binary::Mul, ..) => 0.5 * at(id).range.magnitude(),
            _ => 0.0,
        };
        values.push(match node {
            Node::Const(c) => Value::exact(Interval::point(c.value())),
            Node::Param(p) => scalars[p as usize],
            Node::Tap(tap) => fields[tap.field as usize],
            Node::Coord(axis) => {
                let range = coordinates[axis as usize];
                let most = range.magnitude();
                // Beyond 2²⁴ not every index can be represented in f32.
                Value { range, error: if most > 16_777_216.0 { most } else { 0.0 } }
            }
            Node::Unary(op, a) => unary(op, at(a)),
            Node::Binary(op, a, b) => {
                let (x, y) = (at(a), at(b));
                let unfused = skipped(a).max(skipped(b));
                match op {
                    Binary::Mul if a == b => Value::rounded(x.range.square(), x.times(x)),
                    _ => binary(op, x, y, unfused),
                }
            }
            Node::Fma(a, b, c) => {
                let product = at(a).range * at(b).range;
                let unfused = 0.5 * product.magnitude() + skipped(c);
                Value::rounded(product + at(c).range, at(a).times(at(b)) + at(c).error + unfused)
            }
            Node::Draw(_, operands) => {
                let below_one = 1.0 - f64::from(f32::EPSILON) / 2.0;
                let errors = operands.map(|operand| at(operand).error);
                let error = jumping(errors.into_iter().fold(0.0, f64::max));
                Value { range: Interval { low: 0.0, high: below_one }, error }
            }
            Node::Select(c, yes, no) => Value {
                range: at(yes).range.hull(at(no).range),
                error: jumping(at(c).error) + at(yes).error.max(at(no).error),
            },
        });
    }
    values
}

/// The most units in the last place by which an elementary function's formula is off in WGSL. The reference is within
/// one. What WGSL leaves open adds up to less than two more: in the formulas, products that a double rounding of fused
/// operations or a quotient within two and a half units could spoil are made exact, or enter by a small factor.
const FORMULA: f64 = 3.0;

/// Applies the error bounds of section 15.7.4 of the WGSL specification, with the reference's own half unit
/// added, and those of the elementary functions' formulas.
fn unary(op: Unary, x: Value) -> Value {
    let Interval { low, high } = x.range;
    let inexact = |range: Interval, brought: f64, own: f64| Value {
        range,
        error: brought + own + 0.5 * range.magnitude(),
    };
    match op {
        Unary::Neg => Value { range: -x.range, error: x.error },
        Unary::Abs => Value { range: x.range.abs(), error: x.error },
        Unary::Sqrt => {
            let range = Interval { low: low.max(0.0).sqrt(), high: high.max(0.0).sqrt() };
            // One divided by an inverse root of two units' error; the division is within two and a half.
            inexact(range, scaled(x.error, 0.5 / range.low), 4.5 * range.high)
        }
        Unary::Floor => {
            Value { range: Interval { low: low.floor(), high: high.floor() }, error: jumping(x.error) }
        }
        Unary::RoundF32 => narrowed(x, f64::from(f32::EPSILON), f64::from(f32::MAX)),
        Unary::RoundF16 => narrowed(x, 1.0 / 1024.0, 65504.0),
        Unary::Widened => x,
        Unary::RoundBf16 => narrowed(x, 1.0 / 128.0, f64::from(f32::MAX)),
        Unary::Exp => {
            let range = Interval { low: low.exp(), high: high.exp() };
            inexact(range, scaled(x.error, range.high), FORMULA * range.high)
        }
        Unary::Log => {
            let range = Interval { low: low.max(0.0).ln(), high: high.max(0.0).ln() };
            inexact(range, scaled(x.error, 1.0 / low.max(0.0)), FORMULA * range.magnitude())
        }
        Unary::Sin | Unary::Cos => inexact(Interval::around_zero(1.0), x.error, FORMULA),
        Unary::Cbrt => {
            let range = Interval { low: low.cbrt(), high: high.cbrt() };
            let slope = 1.0 / (3.0 * x.range.least().cbrt().powi(2));
            inexact(range, scaled(x.error, slope), FORMULA * range.magnitude())
        }
        Unary::Expm1 => {
            let range = Interval { low: low.exp_m1(), high: high.exp_m1() };
            inexact(range, scaled(x.error, high.exp()), FORMULA * range.magnitude())
        }
        Unary::Log1p => {
            let range = Interval { low: low.max(-1.0).ln_1p(), high: high.max(-1.0).ln_1p() };
            inexact(range, scaled(x.error, 1.0 / (1.0 + low.max(-1.0))), FORMULA * range.magnitude())
        }
        Unary::Erf => {
            let range = Interval { low: functions::erf(low), high: functions::erf(high) };
            // The derivative is at most 2 / √π.
            inexact(range, scaled(x.error, std::f64::consts::FRAC_2_SQRT_PI), FORMULA * range.magnitude())
        }
        Unary::Tanh => {
            let range = Interval { low: low.tanh(), high: high.tanh() };
            inexact(range, x.error, FORMULA * range.magnitude())
        }
    }
}

/// Applies a two-operand operator. `unfused` is the error of an operand that is a product, which a driver may
/// leave unrounded.
fn binary(op: Binary, x: Value, y: Value, unfused: f64) -> Value {
    match op {
        Binary::Add => Value::rounded(x.range + y.range, x.error + y.error + unfused),
        Binary::Sub => Value::rounded(x.range - y.range, x.error + y.error + unfused),
        Binary::Mul => Value::rounded(x.range * y.range, x.times(y)),
        Binary::Div => {
            let range = x.range / y.range;
            let divisor = y.range.least();
            let brought = scaled(x.error, 1.0 / divisor) + scaled(y.error, range.magnitude() / divisor);
            Value { range, error: brought + 3.0 * range.magnitude() }
        }
        Binary::Min => Value { range: x.range.min(y.range), error: x.error.max(y.error) },
        Binary::Max => Value { range: x.range.max(y.range), error: x.error.max(y.error) },
        Binary::Pow => power(x, y),
        Binary::Atan2 => angle(x, y),
        // 0 or 1; both are possible where the operands are not known exactly.
        Binary::Less
        | Binary::LessEqual
        | Binary::Greater
        | Binary::GreaterEqual
        | Binary::Equal
        | Binary::NotEqual => {
            Value { range: Interval { low: 0.0, high: 1.0 }, error: jumping(x.error + y.error) }
        }
    }
}

/// Returns the value of a power, whose exponential magnifies the operands' errors. Nothing is known of bases that
/// reach 0.
fn power(x: Value, y: Value) -> Value {
    if x.range.low <= 0.0 {
        return Value { range: Interval::around_zero(f64::INFINITY), error: f64::INFINITY };
    }
    let logarithm = Interval { low: x.range.low.log2(), high: x.range.high.log2() };
    let exponent = y.range * logarithm;
    let range = Interval { low: exponent.low.exp2(), high: exponent.high.exp2() };
    let (factor, most) = (y.range.magnitude(), logarithm.magnitude());
    let in_exponent = scaled(y.error, most * std::f64::consts::LN_2) + scaled(x.error, factor / x.range.low);
    Value { range, error: (in_exponent + FORMULA + 0.5) * range.high }
}

/// Returns the value of an angle, whose derivatives are at most one over the distance from 0. It jumps by a turn where the
/// ordinate changes its sign on the left.
fn angle(y: Value, x: Value) -> Value {
    let most = std::f64::consts::PI;
    let range = Interval::around_zero(most);
    let distance = x.range.least().hypot(y.range.least());
    let is_cut = x.range.low <= 0.0 && y.range.low <= 0.0 && y.range.high >= 0.0;
    let brought = match is_cut {
        true => jumping(x.error + y.error),
        false => scaled(x.error, 1.0 / distance) + scaled(y.error, 1.0 / distance),
    };
    Value { range, error: brought + (FORMULA + 0.5) * most }
}

#[cfg(test)]
mod tests {
    use abide_core::{LinearStencil, Scope, Stencil, catalogue};

    use super::*;

    fn of(name: &str, dimensions: usize) -> f64 {
        ulp_bound_per_step(&catalogue::find(name).unwrap().program(dimensions).unwrap())
    }

    #[test]
    fn every_entry_of_the_catalogue_has_a_finite_bound() {
        for entry in catalogue::plain() {
            for dimensions in entry.dimensions.clone() {
                let bound = of(entry.name, dimensions);
                assert!(bound.is_finite() && bound < 200.0, "{} {bound}", entry.name);
            }
        }
        assert_eq!(of("life", 2), 0.0, "whole numbers add up exactly");
    }

    /// Worked out by hand: each fused product may be rounded by itself (half a unit) and the sum after it
    /// once more.
    #[test]
    fn a_linear_stencil_by_hand() {
        let stencil = LinearStencil::new("three", &[([-1], 0.5), ([0], 0.25), ([1], 0.125)]).unwrap();
        let program = Program::new(&stencil).unwrap();
        let second = 0.5 * 0.5 + 0.5 * 0.25 + 0.75;
        let third = second + 0.5 * 0.125 + 0.875;
        assert_eq!(ulp_bound_per_step(&program), third);
        let problem =
            Problem::new(program.into(), abide_core::Shape::new(&[9]).unwrap(), DType::F32).unwrap();
        assert_eq!(ulp_bound_per_step_of(&problem, 1000.0), third, "a linear stencil's bound has no scale");
    }

    struct Formula1(fn(&Scope<'_>));

    impl Stencil for Formula1 {
        fn name(&self) -> &str {
            "formula"
        }

        fn dimensions(&self) -> usize {
            1
        }

        fn define(&self, s: &Scope<'_>) {
            (self.0)(s);
        }
    }

    #[test]
    fn what_cannot_be_bounded_is_infinite() {
        let bound = |define: fn(&Scope<'_>)| ulp_bound_per_step(&Program::new(&Formula1(define)).unwrap());
        assert_eq!(bound(|s| s.set("u", 1.0 / s.field("u").here())), f64::INFINITY);
        assert!(bound(|s| s.set("u", 1.0 / (1.0 + s.field("u").here().abs()))).is_finite());
        assert!(bound(|s| s.set("u", (4.0 * s.field("u").here()).sin())).is_finite());
        // A comparison of products and sums may fall either way; one of old values may not.
        assert_eq!(
            bound(|s| s
                .set("u", (s.field("u").here() * 0.3 + s.field("u").along(0, 1)).gt(0.1).select(1.0, 0.0))),
            f64::INFINITY
        );
        assert_eq!(bound(|s| s.set("u", s.field("u").here().gt(0.1).select(1.0, 0.0))), 0.0);
        assert!(
            bound(|s| s.set("u", (2.0 + s.field("u").here()).pow(1.5).log().exp().sqrt().tanh())).is_finite()
        );
    }
}
