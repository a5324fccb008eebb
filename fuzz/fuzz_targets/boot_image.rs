//! The boot module, as whoever starts a bare machine may give it; and its parts behind a header that is right.
#![no_main]

use package::boot_image::BootImage;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    read(bytes);
    // Checksums keep the fuzzer out of what lies behind them, so that they are made right over its bytes.
    let Some((&split, rest)) = bytes.split_first() else { return };
    let (parameters, symbols) = rest.split_at(rest.len().min(usize::from(split)));
    let mut image = b"SINGBOOT\x01\0\0\0".to_vec();
    let parts = [(64, parameters), (64, &[]), (64 + parameters.len(), symbols)];
    for (offset, part) in parts {
        for number in [offset as u32, part.len() as u32, crc32fast::hash(part)] {
            image.extend_from_slice(&number.to_le_bytes());
        }
    }
    image.extend_from_slice(&crc32fast::hash(&image).to_le_bytes());
    image.resize(64, 0);
    image.extend_from_slice(rest);
    read(&image);
});

fn read(bytes: &[u8]) {
    let Ok(image) = BootImage::parse(bytes) else { return };
    image.parameters();
    for address in [0, 1, 0x10_0000, u64::from(u32::MAX), u64::MAX] {
        if let Some((name, _)) = image.symbols.locate(address) {
            assert!(!name.is_empty());
        }
    }
}
