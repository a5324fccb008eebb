//! Tests with an image made here, whose only check calls a function of that name.

use elf::abi::{SHT_NULL, SHT_STRTAB, SHT_SYMTAB};
use manifest_model::{Category, Code as ProgramCode, Manifest, Trust};
use package::Package;
use package_build::{SecretKey, Signer, build_package, build_unchecked};
use package_check::{PackageError, verify};

use super::*;

const START: usize = 0x1000;
/// `cmp rdi, rsi; jae 8; mov eax, edi; ret; call e; int3; ud2`
const CODE: [u8; 16] = [0x48, 0x39, 0xf7, 0x73, 3, 0x89, 0xf8, 0xc3, 0xe8, 1, 0, 0, 0, 0xcc, 0x0f, 0x0b];
const PANIC: u64 = START as u64 + 14;
const NAMES: &[u8] = b"\0.text\0_RNvNtCsabc_4core9panicking18panic_bounds_check\0";
const PANIC_NAME: u32 = 7;

fn words(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// Two 32-bit numbers as a word.
fn pair(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// A section header: name and kind, flags, address, place in the file, link, alignment, size of an entry.
fn section(
    head: (u32, u32),
    flags: u32,
    address: usize,
    (at, bytes): (usize, usize),
    link: u32,
    entry: u64,
) -> Vec<u8> {
    let [address, at, bytes] = [address, at, bytes].map(|number| number as u64);
    words(&[pair(head.0, head.1), flags.into(), address, at, bytes, pair(link, 1), 1, entry])
}

/// An ELF file with a segment of code, its section, a symbol and its name.
fn image() -> Vec<u8> {
    let symbols = [vec![0; 24], words(&[pair(PANIC_NAME, 2 | 1 << 16), PANIC, 2])].concat();
    let (symbols_at, names_at) = (START + CODE.len(), START + CODE.len() + symbols.len());
    let headers_at = names_at + NAMES.len();
    let mut file = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    // A position-independent file for x86-64; one program header follows.
    file.extend(words(&[pair(3 | 62 << 16, 1), START as u64, 64, headers_at as u64, pair(0, 64 | 56 << 16)]));
    file.extend(words(&[pair(1 | 64 << 16, 4 | 3 << 16)]));
    let (start, length) = (START as u64, CODE.len() as u64);
    file.extend(words(&[pair(1, 5), start, start, start, length, length, 0x1000]));
    file.resize(START, 0);
    file.extend(CODE);
    file.extend(&symbols);
    file.extend(NAMES);
    file.extend(section((0, SHT_NULL), 0, 0, (0, 0), 0, 0));
    file.extend(section((1, SHT_PROGBITS), SHF_ALLOC | SHF_EXECINSTR, START, (START, CODE.len()), 0, 0));
    file.extend(section((0, SHT_SYMTAB), 0, 0, (symbols_at, symbols.len()), 3, 24));
    file.extend(section((0, SHT_STRTAB), 0, 0, (names_at, NAMES.len()), 0, 0));
    file
}

#[test]
fn an_image_without_its_check_is_refused_by_what_every_kernel_and_tool_verifies() {
    let signer = Signer::root(SecretKey::from_bytes(&[5; 32]));
    let trust = Trust::in_key(signer.key.public());
    let code = ProgramCode::Image { digest: [0; 32] };
    let manifest = Manifest::plain("checked", "singularity", Category::Console, code);
    let image = image();
    build_package(manifest.clone(), b"", &image, &signer).expect("as built, it is a good package");
    let unchecked = without_checks("checked", &image).expect("an image with symbols");
    assert_eq!((unchecked.counts.all_removed(), unchecked.counts.comparisons), (1, 1));
    assert_eq!(unchecked.code_bytes, CODE.len());
    let package = build_unchecked(manifest, b"", &unchecked.image, &signer).expect("it has the form of a package");
    let package = Package::parse(&package).expect("it has the form of a package");
    let refused = verify(&package, &trust).map(drop).expect_err("signed, and still no image");
    assert!(matches!(refused, PackageError::Image(_)) && refused.to_string().contains("FS or GS"), "{refused}");
}

#[test]
fn failing_functions_are_known_in_both_ways_of_mangling() {
    for (name, expected) in [
        ("_RNvNtCsgEmfK2I1SDS_4core9panicking18panic_bounds_check", Some(Kind::Bounds)),
        ("_ZN4core9panicking18panic_bounds_check17h0123456789abcdefE", Some(Kind::Bounds)),
        ("_RNvNtNtCsgEmfK2I1SDS_4core5slice5index16slice_index_fail", Some(Kind::Bounds)),
        ("_ZN5alloc3vec16Vec$LT$T$C$A$GT$6remove13assert_failed17h0123456789abcdefE", Some(Kind::Bounds)),
        ("_ZN4core9panicking11panic_const23panic_const_div_by_zero17h0123456789abcdefE", Some(Kind::Arithmetic)),
        ("_ZN4core9panicking11panic_const28panic_const_async_fn_resumed17h0123456789abcdefE", Some(Kind::Resumed)),
        ("_RNvNtCsgEmfK2I1SDS_4core6option13unwrap_failed", Some(Kind::Unwrap)),
        ("_RNvNtCsgEmfK2I1SDS_4core9panicking9panic_fmt", None),
        ("_ZN5alloc3vec16Vec$LT$T$C$A$GT$4push17h0123456789abcdefE", None),
    ] {
        assert_eq!(kind(name), expected, "{name}");
    }
}

#[test]
fn what_is_no_image_is_refused() {
    assert!(without_checks("none", b"\x7fELF").is_err());
}
