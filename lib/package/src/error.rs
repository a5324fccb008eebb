//! Format errors of packages and system images. Each message has the problem, its location and a remedy.

use core::fmt;

use crate::TrustError;

/// Why a file could not be parsed. Offsets are in bytes from its start.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FormatError {
    /// The magic number is not a package's.
    NotAPackage,
    /// The magic number is not a system image's.
    NotASystemImage,
    /// The file is truncated.
    Truncated {
        /// Offset of the missing part.
        offset: usize,
        /// Bytes needed from there on.
        wanted: usize,
        /// Actual size of the file, in bytes.
        length: usize,
    },
    /// There are bytes after the last part.
    TrailingBytes {
        /// Their offset.
        offset: usize,
        /// Their number.
        count: usize,
    },
    /// The bytes of the manifest are not a manifest of this version.
    ManifestUnreadable {
        /// Its offset.
        offset: usize,
    },
    /// The bill of materials is longer than [`BILL_BYTES_MAX`](crate::BILL_BYTES_MAX).
    BillTooLarge {
        /// Its size in bytes.
        bytes: u64,
    },
    /// A compiled image comes with a package that has no module.
    CompiledWithoutModule,
    /// The certificates are malformed.
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
            FormatError::CompiledWithoutModule => {
                write!(
                    f,
                    "a compiled image comes with a package that has no WebAssembly module; install the package alone"
                )
            }
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
