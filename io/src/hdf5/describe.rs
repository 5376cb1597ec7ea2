//! What a file consists of before its first frame: dimensions, fields, the image for VTK, and where the result comes from.

use abide_core::DType;
use abide_core::program::Space;
use rust_hdf5::DatatypeMessage;

use super::super::Provenance;
use super::index::Index;
use super::objects::{Id, Objects, Storage, Values, label, reals, text, whole};
use super::series::{Layout, Variable};

/// The most bytes of a chunk, unless a value has more.
const CHUNK: u64 = if cfg!(test) { 64 } else { 4 << 20 };
/// Values of a chunk of what has one value in each frame.
pub(super) const ROWS: u64 = if cfg!(test) { 4 } else { 1024 };

/// The group of where the result comes from.
pub(super) const PROVENANCE: &str = "abide_provenance";
pub(super) const MODEL: &str = "model";
pub(super) const PARAMETERS: &str = "parameters";

/// One of the texts of where a result comes from.
type Text = fn(&mut Provenance) -> &mut String;

/// The texts of where a result comes from, by the names of their attributes.
pub(super) const TEXTS: [(&str, Text); 6] = [
    ("abide", |own| &mut own.abide),
    ("program", |own| &mut own.program),
    ("dtype", |own| &mut own.dtype),
    ("plan", |own| &mut own.plan),
    ("backend", |own| &mut own.backend),
    ("device", |own| &mut own.device),
];

/// All objects of a file, and what is written once.
pub(super) struct Described {
    pub objects: Objects,
    /// The bytes of arrays in one piece.
    pub pieces: Vec<(Id, Vec<u8>)>,
    /// What has a value in each frame: the time, the step, and the scalars.
    pub rows: Vec<Id>,
    /// The numbers of the scalars among the run's.
    pub scalars: Vec<usize>,
    pub fields: Vec<Id>,
    /// What VTK finds.
    pub image: Option<Image>,
    pub provenance: Id,
}

/// The image that VTK finds.
pub(super) struct Image {
    /// The group that says how many frames there are.
    pub steps: Id,
    /// The fields in it.
    pub fields: Vec<Shown>,
}

/// A field in the image.
pub(super) struct Shown {
    /// The number of the field in the file.
    pub field: usize,
    /// The group that it stands in.
    pub group: Id,
    /// The first frame alone, as an array without an axis of time: so VTK wants a single step. It has the chunks of the
    /// field.
    pub first: Id,
}

impl Described {
    /// Describes a file.
    pub fn of(layout: &Layout, provenance: &Provenance, parameters: &str) -> Described {
        let mut own = Described {
            objects: Objects::new(),
            pieces: Vec::new(),
            rows: Vec::new(),
            scalars: Vec::new(),
            fields: Vec::new(),
            image: None,
            provenance: 0,
        };
        let names = Names { layout };
        let root = Objects::ROOT;
        let time = own.row(&names.free("t"), DatatypeMessage::f64_type());
        let step = own.row(&names.free("step"), DatatypeMessage::u64_type());
        own.rows = vec![time, step];
        own.dimension(time, &names.free("t"));
        own.objects.0[step].dimensions = vec![time];
        for (number, name) in layout.scalars.iter().enumerate().filter(|(_, name)| *name != "t") {
            let id = own.row(name, DatatypeMessage::f64_type());
            own.objects.0[id].dimensions = vec![time];
            own.rows.push(id);
            own.scalars.push(number);
        }
        let mut members = None;
        if let Some(count) = layout.members {
            let name = names.free("member");
            let bytes = (0..count as u64).flat_map(u64::to_le_bytes).collect();
            let id = own.piece(root, &name, DatatypeMessage::u64_type(), &[count as u64], bytes);
            own.dimension(id, &name);
            members = Some(id);
        }
        let mut axes: Vec<(String, Id)> = Vec::new();
        for field in &layout.fields {
            let mut dimensions: Vec<Id> = [time].into_iter().chain(members).collect();
            for (axis, name) in names.axes(field) {
                let known = axes.iter().find(|(own, _)| *own == name).map(|(_, id)| *id);
                let id = known.unwrap_or_else(|| own.coordinates(&name, field, axis));
                if known.is_none() {
                    axes.push((name, id));
                }
                dimensions.push(id);
            }
            own.field(field, layout, dimensions);
        }
        own.image = own.image(layout, time);
        own.provenance = own.provenance(provenance, parameters);
        own
    }

    /// Adds an array with one value for each frame.
    fn row(&mut self, name: &str, datatype: DatatypeMessage) -> Id {
        let chunk = vec![ROWS];
        let index = Index::new(&chunk, u64::from(datatype.element_size()));
        let storage = Storage::Chunks { chunk, index, grows: true };
        self.objects.values(Objects::ROOT, name, Values { datatype, extents: vec![0], storage })
    }

    /// Adds an array in one piece.
    fn piece(
        &mut self,
        parent: Id,
        name: &str,
        datatype: DatatypeMessage,
        extents: &[u64],
        bytes: Vec<u8>,
    ) -> Id {
        let storage = Storage::Piece { at: 0, bytes: bytes.len() as u64 };
        let id = self.objects.values(parent, name, Values { datatype, extents: extents.to_vec(), storage });
        self.pieces.push((id, bytes));
        id
    }

    /// Makes an array the dimension of this name.
    fn dimension(&mut self, id: Id, name: &str) {
        self.objects.set(id, label("CLASS", "DIMENSION_SCALE"));
        self.objects.set(id, label("NAME", name));
    }

    /// Adds the places of a field's values along an axis of the padded three.
    fn coordinates(&mut self, name: &str, field: &Variable, axis: usize) -> Id {
        let Space { origin, spacing } = field.space;
        let count = field.shape.padded()[axis];
        let place = |index: usize| (origin[axis] + index as f64 * spacing[axis]).to_le_bytes();
        let bytes = (0..count).flat_map(place).collect();
        let id = self.piece(Objects::ROOT, name, DatatypeMessage::f64_type(), &[count as u64], bytes);
        self.dimension(id, name);
        id
    }

    fn field(&mut self, field: &Variable, layout: &Layout, dimensions: Vec<Id>) {
        let extents: Vec<u64> = [0].into_iter().chain(layout.extents_of(field)).collect();
        let values = array(layout.dtype, extents.clone(), chunk_of(&extents[1..], layout.dtype), true);
        let id = self.objects.values(Objects::ROOT, &field.name, values);
        self.objects.0[id].dimensions = dimensions;
        self.fields.push(id);
    }

    /// Adds the group by which VTK finds an image; returns the group of its steps. A batch, whose members are no places, is
    /// no image.
    fn image(&mut self, layout: &Layout, time: Id) -> Option<Image> {
        let (first, fields) = (layout.fields.first()?, &layout.fields);
        if layout.members.is_some() {
            return None;
        }
        let axes = layout.cells.dimensions();
        let nodes_along = |field: &Variable| {
            let pairs = field.shape.extents().iter().zip(layout.cells.extents());
            pairs.filter(|(own, cells)| **own == **cells + 1).count()
        };
        let on_nodes = fields.iter().find(|field| nodes_along(field) == axes);
        let on_cells = fields.iter().find(|field| field.shape == layout.cells);
        // Values on nodes and cells are points and cells of one image; other values are points of an image of their own.
        let (points, cells) = match (on_nodes, on_cells) {
            (Some(points), Some(cells)) => (points, Some(cells)),
            (None, Some(points)) => (points, None),
            _ => (first, None),
        };
        let group = self.objects.group(Objects::ROOT, "VTKHDF");
        let [nz, ny, nx] = points.shape.padded().map(|count| count as i64 - 1);
        let [origin, spacing] = [points.space.origin, points.space.spacing].map(|mut places| {
            places.reverse();
            places
        });
        self.objects.set(group, whole("Version", &[2, 0]));
        self.objects.set(group, label("Type", "ImageData"));
        self.objects.set(group, whole("WholeExtent", &[0, nx, 0, ny, 0, nz]));
        self.objects.set(group, reals("Origin", &origin));
        self.objects.set(group, reals("Spacing", &spacing));
        self.objects.set(group, reals("Direction", &[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]));
        let mut shown = Vec::new();
        for (name, own) in [("PointData", Some(points)), ("CellData", cells)] {
            let Some(own) = own else { continue };
            let data = self.objects.group(group, name);
            let is_there = |field: &Variable| field.shape == own.shape && field.space == own.space;
            for (number, field) in fields.iter().enumerate().filter(|(_, field)| is_there(field)) {
                let extents = layout.extents_of(field);
                let chunk = chunk_of(&extents, layout.dtype)[1..].to_vec();
                let first =
                    self.objects.values(data, &field.name, array(layout.dtype, extents, chunk, false));
                shown.push(Shown { field: number, group: data, first });
            }
        }
        let steps = self.objects.group(group, "Steps");
        self.objects.link(steps, "Values", time);
        self.objects.set(steps, whole("NSteps", &[0]));
        Some(Image { steps, fields: shown })
    }

    fn provenance(&mut self, own: &Provenance, parameters: &str) -> Id {
        let group = self.objects.group(Objects::ROOT, PROVENANCE);
        let mut texts = own.clone();
        for (name, text_of) in TEXTS {
            self.objects.set(group, text(name, text_of(&mut texts)));
        }
        let size: Vec<String> = own.size.iter().map(usize::to_string).collect();
        self.objects.set(group, text("size", &size.join("x")));
        for (name, value) in [(MODEL, own.model.as_str()), (PARAMETERS, parameters)] {
            // A text of no bytes has no type.
            let bytes = if value.is_empty() { vec![0] } else { value.as_bytes().to_vec() };
            let datatype = DatatypeMessage::FixedString { size: bytes.len() as u32, padding: 1, charset: 1 };
            self.piece(group, name, datatype, &[], bytes);
        }
        group
    }
}

/// Names that the run's own fields and scalars leave free.
struct Names<'a> {
    layout: &'a Layout,
}

impl Names<'_> {
    fn free(&self, name: &str) -> String {
        let is_taken = |name: &str| {
            self.layout.fields.iter().any(|field| field.name == name)
                || self.layout.scalars.iter().any(|scalar| scalar == name && scalar != "t")
        };
        let mut name = name.to_owned();
        while is_taken(&name) {
            name.push_str("_axis");
        }
        name
    }

    /// Returns the names of a field's axes, each with its number among the padded three.
    fn axes(&self, field: &Variable) -> Vec<(usize, String)> {
        let (own, cells) = (field.shape.padded(), self.layout.cells.padded());
        let name = |axis: usize| {
            let ending = if own[axis] == cells[axis] { "" } else { "_nodes" };
            (axis, self.free(&format!("{}{ending}", ["z", "y", "x"][axis])))
        };
        (3 - field.shape.dimensions()..3).map(name).collect()
    }
}

impl Layout {
    /// Returns the extents of a field in a frame.
    pub(super) fn extents_of(&self, field: &Variable) -> Vec<u64> {
        super::super::extents(self.members, &field.shape).into_iter().map(|extent| extent as u64).collect()
    }
}

/// Returns an array of values of this type without chunks so far.
fn array(dtype: DType, extents: Vec<u64>, chunk: Vec<u64>, grows: bool) -> Values {
    let datatype = match dtype {
        DType::F32 => DatatypeMessage::f32_type(),
        DType::F64 => DatatypeMessage::f64_type(),
    };
    let index = Index::new(&chunk, u64::from(datatype.element_size()));
    Values { datatype, extents, storage: Storage::Chunks { chunk, index, grows } }
}

/// Returns the chunks of a field whose frames have these extents: a part of one frame, whose values stand one behind the
/// other there.
fn chunk_of(extents: &[u64], dtype: DType) -> Vec<u64> {
    let element = dtype.bytes() as u64;
    let mut chunk = vec![1; extents.len() + 1];
    let mut bytes = element;
    for (axis, &extent) in extents.iter().enumerate().rev() {
        let most = (CHUNK / bytes).max(1);
        // Chunks of one size, of which the last is as full as the others if possible.
        chunk[axis + 1] = extent.div_ceil(extent.div_ceil(most));
        bytes *= chunk[axis + 1];
        if chunk[axis + 1] < extent {
            break;
        }
    }
    chunk
}
