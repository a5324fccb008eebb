//! Formats and checks FAT disks, and reports on standard output.
//!
//! The exit status is the outcome: 0 done or clean, 1 repaired, 4 faulty, 8 failed, or 16 and more for one of the
//! reasons of the contract `VolumeManager`; then the first line of the output has the reason. Deliberately
//! not here: exclusive use of disks (the manager), and the format (`lib/fat`).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod outcome;

use alloc::format;

use client::namespace::Namespace;
use contracts::volume_manager::VolumeError;
use disk_source::DiskSource;
use fat::{BlockSource, CheckMode, CheckReport, FormatOptions};
use sip::executor;
use stdio::Output;

use outcome::Refusal;

sip::startup!();

const STATUS_DONE: i32 = 0;
const STATUS_REPAIRED: i32 = 1;
const STATUS_FAULTY: i32 = 4;
/// Exit status if a resource of the machine is missing.
const STATUS_FAILED: i32 = 8;
/// Maximum number of concurrent disk requests; others wait for a channel.
const CHANNELS: usize = 4;

/// Runs the task and returns the exit status.
pub fn main(startup: Startup) -> i32 {
    let Startup { namespace, output, task, disk, mode, block_bytes, label, .. } = startup;
    let mut output = Output::new(output);
    let work = async {
        let namespace = Namespace::new(namespace);
        match task.as_str() {
            "format" => {
                let options = format_options(block_bytes, &label)?;
                make(open(namespace, &disk).await?, options, &disk, &mut output).await
            }
            "check" => {
                let mode = check_mode(&mode)?;
                check(open(namespace, &disk).await?, mode, &disk, &mut output).await
            }
            other => Err(Refusal::new(VolumeError::BadRequest, format!("there is no task `{other}`"))),
        }
    };
    let status = match executor::block_on(work) {
        Ok(Ok(status)) => status,
        Ok(Err(refusal)) => {
            // If the pipe is broken, the exit status still reports it.
            let _ = output.write(format!("{disk}: {}\n", refusal.sentence).as_bytes());
            refusal.status()
        }
        Err(_) => STATUS_FAILED,
    };
    output.finish_with(status)
}

async fn open(namespace: Namespace, path: &str) -> Result<DiskSource, Refusal> {
    DiskSource::open(namespace, path, CHANNELS, None).await.map_err(Refusal::access)
}

fn check_mode(mode: &str) -> Result<CheckMode, Refusal> {
    match mode {
        "report" => Ok(CheckMode::Report),
        "preen" => Ok(CheckMode::Preen),
        "repair" => Ok(CheckMode::Repair),
        other => Err(Refusal::new(VolumeError::BadRequest, format!("there is no mode `{other}`"))),
    }
}

fn format_options(block_bytes: i64, label: &str) -> Result<FormatOptions<'_>, Refusal> {
    const NS_PER_S: u64 = 1_000_000_000;
    let wrong = || {
        let sentence = format!("clusters cannot have {block_bytes} bytes; give a power of two from 512 to 32768");
        Refusal::new(VolumeError::BadRequest, sentence)
    };
    let cluster_bytes = match u32::try_from(block_bytes).map_err(|_| wrong())? {
        0 => None,
        bytes if bytes.is_power_of_two() && (512..=32_768).contains(&bytes) => Some(bytes),
        _ => return Err(wrong()),
    };
    let now_ns = sip::time::wall();
    // Very likely unique per format time.
    let serial = (now_ns >> 16) as u32 ^ now_ns as u32;
    Ok(FormatOptions { cluster_bytes, label, time_s: i64::try_from(now_ns / NS_PER_S).unwrap_or(0), serial })
}

async fn make<S: BlockSource>(
    source: S,
    options: FormatOptions<'_>,
    disk: &str,
    output: &mut Output,
) -> Result<i32, Refusal> {
    let made = fat::format(source, options).await.map_err(|error| Refusal::format(error, options.label))?;
    let report = format!(
        "{disk}: formatted as FAT{} with {} clusters of {} bytes\n",
        made.bits, made.clusters, made.cluster_bytes
    );
    output.write(report.as_bytes()).map_err(Refusal::pipe)?;
    Ok(STATUS_DONE)
}

async fn check<S: BlockSource>(source: S, mode: CheckMode, disk: &str, output: &mut Output) -> Result<i32, Refusal> {
    let report = fat::check(source, mode).await.map_err(Refusal::check)?;
    output.write(summary(&report, disk).as_bytes()).map_err(Refusal::pipe)?;
    for line in &report.lines {
        output.write(format!("{}\n", text::printable(line.as_bytes())).as_bytes()).map_err(Refusal::pipe)?;
    }
    let unnamed = (report.problems as usize).saturating_sub(report.lines.len());
    if unnamed > 0 {
        output.write(format!("and {unnamed} more\n").as_bytes()).map_err(Refusal::pipe)?;
    }
    Ok(match (report.problems, report.left) {
        (0, _) => STATUS_DONE,
        (_, 0) => STATUS_REPAIRED,
        _ => STATUS_FAULTY,
    })
}

/// The first line of a check's report.
fn summary(report: &CheckReport, disk: &str) -> alloc::string::String {
    let outcome = match (report.problems, report.left) {
        (0, _) => "clean".into(),
        (problems, 0) => format!("repaired, {problems} problems"),
        (problems, left) => format!("faulty, {left} of {problems} problems left"),
    };
    format!(
        "{disk}: {outcome}; FAT{}, {} files, {} folders, {} of {} clusters of {} bytes in use\n",
        report.bits, report.files, report.folders, report.used_clusters, report.clusters, report.cluster_bytes
    )
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use fat::CacheLimits;

    use super::CHANNELS;

    /// Handles other than the cache's and the disk channels: the namespace, the output and its block, the disk's
    /// events, a block for its mark, the thread, a wait set, and transient ones.
    const OTHER_HANDLES: usize = 16;

    fn quota(name: &str) -> usize {
        let manifest = include_str!("../manifest.toml");
        let prefix = format!("{name} = ");
        let line = manifest.lines().find_map(|line| line.strip_prefix(&prefix));
        line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no quota `{name}` in the manifest"))
    }

    #[test]
    fn the_quota_covers_the_cache() {
        let limits = CacheLimits::TOOLS;
        let buffers = limits.max_buffers();
        assert!(quota("handles") >= buffers + CHANNELS + OTHER_HANDLES);
        assert!(quota("block_kib") * 1024 >= buffers * limits.rounded_page_bytes());
        assert!(quota("channels") >= CHANNELS + OTHER_HANDLES);
    }
}
