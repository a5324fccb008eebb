//! An ext2 volume whose metadata the bytes damage, and what is then done to it. Whatever comes of it, it ends, and
//! without a panic.
#![no_main]

use std::collections::BTreeMap;
use std::sync::LazyLock;

use ext2::format::{Attributes, File, Folder, Link, Node, Options, format};
use ext2::{
    Access, AttributeChanges, CacheLimits, LastLink, MemoryDisk, MountOptions, NewKind, NewNode, OpenFile, ROOT_INODE,
    Volume, complete,
};

const BLOCK_BYTES: usize = 1024;
/// Bytes of the input for one operation, and for one piece of damage.
const STEP: usize = 4;
const MOST_STEPS: usize = 48;

/// A volume that has room for a journal, with every structure in it.
static IMAGE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let attributes = Attributes::searchable(1);
    let file = |bytes: usize| Node::File(File::with_bytes(attributes, vec![0xff; bytes]));
    let sparse = [0, 13 << 10, 300 << 10, 70 << 20].map(|at| (at, vec![0xff; 3000]));
    let many = (0..60).map(|index| (format!("file-{index:060}").into_bytes(), file(index * 40))).collect();
    let link = Link { attributes, target: b"./".repeat(90) };
    let root = [
        (name(0), Node::Folder(Folder { attributes, entries: many })),
        (name(1), file(300 << 10)),
        (name(2), Node::File(File { attributes, size: 80 << 20, extents: sparse.into() })),
        (name(3), Node::Link(link)),
        (name(4), Node::Folder(Folder { attributes, entries: BTreeMap::new() })),
    ];
    let options =
        Options { block_bytes: 1024, volume_bytes: 4 << 20, inodes: None, label: [0; 16], uuid: [0; 16], made: 1 };
    let mut image = Vec::new();
    let built = format(&options, &Folder { attributes, entries: root.into() }, &mut image).expect("a small volume");
    image.resize(built.volume_bytes as usize, 0);
    image
});

/// Blocks that hold neither only zeros nor a file's content.
static METADATA_BLOCKS: LazyLock<Vec<usize>> = LazyLock::new(|| {
    let is_metadata = |block: &[u8]| block.iter().any(|byte| !matches!(byte, 0 | 0xff));
    let blocks = IMAGE.chunks(BLOCK_BYTES).enumerate();
    blocks.filter(|(_, block)| is_metadata(block)).map(|(index, _)| index * BLOCK_BYTES).collect()
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((&damages, rest)) = bytes.split_first() else { return };
    let (damage, steps) = rest.split_at(rest.len().min(usize::from(damages % 32) * STEP));
    let mut image = IMAGE.clone();
    for piece in damage.chunks_exact(STEP) {
        let block = METADATA_BLOCKS[usize::from(piece[0]) % METADATA_BLOCKS.len()];
        let within = usize::from(u16::from_le_bytes([piece[1], piece[2]])) % BLOCK_BYTES;
        image[block + within] = piece[3];
    }
    let limits = CacheLimits { data_bytes: 256 << 10, line_bytes: 8 << 10, ..CacheLimits::default() };
    let options = MountOptions { limits, access: Access::WriteIfPossible };
    let size = image.len();
    let disk = MemoryDisk::new(image);
    let Ok(volume) = complete(Volume::mount(disk.clone(), options)) else { return };
    let mut open = None;
    for step in steps.chunks_exact(STEP).take(MOST_STEPS) {
        complete(act(&volume, &mut open, [step[0], step[1], step[2], step[3]]));
    }
    drop(open);
    // It may well be refused.
    let _ = complete(volume.unmount());
    assert_eq!(disk.bytes().len(), size);
});

fn name(number: u8) -> Vec<u8> {
    let letters = if number.is_multiple_of(3) { 200 } else { 4 };
    vec![b'a' + number % 16; letters]
}

/// One operation; that it fails is no news.
async fn act(volume: &Volume<MemoryDisk>, open: &mut Option<OpenFile<MemoryDisk>>, [what, first, second, size]: [u8; 4]) {
    let folder = match volume.find(ROOT_INODE, &name(first >> 4)).await {
        Ok(number) if first & 1 != 0 => number,
        _ => ROOT_INODE,
    };
    let (old, new) = (name(first), name(second));
    let place = u64::from(size) << (second % 32);
    let node = |kind| NewNode { kind, permissions: 0o644, owner: size.into(), group: 0 };
    let _ = match what % 16 {
        0 => volume.create(folder, &new, node(NewKind::File)).await.map(drop),
        1 => volume.create(folder, &new, node(NewKind::Directory)).await.map(drop),
        2 => volume.create(folder, &new, node(NewKind::SymbolicLink(&old))).await.map(drop),
        3 => volume.unlink(folder, &old).await,
        4 => volume.remove_directory(folder, &old).await,
        5 => volume.rename(folder, &old, ROOT_INODE, &new).await,
        6 => volume.rename(ROOT_INODE, &old, folder, &new).await,
        7 => match volume.find(folder, &old).await {
            Ok(number) => volume.link(folder, &new, number).await,
            Err(error) => Err(error),
        },
        8 => volume.resolve(folder, &[&old[..], b"/", &new].concat(), LastLink::Follow).await.map(drop),
        9 => volume.list(folder, place, 100).await.map(drop),
        10 => volume.sync().await,
        11 => {
            let changes = AttributeChanges { owner: Some(size.into()), modified: Some(1), ..Default::default() };
            volume.set_attributes(u32::from(first), changes).await
        }
        12 => volume.open(u32::from(first)).await.map(|file| *open = Some(file)),
        13 => match volume.find(folder, &old).await {
            Ok(number) => volume.open(number).await.map(|file| *open = Some(file)),
            Err(error) => Err(error),
        },
        _ => match open {
            Some(file) => transfer(file, what, place, usize::from(size) * 40).await,
            None => Ok(()),
        },
    };
}

async fn transfer(file: &OpenFile<MemoryDisk>, what: u8, place: u64, bytes: usize) -> Result<(), ext2::Error> {
    let mut buffer = vec![0xff; bytes];
    match what >> 4 & 3 {
        0 => file.read(place, &mut buffer).await.map(drop),
        1 => file.write(place, &buffer).await.map_err(|partial| partial.error),
        2 => file.append(&buffer).await.map(drop).map_err(|partial| partial.error),
        _ => file.set_size(place).await,
    }
}
