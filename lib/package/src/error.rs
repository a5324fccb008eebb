//! Why bytes are no package and no system image. Each message says what, where and what to do.

use core::fmt;

use crate::TrustError;

/// Why a file could not be taken apart. Offsets are bytes from its start.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FormatError {
    /// The file does not begin as a package does.
    NotAPackage,
    /// The file does not begin as a system image does.
    NotASystemImage,
    /// The file ends too soon.
    Truncated {
        /// Where the missing part begins.
        offset: usize,
        /// Bytes it should have.
        wanted: usize,
        /// Bytes of the file.
        length: usize,
    },
    /// Something follows the last part.
    TrailingBytes {
        /// Where it begins.
        offset: usize,
        /// Bytes of it.
        count: usize,
    },
    /// The manifest's bytes are not a manifest of this version.
    ManifestUnreadable {
        /// Where it begins.
        offset: usize,
    },
    /// The bill of materials is longer than [`BILL_BYTES_MAX`](crate::BILL_BYTES_MAX).
    BillTooLarge {
        /// Bytes it has.
        bytes: u64,
    },
    /// The certificates cannot be read.
    Chain(TrustError),
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FormatError::NotAPackage => {
                write!(
                    f,
                    "the file is not a package: its first 8 bytes are not `SINGPKG3`; build the system again, or give a file that `cargo sing build` made"
                )
            }
            FormatError::NotASystemImage => {
                write!(
                    f,
                    "the file is not a system image: its first 8 bytes are not `SINGSYS3`; build the system again, or give a file that `cargo sing build` made"
                )
            }
            FormatError::Truncated { offset, wanted, length } => write!(
                f,
                "the file is cut short: {wanted} bytes are wanted from offset {offset} on, but it has {length} bytes; copy or build it again"
            ),
            FormatError::TrailingBytes { offset, count } => {
                write!(
                    f,
                    "{count} bytes follow the end of the file's contents at offset {offset}; copy or build it again"
                )
            }
            FormatError::ManifestUnreadable { offset } => write!(
                f,
                "the manifest at offset {offset} cannot be read: it is damaged or of another version; {REBUILD}"
            ),
            FormatError::BillTooLarge { bytes } => write!(
                f,
                "the bill of materials has {bytes} bytes, more than the {} allowed; {REBUILD}",
                crate::BILL_BYTES_MAX
            ),
            FormatError::Chain(error) => error.fmt(f),
        }
    }
}

const REBUILD: &str = "build the program again with `cargo sing build`";

impl core::error::Error for FormatError {}

impl From<TrustError> for FormatError {
    fn from(error: TrustError) -> FormatError {
        FormatError::Chain(error)
    }
}
