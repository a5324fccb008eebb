//! Intact volumes with every structure, and damage to their metadata.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use ext2::make::{Attributes, File, Folder, ImageOptions, Link, Node, make_image};
use ext2::{Access, MemoryDisk, MountOptions, NewKind, NewNode, ROOT_INODE, Volume, complete};

pub const BLOCK_BYTES: usize = 1024;
/// Bytes of the input for one piece of damage.
const PIECE: usize = 8;

struct Sample {
    image: Vec<u8>,
    /// Offsets of blocks that contain neither only zeros nor file content.
    metadata: Vec<usize>,
}

/// Without room for a journal; with room; and one that was not unmounted, whose journal is full.
static SAMPLES: LazyLock<[Sample; 3]> = LazyLock::new(|| {
    let large = made(9 << 18, 300 << 10);
    [made(400 << 10, 30 << 10), large.clone(), left_alone(large)].map(|image| {
        let is_metadata = |block: &[u8]| block.iter().any(|byte| !matches!(byte, 0 | 0xff));
        let blocks = image.chunks(BLOCK_BYTES).enumerate();
        let metadata = blocks.filter(|(_, block)| is_metadata(block)).map(|(index, _)| index * BLOCK_BYTES).collect();
        Sample { image, metadata }
    })
});

/// A name used both in the samples and by the operations on them.
pub fn name(number: u8) -> Vec<u8> {
    let letters = if number.is_multiple_of(3) { 200 } else { 4 };
    vec![b'a' + number % 16; letters]
}

fn made(volume_bytes: u64, file_bytes: usize) -> Vec<u8> {
    let attributes = Attributes::searchable(1);
    let file = |bytes: usize| Node::File(File::with_bytes(attributes, vec![0xff; bytes]));
    let sparse = [0, 13 << 10, 300 << 10, 70 << 20].map(|at| (at, vec![0xff; 3000]));
    let many = (0..60).map(|index| (format!("file-{index:060}").into_bytes(), file(index * 20))).collect();
    let link = Link { attributes, target: b"./".repeat(90) };
    let root = [
        (name(0), Node::Folder(Folder { attributes, entries: many })),
        (name(1), file(file_bytes)),
        (name(2), Node::File(File { attributes, size: 80 << 20, extents: sparse.into() })),
        (name(3), Node::Link(link)),
        (name(4), Node::Folder(Folder { attributes, entries: BTreeMap::new() })),
    ];
    let options =
        ImageOptions { block_bytes: 1024, volume_bytes, inodes: None, label: [0; 16], uuid: [0; 16], made: 1 };
    let mut image = Vec::new();
    let built = make_image(&options, &Folder { attributes, entries: root.into() }, &mut image).expect("a small volume");
    image.resize(built.volume_bytes as usize, 0);
    image
}

/// The same volume after its file system was killed during use.
fn left_alone(image: Vec<u8>) -> Vec<u8> {
    let disk = MemoryDisk::new(image);
    let options = MountOptions { access: Access::WriteIfPossible, ..MountOptions::default() };
    let volume = complete(Volume::mount(disk.clone(), options)).expect("it mounts");
    for number in 5..9 {
        let node = NewNode { kind: NewKind::Directory, permissions: 0o755, owner: 0, group: 0 };
        complete(volume.create(ROOT_INODE, &name(number), node)).expect("a new folder");
        complete(volume.sync()).expect("a sync");
    }
    let open = complete(async { volume.open(volume.find(ROOT_INODE, &name(1)).await?).await }).expect("an open file");
    complete(volume.unlink(ROOT_INODE, &name(1))).expect("an orphan");
    complete(volume.sync()).expect("a sync");
    let left = disk.bytes();
    drop(open);
    left
}

/// Returns a sample with damage: each piece has a block number, two bytes of offset and width, and a value.
pub fn damaged(sample: u8, damage: &[u8]) -> Vec<u8> {
    let Sample { image, metadata } = &SAMPLES[usize::from(sample) % SAMPLES.len()];
    let mut image = image.clone();
    for piece in damage.as_chunks::<PIECE>().0 {
        let [block, place, low, high] = [0, 2, 4, 6].map(|at| u16::from_le_bytes([piece[at], piece[at + 1]]));
        let start = metadata[usize::from(block) % metadata.len()];
        let width = 1 << (place >> 14).min(2);
        let within = usize::from(place) % (BLOCK_BYTES - width + 1);
        let value = (u32::from(high) << 16 | u32::from(low)).to_le_bytes();
        image[start + within..start + within + width].copy_from_slice(&value[..width]);
    }
    image
}

/// Parts of the input: the sample, the damage, and the rest.
pub fn parts(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    let (damage, rest) = rest.split_at(rest.len().min(usize::from(first / 3 % 32) * PIECE));
    Some((first, damage, rest))
}
