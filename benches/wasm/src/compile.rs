//! Compiling, as the installer has it done: a process of `compiler` for each turn, alone or with extensions.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use client::namespace::Namespace;
use contracts::compiler::{self, ImpReadyAfterCompile};
use package::Package;
use sip::process::{self, Child};

use crate::install::{copy, ended, read, template_image, text};
use crate::{Figures, median};

/// Indexes of the compiler's parameters in its manifest.
const ALLOCATOR: usize = 0;
const CHECKER: usize = 1;
const THREADS: usize = 2;
const ANSWER_MS: usize = 3;

/// How a module is to be compiled: the compiler's parameters.
pub struct Wanted<'a> {
    /// Program that allocates registers; empty for the compiler itself.
    pub allocator: &'a str,
    /// Program that checks that; empty for none.
    pub checker: &'a str,
    /// Threads; 0 for the compiler's choice.
    pub threads: i64,
    /// Maximum time of an extension for a function.
    pub answer_ms: i64,
}

/// Measures compiling a package's module, from the start of the compiler to its answer: the median of some turns, and what
/// the image is, by its length and a hash.
///
/// # Errors
/// The file is no such package, or its module is refused.
pub fn measure(namespace: &mut Namespace, path: &str, wanted: &Wanted<'_>, turns: u32) -> Result<Figures, String> {
    let file = read(namespace, path).map_err(|error| format!("{path}: {error}"))?;
    let package = Package::parse(&file).map_err(|error| format!("{path}: {error}"))?;
    let template = package.manifest.code.template().ok_or_else(|| format!("{path} has no module"))?;
    let (mut times, mut image) = (Vec::new(), (0, 0));
    for _ in 0..turns {
        let (template, module) = (template_image(template)?, copy(package.image_bytes)?);
        let start = sip::time::monotonic();
        let (child, importer) = begun(wanted)?;
        match importer.compile(template, module).receive() {
            ImpReadyAfterCompile::Compiled { image: compiled, next } => {
                times.push(sip::time::monotonic() - start);
                image = (compiled.len() as u64, hash(&compiled));
                // It ends when its channel is closed; the next turn has the machine for itself.
                drop(next);
                child.wait().map_err(text)?;
            }
            ImpReadyAfterCompile::Refused { reason, .. } => return Err(String::from_utf8_lossy(&reason).to_string()),
            ImpReadyAfterCompile::ChannelClosed(_) => return Err(ended(&child)),
        }
    }
    Ok(Vec::from([("compile_ns", median(times)), ("image_bytes", image.0), ("image_hash", image.1)]))
}

fn begun(wanted: &Wanted<'_>) -> Result<(Child, compiler::Imp<compiler::states::Ready>), String> {
    let (importer, exporter) = compiler::new_channel().map_err(text)?;
    let child = process::create("compiler").map_err(|error| format!("`compiler` cannot be started: {error}"))?;
    let child = child.parameter(ALLOCATOR, wanted.allocator).and_then(|child| child.parameter(CHECKER, wanted.checker));
    let child = child.and_then(|child| child.parameter(THREADS, &wanted.threads.to_string()));
    let child = child.and_then(|child| child.parameter(ANSWER_MS, &wanted.answer_ms.to_string()));
    let child = child.and_then(|child| child.endpoint(0, exporter)).and_then(Child::start).map_err(text)?;
    Ok((child, importer))
}

/// FNV-1a, of 64 bits: tells whether two images are the same, not whether somebody made them so.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_hash_is_fnv() {
        assert_eq!(super::hash(b"foobar"), 0x85944171f73967e8);
    }
}
