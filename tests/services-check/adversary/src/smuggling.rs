//! Packages that pose as another publisher's, handed to a program that may install.
//!
//! The files are made by a test of `lib/package-check`, which knows the flaw of each. Deliberately not here: malformed
//! packages; the installer's own tests have those.

use alloc::format;

use sip::exheap::ExVec;
use sip::process::create;
use sip::{Status, diagnostics, programs};

use crate::{Outcome, check};

/// A publisher with a lookalike name and another key.
const LOOK_ALIKES: &[(&str, &[u8])] = &[("look-alike", include_bytes!("packages/look-alike.package"))];

/// The program `intruder` with permissions, in a newer version.
const GROWN: &[(&str, &[u8])] = &[
    ("own-key", include_bytes!("packages/own-key.package")),
    ("own-certificate", include_bytes!("packages/own-certificate.package")),
    ("unsigned", include_bytes!("packages/unsigned.package")),
];

pub(crate) fn look_alike() -> Outcome {
    all_refused(LOOK_ALIKES)?;
    check!(create("cat").is_err(), "the program of the look-alike can be started");
    Ok(())
}

pub(crate) fn grown() -> Outcome {
    all_refused(GROWN)
}

fn all_refused(packages: &[(&str, &[u8])]) -> Outcome {
    let before = diagnostics::program_count();
    for (name, bytes) in packages {
        let block = ExVec::from_slice(bytes).map_err(|status| format!("{name}: {}", status.text()))?;
        match programs::install(&block) {
            Err(error) if error.status == Status::Refused => {
                check!(!error.reason.is_empty(), "{name}: it is not said why");
            }
            other => return Err(format!("{name}: {other:?}")),
        }
    }
    let after = diagnostics::program_count();
    check!(before == after, "{after} programs are installed, where there were {before}");
    Ok(())
}
