//! Tests of the store on in-memory disks.

mod crash;
mod disk;
mod faults;
mod journals;

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use super::{Access, CacheLimits, MountOptions, Store};
use crate::make::{Attributes, Folder, ImageOptions, make_image};
use crate::source::complete;
use disk::{RecordingDisk, fsck};

/// An empty volume.
fn image(block_bytes: u32, volume_bytes: u64) -> Vec<u8> {
    let folder = Folder { attributes: Attributes::searchable(1), entries: BTreeMap::new() };
    let options = ImageOptions { block_bytes, volume_bytes, inodes: None, label: [0; 16], uuid: [7; 16], made: 1 };
    let mut image = Vec::new();
    let built = make_image(&options, &folder, &mut image).unwrap();
    image.resize(built.volume_bytes as usize, 0);
    image
}

fn options() -> MountOptions {
    let limits = CacheLimits { data_bytes: 1 << 20, page_bytes: 16 << 10, ..CacheLimits::default() };
    MountOptions { limits, access: Access::WriteIfPossible }
}

fn open(disk: &RecordingDisk) -> Store<RecordingDisk> {
    complete(Store::open(disk.clone(), &options())).unwrap()
}

#[test]
fn what_is_written_is_read_again_and_the_volume_stays_sound() {
    for block_bytes in [1024, 2048, 4096] {
        let disk = RecordingDisk::new(image(block_bytes, 8 << 20));
        let store = open(&disk);
        let (first, count) = complete(async {
            let change = store.begin_for(8, 100).await.unwrap();
            let (first, count) = store.allocator().allocate_blocks(&change, 500, 100).await.unwrap();
            store.write_data(first, 10, &[1; 5000], true).await.unwrap();
            store.allocator().free_blocks(&change, first, count).await.unwrap();
            drop(change);
            store.commit().await.unwrap();
            let change = store.begin_for(8, 100).await.unwrap();
            let (first, count) = store.allocator().allocate_blocks(&change, 500, 100).await.unwrap();
            store.write_data(first, 10, &[2; 5000], true).await.unwrap();
            (first, count)
        });
        assert_eq!(count, 100);
        let mut bytes = vec![9; 6000];
        complete(store.read_data(first, 0, &mut bytes)).unwrap();
        assert!(bytes[..10] == [0; 10] && bytes[10..5010] == [2; 5000]);
        assert!(bytes[5010..5010usize.next_multiple_of(block_bytes as usize).min(6000)].iter().all(|&byte| byte == 0));
        complete(async {
            let change = store.begin(8).await.unwrap();
            store.allocator().free_blocks(&change, first, count).await.unwrap();
            assert!(store.allocator().free_blocks(&change, first, count).await.is_err());
            let inode = store.allocator().allocate_inode(&change, 2, true).await.unwrap();
            assert_eq!(inode, 12);
            store.allocator().free_inode(&change, inode, true).await.unwrap();
            drop(change);
            store.unmount().await.unwrap();
        });
        fsck(&disk.bytes(), "-fn", &[0]);
    }
}
