//! Checks the file system of an unmounted disk and, on request, repairs it.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use client::namespace::Namespace;
use client::volume_managers::{VolumeManager, VolumeManagerError, ask_each, disk_path};
use contracts::volume_manager::{CheckMode, CheckOutcome, VolumeError};
use stdio::{Output, report};
use text::printable;

sip::startup!("check/manifest.toml");

/// Exit status: all faults were repaired.
const REPAIRED: i32 = 1;
/// Exit status: faults remain.
const FAULTY: i32 = 4;
/// Exit status: the disk could not be checked.
const NOT_CHECKED: i32 = 8;

/// Prints a line for each fault and a summary. The exit status is 0 if no fault was found.
pub fn main(startup: Startup) -> i32 {
    let mut namespace = Namespace::new(startup.namespace);
    let mode = match (startup.mend, startup.repair) {
        (_, true) => CheckMode::Repair,
        (true, false) => CheckMode::Preen,
        (false, false) => CheckMode::Report,
    };
    let disk = disk_path(&startup.working_folder, &startup.disk);
    match check(&mut namespace, startup.type_.as_deref(), &disk, mode) {
        Ok((outcome, text)) => {
            let status = match outcome {
                CheckOutcome::Clean => 0,
                CheckOutcome::Repaired => REPAIRED,
                CheckOutcome::Faulty => FAULTY,
            };
            let mut output = Output::new(startup.output);
            output.write(text.as_bytes()).map_or(NOT_CHECKED, |()| output.finish_with(status))
        }
        Err(error) if error.error() == Some(VolumeError::NotRecognised) && startup.type_.is_none() => {
            report::path_error(&disk, &"no known file system; `format` creates one");
            NOT_CHECKED
        }
        Err(error) => {
            report::error(format_args!("{error}"));
            NOT_CHECKED
        }
    }
}

fn check(
    namespace: &mut Namespace,
    kind: Option<&str>,
    disk: &str,
    mode: CheckMode,
) -> Result<(CheckOutcome, String), VolumeManagerError> {
    let mut managers = match kind {
        Some(kind) => Vec::from([VolumeManager::open(namespace, kind)?]),
        None => VolumeManager::open_all(namespace)?,
    };
    let (kind, outcome, lines) = ask_each(&mut managers, VolumeError::NotRecognised, |manager| {
        let (outcome, lines) = manager.check(disk, mode)?;
        Ok((manager.kind().to_string(), outcome, lines))
    })?;
    let remedy = match (outcome, mode) {
        (CheckOutcome::Faulty, CheckMode::Report) => "there are errors; `check --mend` makes the safe repairs",
        (CheckOutcome::Faulty, CheckMode::Preen) => "errors remain; `check --repair` repairs everything",
        (CheckOutcome::Faulty, CheckMode::Repair) => "errors remain; copy off what is readable",
        (CheckOutcome::Repaired, _) => "all errors repaired",
        (CheckOutcome::Clean, _) => "no fault",
    };
    let mut text: String = lines.lines().map(|line| printable(line.as_bytes()) + "\n").collect();
    text.push_str(&format!("{} ({kind}): {remedy}\n", printable(disk.as_bytes())));
    Ok((outcome, text))
}
