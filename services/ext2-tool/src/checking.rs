//! The task `check`.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use contracts::volume_manager::VolumeError;
use ext2::check::{CheckError, CheckOptions, Done, Finding, Mode, Outcome, check};
use ext2::{BlockSource, FormatError};
use stdio::Output;

use crate::limits::MEMORY_BYTES;
use crate::outcome::{Refusal, of_disk};

/// Maximum number of faults listed; the rest is counted.
const MAX_LINES: usize = 2000;

/// Exit statuses of a check, as `fsck`'s.
const STATUS_CLEAN: i32 = 0;
const STATUS_REPAIRED: i32 = 1;
const STATUS_FAULTY: i32 = 4;

/// Parses a mode.
pub(crate) fn mode(name: &str) -> Result<Mode, Refusal> {
    Ok(match name {
        "report" => Mode::Report,
        "preen" => Mode::Preen,
        "repair" => Mode::Repair,
        other => {
            let sentence = format_args!("there is no mode `{other}`; give `report`, `preen` or `repair`");
            return Err(Refusal::new(VolumeError::BadRequest, &sentence));
        }
    })
}

/// Checks the disk, writes the report and returns the exit status.
pub(crate) async fn check_disk<S: BlockSource>(
    source: &S,
    mode: Mode,
    disk: &str,
    output: &mut Output,
) -> Result<i32, Refusal> {
    let (mut findings, mut count) = (Vec::new(), 0);
    let mut report = |finding: &Finding| {
        count += 1;
        if findings.len() < MAX_LINES {
            findings.push(finding.clone());
        }
    };
    let options = CheckOptions { mode, memory_bytes: MEMORY_BYTES };
    let result = check(source, &options, &mut report).await;
    let written = result.is_ok_and(|summary| summary.written);
    // Written last: if the check fails, the first line is the reason.
    let lines = lines(disk, findings, count, written);
    let summary = match result {
        Ok(summary) => summary,
        Err(error) => {
            let refusal = Refusal::new(reason(error), &error);
            output.write(alloc::format!("{disk}: {refusal}\n{lines}").as_bytes())?;
            return Ok(refusal.status());
        }
    };
    output.write(lines.as_bytes())?;
    if mode == Mode::Repair && summary.outcome == Outcome::Faulty {
        let sentence = "not all of this can be repaired, so nothing was changed; `check --mend` puts right what costs \
                        nothing";
        output.write(alloc::format!("{disk}: {sentence}\n").as_bytes())?;
    }
    output.write(alloc::format!("{disk}: {summary}\n").as_bytes())?;
    Ok(match summary.outcome {
        Outcome::Clean => STATUS_CLEAN,
        Outcome::Repaired => STATUS_REPAIRED,
        Outcome::Faulty => STATUS_FAULTY,
    })
}

/// Formats a line per fault. Without writes, faults that would have been repaired count as left.
fn lines(disk: &str, findings: Vec<Finding>, count: usize, written: bool) -> String {
    let mut lines = String::new();
    let more = count - findings.len();
    for mut finding in findings {
        if finding.done == Done::Repaired && !written {
            finding.done = Done::Left;
        }
        // Writing to a String cannot fail.
        let _ = writeln!(lines, "{disk}: {finding}");
    }
    if more > 0 {
        // Writing to a String cannot fail.
        let _ = writeln!(lines, "{disk}: {more} more faults");
    }
    lines
}

fn reason(error: CheckError) -> VolumeError {
    match error {
        CheckError::Read(_, error) | CheckError::Write(_, error) => of_disk(error),
        CheckError::ReadOnly => VolumeError::ReadOnly,
        CheckError::Features(_) | CheckError::OtherFeatures(_) => VolumeError::NotSupported,
        CheckError::MemoryLimit { .. } | CheckError::TooManyChanges { .. } | CheckError::NoMemory => {
            VolumeError::Exhausted
        }
        CheckError::Unfinished { .. } => VolumeError::DeviceError,
        // Lets the caller try the next kind of file system.
        CheckError::Foreign { kind: volume_kind::FAT } => VolumeError::NotRecognised,
        CheckError::Foreign { .. } => VolumeError::NotSupported,
        CheckError::Superblock { .. } | CheckError::Unproven { .. } => VolumeError::Damaged,
        CheckError::Volume(FormatError::NotExt2 { .. } | FormatError::TooSmall(_)) => VolumeError::NotRecognised,
        CheckError::Volume(FormatError::Truncated { .. } | FormatError::Journal(_)) => VolumeError::Damaged,
        CheckError::Volume(_) => VolumeError::NotSupported,
    }
}
