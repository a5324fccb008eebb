//! The body of the fuzz target `boot_image`: the input as a boot module, and as its parts behind a valid header.

use boot_image::BootImage;

/// Bytes of a header.
const HEADER: usize = 64;

/// Runs one input.
pub fn run(bytes: &[u8]) {
    read(bytes);
    // Valid checksums let the fuzzer past the header.
    let Some((&split, rest)) = bytes.split_first() else { return };
    read(&behind_a_header(usize::from(split), rest));
}

/// A boot module without a system: this many bytes are parameters, the rest symbols.
pub fn behind_a_header(split: usize, rest: &[u8]) -> Vec<u8> {
    let (parameters, symbols) = rest.split_at(rest.len().min(split));
    let mut image = b"SINGBOOT\x01\0\0\0".to_vec();
    let parts = [(HEADER, parameters), (HEADER, &[]), (HEADER + parameters.len(), symbols)];
    for (offset, part) in parts {
        for number in [offset as u32, part.len() as u32, crc32fast::hash(part)] {
            image.extend_from_slice(&number.to_le_bytes());
        }
    }
    image.extend_from_slice(&crc32fast::hash(&image).to_le_bytes());
    image.resize(HEADER, 0);
    image.extend_from_slice(rest);
    image
}

fn read(bytes: &[u8]) {
    let Ok(image) = BootImage::parse(bytes) else { return };
    image.parameters();
    for address in [0, 1, 0x10_0000, u64::from(u32::MAX), u64::MAX] {
        if let Some((name, _)) = image.symbols.locate(address) {
            assert!(!name.is_empty());
        }
    }
}
