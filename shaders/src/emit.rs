//! Expressions as text: one walk over a formula's nodes, two languages.

mod branch;
mod single;

use abide_core::DType;
use abide_core::expr::{Binary, Cells, Dag, Id, Node, Tap, Text, Unary, choice};

pub use branch::Place;
use single::Singles;

/// A language of kernels: the constructs that C and WGSL write differently.
pub trait Language {
    /// Returns the name of the number type in declarations.
    fn real(&self, dtype: DType) -> &'static str;

    /// Returns a literal that reads back as exactly this value, which is one of the type's.
    fn literal(&self, dtype: DType, value: f64) -> String;

    /// Returns the declaration of an immutable local without its semicolon, as in `const real v0 = x`.
    fn declare(&self, dtype: DType, name: &str, value: &str) -> String;

    /// Returns the declaration of a local that is set again, without its semicolon; `None` where a local may hold values of
    /// several cells, which take no branch together.
    fn variable(&self, dtype: DType, name: &str, value: &str) -> Option<String>;

    /// Returns how a body asks for a choice in these cells of an axis; `None` where each cell compares its index.
    fn told(&self, _axis: usize, _cells: Cells) -> Option<Told> {
        None
    }

    /// Returns the axis along which bodies must know where choices are made.
    fn placed(&self) -> Option<usize> {
        None
    }

    /// Returns the expression `condition ? yes : no`.
    fn choose(&self, condition: &str, yes: &str, no: &str) -> String;

    /// Returns this language's choice of two texts that mean the same: `c` in C, `wgsl` in WGSL.
    fn own<'t>(&self, c: &'t str, wgsl: &'t str) -> &'t str;

    /// Returns the fields whose values are of binary32 or fewer bits, where the language has a type of its own for those in formulas
    /// of a wider one.
    fn singles(&self) -> Option<&[u16]> {
        None
    }

    /// Returns the quotient of two values.
    fn divide(&self, a: &str, b: &str) -> String {
        format!("{a} / {b}")
    }

    /// Returns the quotient of two values, of which a choice of the formula compares the second.
    fn divide_asked(&self, a: &str, b: &str) -> String {
        self.divide(a, b)
    }

    /// Returns the quotient of a value and a constant.
    fn divide_by(&self, dtype: DType, a: &str, constant: f64) -> String {
        self.divide(a, &self.literal(dtype, constant))
    }

    /// Returns the function or sign of an operator of one operand.
    fn function(&self, op: Unary) -> &'static str {
        self.own(op.c(), op.wgsl())
    }

    /// Returns the cell's coordinate along an axis of the padded three, as a number of the type.
    fn coordinate(&self, dtype: DType, axis: u8) -> String;

    /// Returns the expression for a parameter's value.
    fn parameter(&self, number: u16) -> String;
}

/// How a body asks for a choice in few cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// The name that says whether any of the cells that the body computes makes it.
    pub by: &'static str,
    /// What stands for the comparison of the cell's index.
    pub instead: Option<String>,
}

/// A formula as statements that declare locals, and the names of its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Formula {
    /// Declarations of locals.
    pub statements: Vec<String>,
    /// For each output, an expression (a local, tap or literal) that holds its value.
    pub outputs: Vec<String>,
    /// Where the formula makes choices at single indices of the axis of [`Language::placed`].
    pub places: Vec<Place>,
}

/// Writes a formula in a language; `tap` gives the text that reads an old value. The formula should be
/// simplified for `dtype` already: constants are then values of the type.
pub fn formula(dag: &Dag, language: &dyn Language, dtype: DType, tap: impl FnMut(Tap) -> String) -> Formula {
    part(&dag.nodes, &dag.outputs, |_| None, language, dtype, tap)
}

/// Writes those of a formula's nodes that `outputs` need, except nodes whose value is already `known` by a
/// name.
pub fn part(
    nodes: &[Node],
    outputs: &[Id],
    known: impl Fn(Id) -> Option<String>,
    language: &dyn Language,
    dtype: DType,
    mut tap: impl FnMut(Tap) -> String,
) -> Formula {
    let mut needed = vec![false; nodes.len()];
    outputs.iter().for_each(|&id| needed[id as usize] = true);
    let mut names: Vec<String> = (0..nodes.len()).map(|id| format!("v{id}")).collect();
    let mut singles = Singles::of(nodes, language, dtype);
    let mut computed = vec![false; nodes.len()];
    for id in (0..nodes.len()).rev() {
        match known(id as Id).filter(|_| needed[id]) {
            Some(name) => names[id] = name,
            None if needed[id] => {
                computed[id] = true;
                let node = singles.operation(id).unwrap_or(nodes[id]);
                node.operands().for_each(|operand| needed[operand as usize] = true);
            }
            None => {}
        }
    }
    let branches = branch::of(nodes, outputs, &singles.with_operations(nodes, &computed));
    // What the conditions of choices compare.
    let mut is_asked = vec![false; nodes.len()];
    for node in nodes {
        if let Node::Select(condition, ..) = *node
            && let Node::Binary(op, a, b) = nodes[condition as usize]
            && op.relation().is_some()
        {
            is_asked[a as usize] = true;
            is_asked[b as usize] = true;
        }
    }
    // The statements of what stands in no branch, and then of each that is open.
    let mut statements: Vec<Vec<String>> = vec![Vec::new(); nodes.len() + 1];
    for (number, &node) in nodes.iter().enumerate().filter(|(number, _)| computed[*number]) {
        let at = |id: Id| names[id as usize].as_str();
        let comparison = |id: Id| match nodes[id as usize] {
            Node::Binary(op, a, b) if computed[id as usize] => {
                op.relation().map(|sign| format!("{} {sign} {}", at(a), at(b)))
            }
            _ => None,
        };
        if let Node::Const(c) = node {
            names[number] = language.literal(dtype, c.value());
            continue;
        }
        let within = branches[number].map_or(0, |branch| branch + 1);
        let inside = std::mem::take(&mut statements[number + 1]);
        // Within a branch the outer choice has asked.
        let made = choice(nodes, number as Id).filter(|_| branches[number].is_none());
        let told = made.and_then(|(axis, cells)| language.told(axis, cells));
        let asked = |condition: String| match &told {
            Some(Told { by, instead: Some(instead) }) => format!("{by} && {instead}"),
            Some(Told { by, instead: None }) => format!("{by} && {condition}"),
            None => condition,
        };
        if let Node::Select(condition, yes, no) = node
            && !inside.is_empty()
            && let Some(condition) = comparison(condition)
            && let Some(declared) = language.variable(dtype, &names[number], at(no))
        {
            let set = format!("{} = {};", names[number], at(yes));
            let condition = asked(condition);
            let [c, wgsl] = [format!("if ({condition}) {{"), format!("if {condition} {{")];
            let begin = language.own(&c, &wgsl).to_owned();
            statements[within].extend([format!("{declared};"), begin]);
            statements[within].extend(inside);
            statements[within].extend([set, "}".to_owned()]);
            continue;
        }
        statements[within].extend(inside);
        if let Some(value) = singles.value(number, nodes, &names, comparison, language) {
            statements[within].push(format!("{};", language.declare(DType::F32, &names[number], &value)));
            names[number] = singles.declare(number, &names[number], language.real(dtype));
            continue;
        }
        let holds = |id: Id| comparison(id).map(asked);
        let quotient = match node {
            Node::Binary(Binary::Div, a, b) => match nodes[b as usize] {
                Node::Const(c) => Some(language.divide_by(dtype, at(a), c.value())),
                _ if is_asked[b as usize] => Some(language.divide_asked(at(a), at(b))),
                _ => None,
            },
            _ => None,
        };
        let value = quotient.unwrap_or_else(|| value(node, &at, holds, language, dtype, &mut tap));
        statements[within].push(format!("{};", language.declare(dtype, &names[number], &value)));
    }
    let statements = std::mem::take(&mut statements[0]);
    let places =
        language.placed().map_or(Vec::new(), |axis| branch::places(nodes, &computed, &branches, axis));
    Formula { statements, outputs: outputs.iter().map(|&id| names[id as usize].clone()).collect(), places }
}

/// Returns the expression of an operation; `at` has the names of its operands, `comparison` the condition that an operand
/// is, if it is one that the statements before have.
pub(crate) fn value<'n>(
    node: Node,
    at: &impl Fn(Id) -> &'n str,
    comparison: impl Fn(Id) -> Option<String>,
    language: &dyn Language,
    dtype: DType,
    tap: &mut impl FnMut(Tap) -> String,
) -> String {
    let truth =
        |holds: &str| language.choose(holds, &language.literal(dtype, 1.0), &language.literal(dtype, 0.0));
    match node {
        Node::Const(c) => language.literal(dtype, c.value()),
        Node::Param(p) => language.parameter(p),
        Node::Tap(t) => tap(t),
        Node::Coord(axis) => language.coordinate(dtype, axis),
        Node::Unary(op, a) => match language.function(op) {
            "-" => format!("-{}", at(a)),
            function => format!("{function}({})", at(a)),
        },
        Node::Binary(op, a, b) => {
            let (a, b) = (at(a), at(b));
            match op.text() {
                Text::Infix("/") => language.divide(a, b),
                Text::Infix(sign) => format!("{a} {sign} {b}"),
                Text::Call(c, wgsl) => format!("{}({a}, {b})", language.own(c, wgsl)),
                Text::Choose(sign) => language.choose(&format!("{a} {sign} {b}"), a, b),
                Text::Relation(sign) => truth(&format!("{a} {sign} {b}")),
            }
        }
        Node::Fma(a, b, c) => format!("fma({}, {}, {})", at(a), at(b), at(c)),
        Node::Draw(draw, operands) => {
            let [z, y, x, seed, step, turn] = operands.map(at);
            let key = format!("{}u, {}u", draw.stream, draw.part);
            format!("drawn({z}, {y}, {x}, {seed}, {step}, {turn}, {key})")
        }
        Node::Select(c, yes, no) => {
            // A comparison stands as the condition itself instead of being turned into 1 or 0 and back.
            let zero = language.literal(dtype, 0.0);
            let condition = comparison(c).unwrap_or_else(|| format!("{} != {zero}", at(c)));
            language.choose(&condition, at(yes), at(no))
        }
    }
}
