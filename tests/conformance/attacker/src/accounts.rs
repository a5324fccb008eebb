//! An act that calls one function of the ABI often enough to make the kernel's memory use for it measurable.
//!
//! Every function has a row here with each kind of call that may take memory. A function without a row fails the test,
//! so that a new function needs one.

use alloc::vec::Vec;

use sip::abi::{FUNCTIONS, limits, name_tag, type_tag};

use crate::Act;
use crate::messages::{ANSWER, CALL, GIVE, receive, send};
use crate::objects::{block, channel, child, kind_of, make, sleep_thread, thread_at};
use crate::raw::{abi, call, must, number_of, put_text, set_words};

pub(crate) const ACTS: &[(&str, Act)] = &[("account", account)];

/// Calls of a function.
enum Calls {
    /// A dedicated sequence.
    Own(fn()),
    /// Repeated calls, with valid objects of the kinds that its arguments name and zero for the rest.
    Plain,
    /// None: it does not return, or would change something that is not this program's.
    Never,
}
use Calls::{Never, Own, Plain};

/// Repetitions of cheap calls.
const MANY: usize = 3_000;
/// Repetitions of calls that use scarce resources.
const SOME: usize = 60;

const ROWS: &[(&str, Calls)] = &[
    ("channel_create", Own(|| repeat("channel_create", 900, &[name_tag("Errand")]))),
    ("channel_send", Own(send_many)),
    ("channel_receive", Plain),
    ("channel_try_receive", Plain),
    ("channel_receive_or_add", Own(|| into_set("channel_receive_or_add"))),
    ("channel_close", Plain),
    ("channel_describe", Plain),
    ("wait_set_create", Own(|| repeat("wait_set_create", MANY, &[]))),
    ("wait_set_add", Own(|| into_set("wait_set_add"))),
    ("wait_set_remove", Plain),
    ("wait_set_wait", Plain),
    ("wait_set_alert", Plain),
    ("wait_set_close", Plain),
    ("process_create", Own(|| to_children(|child| child))),
    ("process_invoke", Own(|| to_children(|child| must("process_invoke", &[child, 0])))),
    ("process_give_parameter", Own(parameters)),
    ("process_give_endpoint", Own(endpoints)),
    ("process_give_device", Plain),
    ("process_start", Own(|| to_children(|child| must("process_start", &[child])))),
    ("process_stop", Own(ended_children)),
    ("process_wait", Own(ended_children)),
    ("process_release", Plain),
    ("process_id_of", Plain),
    ("process_exit", Never),
    ("process_panic", Never),
    ("process_id", Plain),
    ("process_stop_any", Never),
    ("parameter_length", Plain),
    ("parameter_read", Plain),
    ("endpoint_take", Plain),
    ("system_manifest", Plain),
    ("program_count", Plain),
    ("program_manifest", Own(|| repeat("program_manifest", 300, &[0]))),
    ("program_install", Plain),
    ("program_check", Plain),
    ("program_uninstall", Plain),
    ("program_changes", Plain),
    ("measurement", Plain),
    ("template_image", Plain),
    ("cycles", Plain),
    ("debug_write", Never),
    ("trace_note", Plain),
    ("audit_note", Plain),
    ("list_processes", Plain),
    ("list_threads", Plain),
    ("list_channels", Plain),
    ("list_counters", Plain),
    ("list_trace", Plain),
    ("list_latencies", Plain),
    ("stream_start", Own(|| repeat("stream_start", 1, &[limits::STREAM_EVENTS]))),
    ("stream_read", Plain),
    ("epitaphs", Plain),
    ("audit_read", Plain),
    ("contract_automaton", Plain),
    ("heap_allocate", Own(blocks)),
    ("heap_free", Plain),
    ("heap_split", Own(parts)),
    ("heap_describe", Plain),
    ("heap_attach", Own(chain)),
    ("heap_detach", Plain),
    ("device_open", Plain),
    ("device_describe", Plain),
    ("device_submit", Plain),
    ("device_complete", Plain),
    ("device_close", Plain),
    ("range_describe", Plain),
    ("register_read", Plain),
    ("register_write", Plain),
    ("interrupt_wait", Plain),
    ("dma_begin", Plain),
    ("dma_end", Plain),
    ("interrupt_allocate", Plain),
    ("publication_create", Plain),
    ("publication_add_range", Plain),
    ("publication_add_interrupt", Plain),
    ("publication_open", Plain),
    ("publication_released", Plain),
    ("publication_ready", Plain),
    ("wall_time_set", Plain),
    ("device_exists", Plain),
    ("machine_power_off", Never),
    ("machine_restart", Never),
    ("stack_bounds", Plain),
    ("stack_left", Plain),
    ("memory_allocate", Own(pages)),
    ("memory_free", Plain),
    ("memory_usage", Plain),
    ("principal_self", Plain),
    ("principal_of_peer", Plain),
    ("principal_delegate", Plain),
    ("thread_create", Own(threads)),
    ("thread_exit", Never),
    ("thread_join", Plain),
    ("thread_release", Plain),
    ("thread_yield", Plain),
    ("thread_sleep", Plain),
    ("thread_self", Plain),
    ("time_monotonic", Plain),
    ("time_wall", Plain),
    ("processor_count", Plain),
    ("mutex_create", Own(|| repeat("mutex_create", MANY, &[]))),
    ("mutex_acquire", Plain),
    ("mutex_try_acquire", Plain),
    ("mutex_release", Plain),
    ("mutex_close", Plain),
    ("event_create_manual", Own(|| repeat("event_create_manual", MANY, &[]))),
    ("event_create_auto", Own(|| repeat("event_create_auto", MANY, &[]))),
    ("event_set", Plain),
    ("event_reset", Plain),
    ("event_wait", Plain),
    ("event_close", Plain),
    ("wait_any", Own(waiting_threads)),
    ("debug_sink_create", Own(|| repeat("debug_sink_create", SOME, &[]))),
    ("debug_sink_give", Own(sinks)),
    ("debug_sink_read", Plain),
    ("debug_sink_close", Plain),
    ("memory_grow", Own(grown)),
    ("memory_reserve", Own(windows)),
];

/// Makes the calls of the function with this number between two readings by the suite.
fn account(number: u64) -> i32 {
    let function = &FUNCTIONS[number as usize];
    for (name, _) in ROWS {
        // Fails if the table has no such function.
        number_of(name);
    }
    let row = ROWS.iter().find(|(name, _)| *name == function.name);
    let (_, calls) = row.unwrap_or_else(|| panic!("nothing says how `{}` is to be measured", function.name));
    let server = must("endpoint_take", &[1]);
    answer(server);
    match calls {
        Own(calls) => calls(),
        Plain => plain(number as usize),
        Never => {}
    }
    answer(server);
    assert_eq!(receive(server), Ok(CALL));
    0
}

fn answer(server: u64) {
    assert_eq!(receive(server), Ok(CALL));
    send(server, ANSWER, (1, 0, 0), &[0]).expect("an answer is allowed");
}

/// Calls it repeatedly, ignoring the results.
fn plain(number: usize) {
    let function = &FUNCTIONS[number];
    let argument = |name: &str| match kind_of(function, name) {
        Some(kind) => make(kind).expect("an object"),
        None if name == "length" => put_text("text"),
        None => 0,
    };
    let arguments: Vec<u64> = function.arguments.iter().map(|&name| argument(name)).collect();
    for _ in 0..MANY {
        // A refusal is fine: the test looks for retained memory only.
        let _ = call(number, &arguments);
    }
}

fn repeat(name: &str, count: usize, arguments: &[u64]) {
    for _ in 0..count {
        must(name, arguments);
    }
}

fn send_many() {
    for _ in 0..500 {
        let (importer, _) = channel("Errand");
        send(importer, GIVE, (0, 1, 0), &[block(1000), 0, 1000]).expect("a block is allowed");
    }
}

/// An endpoint with a message is added repeatedly, and others once.
fn into_set(function: &str) {
    let set = must("wait_set_create", &[]);
    for key in 0..500 {
        let exporter = channel("Errand").1;
        let arguments = if function == "wait_set_add" { [set, exporter, key] } else { [exporter, set, key] };
        // An empty queue is no error here.
        let _ = abi(function, &arguments);
    }
    let (importer, exporter) = channel("Errand");
    send(importer, CALL, (1, 0, 0), &[1]).expect("a question is allowed");
    for key in 0..20_000 {
        must("wait_set_add", &[set, exporter, key]);
    }
}

fn children() -> Vec<u64> {
    (0..SOME).map(|_| child().expect("a child")).collect()
}

fn to_children(act: fn(u64) -> u64) {
    for child in children() {
        act(child);
    }
}

fn sinks() {
    let sink = must("debug_sink_create", &[]);
    for child in children() {
        must("debug_sink_give", &[child, sink]);
    }
}

fn threads() {
    for _ in 0..10 * SOME {
        thread_at(sleep_thread).expect("a thread");
    }
}

fn parameters() {
    for child in children() {
        for _ in 0..100 {
            put_text("a parameter");
            must("process_give_parameter", &[child, 0, 512]);
        }
    }
}

fn endpoints() {
    for child in children() {
        must("process_give_endpoint", &[child, 0, must("channel_create", &[name_tag("Errand")])]);
    }
}

/// Ended children whose handles are kept.
fn ended_children() {
    for child in children() {
        must("process_start", &[child]);
        must("process_stop", &[child, 0]);
        must("process_wait", &[child, u64::MAX]);
    }
}

fn blocks() {
    for bytes in [0, 1, 64, 65, 100, 1000, 2048, 2049, 5000, 20_000] {
        for _ in 0..600 {
            block(bytes);
        }
    }
}

fn parts() {
    let small = (0..200).map(|_| block(640));
    for whole in small.chain([block(1 << 20)]) {
        must("heap_split", &[whole, 128]);
    }
}

fn chain() {
    let mut last = block(1);
    for _ in 0..20_000 {
        let next = must("heap_allocate", &[1, type_tag("byte")]);
        must("heap_attach", &[next, last]);
        last = next;
    }
}

/// Pages of an allocation that has room behind it.
const LONG_PAGES: u64 = 256;

fn grown() {
    let address = must("memory_allocate", &[LONG_PAGES]);
    while abi("memory_grow", &[address, 1]).is_ok() {}
}

fn windows() {
    while let Ok(window) = abi("memory_reserve", &[0]) {
        must("memory_grow", &[window, 2]);
    }
}

fn pages() {
    for pages in [1, 3, 5, 9] {
        repeat("memory_allocate", 400, &[pages]);
    }
}

/// Objects that each thread waits for.
const OBJECTS: u64 = 32;

extern "C" fn wait_for_many(events: u64) -> ! {
    // SAFETY: the address of words that are never freed and no longer written.
    let events = unsafe { &*core::ptr::with_exposed_provenance::<[u64; OBJECTS as usize]>(events as usize) };
    loop {
        set_words(events);
        let _ = abi("wait_any", &[OBJECTS, u64::MAX]);
    }
}

fn waiting_threads() {
    let events: [u64; OBJECTS as usize] = core::array::from_fn(|_| must("event_create_auto", &[]));
    let events = alloc::boxed::Box::leak(alloc::boxed::Box::new(events)).as_ptr().expose_provenance() as u64;
    for _ in 0..200 {
        must("thread_create", &[wait_for_many as extern "C" fn(u64) -> ! as usize as u64, events]);
    }
    // Each has waited once after it was scheduled.
    must("thread_sleep", &[must("time_monotonic", &[]) + 50_000_000]);
}
