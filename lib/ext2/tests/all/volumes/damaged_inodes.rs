//! Damage to inodes and to the blocks they claim.

use super::damages::{Damage, SUPER, lossless, lossy, set8, set16, set32};

pub const INODE_DAMAGES: &[Damage] = &[
    lossy("a mode without a kind, a file", "has no meaning: made a file", |image| {
        let at = image.inode(image.find("file"));
        set16(image, at, 0o644)
    }),
    lossy("a folder that says it is a pipe", "holds a folder", |image| {
        let at = image.inode(image.find("folder"));
        set16(image, at, 0o010_755)
    }),
    lossy("a folder that says it is a file", "no way from the root leads to it", |image| {
        let at = image.inode(image.find("folder"));
        set16(image, at, 0o100_755)
    }),
    lossy("the root says it is a file", "holds a folder", |image| {
        let at = image.inode(2);
        set16(image, at, 0o100_755)
    }),
    lossy("the root says it is a pipe, and its block is gone", "the root is not a folder", |image| {
        let (at, block) = (image.inode(2), image.block(image.block_of(2, 0)));
        image.bytes[block..block + 64].fill(0xee);
        set16(image, at, 0o010_755)
    }),
    lossy("no root at all", "there is no root folder", |image| {
        let at = image.inode(2);
        image.bytes[at..at + 128].fill(0);
        true
    }),
    lossless("deleted, without a time", "has no time of deletion", |image| {
        let at = image.inode(image.u32(SUPER + 40) - 1);
        set16(image, at, 0o100_644)
    }),
    lossless("in use, with a time of deletion", "but has a time of deletion", |image| {
        let at = image.inode(image.find("small")) + 20;
        set32(image, at, 1_600_000_000)
    }),
    lossless("in use, with a number as time of deletion", "but has a time of deletion", |image| {
        let at = image.inode(image.find("small")) + 20;
        set32(image, at, 12)
    }),
    lossy("a reserved inode in use", "it is reserved, but in use", |image| {
        let at = image.inode(6);
        set16(image, at, 0o100_644)
    }),
    lossy("the inode of bad blocks in use", "it is reserved, but in use", |image| {
        let at = image.inode(1) + 26;
        set16(image, at, 1)
    }),
    lossless("flags of other systems", "flags 0x80000 have no meaning", |image| {
        let at = image.inode(image.find("file")) + 32;
        set32(image, at, 0x8_0000)
    }),
    lossless("an index of a file", "flags 0x1000 have no meaning", |image| {
        let at = image.inode(image.find("file")) + 32;
        set32(image, at, 0x1000)
    }),
    lossless("a pipe that nobody may change", "flags 0x10 have no meaning", |image| {
        image.has_feature(92, 8) && {
            let at = image.inode(image.find("pipe")) + 32;
            set32(image, at, 0x10)
        }
    }),
    lossless("a fragment", "fragment is 5,", |image| {
        let at = image.inode(image.find("file")) + 112;
        set32(image, at, 5)
    }),
    lossless("upper half of sectors", "sectors (upper half) is 5,", |image| {
        let at = image.inode(image.find("file")) + 116;
        set16(image, at, 5)
    }),
    lossless("upper half of a folder's size", "size (upper half) is 5,", |image| {
        let at = image.inode(image.find("folder")) + 108;
        set32(image, at, 5)
    }),
    lossless("size of the extension", "the size of its extension is 333", |image| {
        image.u16(SUPER + 88) > 128 && image.u32(SUPER + 76) > 0 && {
            let at = image.inode(image.find("small")) + 128;
            set16(image, at, 333)
        }
    }),
    lossy("attributes in an inode", "the attributes in it are damaged", |image| {
        image.has_feature(92, 8) && {
            let at = image.inode(image.find("file")) + 128 + 32 + 4 + 8;
            set32(image, at, 9999)
        }
    }),
    lossy("attributes in a block", "does not hold its attributes", |image| {
        image.has_feature(92, 8) && {
            let block = image.u32(image.inode(image.find("other")) + 104);
            let at = image.block(block);
            block != 0 && set32(image, at, 0)
        }
    }),
    lossy("a hash of attributes", "does not hold its attributes", |image| {
        image.has_feature(92, 8) && {
            let block = image.u32(image.inode(image.find("other")) + 104);
            let at = image.block(block) + 32 + 12;
            block != 0 && set32(image, at, 1)
        }
    }),
    lossless("users of attributes", "9 inodes are said to use", |image| {
        image.has_feature(92, 8) && {
            let block = image.u32(image.inode(image.find("other")) + 104);
            let at = image.block(block) + 4;
            block != 0 && set32(image, at, 9)
        }
    }),
    lossy("attributes outside of the volume", "does not hold its attributes", |image| {
        let at = image.inode(image.find("small")) + 104;
        set32(image, at, 99_999_999)
    }),
    lossy("an impossible block number", "1 block numbers are impossible, the first being 4294967295", |image| {
        let at = image.slot(image.find("other"), 3);
        set32(image, at, u32::MAX)
    }),
    lossy("an impossible table", "1 block numbers are impossible", |image| {
        let at = image.slot(image.find("file"), 12);
        set32(image, at, 77_777_777)
    }),
    lossy("impossible numbers in a table", "block numbers in block", |image| {
        let table = image.u32(image.slot(image.find("file"), 12));
        let at = image.block(table);
        image.bytes[at..at + 64].fill(0xee);
        true
    }),
    lossy("impossible numbers in a table of tables", "block numbers in block", |image| {
        let table = image.u32(image.slot(image.find("file"), 13));
        let at = image.block(table);
        table != 0 && set32(image, at + 12, 1 << 30)
    }),
    lossy("a table of itself", "lead round in circles", |image| {
        let slot = image.slot(image.find("file"), 14);
        let table = image.u32(image.slot(image.find("file"), 12));
        let at = image.block(table);
        for index in 0..image.block_bytes() / 4 {
            image.put32(at + index * 4, table);
        }
        set32(image, slot, table)
    }),
    lossy("two files with one block", "belong to somebody else, too", |image| {
        let block = image.block_of(image.find("file"), 2);
        let at = image.slot(image.find("other"), 1);
        set32(image, at, block)
    }),
    lossy("two files with one table", "belong to somebody else, too", |image| {
        let table = image.u32(image.slot(image.find("file"), 12));
        let at = image.slot(image.find("other"), 12);
        set32(image, at, table)
    }),
    lossy("a file on the inode table", "belong to somebody else, too", |image| {
        let table = image.u32(image.descriptor(0) + 8);
        let at = image.slot(image.find("other"), 1);
        set32(image, at, table)
    }),
    lossy("a table on a bitmap", "belong to somebody else, too", |image| {
        let bitmap = image.u32(image.descriptor(0));
        let at = image.slot(image.find("file"), 12);
        set32(image, at, bitmap)
    }),
    lossy("a folder and a file with one block", "belong to somebody else, too", |image| {
        let block = image.block_of(image.find("folder"), 0);
        let at = image.slot(image.find("small"), 0);
        set32(image, at, block)
    }),
    lossless("size of a file", "the size is 10,", |image| {
        let at = image.inode(image.find("other")) + 4;
        set32(image, at, 10)
    }),
    lossless("size of a folder", "the size is 12345,", |image| {
        let at = image.inode(image.find("folder")) + 4;
        set32(image, at, 12345)
    }),
    lossless("size of a pipe", "the size is 5, which should be 0", |image| {
        image.has_feature(92, 8) && {
            let at = image.inode(image.find("pipe")) + 4;
            set32(image, at, 5)
        }
    }),
    lossless("sectors", "the count of sectors is 9,", |image| {
        let at = image.inode(image.find("file")) + 28;
        set32(image, at, 9)
    }),
    lossy("target of a short link", "the target of the symbolic link is damaged", |image| {
        let at = image.inode(image.find("link")) + 4;
        set32(image, at, 3)
    }),
    lossy("target of a long link", "the target of the symbolic link is damaged", |image| {
        let at = image.block(image.block_of(image.find("long-link"), 0));
        set8(image, at + 20, 0)
    }),
    lossy("a folder without a block", "has no block at all", |image| {
        let at = image.slot(image.find("folder/inner/deep"), 0);
        set32(image, at, 0)
    }),
    lossy("the inode for growing", "does not hold the blocks by which", |image| {
        image.has_feature(92, 0x10) && {
            let at = image.slot(7, 13);
            set32(image, at, 5)
        }
    }),
    lossy("a table of the inode for growing", "does not hold the blocks by which", |image| {
        image.has_feature(92, 0x10) && image.block_bytes() == 1024 && {
            let at = image.block(image.u32(image.block(image.u32(image.slot(7, 13))) + 4));
            set32(image, at, 77)
        }
    }),
];
