//! Why a package or a system image is rejected. Each message has the problem, its location and a remedy.

use alloc::string::String;
use core::fmt;

use image_check::ImageError;
use manifest_model::Digest;
use package::{FormatError, TrustError};

/// Why a package or a system image is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PackageError {
    /// The file cannot be parsed. Errors in its certificates are [`Trust`](Self::Trust).
    Format(FormatError),
    /// The image fails validation.
    Image(ImageError),
    /// The manifest violates a limit.
    ManifestInvalid {
        /// The problem, as a phrase.
        what: String,
    },
    /// Wrong checksum of a system image.
    SystemChecksum,
    /// Wrong signature of a system image.
    SystemSignature,
    /// The signer is not trusted, or there is none.
    Trust(TrustError),
    /// Wrong digest of the bill of materials.
    BillHash,
    /// The public key is not a curve point.
    BadKey,
    /// Wrong signature of the package.
    BadSignature,
    /// Wrong digest of the image.
    ImageHash,
    /// The program was built for another ABI version.
    AbiVersion {
        /// Its version.
        wanted: u32,
        /// The kernel's version.
        present: u32,
    },
    /// Unsafe code that would run without a hardware domain of its own.
    NotApart,
    /// The code is a script, but there is also an image.
    ScriptWithImage,
    /// The code is a WebAssembly module, and the package has something else.
    NotAModule,
    /// A WebAssembly program without the image that is compiled from its module.
    NotCompiled,
    /// The compiled image is not the template with a module added.
    NotTheTemplate {
        /// Name of the template.
        template: String,
        /// What differs.
        what: &'static str,
    },
    /// No template of this name is installed.
    NoTemplate {
        /// Its name.
        template: String,
    },
    /// The manifest is not what the template's code expects.
    TemplateManifest {
        /// Name of the template.
        template: String,
        /// The list that differs.
        what: &'static str,
    },
    /// The image uses a contract that its manifest does not list.
    UndeclaredContract {
        /// [`abi::name_tag`] of the contract.
        name_tag: u64,
    },
    /// The image and its manifest have different versions of a contract.
    ContractFingerprint {
        /// Name of the contract.
        contract: String,
    },
    /// A module was built for another version of a contract than its manifest states.
    ModuleContract {
        /// Name of the contract.
        contract: String,
        /// Fingerprint of the version that it was built for.
        module: Digest,
        /// Fingerprint in the manifest.
        declared: Digest,
    },
    /// A module's records of contracts are damaged.
    ModuleRecords,
}

const REBUILD: &str = "build the program again with `cargo sing build`";

impl fmt::Display for PackageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PackageError::Format(error) => error.fmt(f),
            PackageError::Image(error) => error.fmt(f),
            PackageError::Trust(error) => error.fmt(f),
            PackageError::ManifestInvalid { what } => write!(f, "the manifest is not sound: {what}; {REBUILD}"),
            PackageError::SystemChecksum => write!(
                f,
                "the head of the system image does not agree with its checksum: a byte was changed; build it again with `cargo sing build`"
            ),
            PackageError::SystemSignature => write!(
                f,
                "the signature of the system image is not its key's over its head: a byte was changed after signing; build it again with `cargo sing build`"
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
            PackageError::NotApart => write!(
                f,
                "it is unsafe code (C, or Rust with `unsafe`), which runs only in a hardware domain of its own, and this system has none for it; give the system a [[domain]] with `each = true` that takes it"
            ),
            PackageError::ScriptWithImage => {
                write!(f, "the manifest says that the code is a script, but the package has an image too; {REBUILD}")
            }
            PackageError::NotAModule => write!(
                f,
                "the manifest says that the code is a WebAssembly module, and the package has none in the binary format; build it again with `cargo sing package`"
            ),
            PackageError::NotCompiled => write!(
                f,
                "it is a WebAssembly module, and nobody has compiled it; install it with `install`, or with `cargo sing install`"
            ),
            PackageError::NotTheTemplate { template, what } => write!(
                f,
                "the image compiled from its module is not the template `{template}` with code added: {what}; install it again"
            ),
            PackageError::NoTemplate { template } => write!(
                f,
                "it is a WebAssembly program of the template `{template}`, and no template of this name is installed; install that first"
            ),
            PackageError::TemplateManifest { template, what } => write!(
                f,
                "its {what} are not those of the template `{template}` of this system; build it again with that version of the template"
            ),
            PackageError::UndeclaredContract { name_tag } => write!(
                f,
                "the image uses a contract (name tag {name_tag:#018x}) that its manifest does not list; add a [[contract]] to manifest.toml"
            ),
            PackageError::ContractFingerprint { contract } => write!(
                f,
                "the image was built with another version of the contract `{contract}` than its manifest states; {REBUILD}"
            ),
            PackageError::ModuleContract { contract, module, declared } => write!(
                f,
                "the module was built for another version of the contract `{contract}` (fingerprint {:016x}) than its manifest states ({:016x}); write its bindings again with `cargo sing contract {contract} --format wasm-rust` or `wasm-c`, and build it",
                start(module),
                start(declared)
            ),
            PackageError::ModuleRecords => {
                write!(f, "the section `sing.contracts` of the module is damaged; build the module again")
            }
        }
    }
}

impl core::error::Error for PackageError {}

impl From<FormatError> for PackageError {
    fn from(error: FormatError) -> PackageError {
        match error {
            FormatError::Chain(error) => PackageError::Trust(error),
            error => PackageError::Format(error),
        }
    }
}

impl From<ImageError> for PackageError {
    fn from(error: ImageError) -> PackageError {
        PackageError::Image(error)
    }
}

impl From<TrustError> for PackageError {
    fn from(error: TrustError) -> PackageError {
        PackageError::Trust(error)
    }
}

/// The start of a fingerprint, which tells versions apart.
fn start(fingerprint: &Digest) -> u64 {
    fingerprint.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}
