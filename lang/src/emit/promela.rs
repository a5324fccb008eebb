//! Models of contracts, and of systems of SIPs that use them, for `spin`.
//!
//! A SIP's model has its channels but not its code, so it does anything its contracts allow: it receives on any
//! channel, and sends whenever permitted. One exception is the source of deadlocks: an importer in a state inside a
//! sequence (awaiting a reply) waits for that alone. In named states, and at exporting ends, it waits for all its
//! channels. `spin` then finds circular waits ("invalid end state"), and asserts the queue bounds.

use std::collections::BTreeMap;
use std::fmt::Write;

use abi::{Direction, NO_TRANSITION};

use crate::naming;
use crate::unit::Contract;

/// A channel of a system.
#[derive(Clone, Copy, Debug)]
pub struct SystemChannel<'a> {
    /// The SIP with the importing end.
    pub importer: &'a str,
    /// The SIP with the exporting end.
    pub exporter: &'a str,
    /// Its contract.
    pub contract: &'a Contract,
}

/// Emits a model of one channel between two SIPs.
pub fn emit_promela(contract: &Contract) -> String {
    emit_promela_system(&[SystemChannel { importer: "importer", exporter: "exporter", contract }])
}

/// Emits a model of SIPs and the channels between them.
pub fn emit_promela_system(channels: &[SystemChannel<'_>]) -> String {
    let mut out = String::from(
        "/* Check with: spin -a FILE && cc -O2 -DSAFETY -o pan pan.c && ./pan\n   \
         For more states than fit memory: cc -O2 -DSAFETY -DBITSTATE -o pan pan.c */\n",
    );
    let mut contracts: BTreeMap<&str, &Contract> = BTreeMap::new();
    for channel in channels {
        contracts.insert(&channel.contract.name, channel.contract);
    }
    for contract in contracts.values() {
        constants(&mut out, contract);
    }
    let mut sips: BTreeMap<&str, Vec<End>> = BTreeMap::new();
    for (number, channel) in channels.iter().enumerate() {
        let automaton = &channel.contract.automaton;
        // One slot more than the bound, so that an excess message is detected and not merely delayed.
        let _ = writeln!(
            out,
            "\n/* {}: {} -> {} */\nchan to_exporter_{number} = [{}] of {{ short }};\nchan to_importer_{number} = [{}] of {{ short }};",
            channel.contract.name,
            channel.importer,
            channel.exporter,
            automaton.queue_to_exporter + 1,
            automaton.queue_to_importer + 1
        );
        for importer in [true, false] {
            let sip = if importer { channel.importer } else { channel.exporter };
            let ends = sips.entry(sip).or_default();
            ends.push(End { number, importer, contract: channel.contract });
        }
    }
    for (number, (sip, ends)) in sips.iter().enumerate() {
        // The number disambiguates names that differ in characters not allowed in models.
        process(&mut out, &format!("sip_{number}_{}", identifier(sip)), ends);
    }
    out
}

/// An end of a channel in a SIP's model.
struct End<'a> {
    number: usize,
    importer: bool,
    contract: &'a Contract,
}

fn identifier(name: &str) -> String {
    name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect()
}

fn message_name(contract: &Contract, tag: usize) -> String {
    format!("{}_{}", identifier(&contract.name), identifier(&contract.messages[tag].name))
}

fn state_name(contract: &Contract, state: usize) -> String {
    format!("{}_in_{}", identifier(&contract.name), identifier(&contract.states[state].rust_name))
}

/// Numbers of messages and states; an `mtype` is limited to 255 values for all contracts together.
fn constants(out: &mut String, contract: &Contract) {
    let _ = writeln!(out, "\n/* contract {} */", contract.name);
    for tag in 0..contract.messages.len() {
        let _ = writeln!(out, "#define {} {tag}", message_name(contract, tag));
    }
    for state in 0..contract.states.len() {
        let _ = writeln!(out, "#define {} {state}", state_name(contract, state));
    }
}

fn process(out: &mut String, sip: &str, ends: &[End<'_>]) {
    let _ = writeln!(out, "\nactive proctype {sip}() {{");
    for end in ends {
        let _ = writeln!(out, "  short {} = 0;", end.variable());
    }
    out.push_str("end_idle:\n  do\n");
    for end in ends {
        end.options(out, Waiting::Anywhere);
    }
    out.push_str("  od;\n");
    for end in ends.iter().filter(|end| end.calls()) {
        let _ = writeln!(out, "{}:\n  do", end.call_label());
        end.options(out, Waiting::ForAnAnswer);
        out.push_str("  :: else -> goto end_idle\n  od;\n");
    }
    out.push_str("}\n");
}

/// The states that a process loop handles.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waiting {
    /// All but those that await a reply.
    Anywhere,
    /// Those that await a reply, and their continuation.
    ForAnAnswer,
}

impl End<'_> {
    fn variable(&self) -> String {
        format!("{}_{}", if self.importer { "imp" } else { "exp" }, self.number)
    }

    fn call_label(&self) -> String {
        format!("call_{}_{}", self.variable(), naming::snake(&self.contract.name))
    }

    fn sends_in(&self, state: usize) -> bool {
        let own = if self.importer { Direction::ToExporter } else { Direction::ToImporter };
        self.contract.automaton.sender_in(state as u16) == Some(own)
    }

    /// Whether this end, in this state, waits for nothing else.
    fn is_call(&self, state: usize) -> bool {
        self.importer && self.contract.states[state].intermediate
    }

    fn calls(&self) -> bool {
        (0..self.contract.states.len()).any(|state| self.is_call(state))
    }

    fn options(&self, out: &mut String, waiting: Waiting) {
        let variable = self.variable();
        let channel =
            |to_importer: bool| format!("{}_{}", if to_importer { "to_importer" } else { "to_exporter" }, self.number);
        let automaton = &self.contract.automaton;
        for (state, row) in automaton.states.iter().enumerate() {
            if self.is_call(state) != (waiting == Waiting::ForAnAnswer) {
                continue;
            }
            for (tag, &next) in row.next.iter().enumerate().filter(|(_, next)| **next != NO_TRANSITION) {
                let here = state_name(self.contract, state);
                let (message, there) = (message_name(self.contract, tag), state_name(self.contract, next as usize));
                let leads_to_call = waiting == Waiting::Anywhere && self.is_call(next as usize);
                let jump = if leads_to_call { format!("; goto {}", self.call_label()) } else { String::new() };
                if self.sends_in(state) {
                    let queue = channel(!self.importer);
                    let bound = if self.importer { automaton.queue_to_exporter } else { automaton.queue_to_importer };
                    let _ = writeln!(
                        out,
                        "  :: atomic {{ {variable} == {here} -> {queue}!{message}; assert(len({queue}) <= {bound}); {variable} = {there}{jump} }}"
                    );
                } else {
                    let queue = channel(self.importer);
                    let _ = writeln!(
                        out,
                        "  :: atomic {{ {variable} == {here} && {queue}?[{message}] -> {queue}?{message}; {variable} = {there}{jump} }}"
                    );
                }
            }
        }
    }
}
