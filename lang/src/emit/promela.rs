//! Models of contracts, and of systems of SIPs that use them, for `spin`.
//!
//! A SIP's model has its channels but not its code, so it does anything its contracts allow: it receives on any
//! channel, and sends whenever permitted. One exception is the source of deadlocks: an importer that [`waits_alone`],
//! inside a sequence (awaiting a reply) or for the greeting of a channel that it has bound, waits for that alone. In
//! other named states, and at exporting ends, it waits for all its channels. `spin` then finds circular waits ("invalid
//! end state"), and asserts the queue bounds. A replayed counterexample prints a line for each [`Event`].

use std::collections::BTreeMap;
use std::fmt::Write;

use abi::{Automaton, Direction, NO_TRANSITION, name_tag};

use crate::naming;
use crate::unit::Contract;

/// A channel between two SIPs of a model.
#[derive(Clone, Copy, Debug)]
pub struct SystemChannel<'a> {
    /// The SIP with the importing end.
    pub importer: &'a str,
    /// The SIP with the exporting end.
    pub exporter: &'a str,
    /// Messages and states of its contract.
    pub automaton: &'a Automaton,
    /// Its state at the beginning. In state 0 of a contract in which the exporter greets, the importer binds it first.
    pub state: usize,
    /// The channel whose messages give and return the endpoints of this one. `None`: it is there from the beginning, or
    /// the importer binds it.
    pub given_over: Option<Carrier>,
}

/// A channel over which endpoints of another pass, between the same two programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carrier {
    /// Its index.
    pub channel: usize,
    /// Whether its exporter has the importing end of the other.
    pub is_reversed: bool,
}

/// A step of a counterexample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub deed: Deed,
    /// Whether the importing end acted.
    pub by_importer: bool,
    /// Index of the channel.
    pub channel: usize,
    /// Tag of the message; 0 for a bind.
    pub message: usize,
    /// Whether the SIP then waits for that channel alone.
    pub waits: bool,
}

/// What happens in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// The importer binds the channel.
    Bind,
    /// A message is sent.
    Send,
    /// A message is received.
    Receive,
}

/// Beginning of an event's line.
const EVENT: &str = "@event";

impl Event {
    /// Reads the line of an event; `None` for other output.
    pub fn read(line: &str) -> Option<Event> {
        let mut words = line.trim().strip_prefix(EVENT)?.split_whitespace();
        let deed = match words.next()? {
            "bind" => Deed::Bind,
            "send" => Deed::Send,
            "receive" => Deed::Receive,
            _ => return None,
        };
        let by_importer = words.next()? == "importer";
        let mut number = || words.next()?.parse::<usize>().ok();
        Some(Event { deed, by_importer, channel: number()?, message: number()?, waits: number()? == 1 })
    }

    fn print(&self) -> String {
        let deed = match self.deed {
            Deed::Bind => "bind",
            Deed::Send => "send",
            Deed::Receive => "receive",
        };
        let end = if self.by_importer { "importer" } else { "exporter" };
        format!("printf(\"{EVENT} {deed} {end} {} {} {}\\n\")", self.channel, self.message, u8::from(self.waits))
    }
}

/// Returns whether an importer in this state waits for nothing else: inside a sequence, or for the first message of a
/// channel that it has just bound.
pub fn waits_alone(automaton: &Automaton, state: usize) -> bool {
    is_inside(automaton, state) || (state == 0 && greets(automaton))
}

/// Returns whether an importer of the contract ever waits for an answer.
pub fn has_calls(automaton: &Automaton) -> bool {
    let exporter = |state: usize| automaton.sender_in(number(state)) == Some(Direction::ToImporter);
    (0..automaton.states.len()).any(|state| waits_alone(automaton, state) && exporter(state))
}

/// Returns whether the exporter sends first, once, in a contract in which the importer then has the initiative.
fn greets(automaton: &Automaton) -> bool {
    let sender = |state: usize| automaton.sender_in(number(state));
    let returns = automaton.states.iter().any(|row| row.next.contains(&0));
    let mut named = (1..automaton.states.len()).filter(|&state| !is_inside(automaton, state));
    sender(0) == Some(Direction::ToImporter)
        && !returns
        && named.any(|state| sender(state) == Some(Direction::ToExporter))
}

/// Inner states of sequences have no name of their own.
fn is_inside(automaton: &Automaton, state: usize) -> bool {
    automaton.states.get(state).is_some_and(|row| row.name.contains(' '))
}

fn number(state: usize) -> u16 {
    u16::try_from(state).unwrap_or(NO_TRANSITION)
}

/// Emits a model of one channel between two SIPs.
pub fn emit_promela(contract: &Contract) -> String {
    let automaton = &contract.automaton;
    emit_promela_system(&[SystemChannel {
        importer: "importer",
        exporter: "exporter",
        automaton,
        state: 0,
        given_over: None,
    }])
}

/// Emits a model of SIPs and the channels between them.
pub fn emit_promela_system(channels: &[SystemChannel<'_>]) -> String {
    let mut out = String::from(
        "/* Check with: spin -a FILE && cc -O2 -DSAFETY -o pan pan.c && ./pan\n   \
         For more states than fit memory: cc -O2 -DSAFETY -DBITSTATE -o pan pan.c */\n",
    );
    let automata: BTreeMap<&str, &Automaton> =
        channels.iter().map(|channel| (channel.automaton.name.as_str(), channel.automaton)).collect();
    for automaton in automata.values() {
        constants(&mut out, automaton);
    }
    let mut sips: BTreeMap<&str, Vec<End<'_>>> = BTreeMap::new();
    for (number, channel) in channels.iter().enumerate() {
        let automaton = channel.automaton;
        let start = if is_closed_first(channel) { "-1".into() } else { channel.state.to_string() };
        // One slot more than the bound, so that an excess message is detected and not merely delayed.
        let _ = writeln!(
            out,
            "\n/* {}: {} -> {} */\nchan to_exporter_{number} = [{}] of {{ short }};\nchan to_importer_{number} = [{}] of {{ short }};\n\
             short imp_{number} = {start};\nshort exp_{number} = {start};",
            automaton.name,
            channel.importer,
            channel.exporter,
            automaton.queue_to_exporter + 1,
            automaton.queue_to_importer + 1
        );
        if channel.given_over.is_some() {
            let _ = writeln!(out, "byte given_{number} = 0;");
        }
        for importer in [true, false] {
            let sip = if importer { channel.importer } else { channel.exporter };
            sips.entry(sip).or_default().push(End { number, importer, channel: *channel, all: channels });
        }
    }
    for (number, (sip, ends)) in sips.iter().enumerate() {
        // The number disambiguates names that differ in characters not allowed in models.
        process(&mut out, &format!("sip_{number}_{}", identifier(sip)), ends);
    }
    out
}

/// A channel that the importer binds, or that another's messages give.
fn is_closed_first(channel: &SystemChannel<'_>) -> bool {
    channel.given_over.is_some() || (channel.state == 0 && greets(channel.automaton))
}

/// An end of a channel in a SIP's model.
struct End<'a> {
    number: usize,
    importer: bool,
    channel: SystemChannel<'a>,
    all: &'a [SystemChannel<'a>],
}

fn identifier(name: &str) -> String {
    name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect()
}

fn message_name(automaton: &Automaton, tag: usize) -> String {
    let message = automaton.messages.get(tag).map_or("", |message| message.name.as_str());
    format!("{}_{}", identifier(&automaton.name), identifier(message))
}

/// Numbers of messages; an `mtype` is limited to 255 values for all contracts together.
fn constants(out: &mut String, automaton: &Automaton) {
    let _ = writeln!(out, "\n/* contract {} */", automaton.name);
    for tag in 0..automaton.messages.len() {
        let _ = writeln!(out, "#define {} {tag}", message_name(automaton, tag));
    }
}

fn process(out: &mut String, sip: &str, ends: &[End<'_>]) {
    let _ = writeln!(out, "\nactive proctype {sip}() {{");
    out.push_str("end_idle:\n  do\n");
    for end in ends {
        end.bind(out);
        end.options(out, Waiting::Anywhere);
    }
    out.push_str("  od;\n");
    for end in ends.iter().filter(|end| end.calls()) {
        let _ = writeln!(out, "{}:\n  do", end.call_label());
        end.options(out, Waiting::ForAnAnswer);
        out.push_str("  od;\n");
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

impl<'a> End<'a> {
    fn automaton(&self) -> &'a Automaton {
        self.channel.automaton
    }

    fn variable(&self) -> String {
        format!("{}_{}", if self.importer { "imp" } else { "exp" }, self.number)
    }

    fn call_label(&self) -> String {
        format!("call_{}_{}", self.variable(), naming::snake(&self.automaton().name))
    }

    fn sends_in(&self, state: usize) -> bool {
        let own = if self.importer { Direction::ToExporter } else { Direction::ToImporter };
        self.automaton().sender_in(number(state)) == Some(own)
    }

    /// Whether this end, in this state, waits for nothing else.
    fn is_call(&self, state: usize) -> bool {
        self.importer && waits_alone(self.automaton(), state)
    }

    fn calls(&self) -> bool {
        (0..self.automaton().states.len()).any(|state| self.is_call(state))
    }

    /// The importer binds a channel: the first time, and again after the conversation is over.
    fn bind(&self, out: &mut String) {
        if !self.importer || self.channel.given_over.is_some() {
            return;
        }
        let event = |waits| Event { deed: Deed::Bind, by_importer: true, channel: self.number, message: 0, waits };
        let (imp, exp) = (self.variable(), format!("exp_{}", self.number));
        let jump = if self.is_call(0) { format!("; goto {}", self.call_label()) } else { String::new() };
        let open = format!("{}; {imp} = 0; {exp} = 0{jump}", event(self.is_call(0)).print());
        if is_closed_first(&self.channel) {
            let _ = writeln!(out, "  :: atomic {{ {imp} == -1 -> {open} }}");
        }
        for (state, row) in self.automaton().states.iter().enumerate() {
            if row.next.iter().all(|next| *next == NO_TRANSITION) {
                let _ = writeln!(out, "  :: atomic {{ {imp} == {state} && {exp} == {state} -> {open} }}");
            }
        }
    }

    fn options(&self, out: &mut String, waiting: Waiting) {
        let automaton = self.automaton();
        let variable = self.variable();
        for (state, row) in automaton.states.iter().enumerate() {
            if self.is_call(state) != (waiting == Waiting::ForAnAnswer) {
                continue;
            }
            for (tag, &next) in row.next.iter().enumerate().filter(|(_, next)| **next != NO_TRANSITION) {
                let calls = self.is_call(usize::from(next));
                let jump = match (waiting, calls) {
                    (Waiting::Anywhere, true) => format!("; goto {}", self.call_label()),
                    (Waiting::ForAnAnswer, false) => "; goto end_idle".into(),
                    _ => String::new(),
                };
                let deed = if self.sends_in(state) { Deed::Send } else { Deed::Receive };
                let event =
                    Event { deed, by_importer: self.importer, channel: self.number, message: tag, waits: calls };
                let passed = self.passed(tag, deed);
                let (message, event) = (message_name(automaton, tag), event.print());
                let (guard, effect) = (passed.guard, passed.effect);
                let queue = if self.importer == (deed == Deed::Send) { "to_exporter" } else { "to_importer" };
                let queue = format!("{queue}_{}", self.number);
                let _ = match deed {
                    Deed::Send => {
                        let bound =
                            if self.importer { automaton.queue_to_exporter } else { automaton.queue_to_importer };
                        writeln!(
                            out,
                            "  :: atomic {{ {variable} == {state}{guard} -> {queue}!{message}; assert(len({queue}) <= {bound}); {event}{effect}; {variable} = {next}{jump} }}"
                        )
                    }
                    _ => writeln!(
                        out,
                        "  :: atomic {{ {variable} == {state} && {queue}?[{message}] -> {queue}?{message}; {event}{effect}; {variable} = {next}{jump} }}"
                    ),
                };
            }
        }
    }

    /// Returns what a message of this channel does to channels whose endpoints it carries.
    fn passed(&self, tag: usize, deed: Deed) -> Passed {
        let mut passed = Passed::default();
        let Some(shape) = self.automaton().messages.get(tag) else { return passed };
        let to_importer = shape.direction == Direction::ToImporter;
        for (given, channel) in self.all.iter().enumerate() {
            let Some(carrier) = channel.given_over.filter(|carrier| carrier.channel == self.number) else { continue };
            let carried =
                shape.endpoints.iter().find(|endpoint| endpoint.contract == name_tag(&channel.automaton.name));
            let Some(endpoint) = carried else { continue };
            // Whether the receiver of the message is the one that has the importing end of the given channel.
            let receiver_imports = to_importer != carrier.is_reversed;
            let gives = endpoint.importer == receiver_imports;
            let (mine, state) =
                (if receiver_imports == (deed == Deed::Receive) { "imp" } else { "exp" }, endpoint.state);
            passed.add(given, gives, mine, if state == NO_TRANSITION { 0 } else { state }, deed);
        }
        passed
    }
}

/// Conditions and effects of a message on channels whose endpoints it carries. A count tells whether there may be
/// several such channels, which then stay: one of the model stands for all of them.
#[derive(Default)]
struct Passed {
    guard: String,
    effect: String,
}

impl Passed {
    fn add(&mut self, channel: usize, gives: bool, end: &str, state: u16, deed: Deed) {
        let (variable, count) = (format!("{end}_{channel}"), format!("given_{channel}"));
        let idle = format!("len(to_exporter_{channel}) == 0 && len(to_importer_{channel}) == 0");
        let _ = match (gives, deed) {
            (true, Deed::Send) => write!(
                self.effect,
                "; if :: {count} == 0 -> {count} = 1; {variable} = {state} :: else -> {count} = 2 fi"
            ),
            (true, _) => write!(self.effect, "; if :: {variable} == -1 -> {variable} = {state} :: else -> skip fi"),
            (false, Deed::Send) => {
                let returned = format!("{variable} == {state} && {idle}");
                let _ = write!(self.guard, " && ({count} == 2 || ({count} == 1 && {returned}))");
                write!(self.effect, "; if :: {count} == 1 -> {variable} = -1 :: else -> skip fi")
            }
            (false, _) => {
                write!(self.effect, "; if :: {count} == 1 -> {variable} = -1; {count} = 0 :: else -> skip fi")
            }
        };
    }
}
