//! Sequential reads of a file during changes by others: a reader's cached state never yields stale bytes.

use std::collections::BTreeMap;

use crate::support::{AnyDisk, noise};
use ext2::make::{Attributes, File, Folder, ImageOptions, Node, make_image};
use ext2::{CacheLimits, LastLink, MemoryDisk, MountOptions, OpenFile, ROOT_INODE, Volume, complete};

const FILE_BYTES: usize = 300_000;
/// Room for all data, so that no re-read can hide stale cached state.
const LIMITS: CacheLimits = CacheLimits {
    inode_bytes: 64 << 10,
    number_bytes: 64 << 10,
    data_bytes: 8 << 20,
    page_bytes: 16 << 10,
    requests: 4,
    read_ahead_bytes: 64 << 10,
};
/// Request sizes in bytes: part of a block, a block, some blocks.
const REQUESTS: [usize; 4] = [300, 1024, 4096, 5000];

/// A volume with the file `file` and an empty one, in blocks of this size.
fn volume_of(block_bytes: u32, content: &[u8]) -> Volume<AnyDisk> {
    let attributes = Attributes::readable(1);
    let file = |content: &[u8]| Node::File(File::with_bytes(attributes, content.to_vec()));
    let entries = BTreeMap::from([(b"file".to_vec(), file(content)), (b"other".to_vec(), file(&[]))]);
    let root = Folder { attributes, entries };
    let options =
        ImageOptions { block_bytes, volume_bytes: 4 << 20, inodes: None, label: [0; 16], uuid: [0; 16], made: 1 };
    let mut image = Vec::new();
    let built = make_image(&options, &root, &mut image).unwrap();
    image.resize(built.volume_bytes as usize, 0);
    let options = MountOptions { limits: LIMITS, ..MountOptions::default() };
    complete(Volume::mount(AnyDisk::new(MemoryDisk::new(image)), options)).unwrap()
}

fn open(volume: &Volume<AnyDisk>, name: &str) -> OpenFile<AnyDisk> {
    let inode = complete(volume.resolve(ROOT_INODE, name.as_bytes(), LastLink::Follow)).unwrap();
    complete(volume.open(inode.number)).unwrap()
}

/// Applies a random change, to the file and to its expected content: half of them just before the reader.
fn change([file, other]: &[OpenFile<AnyDisk>; 2], content: &mut Vec<u8>, reader: usize, chance: u32, seed: u32) {
    let place = match seed & 8 {
        0 => reader + (seed as usize >> 4) % 2000,
        _ => (seed as usize >> 4) % (content.len() + 40_000),
    };
    match chance % 8 {
        0 => {
            complete(file.set_size(place as u64)).unwrap();
            content.resize(place, 0);
        }
        1 => {
            let bytes = noise(seed.into(), 3000);
            assert_eq!(complete(file.append(&bytes)), Ok(content.len() as u64));
            content.extend(bytes);
        }
        2 | 3 => {
            let bytes = noise(seed.into(), 1 + seed as usize % 5000);
            complete(file.write(place as u64, &bytes)).unwrap();
            content.resize(content.len().max(place + bytes.len()), 0);
            content[place..place + bytes.len()].copy_from_slice(&bytes);
        }
        // Another file takes the freed blocks.
        4 => match seed & 16 {
            0 => complete(other.set_size(0)).unwrap(),
            _ => complete(other.write(0, &noise(seed.into(), 200_000))).unwrap(),
        },
        // Most requests are consecutive, without a change in between.
        _ => {}
    }
    if content.len() > 2 * FILE_BYTES {
        complete(file.set_size(FILE_BYTES as u64)).unwrap();
        content.truncate(FILE_BYTES);
    }
}

#[test]
fn a_reader_sees_each_change_at_once() {
    for block_bytes in [1024, 4096] {
        let mut content = noise(7, FILE_BYTES);
        let volume = volume_of(block_bytes, &content);
        let (reader, writers) = (open(&volume, "file"), ["file", "other"].map(|name| open(&volume, name)));
        let (mut random, mut position, mut sequential) = (12_345u32, 0, 0);
        for step in 0..20_000u32 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            change(&writers, &mut content, position, random >> 28, random >> 4);
            if random >> 20 & 0x1f == 0 {
                position = (random >> 3) as usize % (content.len() + 1);
            }
            let mut bytes = vec![0xee; REQUESTS[(random >> 16) as usize % REQUESTS.len()]];
            let count = complete(reader.read(position as u64, &mut bytes)).unwrap();
            let wanted = content.get(position..content.len().min(position + bytes.len())).unwrap_or(&[]);
            assert!(count == wanted.len() && bytes[..count] == *wanted, "step {step}, {count} bytes at {position}");
            position += count;
            sequential += usize::from(count > 0);
            if step % 1000 == 0 {
                complete(volume.sync()).unwrap();
            }
        }
        assert!(sequential > 10_000, "{sequential} requests found something");
    }
}

#[test]
fn what_is_no_longer_there_is_not_read() {
    let content = noise(7, FILE_BYTES);
    let volume = volume_of(1024, &content);
    let reader = open(&volume, "file");
    let mut bytes = [0; 4096];
    for piece in content.chunks_exact(bytes.len()).take(20) {
        let place = piece.as_ptr() as usize - content.as_ptr() as usize;
        assert_eq!(complete(reader.read(place as u64, &mut bytes)), Ok(bytes.len()));
        assert_eq!(bytes, *piece);
    }
    complete(volume.unlink(ROOT_INODE, b"file")).unwrap();
    assert_eq!(complete(reader.read(20 * 4096, &mut bytes)), Ok(bytes.len()), "it is open");
    complete(volume.unmount()).unwrap();
    assert_eq!(complete(reader.read(21 * 4096, &mut bytes)), Err(ext2::Error::ShutDown));
}

#[test]
fn blocks_that_another_file_took_are_not_read_on() {
    let content = noise(7, FILE_BYTES);
    let volume = volume_of(1024, &content);
    let [reader, writer, other] = ["file", "file", "other"].map(|name| open(&volume, name));
    let mut bytes = [0; 300];
    for place in (0..60_000).step_by(bytes.len()) {
        assert_eq!(complete(reader.read(place as u64, &mut bytes)), Ok(bytes.len()));
        assert_eq!(bytes, content[place..place + bytes.len()]);
    }
    complete(writer.set_size(100)).unwrap();
    complete(volume.sync()).unwrap();
    // Takes all free space.
    let full = complete(other.write(0, &noise(9, 4 << 20))).unwrap_err();
    assert_eq!(full.error, ext2::Error::NoSpace);
    assert_eq!(complete(reader.read(60_000, &mut bytes)), Ok(0));
    complete(writer.set_size(FILE_BYTES as u64)).unwrap();
    for place in (60_000..90_000).step_by(bytes.len()) {
        assert_eq!(complete(reader.read(place as u64, &mut bytes)), Ok(bytes.len()));
        assert_eq!(bytes, [0; 300]);
    }
}
