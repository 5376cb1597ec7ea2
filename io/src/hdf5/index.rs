//! The index of an array's chunks: a B-tree of version 1 that grows at its end alone.
//!
//! Chunks come in the order of their keys. A node that is full is written once and never again. The last node of each level,
//! which is not full, belongs to the description of the file and is written anew with it.

use rust_hdf5::format::btree_v1::{BTreeV1Config, ChunkBTreeV1Node, ChunkKey};
use rust_hdf5::format::{FormatResult, UNDEF_ADDR};

/// Bytes of an address.
const ADDRESS: usize = 8;

/// An index.
pub(super) struct Index {
    /// The extents of a chunk, and the bytes of an element.
    dims: Vec<u64>,
    /// The nodes that are not full, the leaf first.
    levels: Vec<Level>,
    /// The last chunk's place in the grid of chunks.
    last: Vec<u64>,
}

/// The children of a node so far, in levels above the leaf's but for the last, which is not full.
#[derive(Default)]
struct Level {
    keys: Vec<ChunkKey>,
    children: Vec<u64>,
    /// The node before it on its level.
    before: Option<u64>,
}

impl Index {
    /// Makes the index of an array without chunks.
    pub fn new(chunk: &[u64], element: u64) -> Index {
        let dims = chunk.iter().copied().chain([element]).collect();
        Index { dims, levels: vec![Level::default()], last: Vec::new() }
    }

    fn most(&self, level: usize) -> usize {
        let all = usize::from(BTreeV1Config::default().chunk_max_entries());
        // Above the leaf, one place is for the child that is not full.
        if level == 0 { all } else { all - 1 }
    }

    /// Returns the bytes of a node.
    pub fn node_bytes(&self) -> usize {
        BTreeV1Config::default().chunk_btree_node_size(ADDRESS, self.dims.len() - 1)
    }

    /// Adds the chunk at a place in the grid of chunks, behind all others. `put` writes a full node and returns its address.
    pub fn add<E: From<rust_hdf5::format::FormatError>>(
        &mut self,
        place: &[u64],
        address: u64,
        bytes: u32,
        put: &mut impl FnMut(Vec<u8>) -> Result<u64, E>,
    ) -> Result<(), E> {
        let key = ChunkKey::for_chunk(place, &self.dims, bytes, 0);
        self.push(0, key, address, put)?;
        self.last = place.to_vec();
        Ok(())
    }

    fn push<E: From<rust_hdf5::format::FormatError>>(
        &mut self,
        level: usize,
        key: ChunkKey,
        address: u64,
        put: &mut impl FnMut(Vec<u8>) -> Result<u64, E>,
    ) -> Result<(), E> {
        if level == self.levels.len() {
            self.levels.push(Level::default());
        }
        if self.levels[level].children.len() == self.most(level) {
            let full = std::mem::take(&mut self.levels[level]);
            let first = full.keys[0].clone();
            let node = self.node(level, full)?;
            let at = put(node)?;
            self.levels[level].before = Some(at);
            self.push(level + 1, first, at, put)?;
        }
        self.levels[level].keys.push(key);
        self.levels[level].children.push(address);
        Ok(())
    }

    fn node(&self, level: usize, own: Level) -> FormatResult<Vec<u8>> {
        let Level { mut keys, children, before } = own;
        // All that comes later is greater than the last chunk so far.
        keys.push(ChunkKey::right_bound(&self.last, &self.dims));
        let node = ChunkBTreeV1Node {
            level: level as u8,
            entries_used: children.len() as u16,
            left_sibling: before.unwrap_or(UNDEF_ADDR),
            right_sibling: UNDEF_ADDR,
            keys,
            children,
        };
        node.encode(self.node_bytes(), ADDRESS)
    }

    /// Returns the number of the nodes that are not full; none of an array without chunks.
    pub fn open_nodes(&self) -> usize {
        if self.levels[0].children.is_empty() { 0 } else { self.levels.len() }
    }

    /// Returns the nodes that are not full, the leaf first and the root last, where they stand one behind the other from
    /// an address on.
    pub fn encode(&self, at: u64) -> FormatResult<Vec<Vec<u8>>> {
        let (mut nodes, mut below) = (Vec::new(), None);
        for (number, level) in self.levels.iter().enumerate().take(self.open_nodes()) {
            let mut own =
                Level { keys: level.keys.clone(), children: level.children.clone(), before: level.before };
            if let Some((key, address)) = below {
                own.keys.push(key);
                own.children.push(address);
            }
            let first = own.keys[0].clone();
            below = Some((first, at + (number * self.node_bytes()) as u64));
            nodes.push(self.node(number, own)?);
        }
        Ok(nodes)
    }
}
