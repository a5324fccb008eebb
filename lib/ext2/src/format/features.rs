//! Feature flags and their names, as e2fsprogs writes them.

use core::fmt;

/// A feature's bit and its name in mke2fs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureName {
    /// The flag.
    pub bit: u32,
    /// Name in `mke2fs -O` and `dumpe2fs`.
    pub name: &'static str,
}

const fn feature(bit: u32, name: &'static str) -> FeatureName {
    FeatureName { bit, name }
}

/// Inodes may have extended attributes.
pub const COMPATIBLE_EXTENDED_ATTRIBUTES: u32 = 0x8;
/// Directories may have an index.
pub const COMPATIBLE_DIR_INDEX: u32 = 0x20;
/// Directory entries contain the kind of their inode.
pub const INCOMPATIBLE_FILE_TYPE: u32 = 0x2;
/// The volume has a journal.
pub const COMPATIBLE_HAS_JOURNAL: u32 = 0x4;
/// The journal must be replayed first.
pub const INCOMPATIBLE_RECOVER: u32 = 0x4;
/// Only some groups hold copies of the superblock.
pub const READ_ONLY_SPARSE_SUPER: u32 = 0x1;
/// Some file is larger than 2 GiB.
pub const READ_ONLY_LARGE_FILE: u32 = 0x2;
/// Supported incompatible features.
pub const SUPPORTED_INCOMPATIBLE: u32 = INCOMPATIBLE_FILE_TYPE | INCOMPATIBLE_RECOVER;
/// Read-only-compatible features with which a volume can be written.
pub const WRITABLE_READ_ONLY_COMPATIBLE: u32 = READ_ONLY_SPARSE_SUPER | READ_ONLY_LARGE_FILE;

/// Features that an implementation without them may ignore.
pub const COMPATIBLE: &[FeatureName] = &[
    feature(0x1, "dir_prealloc"),
    feature(0x2, "imagic_inodes"),
    feature(0x4, "has_journal"),
    feature(0x8, "ext_attr"),
    feature(0x10, "resize_inode"),
    feature(0x20, "dir_index"),
    feature(0x40, "lazy_bg"),
    feature(0x100, "snapshot_bitmap"),
    feature(0x200, "sparse_super2"),
    feature(0x400, "fast_commit"),
    feature(0x800, "stable_inodes"),
    feature(0x1000, "orphan_file"),
];

/// Features without which a volume may be read but not written.
pub const READ_ONLY_COMPATIBLE: &[FeatureName] = &[
    feature(0x1, "sparse_super"),
    feature(0x2, "large_file"),
    feature(0x4, "btree_dir"),
    feature(0x8, "huge_file"),
    feature(0x10, "uninit_bg"),
    feature(0x20, "dir_nlink"),
    feature(0x40, "extra_isize"),
    feature(0x80, "snapshot"),
    feature(0x100, "quota"),
    feature(0x200, "bigalloc"),
    feature(0x400, "metadata_csum"),
    feature(0x800, "replica"),
    feature(0x1000, "read-only"),
    feature(0x2000, "project"),
    feature(0x4000, "shared_blocks"),
    feature(0x8000, "verity"),
    feature(0x1_0000, "orphan_present"),
];

/// Features without which a volume must not be mounted.
pub const INCOMPATIBLE: &[FeatureName] = &[
    feature(0x1, "compression"),
    feature(0x2, "filetype"),
    feature(0x4, "needs_recovery"),
    feature(0x8, "journal_dev"),
    feature(0x10, "meta_bg"),
    feature(0x40, "extent"),
    feature(0x80, "64bit"),
    feature(0x100, "mmp"),
    feature(0x200, "flex_bg"),
    feature(0x400, "ea_inode"),
    feature(0x1000, "dirdata"),
    feature(0x2000, "metadata_csum_seed"),
    feature(0x4000, "large_dir"),
    feature(0x8000, "inline_data"),
    feature(0x1_0000, "encrypt"),
    feature(0x2_0000, "casefold"),
];

/// Features without which a journal must not be replayed.
pub const JOURNAL_INCOMPATIBLE: &[FeatureName] = &[
    feature(0x1, "journal_incompat_revoke"),
    feature(0x2, "journal_64bit"),
    feature(0x4, "journal_async_commit"),
    feature(0x8, "journal_checksum_v2"),
    feature(0x10, "journal_checksum_v3"),
    feature(0x20, "fast_commit"),
];

/// A set of incompatible features; displayed by name, unknown ones by bit number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureNames(pub u32);

impl fmt::Display for FeatureNames {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        FeatureNames::write(formatter, self.0, INCOMPATIBLE)
    }
}

impl FeatureNames {
    /// Writes the names of flags, taken from `names`.
    pub(crate) fn write(formatter: &mut fmt::Formatter<'_>, flags: u32, names: &[FeatureName]) -> fmt::Result {
        let mut separator = "";
        for bit in (0..u32::BITS).map(|index| 1u32 << index).filter(|bit| flags & bit != 0) {
            formatter.write_str(separator)?;
            separator = ", ";
            match names.iter().find(|feature| feature.bit == bit) {
                Some(feature) => formatter.write_str(feature.name)?,
                None => write!(formatter, "unknown feature {bit:#x}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn unknown_bits_are_named_by_number() {
        assert_eq!(FeatureNames(0x40 | 0x80 | 0x8000_0000).to_string(), "extent, 64bit, unknown feature 0x80000000");
    }
}
