//! Draws a contract's messages and states as a diagram.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::String;
use alloc::vec::Vec;

use sip::Status;
use sip::diagnostics::{Automaton, name_tag};
use stdio::{Output, report};

sip::startup!();

/// Prints the diagram; without a name, lists the contracts that installed programs use.
pub fn main(startup: Startup) -> i32 {
    let text = match &startup.name {
        None => all_names(),
        Some(name) => draw(name),
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

/// Visits contracts until `each` returns true.
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

/// Returns the diagram; empty if no such contract exists.
fn draw(name: &str) -> Result<String, Status> {
    let mut all = Vec::new();
    for_each(|automaton| {
        all.push(automaton);
        false
    })?;
    let named = |tag| all.iter().find(|other| name_tag(&other.name) == tag).map(|other| other.name.clone());
    let found = all.iter().find(|automaton| automaton.name.eq_ignore_ascii_case(name));
    Ok(found.map(|automaton| contract_diagram::render(automaton, named)).unwrap_or_default())
}
