//! Test packages, from small ELF files and a manifest.
#![allow(dead_code)]

#[path = "../../../image-check/tests/common/elf.rs"]
pub mod elf;

use abi::{Automaton, Direction, MessageShape, NO_TRANSITION, StateRow};
use manifest_model::{
    Category, Code, ContractSide, ContractUse, EndpointSlot, Manifest, Parameter, ParameterKind, Side, Source, Trust,
    Value,
};
use package::Package;
use package_build::{SecretKey, Signer};
use package_check::{PackageError, sha256};

/// `in message Say(); out message Said(); state READY: one { Say? -> Said! -> READY; }` and a state OVER.
pub fn automaton(name: &str) -> Automaton {
    let message = |name: &str, direction| MessageShape {
        name: name.into(),
        direction,
        scalar_words: 0,
        ranges: Vec::new(),
        blocks: Vec::new(),
        endpoints: Vec::new(),
    };
    let state = |name: &str, next: [u16; 2]| StateRow { name: name.into(), next: next.to_vec() };
    Automaton {
        name: name.into(),
        queue_to_importer: 1,
        queue_to_exporter: 1,
        messages: vec![message("Say", Direction::ToExporter), message("Said", Direction::ToImporter)],
        states: vec![
            state("READY", [1, NO_TRANSITION]),
            state("READY after Say", [NO_TRANSITION, 0]),
            state("OVER", [NO_TRANSITION, NO_TRANSITION]),
        ],
    }
}

pub fn contract(name: &str) -> ContractUse {
    let automaton = automaton(name).encode();
    ContractUse {
        name: name.into(),
        side: ContractSide::Both,
        fingerprint: sha256(&automaton),
        automaton,
        waits_for: None,
    }
}

pub fn fingerprint(name: &str) -> [u8; 32] {
    sha256(&automaton(name).encode())
}

pub fn manifest() -> Manifest {
    let path = Parameter { default: Some(Value::Text("/".into())), ..Parameter::plain("path", ParameterKind::Text) };
    Manifest {
        summary: "writes its arguments".into(),
        contracts: vec![contract("Echo")],
        endpoints: vec![EndpointSlot {
            name: "echo".into(),
            contract: 0,
            side: Side::Importer,
            state: 0,
            state_name: "READY".into(),
            source: Source::Path("/service/echo".into()),
            optional: false,
        }],
        parameters: vec![path],
        ..Manifest::plain("echo", "singularity", Category::Console, Code::Image { digest: [0; 32] })
    }
}

/// The bill of materials of the good package.
pub const BILL: &[u8] = b"toolchain = 'none'\n";

pub fn key() -> SecretKey {
    SecretKey::from_bytes(&[7; 32])
}

pub fn signer() -> Signer {
    Signer::root(key())
}

/// Trust in the test key.
pub fn trust() -> Trust {
    Trust::in_key(key().public())
}

/// A package that passes all checks.
pub fn good_package() -> Vec<u8> {
    package_build::build_package(manifest(), BILL, &elf::Elf::good().write(), &signer())
        .expect("the good package is good")
}

/// Parses and verifies, trusting the test key.
pub fn verify(bytes: &[u8]) -> Result<(), PackageError> {
    package_check::verify(&Package::parse(bytes)?, &trust()).map(|_| ())
}
