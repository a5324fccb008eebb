//! Why an image is rejected. Each message has the problem, its location and a remedy.

use alloc::string::String;
use core::fmt;

/// Why an image is rejected. Addresses are offsets from its base.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImageError {
    /// The file, or the memory that it spans, exceeds [`IMAGE_BYTES_MAX`](crate::IMAGE_BYTES_MAX).
    TooLarge {
        /// Actual size in bytes.
        bytes: u64,
    },
    /// Not an ELF file.
    NotElf,
    /// A malformed ELF header.
    ElfMalformed {
        /// The problem, as a phrase.
        what: &'static str,
    },
    /// Not for 64-bit little-endian x86-64.
    WrongMachine,
    /// Not a position-independent executable.
    NotPie,
    /// It needs a dynamic loader.
    Interpreter,
    /// It needs a shared library or imported symbol.
    Import,
    /// It has thread-local storage, which is writable.
    ThreadLocal,
    /// It has constructors, destructors or other dynamic features, which nothing would run.
    DynamicFeature {
        /// Tag in the dynamic section.
        tag: i64,
    },
    /// A segment that is writable and executable.
    WritableCode {
        /// Its address.
        address: u64,
    },
    /// Initialized writable data: a `static mut` or one with interior mutability.
    WritableData {
        /// Its address.
        address: u64,
        /// Its size in bytes.
        bytes: u64,
        /// The symbol there, if there is one.
        symbol: Option<String>,
    },
    /// Zeroed writable data: a `static mut` or one with interior mutability.
    ZeroedData {
        /// Its address.
        address: u64,
        /// Its size in bytes.
        bytes: u64,
        /// The symbol there, if there is one.
        symbol: Option<String>,
    },
    /// Two segments share a page.
    SegmentsOverlap {
        /// Address of the second.
        address: u64,
    },
    /// A segment's content is outside the file.
    SegmentOutsideFile {
        /// Its address.
        address: u64,
    },
    /// There is no executable segment.
    NoCode,
    /// The entry point is not in the code.
    EntryOutsideCode {
        /// The entry point.
        entry: u64,
    },
    /// A relocation other than R_X86_64_RELATIVE.
    RelocationKind {
        /// Its type.
        kind: u32,
        /// Its target.
        address: u64,
    },
    /// A relocation of code, or outside the image.
    RelocationTarget {
        /// Its target.
        address: u64,
    },
    /// A relocation to an address outside the image.
    RelocationAddend {
        /// Its target.
        address: u64,
        /// The resulting address.
        addend: i64,
    },
    /// Not an instruction that is available on all x86-64 processors.
    UnknownInstruction {
        /// Its address.
        address: u64,
        /// The function, if known.
        symbol: Option<String>,
    },
    /// A forbidden instruction, for instance a privileged one.
    ForbiddenInstruction {
        /// Its name.
        name: String,
        /// Its address.
        address: u64,
        /// The function, if known.
        symbol: Option<String>,
    },
    /// An instruction that moves the stack pointer down by more than a page, which could skip the guard page.
    StackStep {
        /// The decrement in bytes.
        bytes: u64,
        /// Its address.
        address: u64,
        /// The function, if known.
        symbol: Option<String>,
    },
    /// An access through the FS or GS base.
    SegmentOverride {
        /// Its address.
        address: u64,
        /// The function, if known.
        symbol: Option<String>,
    },
    /// A branch to anything but an instruction of the image's code.
    BranchTarget {
        /// Address of the branch.
        address: u64,
        /// Its target.
        target: u64,
        /// The function, if known.
        symbol: Option<String>,
    },
    /// Executable bytes outside the code sections.
    StrayCode {
        /// Their address.
        address: u64,
    },
    /// A malformed section of contract records.
    ContractRecords {
        /// Offset in the section.
        offset: usize,
    },
}

fn at(f: &mut fmt::Formatter<'_>, address: u64, symbol: &Option<String>) -> fmt::Result {
    write!(f, "at {address:#x}")?;
    match symbol {
        Some(symbol) => write!(f, " in `{symbol}`"),
        None => Ok(()),
    }
}

const REBUILD: &str = "build the program again with `cargo sing build`";

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImageError::UnknownInstruction { .. }
            | ImageError::ForbiddenInstruction { .. }
            | ImageError::StackStep { .. }
            | ImageError::SegmentOverride { .. }
            | ImageError::BranchTarget { .. }
            | ImageError::StrayCode { .. } => self.fmt_code(f),
            _ => self.fmt_elf(f),
        }
    }
}

impl core::error::Error for ImageError {}

impl ImageError {
    fn fmt_code(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SAFE: &str = "a program may consist of safe Rust only, compiled for the baseline of x86-64";
        match self {
            ImageError::UnknownInstruction { address, symbol } => {
                write!(f, "there is no known instruction ")?;
                at(f, *address, symbol)?;
                write!(f, "; {SAFE}: remove inline assembly and extra target features")
            }
            ImageError::ForbiddenInstruction { name, address, symbol } => {
                write!(f, "the instruction `{name}` ")?;
                at(f, *address, symbol)?;
                write!(f, " is not allowed; {SAFE}: call the kernel through crate sip instead")
            }
            ImageError::StackStep { bytes, address, symbol } => {
                write!(f, "the stack grows by {bytes} bytes at once ")?;
                at(f, *address, symbol)?;
                write!(
                    f,
                    ", but each page of a stack must be touched in turn, for its guard to be met; build it with `cargo sing \
                     build`, and report the function if that is how it was built"
                )
            }
            ImageError::SegmentOverride { address, symbol } => {
                write!(f, "an access through the FS or GS base ")?;
                at(f, *address, symbol)?;
                write!(
                    f,
                    " is not allowed, for that memory is the kernel's; remove thread-local statics and inline assembly"
                )
            }
            ImageError::BranchTarget { address, target, symbol } => {
                write!(f, "the branch ")?;
                at(f, *address, symbol)?;
                write!(f, " goes to {target:#x}, which is no instruction of the image; {REBUILD}")
            }
            ImageError::StrayCode { address } => {
                write!(f, "the executable bytes at {address:#x} belong to no section of code; {REBUILD}")
            }
            _ => Ok(()),
        }
    }

    fn fmt_elf(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const PURE: &str = "a program has no writable statics: keep the state in `main` and pass it on";
        match self {
            ImageError::TooLarge { bytes } => write!(
                f,
                "the image has {bytes} bytes, more than the {} allowed; split the program or strip the image",
                crate::IMAGE_BYTES_MAX
            ),
            ImageError::NotElf => write!(f, "the image is not an ELF file; {REBUILD}"),
            ImageError::ElfMalformed { what } => write!(f, "the image is not a sound ELF file: {what}; {REBUILD}"),
            ImageError::WrongMachine => {
                write!(
                    f,
                    "the image is not for 64-bit x86-64 machines; build it for the target x86_64-unknown-linux-gnu"
                )
            }
            ImageError::NotPie => {
                write!(
                    f,
                    "the image is not a position-independent executable; link it with `-static-pie`, as `cargo sing build` does"
                )
            }
            ImageError::Interpreter => {
                write!(
                    f,
                    "the image asks for a dynamic loader, and there is none; link it with `-static-pie`, as `cargo sing build` does"
                )
            }
            ImageError::Import => {
                write!(
                    f,
                    "the image wants a shared library or an imported symbol, and there are none; remove the dependency on C code"
                )
            }
            ImageError::ThreadLocal => {
                write!(f, "the image has thread-local statics; keep the state in `main` and pass it on")
            }
            ImageError::DynamicFeature { tag } => write!(
                f,
                "the image's dynamic section has the entry {tag:#x}, which nothing would act on; remove constructors and C code"
            ),
            ImageError::WritableCode { address } => {
                write!(f, "the segment at {address:#x} is both writable and executable; code never changes: {REBUILD}")
            }
            ImageError::WritableData { address, bytes, symbol } => {
                write!(f, "{bytes} bytes of writable data ")?;
                at(f, *address, symbol)?;
                write!(f, "; {PURE}")
            }
            ImageError::ZeroedData { address, bytes, symbol } => {
                write!(f, "{bytes} bytes of zeroed writable memory ")?;
                at(f, *address, symbol)?;
                write!(f, "; {PURE}")
            }
            ImageError::SegmentsOverlap { address } => {
                write!(f, "the segment at {address:#x} overlaps the one before it or shares a page with it; {REBUILD}")
            }
            ImageError::SegmentOutsideFile { address } => {
                write!(f, "the bytes of the segment at {address:#x} lie outside the image file; copy or build it again")
            }
            ImageError::NoCode => write!(f, "the image has no code; {REBUILD}"),
            ImageError::EntryOutsideCode { entry } => {
                write!(f, "the image would start at {entry:#x}, which is no instruction of its code; {REBUILD}")
            }
            ImageError::RelocationKind { kind, address } => write!(
                f,
                "the relocation at {address:#x} is of type {kind}, not R_X86_64_RELATIVE; link with `-static-pie`, as `cargo sing build` does"
            ),
            ImageError::RelocationTarget { address } => write!(
                f,
                "a relocation would change {address:#x}, which is code or no part of the image's data; {REBUILD}"
            ),
            ImageError::RelocationAddend { address, addend } => write!(
                f,
                "the relocation at {address:#x} makes the address {addend:#x}, which is outside the image; {REBUILD}"
            ),
            ImageError::ContractRecords { offset } => {
                write!(f, "the section `.sing.contracts` of the image is damaged at offset {offset}; {REBUILD}")
            }
            _ => Ok(()),
        }
    }
}
