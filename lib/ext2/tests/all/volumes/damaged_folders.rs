//! Damage to folders, and to paths and counts that depend on them.

use super::damages::{Damage, SUPER, lossless, lossy, set8, set16, set32};

pub const FOLDER_DAMAGES: &[Damage] = &[
    lossy("an entry's length is 0", "is no entry", |image| {
        let at = image.entry(2, "other") + 4;
        set16(image, at, 0)
    }),
    lossy("an entry's length is odd", "is no entry", |image| {
        let at = image.entry(image.find("folder"), "one") + 4;
        set16(image, at, 15)
    }),
    lossy("an entry's length leads out of the block", "is no entry", |image| {
        let at = image.entry(image.find("folder"), "two") + 4;
        set16(image, at, 60000)
    }),
    lossy("a name longer than its entry", "is no entry", |image| {
        let at = image.entry(image.find("folder"), "one") + 6;
        set8(image, at, 250)
    }),
    lossy("noise in a folder", "is no entry", |image| {
        let at = image.block(image.block_of(image.find("folder"), 0)) + 24;
        image.bytes[at..at + 200].fill(0xee);
        true
    }),
    lossy("a folder's first block is zeros", "does not begin with", |image| {
        let at = image.block(image.block_of(image.find("folder"), 0));
        let end = at + image.block_bytes();
        image.bytes[at..end].fill(0);
        true
    }),
    lossy("`.` has another name", "does not begin with", |image| {
        let at = image.block(image.block_of(image.find("folder"), 0)) + 8;
        set8(image, at, b'x')
    }),
    lossy("`..` has another name", "does not begin with", |image| {
        let at = image.block(image.block_of(image.find("folder"), 0)) + 12 + 8;
        set8(image, at, b'x')
    }),
    lossless("`.` leads elsewhere", "`.` leads to inode 2", |image| {
        let at = image.block(image.block_of(image.find("folder"), 0));
        set32(image, at, 2)
    }),
    lossless("`..` leads elsewhere", "`..` leads to inode 11,", |image| {
        let at = image.block(image.block_of(image.find("folder"), 0)) + 12;
        set32(image, at, 11)
    }),
    lossless("`..` leads nowhere", "`..` leads to inode 4000000000,", |image| {
        let at = image.block(image.block_of(image.find("folder/inner"), 0)) + 12;
        set32(image, at, 4_000_000_000)
    }),
    lossless("`..` of the root leads elsewhere", "`..` leads to inode 11,", |image| {
        let at = image.block(image.block_of(2, 0)) + 12;
        set32(image, at, 11)
    }),
    lossy("a name leads to an inode that is not in use", "`other` leads to inode", |image| {
        let (at, free) = (image.entry(2, "other"), image.u32(SUPER + 40) - 1);
        set32(image, at, free)
    }),
    lossy("a name leads to no inode", "`other` leads to inode 3000000000", |image| {
        let at = image.entry(2, "other");
        set32(image, at, 3_000_000_000)
    }),
    lossy("a name leads to a reserved inode", "`other` leads to inode 4,", |image| {
        let at = image.entry(2, "other");
        set32(image, at, 4)
    }),
    lossy("a name leads to the root", "`one` may not be a name", |image| {
        let at = image.entry(image.find("folder"), "one");
        set32(image, at, 2)
    }),
    lossy("a name leads to its own folder", "`one` may not be a name", |image| {
        let (at, folder) = (image.entry(image.find("folder"), "one"), image.find("folder"));
        set32(image, at, folder)
    }),
    lossy("a name without a byte", "`` may not be a name", |image| {
        let at = image.entry(image.find("folder"), "one") + 6;
        set8(image, at, 0)
    }),
    lossless("a name with a slash", "has zeros or slashes", |image| {
        let at = image.entry(image.find("folder"), "one") + 8;
        set8(image, at + 1, b'/')
    }),
    lossy("a name that is there twice", "`two` is there twice", |image| {
        let at = image.entry(image.find("folder"), "one") + 8;
        image.bytes[at..at + 3].copy_from_slice(b"two");
        true
    }),
    lossy("a second name of a folder", "is a second name of folder", |image| {
        let (at, inner) = (image.entry(2, "small"), image.find("folder/inner"));
        set32(image, at, inner)
    }),
    lossless("an entry with another kind", "is said to be of kind", |image| {
        let at = image.entry(2, "small") + 7;
        let says = image.bytes[at];
        set8(image, at, says ^ 3)
    }),
    lossy("a folder below itself", "no way from the root leads to it", |image| {
        // `folder` becomes an entry of `deep`, which is below it.
        let (root, deep) = (image.entry(2, "folder"), image.find("folder/inner/deep"));
        let (folder, kind) = (image.u32(root), image.bytes[root + 7]);
        let dot_dot = image.block(image.block_of(deep, 0)) + 12;
        image.put16(dot_dot + 4, 12);
        image.put32(dot_dot + 12, folder);
        let rest = image.block_bytes() as u16 - 24;
        image.put16(dot_dot + 16, rest);
        image.bytes[dot_dot + 18] = 3;
        image.bytes[dot_dot + 19] = kind;
        image.bytes[dot_dot + 20..dot_dot + 23].copy_from_slice(b"top");
        set32(image, root, 0)
    }),
    lossy("a folder without a name", "no way from the root leads to it", |image| {
        let at = image.entry(2, "folder");
        set32(image, at, 0)
    }),
    lossy("a file without a name", "no folder has a name for it", |image| {
        let at = image.entry(2, "other");
        set32(image, at, 0)
    }),
    lossy("an empty file without a name", "neither name nor content", |image| {
        let at = image.entry(2, "empty");
        set32(image, at, 0)
    }),
    lossy("a file without a name, and no lost+found", "no folder has a name for it", |image| {
        let (at, lost) = (image.entry(2, "other"), image.entry(2, "lost+found"));
        image.put32(lost, 0);
        set32(image, at, 0)
    }),
    lossy("a file without a name, and a file as lost+found", "`lost+found` leads to inode", |image| {
        let (at, lost) = (image.entry(2, "other"), image.entry(2, "lost+found"));
        let small = image.u32(image.entry(2, "small"));
        image.put32(lost, small);
        set32(image, at, 0)
    }),
    lossless("count of names", "the count of names is 77,", |image| {
        let at = image.inode(image.find("small")) + 26;
        set16(image, at, 77)
    }),
    lossless("count of names of a folder", "the count of names is 1,", |image| {
        let at = image.inode(image.find("folder")) + 26;
        set16(image, at, 1)
    }),
    lossless("the hash of an index", "the index is damaged", |image| {
        let big = image.find("big");
        let at = image.block(image.block_of(big, 0)) + 24 + 8 + 8;
        image.u32(image.inode(big) + 32) & 0x1000 != 0 && set32(image, at, 2)
    }),
    lossless("a block of an index", "the index is damaged", |image| {
        let big = image.find("big");
        let at = image.block(image.block_of(big, 0)) + 24 + 8 + 4;
        image.u32(image.inode(big) + 32) & 0x1000 != 0 && set32(image, at, 2)
    }),
    lossless("the way of hashing of an index", "the index is damaged", |image| {
        let big = image.find("big");
        let at = image.block(image.block_of(big, 0)) + 24 + 4;
        image.u32(image.inode(big) + 32) & 0x1000 != 0 && set8(image, at, 9)
    }),
    lossy("a hole in a folder", "1 of its blocks are missing", |image| {
        let at = image.slot(image.find("big"), 2);
        image.u32(at) != 0 && set32(image, at, 0)
    }),
    lossy("a hole at the beginning of a folder", "1 of its blocks are missing", |image| {
        let at = image.slot(image.find("big"), 0);
        let more = at + 4;
        image.u32(more) != 0 && set32(image, at, 0)
    }),
    lossless("a file that was being cut", "was being deleted or cut", |image| {
        let other = image.find("other");
        let size = image.inode(other) + 4;
        image.put32(size, 100);
        set32(image, SUPER + 232, other)
    }),
    lossless("files that were being deleted", "was being deleted or cut", |image| {
        let (other, two) = (image.find("other"), image.find("folder/two"));
        for (folder, name) in [(2, "other"), (image.find("folder"), "two")] {
            let at = image.entry(folder, name);
            image.put32(at, 0);
        }
        for (inode, next) in [(other, two), (two, 0)] {
            let at = image.inode(inode);
            image.put16(at + 26, 0);
            image.put32(at + 20, next);
        }
        set32(image, SUPER + 232, other)
    }),
    lossy("orphans in a circle", "cannot be on the list", |image| {
        let (other, two) = (image.find("other"), image.find("folder/two"));
        for (inode, next) in [(other, two), (two, other)] {
            let at = image.inode(inode) + 20;
            image.put32(at, next);
        }
        set32(image, SUPER + 232, other)
    }),
];
