//! Listings 1 and 2 of "Rethinking the Software Stack": as printed they compile, to the contracts that they mean.

use std::collections::BTreeSet;

use abi::{Automaton, NO_TRANSITION};
use lang::SourceFile;

/// As printed, except for parts lost in print and elided arguments.
const AS_PRINTED: [&str; 2] =
    [include_str!("fixtures/c102_missing_brace.contract"), include_str!("fixtures/c101_exclamation_arrow.contract")];

fn automata(text: &str) -> Vec<Automaton> {
    let compiled = lang::compile(&[SourceFile::new("listing.contract", text)]);
    let rendered = compiled.render(lang::Colours::Never);
    let unit = compiled.unit.unwrap_or_else(|| panic!("{rendered}"));
    unit.contracts.into_iter().map(|contract| contract.automaton).collect()
}

/// Follows messages from the start state; returns the name of the state reached.
fn walk<'a>(automaton: &'a Automaton, messages: &[&str]) -> Option<&'a str> {
    let mut state = 0;
    for name in messages {
        let tag = automaton.messages.iter().position(|message| message.name == *name)?;
        state = *automaton.states.get(state as usize)?.next.get(tag)?;
        if state == NO_TRANSITION {
            return None;
        }
    }
    Some(&automaton.states[state as usize].name)
}

/// All transitions by names, without those of some messages and those of states that only they lead to.
fn steps(automaton: &Automaton, without: &[&str]) -> BTreeSet<(String, String, String)> {
    let mut steps = BTreeSet::new();
    let mut open = vec![0];
    let mut seen = BTreeSet::new();
    while let Some(state) = open.pop() {
        if !seen.insert(state) {
            continue;
        }
        let from = &automaton.states[state as usize];
        for (message, &to) in automaton.messages.iter().zip(&from.next) {
            if to != NO_TRANSITION && !without.contains(&message.name.as_str()) {
                let to_name = automaton.states[to as usize].name.clone();
                steps.insert((from.name.clone(), message.name.clone(), to_name));
                open.push(to);
            }
        }
    }
    steps
}

#[test]
fn the_network_device_is_configured_and_runs() {
    let automata = automata(AS_PRINTED[0]);
    let device = automata.iter().find(|automaton| automaton.name == "NicDevice").expect("the contract");
    let configure = ["DeviceInfo", "RegisterForEvents", "SetParameters"];
    assert_eq!(walk(device, &configure), Some("IO_CONFIGURE_ACK"));
    let then = |more: &[&'static str]| -> Vec<&str> { configure.iter().chain(more).copied().collect() };
    assert_eq!(walk(device, &then(&["InvalidParameters"])), Some("IO_CONFIGURE_BEGIN"));
    assert_eq!(walk(device, &then(&["Success", "ConfigureIO"])), Some("IO_CONFIGURE_BEGIN"));
    let running = then(&["Success", "StartIO"]);
    assert_eq!(walk(device, &running), Some("IO_RUNNING"));
    for exchange in [
        ["PacketForReceive", "Success"],
        ["PacketForReceive", "BadPacketSize"],
        ["GetReceivedPacket", "ReceivedPacket"],
        ["GetReceivedPacket", "NoPacket"],
    ] {
        let path: Vec<&str> = running.iter().chain(&exchange).copied().collect();
        assert_eq!(walk(device, &path), Some("IO_RUNNING"), "{exchange:?}");
    }
    assert_eq!(walk(device, &then(&["StartIO"])), None);
    // ConfigureIO, RegisterForEvents and SetParameters may all be in flight.
    assert_eq!((device.queue_to_importer, device.queue_to_exporter), (1, 3));
}

#[test]
fn events_are_acknowledged() {
    let automata = automata(AS_PRINTED[1]);
    assert_eq!(walk(&automata[0], &["NicEvent", "AckEvent"]), Some("READY"));
    assert_eq!(walk(&automata[0], &["NicEvent", "NicEvent"]), None);
}

#[test]
fn the_listings_among_the_contracts_are_those_of_the_paper() {
    let text =
        [include_str!("../../contracts/nic_device.contract"), include_str!("../../contracts/nic_events.contract")];
    let sources = text.map(|text| SourceFile::new("nic.contract", text));
    let compiled = lang::compile(&sources);
    assert!(compiled.diagnostics.is_empty(), "{}", compiled.render(lang::Colours::Never));
    let unit = compiled.unit.expect("there are no errors");
    let printed = automata(AS_PRINTED[0]);
    let device = &unit.contract("NicDevice").expect("the contract").automaton;
    let elided = ["PacketForTransmit", "GetTransmittedPacket", "TransmittedPacket"];
    let batches = ["Exchange", "Exchanged"];
    let further = [elided.as_slice(), &batches].concat();
    assert_eq!(
        steps(device, &further),
        steps(&printed[0], &[]),
        "only arguments differ, what the paper elides, and batches"
    );
    let events = &unit.contract("NicEvents").expect("the contract").automaton;
    assert_eq!(events.states, automata(AS_PRINTED[1])[0].states);
}
