//! The Rust emitter: a module per contract, a type per end and state.
//!
//! Generated code refers to crate `sip` by absolute paths and contains no `unsafe`. The items that it uses there are
//! the whole interface between the two crates.

use abi::NO_TRANSITION;

use super::Side;
use super::needed::Needed;
use super::rust_types::{declare, put_call, received_type, sent_type, take_call};
use crate::naming;
use crate::syntax::Passing;
use crate::unit::{Argument, ArgumentKind, Contract, Message, Unit};

/// Emits Rust source for all contracts and types of a unit, to be included in any module.
pub fn emit_rust(unit: &Unit) -> String {
    emit(unit, Host::Kernel, |_| true, |_| true)
}

/// Emits the bindings of a contract for WebAssembly programs: the same source over the crate `sing-guest`, for this contract
/// and whatever its messages carry. Empty if the unit does not have it.
pub fn emit_rust_guest(unit: &Unit, name: &str) -> String {
    let Some(index) = unit.contracts.iter().position(|contract| contract.name == name) else { return String::new() };
    let needed = Needed::by(unit, index);
    let text =
        emit(unit, Host::Template, |index| needed.contracts.contains(&index), |index| needed.types.contains(&index));
    let head = format!("// Bindings of the contract {name}: cargo sing contract {name} --format wasm-rust\n\n");
    head + &text.replace("::sip::", "::sing_guest::")
}

/// Who performs what bindings call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Host {
    /// The kernel, through the crate `sip`.
    Kernel,
    /// The template of WebAssembly programs, through the crate `sing-guest`, which has no tasks.
    Template,
}

fn emit(unit: &Unit, host: Host, has_contract: impl Fn(usize) -> bool, has_type: impl Fn(usize) -> bool) -> String {
    let mut out = Out::default();
    for (index, declared) in unit.types.iter().enumerate().filter(|(_, declared)| declared.contract.is_none()) {
        if has_type(index) {
            declare(&mut out, unit, declared);
        }
    }
    for (index, contract) in unit.contracts.iter().enumerate().filter(|(index, _)| has_contract(*index)) {
        Emitter { unit, index, contract, host }.module(&mut out);
    }
    out.text
}

/// Indented lines.
#[derive(Default)]
pub struct Out {
    text: String,
    depth: usize,
}

impl Out {
    /// Appends a line.
    pub fn line(&mut self, line: &str) {
        self.text.extend(std::iter::repeat_n(' ', self.depth * 4));
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Appends a line and indents the following ones.
    pub fn open(&mut self, line: &str) {
        self.line(line);
        self.depth += 1;
    }

    /// Ends the indentation, and appends a line.
    pub fn close(&mut self, line: &str) {
        self.depth = self.depth.saturating_sub(1);
        self.line(line);
    }
}

/// Emits documentation as attributes; `otherwise` if there is none.
pub fn documentation(out: &mut Out, lines: &[String], otherwise: &str) {
    if lines.is_empty() {
        out.line(&format!("#[doc = {otherwise:?}]"));
    }
    for line in lines {
        // `///` would have kept this blank.
        let line = if line.is_empty() { String::new() } else { format!(" {line}") };
        out.line(&format!("#[doc = {line:?}]"));
    }
}

struct Emitter<'a> {
    unit: &'a Unit,
    index: usize,
    contract: &'a Contract,
    host: Host,
}

impl Emitter<'_> {
    fn module(&self, out: &mut Out) {
        let name = &self.contract.name;
        documentation(out, &self.contract.documentation, &format!("Contract `{name}`."));
        // A program seldom uses both ends.
        out.line(if self.host == Host::Template {
            "#[allow(clippy::all, dead_code)]"
        } else {
            "#[allow(clippy::all)]"
        });
        out.open(&format!("pub mod {} {{", naming::snake(name)));
        for &index in &self.contract.types {
            declare(out, self.unit, &self.unit.types[index]);
        }
        out.line(&format!("#[doc = \"Contract `{name}` as a type.\"]"));
        out.line(&format!("pub enum {name} {{}}"));
        let fingerprint: Vec<String> = self.contract.fingerprint.iter().map(u8::to_string).collect();
        out.line(&format!("::sip::contract! {{ {name}, {name:?}, [{}] }}", fingerprint.join(", ")));
        self.states(out);
        for side in Side::BOTH {
            self.endpoint(out, side);
        }
        self.new_channel(out);
        if self.host == Host::Template {
            self.open(out);
        }
        for side in Side::BOTH {
            for state in 0..self.contract.states.len() {
                match self.contract.automaton.sender_in(state as u16) {
                    Some(direction) if direction == side.sends() => self.sending_state(out, side, state),
                    Some(_) => self.receiving_state(out, side, state),
                    None => {}
                }
            }
        }
        out.close("}");
    }

    fn states(&self, out: &mut Out) {
        out.line("#[doc = \"The states of a conversation, as types.\"]");
        out.open("pub mod states {");
        for (number, state) in self.contract.states.iter().enumerate() {
            documentation(out, &state.documentation, &format!("State `{}`.", state.name));
            let rust = &state.rust_name;
            out.line(&format!("pub struct {rust};"));
            out.line(&format!(
                "impl ::sip::channel::State for {rust} {{ type Contract = super::{}; const NUMBER: u16 = {number}; \
                 const NAME: &'static str = {:?}; }}",
                self.contract.name, state.name
            ));
        }
        out.close("}");
    }

    fn endpoint(&self, out: &mut Out, side: Side) {
        let (contract, end) = (&self.contract.name, side.rust_name());
        let long = side.long();
        let text = format!(
            "The {long} end of a channel of contract `{contract}`, in state `S`. Sending and receiving take it and give \
             it back in the next state; dropping it closes it, and the peer then receives `ChannelClosed`."
        );
        out.line(&format!("#[doc = {text:?}]"));
        out.line("#[must_use = \"dropping an endpoint closes the channel: keep it to go on with the conversation\"]");
        out.line(&format!(
            "pub struct {end}<S> {{ raw: ::sip::channel::RawEndpoint, state: ::core::marker::PhantomData<S> }}"
        ));
        out.open(&format!(
            "impl<S: ::sip::channel::State<Contract = {contract}>> ::sip::channel::TypedEndpoint for {end}<S> {{"
        ));
        out.line(&format!("type Contract = {contract};"));
        out.line(&format!("const IMPORTER: bool = {};", side == Side::Importer));
        out.line("const STATE: u16 = S::NUMBER;");
        out.line("#[inline]");
        out.line("fn raw(&self) -> &::sip::channel::RawEndpoint { &self.raw }");
        out.line("#[inline]");
        out.line("fn into_raw(self) -> ::sip::channel::RawEndpoint { self.raw }");
        out.line("#[inline]");
        out.line(&format!(
            "fn from_raw(raw: ::sip::channel::RawEndpoint) -> Self {{ {end} {{ raw, state: ::core::marker::PhantomData }} }}"
        ));
        out.close("}");
    }

    fn new_channel(&self, out: &mut Out) {
        let Some(start) = self.contract.states.first() else { return };
        let (imp, exp) = (format!("Imp<states::{}>", start.rust_name), format!("Exp<states::{}>", start.rust_name));
        let name = &self.contract.name;
        let text = format!(
            "Creates a channel in state `{}` and gives both its ends. Fails where the program's manifest does not list \
             `{name}`, or a quota is used up.",
            start.name
        );
        out.line(&format!("#[doc = {text:?}]"));
        out.open(&format!("pub fn new_channel() -> ::core::result::Result<({imp}, {exp}), ::sip::Status> {{"));
        out.line(&format!("let (importer, exporter) = ::sip::channel::create::<{name}>()?;"));
        out.line(
            "::core::result::Result::Ok((Imp { raw: importer, state: ::core::marker::PhantomData }, \
             Exp { raw: exporter, state: ::core::marker::PhantomData }))",
        );
        out.close("}");
    }

    fn open(&self, out: &mut Out) {
        let Some(start) = self.contract.states.first() else { return };
        let name = &self.contract.name;
        let text = format!(
            "Binds a path of the namespace to a new channel in state `{}`, and gives its importing end. Fails where the \
             program's manifest does not list `{name}`, the program may not, or nobody serves `{name}` there.",
            start.name
        );
        out.line(&format!("#[doc = {text:?}]"));
        let imp = format!("Imp<states::{}>", start.rust_name);
        out.open(&format!("pub fn open(path: &str) -> ::core::result::Result<{imp}, ::sip::Status> {{"));
        out.line(&format!("let importer = ::sip::channel::open::<{name}>(path)?;"));
        out.line("::core::result::Result::Ok(Imp { raw: importer, state: ::core::marker::PhantomData })");
        out.close("}");
    }

    /// The messages that may be sent in a state, with their next states.
    fn transitions(&self, state: usize) -> impl Iterator<Item = (usize, &Message, &str)> {
        let row = &self.contract.automaton.states[state].next;
        let possible = row.iter().enumerate().filter(|(_, next)| **next != NO_TRANSITION);
        possible.map(|(tag, &next)| {
            (tag, &self.contract.messages[tag], self.contract.states[next as usize].rust_name.as_str())
        })
    }

    fn sending_state(&self, out: &mut Out, side: Side, state: usize) {
        let end = side.rust_name();
        out.open(&format!("impl {end}<states::{}> {{", self.contract.states[state].rust_name));
        for (tag, message, next) in self.transitions(state) {
            documentation(out, &message.documentation, &format!("Sends `{}`.", message.name));
            let mut parameters = vec!["self".to_string()];
            for argument in &message.arguments {
                let kind = sent_type(self.unit, &argument.kind, self.index);
                parameters.push(format!("{}: {kind}", naming::argument(&argument.name)));
            }
            let puts: String = in_buffer_order(message).iter().map(|argument| self.put(argument)).collect();
            let method = naming::snake(&message.name);
            out.line("#[inline]");
            out.open(&format!("pub fn {method}({}) -> {end}<states::{next}> {{", parameters.join(", ")));
            out.line(&format!(
                "{end} {{ raw: ::sip::channel::Outgoing::new(){puts}.send(self.raw, {tag}), state: ::core::marker::PhantomData }}"
            ));
            out.close("}");
        }
        out.close("}");
    }

    fn put(&self, argument: &Argument) -> String {
        let name = naming::argument(&argument.name);
        match &argument.kind {
            ArgumentKind::Inline(value) => put_call(value, &name),
            ArgumentKind::Block { passing: Passing::Owned, .. } => format!(".block({name})"),
            ArgumentKind::Block { passing: Passing::Lent, .. } => format!(".lend({name})"),
            ArgumentKind::Block { passing: Passing::Returned, .. } => format!(".give_back({name})"),
            ArgumentKind::Endpoint { .. } => format!(".endpoint({name})"),
            ArgumentKind::Any { .. } => format!(".any_endpoint({name}.into())"),
        }
    }

    fn take(&self, argument: &Argument) -> String {
        let name = naming::argument(&argument.name);
        let call = match &argument.kind {
            ArgumentKind::Inline(value) => take_call(value),
            ArgumentKind::Block { passing: Passing::Lent, .. } => "incoming.lent()",
            ArgumentKind::Block { .. } => "incoming.block()",
            ArgumentKind::Endpoint { .. } => "incoming.endpoint()",
            ArgumentKind::Any { .. } => "incoming.any_endpoint()",
        };
        format!("{name}: {call}")
    }

    fn receiving_state(&self, out: &mut Out, side: Side, state: usize) {
        let end = side.rust_name();
        let rust_state = &self.contract.states[state].rust_name;
        let event = format!("{end}{rust_state}");
        self.event(out, side, state, &event);
        let endpoint = format!("{end}<states::{rust_state}>");
        out.open(&format!("impl ::sip::channel::Receiver for {endpoint} {{"));
        out.line(&format!("type Event = {event};"));
        out.line("#[inline]");
        let reads = self.transitions(state).any(|(_, message, _)| !message.arguments.is_empty());
        let mutable = if reads { "mut " } else { "" };
        out.open(&format!("fn finish(self, {mutable}incoming: ::sip::channel::Incoming) -> {event} {{"));
        out.open("match incoming.tag() {");
        for (tag, message, _) in self.transitions(state) {
            let mut fields: Vec<String> = in_buffer_order(message).iter().map(|argument| self.take(argument)).collect();
            fields.push(format!("next: {end} {{ raw: self.raw, state: ::core::marker::PhantomData }}"));
            out.line(&format!("{tag} => {event}::{} {{ {} }},", naming::camel(&message.name), fields.join(", ")));
        }
        out.line("other => ::sip::channel::unexpected(other),");
        out.close("}");
        out.close("}");
        out.line("#[inline]");
        out.line(&format!(
            "fn finish_closed(self, closed: ::sip::channel::Closed) -> {event} {{ {event}::ChannelClosed(closed) }}"
        ));
        out.close("}");
        out.open(&format!("impl {endpoint} {{"));
        let result = format!("::core::result::Result<{event}, Self>");
        for (text, signature, call) in [
            (
                "Blocks until the next message or closure.",
                format!("pub fn receive(self) -> {event}"),
                "::sip::channel::receive(self)",
            ),
            (
                "Blocks until the next message or closure, at most until `deadline`; then returns the endpoint.",
                format!("pub fn receive_by(self, deadline: ::sip::Deadline) -> {result}"),
                "::sip::channel::receive_by(self, deadline)",
            ),
            (
                "Takes the next message or closure if there is one; else returns the endpoint.",
                format!("pub fn try_receive(self) -> {result}"),
                "::sip::channel::try_receive(self)",
            ),
            (
                "Awaits the next message or closure.",
                format!("pub async fn receive_async(self) -> {event}"),
                "::sip::channel::receive_async(self).await",
            ),
        ] {
            if self.host == Host::Template && signature.contains("async") {
                continue;
            }
            out.line(&format!("#[doc = {text:?}]"));
            out.line("#[inline]");
            out.line(&format!("{signature} {{ {call} }}"));
        }
        out.close("}");
    }

    fn event(&self, out: &mut Out, side: Side, state: usize, event: &str) {
        let end = if side == Side::Importer { "importer" } else { "exporter" };
        let text = format!("The messages that the {end} can receive in state `{}`.", self.contract.states[state].name);
        out.line(&format!("#[doc = {text:?}]"));
        out.line("#[must_use = \"a message was received: match on it to go on with the conversation\"]");
        out.open(&format!("pub enum {event} {{"));
        for (_, message, next) in self.transitions(state) {
            documentation(out, &message.documentation, &format!("`{}` came.", message.name));
            out.open(&format!("{} {{", naming::camel(&message.name)));
            for argument in &message.arguments {
                let name = naming::argument(&argument.name);
                let kind = received_type(self.unit, &argument.kind, self.index);
                out.line(&format!("#[doc = \"`{}` of the message.\"]", argument.name));
                out.line(&format!("{name}: {kind},"));
            }
            out.line("#[doc = \"The endpoint, in its next state.\"]");
            out.line(&format!("next: {}<states::{next}>,", side.rust_name()));
            out.close("},");
        }
        out.line("#[doc = \"The peer has closed, and all its messages have been received.\"]");
        out.line("ChannelClosed(::sip::channel::Closed),");
        out.close("}");
    }
}

/// The arguments in message buffer order: values, blocks, endpoints.
pub fn in_buffer_order(message: &Message) -> Vec<&Argument> {
    let rank = |argument: &&Argument| match argument.kind {
        ArgumentKind::Inline(_) => 0,
        ArgumentKind::Block { .. } => 1,
        ArgumentKind::Endpoint { .. } | ArgumentKind::Any { .. } => 2,
    };
    let mut arguments: Vec<&Argument> = message.arguments.iter().collect();
    arguments.sort_by_key(rank);
    arguments
}
