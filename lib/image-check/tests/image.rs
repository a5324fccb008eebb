//! A bad image for each reason to reject one.

#[path = "common/elf.rs"]
mod elf;

use elf::*;
use image_check::{Data, Image, ImageError};

/// Fingerprint of a contract in the good image; not verified here.
fn fingerprint(_contract: &str) -> [u8; 32] {
    [0x5a; 32]
}

fn check(elf: &Elf) -> Result<(), ImageError> {
    Image::check(&elf.write()).map(|_| ())
}

fn code(bytes: &[u8]) -> Result<(), ImageError> {
    check(&Elf::with_code(bytes))
}

/// Returns the error's name, after checking that its message has a location and a remedy.
fn refused(result: Result<(), ImageError>) -> ImageError {
    let error = result.expect_err("the image must be refused");
    let text = error.to_string();
    assert!(text.contains([';', ':']) && text.len() > 40 && !text.contains('\n'), "{text}");
    error
}

macro_rules! assert_refused {
    ($result:expr, $pattern:pat $(if $guard:expr)?) => {
        let error = refused($result);
        assert!(matches!(error, $pattern $(if $guard)?), "{error:?}");
    };
}

#[test]
fn a_good_image_passes_and_is_relocated() {
    let file = Elf::good().write();
    let image = Image::check(&file).expect("the good image is good");
    assert_eq!((image.entry, image.bytes), (CODE, 0x3000));
    let pages = image.relocate(0x7000_0000);
    let shape: Vec<_> = pages.iter().map(|page| (page.address, page.bytes.len(), page.executable)).collect();
    assert_eq!(shape, [(0x7000_0000, 0x1000, false), (0x7000_1000, 0x1000, true), (0x7000_2000, 0x1000, false)]);
    assert_eq!(pages[2].bytes[8..16], 0x7000_100Cu64.to_le_bytes());
    assert_eq!(pages[2].bytes[..8], [0x11; 8]);
    assert_eq!(pages[1].bytes[..GOOD_CODE.len()], *GOOD_CODE);
    assert!(pages[1].bytes[GOOD_CODE.len()..].iter().all(|&byte| byte == 0xCC), "what is no code must trap");
    assert_eq!(image.contracts[0].name_tag, abi::name_tag("Echo"));
}

#[test]
fn not_elf() {
    assert_refused!(Image::check(b"#!/bin/sh").map(|_| ()), ImageError::NotElf);
    assert_refused!(Image::check(b"").map(|_| ()), ImageError::NotElf);
}

#[test]
fn another_machine() {
    assert_refused!(check(&Elf { machine: 183, ..Elf::good() }), ImageError::WrongMachine);
    assert_refused!(check(&Elf { class: 1, ..Elf::good() }), ImageError::WrongMachine);
}

#[test]
fn not_position_independent() {
    assert_refused!(check(&Elf { kind: 2, ..Elf::good() }), ImageError::NotPie);
}

#[test]
fn every_truncation() {
    let file = Elf::good().write();
    for length in 0..file.len() {
        assert!(Image::check(&file[..length]).is_err(), "cut at {length}");
    }
}

#[test]
fn an_interpreter() {
    let mut elf = Elf::good();
    elf.segments.push(alias(INTERPRETER, 0, 8));
    assert_refused!(check(&elf), ImageError::Interpreter);
}

#[test]
fn thread_local_statics() {
    let mut elf = Elf::good();
    elf.segments.push(alias(THREAD_LOCAL, DATA, 8));
    assert_refused!(check(&elf), ImageError::ThreadLocal);
}

#[test]
fn writable_code() {
    let mut elf = Elf::good();
    elf.segments[1].flags |= WRITE;
    assert_refused!(check(&elf), ImageError::WritableCode { address: CODE });
}

#[test]
fn writable_data_is_named() {
    let mut elf = Elf::good();
    elf.segments.push(load(READ | WRITE, 0x3000, vec![1; 16]));
    elf.symbols.push(Symbol { name: "COUNTER", address: 0x3000, size: 16, kind: 1 });
    let error = refused(check(&elf));
    assert_eq!(error, ImageError::WritableData { address: 0x3000, bytes: 16, symbol: Some("COUNTER".into()) });
    assert!(error.to_string().contains("COUNTER"), "{error}");
}

#[test]
fn data_beside_the_sealed_part() {
    let mut elf = Elf::good();
    let sealed = elf.segments[4].memory;
    elf.segments[2].bytes.extend_from_slice(&[1; 8]);
    elf.segments[2].memory += 8;
    assert_refused!(check(&elf), ImageError::WritableData { address, bytes: 8, .. } if address == DATA + sealed);
    let mut elf = Elf::good();
    elf.segments[4].address += 8;
    elf.segments[4].memory -= 8;
    assert_refused!(check(&elf), ImageError::WritableData { address: DATA, bytes: 8, .. });
}

#[test]
fn zeroed_data() {
    let mut elf = Elf::good();
    elf.segments[2].memory += 64;
    assert_refused!(check(&elf), ImageError::ZeroedData { bytes: 64, .. });
}

#[test]
fn padding_of_the_sealed_part_is_fine() {
    let mut elf = Elf::good();
    elf.segments[2].memory = 0x1000;
    elf.segments[4].memory = 0x1000;
    assert_eq!(check(&elf), Ok(()));
}

#[test]
fn overlapping_segments() {
    let mut elf = Elf::good();
    elf.segments.push(load(READ, DATA + 0x800, vec![1; 8]));
    assert_refused!(check(&elf), ImageError::SegmentsOverlap { .. });
}

#[test]
fn a_segment_outside_the_file() {
    let mut file = Elf::good().write();
    let header = 64 + 56;
    file[header + 8..header + 16].copy_from_slice(&0x10_0000u64.to_le_bytes());
    assert_refused!(Image::check(&file).map(|_| ()), ImageError::SegmentOutsideFile { address: CODE });
}

#[test]
fn too_large() {
    let mut elf = Elf::good();
    elf.segments[0].memory = u64::MAX - 8;
    assert_refused!(check(&elf), ImageError::TooLarge { .. });
    let huge = vec![0; image_check::IMAGE_BYTES_MAX + 1];
    assert_refused!(Image::check(&huge).map(|_| ()), ImageError::TooLarge { .. });
}

#[test]
fn no_code() {
    let mut elf = Elf::good();
    elf.segments[1].flags = READ;
    elf.sections.remove(0);
    assert_refused!(check(&elf), ImageError::NoCode);
}

#[test]
fn an_entry_outside_the_code() {
    for entry in [0, CODE + 1, CODE + GOOD_CODE.len() as u64, DATA, u64::MAX] {
        assert_refused!(check(&Elf { entry, ..Elf::good() }), ImageError::EntryOutsideCode { .. });
    }
}

#[test]
fn imports_and_other_dynamic_features() {
    let mut elf = Elf::good();
    elf.set_dynamic(&[(1, 1)]);
    assert_refused!(check(&elf), ImageError::Import);
    for tag in [12, 25, 17, 23, 36] {
        elf.set_dynamic(&[(tag, 0)]);
        assert_refused!(check(&elf), ImageError::DynamicFeature { .. });
    }
}

#[test]
fn relocations() {
    let good = || elf::relocation(DATA + 8, 8, 0x10);
    assert_eq!(check(&Elf::with_relocations(good())), Ok(()));
    let absolute = elf::relocation(DATA, 1, 0);
    assert_refused!(
        check(&Elf::with_relocations([good(), absolute].concat())),
        ImageError::RelocationKind { kind: 1, .. }
    );
    let symbolic = elf::relocation(DATA, 8 | 1 << 32, 0);
    assert_refused!(check(&Elf::with_relocations(symbolic)), ImageError::RelocationKind { .. });
    for address in [CODE, DATA - 4, 0x5000, u64::MAX - 3] {
        let bad = elf::relocation(address, 8, 0);
        assert_refused!(check(&Elf::with_relocations(bad)), ImageError::RelocationTarget { .. });
    }
    for addend in [-1, 0x3001, i64::MAX] {
        let bad = elf::relocation(DATA, 8, addend);
        assert_refused!(check(&Elf::with_relocations(bad)), ImageError::RelocationAddend { .. });
    }
    assert_refused!(check(&Elf::with_relocations(vec![0; 23])), ImageError::ElfMalformed { .. });
}

/// Forbidden instructions, and their names in messages.
const FORBIDDEN: &[(&str, &[u8])] = &[
    ("syscall", &[0x0F, 0x05]),
    ("sysenter", &[0x0F, 0x34]),
    ("int", &[0xCD, 0x80]),
    ("int1", &[0xF1]),
    ("in", &[0xE4, 0x60]),
    ("in", &[0xEC]),
    ("out", &[0xE6, 0x60]),
    ("insb", &[0x6C]),
    ("outsb", &[0x6E]),
    ("cli", &[0xFA]),
    ("sti", &[0xFB]),
    ("hlt", &[0xF4]),
    ("std", &[0xFD]),
    ("popfq", &[0x9D]),
    ("iretq", &[0x48, 0xCF]),
    ("retf", &[0xCB]),
    ("rdmsr", &[0x0F, 0x32]),
    ("wrmsr", &[0x0F, 0x30]),
    ("rdpmc", &[0x0F, 0x33]),
    // What depends on the processor: programs ask the kernel.
    ("rdtsc", &[0x0F, 0x31]),
    ("rdtscp", &[0x0F, 0x01, 0xF9]),
    ("cpuid", &[0x0F, 0xA2]),
    ("rdrand", &[0x48, 0x0F, 0xC7, 0xF0]),
    ("rdseed", &[0x48, 0x0F, 0xC7, 0xF8]),
    ("rdpid", &[0xF3, 0x0F, 0xC7, 0xF8]),
    ("swapgs", &[0x0F, 0x01, 0xF8]),
    ("wrgsbase", &[0xF3, 0x48, 0x0F, 0xAE, 0xD8]),
    ("wrfsbase", &[0xF3, 0x48, 0x0F, 0xAE, 0xD0]),
    ("rdgsbase", &[0xF3, 0x48, 0x0F, 0xAE, 0xC8]),
    ("xsetbv", &[0x0F, 0x01, 0xD1]),
    ("wrpkru", &[0x0F, 0x01, 0xEF]),
    ("vmcall", &[0x0F, 0x01, 0xC1]),
    ("lgdt", &[0x0F, 0x01, 0x10]),
    ("lidt", &[0x0F, 0x01, 0x18]),
    ("sidt", &[0x0F, 0x01, 0x08]),
    ("lldt", &[0x0F, 0x00, 0xD0]),
    ("ltr", &[0x0F, 0x00, 0xD8]),
    ("invlpg", &[0x0F, 0x01, 0x38]),
    ("mov cr", &[0x0F, 0x22, 0xD8]),
    ("mov cr", &[0x0F, 0x20, 0xC0]),
    ("mov dr", &[0x0F, 0x23, 0xF8]),
    ("mov of a segment register", &[0x8E, 0xD8]),
    ("mov of a segment register", &[0x8C, 0xD8]),
    ("pop of a segment register", &[0x0F, 0xA1]),
    ("lss", &[0x0F, 0xB2, 0x00]),
    ("far jmp", &[0xFF, 0x28]),
    ("far call", &[0xFF, 0x18]),
    ("ldmxcsr", &[0x0F, 0xAE, 0x10]),
    ("fldcw", &[0xD9, 0x28]),
    ("fxrstor", &[0x0F, 0xAE, 0x08]),
    ("xbegin", &[0xC7, 0xF8, 0, 0, 0, 0]),
    ("data16 branch", &[0x66, 0xE9, 0, 0, 0, 0]),
    ("data16 branch", &[0x66, 0xFF, 0xE0]),
];

#[test]
fn forbidden_instructions() {
    for (name, bytes) in FORBIDDEN {
        // In the middle of the code, so that the address in the message is not the entry point.
        let whole = [&[0x90, 0x90], *bytes, &[0xC3]].concat();
        let error = refused(code(&whole));
        match &error {
            ImageError::ForbiddenInstruction { name: found, address, .. } => {
                assert_eq!((found.as_str(), *address), (*name, CODE + 2), "{bytes:02x?}");
            }
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn the_function_of_a_forbidden_instruction_is_named() {
    let mut elf = Elf::with_code(&[0x90, 0x0F, 0x05, 0xC3]);
    elf.symbols.push(Symbol { name: "_ZN5shell3run17h0123456789abcdefE", address: CODE, size: 4, kind: 2 });
    let text = refused(check(&elf)).to_string();
    assert!(text.contains("`syscall` at 0x1001 in `shell::run`"), "{text}");
}

#[test]
fn memory_through_a_segment_base() {
    for prefix in [0x64, 0x65] {
        let bytes = [prefix, 0x48, 0x8B, 0x04, 0x25, 0, 0, 0, 0, 0xC3];
        assert_refused!(code(&bytes), ImageError::SegmentOverride { address: CODE, .. });
    }
}

#[test]
fn a_stack_that_grows_past_its_guard() {
    // sub rsp; add rsp of a negative number; lea rsp; and rsp, which aligns to two pages.
    let steps: [(&[u8], u64); 4] = [
        (&[0x48, 0x81, 0xEC, 0x01, 0x10, 0, 0], 0x1001),
        (&[0x48, 0x81, 0xC4, 0xFF, 0xEF, 0xFF, 0xFF], 0x1001),
        (&[0x48, 0x8D, 0xA4, 0x24, 0xFF, 0xEF, 0xFF, 0xFF], 0x1001),
        (&[0x48, 0x81, 0xE4, 0x00, 0xE0, 0xFF, 0xFF], 0x2000),
    ];
    for (bytes, step) in steps {
        let whole = [bytes, &[0xC3]].concat();
        assert_refused!(code(&whole), ImageError::StackStep { bytes: found, address: CODE, .. } if found == step);
    }
    let within: [&[u8]; 6] = [
        &[0x48, 0x81, 0xEC, 0x00, 0x10, 0, 0],
        &[0x48, 0x81, 0xC4, 0x00, 0xF0, 0xFF, 0xFF],
        &[0x48, 0x81, 0xC4, 0x00, 0x10, 1, 0],
        &[0x48, 0x8D, 0xA4, 0x24, 0x00, 0xF0, 0xFF, 0xFF],
        &[0x48, 0x81, 0xE4, 0x00, 0xF0, 0xFF, 0xFF],
        // r12 is another register.
        &[0x49, 0x81, 0xEC, 0x01, 0x10, 1, 0],
    ];
    for bytes in within {
        assert_eq!(code(&[bytes, &[0xC3]].concat()), Ok(()), "{bytes:02x?}");
    }
}

#[test]
fn bytes_that_are_no_instruction() {
    // Undefined in 64-bit mode; AVX, AVX-512 and other state that the kernel does not save; truncated.
    for bytes in [&[0x06][..], &[0xC5, 0xF8, 0x57, 0xC0], &[0x62, 0xF1, 0x7C, 0x48, 0x57, 0xC0], &[0xB8, 0x00]] {
        assert_refused!(code(bytes), ImageError::UnknownInstruction { address: CODE, .. });
    }
}

#[test]
fn what_compilers_pad_and_trap_with_is_fine() {
    let nop = [0x66, 0x2E, 0x0F, 0x1F, 0x84, 0, 0, 0, 0, 0];
    let bytes = [&[0xF3, 0x0F, 0x1E, 0xFA], &nop[..], &[0x0F, 0x0B, 0xCC, 0xF3, 0x48, 0xAB, 0xF3, 0x90, 0xC3]].concat();
    assert_eq!(code(&bytes), Ok(()));
}

#[test]
fn branches_out_of_the_code() {
    let forward = [0xE9, 0x00, 0x10, 0, 0, 0xC3];
    assert_refused!(code(&forward), ImageError::BranchTarget { address: CODE, target: 0x2005, .. });
    let backward = [0xEB, 0x80];
    assert_refused!(code(&backward), ImageError::BranchTarget { .. });
    // Into the middle of the `mov`, whose immediate contains a `syscall`.
    let inside = [0xEB, 0x01, 0xB8, 0x0F, 0x05, 0, 0, 0xC3];
    assert_refused!(code(&inside), ImageError::BranchTarget { address: CODE, target, .. } if target == CODE + 3);
    let conditional = [0x0F, 0x84, 0xFF, 0xFF, 0xFF, 0x7F, 0xC3];
    assert_refused!(code(&conditional), ImageError::BranchTarget { .. });
    let call = [0xE8, 0, 0, 0, 0x80, 0xC3];
    assert_refused!(code(&call), ImageError::BranchTarget { .. });
}

#[test]
fn code_outside_the_sections_of_code() {
    let mut elf = Elf::with_code(&[0xC3, 0x0F, 0x05, 0xC3]);
    elf.sections[0].size = 1;
    assert_refused!(check(&elf), ImageError::StrayCode { address } if address == CODE + 1);
    let mut elf = Elf::with_code(&[0xC3, 0xCC, 0xCC, 0xCC]);
    elf.sections[0].size = 1;
    assert_eq!(check(&elf), Ok(()));
    let mut elf = Elf::with_code(&[0xC3, 0xCC, 0x00]);
    elf.sections[0].size = 1;
    assert_refused!(check(&elf), ImageError::StrayCode { address } if address == CODE + 2);
}

#[test]
fn nothing_begins_right_behind_code() {
    let mut elf = Elf::good();
    elf.segments.push(load(READ | EXECUTE, 0x4000, vec![0x90; 0x1000]));
    elf.sections.push(Section { name: ".text.more", address: 0x4000, size: 0x1000, ..elf.sections[0].clone() });
    let file = elf.write();
    let image = Image::check(&file).expect("two segments of code are fine");
    assert_eq!(image.bytes, 0x6000);
}

#[test]
fn a_file_without_section_headers_is_decoded_whole() {
    let mut elf = Elf::with_code(&[0xC3, 0x0F, 0x05, 0xC3]);
    elf.sections.clear();
    assert_refused!(check(&elf), ImageError::ForbiddenInstruction { .. });
}

#[test]
fn damaged_contract_records() {
    let mut elf = Elf::good();
    elf.sections[1].bytes[0] = b'X';
    assert_refused!(check(&elf), ImageError::ContractRecords { offset: 0 });
    let mut elf = Elf::good();
    elf.sections[1].bytes.truncate(40);
    elf.sections[1].size = 40;
    assert_refused!(check(&elf), ImageError::ContractRecords { offset: 0 });
}

#[test]
fn private_data_is_writable_and_shared_data_is_not() {
    let check = |elf: &Elf, data| {
        Image::check_in_steps(&elf.write(), data, &|| ()).map(|image| {
            image
                .segments
                .iter()
                .map(|segment| (segment.address, segment.writable, segment.executable))
                .collect::<Vec<_>>()
        })
    };
    let plain = check(&Elf::good(), Data::Private).expect("a good image");
    assert!(plain.iter().all(|(_, writable, _)| !writable), "{plain:?}");
    let mut elf = Elf::good();
    elf.segments.push(load(READ | WRITE, 0x3000, vec![1; 16]));
    let segments = check(&elf, Data::Private).expect("its data is private");
    assert_eq!(segments.last(), Some(&(0x3000, true, false)));
    assert_eq!(segments.iter().filter(|(_, writable, _)| *writable).count(), 1);
    assert!(check(&elf, Data::Refused).is_err());
    // Sealed in part: all of it is writable. Code never is.
    let mut elf = Elf::good();
    elf.segments[2].memory += 64;
    let segments = check(&elf, Data::Private).expect("its data is private");
    assert!(segments.contains(&(DATA / 4096 * 4096, true, false)), "{segments:?}");
    let mut elf = Elf::good();
    elf.segments.push(load(READ | WRITE | EXECUTE, 0x3000, vec![0xCC; 16]));
    assert!(matches!(check(&elf, Data::Private), Err(ImageError::WritableCode { .. })));
}
