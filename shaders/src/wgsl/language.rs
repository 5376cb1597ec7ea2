//! WGSL for [`crate::emit`].

use abide_core::{DType, Program};

use crate::emit::Language;
use crate::text::LETTERS;

/// WGSL, for a formula at one cell.
pub(super) struct Wgsl {
    /// The indices of the cell along the three axes.
    pub index: [String; 3],
    /// The parameters that vary, by their numbers. They are read for the stage `level`, counted from the round's first.
    pub varying: Vec<usize>,
}

impl Wgsl {
    /// Returns the language for a cell at (s, y, x), where no parameter is read that varies.
    pub fn here() -> Wgsl {
        Wgsl { index: LETTERS.map(|[_, letter]| letter.to_owned()), varying: Vec::new() }
    }

    /// Returns the language for a cell at (s, y, x) of a program's stages.
    pub fn of(program: &Program) -> Wgsl {
        Wgsl { varying: program.varying(), ..Wgsl::here() }
    }
}

impl Language for Wgsl {
    fn real(&self, _: DType) -> &'static str {
        "real"
    }

    fn literal(&self, dtype: DType, value: f64) -> String {
        literal(dtype, value)
    }

    fn declare(&self, _: DType, name: &str, value: &str) -> String {
        format!("let {name} = {value}")
    }

    fn variable(&self, _: DType, name: &str, value: &str) -> Option<String> {
        Some(format!("var {name} = {value}"))
    }

    fn choose(&self, condition: &str, yes: &str, no: &str) -> String {
        format!("select({no}, {yes}, {condition})")
    }

    fn own<'t>(&self, _: &'t str, wgsl: &'t str) -> &'t str {
        wgsl
    }

    fn coordinate(&self, _: DType, axis: u8) -> String {
        format!("real({})", self.index[usize::from(axis.min(2))])
    }

    fn parameter(&self, number: u16) -> String {
        match self.varying.iter().position(|&varying| varying == usize::from(number)) {
            Some(place) => format!("varied(level * {} + {place})", self.varying.len()),
            None => format!("parameters.p{number}"),
        }
    }
}

/// Returns a literal that reads back as exactly this value: Rust's shortest decimal that does. WGSL has no
/// literals for infinities and NaNs, so those come with the parameters.
pub(super) fn literal(dtype: DType, value: f64) -> String {
    if value.is_nan() {
        return "parameters.nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "parameters.infinity" } else { "(-parameters.infinity)" }.to_owned();
    }
    let digits = match dtype {
        DType::F32 => format!("{:?}f", value as f32),
        DType::F64 => format!("{value:?}lf"),
    };
    if value.is_sign_negative() { format!("({digits})") } else { digits }
}
