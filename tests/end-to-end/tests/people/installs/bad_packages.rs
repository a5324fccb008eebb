//! Packages with one fault each, and the expected report of the running system.

use end_to_end::key;
use manifest_model::{
    AddressRange, Category, Code, ContractSide, DeviceNeed, Manifest, Parameter, ParameterKind, Permission, Provide,
    Requirement, Restart, Rights, Side, Source, Value, Version,
};
use package::May;
use package_build::{Grant, SecretKey, Signer};
use package_check::sha256;

use super::{greeter, packed, program};

test_needs::needs!(E2fsprogs);

/// A package and the command for it.
pub struct Bad {
    /// The fault, also the file's name.
    pub fault: &'static str,
    /// `install` or `upgrade`.
    pub command: &'static str,
    /// The file.
    pub bytes: Vec<u8>,
    /// Expected error codes.
    pub codes: &'static [&'static str],
}

/// The whole table, for a system that has `greeter` 1.0.0 installed.
pub fn table() -> Vec<Bad> {
    let tables = [files(), signers(), names(), versions(), manifests(), parameters(), endpoints(), devices(), needs()];
    tables.into_iter().flatten().collect()
}

fn bad(fault: &'static str, codes: &'static [&'static str], command: &'static str, bytes: Vec<u8>) -> Bad {
    Bad { fault, command, bytes, codes }
}

/// A faulty new script.
fn script(fault: &'static str, codes: &'static [&'static str], spoil: impl FnOnce(&mut Manifest)) -> Bad {
    let mut manifest = Manifest { name: "extra".into(), ..greeter("1.0.0") };
    spoil(&mut manifest);
    bad(fault, codes, "install", packed(manifest, key()))
}

/// A faulty upgrade of the installed script.
fn newer(fault: &'static str, codes: &'static [&'static str], spoil: impl FnOnce(&mut Manifest)) -> Bad {
    let mut manifest = greeter("1.1.0");
    spoil(&mut manifest);
    bad(fault, codes, "upgrade", packed(manifest, key()))
}

/// A faulty new compiled program.
fn compiled(
    fault: &'static str,
    codes: &'static [&'static str],
    spoil: impl FnOnce(&mut Manifest, &mut Vec<u8>),
) -> Bad {
    bad(
        fault,
        codes,
        "install",
        program("cat", |manifest, image| {
            manifest.name = "extra".into();
            spoil(manifest, image);
        }),
    )
}

fn files() -> Vec<Bad> {
    let good = || packed(greeter("1.1.0"), key());
    let changed = |spoil: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good();
        spoil(&mut bytes);
        bytes
    };
    let text = good().windows(4).position(|window| window == b"this").expect("the script");
    let manifest = good().windows(4).position(|window| window == b"SGM3").expect("the manifest");
    let mut other_image = program("cat", |manifest, _| manifest.name = "extra".into());
    let image = other_image.windows(4).position(|window| window == b"\x7FELF").expect("the image");
    other_image[image + 200] ^= 1;
    vec![
        bad("nothing", &["I223"], "upgrade", Vec::new()),
        bad("a-text", &["I223"], "upgrade", b"#!/bin/sh\necho this is no package\n".to_vec()),
        bad("an-older-form", &["I223"], "upgrade", changed(&|bytes| bytes[7] = b'2')),
        bad("half", &["I223"], "upgrade", changed(&|bytes| bytes.truncate(bytes.len() / 2))),
        bad("a-byte-less", &["I223"], "upgrade", changed(&|bytes| bytes.truncate(bytes.len() - 1))),
        bad("a-byte-more", &["I223"], "upgrade", changed(&|bytes| bytes.push(0))),
        bad("a-manifest-of-another-form", &["I223"], "upgrade", changed(&|bytes| bytes[manifest + 3] = b'9')),
        bad("a-changed-script", &["I223"], "upgrade", changed(&|bytes| bytes[text] = b'T')),
        bad("a-changed-signature", &["I223"], "upgrade", changed(&|bytes| *bytes.last_mut().expect("a byte") ^= 1)),
        bad("a-changed-image", &["I223"], "install", other_image),
        compiled("no-elf", &["I223"], |_, image| image[0] = 0),
        compiled("an-image-for-a-loader", &["I223"], |_, image| image[16] = 2),
        compiled("an-image-for-another-machine", &["I223"], |_, image| image[18] = 0xb7),
        compiled("an-image-cut-short", &["I223"], |_, image| image.truncate(image.len() / 2)),
        script("another-abi", &["I060"], |manifest| manifest.abi += 1),
    ]
}

fn signers() -> Vec<Bad> {
    let signed =
        |signer: Signer| package_build::build_unchecked(greeter("1.1.0"), b"", b"", &signer).expect("a package");
    let secret = |byte: u8| SecretKey::from_bytes(&[byte; 32]);
    let by = |publishers: &str, may: May, issuer: &SecretKey| {
        let grant = Grant { publishers, may, rights: Rights::NATIVE };
        let certificate =
            package_build::issue_certificate(issuer, secret(8).public(), grant, 77).expect("a certificate");
        signed(Signer { key: secret(8), chain: vec![certificate] })
    };
    let unsigned = package_build::build_unsigned(greeter("1.1.0"), b"", b"").expect("a package");
    let mut half_signed = unsigned.clone();
    *half_signed.last_mut().expect("a byte") = 1;
    vec![
        bad("a-strangers", &["I223"], "upgrade", signed(Signer::root(secret(7)))),
        bad("nobodys", &["I110"], "upgrade", unsigned),
        bad("half-signed", &["I110"], "upgrade", half_signed),
        bad("a-certificate-for-others", &["I223"], "upgrade", by("acme", May::Sign, &key())),
        bad("a-certificate-to-certify", &["I223"], "upgrade", by("singularity", May::Certify, &key())),
        bad("a-strangers-certificate", &["I223"], "upgrade", by("singularity", May::Sign, &secret(7))),
    ]
}

fn names() -> Vec<Bad> {
    let of = |publisher: &'static str| move |manifest: &mut Manifest| manifest.publisher = publisher.into();
    vec![
        script("a-digit-for-a-letter", &["I108"], of("singu1arity")),
        script("two-letters-swapped", &["I108"], of("signularity")),
        script("a-letter-less", &["I108"], of("singularty")),
        script("a-hyphen-more", &["I108"], of("singular-ity")),
        script("a-program-that-looks-like-another", &["I109"], |manifest| {
            (manifest.name, manifest.publisher) = ("she1l".into(), "somebody".into());
        }),
        script("a-name-in-capitals", &["I101"], |manifest| manifest.name = "Extra".into()),
        script("a-name-that-leaves-the-store", &["I101"], |manifest| manifest.name = "../extra".into()),
        script("no-name", &["I101"], |manifest| manifest.name.clear()),
        script("a-publisher-with-a-dot", &["I102"], of("some.body")),
        script("a-name-that-is-taken", &["I103"], |manifest| manifest.name = "cat".into()),
    ]
}

fn versions() -> Vec<Bad> {
    vec![
        newer("nothing-to-upgrade", &["I104"], |manifest| manifest.name = "extra".into()),
        newer("an-older-version", &["I105"], |manifest| manifest.version.major = 0),
        newer("the-same-version", &["I106"], |manifest| {
            manifest.version.minor = 0;
            manifest.summary = "is another".into();
        }),
        newer("another-publishers", &["I107"], |manifest| manifest.publisher = "somebody".into()),
        newer("a-permission-more", &["I200"], |manifest| manifest.permissions = vec![Permission::Power]),
        newer("a-device-more", &["I200"], |manifest| manifest.devices = vec![DeviceNeed::named("gpu0")]),
        newer("children", &["I200"], |manifest| manifest.quota.children = 4),
        // The service manager uses the manifest from boot.
        bad(
            "a-service-with-another-parameter",
            &["I222"],
            "upgrade",
            program("answer", |manifest, _| {
                manifest.version.major += 1;
                manifest.parameters.push(parameter("another"));
            }),
        ),
    ]
}

fn manifests() -> Vec<Bad> {
    vec![
        script("a-permission-twice", &["I199"], |manifest| {
            manifest.permissions = vec![Permission::Power, Permission::Power];
        }),
        script("a-long-list", &["I201"], |manifest| {
            manifest.devices = (0..257).map(|number| DeviceNeed::named(&format!("d{number}"))).collect();
        }),
        script("no-summary", &["I181"], |manifest| manifest.summary.clear()),
        script("a-summary-that-moves-the-cursor", &["I180"], |manifest| manifest.summary = "a\u{1b}[2Jb".into()),
        script("no-commands", &["I182"], |manifest| manifest.code = Code::Script { text: " \n".into() }),
        script("a-script-that-rings", &["I180"], |manifest| manifest.code = Code::Script { text: "echo \u{7}".into() }),
        script("no-memory", &["I190"], |manifest| manifest.quota.memory_kib = 0),
        script("no-thread", &["I190"], |manifest| manifest.quota.threads = 0),
        compiled("handles-for-no-endpoint", &["I191"], |manifest, _| manifest.quota.handles = 1),
        script("a-wait-of-days", &["I195"], |manifest| manifest.supervision.backoff_max_ms = u32::MAX),
        script("waits-that-shrink", &["I196"], |manifest| {
            (manifest.supervision.backoff_ms, manifest.supervision.backoff_max_ms) = (500, 100);
        }),
        script("no-restart-at-all", &["I197"], |manifest| manifest.supervision.limit = Some(0)),
        script("a-command-that-comes-again", &["I198"], |manifest| {
            (manifest.category, manifest.supervision.restart) = (Category::Console, Restart::Always);
        }),
    ]
}

fn parameter(name: &str) -> Parameter {
    Parameter { help: "says something".into(), ..Parameter::plain(name, ParameterKind::Text) }
}

fn parameters() -> Vec<Bad> {
    let with = |fault, codes, parameters: Vec<Parameter>| {
        script(fault, codes, move |manifest| manifest.parameters = parameters)
    };
    let placed = |name: &str, position| Parameter { position: Some(position), ..parameter(name) };
    let flagged = |name: &str, flag: &str| Parameter { flag: Some(flag.into()), ..parameter(name) };
    let text = || Some(Value::Text("x".into()));
    vec![
        with("a-parameter-with-blanks", &["I170"], vec![parameter("two words")]),
        with("a-parameter-twice", &["I171"], vec![parameter("same"), parameter("same")]),
        with(
            "a-text-for-a-number",
            &["I173"],
            vec![Parameter { kind: ParameterKind::Integer, default: text(), ..parameter("number") }],
        ),
        with(
            "a-default-that-is-never-used",
            &["I174"],
            vec![Parameter { default: text(), required: true, ..parameter("text") }],
        ),
        with("a-position-left-out", &["I175"], vec![placed("first", 0), placed("third", 2)]),
        with(
            "words-behind-all-words",
            &["I176"],
            vec![Parameter { repeated: true, ..placed("all", 0) }, placed("last", 1)],
        ),
        with(
            "a-must-behind-a-may",
            &["I177"],
            vec![placed("may", 0), Parameter { required: true, ..placed("must", 1) }],
        ),
        with("a-flag-that-cannot-be-typed", &["I178"], vec![flagged("flagged", "--a b")]),
        with("a-flag-with-two-meanings", &["I179"], vec![flagged("verbose", "-v"), flagged("version", "-v")]),
    ]
}

fn endpoints() -> Vec<Bad> {
    vec![
        compiled("a-parameter-called-as-an-endpoint", &["I172"], |manifest, _| {
            let name = manifest.endpoints[0].name.clone();
            manifest.parameters = vec![parameter(&name)];
        }),
        compiled("a-contract-twice", &["I124"], |manifest, _| {
            let contract = manifest.contracts[0].clone();
            manifest.contracts.push(contract);
        }),
        compiled("a-contract-that-is-none", &["I122"], |manifest, _| {
            let contract = &mut manifest.contracts[0];
            contract.automaton.pop();
            contract.fingerprint = sha256(&contract.automaton);
        }),
        compiled("another-fingerprint", &["I126"], |manifest, _| manifest.contracts[0].fingerprint[0] ^= 1),
        compiled("an-endpoint-of-no-contract", &["I130"], |manifest, _| manifest.endpoints[0].contract = 77),
        compiled("a-state-that-there-is-not", &["I132"], |manifest, _| manifest.endpoints[0].state = 999),
        compiled("a-path-from-nowhere", &["I133"], |manifest, _| {
            manifest.endpoints[0].source = Source::Path("fs".into());
        }),
        compiled("two-endpoints-of-one-name", &["I134"], |manifest, _| {
            let slot = manifest.endpoints[0].clone();
            manifest.endpoints.push(slot);
        }),
        compiled("a-contract-that-the-image-uses-and-nobody-lists", &["I223"], |manifest, _| {
            // Contracts referenced by endpoints keep their numbers.
            let used = |number: usize| manifest.endpoints.iter().any(|slot| usize::from(slot.contract) == number);
            let last = (0..manifest.contracts.len()).rev().find(|&number| !used(number)).expect("one is not given");
            for slot in &mut manifest.endpoints {
                slot.contract -= u16::from(usize::from(slot.contract) > last);
            }
            manifest.contracts.remove(last);
        }),
        compiled("an-end-that-is-not-handled", &["I131"], |manifest, _| {
            let number = manifest.contracts.iter().position(|contract| contract.side == ContractSide::Import);
            let number = number.expect("it imports something");
            let state = manifest.endpoints[0].state;
            let mut slot = manifest.endpoints[0].clone();
            (slot.name, slot.contract, slot.state) = ("other".into(), number as u16, state);
            (slot.side, slot.source) = (Side::Exporter, Source::Parent);
            manifest.endpoints.push(slot);
        }),
    ]
}

fn devices() -> Vec<Bad> {
    let fixed = |ports: Vec<AddressRange>| vec![DeviceNeed { name: "card".into(), ports, ..DeviceNeed::default() }];
    let range = |base, bytes| AddressRange { base, bytes };
    vec![
        script("a-device-in-capitals", &["I140"], |manifest| manifest.devices = vec![DeviceNeed::named("Disk")]),
        script("a-device-twice", &["I141"], |manifest| {
            manifest.devices = vec![DeviceNeed::named("disk9"), DeviceNeed::named("disk9")];
        }),
        script("ports-beyond-the-last", &["I142"], |manifest| manifest.devices = fixed(vec![range(0xfffc, 8)])),
        script("the-same-ports-twice", &["I147"], |manifest| {
            manifest.devices = fixed(vec![range(0x60, 8), range(0x64, 8)]);
        }),
        bad(
            "a-path-without-clients",
            &["I153"],
            "install",
            program("answer", |manifest, _| {
                manifest.name = "extra".into();
                manifest.endpoints.clear();
            }),
        ),
        bad(
            "a-path-from-the-middle",
            &["I150"],
            "install",
            program("answer", |manifest, _| {
                manifest.name = "extra".into();
                manifest.provides[0].path = "service/extra".into();
            }),
        ),
        bad(
            "a-path-twice",
            &["I151"],
            "install",
            program("answer", |manifest, _| {
                manifest.name = "extra".into();
                let provide = Provide { ..manifest.provides[0].clone() };
                manifest.provides.push(provide);
                let mut slot = manifest.endpoints[0].clone();
                slot.name = "others".into();
                manifest.endpoints.push(slot);
            }),
        ),
    ]
}

fn needs() -> Vec<Bad> {
    let least = |major| Version { major, minor: 0, patch: 0 };
    let requires = |program: &str, major| Requirement { program: program.into(), least: least(major) };
    vec![
        script("what-it-requires-is-not-there", &["I160"], |manifest| manifest.requires = vec![requires("python", 3)]),
        script("what-it-requires-is-too-old", &["I161"], |manifest| manifest.requires = vec![requires("greeter", 9)]),
        script("it-requires-itself", &["I163"], |manifest| manifest.requires = vec![requires("extra", 1)]),
        script("it-requires-one-twice", &["I164"], |manifest| {
            manifest.requires = vec![requires("greeter", 1), requires("greeter", 1)];
        }),
        newer("what-requires-it-is-what-it-requires", &["I163"], |manifest| {
            manifest.requires = vec![requires("greeter", 1)];
        }),
    ]
}
