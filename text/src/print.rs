//! Formulas as text: what `formula` reads back as the same graph.

use std::fmt::Write;

use abide_core::domain::axis_name;
use abide_core::expr::{Binary, Dag, Draw, Id, Node, Text, Unary};
use abide_core::{Error, Result};

use crate::formula::{BINARY, NUMBERS, written};

/// The most brackets within brackets that are written; deeper parts get names.
const DEPTH: usize = 6;

/// The longest part of a formula that is written within another one, in bytes; longer ones get names.
const LENGTH: usize = 160;

/// The longest formula that is written in one line, in bytes.
const MOST_WHOLE: usize = 1 << 13;

/// How strongly the parts of a text bind, weakest first.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Strength {
    Relation,
    Sum,
    Product,
    Sign,
    Whole,
}

/// The text of a node.
#[derive(Clone)]
struct Part {
    text: String,
    strength: Strength,
    /// Brackets within brackets.
    depth: usize,
}

/// The names of a program that formulas use.
pub(crate) struct Names<'a> {
    pub dimensions: usize,
    /// Fields and temporaries by their numbers in taps.
    pub fields: &'a [String],
    /// Parameters and scalars by their numbers.
    pub scalars: &'a [String],
    /// Whether a field's values stand where the formula's do, so that its name alone is its value here.
    pub stands_alike: &'a dyn Fn(usize) -> bool,
}

/// The lines of a stage.
pub(crate) struct Lines {
    /// Local names and their formulas, in order.
    pub locals: Vec<(String, String)>,
    /// The formulas of the outputs.
    pub outputs: Vec<String>,
}

/// Writes the outputs of a formula, each as a whole. Equal parts are read back as one.
pub(crate) fn whole_lines(dag: &Dag, names: &Names<'_>) -> Result<Vec<String>> {
    let mut parts: Vec<Part> = Vec::with_capacity(dag.nodes.len());
    for &node in &dag.nodes {
        let part = part(node, &parts, names)?;
        if part.text.len() > MOST_WHOLE {
            let change = "name parts of it as scalars that a stage computes";
            return Err(Error::limit("bytes of a formula in one line", part.text.len(), MOST_WHOLE, change));
        }
        parts.push(part);
    }
    Ok(dag.outputs.iter().map(|&id| parts[id as usize].text.clone()).collect())
}

/// Writes a formula; a part that is used more than once gets a name of its own.
pub(crate) fn lines(dag: &Dag, names: &Names<'_>) -> Result<Lines> {
    let mut uses = vec![0_usize; dag.nodes.len()];
    let operands = dag.nodes.iter().flat_map(|node| node.operands());
    operands.chain(dag.outputs.iter().copied()).for_each(|id| uses[id as usize] += 1);
    let mut locals = Vec::new();
    let mut parts: Vec<Part> = Vec::with_capacity(dag.nodes.len());
    for (id, &node) in dag.nodes.iter().enumerate() {
        let part = part(node, &parts, names)?;
        let is_leaf = node.operands().next().is_none();
        let is_shared = !is_leaf && uses[id] > 1;
        parts.push(match is_shared || part.depth > DEPTH || part.text.len() > LENGTH && !is_leaf {
            true => {
                let taken = |name: &String| names.fields.contains(name) || names.scalars.contains(name);
                let mut name = format!("t{}", locals.len() + 1);
                while taken(&name) {
                    name.push('_');
                }
                locals.push((name.clone(), part.text));
                Part { text: name, strength: Strength::Whole, depth: 0 }
            }
            false => part,
        });
    }
    let outputs = dag.outputs.iter().map(|&id| parts[id as usize].text.clone()).collect();
    Ok(Lines { locals, outputs })
}

fn part(node: Node, parts: &[Part], names: &Names<'_>) -> Result<Part> {
    let whole = |text: String| Ok(Part { text, strength: Strength::Whole, depth: 0 });
    match node {
        Node::Const(constant) => {
            let value = constant.value();
            let text = if value.is_nan() { "nan".to_owned() } else { format!("{value:?}") };
            let word = text.trim_start_matches('-');
            if NUMBERS.contains(&word) && names.fields.iter().chain(names.scalars).any(|name| name == word) {
                let reason = format!("{value} is a literal, and a name of the program");
                return Err(Error::invalid("formula", reason, "give the field or scalar another name"));
            }
            let strength = if text.starts_with('-') { Strength::Sign } else { Strength::Whole };
            Ok(Part { text, strength, depth: 0 })
        }
        Node::Param(number) => whole(written(&names.scalars[usize::from(number)]).into_owned()),
        Node::Coord(axis) => whole(format!("coord({})", axis_name(usize::from(axis)))),
        Node::Tap(tap) => {
            let field = usize::from(tap.field);
            let mut text = written(&names.fields[field]).into_owned();
            let offset = &tap.offset[3 - names.dimensions..];
            if offset.iter().any(|&o| o != 0) || !(names.stands_alike)(field) {
                let offset: Vec<String> = offset.iter().map(i32::to_string).collect();
                write!(text, "[{}]", offset.join(",")).ok();
            }
            whole(text)
        }
        Node::Unary(Unary::Neg, a) => {
            let operand = &parts[a as usize];
            // A sign before a number is the number's.
            let is_number = operand.text.starts_with(|first: char| first.is_ascii_digit())
                || NUMBERS.contains(&&*operand.text);
            // More than a sign or two are no formula that is read.
            let is_signed = operand.text.starts_with('-');
            let weakest = if is_number || is_signed { None } else { Some(Strength::Sign) };
            let operand = bracketed(operand, weakest);
            Ok(Part { text: format!("-{}", operand.text), strength: Strength::Sign, depth: operand.depth })
        }
        Node::Unary(op, a) => call(op.name(), &[a], parts),
        Node::Fma(a, b, c) => call("fma", &[a, b, c], parts),
        Node::Select(a, b, c) => call("where", &[a, b, c], parts),
        // The other operands are the cell's place and what counts the steps.
        Node::Draw(Draw { stream, part }, _) => {
            whole(if part == 0 { format!("uniform({stream})") } else { format!("uniform({stream}, {part})") })
        }
        Node::Binary(op, a, b) => {
            let (sign, strength) = match (op, op.text()) {
                (_, Text::Relation(sign)) => (sign, Strength::Relation),
                (Binary::Add, _) => ("+", Strength::Sum),
                (Binary::Sub, _) => ("-", Strength::Sum),
                (Binary::Mul, _) => ("*", Strength::Product),
                (Binary::Div, _) => ("/", Strength::Product),
                _ => {
                    let name = BINARY.iter().find(|(_, known)| *known == op).map(|(name, _)| *name);
                    let missing = || Error::invalid("formula", format!("{op:?} has no text"), "report it");
                    return call(name.ok_or_else(missing)?, &[a, b], parts);
                }
            };
            let next = match strength {
                Strength::Relation => Strength::Sum,
                Strength::Sum => Strength::Product,
                _ => Strength::Sign,
            };
            // Relations do not follow each other; other operators go from left to right.
            let left = if strength == Strength::Relation { next } else { strength };
            let left = bracketed(&parts[a as usize], Some(left));
            let right = bracketed(&parts[b as usize], Some(next));
            let text = match strength {
                Strength::Product => format!("{}{sign}{}", left.text, right.text),
                _ => format!("{} {sign} {}", left.text, right.text),
            };
            Ok(Part { text, strength, depth: left.depth.max(right.depth) })
        }
    }
}

fn call(name: &str, operands: &[Id], parts: &[Part]) -> Result<Part> {
    let operands: Vec<&Part> = operands.iter().map(|&id| &parts[id as usize]).collect();
    let texts: Vec<&str> = operands.iter().map(|part| &*part.text).collect();
    let depth = 1 + operands.iter().map(|part| part.depth).max().unwrap_or(0);
    Ok(Part { text: format!("{name}({})", texts.join(", ")), strength: Strength::Whole, depth })
}

/// Returns the part in brackets unless it binds at least so strongly.
fn bracketed(part: &Part, weakest: Option<Strength>) -> Part {
    match weakest.is_some_and(|weakest| part.strength >= weakest) {
        true => part.clone(),
        false => Part { text: format!("({})", part.text), strength: Strength::Whole, depth: part.depth + 1 },
    }
}
