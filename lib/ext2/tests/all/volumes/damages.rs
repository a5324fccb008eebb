//! Volumes with one fault each: the damage and the expected findings. The volume as a whole, its groups, its journal.

use super::image::Image;

/// A way to damage a volume, and words that the findings must contain.
pub struct Damage {
    pub name: &'static str,
    pub words: &'static str,
    /// Whether it can be repaired without loss.
    pub lossless: bool,
    /// `false` if this damage is impossible on this volume.
    pub make: fn(&mut Image) -> bool,
}

pub const fn lossless(name: &'static str, words: &'static str, make: fn(&mut Image) -> bool) -> Damage {
    Damage { name, words, lossless: true, make }
}

pub const fn lossy(name: &'static str, words: &'static str, make: fn(&mut Image) -> bool) -> Damage {
    Damage { name, words, lossless: false, make }
}

/// Overwrites 32 bits.
pub fn set32(image: &mut Image, at: usize, value: u32) -> bool {
    image.put32(at, value);
    true
}

pub fn set16(image: &mut Image, at: usize, value: u16) -> bool {
    image.put16(at, value);
    true
}

pub fn set8(image: &mut Image, at: usize, value: u8) -> bool {
    image.bytes[at] = value;
    true
}

pub const SUPER: usize = 1024;
pub const DESTROYED: &str = "superblock: destroyed";

pub const SUPERBLOCK_DAMAGES: &[Damage] = &[
    lossy("the magic number is gone", DESTROYED, |image| set16(image, SUPER + 56, 0)),
    lossy("the superblock is zeros", DESTROYED, |image| {
        image.bytes[SUPER..2 * SUPER].fill(0);
        true
    }),
    lossy("impossible block size", DESTROYED, |image| set32(image, SUPER + 24, 77)),
    lossy("more blocks than the disk", DESTROYED, |image| set32(image, SUPER + 4, u32::MAX)),
    lossy("too many blocks a group", DESTROYED, |image| set32(image, SUPER + 32, 1 << 20)),
    lossy("no inodes in a group", DESTROYED, |image| set32(image, SUPER + 40, 0)),
    lossless("count of inodes", "inodes_count is 5,", |image| set32(image, SUPER, 5)),
    lossless("too much is reserved", "r_blocks_count is 20000,", |image| set32(image, SUPER + 8, 20000)),
    lossless("fragments", "log_frag_size is 6,", |image| set32(image, SUPER + 28, 6)),
    lossless("fragments a group", "frags_per_group is 100,", |image| set32(image, SUPER + 36, 100)),
    lossless("first inode", "first_ino is 0,", |image| image.u32(SUPER + 76) > 0 && set32(image, SUPER + 84, 0)),
    lossless("revision 0 with features", "rev_level is 0,", |image| {
        image.u32(SUPER + 96) != 0 && set32(image, SUPER + 76, 0)
    }),
    lossless("kept blocks without the feature", "reserved_gdt_blocks is 9,", |image| {
        image.u32(SUPER + 76) > 0 && !image.has_feature(92, 0x10) && set16(image, SUPER + 206, 9)
    }),
    lossless("extra size of inodes", "want_extra_isize is 3,", |image| {
        image.u16(SUPER + 88) > 128 && set16(image, SUPER + 350, 3)
    }),
    lossless("not unmounted", "was not unmounted", |image| set16(image, SUPER + 58, 0)),
    lossless("errors were found", "errors were found", |image| set16(image, SUPER + 58, 3)),
    lossless("free blocks in all", "free blocks is 7,", |image| set32(image, SUPER + 12, 7)),
    lossless("free inodes in all", "free inodes is 7,", |image| set32(image, SUPER + 16, 7)),
    lossless("a backup is gone", "the copy of the superblock differs", |image| {
        let backup = image.backup(1);
        image.block_bytes() == 1024 && set16(image, backup + 56, 0)
    }),
    lossless("a backup of another volume", "the copy of the superblock differs", |image| {
        let backup = image.backup(1);
        image.block_bytes() == 1024 && set32(image, backup + 104, 99)
    }),
    lossless("descriptors in a backup", "the copy of the descriptors differs", |image| {
        let backup = image.backup(1);
        image.block_bytes() == 1024 && set32(image, backup + 1024 + 40, 99)
    }),
    lossless("a journal without the feature", "it speaks of a journal", |image| {
        !image.has_feature(92, 4) && set32(image, SUPER + 224, 8)
    }),
    lossless("changes without a journal", "it speaks of a journal", |image| {
        let features = image.u32(SUPER + 96);
        image.u32(SUPER + 76) > 0 && !image.has_feature(92, 4) && set32(image, SUPER + 96, features | 4)
    }),
    lossy("a journal in no inode", "journal: it cannot be used", |image| {
        let features = image.u32(SUPER + 92);
        image.u32(SUPER + 76) > 0 && !image.has_feature(92, 4) && set32(image, SUPER + 92, features | 4)
    }),
    lossy("orphans that are none", "cannot be on the list", |image| set32(image, SUPER + 232, 3)),
    lossless("large file without the feature", "the feature large_file is in use", |image| {
        let (file, features) = (image.find("file"), image.u32(SUPER + 100));
        let size = image.inode(file) + 108;
        image.block_bytes() == 1024 && set32(image, SUPER + 100, features & !2) && set32(image, size, 1)
    }),
];

pub const GROUP_DAMAGES: &[Damage] = &[
    lossy("block bitmap outside", "cannot be its block bitmap", |image| {
        let at = image.descriptor(0);
        set32(image, at, 70000)
    }),
    lossy("inode bitmap in another group", "cannot be its inode bitmap", |image| {
        let at = image.descriptor(1) + 4;
        image.block_bytes() == 1024 && set32(image, at, 300)
    }),
    lossy("inode table outside", "cannot be its inode table", |image| {
        let at = image.descriptor(0) + 8;
        set32(image, at, 0)
    }),
    lossy("inode table moved by one", "cannot be its inode table", |image| {
        let at = image.descriptor(1) + 8;
        let table = image.bytes.len() / image.block_bytes() > 8192 && image.block_bytes() == 1024;
        table && {
            let value = image.u32(at) + 1;
            set32(image, at, value)
        }
    }),
    lossy("all descriptors are zeros", "cannot be its inode table", |image| {
        let at = image.descriptor(0);
        image.bytes[at..at + 1024].fill(0);
        true
    }),
    lossless("flags of a descriptor", "flags without a meaning", |image| {
        let at = image.descriptor(0) + 18;
        set16(image, at, 3)
    }),
    lossless("free blocks of a group", "free blocks is 1,", |image| {
        let at = image.descriptor(0) + 12;
        set16(image, at, 1)
    }),
    lossless("free inodes of a group", "free inodes is 1,", |image| {
        let at = image.descriptor(0) + 14;
        set16(image, at, 1)
    }),
    lossless("folders of a group", "folders is 77,", |image| {
        let at = image.descriptor(0) + 16;
        set16(image, at, 77)
    }),
    lossless("blocks in use marked free", "8 blocks in use are marked free", |image| {
        let at = image.block(image.u32(image.descriptor(0)));
        set8(image, at + 1, 0)
    }),
    lossless("free blocks marked in use", "8 free ones in use", |image| {
        let last = if image.block_bytes() == 1024 { 2 } else { 0 };
        let at = image.block(image.u32(image.descriptor(last)));
        let end = if last == 0 { 600 } else { 500 };
        set8(image, at + end, 0xff)
    }),
    lossless("inodes in use marked free", "inodes in use are marked free", |image| {
        let at = image.block(image.u32(image.descriptor(0) + 4));
        set8(image, at + 1, 0)
    }),
    lossless("free inodes marked in use", "free ones in use", |image| {
        let per_group = image.u32(SUPER + 40) as usize;
        let at = image.block(image.u32(image.descriptor(0) + 4));
        set8(image, at + per_group / 8 - 1, 0xff)
    }),
    lossless("end of a bitmap", "is not filled with ones", |image| {
        let at = image.block(image.u32(image.descriptor(0) + 4)) + image.block_bytes() - 1;
        set8(image, at, 0)
    }),
];

pub const JOURNAL_DAMAGES: &[Damage] = &[
    lossy("the journal's magic number", "journal: it cannot be used", |image| {
        let at = image.block(image.block_of(8, 0));
        image.has_feature(92, 4) && set32(image, at, 0)
    }),
    lossy("a hole in the journal", "journal: it cannot be used", |image| {
        let at = image.slot(8, 5);
        image.has_feature(92, 4) && set32(image, at, 0)
    }),
    lossy("the journal's inode is another", "journal: it cannot be used", |image| {
        image.has_feature(92, 4) && set32(image, SUPER + 224, 13)
    }),
    lossless("changes in an unmounted journal", "though the volume was unmounted", |image| {
        let at = image.block(image.block_of(8, 0)) + 28;
        image.has_feature(92, 4) && set32(image, at, 1 << 24)
    }),
    lossless("an empty log that is to be replayed", "it holds changes that are not in their places", |image| {
        let features = image.u32(SUPER + 96);
        image.has_feature(92, 4) && set32(image, SUPER + 96, features | 4)
    }),
];
