//! Runs the files of the suite, each in processes of its own.

use alloc::format;
use alloc::string::{String, ToString};

use sip::process::{self, Child, Epitaph, EpitaphKind};

use crate::child::RETURNED;
use crate::script::{End, Step, read};

const PROGRAM: &str = "wasm-spec";
/// Indices of the parameters in the manifest.
const FILE: usize = 1;
const STEP: usize = 2;

/// Runs a file; returns the number of its steps.
///
/// # Errors
/// The first step that is not as it must be.
pub(crate) fn run(number: usize, bytes: &[u8]) -> Result<usize, String> {
    let steps = read(bytes).map_err(|error| error.to_string())?;
    let end = start(number, None)?;
    if !end.is_success() {
        return Err(end.to_string());
    }
    for (index, step) in steps.iter().enumerate().filter(|(_, step)| !matches!(step.end, End::Results(_))) {
        let end = start(number, Some(index))?;
        judge(step, &end).map_err(|why| format!("line {}: {why}", step.line))?;
    }
    Ok(steps.len())
}

/// Starts a process for a file, and waits for it to end.
fn start(number: usize, step: Option<usize>) -> Result<Epitaph, String> {
    let failed = |error: &dyn core::fmt::Display| format!("no process can be started: {error}");
    let child = process::create(PROGRAM).map_err(|error| failed(&error))?;
    let child = child.parameter(FILE, &number.to_string());
    let child = match step {
        Some(step) => child.and_then(|child| child.parameter(STEP, &step.to_string())),
        None => child,
    };
    child.and_then(Child::start).and_then(|child| child.wait()).map_err(|error| failed(&error.text()))
}

/// Whether a process ended as its last step must.
fn judge(step: &Step, end: &Epitaph) -> Result<(), String> {
    let is_so = match &step.end {
        End::Results(_) => end.is_success(),
        End::Trap(kind) => {
            matches!(end.kind, EpitaphKind::Panicked | EpitaphKind::Faulted) && end.text.contains(kind.as_str())
        }
        End::Exhaustion => end.kind == EpitaphKind::StackOverflow,
    };
    if is_so {
        return Ok(());
    }
    let wanted = match &step.end {
        End::Trap(kind) => kind.as_str(),
        _ => "a stack that is used up",
    };
    match end.kind {
        EpitaphKind::Exited if end.status == RETURNED => Err(format!("it returned, instead of {wanted}")),
        _ => Err(format!("{end}, instead of {wanted}")),
    }
}
