//! Damaged metadata is an error, whatever the damage: no panic, no endless loop, no allocation of a size controlled by
//! the damage.

use std::cell::Cell;
use std::future::Future;
use std::sync::LazyLock;

use crate::support::{AnyDisk, noise, read};
use ext2::make::{Attributes, File, Folder, ImageOptions, Link, Node, make_image};
use ext2::{
    BlockSource, CacheLimits, DiskError, Error, FormatError, Kind, LastLink, MemoryDisk, MountOptions, ROOT_INODE,
    Structure, Volume, complete,
};
use proptest::prelude::*;

const BLOCK_BYTES: usize = 1024;
/// Maximum disk reads of a walk: many times the number for the intact image.
const MAX_READS: u32 = 200_000;

/// A disk that panics after too many reads.
struct CountingDisk(MemoryDisk, Cell<u32>);

impl BlockSource for CountingDisk {
    type Buffer = Vec<u8>;

    fn size_bytes(&self) -> u64 {
        self.0.size_bytes()
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn allocate(&self, bytes: usize) -> Result<Vec<u8>, DiskError> {
        Ok(vec![0; bytes])
    }

    async fn read(&self, offset: u64, buffer: Vec<u8>, bytes: usize) -> (Option<Vec<u8>>, Result<(), DiskError>) {
        self.1.set(self.1.get() + 1);
        assert!(self.1.get() < MAX_READS, "reading does not end");
        self.0.read(offset, buffer, bytes).await
    }

    async fn write(&self, offset: u64, buffer: Vec<u8>, bytes: usize) -> (Option<Vec<u8>>, Result<(), DiskError>) {
        self.0.write(offset, buffer, bytes).await
    }

    async fn flush(&self) -> Result<(), DiskError> {
        Ok(())
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        complete(task);
    }

    fn now_s(&self) -> u32 {
        0
    }
}

/// A small image with every structure: a folder of several blocks, all levels of indirect blocks, links.
static IMAGE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let attributes = Attributes::searchable(1);
    let file = |size: usize| Node::File(File::with_bytes(attributes, noise(7, size)));
    let sparse = [0, 13 << 10, 300 << 10, 70 << 20].map(|at| (at, noise(at, 3000)));
    let sparse = Node::File(File { attributes, size: 80 << 20, extents: sparse.into() });
    let link = |target: &[u8]| Node::Link(Link { attributes, target: target.to_vec() });
    let many = (0..100).map(|index| (format!("file-{index:060}").into_bytes(), file(index))).collect();
    let root = [
        (b"many".to_vec(), Node::Folder(Folder { attributes, entries: many })),
        (b"plain".to_vec(), file(20 << 10)),
        (b"sparse".to_vec(), sparse),
        (b"short".to_vec(), link(b"many")),
        (b"long".to_vec(), link(&b"./".repeat(90))),
    ];
    let options =
        ImageOptions { block_bytes: 1024, volume_bytes: 2 << 20, inodes: None, label: [0; 16], uuid: [0; 16], made: 1 };
    let mut image = Vec::new();
    let built = make_image(&options, &Folder { attributes, entries: root.into() }, &mut image).unwrap();
    image.resize(built.volume_bytes as usize, 0);
    image
});

/// Metadata blocks: all that are neither empty nor the noise of a file's content.
static METADATA_BLOCKS: LazyLock<Vec<usize>> = LazyLock::new(|| {
    let is_noise = |block: &[u8]| block.iter().filter(|&&byte| byte == 0).count() < BLOCK_BYTES / 16;
    let is_empty = |block: &[u8]| block.iter().all(|&byte| byte == 0);
    let blocks = IMAGE.chunks(BLOCK_BYTES).enumerate();
    blocks.filter(|(_, block)| !is_noise(block) && !is_empty(block)).map(|(index, _)| index).collect()
});

/// Exercises all operations on a volume, to a bounded depth. Returns the first error.
fn walk(image: Vec<u8>) -> Option<Error> {
    let disk = CountingDisk(MemoryDisk::new(image), Cell::new(0));
    let limits = CacheLimits {
        inode_bytes: 2000,
        number_bytes: 8000,
        data_bytes: 64 << 10,
        page_bytes: 4096,
        ..CacheLimits::default()
    };
    let options = MountOptions { limits, ..MountOptions::default() };
    let volume = match complete(Volume::mount(AnyDisk::new(disk), options)) {
        Ok(volume) => volume,
        Err(error) => return Some(error),
    };
    let mut first = None;
    let mut note = |error: Error| {
        assert!(!error.to_string().is_empty());
        first.get_or_insert(error);
    };
    let mut folders = vec![(ROOT_INODE, 0)];
    let mut visited = 0;
    while let Some((number, depth)) = folders.pop() {
        visited += 1;
        if visited > 50 {
            break;
        }
        let listing = complete(volume.list(number, 0, 200));
        let Ok(listing) = listing.map_err(&mut note) else { continue };
        assert!(listing.entries.len() <= 200);
        for entry in listing.entries {
            let Ok(inode) = complete(volume.inode(entry.inode)).map_err(&mut note) else { continue };
            match inode.kind {
                Kind::Directory if depth < 5 => folders.push((entry.inode, depth + 1)),
                Kind::File => {
                    let mut buffer = [0; 5000];
                    for position in [0, 12 << 10, 300 << 10, 70 << 20, inode.size / 2, inode.size.saturating_sub(3000)]
                    {
                        read(&volume, &inode, position, &mut buffer).map_err(&mut note).ok();
                    }
                }
                Kind::SymbolicLink => {
                    complete(volume.link_target(inode.number)).map_err(&mut note).ok();
                }
                _ => {}
            }
        }
    }
    for path in ["long", "short/../plain", "sparse", "many/../many/file", "/short/./", "long/long/long"] {
        match complete(volume.resolve(ROOT_INODE, path.as_bytes(), LastLink::Follow)) {
            Err(Error::NotFound) | Ok(_) => {}
            Err(error) => note(error),
        }
    }
    first
}

/// Returns the image with a number overwritten at this byte.
fn damaged(offset: usize, bytes: &[u8]) -> Vec<u8> {
    let mut image = IMAGE.clone();
    image[offset..offset + bytes.len()].copy_from_slice(bytes);
    image
}

#[test]
fn the_sound_image_has_nothing_wrong() {
    assert_eq!(walk(IMAGE.clone()), None);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_damage_is_survived(
        damage in prop::collection::vec((any::<prop::sample::Index>(), 0..BLOCK_BYTES, prop_oneof![
            Just(0), Just(1), Just(0xff), Just(0x7f), Just(0x80), any::<u8>()
        ]), 1..12)
    ) {
        let mut image = IMAGE.clone();
        for (block, within, byte) in damage {
            image[block.get(&METADATA_BLOCKS) * BLOCK_BYTES + within] = byte;
        }
        walk(image);
    }

    #[test]
    fn any_length_is_survived(bytes in 0..2usize << 20) {
        let mut image = IMAGE.clone();
        image.truncate(bytes);
        let refused = walk(image);
        let refused = matches!(refused, Some(Error::Format(FormatError::Truncated { .. } | FormatError::TooSmall(_))));
        prop_assert!(refused);
    }
}

#[test]
fn every_byte_of_the_superblock_may_be_anything() {
    for offset in 1024..1024 + 264 {
        for byte in [0, 1, 0xff] {
            walk(damaged(offset, &[byte]));
        }
    }
}

/// Offset of an inode: with 1 KiB blocks, descriptor 0 is in block 2.
fn inode_offset(number: usize) -> usize {
    let table = u32::from_le_bytes(IMAGE[2048 + 8..2048 + 12].try_into().unwrap()) as usize;
    table * BLOCK_BYTES + (number - 1) * 256
}

/// Block number at this position of an inode.
fn block_number(inode: usize, position: usize) -> u32 {
    let offset = inode_offset(inode) + 40 + position * 4;
    u32::from_le_bytes(IMAGE[offset..offset + 4].try_into().unwrap())
}

#[test]
fn wild_pointers_are_named() {
    let cases = [
        (1024 + 20, 9, Structure::Superblock),
        (1024 + 32, 0, Structure::Superblock),
        (1024 + 40, 0, Structure::Superblock),
        (1024, u32::MAX, Structure::Superblock),
        (2048 + 8, u32::MAX, Structure::GroupDescriptor(0)),
        (2048 + 8, 0, Structure::GroupDescriptor(0)),
        (inode_offset(2) + 40, u32::MAX, Structure::Inode(2)),
        (inode_offset(2) + 40, 1, Structure::Inode(2)),
        (inode_offset(2) + 4, 0x4000_0000, Structure::Inode(2)),
        (inode_offset(2), 0, Structure::Inode(2)),
    ];
    for (offset, value, structure) in cases {
        match walk(damaged(offset, &u32::to_le_bytes(value))) {
            Some(Error::Format(FormatError::Corrupt(corruption))) => {
                assert_eq!(corruption.structure, structure, "{value:#x} at {offset}");
                assert!(corruption.to_string().contains("run e2fsck"));
            }
            other => panic!("{value:#x} at {offset}: {other:?}"),
        }
    }
}

#[test]
fn folder_entries_that_lead_nowhere_end_the_listing() {
    let entry = block_number(2, 0) as usize * BLOCK_BYTES;
    for (offset, bytes) in [(4, &[0, 0][..]), (4, &[7, 0]), (4, &[0xff, 0xff]), (6, &[0]), (0, &[0xff; 4]), (8, b"/")] {
        match walk(damaged(entry + offset, bytes)) {
            Some(Error::Format(FormatError::Corrupt(corruption))) => {
                assert_eq!(corruption.structure, Structure::DirectoryEntry(2, 0));
                assert_eq!(corruption.block as usize * BLOCK_BYTES, entry);
            }
            other => panic!("{bytes:?} at {offset}: {other:?}"),
        }
    }
}

#[test]
fn an_indirect_block_that_names_itself_does_not_loop() {
    // The file `sparse`: lost+found is 11, then come long, many, plain, short, sparse.
    let inode = 16;
    for level in 12..15 {
        let block = block_number(inode, level);
        assert_ne!(block, 0);
        let image = damaged(block as usize * BLOCK_BYTES, &block.to_le_bytes().repeat(BLOCK_BYTES / 4));
        walk(image);
        let wild = damaged(block as usize * BLOCK_BYTES, &u32::MAX.to_le_bytes().repeat(BLOCK_BYTES / 4));
        let Some(Error::Format(FormatError::Corrupt(corruption))) = walk(wild) else {
            panic!("a wild number was followed")
        };
        assert_eq!((corruption.structure, corruption.block), (Structure::IndirectBlock(16), block.into()));
    }
}
