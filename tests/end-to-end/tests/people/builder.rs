//! Packages are independent of the builder's environment and configuration.

use std::path::Path;
use std::process::Command;

use end_to_end::{BUILD_LIMIT, finish, repository, sing, target};

/// Builds a program with this working folder; returns its package.
#[track_caller]
fn package(name: &str, here: &Path, variables: &[(&str, &str)]) -> Vec<u8> {
    let mut command = Command::new(sing());
    command.args(["build", name]).current_dir(here).env("CARGO_TARGET_DIR", target()).envs(variables.iter().copied());
    let run = finish(command, &format!("sing build {name}, with {variables:?}"), BUILD_LIMIT);
    assert_eq!(run.status, Some(0), "{run}");
    let path = target().join(format!("sing/packages/{name}.package"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_environment_of_the_builder_is_not_in_packages() {
    let usual = package("echo", repository(), &[]);
    // Cargo reads the configuration of its working folder and the folders above.
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join(".cargo")).expect("a folder");
    let configuration =
        "[profile.release]\nopt-level = 0\ndebug = 2\nlto = false\n\n[build]\nrustflags = [\"-Cpanic=unwind\"]\n";
    std::fs::write(folder.path().join(".cargo/config.toml"), configuration).expect("a file can be written");
    let variables = [
        ("RUSTFLAGS", "-Copt-level=1"),
        ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1"),
        ("CARGO_PROFILE_RELEASE_DEBUG", "2"),
        ("CARGO_PROFILE_RELEASE_LTO", "off"),
        ("CARGO_PROFILE_RELEASE_STRIP", "none"),
        ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
    ];
    assert!(usual == package("echo", folder.path(), &variables), "the builder's settings are in the package");
}

/// Without a crate to build, cargo was asked to build all of them, and the build was refused.
#[test]
fn regression_a_script_is_built_alone() {
    let bytes = package("greet", repository(), &[]);
    let script = package::Package::parse(&bytes).expect("a package");
    assert!(matches!(script.manifest.code, manifest_model::Code::Script { .. }) && script.image_bytes.is_empty());
}

/// Lines and uses of `unsafe` of a crate in the output of `sing base`.
fn counts(report: &str, name: &str) -> Option<(usize, usize)> {
    let line = report.lines().find(|line| line.starts_with(&format!("  {name} ")))?;
    let mut numbers = line.split_whitespace().rev().map(str::parse);
    let (unsafe_sites, lines) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    Some((lines, unsafe_sites))
}

#[test]
fn the_trusted_base_is_counted_crate_by_crate() {
    let mut command = Command::new(sing());
    command.arg("base").current_dir(repository());
    let report = finish(command, "sing base", BUILD_LIMIT).succeeded();
    for name in ["kernel", "hal/hosted", "hal/x86_64", "sip", "talc"] {
        let (lines, unsafe_sites) = counts(&report, name).unwrap_or_else(|| panic!("no `{name}` in:\n{report}"));
        assert!(lines > 500 && unsafe_sites > 10, "{name}: {lines} lines, {unsafe_sites} unsafe");
    }
    for name in ["lib/image-check", "sing"] {
        let (lines, unsafe_sites) = counts(&report, name).unwrap_or_else(|| panic!("no `{name}` in:\n{report}"));
        assert!(lines > 500 && unsafe_sites == 0, "{name}: {lines} lines, {unsafe_sites} unsafe");
    }
    for contained in ["lib/ext2", "services/net-stack", "apps/system/shell"] {
        assert!(counts(&report, contained).is_none(), "`{contained}` forbids unsafe code:\n{report}");
    }
}
