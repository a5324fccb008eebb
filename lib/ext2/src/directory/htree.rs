//! The index of a directory (`dir_index`): a tree over the hashes of names, as in ext3. Pure: blocks in, blocks out.
//!
//! Block 0 of the directory begins with `.` and `..`; the latter's entry spans the rest of the block, which hides the
//! tree's root. Other nodes hide in an unused entry. Both are tables of (hash, directory block), in ascending order;
//! the first hash of a table is replaced by the table's length. Names with hashes from one table entry's up to the next
//! one's are in its leaf, an ordinary block of entries. If names with the same hash are in two leaves, the lowest bit
//! of the second one's hash is set.

use alloc::vec;
use alloc::vec::Vec;

use crate::format::directory::{self, EntryFormat, NewEntry};
use crate::format::error::Problem;
use crate::format::hash::{Algorithm, Hasher};
use crate::format::{read_u16, read_u32, write_u16, write_u32};

/// Size of a table's entry in bytes.
const ENTRY_BYTES: usize = 8;
/// Offset of the htree's description in block 0.
const INFORMATION: usize = 24;
/// Size of the description in bytes.
const INFORMATION_BYTES: u8 = 8;
/// Offset of the entry `..` in block 0.
const PARENT_ENTRY: usize = 12;
/// Significant bits of a block number.
const BLOCK_MASK: u32 = 0x0fff_ffff;
/// Lowest bit of a hash in a table: names with this hash are also in the preceding leaf.
pub(crate) const CONTINUED: u32 = 1;
/// Levels of tables, including the root.
pub(crate) const MAX_LEVELS: usize = 2;

/// Kinds of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Root,
    Node,
}

impl Place {
    fn start(self) -> usize {
        match self {
            Place::Root => INFORMATION + INFORMATION_BYTES as usize,
            Place::Node => directory::HEADER_BYTES,
        }
    }

    fn limit(self, block_bytes: usize) -> usize {
        (block_bytes - self.start()) / ENTRY_BYTES
    }
}

/// Fields of the htree's root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Root {
    pub(crate) algorithm: Algorithm,
    /// Whether it marks characters as unsigned itself; otherwise the superblock decides.
    pub(crate) unsigned: bool,
    /// Levels of tables, 1 or 2.
    pub(crate) levels: usize,
}

/// Reads the root's description.
pub(crate) fn root(block: &[u8]) -> Result<Root, Problem> {
    let information = block.get(INFORMATION..).filter(|rest| rest.len() >= 8).ok_or(Problem::Missing("an index"))?;
    let version = information[4];
    let algorithm = match version % 3 {
        _ if version > 5 => return Err(Problem::Meaningless { field: "hash_version", value: version.into() }),
        0 => Algorithm::Legacy,
        1 => Algorithm::HalfMd4,
        _ => Algorithm::Tea,
    };
    let levels = usize::from(information[6]) + 1;
    if levels > MAX_LEVELS {
        let (value, most) = (u64::from(information[6]), MAX_LEVELS as u64 - 1);
        return Err(Problem::OutOfRange { field: "indirect_levels", value, least: 0, most });
    }
    if read_u32(information, 0) != 0 || information[5] != INFORMATION_BYTES || information[7] & 1 != 0 {
        return Err(Problem::Meaningless { field: "an index's description", value: information[5].into() });
    }
    Ok(Root { algorithm, unsigned: version >= 3, levels })
}

/// A validated table.
#[derive(Clone, Copy)]
pub(crate) struct Table<'a> {
    entries: &'a [u8],
    count: usize,
    limit: usize,
}

/// The table of a block.
pub(crate) fn table(block: &[u8], place: Place) -> Result<Table<'_>, Problem> {
    let entries = block.get(place.start()..).filter(|rest| rest.len() >= ENTRY_BYTES).unwrap_or(&[]);
    if entries.is_empty() {
        return Err(Problem::Missing("a table"));
    }
    let (limit, count) = (usize::from(read_u16(entries, 0)), usize::from(read_u16(entries, 2)));
    if limit != place.limit(block.len()) {
        return Err(Problem::Meaningless { field: "a table's limit", value: limit as u64 });
    }
    if !(1..=limit).contains(&count) {
        return Err(Problem::OutOfRange { field: "count", value: count as u64, least: 1, most: limit as u64 });
    }
    if place == Place::Node && (read_u32(block, 0) != 0 || usize::from(read_u16(block, 4)) != block.len()) {
        return Err(Problem::Meaningless { field: "a table's first entry", value: read_u32(block, 0).into() });
    }
    Ok(Table { entries, count, limit })
}

impl Table<'_> {
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    pub(crate) fn is_full(&self) -> bool {
        self.count >= self.limit
    }

    /// Returns the lowest hash of an entry; 0 for the first.
    pub(crate) fn hash(&self, index: usize) -> u32 {
        if index == 0 { 0 } else { read_u32(self.entries, index * ENTRY_BYTES) }
    }

    /// Returns the directory block that an entry refers to.
    pub(crate) fn block(&self, index: usize) -> u32 {
        read_u32(self.entries, index * ENTRY_BYTES + 4) & BLOCK_MASK
    }

    /// Returns the entry that covers a hash.
    pub(crate) fn search(&self, hash: u32) -> usize {
        let (mut low, mut high) = (1, self.count);
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.hash(middle) > hash { high = middle } else { low = middle + 1 }
        }
        low - 1
    }

    fn all(&self) -> Vec<(u32, u32)> {
        (0..self.count).map(|index| (self.hash(index), self.block(index))).collect()
    }
}

fn write_table(block: &mut [u8], place: Place, entries: &[(u32, u32)]) {
    let limit = place.limit(block.len());
    let bytes = &mut block[place.start()..];
    for (index, &(hash, number)) in entries.iter().enumerate() {
        write_u32(bytes, index * ENTRY_BYTES, hash);
        write_u32(bytes, index * ENTRY_BYTES + 4, number);
    }
    // At most 511 entries fit into a block.
    write_u16(bytes, 0, limit as u16);
    write_u16(bytes, 2, entries.len() as u16);
}

fn new_node(block_bytes: usize, entries: &[(u32, u32)]) -> Vec<u8> {
    let mut block = vec![0; block_bytes];
    directory::clear(&mut block);
    write_table(&mut block, Place::Node, entries);
    block
}

/// A block of the directory: its index and its content.
pub(crate) type Image = (u32, Vec<u8>);

/// The blocks on the path to a leaf without room for a name: root first, leaf last, each with the index of the next in
/// its table.
pub(crate) struct Way {
    pub(crate) tables: Vec<(Image, usize)>,
    pub(crate) leaf: Image,
}

/// Inserts a name into a tree whose leaf for it is full: splits the leaf, and the tables above as needed. Returns the
/// new contents of the blocks; those from `blocks` on are new. `None`: the tree is full.
pub(crate) fn insert_splitting(
    way: Way,
    blocks: u32,
    new: &NewEntry<'_>,
    hasher: &Hasher,
    format: EntryFormat,
) -> Result<Option<Vec<Image>>, Problem> {
    let Way { mut tables, leaf } = way;
    let block_bytes = leaf.1.len();
    let mut next = blocks;
    let mut take_number = || {
        next += 1;
        next - 1
    };
    let mut changed = Vec::new();
    let depth = tables.len();
    let full = |image: &Image, place| table(&image.1, place).map(|table| table.is_full());
    let (last, last_place) = match tables.last() {
        Some((image, _)) => (image, if depth == 1 { Place::Root } else { Place::Node }),
        None => return Err(Problem::Missing("an index")),
    };
    if full(last, last_place)? {
        if depth == 1 {
            grow_root(&mut tables, take_number(), block_bytes)?;
        } else {
            let Some(image) = split_node(&mut tables, take_number(), block_bytes)? else { return Ok(None) };
            changed.push(image);
        }
    }
    let leaf_number = leaf.0;
    let (mut lower, mut upper, hash) = split_leaf(&leaf.1, hasher, format)?;
    let target = if hasher.hash(new.name) >= hash & !CONTINUED { &mut upper } else { &mut lower };
    if !directory::insert(target, new, format).map_err(|(_, problem)| problem)? {
        return Ok(None);
    }
    let number = take_number();
    let place = if tables.len() == 1 { Place::Root } else { Place::Node };
    if let Some(((_, block), at)) = tables.last_mut() {
        insert_entry(block, place, *at + 1, (hash, number))?;
    }
    changed.extend(tables.into_iter().map(|(image, _)| image));
    changed.push((leaf_number, lower));
    changed.push((number, upper));
    Ok(Some(changed))
}

fn insert_entry(block: &mut [u8], place: Place, at: usize, entry: (u32, u32)) -> Result<(), Problem> {
    let mut entries = table(block, place)?.all();
    entries.insert(at.min(entries.len()), entry);
    write_table(block, place, &entries);
    Ok(())
}

/// Inserts a level between the full root and the leaves.
fn grow_root(tables: &mut Vec<(Image, usize)>, number: u32, block_bytes: usize) -> Result<(), Problem> {
    let Some(((_, root), at)) = tables.first_mut() else { return Ok(()) };
    let entries = table(root, Place::Root)?.all();
    write_table(root, Place::Root, &[(0, number)]);
    root[INFORMATION + 6] += 1;
    let below = core::mem::replace(at, 0);
    tables.push(((number, new_node(block_bytes, &entries)), below));
    Ok(())
}

/// Splits a full node. Keeps in `tables` the half on the path to the leaf, and returns the other; `None` if the root
/// has no room for it.
fn split_node(tables: &mut [(Image, usize)], number: u32, block_bytes: usize) -> Result<Option<Image>, Problem> {
    let [((_, root), root_at), ((node_number, node), at)] = tables else {
        return Err(Problem::Missing("an index's root"));
    };
    if table(root, Place::Root)?.is_full() {
        return Ok(None);
    }
    let entries = table(node, Place::Node)?.all();
    let (lower, upper) = entries.split_at(entries.len() / 2);
    let Some(&(hash, _)) = upper.first() else { return Ok(None) };
    insert_entry(root, Place::Root, *root_at + 1, (hash, number))?;
    let images = [(*node_number, new_node(block_bytes, lower)), (number, new_node(block_bytes, upper))];
    let [mut here, mut other] = images;
    if *at >= lower.len() {
        *at -= lower.len();
        *root_at += 1;
        core::mem::swap(&mut here, &mut other);
    }
    (*node_number, *node) = here;
    Ok(Some(other))
}

/// The two halves of a leaf, and the hash of the second one in the table.
fn split_leaf(leaf: &[u8], hasher: &Hasher, format: EntryFormat) -> Result<(Vec<u8>, Vec<u8>, u32), Problem> {
    let mut names = Vec::new();
    for item in directory::entries(leaf, format) {
        let (_, view) = item.map_err(|(_, problem)| problem)?;
        if view.inode != 0 {
            names.push((hasher.hash(view.name), view));
        }
    }
    if names.len() < 2 {
        return Err(Problem::Missing("enough names in a leaf of the index"));
    }
    names.sort_by_key(|&(hash, _)| hash);
    let all: usize = names.iter().map(|(_, view)| directory::needed_bytes(view.name.len())).sum();
    let (mut below, mut split) = (0, 0);
    while split < names.len() - 1 {
        let bytes = directory::needed_bytes(names[split].1.name.len());
        if split > 0 && below + bytes / 2 > all / 2 {
            break;
        }
        below += bytes;
        split += 1;
    }
    let hash = names[split].0;
    let continued = if names[split - 1].0 == hash { CONTINUED } else { 0 };
    let fill = |names: &[(u32, directory::View<'_>)]| {
        let mut block = vec![0; leaf.len()];
        let mut start = 0;
        for (index, (_, view)) in names.iter().enumerate() {
            let is_last = index + 1 == names.len();
            let end = if is_last { block.len() } else { start + directory::needed_bytes(view.name.len()) };
            let entry = NewEntry { inode: view.inode, kind: view.kind, name: view.name };
            directory::write(&mut block[start..end], &entry, format);
            start = end;
        }
        block
    };
    Ok((fill(&names[..split]), fill(&names[split..]), hash | continued))
}

/// The two blocks of a directory that has just become indexed.
pub(crate) struct NewIndex {
    pub(crate) root: Vec<u8>,
    pub(crate) leaf: Vec<u8>,
}

/// Converts a full directory of one block to an indexed one: its names except `.` and `..` move to a leaf, block 1.
/// `None` if the directory does not begin with these two.
pub(crate) fn make_index(block: &[u8], version: u8, format: EntryFormat) -> Result<Option<NewIndex>, Problem> {
    let mut root = vec![0; block.len()];
    let mut leaf = vec![0; block.len()];
    let mut rest = Vec::new();
    for (index, item) in directory::entries(block, format).enumerate() {
        let (_, view) = item.map_err(|(_, problem)| problem)?;
        match (index, view.name) {
            (0, b".") | (1, b"..") if view.inode != 0 => {
                let place = if index == 0 { 0..PARENT_ENTRY } else { PARENT_ENTRY..block.len() };
                let entry = NewEntry { inode: view.inode, kind: view.kind, name: view.name };
                directory::write(&mut root[place], &entry, format);
            }
            (0 | 1, _) => return Ok(None),
            _ if view.inode != 0 => rest.push(view),
            _ => {}
        }
    }
    directory::clear(&mut leaf);
    for view in rest {
        let entry = NewEntry { inode: view.inode, kind: view.kind, name: view.name };
        if !directory::insert(&mut leaf, &entry, format).map_err(|(_, problem)| problem)? {
            return Ok(None);
        }
    }
    root[INFORMATION + 4] = version;
    root[INFORMATION + 5] = INFORMATION_BYTES;
    write_table(&mut root, Place::Root, &[(0, 1)]);
    Ok(Some(NewIndex { root, leaf }))
}
