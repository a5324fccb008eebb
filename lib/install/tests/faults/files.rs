//! Files, signatures and images with one fault.

use install::Code;
use manifest_model::{Bounds, Code as ProgramCode, Manifest, Policy, Revoked, Rights, Root, Trust};
use package::{Certificate, May};
use package_build::{Grant, SecretKey, Signer};
use package_check::sha256;

use crate::common::elf::{self, *};
use crate::common::*;
use crate::{Case, Deed, packed};

const ROOT: u8 = 21;
const TOOLS: u8 = 22;
const DAILY: u8 = 23;
const STRANGER: u8 = 24;

pub fn cases(deed: Deed) -> Vec<Case> {
    let mut cases = files(deed);
    cases.extend(trust(deed));
    cases.extend(images(deed));
    cases.extend(analyses(deed));
    cases
}

fn case(name: &'static str, code: Code, package: Vec<u8>) -> Case {
    Case { name, code, package, system: installed(), at_boot: false }
}

fn files(deed: Deed) -> Vec<Case> {
    let good = packed(&deed.good());
    let changed = |spoil: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        spoil(&mut bytes);
        bytes
    };
    let manifest = good.windows(4).position(|window| window == b"SGM3").expect("it has a manifest");
    let image = good.windows(4).position(|window| window == b"\x7FELF").expect("it has an image");
    let with_bill = |bill: &[u8]| {
        let manifest = deed.good();
        package_build::build_unchecked(manifest.clone(), bill, &image_bytes(&manifest), &Signer::root(key()))
            .expect("it is short")
    };
    let mut other_bill = with_bill(b"[[crate]]");
    let bill = other_bill.windows(9).position(|window| window == b"[[crate]]").expect("it has a bill");
    other_bill[bill] = b'<';
    vec![
        case("nothing", Code::Truncated, Vec::new()),
        case("another file", Code::NotAPackage, b"#!/bin/sh\necho hello there\n".to_vec()),
        case("a package of an older format", Code::NotAPackage, changed(&|bytes| bytes[7] = b'2')),
        case("a file cut short", Code::Truncated, changed(&|bytes| bytes.truncate(bytes.len() - 1))),
        case("a file that goes on", Code::TrailingBytes, changed(&|bytes| bytes.push(0))),
        case("a manifest of another version", Code::ManifestUnreadable, changed(&|bytes| bytes[manifest + 3] = b'1')),
        case(
            "a changed manifest",
            Code::BadSignature,
            changed(&|bytes| {
                let name = bytes.windows(9).position(|window| window == b"is part o").expect("its summary");
                bytes[name] = b'I';
            }),
        ),
        case("a changed signature", Code::BadSignature, changed(&|bytes| *bytes.last_mut().expect("a byte") ^= 1)),
        case("a changed image", Code::ImageDigest, changed(&|bytes| bytes[image + 100] ^= 1)),
        case("a changed bill", Code::BillDigest, other_bill),
        case("a bill that is no text", Code::BillNotText, with_bill(&[0xff, 0xfe])),
        case("a long bill", Code::BillTooLarge, with_bill(&vec![b'#'; package::BILL_BYTES_MAX + 1])),
    ]
}

fn image_bytes(manifest: &Manifest) -> Vec<u8> {
    image(manifest).write()
}

fn secret(byte: u8) -> SecretKey {
    SecretKey::from_bytes(&[byte; 32])
}

fn issue(issuer: u8, key: u8, publishers: &str, may: May, serial: u64) -> Certificate {
    let grant = Grant { publishers, may, rights: Rights::NATIVE };
    package_build::issue_certificate(&secret(issuer), public(key), grant, serial).expect("a pattern of publishers")
}

fn scripts_only(issuer: u8, key: u8, may: May) -> Certificate {
    let grant = Grant { publishers: "singularity", may, rights: Rights::NONE };
    package_build::issue_certificate(&secret(issuer), public(key), grant, 13).expect("a name of a publisher")
}

/// The small system, which trusts ROOT for publishers that begin with `singular`, and its own key.
fn trusting(change: impl Fn(&mut Trust)) -> install::Installed {
    let mut system = installed();
    for publishers in ["singularity", "singular-*"] {
        system.system.trust.roots.push(Root {
            key: public(ROOT),
            publishers: publishers.into(),
            systems: false,
            rights: Rights::NATIVE,
        });
    }
    change(&mut system.system.trust);
    system
}

fn trust(deed: Deed) -> Vec<Case> {
    let by = |signer: u8, chain: Vec<Certificate>| {
        let manifest = deed.good();
        let signer = Signer { key: secret(signer), chain };
        package_build::build_unchecked(manifest.clone(), b"", &image_bytes(&manifest), &signer).expect("it is short")
    };
    let case = |name, code, package| Case { name, code, package, system: trusting(|_| ()), at_boot: false };
    let in_trust = |name, code, package, change: &dyn Fn(&mut Trust)| Case {
        name,
        code,
        package,
        system: trusting(change),
        at_boot: false,
    };
    let sign = |publishers: &str| vec![issue(ROOT, DAILY, publishers, May::Sign, 5)];
    let mut bad_key = by(DAILY, Vec::new());
    let place = bad_key.len() - 96;
    // Not the coordinate of a point of the curve.
    bad_key[place..place + 32].copy_from_slice(&[2; 32]);
    let not_a_key = manifest_model::PublicKey([2; 32]);
    let unsigned =
        package_build::build_unsigned(deed.good(), b"", &image_bytes(&deed.good())).expect("it is good but for that");
    let mut half_signed = unsigned.clone();
    *half_signed.last_mut().expect("a byte") = 1;
    let mut other_signature = sign("singularity");
    other_signature[0].signature[0] ^= 1;
    let long = vec![
        issue(TOOLS, DAILY, "singularity", May::Sign, 1),
        issue(TOOLS, TOOLS, "singularity", May::Certify, 2),
        issue(TOOLS, TOOLS, "singularity", May::Certify, 3),
        issue(ROOT, TOOLS, "singularity", May::Certify, 4),
    ];
    let mut unreadable = by(DAILY, sign("singularity"));
    let place = unreadable.windows(8).position(|window| window == b"SINGCRT2").expect("it has a certificate");
    unreadable[place] = b'X';
    vec![
        case("a stranger's signature", Code::UntrustedKey, by(STRANGER, Vec::new())),
        in_trust("a key that is none", Code::BadKey, bad_key, &|trust| {
            trust.roots.push(Root { key: not_a_key, publishers: "*".into(), systems: false, rights: Rights::NATIVE });
        }),
        case("no signature", Code::Unsigned, unsigned),
        case("half a signature", Code::HalfSigned, half_signed),
        case(
            "a stranger's certificate",
            Code::UntrustedIssuer,
            by(DAILY, vec![issue(STRANGER, DAILY, "singularity", May::Sign, 9)]),
        ),
        case("a certificate for another publisher", Code::NotItsPublisher, by(DAILY, sign("singular-tools"))),
        case(
            "a certificate that is wider than its issuer",
            Code::WiderThanIssuer,
            by(
                DAILY,
                vec![
                    issue(TOOLS, DAILY, "singularity", May::Sign, 6),
                    issue(ROOT, TOOLS, "singular-*", May::Certify, 1),
                ],
            ),
        ),
        case(
            "a certifier that signs",
            Code::MayNotSign,
            by(TOOLS, vec![issue(ROOT, TOOLS, "singularity", May::Certify, 7)]),
        ),
        case(
            "a signer that certifies",
            Code::MayNotCertify,
            by(
                DAILY,
                vec![
                    issue(TOOLS, DAILY, "singularity", May::Sign, 8),
                    issue(ROOT, TOOLS, "singularity", May::Sign, 11),
                ],
            ),
        ),
        case("native code without the right", Code::NotNative, by(DAILY, vec![scripts_only(ROOT, DAILY, May::Sign)])),
        case(
            "a right that the issuer lacks",
            Code::MoreRightsThanIssuer,
            by(DAILY, vec![issue(TOOLS, DAILY, "singularity", May::Sign, 12), scripts_only(ROOT, TOOLS, May::Certify)]),
        ),
        case("certificates in disorder", Code::BrokenChain, by(STRANGER, sign("singularity"))),
        case("many certificates", Code::ChainTooLong, by(DAILY, long)),
        case("a certificate of another kind", Code::BadCertificate, unreadable),
        case("a changed certificate", Code::CertificateSignature, by(DAILY, other_signature)),
        in_trust("a revoked key", Code::RevokedKey, by(DAILY, sign("singularity")), &|trust| {
            trust.revoked.push(Revoked::Key(public(DAILY)));
        }),
        in_trust("a revoked certificate", Code::RevokedSerial, by(DAILY, sign("singularity")), &|trust| {
            trust.revoked.push(Revoked::Serial(5));
        }),
    ]
}

/// A package with an unchecked image.
fn with_image(deed: Deed, image: &[u8]) -> Vec<u8> {
    package_build::build_unchecked(deed.good(), b"", image, &Signer::root(key())).expect("it is short")
}

/// `mov rax, rsp; or rax, 0x7fffff; mov rax, [rax - 0x1ff]; mov esi, 0x1234; call [rax + 0x10]; ret`: a send of a message
/// that no contract has.
const SENDS: &[u8] = &[
    0x48, 0x89, 0xe0, 0x48, 0x0d, 0xff, 0xff, 0x7f, 0, 0x48, 0x8b, 0x80, 1, 0xfe, 0xff, 0xff, 0xbe, 0x34, 0x12, 0, 0,
    0xff, 0x50, 0x10, 0xc3,
];

/// Images of which the manifest says what the code does not keep.
fn analyses(deed: Deed) -> Vec<Case> {
    let with = |code: &[u8], is_named: bool, spoil: &dyn Fn(&mut Manifest)| {
        let mut manifest = deed.good();
        spoil(&mut manifest);
        let mut elf = image(&manifest);
        elf.set_code(code);
        if is_named {
            elf.symbols = vec![Symbol { name: "main", address: CODE, size: code.len() as u64, kind: 2 }];
        }
        package_build::build_unchecked(manifest, b"", &elf.write(), &Signer::root(key())).expect("it is short")
    };
    // Bytes enough for the relocation of the good image, and a trap.
    let mut traps = [0x90; 16];
    traps[14..].copy_from_slice(&[0x0f, 0x0b]);
    let no_panic = |manifest: &mut Manifest| manifest.assertions.no_panic = vec!["main".into()];
    vec![
        case("a panic that it denies", Code::AssertionFails, with(&traps, true, &no_panic)),
        case("assertions without symbols", Code::AssertionFails, with(&traps, false, &no_panic)),
        case("a message of no contract", Code::UndeclaredMessage, with(SENDS, true, &|_| ())),
    ]
}

fn images(deed: Deed) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut bad = |name: &'static str, code: Code, spoil: &dyn Fn(&mut Elf)| {
        let mut elf = image(&deed.good());
        spoil(&mut elf);
        cases.push(case(name, code, with_image(deed, &elf.write())));
    };
    bad("an image for another machine", Code::WrongMachine, &|elf| elf.machine = 183);
    bad("an image for one place", Code::NotPie, &|elf| elf.kind = 2);
    bad("a dynamic loader", Code::Interpreter, &|elf| elf.segments.push(alias(INTERPRETER, 0, 8)));
    bad("a thread's own statics", Code::ThreadLocal, &|elf| elf.segments.push(alias(THREAD_LOCAL, DATA, 8)));
    bad("a shared library", Code::ForeignSymbol, &|elf| elf.set_dynamic(&[(1, 1)]));
    bad("a constructor", Code::DynamicFeature, &|elf| elf.set_dynamic(&[(12, 0)]));
    bad("code that can be written", Code::WritableCode, &|elf| elf.segments[1].flags |= WRITE);
    bad("a writable static", Code::WritableData, &|elf| elf.segments.push(load(READ | WRITE, 0x3000, vec![1; 16])));
    bad("a zeroed static", Code::ZeroedData, &|elf| elf.segments[2].memory += 64);
    bad("segments in one page", Code::SegmentsOverlap, &|elf| elf.segments.push(load(READ, DATA + 0x800, vec![1; 8])));
    bad("a segment without end", Code::ImageTooLarge, &|elf| elf.segments[0].memory = u64::MAX - 8);
    bad("no code", Code::NoCode, &|elf| {
        elf.segments[1].flags = READ;
        elf.sections.remove(0);
    });
    bad("a start in the middle of an instruction", Code::EntryOutsideCode, &|elf| elf.entry += 1);
    let relocated = |elf: &mut Elf, entry: Vec<u8>| {
        let sections = elf.sections.clone();
        *elf = Elf { sections, ..Elf::with_relocations(entry) };
    };
    bad("an absolute relocation", Code::RelocationKind, &|elf| relocated(elf, elf::relocation(DATA, 1, 0)));
    bad("a relocation of code", Code::RelocationTarget, &|elf| relocated(elf, elf::relocation(CODE, 8, 0)));
    bad("a relocation to elsewhere", Code::RelocationAddend, &|elf| relocated(elf, elf::relocation(DATA, 8, -1)));
    bad("half a relocation", Code::ElfMalformed, &|elf| relocated(elf, vec![0; 23]));
    bad("a system call", Code::ForbiddenInstruction, &|elf| elf.set_code(&[0x90, 0x0F, 0x05, 0xC3]));
    bad("bytes that are no instruction", Code::UnknownInstruction, &|elf| elf.set_code(&[0x06, 0xC3]));
    bad("the kernel's memory", Code::SegmentOverride, &|elf| {
        elf.set_code(&[0x65, 0x48, 0x8B, 0x04, 0x25, 0, 0, 0, 0, 0xC3]);
    });
    bad("a stack that grows past its guard", Code::StackStep, &|elf| {
        elf.set_code(&[0x48, 0x81, 0xEC, 0x01, 0x10, 0, 0, 0xC3]);
    });
    bad("a branch to elsewhere", Code::BranchTarget, &|elf| elf.set_code(&[0xE9, 0x00, 0x10, 0, 0, 0xC3]));
    bad("a branch into an instruction", Code::BranchTarget, &|elf| {
        elf.set_code(&[0xEB, 0x01, 0xB8, 0x0F, 0x05, 0, 0, 0xC3]);
    });
    bad("code in no section", Code::StrayCode, &|elf| {
        elf.set_code(&[0xC3, 0x0F, 0x05, 0xC3]);
        elf.sections[0].size = 1;
    });
    bad("a damaged list of contracts", Code::ContractRecords, &|elf| elf.sections[1].bytes[0] = b'X');
    bad("a contract that is not listed", Code::UndeclaredContract, &|elf| {
        let secret = elf::contract_record("Secret", sha256(b"secret"));
        elf.sections[1].size += secret.len() as u64;
        elf.sections[1].bytes.extend_from_slice(&secret);
    });
    bad("another version of a listed contract", Code::ContractFingerprint, &|elf| elf.sections[1].bytes[16] ^= 1);
    let mut outside = image(&deed.good()).write();
    outside[64 + 56 + 8..64 + 56 + 16].copy_from_slice(&0x10_0000u64.to_le_bytes());
    cases.push(case("a segment outside the file", Code::SegmentOutsideFile, with_image(deed, &outside)));
    cases.push(case("a script as an image", Code::NotElf, with_image(deed, b"#!/bin/sh")));
    let script = Manifest { code: ProgramCode::Script { text: "echo hello".into() }, ..deed.good() };
    let both = package_build::build_unchecked(script, b"", b"image", &Signer::root(key())).expect("it is short");
    cases.push(case("a script with an image", Code::ScriptWithImage, both));
    cases.push(allowed(deed));
    cases.extend(modules(deed));
    cases
}

/// WebAssembly programs, in a system that has the template `player` or not.
fn modules(deed: Deed) -> Vec<Case> {
    let program = Manifest {
        code: ProgramCode::Wasm { digest: [0; 32], template: "player".into(), bounds: Bounds::Guarded },
        ..deed.good()
    };
    let host = Manifest { name: "player".into(), code: ProgramCode::Template { digest: [0; 32] }, ..deed.good() };
    let mut other = host.clone();
    other.endpoints.iter_mut().for_each(|slot| slot.optional = !slot.optional);
    let with = |name, code, host: Option<&Manifest>, package: Vec<u8>| {
        let mut system = installed();
        if let Some(host) = host {
            system.programs.push(install::Program { manifest: host.clone(), key: key().public() });
            system.system.installed.push("player".into());
        }
        Case { name, code, package, system, at_boot: false }
    };
    let module = packed(&program);
    let delivered = package::compiled(&module, &image(&program).write()).expect("it is short");
    let text = package_build::build_unchecked(program.clone(), b"", b"(module)", &Signer::root(key()));
    vec![
        with("text in place of a module", Code::NotAModule, Some(&host), text.expect("it is short")),
        with("a module that was not compiled", Code::NotCompiled, Some(&host), module),
        with("a module without its template", Code::NoTemplate, None, delivered.clone()),
        with("a module of another template", Code::TemplateManifest, Some(&other), delivered.clone()),
        with("an image without code of a module", Code::NotTheTemplate, Some(&host), delivered),
    ]
}

/// A publisher that the policy refuses.
fn allowed(deed: Deed) -> Case {
    let mut system = installed();
    let others = vec!["acme".to_string()];
    // Installed programs must be accepted too, so this one has another name.
    system.system.trust.policy = Policy::AllowPublisher([others, vec!["singularity".into()]].concat());
    let publisher = "stranger".to_string();
    let package = packed(&Manifest { publisher, ..deed.good() });
    Case { name: "a publisher that is not taken", code: Code::PublisherNotAllowed, package, system, at_boot: false }
}
