//! A package that is installed to measure and to test that: its image is made here, of short instructions all of which
//! are decoded.

use manifest_model::{Category, Code, Manifest};
use package_build::Signer;

use crate::failure::{Failure, Outcome};

/// Bytes of the image.
pub const IMAGE_BYTES: usize = 500_000;
/// `mov eax, 1; call +2; ret; int3; nop; ret`
const CODE: [u8; 15] = [0xB8, 1, 0, 0, 0, 0xE8, 2, 0, 0, 0, 0xC3, 0xCC, 0x90, 0xC3, 0x90];
/// Start of the code, in the file and in memory.
const START: usize = 0x1000;

/// Builds a signed package whose image has [`IMAGE_BYTES`].
///
/// # Errors
/// The image is refused.
pub fn package(signer: &Signer) -> Outcome<Vec<u8>> {
    let code = Code::Image { digest: [0; 32] };
    let manifest = Manifest::plain("bench-install", "singularity", Category::Console, code);
    package_build::build_package(manifest, b"", &image(), signer)
        .map_err(|error| Failure::new(format!("cannot create the sample package: {error}")))
}

/// An ELF file with one code segment and no sections, so that each byte of it is decoded.
fn image() -> Vec<u8> {
    let code: Vec<u8> = CODE.iter().copied().cycle().take((IMAGE_BYTES - START) / CODE.len() * CODE.len()).collect();
    let mut file = vec![0; START];
    let mut head = vec![0x7F, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let halves = |numbers: &[u16]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
    let words = |numbers: &[u64]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
    let (start, length) = (START as u64, code.len() as u64);
    // A position-independent file for x86-64 with the entry point at the start of the code; one program header follows.
    head.extend(halves(&[3, 62, 1, 0]));
    head.extend(words(&[start, 64, 0]));
    head.extend([0; 4]);
    head.extend(halves(&[64, 56, 1, 64, 0, 0]));
    // Loadable, readable and executable.
    head.extend([1, 0, 0, 0, 5, 0, 0, 0]);
    head.extend(words(&[start, start, start, length, length, 0x1000]));
    file[..head.len()].copy_from_slice(&head);
    file.extend(code);
    file
}

#[cfg(test)]
mod tests {
    use super::*;
    use package_build::SecretKey;

    #[test]
    fn the_sample_is_a_package() {
        let signer = Signer::root(SecretKey::from_bytes(&[3; 32]));
        let bytes = package(&signer).expect("it passes every check");
        assert!((495_000..=505_000).contains(&bytes.len()), "{} bytes", bytes.len());
    }
}
