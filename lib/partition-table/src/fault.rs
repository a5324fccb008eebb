//! Faults of partition tables, with messages.

use core::fmt;

/// The copies of a GPT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copy {
    /// Primary, at the start of the disk.
    First,
    /// Backup, at its end.
    Backup,
}

/// Why a copy of a GPT is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderError {
    /// It cannot be read.
    Unreadable,
    /// It has no signature.
    NoSignature,
    /// Wrong header checksum.
    HeaderChecksum,
    /// Wrong checksum of the entries.
    EntriesChecksum,
    /// The header states another sector than its own.
    Elsewhere,
    /// An impossible number in the header: a length, or the location of entries or partitions.
    Absurd,
}

/// A part of a table that is ignored, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The partition exceeds the disk, or the usable part of it.
    OutOfRange {
        /// Its number.
        number: u32,
    },
    /// The partition ends before it begins.
    Backwards {
        /// Its number.
        number: u32,
    },
    /// The partition overlaps the table.
    OverTable {
        /// Its number.
        number: u32,
    },
    /// Two partitions overlap; both are ignored.
    Overlap {
        /// Number of the one that starts first.
        number: u32,
        /// Number of the other.
        other: u32,
    },
    /// The extended partition exceeds the disk, or its extended partition.
    ExtendedOutOfRange {
        /// Its number.
        number: u32,
    },
    /// A cycle in the chain of logical partitions.
    Circle {
        /// The repeated sector.
        sector: u64,
    },
    /// The chain of logical partitions leaves the extended partition.
    ChainOutOfRange {
        /// The sector outside.
        sector: u64,
    },
    /// The chain of logical partitions leads to a sector that has no table or cannot be read.
    ChainBroken {
        /// The sector.
        sector: u64,
    },
    /// More than [`MAX_PARTITIONS`](crate::MAX_PARTITIONS).
    TooMany,
    /// A damaged copy of the GPT.
    Damaged {
        /// The copy.
        copy: Copy,
        /// The damage.
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
