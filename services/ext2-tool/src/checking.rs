//! The task `check`.

use alloc::string::String;
use core::fmt::Write;

use contracts::pipe_io::Output;
use contracts::volume_manager::VolumeError;
use ext2::check::{CheckError, CheckOptions, Finding, Mode, Outcome, check};
use ext2::{BlockSource, Error};

use crate::outcome::{Refusal, of_disk};

/// The memory that a check may take: what the manifest grants, with room for the rest of the program.
const MEMORY_BYTES: u64 = 56 << 20;
/// Faults that are told one by one; of a volume with more, the rest is only counted.
const MOST_LINES: u32 = 2000;

/// How a check ends as an exit status.
const STATUS_CLEAN: i32 = 0;
const STATUS_MENDED: i32 = 1;
const STATUS_FAULTY: i32 = 4;

/// The mode of this name.
pub(crate) fn mode(name: &str) -> Result<Mode, Refusal> {
    Ok(match name {
        "look" => Mode::Look,
        "mend" => Mode::Mend,
        "repair" => Mode::Repair,
        other => {
            let sentence = format_args!("there is no mode `{other}`; give `look`, `mend` or `repair`");
            return Err(Refusal::new(VolumeError::BadRequest, &sentence));
        }
    })
}

/// Checks the disk and tells what was found.
pub(crate) async fn check_disk<S: BlockSource>(
    source: &S,
    mode: Mode,
    disk: &str,
    output: &mut Output,
) -> Result<i32, Refusal> {
    // Written at the end: when the check cannot be done, the first line says why.
    let (mut lines, mut count) = (String::new(), 0u32);
    let mut report = |finding: &Finding| {
        count += 1;
        if count <= MOST_LINES {
            // Writing to a String cannot fail.
            let _ = writeln!(lines, "{disk}: {finding}");
        }
    };
    let options = CheckOptions { mode, memory_bytes: MEMORY_BYTES };
    let result = check(source, &options, &mut report).await;
    if count > MOST_LINES {
        // As above.
        let _ = writeln!(lines, "{disk}: {} faults more", count - MOST_LINES);
    }
    let summary = match result {
        Ok(summary) => summary,
        Err(error) => {
            let refusal = Refusal::new(reason(error), &error);
            output.write(alloc::format!("{disk}: {refusal}\n{lines}").as_bytes())?;
            return Ok(refusal.status());
        }
    };
    output.write(lines.as_bytes())?;
    output.write(alloc::format!("{disk}: {summary}\n").as_bytes())?;
    Ok(match summary.outcome {
        Outcome::Clean => STATUS_CLEAN,
        Outcome::Mended => STATUS_MENDED,
        Outcome::Faulty => STATUS_FAULTY,
    })
}

fn reason(error: CheckError) -> VolumeError {
    match error {
        CheckError::Read(_, error) | CheckError::Write(_, error) => of_disk(error),
        CheckError::ReadOnly => VolumeError::ReadOnly,
        CheckError::Features(_) | CheckError::OtherFeatures(_) => VolumeError::NotSupported,
        CheckError::MemoryLimit { .. } | CheckError::NoMemory => VolumeError::Exhausted,
        // The next kind of file system is asked.
        CheckError::Foreign { kind: volume_kind::FAT } => VolumeError::NotRecognised,
        CheckError::Foreign { .. } => VolumeError::NotSupported,
        CheckError::Superblock { .. } | CheckError::Unproven { .. } => VolumeError::Damaged,
        CheckError::Volume(Error::NotExt2 { .. } | Error::TooSmall(_)) => VolumeError::NotRecognised,
        CheckError::Volume(Error::Truncated { .. } | Error::Journal(_)) => VolumeError::Damaged,
        CheckError::Volume(_) => VolumeError::NotSupported,
    }
}
