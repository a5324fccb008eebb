//! Runs the fuzz targets `package` and `system_image` without a fuzzer.
//!
//! `UPDATE_GOLDEN=1 cargo test -p install --test fuzzed` rewrites their seed inputs.

#[path = "../common/mod.rs"]
mod common;
mod package_file;
#[path = "../../../../fuzz/replay.rs"]
mod replay;
mod system_file;

use std::path::{Path, PathBuf};

use common::{elf::Elf, image, installed, key, signed};
use image_check::Image;
use manifest_model::{Category, Code, Manifest, SystemManifest, Trust};
use package::Package;
use package_build::Signer;

/// Corpus of a fuzzer, including its findings.
fn inputs(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzzed/inputs").join(target)
}

/// Prefixes bytes with the number of their kind.
fn taken_as(kind: u8, bytes: Vec<u8>) -> Vec<u8> {
    [vec![kind], bytes].concat()
}

fn script() -> Manifest {
    Manifest::plain("greet", "singularity", Category::Console, Code::Script { text: "echo a\n".into() })
}

fn small(name: &str) -> Manifest {
    installed().manifest(name).expect("it is there").clone()
}

fn package_seeds() -> Vec<(&'static str, Vec<u8>)> {
    let signer = Signer::root(key());
    let script = package_build::build_package(script(), b"", b"", &signer).expect("a package");
    vec![
        ("file-script", taken_as(package_file::AS_FILE, script)),
        ("file-image", taken_as(package_file::AS_FILE, signed(&small("cat")))),
        ("image", taken_as(package_file::AS_IMAGE, Elf::good().write())),
        ("manifest-command", taken_as(package_file::AS_MANIFEST, small("cat").encode())),
        ("manifest-driver", taken_as(package_file::AS_MANIFEST, small("console").encode())),
        ("manifest-script", taken_as(package_file::AS_MANIFEST, self::script().encode())),
        ("manifest-shell", taken_as(package_file::AS_MANIFEST, small("shell").encode())),
    ]
}

/// A system of one program, which is a script: the smallest that can be signed.
fn min_system() -> Vec<u8> {
    let system = SystemManifest {
        name: "least".into(),
        root: "greet".into(),
        primary: None,
        instances: Vec::new(),
        installed: Vec::new(),
        binds: Vec::new(),
        denies: Vec::new(),
        domains: Vec::new(),
        trust: Trust::in_key(key().public()),
    };
    package_build::build_system(&system, &[signed(&script())], &key()).expect("a system image")
}

fn system_seeds() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("file", taken_as(system_file::AS_FILE, min_system())),
        ("manifest", taken_as(system_file::AS_MANIFEST, common::system().encode())),
    ]
}

#[test]
fn damaged_packages_do_no_harm() {
    replay::replay(&inputs("package"), 150, package_file::run);
}

#[test]
fn damaged_system_images_do_no_harm() {
    replay::replay(&inputs("system_image"), 300, system_file::run);
}

/// Otherwise a fuzzer covers little.
#[test]
fn the_seeds_are_good_packages_and_systems() {
    replay::hold_seeds(&inputs("package"), &package_seeds());
    replay::hold_seeds(&inputs("system_image"), &system_seeds());
    for (name, bytes) in package_seeds().iter().filter(|(name, _)| name.starts_with("file")) {
        let package = Package::parse(&bytes[1..]).unwrap_or_else(|error| panic!("{name}: {error}"));
        package_check::verify(&package, &Trust::in_key(key().public()))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    Image::check(&Elf::good().write()).expect("an image");
    for name in ["cat", "console", "shell"] {
        Image::check(&image(&small(name)).write()).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    install::system_of(&min_system()).unwrap_or_else(|findings| panic!("{findings:?}"));
}
