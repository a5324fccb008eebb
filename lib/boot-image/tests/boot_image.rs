//! Boot images: round trip, and detection of damage.

use boot_image::{BootImage, BootImageError, Part};
use proptest::prelude::*;

fn parameters() -> Vec<(String, String)> {
    vec![("commands".into(), "echo grüße; ls /fs".into()), ("terminal".into(), String::new())]
}

fn symbols() -> Vec<(u64, String)> {
    vec![
        (0x10_0040, "kernel::start".into()),
        (0x10_0000, "entry".into()),
        (0x10_0040, "zz_the_same".into()),
        (0x10_0100, String::new()),
        (0x20_0000, "entry".into()),
    ]
}

fn image() -> Vec<u8> {
    BootImage::encode(&parameters(), b"the system", &symbols())
}

/// Returns the range of each part according to the header.
fn range(bytes: &[u8], index: usize) -> core::ops::Range<usize> {
    let number = |offset: usize| u32::from_le_bytes(bytes[offset..offset + 4].try_into().expect("four bytes")) as usize;
    let entry = 12 + index * 12;
    number(entry)..number(entry) + number(entry + 4)
}

#[test]
fn what_was_put_in_comes_out() {
    let bytes = image();
    let image = BootImage::parse(&bytes).expect("a boot image");
    assert_eq!(image.parameters(), parameters());
    assert_eq!(image.system, b"the system");
    assert_eq!(image.symbols.locate(0x10_0000), Some(("entry", 0)));
    assert_eq!(image.symbols.locate(0x10_003f), Some(("entry", 0x3f)));
    assert_eq!(image.symbols.locate(0x10_0041), Some(("kernel::start", 1)));
    assert_eq!(image.symbols.locate(0x20_0007), Some(("entry", 7)));
}

#[test]
fn an_address_that_nothing_has_is_not_named() {
    let bytes = image();
    let symbols = BootImage::parse(&bytes).expect("a boot image").symbols;
    for address in [0, 0x0f_ffff, 0x10_0100, 0x1f_ffff] {
        assert_eq!(symbols.locate(address), None, "{address:x}");
    }
    let empty = BootImage::encode(&[], &[], &[]);
    let empty = BootImage::parse(&empty).expect("a boot image with nothing in it");
    assert_eq!((empty.symbols.locate(5), empty.parameters().len(), empty.system.len()), (None, 0, 0));
}

#[test]
fn a_name_without_end_is_cut_at_a_character() {
    let bytes = BootImage::encode(&[], &[], &[(1, "ü".repeat(1000) + "x"), (2, format!("x{}", "ü".repeat(1000)))]);
    let symbols = BootImage::parse(&bytes).expect("a boot image").symbols;
    assert_eq!(symbols.locate(1).map(|(name, _)| name.len()), Some(1024));
    assert_eq!(symbols.locate(2).map(|(name, _)| name.len()), Some(1023));
}

#[test]
fn a_script_of_a_mebibyte_is_a_parameter() {
    let script = "echo a; ".repeat(1 << 17);
    let bytes = BootImage::encode(&[("commands".into(), script.clone())], &[], &[]);
    assert_eq!(BootImage::parse(&bytes).expect("a boot image").parameters()[0].1, script);
}

#[test]
fn parts_begin_at_multiples_of_sixteen() {
    let bytes = image();
    assert!((0..3).all(|index| range(&bytes, index).start.is_multiple_of(16)));
}

#[test]
fn other_files_are_refused_by_a_sentence() {
    let other = BootImage::parse(b"\x7FELF, which is no boot image").expect_err("no boot image");
    assert_eq!(other, BootImageError::NotABootImage);
    let mut newer = image();
    newer[8] = 2;
    let newer = BootImage::parse(&newer).expect_err("another version");
    assert_eq!(newer, BootImageError::Version { found: 2 });
    let short = BootImage::parse(b"SING").expect_err("too short");
    for error in [other, newer, short] {
        let text = error.to_string();
        assert!(text.contains(';') && !text.contains('\n') && text.len() > 40, "{text}");
    }
}

#[test]
fn damage_is_named_by_its_part() {
    let bytes = image();
    for (part, offset) in
        [(Part::Header, 13), (Part::Parameters, range(&bytes, 0).start + 5), (Part::Symbols, range(&bytes, 2).end - 1)]
    {
        let mut changed = bytes.clone();
        changed[offset] ^= 1;
        let error = BootImage::parse(&changed).expect_err("it is damaged");
        assert!(matches!(error, BootImageError::Damaged { part: found, .. } if found == part), "{error}");
        assert!(error.to_string().contains(&format!("damaged in its {part}")), "{error}");
    }
}

#[test]
fn every_truncation_is_refused() {
    let bytes = image();
    for length in 0..bytes.len() {
        let error = BootImage::parse(&bytes[..length]).expect_err("cut short");
        assert!(matches!(error, BootImageError::TooShort { .. }), "cut at {length}: {error}");
    }
}

proptest! {
    #[test]
    fn any_content_comes_back(
        parameters in prop::collection::vec((".{0,20}", ".{0,60}"), 0..6),
        system in prop::collection::vec(any::<u8>(), 0..200),
        symbols in prop::collection::btree_map(any::<u32>(), "[a-zü:<>]{1,40}", 0..40),
        address in any::<u32>(),
    ) {
        let list: Vec<_> = symbols.iter().map(|(&at, name)| (u64::from(at), name.clone())).collect();
        let bytes = BootImage::encode(&parameters, &system, &list);
        let image = BootImage::parse(&bytes).expect("a boot image");
        prop_assert_eq!(image.parameters(), parameters);
        prop_assert_eq!(image.system, system.as_slice());
        let expected = symbols.range(..=address).next_back().map(|(&at, name)| (name.as_str(), (address - at) as usize));
        prop_assert_eq!(image.symbols.locate(u64::from(address)), expected);
    }

    #[test]
    fn a_flipped_bit_outside_the_system_image_is_found(position in any::<prop::sample::Index>(), bit in 0..8u8) {
        let bytes = image();
        let mut changed = bytes.clone();
        let at = position.index(bytes.len());
        changed[at] ^= 1 << bit;
        let is_checked = at < 52 || range(&bytes, 0).contains(&at) || range(&bytes, 2).contains(&at);
        prop_assert_eq!(BootImage::parse(&changed).is_err(), is_checked, "byte {}", at);
    }

    /// No panic with an arbitrary header whose checksum is right.
    #[test]
    fn whatever_the_header_says_nothing_panics(
        numbers in prop::collection::vec(prop_oneof![0..300u32, any::<u32>()], 9),
        rest in prop::collection::vec(any::<u8>(), 0..300),
        address in any::<u64>(),
    ) {
        let mut bytes = image()[..12].to_vec();
        for number in numbers {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&crc32fast::hash(&bytes).to_le_bytes());
        bytes.extend_from_slice(&rest);
        if let Ok(image) = BootImage::parse(&bytes) {
            image.parameters();
            image.symbols.locate(address);
        }
    }

    /// No panic with arbitrary symbols whose checksum is right.
    #[test]
    fn whatever_the_symbols_are_nothing_panics(
        symbols in prop::collection::vec(prop_oneof![0..6u8, any::<u8>()], 0..120),
        parameters in prop::collection::vec(prop_oneof![0..6u8, any::<u8>()], 0..60),
        address in prop_oneof![0..5000u64, any::<u64>()],
    ) {
        let mut bytes = image()[..12].to_vec();
        let start = 52 + 12;
        for (offset, part) in [(start, &parameters), (start, &Vec::new()), (start + parameters.len(), &symbols)] {
            bytes.extend_from_slice(&(offset as u32).to_le_bytes());
            bytes.extend_from_slice(&(part.len() as u32).to_le_bytes());
            bytes.extend_from_slice(&crc32fast::hash(part).to_le_bytes());
        }
        bytes.extend_from_slice(&crc32fast::hash(&bytes).to_le_bytes());
        bytes.resize(start, 0);
        bytes.extend_from_slice(&parameters);
        bytes.extend_from_slice(&symbols);
        match BootImage::parse(&bytes) {
            Ok(image) => {
                image.parameters();
                image.symbols.locate(address);
            }
            Err(error) => prop_assert!(matches!(error, BootImageError::Damaged { part: Part::Parameters, .. }), "{}", error),
        }
    }
}
