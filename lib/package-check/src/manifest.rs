//! Limits of manifests.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use abi::Automaton;
use manifest_model::{MEMORY_END, Manifest, PORTS_END, Source, is_name, is_path, is_program_name, may_give};

use crate::sha256;

pub(crate) const NO_PUBLISHER: &str = "the publisher's name is not of the form [a-z][a-z0-9-]*";

pub(crate) fn unless(good: bool, what: &str) -> Result<(), String> {
    if good { Ok(()) } else { Err(String::from(what)) }
}

/// Limits that even a signed manifest must respect: publishers err.
pub(crate) fn sound(manifest: &Manifest) -> Result<(), String> {
    unless(
        is_program_name(&manifest.name),
        "the program's name is the system's own, or not of the form [a-z][a-z0-9-]*",
    )?;
    unless(is_name(&manifest.publisher), NO_PUBLISHER)?;
    unless(manifest.code.template().is_none_or(is_name), "its template is not of the form [a-z][a-z0-9-]*")?;
    let lists = [
        manifest.contracts.len(),
        manifest.endpoints.len(),
        manifest.parameters.len(),
        manifest.provides.len(),
        manifest.devices.len(),
    ];
    unless(lists.iter().all(|&length| length <= LIST_MAX), "a list has more than 256 entries")?;
    let mut automata = Vec::new();
    for contract in &manifest.contracts {
        let name = &contract.name;
        let automaton = Automaton::decode(&contract.automaton)
            .map_err(|error| format!("the automaton of contract `{name}` at byte {}: {}", error.offset, error.what))?;
        if automaton.name != *name || sha256(&contract.automaton) != contract.fingerprint {
            return Err(format!("the automaton of contract `{name}` is not the one that its fingerprint says"));
        }
        automata.push(automaton);
    }
    unless(distinct(manifest.contracts.iter().map(|contract| &contract.name)), "a contract is listed twice")?;
    for slot in &manifest.endpoints {
        let name = &slot.name;
        let automaton = automata
            .get(slot.contract as usize)
            .ok_or_else(|| format!("the endpoint `{name}` names no contract of the list"))?;
        if !may_give(automaton, slot.state) {
            return Err(format!("the endpoint `{name}` is in a state in which it cannot be given away"));
        }
        if let Source::Path(path) = &slot.source {
            unless(is_path(path), "an endpoint's path is not absolute")?;
        }
    }
    for provide in &manifest.provides {
        unless(is_path(&provide.path), "a provided path is not absolute")?;
        unless((provide.contract as usize) < automata.len(), "a provided path names no contract of the list")?;
    }
    for device in &manifest.devices {
        let lists = [device.ports.len(), device.memory.len(), device.interrupts.len()];
        unless(lists.iter().all(|&length| length <= LIST_MAX), "a device has more than 256 ranges or interrupts")?;
        let ports = device.ports.iter().all(|range| range.is_within(PORTS_END));
        let memory = device.memory.iter().all(|range| range.is_within(MEMORY_END));
        unless(ports && memory, "a device has a range of addresses that no machine has")?;
    }
    for parameter in &manifest.parameters {
        let fits = parameter.default.as_ref().is_none_or(|default| default.kind() == parameter.kind);
        if !fits {
            return Err(format!("the default of parameter `{}` is not of its type", parameter.name));
        }
    }
    unless(distinct(manifest.endpoints.iter().map(|slot| &slot.name)), "two endpoints have the same name")?;
    unless(distinct(manifest.parameters.iter().map(|parameter| &parameter.name)), "two parameters have the same name")?;
    manifest.quota.check().map_err(String::from)
}

/// Maximum entries of a list.
const LIST_MAX: usize = 256;

fn distinct<'s>(names: impl Iterator<Item = &'s String>) -> bool {
    let mut names: Vec<&String> = names.collect();
    names.sort();
    names.windows(2).all(|pair| pair[0] != pair[1])
}
