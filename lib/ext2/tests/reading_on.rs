//! A file that is read in order while others change it: what a reader remembers of it never shows as old bytes.

mod support;

use std::collections::BTreeMap;

use ext2::format::{Attributes, File, Folder, Node, Options, format};
use ext2::{LastLink, MemoryDisk, MountOptions, OpenFile, ROOT_INODE, Volume, complete};
use support::noise;

const FILE_BYTES: usize = 300_000;
/// Bytes of a request: part of a block, a block, some blocks.
const REQUESTS: [usize; 4] = [700, 1024, 4096, 5000];

/// A volume with the file `file`, in blocks of this size.
fn volume_of(block_bytes: u32, content: &[u8]) -> Volume<MemoryDisk> {
    let attributes = Attributes::readable(1);
    let file = Node::File(File::with_bytes(attributes, content.to_vec()));
    let root = Folder { attributes, entries: BTreeMap::from([(b"file".to_vec(), file)]) };
    let options = Options { block_bytes, volume_bytes: 4 << 20, inodes: None, label: [0; 16], uuid: [0; 16], made: 1 };
    let mut image = Vec::new();
    let built = format(&options, &root, &mut image).unwrap();
    image.resize(built.volume_bytes as usize, 0);
    complete(Volume::mount(MemoryDisk::new(image), MountOptions::default())).unwrap()
}

fn open(volume: &Volume<MemoryDisk>) -> OpenFile<MemoryDisk> {
    let inode = complete(volume.resolve(ROOT_INODE, b"file", LastLink::Follow)).unwrap();
    complete(volume.open(inode.number)).unwrap()
}

/// Does one change of chance, to the file and to what it is to be.
fn change(file: &OpenFile<MemoryDisk>, content: &mut Vec<u8>, chance: u32, seed: u32) {
    let place = (seed as usize >> 4) % (content.len() + 4096);
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
        // Most requests follow one another without a change.
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
        let (reader, writer) = (open(&volume), open(&volume));
        let (mut random, mut position, mut sequential) = (12_345u32, 0, 0);
        for step in 0..20_000u32 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            change(&writer, &mut content, random >> 28, random >> 4);
            if random >> 20 & 0x1f == 0 || position >= content.len() {
                position = (random >> 3) as usize % (content.len() + 1);
            }
            let mut bytes = vec![0xee; REQUESTS[(random >> 16) as usize % REQUESTS.len()]];
            let count = complete(reader.read(position as u64, &mut bytes)).unwrap();
            let wanted = &content[position..content.len().min(position + bytes.len())];
            assert!(count == wanted.len() && bytes[..count] == *wanted, "step {step}, {count} bytes at {position}");
            position += count;
            sequential += usize::from(count > 0);
            if step % 1000 == 0 {
                complete(volume.sync()).unwrap();
            }
        }
        assert!(sequential > 15_000, "{sequential} requests found something");
    }
}

#[test]
fn what_is_no_longer_there_is_not_read() {
    let content = noise(7, FILE_BYTES);
    let volume = volume_of(1024, &content);
    let reader = open(&volume);
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
