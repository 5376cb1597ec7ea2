//! The description of all objects as bytes: headers, references and the open nodes of indices, in one piece.

use rust_hdf5::DatatypeMessage;
use rust_hdf5::format::global_heap::{GlobalHeapCollection, encode_vlen_reference};
use rust_hdf5::format::messages::attribute::AttributeMessage;
use rust_hdf5::format::messages::data_layout::DataLayoutMessage;
use rust_hdf5::format::messages::dataspace::DataspaceMessage;
use rust_hdf5::format::messages::datatype::CompoundMember;
use rust_hdf5::format::messages::fill_value::FillValueMessage;
use rust_hdf5::format::messages::group_info::GroupInfoMessage;
use rust_hdf5::format::messages::link::LinkMessage;
use rust_hdf5::format::messages::link_info::LinkInfoMessage;
use rust_hdf5::format::messages::{
    MSG_ATTRIBUTE, MSG_DATA_LAYOUT, MSG_DATASPACE, MSG_DATATYPE, MSG_FILL_VALUE, MSG_FLAG_CONSTANT,
    MSG_GROUP_INFO, MSG_LINK, MSG_LINK_INFO, MSG_OBJ_REF_COUNT,
};
use rust_hdf5::format::object_header::ObjectHeader;
use rust_hdf5::format::superblock::SuperblockV2V3;
use rust_hdf5::format::{FormatResult, LibverBound, ObjectFormat, UNDEF_ADDR};

use super::objects::{Id, Kind, Object, Objects, Storage, Values, context};

/// Space for the values of an array of chunks is taken as they are written, and of one in a piece when it is made.
const ALLOCATED_AS_WRITTEN: u8 = 3;
const ALLOCATED_AT_ONCE: u8 = 1;
/// Values that nobody wrote are not filled in.
const NEVER_FILLED: u8 = 1;
const FILLED_WITH_ZEROS: u8 = 1;

/// All objects as bytes from an address on.
pub(super) struct Image {
    pub bytes: Vec<u8>,
    /// The address of the group at the root.
    root: u64,
}

/// Where the parts of an image stand.
#[derive(Default)]
struct Places {
    heap: u64,
    headers: Vec<u64>,
    /// The first open node of each array's index.
    nodes: Vec<u64>,
}

impl Image {
    /// Describes all objects, to stand at an address.
    pub fn of(objects: &Objects, at: u64) -> FormatResult<Image> {
        let count = objects.0.len();
        let mut places = Places { heap: at, headers: vec![0; count], nodes: vec![0; count] };
        // How long a part is does not depend on addresses.
        let mut end = at + heap(objects, &places)?.len() as u64;
        for id in 0..count {
            places.headers[id] = end;
            end = aligned(end + header(objects, id, &places)?.len() as u64);
        }
        for (id, object) in objects.0.iter().enumerate() {
            if let Kind::Values(Values { storage: Storage::Chunks { index, .. }, .. }) = &object.kind {
                places.nodes[id] = end;
                end += (index.open_nodes() * index.node_bytes()) as u64;
            }
        }
        let mut bytes = heap(objects, &places)?;
        for id in 0..count {
            bytes.resize((places.headers[id] - at) as usize, 0);
            bytes.extend(header(objects, id, &places)?);
        }
        for (id, object) in objects.0.iter().enumerate() {
            if let Kind::Values(Values { storage: Storage::Chunks { index, .. }, .. }) = &object.kind {
                bytes.resize((places.nodes[id] - at) as usize, 0);
                index.encode(places.nodes[id])?.into_iter().for_each(|node| bytes.extend(node));
            }
        }
        bytes.resize((end - at) as usize, 0);
        Ok(Image { bytes, root: places.headers[Objects::ROOT] })
    }

    /// Returns the superblock of a file of so many bytes with this image.
    pub fn superblock(&self, length: u64) -> Vec<u8> {
        let context = context();
        let superblock = SuperblockV2V3 {
            version: 2,
            sizeof_offsets: context.sizeof_addr,
            sizeof_lengths: context.sizeof_size,
            file_consistency_flags: 0,
            base_address: 0,
            superblock_extension_address: UNDEF_ADDR,
            end_of_file_address: length,
            root_group_object_header_address: self.root,
        };
        superblock.encode()
    }
}

pub(super) fn aligned(at: u64) -> u64 {
    at.next_multiple_of(8)
}

/// Returns the heap of the references to dimensions, one for each axis of each array.
fn heap(objects: &Objects, places: &Places) -> FormatResult<Vec<u8>> {
    let mut heap = GlobalHeapCollection::new();
    for dimension in objects.0.iter().flat_map(|object| &object.dimensions) {
        heap.add_object(places.headers[*dimension].to_le_bytes().to_vec())?;
    }
    Ok(heap.encode(&context()))
}

/// Returns an object's header.
fn header(objects: &Objects, id: Id, places: &Places) -> FormatResult<Vec<u8>> {
    let (context, object) = (context(), &objects.0[id]);
    let mut header = ObjectHeader::new();
    match &object.kind {
        Kind::Group(links) => {
            header.add_message(MSG_LINK_INFO, 0, LinkInfoMessage::compact().encode(&context));
            header.add_message(MSG_GROUP_INFO, MSG_FLAG_CONSTANT, GroupInfoMessage::default().encode());
            for (name, target) in links {
                let link = LinkMessage::hard(name, places.headers[*target]);
                header.add_message(MSG_LINK, 0, link.encode(&context));
            }
        }
        Kind::Values(values) => describe(&mut header, values, places.nodes[id]),
    }
    let names = objects.names_of(id);
    if names > 1 {
        header.add_message(MSG_OBJ_REF_COUNT, 0, [&[0][..], &names.to_le_bytes()].concat());
    }
    let of_dimensions = dimension_list(objects, id, object, places);
    let users = reference_list(objects, id, places);
    for attribute in object.attributes.iter().chain(&of_dimensions).chain(&users) {
        let body = attribute.encode_for(&context, LibverBound::V18, ObjectFormat::Modern);
        header.add_message(MSG_ATTRIBUTE, 0, body);
    }
    header.encode()
}

fn describe(header: &mut ObjectHeader, values: &Values, nodes: u64) {
    let context = context();
    let mut space = DataspaceMessage::simple(&values.extents);
    let (layout, alloc_time) = match &values.storage {
        Storage::Piece { at, bytes } => (DataLayoutMessage::contiguous(*at, *bytes), ALLOCATED_AT_ONCE),
        Storage::Chunks { chunk, index, grows } => {
            if let Some(first) = space.max_dims.as_mut().and_then(|most| most.first_mut())
                && *grows
            {
                *first = u64::MAX;
            }
            let element = u64::from(values.datatype.element_size());
            let chunk = chunk.iter().copied().chain([element]).collect();
            let root = match index.open_nodes() {
                0 => UNDEF_ADDR,
                open => nodes + ((open - 1) * index.node_bytes()) as u64,
            };
            (DataLayoutMessage::chunked_v3_btree_v1(chunk, root), ALLOCATED_AS_WRITTEN)
        }
    };
    let fill = FillValueMessage {
        alloc_time,
        fill_write_time: NEVER_FILLED,
        fill_defined: FILLED_WITH_ZEROS,
        fill_value: None,
    };
    header.add_message(MSG_DATASPACE, 0, space.encode_for(&context, ObjectFormat::Modern));
    let datatype = values.datatype.encode_at(&context, LibverBound::V18);
    header.add_message(MSG_DATATYPE, MSG_FLAG_CONSTANT, datatype);
    header.add_message(MSG_FILL_VALUE, MSG_FLAG_CONSTANT, fill.encode_for(ObjectFormat::Modern));
    header.add_message(MSG_DATA_LAYOUT, 0, layout.encode(&context));
}

/// Returns the attribute that names the dimension of each axis of an array.
fn dimension_list(objects: &Objects, id: Id, object: &Object, places: &Places) -> Option<AttributeMessage> {
    let axes = object.dimensions.len();
    if axes == 0 {
        return None;
    }
    let context = context();
    let before: usize = objects.0[..id].iter().map(|object| object.dimensions.len()).sum();
    let reference = |axis: usize| encode_vlen_reference(1, places.heap, (before + axis + 1) as u32, &context);
    let data = (0..axes).flat_map(reference).collect();
    let base = Box::new(DatatypeMessage::object_reference(&context));
    let datatype = DatatypeMessage::VarLenSequence { base };
    Some(AttributeMessage {
        name: "DIMENSION_LIST".to_owned(),
        datatype,
        dataspace: DataspaceMessage::simple(&[axes as u64]),
        data,
    })
}

/// Returns the attribute that names the arrays of a dimension.
fn reference_list(objects: &Objects, id: Id, places: &Places) -> Option<AttributeMessage> {
    let users = objects.users_of(id);
    if users.is_empty() {
        return None;
    }
    let context = context();
    let member = |name: &str, offset: u32, datatype: DatatypeMessage| CompoundMember {
        name: name.to_owned(),
        offset,
        datatype,
    };
    // As a compiler of C lays the library's own structure out.
    let members = vec![
        member("dataset", 0, DatatypeMessage::object_reference(&context)),
        member("dimension", 8, DatatypeMessage::u32_type()),
    ];
    let user = |(id, axis): &(Id, usize)| {
        [&places.headers[*id].to_le_bytes()[..], &(*axis as u32).to_le_bytes(), &[0; 4]].concat()
    };
    Some(AttributeMessage {
        name: "REFERENCE_LIST".to_owned(),
        datatype: DatatypeMessage::compound(16, members),
        dataspace: DataspaceMessage::simple(&[users.len() as u64]),
        data: users.iter().flat_map(user).collect(),
    })
}
