//! The elementary functions of formulas as functions of kernels, written from the records of what they do.

use std::collections::BTreeSet;

use abide_core::expr::Node;
use abide_core::functions::{Form, Function, Record, Step};
use abide_core::{DType, Program};

use crate::emit::Language;
use crate::text::Text;

/// Returns the functions among a program's nodes.
pub(crate) fn of<'n>(nodes: impl IntoIterator<Item = &'n Node>) -> BTreeSet<Function> {
    nodes.into_iter().filter_map(|node| node.function()).collect()
}

/// Returns whether formulas of a program draw random numbers.
pub(crate) fn draws(program: &Program) -> bool {
    program.stages().iter().any(|stage| stage.dag.draws())
}

/// Writes functions in a language, after `operations`, the file of the operations that their steps are, unless that is
/// empty; nothing if there are no functions.
pub(crate) fn write(
    text: &mut Text,
    operations: &str,
    language: &dyn Language,
    dtype: DType,
    functions: &BTreeSet<Function>,
) {
    if functions.is_empty() {
        return;
    }
    if !operations.is_empty() {
        text.file(operations);
    }
    for &function in functions {
        let [rare, common, other] =
            [Form::Rare, Form::Common, Form::Other].map(|form| function.record(dtype, form));
        let name = format!("formula_{}", function.name());
        // Without rare arguments there is one form.
        let has_rare = rare.is_possible();
        let all: &[&Record] = if has_rare { &[&rare, &other, &common] } else { &[&common] };
        let coefficients = coefficients(language, dtype, all);
        let writer = Writer { language, dtype, name: &name, coefficients };
        text.blank();
        writer.tables(text, &other);
        if has_rare {
            writer.head(text, &format!("{name}_of_rare"), function.arguments());
            let value = writer.steps(text, "v", &other);
            text.push(format!("return {value};\n}}"));
            text.blank();
        }
        writer.head(text, &name, function.arguments());
        if has_rare {
            let is_rare = writer.steps(text, "r", &rare);
            let arguments = ARGUMENTS[..function.arguments()].join(", ");
            text.push(format!("if ({is_rare}) {{ return {name}_of_rare({arguments}); }}"));
        }
        let value = writer.steps(text, "v", &common);
        text.push(format!("return {value};\n}}"));
    }
}

/// Returns the bits of the constants that CUDA reads from constant memory: numbers with more bits than an instruction has
/// room for, which two others would have to put into registers.
fn coefficients(language: &dyn Language, dtype: DType, records: &[&Record]) -> Vec<u64> {
    if dtype == DType::F32 || language.own("c", "wgsl") == "wgsl" {
        return Vec::new();
    }
    let mut found = Vec::new();
    for step in records.iter().flat_map(|record| &record.steps) {
        match *step {
            Step::Constant(bits) if bits as u32 != 0 && !found.contains(&bits) => found.push(bits),
            _ => {}
        }
    }
    found
}

const ARGUMENTS: [&str; 2] = ["x", "y"];

struct Writer<'a> {
    language: &'a dyn Language,
    dtype: DType,
    name: &'a str,
    coefficients: Vec<u64>,
}

impl Writer<'_> {
    fn table(&self, number: u8) -> String {
        format!("{}_table_{number}", self.name)
    }

    fn tables(&self, text: &mut Text, record: &Record) {
        if !self.coefficients.is_empty() {
            let values = self.coefficients.iter();
            let values: Vec<String> =
                values.map(|&bits| self.language.literal(self.dtype, f64::from_bits(bits))).collect();
            // Not const: a compiler would take the values from here.
            let (name, len, values) = (self.name, values.len(), values.join(", "));
            text.push(format!("__constant__ real {name}_coefficients[{len}] = {{{values}}};"));
        }
        for (number, table) in (0..).zip(&record.tables) {
            let entries: Vec<String> =
                table.iter().map(|&value| self.language.literal(self.dtype, value)).collect();
            let (name, len, entries) = (self.table(number), table.len(), entries.join(", "));
            text.push(self.language.own(
                &format!("__device__ const real {name}[{len}] = {{{entries}}};"),
                &format!("var<private> {name}: array<real, {len}> = array<real, {len}>({entries});"),
            ));
        }
    }

    fn head(&self, text: &mut Text, name: &str, arguments: usize) {
        let arguments = &ARGUMENTS[..arguments];
        let c: Vec<String> = arguments.iter().map(|argument| format!("real {argument}")).collect();
        let wgsl: Vec<String> = arguments.iter().map(|argument| format!("{argument}: real")).collect();
        text.push(self.language.own(
            &format!("__device__ __forceinline__ real {name}({})\n{{", c.join(", ")),
            &format!("fn {name}({}) -> real {{", wgsl.join(", ")),
        ));
    }

    /// Writes steps as locals whose names begin with `prefix`; returns the text of the result.
    fn steps(&self, text: &mut Text, prefix: &str, record: &Record) -> String {
        let (language, dtype) = (self.language, self.dtype);
        let mut names: Vec<String> = Vec::with_capacity(record.steps.len());
        for (number, &step) in record.steps.iter().enumerate() {
            let at = |id: u32| names[id as usize].as_str();
            let infix = |a: u32, sign: &str, b: u32| format!("{} {sign} {}", at(a), at(b));
            let call = |name: &str, operands: &[u32]| {
                let operands: Vec<&str> = operands.iter().map(|&id| at(id)).collect();
                format!("{name}({})", operands.join(", "))
            };
            let value = match step {
                Step::Argument(argument) => {
                    names.push(ARGUMENTS[usize::from(argument)].to_owned());
                    continue;
                }
                Step::Constant(bits) => {
                    let at = self.coefficients.iter().position(|&known| known == bits);
                    names.push(match at {
                        Some(at) => format!("{}_coefficients[{at}]", self.name),
                        None => self.constant(f64::from_bits(bits)),
                    });
                    continue;
                }
                Step::Negative(a) => format!("-{}", at(a)),
                Step::Absolute(a) => call(language.own("fabs", "abs"), &[a]),
                Step::Significand(a, lowest) => self.by_word("significand", at(a), lowest),
                Step::InverseExponent(a, lowest) => self.by_word("inverse_exponent", at(a), lowest),
                Step::InversePower(a, lowest) => self.by_word("inverse_power", at(a), lowest),
                Step::Reciprocal(a) => call("reciprocal", &[a]),
                Step::NearInverseCubeRoot(a) => call("near_inverse_cube_root", &[a]),
                Step::Add(a, b) => infix(a, "+", b),
                Step::Subtract(a, b) => infix(a, "-", b),
                Step::Multiply(a, b) => infix(a, "*", b),
                Step::Divide(a, b) => infix(a, "/", b),
                Step::WithSignOf(a, b) => call(language.own("copysign", "with_sign_of"), &[a, b]),
                Step::Anchored(a, b) => call("anchored", &[a, b]),
                Step::Whole(a) => call("whole", &[a]),
                Step::Negated(a, b, bit) => format!("negated({}, {}, {bit}u)", at(a), at(b)),
                Step::Raised(a, b) => call("raised", &[a, b]),
                Step::Lowered(a, b) => call("lowered", &[a, b]),
                Step::Entry(a, table) => {
                    let (table, index) = (self.table(table), at(a));
                    let (c, wgsl) = (format!("{table}[int({index})]"), format!("{table}[i32({index})]"));
                    language.own(&c, &wgsl).to_owned()
                }
                Step::MulAdd(a, b, c) => call("fma", &[a, b, c]),
                Step::Residue(a, b, c) => call("residue", &[a, b, c]),
                Step::MinusExactly(a, b, c) => call("minus_exactly", &[a, b, c]),
                Step::Choose(condition, yes, no) => language.choose(at(condition), at(yes), at(no)),
                Step::Less(a, b) => infix(a, "<", b),
                Step::Same(a, b) => infix(a, "==", b),
                Step::IsNan(a) => {
                    let (c, wgsl) = (infix(a, "!=", a), call("is_no_number", &[a]));
                    language.own(&c, &wgsl).to_owned()
                }
                Step::HasBit(a, bit) => format!("has_bit({}, {bit}u)", at(a)),
                Step::IsBeyond(a, b) => call("is_beyond", &[a, b]),
                Step::IsWithin(a, b) => call("is_within", &[a, b]),
                Step::IsOutside(a, b, c) => call("is_outside", &[a, b, c]),
                Step::And(a, b) => infix(a, "&", b),
                Step::Or(a, b) => infix(a, "|", b),
            };
            let name = format!("{prefix}{number}");
            let statement = match step.is_condition() {
                true => format!("{} {name} = {value};", language.own("const bool", "let")),
                false => format!("{};", language.declare(dtype, &name, &value)),
            };
            text.push(statement);
            names.push(name);
        }
        names.swap_remove(record.result as usize)
    }

    /// Returns the call of an operation on a number and the bits of another: those of f32, or the high ones of f64, which
    /// WGSL does not see.
    fn by_word(&self, name: &str, of: &str, bits: u64) -> String {
        let single = (f64::from_bits(bits) as f32).to_bits();
        let high = (bits >> 32) as u32;
        let is_high = self.dtype == DType::F64 && self.language.own("c", "wgsl") == "c";
        format!("{name}({of}, {:#x}u)", if is_high { high } else { single })
    }

    /// Returns the text of a constant; WGSL, which has no literals for infinities and NaN, has functions for them.
    fn constant(&self, value: f64) -> String {
        let c = self.language.literal(self.dtype, value);
        let wgsl = match value {
            _ if value.is_nan() => "no_number()",
            f64::INFINITY => "infinity()",
            f64::NEG_INFINITY => "(-infinity())",
            _ => &c,
        };
        self.language.own(&c, wgsl).to_owned()
    }
}
