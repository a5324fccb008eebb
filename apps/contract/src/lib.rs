//! Shows a contract's messages and states as a diagram.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod diagram;

use alloc::string::String;

use contracts::pipe_io::Output;
use contracts::report;
use sip::Status;
use sip::diagnostics::Automaton;

sip::startup!();

/// Prints the diagram, or without a name the names of all contracts that installed programs use.
pub fn main(startup: Startup) -> i32 {
    let text = match &startup.name {
        None => all_names(),
        Some(name) => find(name).map(|found| found.as_ref().map(diagram::render)).map(|text| text.unwrap_or_default()),
    };
    match text {
        Ok(text) if text.is_empty() => {
            let name = startup.name.unwrap_or_default();
            report::error(format_args!("no installed program uses a contract `{name}`; `contract` lists all"));
            1
        }
        Ok(text) => {
            let mut output = Output::new(startup.output);
            output.write(text.as_bytes()).map_or(1, |()| output.finish_with(0))
        }
        Err(status) => {
            report::error(format_args!("the contracts cannot be read: {}", status.text()));
            1
        }
    }
}

/// Each contract until `each` has what it looks for.
fn for_each(mut each: impl FnMut(Automaton) -> bool) -> Result<(), Status> {
    let mut index = 0;
    while let Some(automaton) = sip::diagnostics::contract(index)? {
        if each(automaton) {
            return Ok(());
        }
        index += 1;
    }
    Ok(())
}

fn all_names() -> Result<String, Status> {
    let mut names = alloc::collections::BTreeSet::new();
    for_each(|automaton| {
        names.insert(automaton.name + "\n");
        false
    })?;
    Ok(names.into_iter().collect())
}

fn find(name: &str) -> Result<Option<Automaton>, Status> {
    let mut found = None;
    for_each(|automaton| {
        let is_it = automaton.name.eq_ignore_ascii_case(name);
        if is_it {
            found = Some(automaton);
        }
        is_it
    })?;
    Ok(found)
}
