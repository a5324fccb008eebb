//! Checks of a WebAssembly program that comes with the image compiled from its module.
//!
//! The publisher signed the module; the image is a claim of whoever compiled it. It must be the template with two segments
//! added, and nothing of the template changed. Deliberately not here: the proof of the added code, which is
//! `native-verifier`'s, made by the installer.

use alloc::string::String;
use alloc::vec::Vec;

use image_check::{Data, Image, Relocation};
use manifest_model::{Digest, Trust};
use package::{Delivery, Package};

use crate::digest::{image_digest_in_steps, sha256_of};
use crate::verify::{contracts_declared, identity, verify_in_steps};
use crate::{Isolation, PackageError, Verified};

/// The [`identity`] of a package; with its compiled image, a digest that covers both.
pub fn identity_of_delivery(delivery: &Delivery<'_>) -> Digest {
    with_image(identity(&delivery.package), delivery.compiled, &|| ())
}

fn with_image(identity: Digest, compiled: Option<&[u8]>, pause: &dyn Fn()) -> Digest {
    match compiled {
        None => identity,
        Some(image) => sha256_of([&identity[..], &image_digest_in_steps(image, pause)[..]]),
    }
}

/// Checks a WebAssembly program: its package, its compiled image, its template, and that the image is the template with a
/// module added. Calls `pause` regularly.
///
/// # Errors
/// The first violation.
pub fn verify_compiled_in_steps<'a>(
    delivery: &Delivery<'a>,
    template: &Package<'_>,
    trust: &Trust,
    isolation: Isolation,
    pause: &dyn Fn(),
) -> Result<Verified<'a>, PackageError> {
    let mut verified = verify_in_steps(&delivery.package, trust, isolation, pause)?;
    let compiled = delivery.compiled.ok_or(PackageError::NotCompiled)?;
    let name = || String::from(delivery.package.manifest.code.template().unwrap_or_default());
    let host = verify_in_steps(template, trust, Isolation::Software, pause)?;
    let differs = |what| PackageError::NotTheTemplate { template: name(), what };
    let host = match host.image {
        Some(image) if template.manifest.code.is_template() && template.manifest.name == name() => image,
        _ => return Err(differs("it is no template")),
    };
    let manifest = &delivery.package.manifest;
    let fits = manifest.fits_template(&template.manifest);
    fits.map_err(|what| PackageError::TemplateManifest { template: name(), what })?;
    let image = Image::check_in_steps(compiled, Data::Refused, pause)?;
    extends(&host, &image).map_err(differs)?;
    contracts_declared(manifest, &image)?;
    verified.identity = with_image(verified.identity, Some(compiled), pause);
    verified.image = Some(image);
    Ok(verified)
}

/// Checks that an image is another one with a segment of read-only data and one of code behind its own.
fn extends(host: &Image<'_>, image: &Image<'_>) -> Result<(), &'static str> {
    let Some((own, added)) = image.segments.split_at_checked(host.segments.len()) else {
        return Err("it has too few segments");
    };
    let [data, text] = added else { return Err("it has not two segments more") };
    let is_same = own.iter().zip(&host.segments).all(|(left, right)| {
        (left.address, left.executable, left.writable, left.memory_bytes, left.lead, left.content)
            == (right.address, right.executable, right.writable, right.memory_bytes, right.lead, right.content)
    });
    if !is_same {
        return Err("the template's segments differ");
    }
    if image.entry != host.entry {
        return Err("it starts elsewhere");
    }
    if image.contracts != host.contracts {
        return Err("its list of contracts differs");
    }
    if data.address != host.bytes || data.executable || data.writable || !text.executable {
        return Err("what is added is not data and code");
    }
    let sorted = |relocations: &mut dyn Iterator<Item = &Relocation>| {
        let mut pairs: Vec<(u64, u64)> = relocations.map(|one| (one.offset, one.addend)).collect();
        pairs.sort_unstable();
        pairs
    };
    let inherited = sorted(&mut image.relocations.iter().filter(|one| one.offset < host.bytes));
    match inherited == sorted(&mut host.relocations.iter()) {
        true => Ok(()),
        false => Err("the template's relocations differ"),
    }
}
