//! Installing programs into the running system and uninstalling them.
//!
//! The guests are scripts, generated and kept up to date by a test of the crate `package-check`: a script can be
//! installed, but starting it is the shell's part, which is the only thing that the kernel refuses. Deliberately not
//! here: upgrades of running programs, which need images.

use alloc::format;
use alloc::string::{String, ToString};

use sip::exheap::ExVec;
use sip::process::create;
use sip::programs::{InstallError, Installed, check, install, uninstall};
use sip::{Status, diagnostics};

use crate::job::{CITIZEN, citizen, stop_running};
use crate::principals::{audited, next_line};
use crate::{Outcome, Settings, Test, check, function};

const GUEST: &str = "conformance-guest";
const FIRST: &[u8] = include_bytes!("../guests/first.package");
const SECOND: &[u8] = include_bytes!("../guests/second.package");

/// Native code of a publisher without the right to it.
const NATIVE: &str = "native, without the right";

/// Packages that the kernel refuses, each with its error message.
const REFUSED: [(&str, &[u8], &str); 8] = [
    ("a stranger's", include_bytes!("../guests/stranger.package"), "does not trust"),
    ("unsigned", include_bytes!("../guests/unsigned.package"), "nobody has signed"),
    ("changed", include_bytes!("../guests/changed.package"), "changed after signing"),
    ("of a revoked certificate", include_bytes!("../guests/revoked.package"), "has been revoked"),
    ("of another's publisher", include_bytes!("../guests/not-its-publisher.package"), "not for the publisher"),
    (NATIVE, include_bytes!("../guests/native.package"), "portable code"),
    ("the root's name", include_bytes!("../guests/root.package"), "cannot be replaced"),
    ("no package", b"SINGPKG3", "cut short"),
];

/// The tests of this module. The last one removes a program that the others need.
pub(crate) fn tests() -> alloc::vec::Vec<Test> {
    alloc::vec![
        function("install: a guest comes and goes", comes_and_goes),
        function("install: a newer version takes the name", newer),
        function("install: another publisher does not get the name", other_publisher),
        function("install: what cannot be trusted is refused and noted", refused),
        function("install: a length that the block has not", too_long),
        function("install: needs its permission", without_permission),
        function("install: the system's first program stays", the_first_stays),
        function("measurement: of kernel and system", measured),
        function("uninstall: one that runs goes on, and starts no more", uninstalled_while_it_runs),
    ]
}

fn package(bytes: &[u8]) -> Result<ExVec<u8>, String> {
    let mut block = ExVec::new(bytes.len()).map_err(|status| status.text().to_string())?;
    block.copy_from_slice(bytes);
    Ok(block)
}

fn installing(bytes: &[u8]) -> Result<Installed, String> {
    install(&package(bytes)?).map_err(|error| error.reason)
}

fn removing(name: &str) -> Outcome {
    uninstall(name).map_err(|status| format!("`{name}` stays: {}", status.text()))
}

/// Number of installed programs whose manifest contains the text.
fn manifests_with(text: &str) -> Result<usize, String> {
    let mut count = 0;
    for index in 0..diagnostics::program_count() {
        let manifest = diagnostics::program_manifest(index).map_err(|status| format!("{index}: {}", status.text()))?;
        count += usize::from(manifest.windows(text.len()).any(|window| window == text.as_bytes()));
    }
    Ok(count)
}

fn is(done: Installed, expected: Installed) -> Outcome {
    check!(done == expected, "it answers {done:?}, not {expected:?}");
    Ok(())
}

fn start_says(expected: &str) -> Outcome {
    let error = create(GUEST).err().ok_or("it is created")?;
    check!(error.reason.contains(expected), "the start is refused by `{}`", error.reason);
    Ok(())
}

fn comes_and_goes(_: &Settings) -> Outcome {
    let before = diagnostics::program_count();
    let changes = diagnostics::program_changes();
    start_says(Status::NotFound.text())?;
    for round in 0..100 {
        let changed = || diagnostics::program_changes() - changes - 2 * round;
        is(check(&package(FIRST)?).map_err(|error| error.reason)?, Installed::New)?;
        check!(diagnostics::program_count() == before, "the check installed it");
        check!(changed() == 0, "nothing changed, and {} changes are counted", changed());
        is(installing(FIRST)?, Installed::New)?;
        is(installing(FIRST)?, Installed::Same)?;
        check!(changed() == 1, "one change, and {} are counted", changed());
        check!(diagnostics::program_count() == before + 1, "{} programs", diagnostics::program_count());
        check!(manifests_with("guest 1.0")? == 1, "its manifest is not listed once");
        start_says("is a script")?;
        removing(GUEST)?;
        check!(uninstall(GUEST) == Err(Status::NotFound), "it is there still");
        check!(changed() == 2, "two changes, and {} are counted", changed());
        start_says(Status::NotFound.text())?;
    }
    check!(diagnostics::program_count() == before, "{} programs", diagnostics::program_count());
    Ok(())
}

fn newer(_: &Settings) -> Outcome {
    let before = diagnostics::program_count();
    is(installing(FIRST)?, Installed::New)?;
    is(installing(SECOND)?, Installed::Replaced)?;
    check!(diagnostics::program_count() == before + 1, "{} programs", diagnostics::program_count());
    check!(manifests_with("guest 1.0")? == 0 && manifests_with("guest 1.1")? == 1, "the older one is there still");
    let older = installing(FIRST).err().ok_or("the older one takes its name back")?;
    check!(older.contains("is not newer than 1.1.0"), "{older}");
    removing(GUEST)?;
    is(installing(FIRST)?, Installed::New)?;
    check!(manifests_with("guest 1.0")? == 1, "the older one is not back");
    removing(GUEST)
}

fn other_publisher(_: &Settings) -> Outcome {
    const OTHER: &[u8] = include_bytes!("../guests/other-publisher.package");
    is(installing(FIRST)?, Installed::New)?;
    let refused = installing(OTHER).err().ok_or("another publisher's takes the name")?;
    check!(refused.contains("is taken by a program of `conformance-guests`"), "{refused}");
    removing(GUEST)?;
    is(installing(OTHER)?, Installed::New)?;
    removing(GUEST)
}

fn refused(settings: &Settings) -> Outcome {
    let before = diagnostics::program_count();
    for (what, bytes, expected) in REFUSED {
        // A domain of its own contains such code, so that its image is looked at, which is none.
        let expected =
            if settings.domains && settings.own_domains && what == NATIVE { "not an ELF file" } else { expected };
        let from = next_line()?;
        let would = check(&package(bytes)?).err().ok_or_else(|| format!("{what} would be installed"))?;
        let error: InstallError = install(&package(bytes)?).err().ok_or_else(|| format!("{what} is installed"))?;
        check!(would == error, "{what}: the check says {would:?}, and then {error:?}");
        check!(error.status == Status::Refused && error.reason.contains(expected), "{what}: {error:?}");
        audited(from, "kernel: conformance.singularity refused install on a package (")?;
    }
    check!(diagnostics::program_count() == before, "{} programs", diagnostics::program_count());
    Ok(())
}

fn too_long(_: &Settings) -> Outcome {
    // Truncated at any offset, it is no package; and no forged length makes it one.
    for length in (0..FIRST.len()).step_by(7) {
        let error = installing(&FIRST[..length]).err().ok_or_else(|| format!("{length} bytes are installed"))?;
        check!(error.contains("cut short"), "{length} bytes: {error}");
    }
    Ok(())
}

fn without_permission(_: &Settings) -> Outcome {
    let from = next_line()?;
    citizen("install-itself").succeed()?;
    let line = "conformance-citizen.singularity refused install on the kernel (its manifest has no such permission)";
    audited(from, line)
}

fn the_first_stays(_: &Settings) -> Outcome {
    let from = next_line()?;
    check!(uninstall("conformance") == Err(Status::Busy), "the suite itself can be uninstalled");
    audited(from, "refused uninstall on conformance (the system started with it)")
}

fn measured(_: &Settings) -> Outcome {
    use diagnostics::{Measured, measurement};
    for of in [Measured::Kernel, Measured::System] {
        let first = measurement(of).map_err(|status| format!("{of:?}: {}", status.text()))?;
        check!(first != [0; 32] && measurement(of) == Ok(first), "{of:?} is not measured twice as the same");
    }
    check!(measurement(Measured::Kernel) != measurement(Measured::System), "both are the same");
    Ok(())
}

fn uninstalled_while_it_runs(_: &Settings) -> Outcome {
    let running = citizen("sleep").start()?;
    removing(CITIZEN)?;
    let error = create(CITIZEN).err().ok_or("it can be started still")?;
    check!(error.status == Status::NotFound, "{error}");
    check!(running.wait_until(sip::Deadline::after_ms(50)).is_err(), "it ended with its program");
    stop_running(&running)
}
