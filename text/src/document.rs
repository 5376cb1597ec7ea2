//! The entries of a model file, each with its place in the text.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::fault::Fault;

/// A value of a model file.
#[derive(Clone, Copy)]
pub(crate) struct Item<'d> {
    text: &'d str,
    value: &'d Spanned<DeValue<'d>>,
}

/// A table of a model file, whose entries come in the order of the text.
#[derive(Clone, Copy)]
pub(crate) struct Table<'d> {
    text: &'d str,
    table: &'d DeTable<'d>,
    /// Where the table stands.
    at: &'d Spanned<DeValue<'d>>,
}

/// An entry of a table.
#[derive(Clone)]
pub(crate) struct Entry<'d> {
    pub key: &'d str,
    /// Where the key stands.
    pub at: Range<usize>,
    pub item: Item<'d>,
}

/// Reads a text as TOML.
pub(crate) fn parse(text: &str) -> Result<Spanned<DeValue<'_>>, Fault> {
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().unwrap_or(0..text.len());
        Fault::new(at, error.message().to_owned(), "write the file as TOML: keys, = and values")
    })?;
    let at = table.span();
    Ok(Spanned::new(at, DeValue::Table(table.into_inner())))
}

impl<'d> Item<'d> {
    pub fn new(text: &'d str, value: &'d Spanned<DeValue<'d>>) -> Item<'d> {
        Item { text, value }
    }

    pub fn at(self) -> Range<usize> {
        self.value.span()
    }

    fn wrong<T>(self, expected: &str) -> Result<T, Fault> {
        let found = self.value.get_ref().type_str();
        Err(Fault::new(self.at(), format!("{found} stands where {expected} should be"), "change its kind"))
    }

    pub fn is_text(self) -> bool {
        self.value.get_ref().is_str()
    }

    pub fn string(self) -> Result<&'d str, Fault> {
        self.value.get_ref().as_str().map_or_else(|| self.wrong("a text in quotes"), Ok)
    }

    /// Returns where the characters of a text begin: behind its quotes, if it has no escapes.
    pub fn begin(self) -> Range<usize> {
        let at = self.at();
        let inner = self.value.get_ref().as_str().zip(self.text.get(at.clone()));
        let offset = inner.and_then(|(value, raw)| raw.find(value));
        let begin = at.start + offset.unwrap_or(0);
        begin..if offset.is_some() { at.end } else { begin }
    }

    /// Places a fault in this text within the file.
    pub fn place(self, fault: Fault) -> Fault {
        let Range { start, end } = self.begin();
        let shifted = |at: usize| (start + at).min(end);
        Fault { at: shifted(fault.at.start)..shifted(fault.at.end), ..fault }
    }

    pub fn is_number(self) -> bool {
        matches!(self.value.get_ref(), DeValue::Integer(_) | DeValue::Float(_))
    }

    pub fn number(self) -> Result<f64, Fault> {
        let parsed = match self.value.get_ref() {
            DeValue::Integer(_) => return Ok(self.whole::<i64>()? as f64),
            // TOML's `inf` and `nan` are Rust's.
            DeValue::Float(float) => float.as_str().parse().ok(),
            _ => return self.wrong("a number"),
        };
        parsed.map_or_else(|| self.wrong("a number of 64 bits"), Ok)
    }

    /// Returns a whole number that a type holds.
    pub fn whole<T: TryFrom<i64>>(self) -> Result<T, Fault> {
        let DeValue::Integer(integer) = self.value.get_ref() else { return self.wrong("a whole number") };
        let number = i64::from_str_radix(integer.as_str(), integer.radix()).ok();
        let number = number.and_then(|number| T::try_from(number).ok());
        number.map_or_else(|| self.wrong("a smaller whole number, and none below 0"), Ok)
    }

    pub fn array(self) -> Result<Vec<Item<'d>>, Fault> {
        match self.value.get_ref() {
            DeValue::Array(array) => Ok(array.iter().map(|value| Item::new(self.text, value)).collect()),
            _ => self.wrong("an array in square brackets"),
        }
    }

    pub fn is_table(self) -> bool {
        self.value.get_ref().is_table()
    }

    pub fn table(self) -> Result<Table<'d>, Fault> {
        match self.value.get_ref() {
            DeValue::Table(table) => Ok(Table { text: self.text, table, at: self.value }),
            _ => self.wrong("a table"),
        }
    }

    pub fn is_array(self) -> bool {
        self.value.get_ref().is_array()
    }

    /// Returns the value as an option of a command would be written.
    pub fn option(self) -> Result<String, Fault> {
        match self.value.get_ref() {
            DeValue::String(text) => Ok(text.to_string()),
            DeValue::Integer(_) => Ok(self.whole::<i64>()?.to_string()),
            DeValue::Float(_) => Ok(self.number()?.to_string()),
            _ => self.wrong("a text or a number"),
        }
    }

    pub fn truth(self) -> Option<bool> {
        self.value.get_ref().as_bool()
    }
}

impl<'d> Table<'d> {
    pub fn at(self) -> Range<usize> {
        self.at.span()
    }

    pub fn entries(self) -> impl Iterator<Item = Entry<'d>> {
        self.table.iter().map(move |(key, value)| Entry {
            key: key.get_ref(),
            at: key.span(),
            item: Item::new(self.text, value),
        })
    }

    pub fn get(self, key: &str) -> Option<Item<'d>> {
        self.table.get(key).map(|value| Item::new(self.text, value))
    }

    /// Fails if the table has a key that is not among those known.
    pub fn only(self, what: &str, known: &[&str]) -> Result<(), Fault> {
        match self.entries().find(|entry| !known.contains(&entry.key)) {
            Some(entry) => Err(Fault::unknown(entry.at, what, entry.key, known)),
            None => Ok(()),
        }
    }
}
