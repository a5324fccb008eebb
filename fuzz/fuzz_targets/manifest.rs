//! Manifests as people write them: a program's and a system's. What is said about them has a place in the text.
#![no_main]

use manifest::{Colours, SystemFile};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = core::str::from_utf8(bytes) else { return };
    match manifest::program("manifest.toml", text, None) {
        Ok(program) => {
            let bytes = program.manifest.encode();
            assert_eq!(package::Manifest::decode(&bytes).as_ref(), Ok(&program.manifest));
            let _ = install::manifest_findings(&program.manifest);
            let file = SystemFile { file: "system.toml".into(), text: text.into() };
            let _ = manifest::system(file, &|_| None, &[&program.manifest]);
        }
        Err(diagnostics) => assert!(!diagnostics.render(Colours::Never).is_empty()),
    }
    let file = SystemFile { file: "system.toml".into(), text: text.into() };
    if let Err(diagnostics) = manifest::system(file, &|_| None, &[]) {
        assert!(!diagnostics.render(Colours::Never).is_empty());
    }
});
