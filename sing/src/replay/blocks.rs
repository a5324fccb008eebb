//! The life of a block in a recording: when it was allocated, sent, received, given to devices, and freed.

use std::collections::BTreeMap;

use abi::{SUBMIT_DONE, Status};
use recording::effects::{self, Memory, Named};
use recording::{Event, EventKind};

use super::trace::{Trace, name};

/// A line for each change of the owner of the memory at an address; of changes by one process, or all.
pub fn changes(trace: &Trace, events: &[Event], address: u64, process: Option<u64>) -> Vec<String> {
    let mut blocks: BTreeMap<u64, Named> = BTreeMap::new();
    let mut lines = Vec::new();
    let mut note = |event: &Event, what: String| {
        if process.is_none_or(|id| event.process == id) {
            lines.push(format!("event {}: {} {what}", event.number, trace.process(event.process)));
        }
    };
    let holds = |block: &Named| address.wrapping_sub(block.address) < block.bytes.max(1);
    for (index, event) in events.iter().enumerate() {
        if event.kind == EventKind::Called {
            for handle in given_up(event) {
                if let Some(block) = blocks.get(&handle).filter(|block| holds(block)) {
                    note(event, format!("{} {}", verb_of_call(event), text(block)));
                }
            }
        }
        if event.kind != EventKind::Returned {
            continue;
        }
        let argument = |at: usize| trace.call(events, index).and_then(|call| call.words.get(at).copied()).unwrap_or(0);
        let function = usize::from(event.function);
        let answer = (event.status, event.words.first().copied().unwrap_or(0));
        if effects::memory(function) == Memory::RestOfBlock
            && event.status == Status::Ok as u64
            && let Some(block) = blocks.get_mut(&argument(0))
        {
            block.bytes = block.bytes.min(argument(1));
        }
        if name(event) == "device_submit"
            && answer == (Status::Ok as u64, SUBMIT_DONE)
            && let Some(block) = blocks.get(&argument(3)).filter(|block| holds(block))
        {
            note(event, format!("{} {}", verb_of_return(event), text(block)));
        }
        for block in effects::named(function, [argument(0), argument(1)], answer, &event.buffer) {
            if holds(&block) {
                note(event, format!("{} {}", verb_of_return(event), text(&block)));
            }
            blocks.insert(block.handle, block);
        }
    }
    lines
}

/// The handles of the blocks that a call gives up.
fn given_up(event: &Event) -> Vec<u64> {
    let argument = |at: usize| event.words.get(at).copied().into_iter().collect();
    match name(event) {
        "channel_send" => effects::sent(event.words.get(1).copied().unwrap_or(0), &event.buffer),
        "heap_free" => argument(0),
        "heap_attach" => argument(1),
        "device_submit" => argument(3),
        _ => Vec::new(),
    }
}

fn verb_of_call(event: &Event) -> String {
    match name(event) {
        "channel_send" => format!("sends, at endpoint {:#x},", event.words.first().copied().unwrap_or(0)),
        "heap_free" => "frees, or returns to its lender,".into(),
        "heap_attach" => "attaches to another block".into(),
        _ => "submits to a device".into(),
    }
}

fn verb_of_return(event: &Event) -> &'static str {
    match (name(event), event.status == Status::Closed as u64) {
        ("heap_allocate" | "memory_allocate", _) => "allocates",
        ("heap_split", _) => "splits off",
        ("heap_detach", _) => "detaches",
        ("device_submit" | "device_complete", _) => "gets back from a device",
        ("channel_receive" | "channel_try_receive" | "channel_receive_or_add", true) => {
            "gets back, the channel being closed,"
        }
        ("channel_receive" | "channel_try_receive" | "channel_receive_or_add", false) => "receives",
        _ => "gets from the kernel",
    }
}

fn text(block: &Named) -> String {
    format!("{} bytes at {:#x}", block.bytes, block.address)
}
