//! A package file: as bytes, as a rightly signed image, and as a rightly signed manifest that is to be installed.
#![no_main]

use install::{Installed, Request};
use package::{Category, Code, Image, Manifest, Package, SecretKey, Signer, SystemManifest, Trust};

fn key() -> SecretKey {
    SecretKey::from_bytes(&[7; 32])
}

fn manifest() -> Manifest {
    Manifest::plain("fuzzed", "singularity", Category::Test, Code::Image { digest: [0; 32] })
}

fn system() -> Installed {
    let system = SystemManifest {
        name: "fuzzed".into(),
        root: "root".into(),
        primary: None,
        instances: Vec::new(),
        installed: Vec::new(),
        binds: Vec::new(),
        denies: Vec::new(),
        trust: Trust::in_key(key().public()),
    };
    Installed { system, programs: Vec::new() }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((kind, rest)) = bytes.split_first() else { return };
    let signer = Signer::root(key());
    match kind % 3 {
        0 => {
            if let Ok(package) = Package::parse(rest) {
                let _ = package.verify(&Trust::in_key(package.key));
            }
        }
        1 => {
            // What passes by itself passes in a package too.
            let alone = Image::check(rest).map(|image| image.contracts.is_empty());
            let Ok(bytes) = Package::build_unchecked(manifest(), b"", rest, &signer) else { return };
            let packed = Package::parse(&bytes).and_then(|package| package.verify(&system().system.trust).map(|_| ()));
            assert!(alone != Ok(true) || packed.is_ok(), "{packed:?}");
        }
        _ => {
            let Ok(manifest) = Manifest::decode(rest) else { return };
            assert_eq!(Manifest::decode(&manifest.encode()).as_ref(), Ok(&manifest));
            let script = matches!(manifest.code, Code::Script { .. });
            let image: &[u8] = if script { b"" } else { rest };
            let Ok(bytes) = Package::build_unchecked(manifest, b"", image, &signer) else { return };
            for at_boot in [false, true] {
                let request = Request::Install { package: &bytes, at_boot, allow: &[] };
                let (report, after) = install::examine(&system(), &request);
                assert_eq!(report.is_accepted(), after.is_some());
                // Whoever reads it on a terminal sees lines, and nothing moves the cursor.
                assert!(!report.to_string().contains(|letter: char| letter.is_control() && letter != '\n'), "{report}");
            }
        }
    }
});
