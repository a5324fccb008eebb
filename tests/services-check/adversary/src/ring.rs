//! The audit ring, read as any user would: from the file `/status/audit`.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use client::namespace::Namespace;

use crate::{Outcome, check, ground};

/// Path of the audit ring.
const PATH: &str = "/status/audit";
/// Separator between a line and its count.
const TIMES: &str = ", ";

/// Snapshot of the lines, without times and reporters, with the count of each.
pub(crate) struct Ring(Vec<(String, u64)>);

impl Ring {
    /// Reads the ring.
    pub(crate) fn read(namespace: &mut Namespace) -> Result<Ring, String> {
        let text = ground::read(namespace, PATH)?;
        let text = String::from_utf8_lossy(&text);
        Ok(Ring(text.lines().filter_map(refusal).collect()))
    }

    /// Number of audit lines that contain the text.
    fn count(&self, text: &str) -> u64 {
        self.0.iter().filter(|(line, _)| line.contains(text)).map(|(_, times)| times).sum()
    }

    /// Checks that each of these refusals was recorded since the snapshot.
    pub(crate) fn has_more_than(&self, before: &Ring, refusals: &[&str]) -> Outcome {
        for refusal in refusals {
            let new: Vec<&str> = self.0.iter().skip(before.0.len()).map(|(line, _)| line.as_str()).collect();
            check!(self.count(refusal) > before.count(refusal), "no line `{refusal}`; there are {new:?}");
        }
        Ok(())
    }
}

/// `TIME_MS NOTED_BY: TEXT[, N times]`.
fn refusal(line: &str) -> Option<(String, u64)> {
    let (_, text) = line.split_once(": ")?;
    let times = text.strip_suffix(" times").and_then(|text| {
        let (text, times) = text.rsplit_once(TIMES)?;
        Some((text.to_string(), times.parse().ok()?))
    });
    Some(times.unwrap_or_else(|| (text.to_string(), 1)))
}
