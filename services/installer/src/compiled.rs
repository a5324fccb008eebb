//! Compiled images of WebAssembly programs: asked of `compiler`, proven by `verifier`, kept beside their packages.
//!
//! Both are children of the installer, one process for each request, with a deadline: what they need beyond their quotas
//! or their time ends them, and nothing else. An image is proven before each installation into the kernel, also when it
//! was kept: whoever could write to the medium can make the installer compile again, and no more.
//! Deliberately not here: the template's part of an image, which the kernel compares.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use contracts::compiler::{self, ImpReadyAfterCompile};
use contracts::verifier::{self, ImpReadyAfterProve};
use install::{Code as Rule, Finding, Installed, Line};
use manifest_model::{Bounds, Code};
use package::{Package, compiled};
use sip::channel::TypedEndpoint;
use sip::exheap::ExVec;
use sip::process::{self, Child, StopReason};
use sip::{Deadline, Status, diagnostics};

/// Program that compiles modules.
const COMPILER: &str = "compiler";
/// Program that proves code.
const VERIFIER: &str = "verifier";
/// The slot of their only endpoint.
const CLIENT_SLOT: usize = 0;
/// Maximum time for one module, each for compiling and for proving it.
const LIMIT_MS: u64 = 120_000;

/// What a kept image begins with; the digest of template, package and image follows.
const KEPT_MAGIC: &[u8; 8] = b"SINGIMG1";
const DIGEST_BYTES: usize = 32;

/// Indexes of the compiler's parameters.
const ALLOCATOR_PARAMETER: usize = 0;
const CHECKER_PARAMETER: usize = 1;
const BOUNDS_PARAMETER: usize = 4;

/// Programs that the compiler is extended by, as its children; empty for none.
pub(crate) struct Extensions {
    /// Who allocates registers.
    pub allocator: String,
    /// Who proves that.
    pub checker: String,
}

/// Why there is no image, as a sentence with a remedy behind a semicolon.
pub(crate) enum Failed {
    /// Template, compiler or verifier are not there, or the module is refused.
    NotCompiled(String),
    /// The code is not proven.
    NotProven(String),
}

impl Failed {
    /// The line of a report.
    pub(crate) fn line(&self, name: &str) -> Line {
        let (code, why) = match self {
            Failed::NotCompiled(why) => (Rule::NotCompiled, why),
            Failed::NotProven(why) => (Rule::NotProven, why),
        };
        let (what, remedy) = why.rsplit_once("; ").unwrap_or((why, "try again later"));
        Line::refused(Finding::new(code, name, what, remedy))
    }
}

/// A package ready for the kernel.
pub(crate) struct Ready {
    /// The package, with the image that was compiled from its module if it has one.
    pub block: ExVec<u8>,
    /// The image as it is kept in the store; empty if there is none.
    pub kept: Vec<u8>,
}

/// Returns a package with its compiled image, from `kept` if that is an image of this package and this template; any other
/// package as it is. All has to be done `until` a moment; without one, compiling and
/// proving have their usual limits.
pub(crate) fn ready(
    extensions: &Extensions,
    present: &Installed,
    package: &[u8],
    kept: Option<&[u8]>,
    until: Option<Deadline>,
) -> Result<Ready, Failed> {
    let exhausted = |status: Status| Failed::NotCompiled(format!("{}; try again later", status.text()));
    let parsed = Package::parse(package).map_err(|error| Failed::NotCompiled(error.to_string()))?;
    let Code::Wasm { template: name, bounds, .. } = &parsed.manifest.code else {
        return Ok(Ready { block: ExVec::from_slice(package).map_err(exhausted)?, kept: Vec::new() });
    };
    let is_in_time = || match until {
        Some(until) if until.has_passed() => Err(Failed::NotCompiled("there is no time left; try again later".into())),
        _ => Ok(()),
    };
    is_in_time()?;
    let template = || {
        let index = present.programs.iter().position(|program| program.manifest.name == *name);
        let image = index.ok_or(Status::NotFound).and_then(diagnostics::template_image);
        image.map_err(|status| {
            Failed::NotCompiled(format!("the template `{name}`: {}; install it first", status.text()))
        })
    };
    if let Some((digest, image)) = kept.and_then(taken_apart) {
        let image = ExVec::from_slice(image).map_err(exhausted)?;
        if let Ok(proven) = prove(template()?, package, &image, until)
            && proven[..] == *digest
        {
            return joined(package, &image, &proven);
        }
    }
    // Loading the compiler alone takes seconds on a slow machine.
    is_in_time()?;
    let module = ExVec::from_slice(parsed.image_bytes).map_err(exhausted)?;
    let image = compile((extensions, *bounds), template()?, module, until)?;
    let proven = prove(template()?, package, &image, until)?;
    joined(package, &image, &proven)
}

fn joined(package: &[u8], image: &[u8], digest: &[u8]) -> Result<Ready, Failed> {
    let block = compiled(package, image).and_then(|bytes| ExVec::from_slice(&bytes).ok());
    let block = block.ok_or_else(|| Failed::NotCompiled("no memory is left; try again later".into()))?;
    Ok(Ready { block, kept: [KEPT_MAGIC, digest, image].concat() })
}

/// Takes a kept image apart: its digest, the image.
fn taken_apart(kept: &[u8]) -> Option<(&[u8], &[u8])> {
    kept.strip_prefix(KEPT_MAGIC)?.split_at_checked(DIGEST_BYTES)
}

fn compile(
    (extensions, bounds): (&Extensions, Bounds),
    template: ExVec<u8>,
    module: ExVec<u8>,
    until: Option<Deadline>,
) -> Result<ExVec<u8>, Failed> {
    let parameters = [
        (ALLOCATOR_PARAMETER, &*extensions.allocator),
        (CHECKER_PARAMETER, &*extensions.checker),
        (BOUNDS_PARAMETER, bounds.word()),
    ];
    let started = compiler::new_channel().map_err(|status| status.text().to_string());
    let started = started.and_then(|(importer, exporter)| Ok((start(COMPILER, &parameters, exporter)?, importer)));
    let (child, endpoint) = started.map_err(Failed::NotCompiled)?;
    match endpoint.compile(template, module).receive_by(until.unwrap_or_else(|| Deadline::after_ms(LIMIT_MS))) {
        Ok(ImpReadyAfterCompile::Compiled { image, .. }) => Ok(image),
        Ok(ImpReadyAfterCompile::Refused { reason, .. }) => Err(Failed::NotCompiled(sentence(&reason))),
        Ok(ImpReadyAfterCompile::ChannelClosed(_)) => Err(Failed::NotCompiled(ended(&child, COMPILER))),
        Err(_) => Err(Failed::NotCompiled(stopped(&child, "compiling"))),
    }
}

/// Has an image proven; returns the digest of template, package and image.
fn prove(template: ExVec<u8>, package: &[u8], image: &[u8], until: Option<Deadline>) -> Result<Vec<u8>, Failed> {
    let copy = |bytes| ExVec::from_slice(bytes).map_err(|status| Failed::NotProven(status.text().into()));
    let (package, image) = (copy(package)?, copy(image)?);
    let started = verifier::new_channel().map_err(|status| status.text().to_string());
    let started = started.and_then(|(importer, exporter)| Ok((start(VERIFIER, &[], exporter)?, importer)));
    let (child, endpoint) = started.map_err(Failed::NotProven)?;
    match endpoint.prove(template, package, image).receive_by(until.unwrap_or_else(|| Deadline::after_ms(LIMIT_MS))) {
        Ok(ImpReadyAfterProve::Proven { digest, .. }) => Ok(digest.to_vec()),
        Ok(ImpReadyAfterProve::Refused { reason, .. }) => Err(Failed::NotProven(sentence(&reason))),
        Ok(ImpReadyAfterProve::ChannelClosed(_)) => Err(Failed::NotProven(ended(&child, VERIFIER))),
        Err(_) => Err(Failed::NotProven(stopped(&child, "proving"))),
    }
}

fn start(program: &str, parameters: &[(usize, &str)], client: impl TypedEndpoint) -> Result<Child, String> {
    let child = process::create(program)
        .map_err(|error| format!("`{program}` does not start: {}; add it to the system", error.reason))?;
    let child = parameters.iter().try_fold(child, |child, (index, value)| child.parameter(*index, value));
    let started = child.and_then(|child| child.endpoint(CLIENT_SLOT, client)).and_then(Child::start);
    started.map_err(|status| format!("`{program}` does not start: {}; try again later", status.text()))
}

/// What a child says, which is a claim: one line of printable text.
fn sentence(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let line: String = text.chars().filter(|letter| !letter.is_control()).take(500).collect();
    if line.contains("; ") { line } else { format!("{line}; build the module again") }
}

fn ended(child: &Child, program: &str) -> String {
    let end = child.wait().map_or_else(|status| status.text().to_string(), |epitaph| epitaph.to_string());
    if end.contains("memory allocation of ") {
        return format!(
            "`{program}` ended: its memory is too small for the module; make the module's functions smaller"
        );
    }
    let end: String = end.chars().filter(|letter| !letter.is_control()).collect();
    format!("`{program}` ended: {}; the module may be too large", end.replace("; ", ", "))
}

/// Ends a child that takes too long.
fn stopped(child: &Child, what: &str) -> String {
    // It may have ended by itself.
    let _ = child.stop(StopReason::Requested);
    let _ = child.wait();
    format!("{what} the module takes more than {} s; make its functions smaller", LIMIT_MS / 1000)
}
