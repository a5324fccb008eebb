//! What of a table is not used, in words.

use core::fmt;

/// One of the two copies of a GPT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copy {
    /// At the beginning of the disk.
    First,
    /// At its end.
    Backup,
}

/// Why a copy of a GPT is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderError {
    /// It cannot be read.
    Unreadable,
    /// There is none.
    NoSignature,
    /// Its header does not have the checksum that it names.
    HeaderChecksum,
    /// Its entries do not have the checksum that the header names.
    EntriesChecksum,
    /// The header says that it lies elsewhere.
    Elsewhere,
    /// A number in the header makes no sense: its length, that of entries, or where they or partitions may lie.
    Absurd,
}

/// Something in a table that is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The partition ends past the end of the disk, or of the part of it that partitions may use.
    OutOfRange {
        /// The partition.
        number: u32,
    },
    /// The partition ends before it begins.
    Backwards {
        /// The partition.
        number: u32,
    },
    /// The partition lies over the table.
    OverTable {
        /// The partition.
        number: u32,
    },
    /// Two partitions share sectors: neither is used.
    Overlap {
        /// The one that begins earlier.
        number: u32,
        /// The other.
        other: u32,
    },
    /// The extended partition ends past the end of the disk, or of the extended partition.
    ExtendedOutOfRange {
        /// The partition.
        number: u32,
    },
    /// The chain of logical partitions comes back to a sector where it has been.
    Circle {
        /// The sector.
        sector: u64,
    },
    /// The chain of logical partitions leads out of the extended partition.
    ChainOutOfRange {
        /// The sector that it leads to.
        sector: u64,
    },
    /// The chain of logical partitions leads to a sector without a table, or one that cannot be read.
    ChainBroken {
        /// The sector.
        sector: u64,
    },
    /// There are more partitions than are looked at.
    TooMany,
    /// A copy of the GPT is damaged.
    Damaged {
        /// Which one.
        copy: Copy,
        /// In what way.
        error: HeaderError,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const END: &str = "it is not served";
        const CHAIN: &str = "logical partitions from there on are not served";
        match self {
            Fault::OutOfRange { number } => {
                write!(formatter, "partition {number} lies past the end of what the table or disk has; {END}")
            }
            Fault::Backwards { number } => write!(formatter, "partition {number} ends before it begins; {END}"),
            Fault::OverTable { number } => write!(formatter, "partition {number} lies over the partition table; {END}"),
            Fault::Overlap { number, other } => {
                write!(formatter, "partitions {number} and {other} overlap; neither is served")
            }
            Fault::ExtendedOutOfRange { number } => {
                write!(formatter, "the extended partition {number} lies past the end of the disk; {END}")
            }
            Fault::Circle { sector } => {
                write!(formatter, "the chain of logical partitions leads in a circle at sector {sector}; {CHAIN}")
            }
            Fault::ChainOutOfRange { sector } => {
                write!(formatter, "the chain of logical partitions leads out of its extended partition, ")?;
                write!(formatter, "to sector {sector}; {CHAIN}")
            }
            Fault::ChainBroken { sector } => {
                write!(formatter, "the chain of logical partitions is broken at sector {sector}; {CHAIN}")
            }
            Fault::TooMany => {
                formatter.write_str("there are more partitions than can be served; the last are left out")
            }
            Fault::Damaged { copy, error } => {
                let copy = match copy {
                    Copy::First => "the partition table",
                    Copy::Backup => "the backup of the partition table",
                };
                write!(formatter, "{copy} {}", error.text())
            }
        }
    }
}

impl HeaderError {
    fn text(self) -> &'static str {
        match self {
            HeaderError::Unreadable => "cannot be read",
            HeaderError::NoSignature => "is not there",
            HeaderError::HeaderChecksum => "is damaged (the checksum of its header is wrong)",
            HeaderError::EntriesChecksum => "is damaged (the checksum of its entries is wrong)",
            HeaderError::Elsewhere => "is damaged (its header belongs elsewhere)",
            HeaderError::Absurd => "is damaged (its header makes no sense)",
        }
    }
}
