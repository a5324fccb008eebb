//! Body of the fuzz target `manifest`: its bytes are the source of a program's manifest and of a system's. Every
//! diagnostic has a place in the text.

use std::sync::OnceLock;

use manifest::{Colours, SystemFile};
use manifest_model::Manifest;

use crate::known::Known;

/// Programs that a system manifest may name.
const PROGRAMS: [&str; 6] = [
    include_str!("../fixtures/programs/disk.toml"),
    include_str!("../fixtures/programs/files.toml"),
    include_str!("../fixtures/programs/left.toml"),
    include_str!("../fixtures/programs/right.toml"),
    include_str!("../fixtures/programs/root.toml"),
    include_str!("../fixtures/programs/serial.toml"),
];

/// Parsed manifests of these programs.
pub fn programs() -> &'static [Manifest] {
    static READ: OnceLock<Vec<Manifest>> = OnceLock::new();
    READ.get_or_init(|| {
        let read = |text: &str| manifest::program("known.toml", text, Some(&Known));
        PROGRAMS.map(|text| read(text).unwrap_or_else(|errors| panic!("{errors}")).manifest).into()
    })
}

/// One trial; a panic is a finding.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut programs: Vec<&Manifest> = programs().iter().collect();
    let read = manifest::program("manifest.toml", text, Some(&Known));
    match &read {
        Ok(program) => {
            let bytes = program.manifest.encode();
            assert_eq!(Manifest::decode(&bytes).as_ref(), Ok(&program.manifest));
            // An installer applies other checks than the reader, which does not see the rest of the system.
            let _ = install::manifest_findings(&program.manifest);
            programs.push(&program.manifest);
        }
        Err(diagnostics) => check(&diagnostics.render(Colours::Never)),
    }
    let file = SystemFile { file: "system.toml".into(), text: text.into() };
    // The text is its own base, under any name.
    let base = |_: &str| Some(file.clone());
    match manifest::system(file.clone(), &base, &programs) {
        Ok(system) => assert_eq!(manifest_model::SystemManifest::decode(&system.encode()).as_ref(), Ok(&system)),
        Err(diagnostics) => check(&diagnostics.render(Colours::Never)),
    }
}

/// Diagnostics printed on a terminal consist of lines, without control characters.
fn check(rendered: &str) {
    assert!(!rendered.is_empty());
    assert!(!rendered.contains(|letter: char| letter.is_control() && letter != '\n'), "{rendered:?}");
}
