//! User keys, certificates, and systems that differ from the signed ones.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use end_to_end::{Doctor, Run, finish, repository, reseal, reseal_system, sing};
use manifest_model::{Manifest, Policy, Revoked};

use crate::bad_input::{boot, hosted};

/// `sing key` with a private key store.
#[track_caller]
fn key(store: &Path, words: &[&str]) -> Run {
    let mut command = Command::new(sing());
    command.arg("key").args(words).current_dir(repository()).env("SING_KEYS", store);
    finish(command, &format!("sing key {}", words.join(" ")), Duration::from_secs(60))
}

#[test]
fn keys_are_made_certified_trusted_and_revoked() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let store = folder.path().join("keys");
    let file = folder.path().join("certificates");
    let file = file.to_str().expect("its name is UTF-8");
    let made = key(&store, &["new", "root"]).succeeded();
    assert!(made.starts_with("public key  ") && made.contains("root.key"), "{made}");
    key(&store, &["new", "root"]).refused(&["the key `root` already exists"]);
    key(&store, &["new", "Root"]).refused(&["invalid key name"]);
    key(&store, &["new", "daily"]).succeeded();
    let certified = key(&store, &["certify", "daily", "--with", "root", "--for", "acme-*", "-o", file]).succeeded();
    assert!(certified.contains("may sign for acme-*"), "{certified}");
    key(&store, &["certify", "daily", "--with", "nobody", "--for", "acme"]).refused(&["no key `nobody`"]);
    key(&store, &["certify", "someone", "--with", "root", "--for", "acme"]).refused(&["`someone` is not a public key"]);
    key(&store, &["certify", "daily", "--with", "root", "--for", "ACME"]).refused(&["is no publisher"]);
    key(&store, &["import", "root", file]).refused(&["is for the key"]);
    key(&store, &["import", "daily", file]).succeeded();
    let shown = key(&store, &["show", "daily"]).succeeded();
    let serial = shown.split("certificate ").nth(1).and_then(|rest| rest.get(..16)).expect("a certificate is shown");
    let root = made.lines().next().and_then(|line| line.strip_prefix("public key  ")).expect("the key is shown");
    // A file in the current folder with the name of a key is not that key.
    std::fs::write(folder.path().join("root"), "ab".repeat(32)).expect("a file");
    let mut trust = Command::new(sing());
    trust.args(["key", "trust", "root", "--for", "acme-*"]).current_dir(folder.path()).env("SING_KEYS", &store);
    let trusted = finish(trust, "sing key trust root", Duration::from_secs(60)).succeeded();
    assert!(trusted.contains(root), "{trusted}");
    let secret = store.join("root.key");
    let secret = secret.to_str().expect("its name is UTF-8");
    key(&store, &["trust", secret, "--for", "*"]).refused(&["the secret half of a key", "NAME.public"]);
    key(&store, &["certify", secret, "--with", "root", "--for", "acme-x"]).refused(&["the secret half of a key"]);
    let public = store.join("daily.public");
    let public = public.to_str().expect("its name is UTF-8");
    key(&store, &["certify", public, "--with", "root", "--for", "acme-x"]).succeeded();
    key(&store, &["revoke", serial]).succeeded();
    key(&store, &["revoke", "that one"]).refused(&["neither the serial number of a certificate nor a key"]);
    let list = key(&store, &["list"]).succeeded();
    for part in ["development", "  root", "  daily", "trusted for acme-*", &format!("{serial}  revoked")] {
        assert!(list.contains(part), "`{part}` is not in:\n{list}");
    }
}

#[test]
fn native_code_is_signed_with_the_right_to_it_only() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let store = folder.path().join("keys");
    let in_folder = |name: &str| folder.path().join(name).to_str().expect("its name is UTF-8").to_string();
    for name in ["root", "daily"] {
        key(&store, &["new", name]).succeeded();
    }
    let package = |output: &str| {
        let mut command = Command::new(sing());
        command.args(["package", "echo", "--key", "daily", "-o", output]);
        command.current_dir(repository()).env("SING_KEYS", &store);
        finish(command, "sing package echo", Duration::from_secs(600))
    };
    let certify = |more: &[&str]| {
        let file = in_folder("certificates");
        let words = ["certify", "daily", "--with", "root", "--for", "singularity", "-o", &file];
        let said = key(&store, &[&words[..], more].concat()).succeeded();
        key(&store, &["import", "daily", &file]).succeeded();
        said
    };
    let file = in_folder("echo.package");
    certify(&[]);
    package(&file).refused(&["no right to publish native code", "portable code", "a hardware domain of its own"]);
    assert!(!Path::new(&file).exists(), "what is refused is not written");
    let said = certify(&["--native"]);
    assert!(said.contains("for singularity, native code"), "{said}");
    package(&file).succeeded();

    let trusted = key(&store, &["trust", "root", "--for", "acme-*"]).succeeded();
    assert!(trusted.contains("for scripts only; pass --native"), "{trusted}");
    key(&store, &["trust", "root", "--for", "acme-*", "--native"]).succeeded();
    let list = key(&store, &["list"]).succeeded();
    assert!(list.contains("trusted for acme-*\n") && list.contains("trusted for acme-*, native code"), "{list}");
}

#[test]
fn a_key_that_others_may_read_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    key(folder.path(), &["new", "mine"]).succeeded();
    let path = folder.path().join("mine.key");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("a mode");
    key(folder.path(), &["show", "mine"]).refused(&["other users can read", "chmod 600"]);
}

/// Position of a program's package in a system image.
fn place(image: &[u8], program: &str) -> std::ops::Range<usize> {
    let system = package_check::verify_system(image).expect("a system image");
    let name = |bytes: &[u8]| package::Package::parse(bytes).expect("a package").manifest.name;
    let index = system.packages.iter().position(|bytes| name(bytes) == program).expect("it has the program");
    let behind: usize = system.packages[index..].iter().map(|bytes| bytes.len()).sum();
    let start = image.len() - behind;
    start..start + system.packages[index].len()
}

/// A valid package of the same publisher, but not the one in the signed system.
#[test]
fn another_package_of_the_same_publisher_does_not_take_its_place() {
    let with_key = |summary: char| {
        let change = |manifest: &mut Manifest, _: &mut Vec<u8>| {
            manifest.summary.pop();
            manifest.summary.push(summary);
        };
        reseal(&hosted(), "echo", &Doctor::Resealed(&change))
    };
    let (mut image, other) = (with_key('a'), with_key('b'));
    let (here, there) = (place(&image, "echo"), place(&other, "echo"));
    image[here].copy_from_slice(&other[there]);
    let run = boot(&image, "echo this must not be printed");
    run.refused(&["echo", "another than the head of the system image names"]);
    assert!(run.output.is_empty(), "{run}");
}

#[test]
fn a_program_that_the_manifest_does_not_list_stops_the_boot() {
    let image = reseal_system(&hosted(), &|system| system.installed.retain(|name| name != "echo"));
    boot(&image, "true").refused(&["`echo`", "the system is sealed"]);
}

#[test]
fn an_unsigned_program_is_there_but_does_not_run() {
    let image = reseal(&hosted(), "echo", &Doctor::Unsigned);
    let quarantine = reseal_system(&image, &|system| system.trust.policy = Policy::QuarantineUnsigned);
    assert!(boot(&quarantine, "help echo").succeeded().contains("echo"));
    boot(&quarantine, "echo no").refused(&["echo", "in quarantine", "hardware domain"]);
    boot(&image, "echo no").refused(&["echo", "nobody has signed"]);
}

#[test]
fn what_was_revoked_does_not_run() {
    let image = reseal(&hosted(), "echo", &Doctor::Resealed(&|_, _| {}));
    let key = package_check::verify_system(&image).expect("a system image").manifest.trust.roots[0].key;
    let image = reseal_system(&image, &|system| system.trust.revoked.push(Revoked::Key(key)));
    boot(&image, "true").refused(&["has been revoked"]);
}

#[test]
fn a_system_says_what_it_should_be_measured_as() {
    let mut command = Command::new(sing());
    command.arg("measure").current_dir(repository());
    // It may report a build.
    let measured = finish(command, "sing measure", Duration::from_secs(600));
    let expected = measured.text();
    let shown = boot(&hosted(), "sysinfo").succeeded();
    for line in expected.lines() {
        assert!(shown.lines().any(|other| other == line), "`{line}` is not in:\n{shown}");
    }
    assert_eq!((measured.status, expected.lines().count()), (Some(0), 2), "{measured}");
}
