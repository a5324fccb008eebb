//! Finding processes among the system's records, by id or by the name of their program.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sip::diagnostics::{ProcessRecord, ProcessState, name};

/// The processes that a person means by a process id or a program's name.
pub fn select<'a>(all: &'a [ProcessRecord], target: &str) -> Vec<&'a ProcessRecord> {
    match target.parse::<u64>() {
        Ok(id) => all.iter().filter(|process| process.id == id).collect(),
        Err(_) => all.iter().filter(|process| name(&process.name) == target).collect(),
    }
}

/// What to say where [`select`] finds nothing.
pub fn none(target: &str) -> String {
    format!("no process has the id or name `{target}`; `ps` lists them")
}

/// The word for a process's state.
pub fn state_word(state: u64) -> &'static str {
    ProcessState::from_number(state).map_or("unknown", ProcessState::text)
}

/// A process as people know it: `cat (17)`; what no record tells is `nobody`.
pub fn title(all: &[ProcessRecord], id: u64) -> String {
    match all.iter().find(|process| process.id == id) {
        Some(process) => format!("{} ({id})", name(&process.name)),
        None if id == 0 => String::from("nobody"),
        None => format!("({id})"),
    }
}
