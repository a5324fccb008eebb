//! Verifies package files and system images, and converts the results to findings.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use image_analysis::{Assessment, Conformance, Fault, assess, conform};
use image_check::{Data, ImageError};
use manifest_model::{Code as ProgramCode, Manifest, SystemManifest};
use package::{Certificate, Delivery, FormatError, Package, SystemImage, TrustError};
use package_check::{Isolation, PackageError, Verified, identity_of_delivery, sha256};

use crate::check::{check, manifest, refused};
use crate::code::{Code, Topic};
use crate::installed::{Change, Installed, Program};
use crate::report::{Finding, Line, Report};

/// An operation on a package file, or without one.
#[derive(Clone, Copy, Debug)]
pub enum Request<'a> {
    /// See [`Change::Install`].
    Install {
        /// The package file.
        package: &'a [u8],
        /// Whether an instance starts at boot.
        at_boot: bool,
        /// Patterns of paths that it may bind.
        allow: &'a [alloc::string::String],
    },
    /// See [`Change::Upgrade`].
    Upgrade {
        /// The package file.
        package: &'a [u8],
        /// Whether its reach may grow.
        more: bool,
    },
    /// See [`Change::Uninstall`].
    Uninstall {
        /// The program's name.
        name: &'a str,
    },
}

/// Checks a request, with a full report of the package file. `packages` are those of the system, with the
/// templates of its WebAssembly programs; `None` of a system that is not built yet, whose templates are not compared.
/// Returns the system after the change, if it is accepted.
pub fn examine(
    installed: &Installed,
    packages: Option<&[&[u8]]>,
    request: &Request<'_>,
) -> (Report, Option<Installed>) {
    let package = match request {
        Request::Install { package, .. } | Request::Upgrade { package, .. } => *package,
        Request::Uninstall { name } => {
            let change = Change::Uninstall { name };
            return judged(installed, &change, Vec::new());
        }
    };
    let (program, lines) = match verified(package, packages, &installed.system) {
        Ok(verified) => verified,
        Err(findings) => return (refused(findings), None),
    };
    let change = match request {
        Request::Install { at_boot, allow, .. } => Change::Install { program: &program, at_boot: *at_boot, allow },
        Request::Upgrade { more, .. } => Change::Upgrade { program: &program, more: *more },
        Request::Uninstall { name } => Change::Uninstall { name },
    };
    judged(installed, &change, lines)
}

fn judged(installed: &Installed, change: &Change<'_>, lines: Vec<Line>) -> (Report, Option<Installed>) {
    let mut report = check(installed, change);
    report.lines.extend(lines);
    report.sort();
    let after = report.is_accepted().then(|| change.apply(installed).0);
    (report, after)
}

/// Verifies a package file for a system of these packages, as for [`examine`]. Returns the program's data for the system, and a line for each
/// proof.
///
/// # Errors
/// The first fault, as nothing more can be derived from an invalid file; for an invalid manifest, all its faults.
pub fn verified(
    bytes: &[u8],
    packages: Option<&[&[u8]]>,
    system: &SystemManifest,
) -> Result<(Program, Vec<Line>), Vec<Finding>> {
    let delivery = Delivery::parse(bytes).map_err(|error| Vec::from([finding_of(&error.into(), "")]))?;
    let package = &delivery.package;
    let isolation = Isolation::of(system, &package.manifest);
    let verified = match delivered(&delivery, packages, system) {
        Ok(verified) => verified,
        Err(error @ PackageError::ManifestInvalid { .. }) => {
            let mut findings = faults_of(&package.manifest);
            if findings.is_empty() {
                findings.push(finding_of(&error, &package.manifest.name));
            }
            return Err(findings);
        }
        Err(error) => return Err(Vec::from([finding_of(&error, &package.manifest.name)])),
    };
    if core::str::from_utf8(package.bill).is_err() {
        let what = "the bill of materials is not UTF-8 text";
        let remedy = "build the program again with `cargo sing build`";
        return Err(Vec::from([Finding::new(Code::BillNotText, &package.manifest.name, what, remedy)]));
    }
    let mut lines = proofs(package, bytes.len(), &verified, isolation);
    // Faults of the manifest are told first; those of its assertions and lists, too.
    if verified.image.is_some() && manifest::findings(&package.manifest).is_empty() {
        lines.extend(analysed(&package.manifest, delivery.image())?);
    }
    Ok((Program { manifest: verified.manifest, key: package.key }, lines))
}

/// Verifies a package in a system; that of a WebAssembly program with its compiled image and its template.
fn delivered<'a>(
    delivery: &Delivery<'a>,
    packages: Option<&[&[u8]]>,
    system: &SystemManifest,
) -> Result<Verified<'a>, PackageError> {
    let isolation = Isolation::of(system, &delivery.package.manifest);
    let Some(name) = delivery.package.manifest.code.template() else {
        return package_check::verify_in(&delivery.package, &system.trust, isolation);
    };
    let alone = package_check::verify_in(&delivery.package, &system.trust, isolation)?;
    if delivery.compiled.is_none() {
        return Err(PackageError::NotCompiled);
    }
    let Some(packages) = packages else { return Ok(alone) };
    let mut parsed = packages.iter().filter_map(|bytes| Package::parse(bytes).ok());
    match parsed.find(|package| package.manifest.name == name) {
        Some(template) => {
            package_check::verify_compiled_in_steps(delivery, &template, &system.trust, isolation, &|| ())
        }
        None => Err(PackageError::NoTemplate { template: name.into() }),
    }
}

/// Proves of an image that it sends only messages of its manifest, and what the manifest asserts of it; a line for
/// each. Of an image without symbols nothing is proved, and nothing may be asserted.
///
/// # Errors
/// All messages of other contracts, or the other side's, and all assertions that do not hold.
pub fn analysed(manifest: &Manifest, image: &[u8]) -> Result<Vec<Line>, Vec<Finding>> {
    let data = if manifest.code.is_unsafe() { Data::Private } else { Data::Refused };
    let program = match image_analysis::Program::read(image, data, &|| ()) {
        Ok(program) => program,
        Err(_) if manifest.assertions.is_empty() => return Ok(Vec::new()),
        Err(error) => {
            let what = format!("its assertions cannot be checked: {error}");
            let remedy = "take [assert] out of the manifest";
            return Err(Vec::from([Finding::new(Code::AssertionFails, &manifest.name, what, remedy)]));
        }
    };
    let Assessment { proved, faults } = assess(&program, &manifest.assertions);
    let conformance = conform(&program, manifest);
    let refuse = |code| move |fault: Fault| Finding::new(code, &manifest.name, fault.what, fault.remedy);
    let mut findings: Vec<Finding> = faults.into_iter().map(refuse(Code::AssertionFails)).collect();
    findings.extend(conformance.faults.iter().cloned().map(refuse(Code::UndeclaredMessage)));
    if !findings.is_empty() {
        return Err(findings);
    }
    let mut lines: Vec<Line> = proved.into_iter().map(|what| Line::proved(Topic::Image, what)).collect();
    lines.push(sends(&conformance));
    if !conformance.unused.is_empty() {
        let what = format!("it sends nothing on {}, which its manifest lists", conformance.unused.join(", "));
        lines.push(Line::note(Topic::Contracts, what));
    }
    Ok(lines)
}

fn sends(conformance: &Conformance) -> Line {
    let (all, unknown) = (conformance.sends, conformance.unknown.len());
    match unknown {
        0 => Line::proved(
            Topic::Contracts,
            format!("each of {all} sends in its code is of a message that its manifest lists"),
        ),
        _ => Line::note(
            Topic::Contracts,
            format!(
                "sends in {unknown} functions are of messages that the analysis does not see; those of the others, of {all} sends, are of its manifest"
            ),
        ),
    }
}

/// Returns the faults of a single manifest, including those that need a hash.
fn faults_of(manifest: &Manifest) -> Vec<Finding> {
    let mut findings = manifest::findings(manifest);
    let others = manifest.contracts.iter().filter(|contract| sha256(&contract.automaton) != contract.fingerprint);
    if findings.is_empty() {
        findings.extend(others.map(|contract| {
            let what = format!("the automaton of `{}` is not the one that its fingerprint says", contract.name);
            Finding::new(Code::AutomatonFingerprint, &manifest.name, what, "build the program again")
        }));
    }
    findings
}

fn proofs(package: &Package<'_>, bytes: usize, verified: &Verified<'_>, isolation: Isolation) -> Vec<Line> {
    let mut lines = Vec::new();
    let publisher = &package.manifest.publisher;
    lines.push(Line::proved(Topic::File, format!("a package of {bytes} bytes")));
    if verified.quarantined {
        let what = "nobody has signed it: it is quarantined, and runs in a hardware domain of its own or not at all";
        lines.push(Line::note(Topic::Signature, what));
    } else {
        let by = chain_in_words(&package.chain);
        let right = match isolation {
            Isolation::Software if package.is_native() => ", with the right `native`",
            _ => "",
        };
        let what = format!("of the key {:#}, {by}, for `{publisher}`{right}", package.key);
        lines.push(Line::proved(Topic::Signature, what));
    }
    let image = match &package.manifest.code {
        ProgramCode::Script { text } => format!("a script of {} lines", text.lines().count()),
        ProgramCode::Wasm { digest, template, .. } => format!(
            "a WebAssembly module of {} bytes and BLAKE3 {}..., and the image compiled from it: the template `{template}`, and code of allowed instructions",
            package.image_bytes.len(),
            in_short(digest)
        ),
        ProgramCode::Image { digest } | ProgramCode::Unsafe { digest } | ProgramCode::Template { digest } => {
            let digest = in_short(digest);
            let kind = match &package.manifest.code {
                ProgramCode::Unsafe { .. } => "unsafe code, ",
                ProgramCode::Template { .. } => "a template of WebAssembly programs, ",
                _ => "",
            };
            format!(
                "{kind}{} bytes of BLAKE3 {digest}...: position independent, without writable data, of allowed instructions",
                package.image_bytes.len()
            )
        }
    };
    lines.push(Line::proved(Topic::Image, image));
    lines.push(Line::proved(
        Topic::Abi,
        format!("built for ABI version {}, which this system has", package.manifest.abi),
    ));
    lines.push(match package.bill.len() {
        0 => Line::note(Topic::Bill, "there is no bill of materials: what the image was made of is not told"),
        bytes => Line::proved(Topic::Bill, format!("{bytes} bytes, as they were signed")),
    });
    lines
}

/// The first bytes of a digest.
fn in_short(digest: &[u8]) -> alloc::string::String {
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn chain_in_words(chain: &[Certificate]) -> alloc::string::String {
    match chain.last() {
        None => "a root of this system".into(),
        Some(last) => format!("certified by the root {:#} through {} certificates", last.issuer, chain.len()),
    }
}

/// Parses a system image whose packages were verified before it was signed, without verifying them again. Later damage
/// to the bytes is detected by [`system_of`] and the kernel.
///
/// # Errors
/// A fault of the head, or a package that differs from the signed one.
pub fn signed_system(bytes: &[u8]) -> Result<(SystemImage<'_>, Installed), Vec<Finding>> {
    taken_apart(bytes, |delivery, _, _| Ok(identity_of_delivery(delivery)))
}

/// Parses a system image and verifies every package of it against the system's own trust.
///
/// # Errors
/// A fault of the image or of a package.
pub fn system_of(bytes: &[u8]) -> Result<(SystemImage<'_>, Installed), Vec<Finding>> {
    taken_apart(bytes, |delivery, packages, system| {
        delivered(delivery, Some(packages), system).map(|verified| verified.identity)
    })
}

/// A way to verify a package's identity.
type Look = fn(&Delivery<'_>, &[&[u8]], &SystemManifest) -> Result<manifest_model::Digest, PackageError>;

fn taken_apart(bytes: &[u8], look: Look) -> Result<(SystemImage<'_>, Installed), Vec<Finding>> {
    let image = package_check::verify_system(bytes).map_err(|error| Vec::from([finding_of(&error, "")]))?;
    let mut programs = Vec::new();
    let mut findings = Vec::new();
    for (bytes, identity) in image.packages.iter().zip(&image.identities) {
        match packed_program(bytes, identity, &image, look) {
            Ok(program) => programs.push(program),
            Err(finding) => findings.push(finding),
        }
    }
    let installed = Installed { system: image.manifest.clone(), programs };
    if findings.is_empty() { Ok((image, installed)) } else { Err(findings) }
}

fn packed_program(
    bytes: &[u8],
    identity: &manifest_model::Digest,
    image: &SystemImage<'_>,
    look: Look,
) -> Result<Program, Finding> {
    let delivery = Delivery::parse(bytes).map_err(|error| finding_of(&error.into(), ""))?;
    let name = &delivery.package.manifest.name;
    let named = |finding: Finding| Finding { what: format!("`{name}`: {}", finding.what), ..finding };
    let found = look(&delivery, &image.packages, &image.manifest).map_err(|error| named(finding_of(&error, name)))?;
    if found != *identity {
        let what = format!("the package of `{name}` is not the one that the system was signed with");
        return Err(Finding::new(Code::OtherIdentity, name, what, "build or install it again"));
    }
    Ok(Program { key: delivery.package.key, manifest: delivery.package.manifest })
}

/// Converts a package error to a finding: its code, and its message split from the remedy.
pub(crate) fn finding_of(error: &PackageError, subject: &str) -> Finding {
    if let PackageError::AbiVersion { wanted, .. } = error
        && let Some(finding) = manifest::other_abi(subject, *wanted)
    {
        return finding;
    }
    let text = error.to_string();
    let (what, remedy) = text.rsplit_once("; ").unwrap_or((&text, "build the program again"));
    Finding::new(code_of(error), subject, what, remedy)
}

fn code_of(error: &PackageError) -> Code {
    match error {
        PackageError::ManifestInvalid { .. } => Code::ManifestInvalid,
        PackageError::SystemChecksum => Code::SystemDamaged,
        PackageError::SystemSignature => Code::SystemSignature,
        PackageError::Trust(error) => trust_code(error),
        PackageError::BillHash => Code::BillDigest,
        PackageError::BadKey => Code::BadKey,
        PackageError::BadSignature => Code::BadSignature,
        PackageError::ImageHash => Code::ImageDigest,
        PackageError::AbiVersion { .. } => Code::AbiVersion,
        PackageError::NotApart => Code::UnsafeNotApart,
        PackageError::ScriptWithImage => Code::ScriptWithImage,
        PackageError::NotAModule => Code::NotAModule,
        PackageError::NotCompiled => Code::NotCompiled,
        PackageError::NotTheTemplate { .. } => Code::NotTheTemplate,
        PackageError::TemplateManifest { .. } => Code::TemplateManifest,
        PackageError::NoTemplate { .. } => Code::NoTemplate,
        PackageError::UndeclaredContract { .. } => Code::UndeclaredContract,
        PackageError::ContractFingerprint { .. } | PackageError::ModuleContract { .. } => Code::ContractFingerprint,
        PackageError::ModuleRecords => Code::ContractRecords,
        PackageError::Format(error) => format_code(error),
        PackageError::Image(error) => image_code(error),
        _ => Code::OtherReason,
    }
}

fn format_code(error: &FormatError) -> Code {
    match error {
        FormatError::NotAPackage => Code::NotAPackage,
        FormatError::NotASystemImage => Code::NotASystemImage,
        FormatError::Truncated { .. } => Code::Truncated,
        FormatError::TrailingBytes { .. } => Code::TrailingBytes,
        FormatError::ManifestUnreadable { .. } => Code::ManifestUnreadable,
        FormatError::CompiledWithoutModule => Code::NotAModule,
        FormatError::BillTooLarge { .. } => Code::BillTooLarge,
        FormatError::Chain(error) => trust_code(error),
        _ => Code::OtherReason,
    }
}

fn trust_code(error: &TrustError) -> Code {
    match error {
        TrustError::Unsigned => Code::Unsigned,
        TrustError::HalfSigned => Code::HalfSigned,
        TrustError::UntrustedKey { .. } => Code::UntrustedKey,
        TrustError::UntrustedIssuer { .. } => Code::UntrustedIssuer,
        TrustError::NotItsPublisher { .. } => Code::NotItsPublisher,
        TrustError::WiderThanIssuer { .. } => Code::WiderThanIssuer,
        TrustError::MoreRightsThanIssuer { .. } => Code::MoreRightsThanIssuer,
        TrustError::NotNative { .. } => Code::NotNative,
        TrustError::MayNotSign { .. } => Code::MayNotSign,
        TrustError::MayNotCertify { .. } => Code::MayNotCertify,
        TrustError::BrokenChain { .. } => Code::BrokenChain,
        TrustError::ChainTooLong => Code::ChainTooLong,
        TrustError::BadCertificate { .. } => Code::BadCertificate,
        TrustError::CertificateSignature { .. } => Code::CertificateSignature,
        TrustError::RevokedKey { .. } => Code::RevokedKey,
        TrustError::RevokedSerial { .. } => Code::RevokedSerial,
        TrustError::PublisherNotAllowed { .. } => Code::PublisherNotAllowed,
        TrustError::NotASystemSigner { .. } => Code::NotASystemSigner,
        _ => Code::OtherReason,
    }
}

fn image_code(error: &ImageError) -> Code {
    match error {
        ImageError::TooLarge { .. } => Code::ImageTooLarge,
        ImageError::NotElf => Code::NotElf,
        ImageError::ElfMalformed { .. } => Code::ElfMalformed,
        ImageError::WrongMachine => Code::WrongMachine,
        ImageError::NotPie => Code::NotPie,
        ImageError::Interpreter => Code::Interpreter,
        ImageError::Import => Code::ForeignSymbol,
        ImageError::ThreadLocal => Code::ThreadLocal,
        ImageError::DynamicFeature { .. } => Code::DynamicFeature,
        ImageError::WritableCode { .. } => Code::WritableCode,
        ImageError::WritableData { .. } => Code::WritableData,
        ImageError::ZeroedData { .. } => Code::ZeroedData,
        ImageError::SegmentsOverlap { .. } => Code::SegmentsOverlap,
        ImageError::SegmentOutsideFile { .. } => Code::SegmentOutsideFile,
        ImageError::NoCode => Code::NoCode,
        ImageError::EntryOutsideCode { .. } => Code::EntryOutsideCode,
        ImageError::RelocationKind { .. } => Code::RelocationKind,
        ImageError::RelocationTarget { .. } => Code::RelocationTarget,
        ImageError::RelocationAddend { .. } => Code::RelocationAddend,
        ImageError::UnknownInstruction { .. } => Code::UnknownInstruction,
        ImageError::ForbiddenInstruction { .. } => Code::ForbiddenInstruction,
        ImageError::StackStep { .. } => Code::StackStep,
        ImageError::SegmentOverride { .. } => Code::SegmentOverride,
        ImageError::BranchTarget { .. } => Code::BranchTarget,
        ImageError::StrayCode { .. } => Code::StrayCode,
        ImageError::ContractRecords { .. } => Code::ContractRecords,
        _ => Code::OtherReason,
    }
}
