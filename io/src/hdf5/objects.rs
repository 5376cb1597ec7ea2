//! The objects of a file: groups, and arrays with their attributes and dimensions.

use rust_hdf5::DatatypeMessage;
use rust_hdf5::format::FormatContext;
use rust_hdf5::format::messages::attribute::AttributeMessage;

use super::index::Index;

/// The number of an object in its file.
pub(super) type Id = usize;

/// An object.
pub(super) struct Object {
    pub kind: Kind,
    pub attributes: Vec<AttributeMessage>,
    /// The dimension of each axis of an array, where it has them.
    pub dimensions: Vec<Id>,
}

pub(super) enum Kind {
    /// Names of other objects.
    Group(Vec<(String, Id)>),
    Values(Values),
}

/// An array.
pub(super) struct Values {
    pub datatype: DatatypeMessage,
    pub extents: Vec<u64>,
    pub storage: Storage,
}

pub(super) enum Storage {
    /// All values in one piece.
    Piece { at: u64, bytes: u64 },
    /// Chunks of these extents; along its first axis an array may grow.
    Chunks { chunk: Vec<u64>, index: Index, grows: bool },
}

/// All objects of a file; the first is the group at its root.
pub(super) struct Objects(pub Vec<Object>);

impl Objects {
    pub const ROOT: Id = 0;

    pub fn new() -> Objects {
        Objects(vec![Object {
            kind: Kind::Group(Vec::new()),
            attributes: Vec::new(),
            dimensions: Vec::new(),
        }])
    }

    /// Adds a group to another.
    pub fn group(&mut self, parent: Id, name: &str) -> Id {
        self.add(parent, name, Kind::Group(Vec::new()))
    }

    /// Adds an array to a group.
    pub fn values(&mut self, parent: Id, name: &str, values: Values) -> Id {
        self.add(parent, name, Kind::Values(values))
    }

    fn add(&mut self, parent: Id, name: &str, kind: Kind) -> Id {
        let id = self.0.len();
        self.0.push(Object { kind, attributes: Vec::new(), dimensions: Vec::new() });
        self.link(parent, name, id);
        id
    }

    /// Gives an object another name, in a group.
    pub fn link(&mut self, parent: Id, name: &str, id: Id) {
        if let Kind::Group(links) = &mut self.0[parent].kind {
            links.push((name.to_owned(), id));
        }
    }

    /// Lets a name in a group be that of another object.
    pub fn relink(&mut self, parent: Id, name: &str, id: Id) {
        if let Kind::Group(links) = &mut self.0[parent].kind {
            links.iter_mut().filter(|(own, _)| own == name).for_each(|(_, target)| *target = id);
        }
    }

    /// Returns how many names an object has.
    pub fn names_of(&self, id: Id) -> u32 {
        let links = |object: &Object| match &object.kind {
            Kind::Group(links) => links.iter().filter(|(_, own)| *own == id).count(),
            Kind::Values(_) => 0,
        };
        self.0.iter().map(links).sum::<usize>() as u32
    }

    /// Returns the arrays that have an object as a dimension, and along which axis.
    pub fn users_of(&self, dimension: Id) -> Vec<(Id, usize)> {
        let all = self.0.iter().enumerate().flat_map(|(id, object)| {
            object.dimensions.iter().enumerate().map(move |(axis, own)| (id, axis, *own))
        });
        all.filter(|(.., own)| *own == dimension).map(|(id, axis, _)| (id, axis)).collect()
    }

    /// Sets an attribute of an object.
    pub fn set(&mut self, id: Id, attribute: AttributeMessage) {
        let own = &mut self.0[id].attributes;
        own.retain(|known| known.name != attribute.name);
        own.push(attribute);
    }

    /// Returns an array for change.
    pub fn values_mut(&mut self, id: Id) -> Option<&mut Values> {
        match &mut self.0[id].kind {
            Kind::Values(values) => Some(values),
            Kind::Group(_) => None,
        }
    }
}

/// Returns how the file's addresses and lengths are written.
pub(super) fn context() -> FormatContext {
    FormatContext::default_v3()
}

/// Returns an attribute that is a text.
pub(super) fn text(name: &str, value: &str) -> AttributeMessage {
    AttributeMessage::scalar_string(name, value)
}

/// Returns an attribute that is a text in ASCII of exactly its bytes and an end, which some readers insist on.
pub(super) fn label(name: &str, value: &str) -> AttributeMessage {
    let bytes = [value.as_bytes(), &[0]].concat();
    let datatype = DatatypeMessage::FixedString { size: bytes.len() as u32, padding: 0, charset: 0 };
    AttributeMessage::scalar_numeric(name, datatype, bytes)
}

/// Returns an attribute of whole numbers, a single one where there is one.
pub(super) fn whole(name: &str, values: &[i64]) -> AttributeMessage {
    let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    numbers(name, DatatypeMessage::i64_type(), values.len(), bytes)
}

/// Returns an attribute of numbers.
pub(super) fn reals(name: &str, values: &[f64]) -> AttributeMessage {
    let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    numbers(name, DatatypeMessage::f64_type(), values.len(), bytes)
}

fn numbers(name: &str, datatype: DatatypeMessage, count: usize, bytes: Vec<u8>) -> AttributeMessage {
    match count {
        1 => AttributeMessage::scalar_numeric(name, datatype, bytes),
        _ => AttributeMessage::array_numeric(name, datatype, &[count as u64], bytes),
    }
}
