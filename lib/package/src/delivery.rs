//! A package as it is delivered to a kernel: alone, or with the image that was compiled from its module.
//!
//! A compiled delivery is: magic (8 bytes), lengths of package and image (u32 each, little-endian), package, image. It is
//! made where a program is installed, and covered by no signature of the publisher's: what the image must be follows from
//! the package and its template. Deliberately not here: that check, which is `package-check`'s.

use alloc::vec::Vec;

use crate::container::Input;
use crate::{FormatError, Package};

/// Magic number of a package with its compiled image.
pub const COMPILED_MAGIC: &[u8; 8] = b"SINGCMP1";

/// A parsed delivery; only its shape has been validated.
#[derive(Clone, Debug)]
pub struct Delivery<'a> {
    /// The package.
    pub package: Package<'a>,
    /// The package file.
    pub package_bytes: &'a [u8],
    /// The image that was compiled from the package's module, if it comes with one.
    pub compiled: Option<&'a [u8]>,
}

impl<'a> Delivery<'a> {
    /// Parses a package file, or one with its compiled image.
    ///
    /// # Errors
    /// As for [`Package::parse`]; an image is only delivered with a module.
    pub fn parse(bytes: &'a [u8]) -> Result<Delivery<'a>, FormatError> {
        if !bytes.starts_with(COMPILED_MAGIC) {
            return Ok(Delivery { package: Package::parse(bytes)?, package_bytes: bytes, compiled: None });
        }
        let mut input = Input::new(bytes);
        input.take(COMPILED_MAGIC.len())?;
        let (package_length, image_length) = (input.length()?, input.length()?);
        let package_bytes = input.take(package_length)?;
        let image = input.take(image_length)?;
        input.end()?;
        let package = Package::parse(package_bytes)?;
        match package.manifest.code.template() {
            Some(_) => Ok(Delivery { package, package_bytes, compiled: Some(image) }),
            None => Err(FormatError::CompiledWithoutModule),
        }
    }

    /// The image that runs: the compiled one, or the package's own; empty if there is none.
    pub fn image(&self) -> &'a [u8] {
        match (self.compiled, self.package.manifest.code.template()) {
            (Some(compiled), _) => compiled,
            (None, Some(_)) => &[],
            (None, None) => self.package.image_bytes,
        }
    }
}

/// Joins a package file and the image compiled from its module, both shorter than 4 GiB.
pub fn compiled(package: &[u8], image: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = COMPILED_MAGIC.to_vec();
    for part in [package, image] {
        bytes.extend_from_slice(&u32::try_from(part.len()).ok()?.to_le_bytes());
    }
    bytes.extend_from_slice(package);
    bytes.extend_from_slice(image);
    Some(bytes)
}
