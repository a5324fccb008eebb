//! Formatting and checking: a tool process for each, whose standard output is the report.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use client::programs;
use contracts::pipe;
use contracts::volume_manager::{CheckMode, CheckOutcome, FormatOptions, VolumeError};
use sip::process::EpitaphKind;
use stdio::new_pipe;
use text::padded;

use crate::Manager;
use crate::child::{self, Builder};
use crate::error::{self, Error};

/// Maximum length of a report in bytes; the rest is cut.
const MAX_REPORT_BYTES: usize = 60 * 1024;

type Reader = pipe::Exp<pipe::states::Ready>;

impl Manager {
    /// Formats a disk. Returns the tool's report.
    pub(crate) async fn format(&self, disk: &str, options: &FormatOptions) -> Result<String, Error> {
        let numbers = [
            ("block-bytes", options.block_bytes),
            ("nodes", options.nodes),
            ("reserved-percent", options.reserved_percent),
        ];
        let numbers = numbers.into_iter().filter(|(_, number)| *number != 0);
        let mut parameters: Vec<(&str, String)> = numbers.map(|(name, number)| (name, number.to_string())).collect();
        if options.plain != 0 {
            parameters.push(("plain", String::from("true")));
        }
        let label = padded(&options.label);
        if label.chars().any(char::is_control) {
            return Err(Error::new(VolumeError::BadRequest, "the label has unprintable characters"));
        }
        if !label.is_empty() {
            parameters.push(("label", label));
        }
        let (outcome, report) = self.run_tool(disk, "format", &parameters).await?;
        match outcome {
            CheckOutcome::Clean | CheckOutcome::Repaired => Ok(report),
            CheckOutcome::Faulty => Err(Error::new(VolumeError::DeviceError, first_line(&report))),
        }
    }

    /// Checks the file system of a disk. Returns the outcome and the tool's report.
    pub(crate) async fn check(&self, disk: &str, mode: CheckMode) -> Result<(CheckOutcome, String), Error> {
        let word = match mode {
            CheckMode::Report => "report",
            CheckMode::Preen => "preen",
            CheckMode::Repair => "repair",
        };
        self.run_tool(disk, "check", &[("mode", String::from(word))]).await
    }

    async fn run_tool(
        &self,
        disk: &str,
        task: &str,
        parameters: &[(&str, String)],
    ) -> Result<(CheckOutcome, String), Error> {
        self.claims.disk(disk, None)?;
        let ran = self.run_claimed(disk, task, parameters).await;
        self.claims.release(disk);
        ran
    }

    async fn run_claimed(
        &self,
        disk: &str,
        task: &str,
        parameters: &[(&str, String)],
    ) -> Result<(CheckOutcome, String), Error> {
        let tool = programs::manifest(&self.tool).map_err(|status| Error::exhausted(&self.tool, status))?.ok_or_else(
            || {
                let explanation = format!("the program {} is not installed in this system", self.tool);
                Error::new(VolumeError::NotSupported, explanation)
            },
        )?;
        let (writer, reader) = new_pipe().map_err(|status| Error::exhausted(disk, status))?;
        let mut making = Builder::new(&tool, &mut self.namespace.borrow_mut())?;
        making = making.parameter("task", task)?.parameter("disk", disk)?;
        for (name, value) in parameters {
            making = making.parameter(name, value)?;
        }
        let process = making.endpoint("output", writer)?.start()?;
        let report = read_report(reader).await;
        let end = process.ended().await;
        let status = match &end {
            Ok(epitaph) if epitaph.kind == EpitaphKind::Exited => epitaph.status,
            _ => {
                let words = child::words(&tool, &end);
                let explanation = format!("{disk}: {words} during the {task}; run `check {disk}`");
                return Err(Error::new(VolumeError::DeviceError, explanation));
            }
        };
        match status {
            0 => Ok((CheckOutcome::Clean, report)),
            1 => Ok((CheckOutcome::Repaired, report)),
            4 => Ok((CheckOutcome::Faulty, report)),
            other => {
                let error = error::of_tool(other).unwrap_or(VolumeError::BadRequest);
                let said = first_line(&report);
                let said = if said.is_empty() { child::words(&tool, &end) } else { said };
                Err(Error::new(error, said))
            }
        }
    }
}

/// Reads all that a tool writes, cut at the last whole line that fits.
async fn read_report(mut reader: Reader) -> String {
    let mut report = Vec::new();
    let mut left_out = false;
    loop {
        reader = match reader.receive_async().await {
            pipe::ExpReady::Write { data, next } => {
                if left_out || report.len() + data.len() > MAX_REPORT_BYTES {
                    left_out = true;
                } else {
                    report.extend_from_slice(&data);
                }
                next.accepted()
            }
            pipe::ExpReady::End { next } => {
                let _ended = next.ended();
                break;
            }
            pipe::ExpReady::ChannelClosed(_) => break,
        };
    }
    if left_out {
        let end = report.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
        report.truncate(end);
        report.extend_from_slice(b"... (report truncated)\n");
    }
    String::from_utf8_lossy(&report).into_owned()
}

fn first_line(report: &str) -> String {
    report.lines().next().unwrap_or("").trim().to_string()
}
