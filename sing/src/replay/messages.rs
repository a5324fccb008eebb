//! The messages of a recording: who sent each, and who received it.
//!
//! Messages of a channel arrive in order, so the n-th that is received at an end is the n-th that was sent at the other.

use std::collections::{BTreeMap, VecDeque};

use abi::Status;
use recording::effects;
use recording::{Event, EventKind};

use super::trace::{Trace, name};

struct Message {
    sent: u64,
    from: u64,
    endpoint: u64,
    word: u64,
    blocks: usize,
    received: Option<(u64, u64)>,
}

/// A line for each message, in the order in which they were sent; of one process, or all.
pub fn lines(trace: &Trace, events: &[Event], process: Option<u64>) -> Vec<String> {
    let messages = messages(trace, events);
    let concerns = |message: &&Message| {
        let is_receiver = |id: u64| message.received.is_some_and(|(by, _)| by == id);
        process.is_none_or(|id| message.from == id || is_receiver(id))
    };
    messages.iter().filter(concerns).map(|message| line(trace, message)).collect()
}

fn messages(trace: &Trace, events: &[Event]) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    // By the end that receives them. A sender's return may follow the receiver's, so what counts is its call.
    let mut queues: BTreeMap<u64, VecDeque<usize>> = BTreeMap::new();
    let refused = refused_calls(trace, events);
    for (index, event) in events.iter().enumerate() {
        match (event.kind, name(event), event.words.as_slice()) {
            (EventKind::Called, "channel_send", &[endpoint, word]) if !refused.contains(&event.number) => {
                let blocks = effects::sent(word, &event.buffer).len();
                queues.entry(peer(endpoint)).or_default().push_back(messages.len());
                let (sent, from) = (event.number, event.process);
                messages.push(Message { sent, from, endpoint, word, blocks, received: None });
            }
            (EventKind::Returned, "channel_receive" | "channel_try_receive" | "channel_receive_or_add", _)
                if event.status == Status::Ok as u64 =>
            {
                let endpoint = trace.call(events, index).and_then(|call| call.words.first().copied()).unwrap_or(0);
                let found = queues.get_mut(&endpoint).and_then(VecDeque::pop_front);
                if let Some(message) = found.and_then(|found| messages.get_mut(found)) {
                    message.received = Some((event.process, event.number));
                }
            }
            _ => {}
        }
    }
    messages
}

/// Numbers of the calls of `channel_send` that failed.
fn refused_calls(trace: &Trace, events: &[Event]) -> std::collections::BTreeSet<u64> {
    let failed = events.iter().enumerate().filter(|(_, event)| {
        event.kind == EventKind::Returned && name(event) == "channel_send" && event.status != Status::Ok as u64
    });
    failed.filter_map(|(index, _)| Some(trace.call(events, index)?.number)).collect()
}

/// The other end of a channel: handles of its ends differ in the lowest bit.
fn peer(endpoint: u64) -> u64 {
    endpoint ^ 1
}

fn line(trace: &Trace, message: &Message) -> String {
    let received = match message.received {
        Some((by, at)) => format!("received by {} at event {at}", trace.process(by)),
        None => "not received".into(),
    };
    let blocks = match message.blocks {
        0 => String::new(),
        1 => ", 1 block".into(),
        many => format!(", {many} blocks"),
    };
    let Message { sent, endpoint, word, .. } = message;
    let from = trace.process(message.from);
    format!("event {sent}: {from} sends message {} at endpoint {endpoint:#x}{blocks}; {received}", word & 0xffff)
}
