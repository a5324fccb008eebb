//! Provides the host requirements that tests declare with `needs!`: installs packages where permitted, and skips the
//! tests whose requirements are missing.
//!
//! Deliberately not here: the requirements, which each test declares (`lib/test-needs`).

use sing::failure::{Failure, Outcome};
use sing::host_tools::{self, Tool};
use sing::repository::Repository;
use sing::test::needs::Needs;
use sing::test::packages::TestedCrate;
use sing::test::{Selection, skipped};
use sing::test_output::Counts;
use test_needs::Need;

/// Returns parts of the names of the tests that cannot run here; reports and counts each missing need as skipped.
///
/// # Errors
/// A test declares a need that does not exist.
pub fn left_out(crates: &[&TestedCrate], selection: &Selection<'_>, counts: &mut Counts) -> Outcome<Vec<String>> {
    let mut needs = Needs::new();
    for tested in crates {
        tested.needs(selection.name, &mut needs);
    }
    let mut left_out = Vec::new();
    for (name, tests) in needs {
        let need =
            Need::named(&name).ok_or_else(|| Failure::new(format!("a test needs `{name}`, which is not a `Need`")))?;
        if let Err(remedy) = provide(need) {
            *counts += skipped(&format!("tests that need {}", described(need)), &remedy);
            left_out.extend(tests);
        }
    }
    Ok(left_out)
}

/// Installs a missing requirement, where permitted. The error is a remedy.
fn provide(need: Need) -> Result<(), String> {
    let is_there = match need {
        Need::Chromium | Need::Promtool => tools(need).iter().all(|tool| host_tools::find(tool.program).is_some()),
        Need::Requests => host_tools::ensure_requests(),
        Need::WasiTestsuite => return beside("shared/wasi-testsuite"),
        Need::Namespaces if host_tools::can_make_networks() => true,
        Need::Namespaces => return Err("run them as root, on a host with TAP interfaces".into()),
        _ => tools(need).iter().all(host_tools::ensure),
    };
    if is_there { Ok(()) } else { Err(tools(need).iter().map(host_tools::remedy).collect::<Vec<_>>().join("; ")) }
}

/// Checks that a folder lies beside the repository.
fn beside(folder: &str) -> Result<(), String> {
    let repository = Repository::find().map_err(|failure| failure.to_string())?;
    let is_there = repository.root().parent().is_some_and(|above| above.join(folder).is_dir());
    if is_there { Ok(()) } else { Err(format!("put it beside the repository, as ../{folder}")) }
}

fn tools(need: Need) -> &'static [Tool] {
    match need {
        Need::E2fsprogs => &[Tool::MKE2FS],
        Need::Dosfstools => &[Tool::MKFS_FAT, Tool::MCOPY],
        Need::Sfdisk => &[Tool::SFDISK],
        Need::Qemu => &[Tool::QEMU],
        Need::Curl => &[Tool::CURL],
        Need::Wget => &[Tool::WGET],
        Need::Wrk => &[Tool::WRK],
        Need::Python => &[Tool::PYTHON],
        Need::Requests => &[Tool::REQUESTS],
        Need::Chromium => &[Tool::CHROMIUM],
        Need::Promtool => &[Tool::PROMTOOL],
        Need::Tshark => &[Tool::TSHARK],
        Need::Dnsmasq => &[Tool::DNSMASQ],
        Need::Spin => &[Tool::SPIN],
        Need::Namespaces => &[Tool::IP],
        Need::WasiTestsuite => &[],
    }
}

fn described(need: Need) -> String {
    match need {
        Need::Namespaces => "network namespaces".into(),
        Need::Requests => "Python's `requests`".into(),
        Need::WasiTestsuite => "the WASI test suite".into(),
        _ => tools(need).iter().map(|tool| tool.program).collect::<Vec<_>>().join(" and "),
    }
}
