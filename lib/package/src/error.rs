//! Why a package, system image or image is refused. Each message says what, where and what to do.

use alloc::string::String;
use core::fmt;

use crate::TrustError;

/// Why a package was refused. Offsets are bytes from the start of the file named; addresses are
/// offsets from the base of the image.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PackageError {
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
    /// A number in the manifest is impossible.
    ManifestInvalid {
        /// Which, as a phrase.
        what: String,
    },
    /// The checksum of a system image is wrong.
    SystemChecksum,
    /// The signature of a system image is not its key's over its head.
    SystemSignature,
    /// Whoever signed may not, or nobody did.
    Trust(TrustError),
    /// The bill of materials is longer than [`BILL_BYTES_MAX`](crate::BILL_BYTES_MAX).
    BillTooLarge {
        /// Bytes it has.
        bytes: u64,
    },
    /// The bill of materials is not the one that the header was made for.
    BillHash,
    /// The key is not a point of the curve.
    BadKey,
    /// The signature is not the key's over these bytes.
    BadSignature,
    /// The image is not the one that the manifest was made for.
    ImageHash,
    /// The program was built for another version of the ABI.
    AbiVersion {
        /// The version it was built for.
        wanted: u32,
        /// The one there is.
        present: u32,
    },
    /// The code is a script, but there is an image as well.
    ScriptWithImage,
    /// The image file is larger than [`IMAGE_BYTES_MAX`](crate::IMAGE_BYTES_MAX), or spans more than that.
    TooLarge {
        /// Bytes it has.
        bytes: u64,
    },
    /// The image file is not ELF.
    NotElf,
    /// A header of the ELF file is malformed.
    ElfMalformed {
        /// Which.
        what: &'static str,
    },
    /// The file is for another machine: not 64-bit little-endian x86-64.
    WrongMachine,
    /// The file is not a position-independent executable.
    NotPie,
    /// The file asks for a dynamic loader.
    Interpreter,
    /// The file wants a shared library or an imported symbol.
    Import,
    /// The file has thread-local storage, which is writable.
    ThreadLocal,
    /// The file has constructors, destructors or another dynamic feature that nothing would run.
    DynamicFeature {
        /// Its tag in the dynamic section.
        tag: i64,
    },
    /// A segment is both writable and executable.
    WritableCode {
        /// Where.
        address: u64,
    },
    /// A segment has bytes that stay writable: a `static mut` or one with interior mutability.
    WritableData {
        /// Where.
        address: u64,
        /// How many.
        bytes: u64,
        /// The symbol there, if the file has one.
        symbol: Option<String>,
    },
    /// A segment has zeroed writable memory: a `static mut` or one with interior mutability.
    ZeroedData {
        /// Where.
        address: u64,
        /// How many bytes.
        bytes: u64,
        /// The symbol there, if the file has one.
        symbol: Option<String>,
    },
    /// Two segments share a page.
    SegmentsOverlap {
        /// Where the second begins.
        address: u64,
    },
    /// A segment's bytes lie outside the file.
    SegmentOutsideFile {
        /// Where it would be.
        address: u64,
    },
    /// There is no executable segment.
    NoCode,
    /// The program would start outside its code.
    EntryOutsideCode {
        /// Where.
        entry: u64,
    },
    /// A relocation is not of the relative kind.
    RelocationKind {
        /// Its type number.
        kind: u32,
        /// What it would change.
        address: u64,
    },
    /// A relocation would change code, or what is not there.
    RelocationTarget {
        /// What it would change.
        address: u64,
    },
    /// A relocation makes an address outside the image.
    RelocationAddend {
        /// What it would change.
        address: u64,
        /// The address it makes.
        addend: i64,
    },
    /// The bytes are no instruction that a program may use on any x86-64 processor.
    UnknownInstruction {
        /// Where.
        address: u64,
        /// The function, if the file names it.
        symbol: Option<String>,
    },
    /// An instruction that reaches past the kernel.
    ForbiddenInstruction {
        /// Its name.
        name: String,
        /// Where.
        address: u64,
        /// The function, if the file names it.
        symbol: Option<String>,
    },
    /// An instruction that takes more than a page off the stack pointer, so that a guard could be stepped over.
    StackStep {
        /// How much.
        bytes: u64,
        /// Where.
        address: u64,
        /// The function, if the file names it.
        symbol: Option<String>,
    },
    /// An instruction that goes through the FS or GS base.
    SegmentOverride {
        /// Where.
        address: u64,
        /// The function, if the file names it.
        symbol: Option<String>,
    },
    /// A branch that does not land on an instruction of the image's code.
    BranchTarget {
        /// Where the branch is.
        address: u64,
        /// Where it goes.
        target: u64,
        /// The function, if the file names it.
        symbol: Option<String>,
    },
    /// An executable page has bytes that belong to no section of code.
    StrayCode {
        /// Where.
        address: u64,
    },
    /// The section of contract records is damaged.
    ContractRecords {
        /// Where in the section.
        offset: usize,
    },
    /// The image uses a contract that its manifest does not list.
    UndeclaredContract {
        /// [`abi::name_tag`] of the contract.
        name_tag: u64,
    },
    /// The image was built with another version of a contract than the manifest.
    ContractFingerprint {
        /// Name of the contract.
        contract: String,
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

impl fmt::Display for PackageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PackageError::NotAPackage
            | PackageError::NotASystemImage
            | PackageError::Truncated { .. }
            | PackageError::TrailingBytes { .. }
            | PackageError::ManifestUnreadable { .. }
            | PackageError::ManifestInvalid { .. }
            | PackageError::SystemSignature
            | PackageError::SystemChecksum => self.fmt_file(f),
            PackageError::Trust(error) => error.fmt(f),
            PackageError::BillTooLarge { .. }
            | PackageError::BillHash
            | PackageError::BadKey
            | PackageError::BadSignature
            | PackageError::ImageHash
            | PackageError::AbiVersion { .. }
            | PackageError::ScriptWithImage
            | PackageError::UndeclaredContract { .. }
            | PackageError::ContractRecords { .. }
            | PackageError::ContractFingerprint { .. } => self.fmt_trust(f),
            PackageError::UnknownInstruction { .. }
            | PackageError::ForbiddenInstruction { .. }
            | PackageError::StackStep { .. }
            | PackageError::SegmentOverride { .. }
            | PackageError::BranchTarget { .. }
            | PackageError::StrayCode { .. } => self.fmt_code(f),
            _ => self.fmt_elf(f),
        }
    }
}

impl core::error::Error for PackageError {}

impl From<TrustError> for PackageError {
    fn from(error: TrustError) -> PackageError {
        PackageError::Trust(error)
    }
}

impl PackageError {
    fn fmt_file(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PackageError::NotAPackage => {
                write!(
                    f,
                    "the file is not a package: its first 8 bytes are not `SINGPKG3`; build the system again, or give a file that `cargo sing build` made"
                )
            }
            PackageError::NotASystemImage => {
                write!(
                    f,
                    "the file is not a system image: its first 8 bytes are not `SINGSYS3`; build the system again, or give a file that `cargo sing build` made"
                )
            }
            PackageError::Truncated { offset, wanted, length } => write!(
                f,
                "the file is cut short: {wanted} bytes are wanted from offset {offset} on, but it has {length} bytes; copy or build it again"
            ),
            PackageError::TrailingBytes { offset, count } => {
                write!(
                    f,
                    "{count} bytes follow the end of the file's contents at offset {offset}; copy or build it again"
                )
            }
            PackageError::ManifestUnreadable { offset } => write!(
                f,
                "the manifest at offset {offset} cannot be read: it is damaged or of another version; {REBUILD}"
            ),
            PackageError::ManifestInvalid { what } => write!(f, "the manifest is not sound: {what}; {REBUILD}"),
            PackageError::SystemSignature => write!(
                f,
                "the signature of the system image is not its key's over its head: a byte was changed after signing; build it again with `cargo sing build`"
            ),
            _ => write!(
                f,
                "the head of the system image does not agree with its checksum: a byte was changed; build it again with `cargo sing build`"
            ),
        }
    }

    fn fmt_trust(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PackageError::BillTooLarge { bytes } => write!(
                f,
                "the bill of materials has {bytes} bytes, more than the {} allowed; {REBUILD}",
                crate::BILL_BYTES_MAX
            ),
            PackageError::BillHash => write!(
                f,
                "the bill of materials does not have the digest that the header states: a byte was changed after signing; copy or build it again"
            ),
            PackageError::BadKey => {
                write!(f, "the public key is not an Ed25519 key: a byte of it was changed; copy or sign it again")
            }
            PackageError::BadSignature => write!(
                f,
                "the package's signature is not its key's over its header, manifest and certificates: a byte was changed after signing; copy or sign it again"
            ),
            PackageError::ImageHash => write!(
                f,
                "the image does not have the digest that the manifest states: a byte was changed after signing; copy or build it again"
            ),
            PackageError::AbiVersion { wanted, present } => write!(
                f,
                "the program was built for ABI version {wanted}, but this kernel has version {present}; build it for version {present}"
            ),
            PackageError::ScriptWithImage => {
                write!(f, "the manifest says that the code is a script, but the package has an image too; {REBUILD}")
            }
            PackageError::UndeclaredContract { name_tag } => write!(
                f,
                "the image uses a contract (name tag {name_tag:#018x}) that its manifest does not list; add a [[contract]] to manifest.toml"
            ),
            PackageError::ContractRecords { offset } => {
                write!(f, "the section `.sing.contracts` of the image is damaged at offset {offset}; {REBUILD}")
            }
            PackageError::ContractFingerprint { contract } => write!(
                f,
                "the image was built with another version of the contract `{contract}` than its manifest states; {REBUILD}"
            ),
            _ => Ok(()),
        }
    }

    fn fmt_code(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SAFE: &str = "a program may consist of safe Rust only, compiled for the baseline of x86-64";
        match self {
            PackageError::UnknownInstruction { address, symbol } => {
                write!(f, "there is no known instruction ")?;
                at(f, *address, symbol)?;
                write!(f, "; {SAFE}: remove inline assembly and extra target features")
            }
            PackageError::ForbiddenInstruction { name, address, symbol } => {
                write!(f, "the instruction `{name}` ")?;
                at(f, *address, symbol)?;
                write!(f, " is not allowed; {SAFE}: call the kernel through crate sip instead")
            }
            PackageError::StackStep { bytes, address, symbol } => {
                write!(f, "the stack grows by {bytes} bytes at once ")?;
                at(f, *address, symbol)?;
                write!(
                    f,
                    ", but each page of a stack must be touched in turn, for its guard to be met; build it with `cargo sing \
                     build`, and report the function if that is how it was built"
                )
            }
            PackageError::SegmentOverride { address, symbol } => {
                write!(f, "an access through the FS or GS base ")?;
                at(f, *address, symbol)?;
                write!(
                    f,
                    " is not allowed, for that memory is the kernel's; remove thread-local statics and inline assembly"
                )
            }
            PackageError::BranchTarget { address, target, symbol } => {
                write!(f, "the branch ")?;
                at(f, *address, symbol)?;
                write!(f, " goes to {target:#x}, which is no instruction of the image; {REBUILD}")
            }
            PackageError::StrayCode { address } => {
                write!(f, "the executable bytes at {address:#x} belong to no section of code; {REBUILD}")
            }
            _ => Ok(()),
        }
    }

    fn fmt_elf(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const PURE: &str = "a program has no writable statics: keep the state in `main` and pass it on";
        match self {
            PackageError::TooLarge { bytes } => write!(
                f,
                "the image has {bytes} bytes, more than the {} allowed; split the program or strip the image",
                crate::IMAGE_BYTES_MAX
            ),
            PackageError::NotElf => write!(f, "the image is not an ELF file; {REBUILD}"),
            PackageError::ElfMalformed { what } => write!(f, "the image is not a sound ELF file: {what}; {REBUILD}"),
            PackageError::WrongMachine => {
                write!(
                    f,
                    "the image is not for 64-bit x86-64 machines; build it for the target x86_64-unknown-linux-gnu"
                )
            }
            PackageError::NotPie => {
                write!(
                    f,
                    "the image is not a position-independent executable; link it with `-static-pie`, as `cargo sing build` does"
                )
            }
            PackageError::Interpreter => {
                write!(
                    f,
                    "the image asks for a dynamic loader, and there is none; link it with `-static-pie`, as `cargo sing build` does"
                )
            }
            PackageError::Import => {
                write!(
                    f,
                    "the image wants a shared library or an imported symbol, and there are none; remove the dependency on C code"
                )
            }
            PackageError::ThreadLocal => {
                write!(f, "the image has thread-local statics; keep the state in `main` and pass it on")
            }
            PackageError::DynamicFeature { tag } => write!(
                f,
                "the image's dynamic section has the entry {tag:#x}, which nothing would act on; remove constructors and C code"
            ),
            PackageError::WritableCode { address } => {
                write!(f, "the segment at {address:#x} is both writable and executable; code never changes: {REBUILD}")
            }
            PackageError::WritableData { address, bytes, symbol } => {
                write!(f, "{bytes} bytes of writable data ")?;
                at(f, *address, symbol)?;
                write!(f, "; {PURE}")
            }
            PackageError::ZeroedData { address, bytes, symbol } => {
                write!(f, "{bytes} bytes of zeroed writable memory ")?;
                at(f, *address, symbol)?;
                write!(f, "; {PURE}")
            }
            PackageError::SegmentsOverlap { address } => {
                write!(f, "the segment at {address:#x} overlaps the one before it or shares a page with it; {REBUILD}")
            }
            PackageError::SegmentOutsideFile { address } => {
                write!(f, "the bytes of the segment at {address:#x} lie outside the image file; copy or build it again")
            }
            PackageError::NoCode => write!(f, "the image has no code; {REBUILD}"),
            PackageError::EntryOutsideCode { entry } => {
                write!(f, "the image would start at {entry:#x}, which is no instruction of its code; {REBUILD}")
            }
            PackageError::RelocationKind { kind, address } => write!(
                f,
                "the relocation at {address:#x} is of type {kind}, not R_X86_64_RELATIVE; link with `-static-pie`, as `cargo sing build` does"
            ),
            PackageError::RelocationTarget { address } => write!(
                f,
                "a relocation would change {address:#x}, which is code or no part of the image's data; {REBUILD}"
            ),
            PackageError::RelocationAddend { address, addend } => write!(
                f,
                "the relocation at {address:#x} makes the address {addend:#x}, which is outside the image; {REBUILD}"
            ),
            _ => Ok(()),
        }
    }
}
