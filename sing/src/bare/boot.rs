//! The boot image that a boot loader passes to the kernel, assembled for one run.

use std::path::Path;

use boot_image::BootImage;
use manifest_model::Manifest;
use package::Package;

use crate::bare::kernel::{self, Variant};
use crate::failure::{Failure, Outcome};
use crate::repository::Repository;

/// Returns the boot image of a system, with parameters for its first program.
///
/// `given` are the user's, which the system refuses if it does not have them; of `offered` it gets those that it has.
///
/// # Errors
/// The system image or the kernel cannot be read.
pub fn image(
    repository: &Repository,
    (system, variant): (&Path, Variant),
    given: &[(String, String)],
    offered: &[(&str, String)],
) -> Outcome<Vec<u8>> {
    let bytes = std::fs::read(system).map_err(|error| Failure::file("read", system, &error))?;
    let root = root_manifest(&bytes)
        .ok_or_else(|| Failure::new(format!("{} is not a system image", system.display())).remedy("rebuild it"))?;
    let is_known = |(name, _): &&(&str, String)| root.parameters.iter().any(|parameter| parameter.name == *name);
    let mut parameters: Vec<(String, String)> =
        offered.iter().filter(is_known).map(|(name, value)| (name.to_string(), value.clone())).collect();
    parameters.extend_from_slice(given);
    Ok(BootImage::encode(&parameters, &bytes, &kernel::symbols(repository, variant)?))
}

/// Returns the manifest of the program that the kernel starts.
fn root_manifest(system: &[u8]) -> Option<Manifest> {
    let system = package_check::verify_system(system).ok()?;
    let packages = system.packages.iter().filter_map(|bytes| Package::parse(bytes).ok());
    packages.map(|package| package.manifest).find(|manifest| manifest.name == system.manifest.root)
}

/// Parses the user's parameters, as `NAME=VALUE`.
///
/// # Errors
/// One is not of this form.
pub fn parameters(given: &[String]) -> Outcome<Vec<(String, String)>> {
    let split = |text: &String| match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_string(), value.to_string())),
        _ => Err(Failure::new(format!("invalid parameter `{text}`")).remedy("write it as NAME=VALUE")),
    };
    given.iter().map(split).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_names_and_values() {
        let good = parameters(&["a=b=c".into(), "d=".into()]).expect("two parameters");
        assert_eq!(good, [("a".into(), "b=c".into()), ("d".into(), String::new())]);
        let bad = parameters(&["=x".into()]).expect_err("no name").to_string();
        assert_eq!(bad, "invalid parameter `=x`; write it as NAME=VALUE.");
    }
}
