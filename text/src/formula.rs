//! Formulas: from text to the nodes of a graph.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use abide_core::Scope;
use abide_core::domain::axis_name;
use abide_core::expr::{Binary, COMPOSED, Composed, Expr, Index, Node, Unary};
use abide_core::program::{Centring, DISTRIBUTIONS, Distribution, MAX_STREAMS, Reduction};
use pest::Parser;
use pest::error::{ErrorVariant, InputLocation};
use pest::iterators::{Pair, Pairs};
use pest::pratt_parser::{Assoc, Op, PrattParser};

use crate::fault::Fault;
use crate::loops::{Constants, Number};

#[derive(pest_derive::Parser)]
#[grammar = "formula.pest"]
struct Grammar;

/// The most brackets within brackets, powers of powers, and signs one after another: reading them takes stack.
const MOST_NESTED: usize = 64;

/// The largest exponent whose power is a product; others are computed by the operator `pow`.
const LARGEST_PRODUCT: f64 = 64.0;

/// The operators of two operands.
const INFIX: [(Rule, Binary); 10] = [
    (Rule::plus, Binary::Add),
    (Rule::minus, Binary::Sub),
    (Rule::times, Binary::Mul),
    (Rule::over, Binary::Div),
    (Rule::less, Binary::Less),
    (Rule::at_most, Binary::LessEqual),
    (Rule::greater, Binary::Greater),
    (Rule::at_least, Binary::GreaterEqual),
    (Rule::equal, Binary::Equal),
    (Rule::unequal, Binary::NotEqual),
];

/// The functions of two operands.
pub(crate) const BINARY: [(&str, Binary); 4] =
    [("min", Binary::Min), ("max", Binary::Max), ("pow", Binary::Pow), ("atan2", Binary::Atan2)];

/// The functions that are no operators of one or two operands.
const OTHERS: [&str; 6] = ["fma", "where", "coord", "laplacian", "d", "d2"];

/// The random number that has a probability beside its stream.
const BERNOULLI: &str = "bernoulli";

/// The reductions of a region to a scalar; `dot` is the sum of the products of two formulas.
const REDUCTIONS: [(&str, Reduction, usize); 4] = [
    ("sum", Reduction::Sum, 1),
    ("min", Reduction::Min, 1),
    ("max", Reduction::Max, 1),
    ("dot", Reduction::Sum, 2),
];

/// The numbers that are words, unless the model gives the words another meaning.
pub(crate) const NUMBERS: [&str; 2] = ["inf", "nan"];

/// From the weakest to the strongest, as in Python.
static PRECEDENCE: LazyLock<PrattParser<Rule>> = LazyLock::new(|| {
    let infix = |rule| Op::infix(rule, Assoc::Left);
    let relations = [Rule::at_most, Rule::greater, Rule::at_least, Rule::equal, Rule::unequal];
    PrattParser::new()
        .op(relations.into_iter().fold(infix(Rule::less), |all, rule| all | infix(rule)))
        .op(infix(Rule::plus) | infix(Rule::minus))
        .op(infix(Rule::times) | infix(Rule::over))
        .op(Op::prefix(Rule::negative) | Op::prefix(Rule::positive))
        .op(Op::infix(Rule::power, Assoc::Right))
});

/// Returns a name as formulas write it: in backquotes unless it is a word, or a component's as in `Y[3]`.
pub(crate) fn written(name: &str) -> Cow<'_, str> {
    let is_component = |number: &str| number.strip_suffix(']').is_some_and(|n| n.parse::<u32>().is_ok());
    let word = name.split_once('[').filter(|(_, number)| is_component(number)).map_or(name, |(word, _)| word);
    let is_word = word.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        && !word.starts_with(|letter: char| letter.is_ascii_digit());
    if is_word { name.into() } else { format!("`{name}`").into() }
}

/// What the names of a formula mean.
pub(crate) struct Meaning<'a, 'g> {
    pub scope: &'a Scope<'g>,
    /// Fields and temporaries; a component's name is as `Y[3]`.
    pub fields: &'a [String],
    /// Parameters and computed scalars.
    pub scalars: &'a [String],
    /// Values that the stage has named before.
    pub locals: &'a [(String, Expr<'g>)],
    /// Tables of constants.
    pub tables: &'a [Constants],
    /// The indices of the loops around a formula.
    pub indices: &'a [(String, Index<'g>)],
    /// Where the values of a formula of cells stand, whose places are `x`, `y` and `z`.
    pub on: Option<Centring>,
}

/// A part of a formula.
pub(crate) struct Value<'g> {
    pub expr: Expr<'g>,
    /// The number that it is, with its sign.
    number: Option<f64>,
    /// Whether it is a number without sign and brackets: a sign before it is the number's.
    is_bare: bool,
    /// The place of the relation that it is, unless in brackets.
    relation: Option<Range<usize>>,
}

impl<'g> From<Expr<'g>> for Value<'g> {
    fn from(expr: Expr<'g>) -> Self {
        Value { expr, number: None, is_bare: false, relation: None }
    }
}

/// A formula that a reduction makes a scalar of.
pub(crate) struct Reduced<'t> {
    pub reduction: Reduction,
    formulas: Pairs<'t, Rule>,
}

/// Reads a formula.
pub(crate) fn read<'g>(text: &str, meaning: &Meaning<'_, 'g>) -> Result<Expr<'g>, Fault> {
    Ok(meaning.value(parse(text)?)?.expr)
}

/// Returns the reduction that a formula is as a whole, as in `max(abs(u))`; `None` if it is none.
pub(crate) fn reduced(text: &str) -> Result<Option<Reduced<'_>>, Fault> {
    let mut parts = parse(text)?.into_inner();
    let (Some(first), None) = (parts.next(), parts.next()) else { return Ok(None) };
    if first.as_rule() != Rule::call {
        return Ok(None);
    }
    let mut formulas = first.into_inner();
    let name = formulas.next().map_or("", |name| name.as_str());
    // What has a loop is a value.
    if formulas.clone().any(|formula| formula.as_rule() == Rule::turns) {
        return Ok(None);
    }
    let known = REDUCTIONS.iter().find(|(known, _, count)| *known == name && *count == formulas.len());
    Ok(known.map(|&(_, reduction, _)| Reduced { reduction, formulas }))
}

impl Reduced<'_> {
    /// Reads what is reduced.
    pub fn read<'g>(self, meaning: &Meaning<'_, 'g>) -> Result<Expr<'g>, Fault> {
        let factors = self.formulas.map(|formula| Ok(meaning.value(formula)?.expr));
        let product = factors.reduce(|product, factor| Ok(product? * factor?));
        product.unwrap_or_else(|| Ok(meaning.scope.constant(0.0)))
    }
}

/// Returns the expression that a text is.
fn parse(text: &str) -> Result<Pair<'_, Rule>, Fault> {
    check_nesting(text)?;
    let whole = 0..text.len();
    let mut parsed = Grammar::parse(Rule::formula, text).map_err(|error| {
        let at = match error.location {
            InputLocation::Pos(at) => at..at,
            InputLocation::Span((from, to)) => from..to,
        };
        let expected = match &error.variant {
            ErrorVariant::ParsingError { positives, .. } => expected(positives),
            ErrorVariant::CustomError { message } => message.clone(),
        };
        let found = text[at.start..].chars().next();
        let found = found.map_or("the formula ends".to_owned(), |found| format!("`{found}` stands"));
        Fault::new(at, format!("{found} where {expected} should be"), advice(text))
    })?;
    parsed.next().ok_or_else(|| Fault::new(whole, "the formula is empty", "write one, as in u + 0.1*v"))
}

fn check_nesting(text: &str) -> Result<(), Fault> {
    let (mut depth, mut powers, mut signs) = (0_usize, 0, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'-' | b'+' => signs += 1,
            _ if byte.is_ascii_whitespace() => {}
            _ => signs = 0,
        }
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b'*' if text.as_bytes().get(at + 1) == Some(&b'*') => powers += 1,
            _ => {}
        }
        if depth.max(powers).max(signs) > MOST_NESTED {
            let reason = format!("it has more than {MOST_NESTED} brackets within brackets, powers, or signs");
            return Err(Fault::new(at..at + 1, reason, "name parts of it in lines before this one"));
        }
    }
    Ok(())
}

/// Returns in words what a formula might go on with.
fn expected(rules: &[Rule]) -> String {
    let has = |rule: Rule| rules.contains(&rule);
    let is_operator = |rule: &Rule| *rule == Rule::power || INFIX.iter().any(|(infix, _)| infix == rule);
    let mut words = Vec::new();
    if has(Rule::number) || has(Rule::value) || has(Rule::expression) {
        words.push("a value");
    }
    if rules.iter().any(is_operator) {
        words.push("an operator");
    }
    if has(Rule::whole) {
        words.push("a whole number");
    }
    if has(Rule::for_) {
        words.push("`for i in range(…)`");
    }
    if has(Rule::in_) || has(Rule::range) {
        words.push("`in range(…)`");
    }
    if has(Rule::EOI) {
        words.push("the end");
    }
    if words.is_empty() {
        words.push("a bracket or a comma");
    }
    words.join(" or ")
}

/// Returns what is often meant by signs that formulas do not have.
fn advice(text: &str) -> String {
    let known = [
        ("^", "write a power as u**2"),
        ("&", "write `and` as a product, as in (a > 0) * (b > 0)"),
        ("|", "write `or` as max(a > 0, b > 0)"),
        ("!", "write `not` as a == 0, and `differs` as a != b"),
        ("=", "write equality as a == b"),
    ];
    let found = known.iter().find(|(sign, _)| text.replace("!=", "").replace("==", "").contains(sign));
    found.map_or("write formulas as in u + k*(u[-1,0] - 2*u + u[1,0])", |(_, words)| words).to_owned()
}

/// Returns the text of a part, without the blanks before the next one.
fn word<'t>(pair: &Pair<'t, Rule>) -> &'t str {
    pair.as_str().trim_end()
}

/// Returns the bytes of the text that a part is.
pub(crate) fn range(pair: &Pair<'_, Rule>) -> Range<usize> {
    let start = pair.as_span().start();
    start..start + word(pair).len()
}

impl<'g> Meaning<'_, 'g> {
    pub(crate) fn is_known(&self, name: &str) -> bool {
        let locals = self.locals.iter().map(|(local, _)| local);
        self.fields.iter().chain(self.scalars).chain(locals).any(|known| known == name)
    }

    pub(crate) fn value(&self, expression: Pair<'_, Rule>) -> Result<Value<'g>, Fault> {
        PRECEDENCE
            .map_primary(|primary| self.primary(primary))
            .map_prefix(|sign, value| Ok(self.signed(sign.as_rule() == Rule::negative, value?)))
            .map_infix(|left, sign, right| self.operated(left?, &sign, right?))
            .parse(expression.into_inner())
    }

    fn primary(&self, primary: Pair<'_, Rule>) -> Result<Value<'g>, Fault> {
        match primary.as_rule() {
            Rule::number => self.number(&primary),
            Rule::value if NUMBERS.contains(&word(&primary)) && !self.is_known(word(&primary)) => {
                self.number(&primary)
            }
            Rule::call => self.call(primary),
            Rule::value => self.read(primary).map(Value::from),
            _ => {
                let at = range(&primary);
                let inner = primary.into_inner().next();
                let inner = inner.ok_or_else(|| Fault::new(at, "the brackets are empty", "write a value"))?;
                Ok(Value { is_bare: false, relation: None, ..self.value(inner)? })
            }
        }
    }

    fn number(&self, text: &Pair<'_, Rule>) -> Result<Value<'g>, Fault> {
        let number: f64 = word(text).parse().map_err(|_| {
            Fault::new(range(text), format!("`{}` is no number", word(text)), "write it like 0.25 or 1e-3")
        })?;
        let expr = self.scope.constant(number);
        Ok(Value { expr, number: Some(number), is_bare: true, relation: None })
    }

    fn signed(&self, is_negative: bool, value: Value<'g>) -> Value<'g> {
        match (is_negative, value.number) {
            (false, _) => Value { is_bare: false, ..value },
            (true, Some(number)) if value.is_bare => {
                let expr = self.scope.constant(-number);
                Value { expr, number: Some(-number), is_bare: false, relation: None }
            }
            (true, _) => (-value.expr).into(),
        }
    }

    fn operated(&self, left: Value<'g>, sign: &Pair<'_, Rule>, right: Value<'g>) -> Result<Value<'g>, Fault> {
        let Some(&(_, operator)) = INFIX.iter().find(|(rule, _)| *rule == sign.as_rule()) else {
            return Ok(self.power(left.expr, &right).into());
        };
        let expr = binary(operator, left.expr, right.expr);
        if operator.relation().is_none() {
            return Ok(expr.into());
        }
        match left.relation.or(right.relation) {
            Some(_) => {
                let reason = "two relations follow each other, which compares a truth with a number";
                Err(Fault::new(range(sign), reason, "write both, as in (a < b) * (b < c)"))
            }
            None => Ok(Value { relation: Some(range(sign)), ..Value::from(expr) }),
        }
    }

    /// Returns a power: a product for small whole exponents, a root where it is one, so that all backends agree to
    /// the bit.
    fn power(&self, base: Expr<'g>, exponent: &Value<'g>) -> Expr<'g> {
        match exponent.number {
            Some(number) if number.fract() == 0.0 && number.abs() <= LARGEST_PRODUCT => {
                base.powi(number as i32)
            }
            Some(0.5) => base.sqrt(),
            _ => base.pow(exponent.expr),
        }
    }

    fn call(&self, call: Pair<'_, Rule>) -> Result<Value<'g>, Fault> {
        let at = range(&call);
        let mut arguments = call.clone().into_inner();
        let name = arguments.next().map_or("", |name| name.as_str());
        let all: Vec<Pair<'_, Rule>> = arguments.clone().collect();
        if let Some((turns, terms)) = all.split_last().filter(|(last, _)| last.as_rule() == Rule::turns) {
            return self.folded(&call, name, terms, turns.clone()).map(Value::from);
        }
        let count = arguments.len();
        let wrong = |expected: usize| {
            let reason = format!("{name} has {count} operands, and takes {expected}");
            Fault::new(at.clone(), reason, "give it as many")
        };
        let takes = |expected: usize| if count == expected { Ok(()) } else { Err(wrong(expected)) };
        match name {
            "coord" => {
                takes(1)?;
                let text = arguments.as_str().trim();
                let axis = axis(text, self.scope.dimensions(), at)?;
                return Ok(self.scope.coord(axis).into());
            }
            "laplacian" => {
                takes(1)?;
                let text = arguments.as_str().trim();
                let field = self.fields.iter().find(|field| *field == text);
                let field = field.ok_or_else(|| Fault::unknown(at.clone(), "field", text, self.fields))?;
                return Ok(self.scope.field(field).laplacian().into());
            }
            "d" | "d2" => {
                takes(2)?;
                let (Some(of), Some(along)) = (arguments.next(), arguments.next()) else {
                    return Err(wrong(2));
                };
                let axis = axis(word(&along), self.scope.dimensions(), range(&along))?;
                let of = self.value(of)?.expr;
                let derivative = match name {
                    "d" => self.scope.derivative(of, axis),
                    _ => self.scope.second_derivative(of, axis),
                };
                return Ok(derivative.into());
            }
            _ if name == BERNOULLI || Distribution::named(name).is_some() => {
                return self.random(name, &all, at).map(Value::from);
            }
            _ => {}
        }
        let values = arguments.map(|argument| Ok(self.value(argument)?.expr));
        let values: Vec<Expr<'g>> = values.collect::<Result<_, Fault>>()?;
        if let Some(row) = Composed::named(name) {
            return row.of(&values).map(Value::from).ok_or_else(|| wrong(row.operands));
        }
        let unary = Unary::ALL.iter().find(|op| **op != Unary::Neg && op.name() == name);
        let operator = BINARY.iter().find(|(known, _)| *known == name);
        let expr = match (name, unary, operator, values.as_slice()) {
            (_, Some(&op), _, &[a]) => a.graph().computed(Node::Unary(op, a.id())),
            (_, Some(_), ..) => return Err(wrong(1)),
            (_, _, Some(&(_, op)), &[a, b]) => binary(op, a, b),
            ("min" | "max", _, Some(_), [_]) => {
                let reason = format!("{name} of one value is a reduction, which makes a scalar as a whole");
                let change = format!(
                    "write it as a scalar's formula alone, {name} of two values, or {name}(x[i] for i in range(5))"
                );
                return Err(Fault::new(at, reason, change));
            }
            (_, _, Some(_), _) => return Err(wrong(2)),
            ("fma", .., &[a, b, c]) => a.mul_add(b, c),
            ("where", .., &[condition, yes, no]) => condition.select(yes, no),
            ("fma" | "where", ..) => return Err(wrong(3)),
            ("sum" | "dot", ..) => {
                let reason = format!("{name} is a reduction, which makes a scalar as a whole");
                let change =
                    "write it as a scalar's formula alone, or over components as sum(x[i] for i in range(5))";
                return Err(Fault::new(at, reason, change));
            }
            _ => {
                let unary = Unary::ALL.iter().filter(|op| **op != Unary::Neg).map(|op| op.name());
                let composed = COMPOSED.iter().map(|row| row.name);
                let known = unary
                    .chain(BINARY.iter().map(|(name, _)| *name))
                    .chain(composed)
                    .chain(OTHERS)
                    .chain(DISTRIBUTIONS.iter().map(|row| row.name))
                    .chain([BERNOULLI]);
                return Err(Fault::unknown(at, "function", name, known));
            }
        };
        Ok(expr.into())
    }

    /// Returns a random number of a cell and step.
    fn random(&self, name: &str, operands: &[Pair<'_, Rule>], at: Range<usize>) -> Result<Expr<'g>, Fault> {
        let values = operands.iter().map(|operand| self.value(operand.clone()));
        let values: Vec<Value<'g>> = values.collect::<Result<_, Fault>>()?;
        let whole = |number: usize| {
            let given = values.get(number)?.number?;
            (given >= 0.0 && given.fract() == 0.0 && given < MAX_STREAMS as f64).then_some(given as usize)
        };
        match (Distribution::named(name), whole(0), values.as_slice()) {
            (Some(row), Some(stream), [_]) => Ok((row.draw)(self.scope, stream)),
            (Some(_), Some(stream), [_, _]) if name == "uniform" && whole(1).is_some_and(|part| part < 2) => {
                Ok(self.scope.drawn(stream, whole(1).unwrap_or(0)))
            }
            (None, Some(stream), [_, probability]) => Ok(self.scope.bernoulli(stream, probability.expr)),
            _ => {
                let reason = format!("{name} takes the number of a stream, 0 to {}", MAX_STREAMS - 1);
                let change = match name {
                    BERNOULLI => "write it as bernoulli(0, 0.25), with the stream and the probability",
                    _ => {
                        "write it as uniform(0), normal(1) or exponential(2): each stream has numbers of its own"
                    }
                };
                Err(Fault::new(at, reason, change))
            }
        }
    }

    /// Returns a field's value, a parameter's, a scalar's or that of a local name.
    fn read(&self, value: Pair<'_, Rule>) -> Result<Expr<'g>, Fault> {
        let at = range(&value);
        let mut parts = value.into_inner();
        let name = parts.next().map_or("", |name| name.as_str().trim_matches('`'));
        let mut brackets = Vec::new();
        for part in parts {
            let place = range(&part);
            let numbers = part.into_inner().map(|number| self.number_in_brackets(number));
            brackets.push((place, numbers.collect::<Result<Vec<Number<'g>>, Fault>>()?));
        }
        if let Some(table) = self.tables.iter().find(|table| table.name == name) {
            let (place, numbers) = brackets.first().cloned().unwrap_or((at.clone(), Vec::new()));
            return match brackets.get(1) {
                Some((place, _)) => {
                    let reason = format!("{name} is a table, and has no value at an offset");
                    Err(Fault::new(place.clone(), reason, "leave the offset out"))
                }
                None => self.entry(table, place, &numbers),
            };
        }
        if let Some((_, index)) = self.indices.iter().find(|(index, _)| index == name) {
            return match brackets.first() {
                Some((place, _)) => {
                    let reason = format!("{name} is the index of a loop, and has no value at an offset");
                    Err(Fault::new(place.clone(), reason, "leave the brackets out"))
                }
                None => Ok(index.value()),
            };
        }
        if self.has_components(name)
            && let Some((place, numbers)) = brackets.first()
            && let [Number::Index(index)] = numbers[..]
        {
            let offset = match brackets.get(1) {
                None => vec![0; self.scope.dimensions()],
                Some((place, numbers)) => self.offset(place, numbers)?,
            };
            if let Some((place, _)) = brackets.get(2) {
                let reason = "a second offset follows the first";
                return Err(Fault::new(place.clone(), reason, "write the sum of both"));
            }
            return self.component(self.scope.components_at(name, &offset), place.clone(), index);
        }
        let whole = |(place, numbers): (Range<usize>, Vec<Number<'g>>)| {
            let numbers = numbers.into_iter().map(|number| match number {
                Number::Whole(number) => Ok(number),
                Number::Index(_) => {
                    let reason = format!("{name} has no components, and no index reads an offset");
                    Err(Fault::new(place.clone(), reason, "write a number, or declare components"))
                }
            });
            let numbers = numbers.collect::<Result<Vec<i32>, Fault>>()?;
            Ok((place, numbers))
        };
        let brackets = brackets.into_iter().map(whole).collect::<Result<Vec<_>, Fault>>()?;
        let mut brackets = brackets.into_iter().peekable();
        let is_known = |name: &str| self.fields.iter().any(|field| field == name);
        let mut field = name.to_owned();
        if !is_known(name)
            && let Some((_, numbers)) = brackets.peek()
            && let [number] = numbers[..]
            && is_known(&format!("{name}[{number}]"))
        {
            field = format!("{name}[{number}]");
            brackets.next();
        }
        let offset = brackets.next();
        if let Some((place, _)) = brackets.next() {
            return Err(Fault::new(place, "a second offset follows the first", "write the sum of both"));
        }
        if is_known(&field) {
            let field = self.scope.field(&field);
            return match offset {
                None => Ok(field.here()),
                Some((place, offset)) if offset.len() != self.scope.dimensions() => {
                    let axes = self.scope.dimensions();
                    let reason = format!("the offset has {} numbers, the model {axes} axes", offset.len());
                    Err(Fault::new(place, reason, "give one for each axis, slowest first"))
                }
                Some((_, offset)) => Ok(field.at_slice(&offset)),
            };
        }
        let local = self.locals.iter().find(|(local, _)| local == name).map(|(_, expr)| *expr);
        let scalar = || self.scalars.iter().any(|known| known == name).then(|| self.scope.param(name));
        match (local.or_else(scalar).or_else(|| self.place(name)), offset) {
            (Some(expr), None) => Ok(expr),
            (Some(_), Some((place, _))) => {
                let reason = format!("{name} is no field, and has no value at an offset");
                Err(Fault::new(place, reason, "make it a temporary, or leave the offset out"))
            }
            (None, _) => {
                let locals = self.locals.iter().map(|(local, _)| local);
                let known = self.fields.iter().chain(self.scalars).chain(locals);
                Err(Fault::unknown(at, "value", name, known))
            }
        }
    }
}

impl<'g> Meaning<'_, 'g> {
    /// Returns the place of the formula's values along an axis of this name.
    fn place(&self, name: &str) -> Option<Expr<'g>> {
        let dimensions = self.scope.dimensions();
        let axis = (3 - dimensions..3).position(|axis| axis_name(axis) == name)?;
        self.on.map(|on| self.scope.position(axis, on))
    }
}

/// Returns the number of an axis of `dimensions`, counted from the slowest.
pub(crate) fn axis(name: &str, dimensions: usize, at: Range<usize>) -> Result<usize, Fault> {
    let axes = 3 - dimensions..3;
    let axis = axes.clone().position(|axis| axis_name(axis) == name);
    axis.ok_or_else(|| Fault::unknown(at, "axis", name, axes.map(axis_name)))
}

fn binary<'g>(operator: Binary, left: Expr<'g>, right: Expr<'g>) -> Expr<'g> {
    left.graph().computed(Node::Binary(operator, left.id(), right.id()))
}
