//! WebAssembly programs: a module in a package, and the image that is compiled from it.

mod common;

use common::elf::{EXECUTE, Elf, GOOD_CODE, LOAD, READ, Section, Segment};
use common::*;
use manifest_model::{Bounds, Code, Manifest, Parameter, ParameterKind, Rights, Root, Trust};
use package::{Delivery, FormatError, Package};
use package_check::{Isolation, PackageError, identity, identity_of_delivery, verify_compiled_in_steps};

const MODULE: &[u8] = b"\0asm\x01\0\0\0";
/// Where the good image ends.
const END: u64 = 0x3000;

/// What is done to a good one, with its name.
type Spoilt<'a, T> = (&'a str, &'a dyn Fn(&mut T));

fn template() -> Manifest {
    Manifest { name: "host".into(), code: Code::Template { digest: [0; 32] }, ..manifest() }
}

fn program() -> Manifest {
    Manifest { code: Code::Wasm { digest: [0; 32], template: "host".into(), bounds: Bounds::Guarded }, ..manifest() }
}

fn pack(manifest: Manifest, content: &[u8]) -> Vec<u8> {
    package_build::build_unchecked(manifest, BILL, content, &signer()).expect("it is short")
}

fn load(flags: u32, address: u64, bytes: &[u8]) -> Segment {
    Segment { kind: LOAD, flags, address, bytes: bytes.to_vec(), memory: bytes.len() as u64, alias: false }
}

/// The template's image, with data and code added.
fn composed() -> Elf {
    let mut elf = Elf::good();
    elf.segments.push(load(READ, END, &[7; 64]));
    elf.segments.push(load(READ | EXECUTE, END + 0x1000, GOOD_CODE));
    let (bytes, size) = (Vec::new(), GOOD_CODE.len() as u64);
    elf.sections.push(Section { name: ".text.wasm", kind: 1, flags: 6, address: END + 0x1000, bytes, size });
    elf
}

fn judged(program: &[u8], template: &[u8], image: &[u8], trust: &Trust) -> Result<(), PackageError> {
    let bytes = package::compiled(program, image).expect("it is short");
    let delivery = Delivery::parse(&bytes)?;
    let host = Package::parse(template)?;
    let verified = verify_compiled_in_steps(&delivery, &host, trust, Isolation::Software, &|| ())?;
    assert_eq!(verified.identity, identity_of_delivery(&delivery));
    assert!(verified.image.is_some());
    Ok(())
}

fn with_image(image: &Elf) -> Result<(), PackageError> {
    judged(&pack(program(), MODULE), &pack(template(), &Elf::good().write()), &image.write(), &trust())
}

#[test]
fn a_template_with_code_added_is_accepted() {
    assert_eq!(with_image(&composed()), Ok(()));
}

#[test]
fn what_differs_from_the_template_is_refused() {
    let spoilt: [Spoilt<Elf>; 8] = [
        ("nothing is added", &|elf| elf.segments.truncate(5)),
        ("only data is added", &|elf| elf.segments.truncate(6)),
        ("a byte of the template's code", &|elf| elf.segments[1].bytes[1] = 2),
        ("a byte of its data", &|elf| elf.segments[2].bytes[0] ^= 1),
        ("one of its relocations", &|elf| {
            let last = elf.segments[0].bytes.len() - 8;
            elf.segments[0].bytes[last..].copy_from_slice(&0x1000u64.to_le_bytes());
        }),
        ("its entry", &|elf| elf.entry += 5),
        ("a gap behind it", &|elf| {
            elf.segments[5].address += 0x1000;
            elf.segments[6].address += 0x1000;
            elf.sections[2].address += 0x1000;
        }),
        ("its contracts", &|elf| {
            elf.sections[1].size = 0;
            elf.sections[1].bytes.clear();
        }),
    ];
    for (name, spoil) in spoilt {
        let mut image = composed();
        spoil(&mut image);
        if image.segments.len() < 7 {
            image.sections.truncate(2);
        }
        let refused = with_image(&image);
        assert!(matches!(refused, Err(PackageError::NotTheTemplate { .. })), "{name}: {refused:?}");
    }
}

#[test]
fn another_manifest_than_the_templates_is_refused() {
    let host = pack(template(), &Elf::good().write());
    let image = composed().write();
    let more = Parameter::plain("more", ParameterKind::Text);
    let fits: [Spoilt<Manifest>; 3] = [
        ("contracts", &|manifest| manifest.contracts.insert(0, contract("Other"))),
        ("endpoints", &|manifest| manifest.endpoints[0].name = "other".into()),
        ("parameters", &|manifest| manifest.parameters.insert(0, more.clone())),
    ];
    for (list, spoil) in fits {
        let mut manifest = program();
        spoil(&mut manifest);
        let refused = judged(&pack(manifest, MODULE), &host, &image, &trust()).expect_err(list);
        assert!(refused.to_string().contains(&format!("its {list} are not those")), "{refused}");
    }
    let mut own = program();
    own.parameters.push(more);
    own.contracts.push(contract("Other"));
    assert_eq!(judged(&pack(own, MODULE), &host, &image, &trust()), Ok(()));
}

#[test]
fn only_a_template_is_a_template() {
    let module = pack(program(), MODULE);
    let image = composed().write();
    let plain = Manifest { name: "host".into(), ..manifest() };
    let other = Manifest { name: "other".into(), ..template() };
    for host in [plain, other] {
        let refused = judged(&module, &pack(host, &Elf::good().write()), &image, &trust());
        assert!(matches!(refused, Err(PackageError::NotTheTemplate { .. })), "{refused:?}");
    }
    // A template that nobody trusts is none.
    let mut changed = pack(template(), &Elf::good().write());
    let last = changed.len() - 1;
    changed[last] ^= 1;
    assert_eq!(judged(&module, &changed, &image, &trust()), Err(PackageError::BadSignature));
}

#[test]
fn a_module_needs_no_right_to_native_code_and_is_what_was_signed() {
    let bytes = pack(program(), MODULE);
    let root = Root { systems: false, rights: Rights::default(), ..Trust::in_key(key().public()).roots[0].clone() };
    let trust = Trust { roots: vec![root], ..Trust::default() };
    let package = Package::parse(&bytes).expect("a package");
    let verified = package_check::verify(&package, &trust).expect("no right is needed");
    assert!(verified.image.is_none());
    assert_eq!(verified.identity, identity(&package));
    let native = good_package();
    assert!(package_check::verify(&Package::parse(&native).expect("a package"), &trust).is_err());

    assert_eq!(verify(&pack(program(), b"(module)")), Err(PackageError::NotAModule));
    let mut changed = bytes;
    let module = changed.windows(4).position(|window| window == b"\0asm").expect("the module");
    changed[module + 4] = 2;
    assert_eq!(verify(&changed), Err(PackageError::ImageHash));
}

#[test]
fn a_delivery_is_two_whole_parts() {
    let module = pack(program(), MODULE);
    let bytes = package::compiled(&module, b"an image").expect("it is short");
    let delivery = Delivery::parse(&bytes).expect("whole");
    assert_eq!((delivery.package_bytes, delivery.image()), (&module[..], &b"an image"[..]));
    for length in 0..bytes.len() {
        assert!(Delivery::parse(&bytes[..length]).is_err(), "cut at {length}");
    }
    let longer = [&bytes[..], &[0]].concat();
    assert!(matches!(Delivery::parse(&longer), Err(FormatError::TrailingBytes { .. })));
    let native = package::compiled(&good_package(), b"an image").expect("it is short");
    assert_eq!(Delivery::parse(&native).err(), Some(FormatError::CompiledWithoutModule));
    let other = package::compiled(&module, b"another").expect("it is short");
    let other = Delivery::parse(&other).expect("whole");
    assert_ne!(identity_of_delivery(&other), identity_of_delivery(&delivery), "the image counts");
}
