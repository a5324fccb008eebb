//! Contract and state of each message in a trace.
//!
//! A trace has the tag of each message and the handle of its endpoint. What contract that has, and the state that it is
//! in at last, is known of endpoints that were closed or held at death; the states before follow from the contract,
//! backwards. Deliberately not here: endpoints that were passed on in messages, of which nothing is kept.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use sip::diagnostics::{Automaton, HeldEndpoint, NO_TRANSITION, TraceKind, TraceRecord};

/// Contracts by their index in the kernel's list.
pub type Contracts = BTreeMap<u32, Automaton>;

/// A message of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// Name of the contract.
    pub contract: String,
    /// Name of the message.
    pub name: String,
    /// Name of the state in which it was sent or received, if only one leads to what followed.
    pub state: Option<String>,
}

/// Reads the contracts that these records refer to from the kernel. Those that it does not tell are left out.
pub fn contracts_of(records: &[TraceRecord]) -> Contracts {
    let mut contracts = Contracts::new();
    for (_, held) in records.iter().filter_map(endpoint_of) {
        if !contracts.contains_key(&held.contract)
            && let Ok(Some(automaton)) = sip::diagnostics::contract(held.contract as usize)
        {
            contracts.insert(held.contract, automaton);
        }
    }
    contracts
}

/// Handle and state of an endpoint that was closed or held.
fn endpoint_of(record: &TraceRecord) -> Option<(u64, HeldEndpoint)> {
    let known = [TraceKind::EndpointClosed, TraceKind::HeldEndpoint];
    let kind = TraceKind::from_number(record.kind).filter(|kind| known.contains(kind));
    kind.map(|_| (record.a, HeldEndpoint::from_word(record.b)))
}

/// Returns the message of each record, as far as it is one and its contract is known.
pub fn messages(records: &[TraceRecord], contracts: &Contracts) -> Vec<Option<Message>> {
    // By handle: the contract, and the state after the event that is looked at.
    let mut known: BTreeMap<u64, (u32, Option<u16>)> = BTreeMap::new();
    let mut found: Vec<Option<Message>> = records
        .iter()
        .rev()
        .map(|record| {
            if let Some((handle, held)) = endpoint_of(record) {
                known.insert(handle, (held.contract, Some(held.state)));
                return None;
            }
            let is_message = [TraceKind::Sent as u64, TraceKind::Received as u64].contains(&record.kind);
            let (contract, after) = known.get_mut(&record.a).filter(|_| is_message)?;
            let automaton = contracts.get(contract)?;
            let tag = usize::try_from(record.b).ok()?;
            let before = after.and_then(|after| state_before(automaton, tag, after));
            *after = before;
            Some(Message {
                contract: automaton.name.clone(),
                name: automaton.messages.get(tag)?.name.clone(),
                state: before.and_then(|state| Some(automaton.states.get(usize::from(state))?.name.clone())),
            })
        })
        .collect();
    found.reverse();
    found
}

/// Returns the only state from which this message leads to a state; `None` if there are several or none.
fn state_before(automaton: &Automaton, tag: usize, after: u16) -> Option<u16> {
    let leads = |row: &sip::diagnostics::StateRow| {
        row.next.get(tag).is_some_and(|&next| next == after && next != NO_TRANSITION)
    };
    let mut states = automaton.states.iter().enumerate().filter(|(_, row)| leads(row));
    let only = states.next().filter(|_| states.next().is_none());
    only.and_then(|(state, _)| u16::try_from(state).ok())
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use sip::diagnostics::{Direction, MessageShape, StateRow};

    use super::*;

    const CONTRACT: u32 = 3;

    fn contract() -> Contracts {
        let message = |name: &str, direction| MessageShape {
            name: String::from(name),
            direction,
            scalar_words: 0,
            ranges: vec![],
            blocks: vec![],
            endpoints: vec![],
        };
        let state = |name: &str, next: [u16; 3]| StateRow { name: String::from(name), next: next.to_vec() };
        let automaton = Automaton {
            name: String::from("Work"),
            queue_to_importer: 1,
            queue_to_exporter: 1,
            messages: vec![
                message("Do", Direction::ToExporter),
                message("Done", Direction::ToImporter),
                message("Failed", Direction::ToImporter),
            ],
            states: vec![
                state("START", [1, NO_TRANSITION, NO_TRANSITION]),
                state("BUSY", [NO_TRANSITION, 0, 2]),
                state("BROKEN", [1, NO_TRANSITION, NO_TRANSITION]),
            ],
        };
        Contracts::from([(CONTRACT, automaton)])
    }

    fn event(kind: TraceKind, a: u64, b: u64) -> TraceRecord {
        TraceRecord { sequence: 0, kind: kind as u64, a, b, time_ns: 0 }
    }

    fn held(state: u16) -> u64 {
        HeldEndpoint { contract: CONTRACT, state, is_importer: false }.word()
    }

    fn told(records: &[TraceRecord]) -> Vec<Option<(String, Option<String>)>> {
        let known = messages(records, &contract());
        known.into_iter().map(|message| message.map(|message| (message.name, message.state))).collect()
    }

    fn message(name: &str, state: Option<&str>) -> Option<(String, Option<String>)> {
        Some((String::from(name), state.map(String::from)))
    }

    #[test]
    fn states_follow_backwards_from_the_last() {
        let records = [
            event(TraceKind::Received, 7, 0),
            event(TraceKind::Sent, 7, 1),
            event(TraceKind::Received, 7, 0),
            event(TraceKind::HeldEndpoint, 7, held(1)),
        ];
        // Two states lead to BUSY by `Do`, and what was before is not known then.
        assert_eq!(told(&records), [message("Do", None), message("Done", None), message("Do", None), None]);
        let records = [
            event(TraceKind::Received, 7, 0),
            event(TraceKind::Sent, 7, 2),
            event(TraceKind::EndpointClosed, 7, held(2)),
        ];
        assert_eq!(told(&records), [message("Do", None), message("Failed", Some("BUSY")), None]);
    }

    #[test]
    fn nothing_is_told_of_endpoints_and_contracts_that_are_not_known() {
        let records = [event(TraceKind::Sent, 8, 1), event(TraceKind::HeldEndpoint, 7, held(1))];
        assert_eq!(told(&records), [None, None]);
        let other = HeldEndpoint { contract: 9, state: 0, is_importer: true }.word();
        assert_eq!(told(&[event(TraceKind::Sent, 7, 1), event(TraceKind::HeldEndpoint, 7, other)]), [None, None]);
        assert_eq!(told(&[event(TraceKind::Sent, 7, 99), event(TraceKind::HeldEndpoint, 7, held(1))]), [None, None]);
    }
}
