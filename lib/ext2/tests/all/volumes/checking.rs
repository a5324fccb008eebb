//! Checks of an in-memory disk.

use ext2::check::{CheckError, CheckOptions, Finding, Mode, Summary, check};
use ext2::complete;

use super::Disk;

/// Memory limit of a check.
pub const MEMORY_BYTES: u64 = 64 << 20;

/// Checks a disk; returns the result and the findings.
pub fn checked(disk: &Disk, mode: Mode) -> (Result<Summary, CheckError>, Vec<Finding>) {
    checked_within(disk, mode, MEMORY_BYTES)
}

/// As `checked`, with this memory limit.
pub fn checked_within(disk: &Disk, mode: Mode, memory_bytes: u64) -> (Result<Summary, CheckError>, Vec<Finding>) {
    let mut findings = Vec::new();
    let options = CheckOptions { mode, memory_bytes };
    let result = complete(check(&disk.any(), &options, &mut |finding| findings.push(finding.clone())));
    (result, findings)
}

/// Returns the findings, one per line.
pub fn lines(findings: &[Finding]) -> String {
    findings.iter().map(|finding| format!("{finding}\n")).collect()
}
