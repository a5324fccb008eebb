//! Changes of a system image file: checked, applied, signed, and replaced atomically.

use alloc::format;
use alloc::vec::Vec;

use package_build::SecretKey;

use crate::check::refused;
use crate::code::Code;
use crate::medium::{Medium, replace};
use crate::report::{Finding, Report};
use crate::verify::{Request, examine, finding_of, signed_system};

/// Reasons why a system image was not changed.
#[derive(Debug)]
pub enum ImageError<E> {
    /// Refused for the reasons in the report. The medium was not touched.
    Refused(Report),
    /// The medium failed.
    Medium(E),
}

/// Returns the bytes of a system image with a request applied, signed with the key; and the report.
///
/// # Errors
/// Faults of the request or of the old image.
pub fn changed(old: &[u8], request: &Request<'_>, key: &SecretKey) -> Result<(Vec<u8>, Report), Report> {
    let (image, installed) = signed_system(old).map_err(refused)?;
    if !installed.system.trust.may_sign_systems(key.public()) {
        let what = format!("the key {:#} may not sign this system", key.public());
        let remedy = "use one of the system's roots that may sign systems";
        let finding = Finding::new(Code::NotASystemSigner, &installed.system.name, what, remedy);
        return Err(refused(Vec::from([finding])));
    }
    let (report, after) = examine(&installed, Some(&image.packages), request);
    let Some(after) = after else { return Err(report) };
    let given = match request {
        Request::Install { package, .. } | Request::Upgrade { package, .. } => Some(*package),
        Request::Uninstall { .. } => None,
    };
    // Packages of the remaining programs in order, and the new one in its place.
    let mut packages: Vec<Vec<u8>> = Vec::new();
    for program in &after.programs {
        let kept = installed.programs.iter().position(|old| old == program);
        let kept = kept.and_then(|place| image.packages.get(place)).copied();
        packages.extend(kept.or(given).map(<[u8]>::to_vec));
    }
    let built = package_build::build_system(&after.system, &packages, key);
    let bytes = built.map_err(|error| refused(Vec::from([finding_of(&error, &after.system.name)])))?;
    Ok((bytes, report))
}

/// Applies a request to the system image of this name on a medium, atomically.
///
/// # Errors
/// The request is refused, or the medium failed.
pub fn change_file<M: Medium>(
    medium: &mut M,
    name: &str,
    old: &[u8],
    request: &Request<'_>,
    key: &SecretKey,
) -> Result<Report, ImageError<M::Error>> {
    let (bytes, report) = changed(old, request, key).map_err(ImageError::Refused)?;
    if bytes != old {
        replace(medium, name, &bytes).map_err(ImageError::Medium)?;
    }
    Ok(report)
}
