//! The parts of an installation of a WebAssembly program: what the installer asks of `compiler` and `verifier`, asked by
//! themselves. The rest of what the installer takes is the kernel's check, and writing to the disk.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use client::access::AccessError;
use client::namespace::Namespace;
use contracts::compiler::{self, ImpReadyAfterCompile};
use contracts::verifier::{self, ImpReadyAfterProve};
use manifest_model::Manifest;
use package::Package;
use sip::channel::TypedEndpoint;
use sip::exheap::ExVec;
use sip::process::{self, Child};
use sip::{Status, diagnostics};

use crate::Figures;

/// Measures compiling and proving of a package's module.
///
/// # Errors
/// The file is no such package, or its module is refused.
pub fn measure(namespace: &mut Namespace, path: &str) -> Result<Figures, String> {
    let file = read(namespace, path).map_err(|error| format!("{path}: {error}"))?;
    let package = Package::parse(&file).map_err(|error| format!("{path}: {error}"))?;
    let template = package.manifest.code.template().ok_or_else(|| format!("{path} has no module"))?;
    let module = copy(package.image_bytes)?;
    let (child, endpoint) = begun("compiler", compiler::new_channel().map_err(text)?)?;
    let template_image = template_image(template)?;
    let start = sip::time::monotonic();
    let image = match endpoint.compile(template_image, module).receive() {
        ImpReadyAfterCompile::Compiled { image, .. } => image,
        ImpReadyAfterCompile::Refused { reason, .. } => return Err(String::from_utf8_lossy(&reason).to_string()),
        ImpReadyAfterCompile::ChannelClosed(_) => return Err(ended(&child)),
    };
    let compiled = sip::time::monotonic();
    let (child, endpoint) = begun("verifier", verifier::new_channel().map_err(text)?)?;
    let (template_image, package, proven) = (self::template_image(template)?, copy(&file)?, copy(&image)?);
    let proving = sip::time::monotonic();
    match endpoint.prove(template_image, package, proven).receive() {
        ImpReadyAfterProve::Proven { .. } => {}
        ImpReadyAfterProve::Refused { reason, .. } => return Err(String::from_utf8_lossy(&reason).to_string()),
        ImpReadyAfterProve::ChannelClosed(_) => return Err(ended(&child)),
    }
    let end = sip::time::monotonic();
    Ok(Vec::from([
        ("compile_ns", compiled - start),
        ("prove_ns", end - proving),
        ("module_bytes", Package::parse(&file).map_or(0, |package| package.image_bytes.len() as u64)),
        ("image_bytes", image.len() as u64),
    ]))
}

/// Reads a file.
pub fn read(namespace: &mut Namespace, path: &str) -> Result<Vec<u8>, AccessError> {
    let mut file = namespace.open_file(path)?;
    let (mut pieces, mut bytes) = (file.pieces(), Vec::new());
    while let Some(piece) = pieces.next()? {
        bytes.extend_from_slice(piece);
    }
    Ok(bytes)
}

/// Starts a program with the exporting end of a channel, its first endpoint.
fn begun<I>(program: &str, (importer, exporter): (I, impl TypedEndpoint)) -> Result<(Child, I), String> {
    let child = process::create(program).map_err(|error| format!("`{program}` cannot be started: {error}"))?;
    let child = child.endpoint(0, exporter).and_then(Child::start).map_err(text)?;
    Ok((child, importer))
}

/// The image of an installed template.
pub fn template_image(name: &str) -> Result<ExVec<u8>, String> {
    let is_it = |read: Result<ExVec<u8>, Status>| {
        read.is_ok_and(|bytes| Manifest::decode(&bytes).is_ok_and(|manifest| manifest.name == name))
    };
    let index =
        client::programs::manifests().position(is_it).ok_or_else(|| format!("there is no template `{name}`"))?;
    diagnostics::template_image(index).map_err(text)
}

/// A block of these bytes.
pub fn copy(bytes: &[u8]) -> Result<ExVec<u8>, String> {
    ExVec::from_slice(bytes).map_err(text)
}

/// A status as text.
pub fn text(status: Status) -> String {
    status.text().into()
}

/// The end of a child, as text.
pub fn ended(child: &Child) -> String {
    child.wait().map_or_else(text, |end| end.to_string())
}
