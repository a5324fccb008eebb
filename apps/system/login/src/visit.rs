//! The shell of a login session.

use alloc::format;
use alloc::string::{String, ToString};

use client::namespace::Namespace;
use sip::Status;
use sip::process::{self, Epitaph};

use crate::prompt;

/// Runs the shell in the role until it ends.
///
/// # Errors
///
/// A sentence, if it could not be started.
pub fn shell(namespace: &mut Namespace, program: &str, role: &str, commands: Option<&str>) -> Result<Epitaph, String> {
    let failed = |status: Status| format!("{program}: cannot start: {}", status.text());
    let manifest =
        client::programs::manifest(program).map_err(failed)?.ok_or_else(|| format!("{program}: no such program"))?;
    let lacks = |what: &str| format!("{program}: it has no {what}, so it is not a shell");
    let slot = |name: &str| manifest.endpoint(name).map(|(slot, _)| slot).ok_or_else(|| lacks(name));
    let mut child = process::create(program)
        .map_err(|error| format!("{program}: cannot start: {error}"))?
        .invoke_in_role(role)
        .map_err(failed)?;
    let root = namespace.open_directory("/").map_err(|error| error.to_string())?;
    let root = root.into_endpoint().ok_or_else(|| failed(Status::Closed))?;
    child = child.endpoint(slot("namespace")?, root).map_err(failed)?;
    let console = prompt::open_console(namespace).map_err(|error| error.to_string())?;
    child = child.endpoint(slot("console")?, console).map_err(failed)?;
    if let Some(commands) = commands {
        let (index, _) = manifest.parameter("commands").ok_or_else(|| lacks("parameter `commands`"))?;
        child = child.parameter(index, commands).map_err(failed)?;
    }
    child.start().and_then(|child| child.wait()).map_err(failed)
}
