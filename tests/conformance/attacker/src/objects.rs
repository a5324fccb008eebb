//! One object of each kind, to pass where it is valid and where it is not.

use sip::Status;
use sip::abi::{Function, name_tag, type_tag};

use crate::raw::{abi, must, put_text, word};

/// Kinds of objects that functions take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Endpoint,
    Set,
    Block,
    Thread,
    Child,
    Mutex,
    Event,
    Device,
    Sink,
}

pub(crate) const KINDS: [Kind; 9] = [
    Kind::Endpoint,
    Kind::Set,
    Kind::Block,
    Kind::Thread,
    Kind::Child,
    Kind::Mutex,
    Kind::Event,
    Kind::Device,
    Kind::Sink,
];

/// Returns the kind of object that an argument of a function names, if any.
pub(crate) fn kind_of(function: &Function, argument: &str) -> Option<Kind> {
    Some(match argument {
        "endpoint" => Kind::Endpoint,
        "set" => Kind::Set,
        "block" | "parent" => Kind::Block,
        "child" if function.name.starts_with("heap") => Kind::Block,
        "child" => Kind::Child,
        "thread" => Kind::Thread,
        "mutex" => Kind::Mutex,
        "event" => Kind::Event,
        "device" => Kind::Device,
        "sink" => Kind::Sink,
        _ => return None,
    })
}

/// A channel of the contract with this name: the importing and the exporting end.
pub(crate) fn channel(contract: &str) -> (u64, u64) {
    let importer = must("channel_create", &[name_tag(contract)]);
    (importer, word(0))
}

/// A block of bytes.
pub(crate) fn block(bytes: u64) -> u64 {
    must("heap_allocate", &[bytes, type_tag("byte")])
}

/// Code for a thread that exits immediately.
pub(crate) extern "C" fn end_thread(_: u64) -> ! {
    loop {
        let _ = abi("thread_exit", &[]);
    }
}

/// Code for a thread that sleeps forever.
pub(crate) extern "C" fn sleep_thread(_: u64) -> ! {
    crate::sleep_forever()
}

/// A thread at some code.
pub(crate) fn thread_at(code: extern "C" fn(u64) -> !) -> Result<u64, Status> {
    abi("thread_create", &[code as usize as u64, 0])
}

/// A child that sleeps once it is started.
pub(crate) fn child() -> Result<u64, Status> {
    let child = abi("process_create", &[put_text("conformance-attacker")])?;
    abi("process_give_parameter", &[child, 0, put_text("sleep")])?;
    Ok(child)
}

/// Creates an object of a kind; returns its handle. Devices are not available.
pub(crate) fn make(kind: Kind) -> Result<u64, Status> {
    match kind {
        Kind::Endpoint => abi("channel_create", &[name_tag("Errand")]),
        Kind::Set => abi("wait_set_create", &[]),
        Kind::Block => abi("heap_allocate", &[256, type_tag("byte")]),
        Kind::Thread => thread_at(sleep_thread),
        Kind::Child => child(),
        Kind::Mutex => abi("mutex_create", &[]),
        Kind::Event => abi("event_create_auto", &[]),
        Kind::Device => Ok(6 << 56 | 1 << 32),
        Kind::Sink => abi("debug_sink_create", &[]),
    }
}

/// A handle of this kind that was valid once.
pub(crate) fn make_stale(kind: Kind) -> u64 {
    let handle = match kind {
        Kind::Thread => thread_at(end_thread).expect("a thread"),
        _ => make(kind).expect("an object"),
    };
    match kind {
        Kind::Endpoint => must("channel_close", &[handle]),
        Kind::Set => must("wait_set_close", &[handle]),
        Kind::Block => must("heap_free", &[handle]),
        Kind::Thread => must("thread_join", &[handle, u64::MAX]),
        Kind::Child => must("process_release", &[handle]),
        Kind::Mutex => must("mutex_close", &[handle]),
        Kind::Event => must("event_close", &[handle]),
        Kind::Device => 0,
        Kind::Sink => must("debug_sink_close", &[handle]),
    };
    handle
}
