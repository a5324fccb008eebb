//! Acts that pass foreign or mistyped handles to every function.

use alloc::vec::Vec;

use sip::Status;
use sip::abi::FUNCTIONS;
use sip::abi::message_word;

use crate::Act;
use crate::messages::{ANSWER, CALL, receive, send};
use crate::objects::{KINDS, Kind, channel, child, kind_of, make, make_stale};
use crate::raw::{call, must, put_text, refused};

pub(crate) const ACTS: &[(&str, Act)] = &[
    ("stale-handles", |_| stale_handles()),
    ("forged-handles", |_| forged_handles()),
    ("foreign-handles", |_| foreign_handles()),
    ("informant", |_| inform()),
    ("wrong-kind-handles", |_| wrong_kind_handles()),
    ("without-permission", |_| without_permission()),
];

/// One valid object of each kind, by [`KINDS`].
struct Own([u64; KINDS.len()]);

impl Own {
    fn make() -> Own {
        Own(KINDS.map(|kind| make(kind).expect("an object")))
    }

    fn of(&self, kind: Kind) -> u64 {
        self.0[kind as usize]
    }
}

/// Calls each function that takes a handle with `bad` in each position for which `is_tried` holds, with all else
/// valid; it must be refused as an invalid handle.
fn expect_refused(own: &Own, bad: u64, is_tried: impl Fn(Kind) -> bool) {
    for (number, function) in FUNCTIONS.iter().enumerate() {
        for (place, name) in function.arguments.iter().enumerate() {
            if !kind_of(function, name).is_some_and(&is_tried) {
                continue;
            }
            let mut arguments: Vec<u64> = function
                .arguments
                .iter()
                .map(|&name| match (kind_of(function, name), name) {
                    (Some(kind), _) => own.of(kind),
                    (None, "message") => message_word(CALL, 1, 0, 0),
                    (None, "length") => put_text("text"),
                    (None, _) => 0,
                })
                .collect();
            arguments[place] = bad;
            let answer = call(number, &arguments);
            assert!(
                matches!(answer, Err(Status::BadHandle | Status::NotPermitted)),
                "{}: {bad:#x} for `{name}` answered {answer:?}",
                function.name
            );
        }
    }
}

/// The same for the function that takes its handles through the buffer.
fn expect_not_waited_for(bad: u64) {
    crate::raw::set_words(&[bad]);
    refused("wait_any", &[1, 0], &[Status::BadHandle]);
}

fn stale_handles() -> i32 {
    let own = Own::make();
    for kind in KINDS {
        let stale = make_stale(kind);
        expect_refused(&own, stale, |wanted| wanted == kind);
        expect_not_waited_for(stale);
        // Another object in its slot does not make it valid again.
        let next = make(kind).expect("an object");
        assert!(next != stale || kind == Kind::Device, "a handle of a {kind:?} was used again");
        expect_refused(&own, stale, |wanted| wanted == kind);
    }
    0
}

fn forged_handles() -> i32 {
    let own = Own::make();
    let mut forged: Vec<u64> = alloc::vec![0, 1, 2, u64::MAX, i64::MAX as u64, 1 << 63, own.0.as_ptr() as u64];
    for &handle in &own.0 {
        // Another number, another generation, another kind.
        forged.extend([2, 4, 1000, 0x00ff_ffff, 0x7fff_ffff].map(|more| handle.wrapping_add(more)));
        forged.extend([1u64 << 32, 2 << 32, 3 << 32, 0x00ff_fffe << 32].map(|more| handle.wrapping_add(more)));
        forged.extend([1u64 << 32, 2 << 32].map(|less| handle.wrapping_sub(less)));
        forged.extend((0..16u64).map(|kind| (handle & !(0xff << 56)) | kind << 56));
        forged.push(handle | 0xff << 56);
    }
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    for _ in 0..200 {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        forged.push(random);
        forged.push((random & 0x00ff_ffff_0000_00ff) | (1 + random % 6) << 56);
    }
    // Values that happen to be valid are useless here, and so are those of the program's other objects.
    let describe = |handle| [own.0.contains(&handle), is_live(handle)];
    for bad in forged.into_iter().filter(|&handle| describe(handle) == [false, false]) {
        expect_refused(&own, bad, |_| true);
        expect_not_waited_for(bad);
    }
    0
}

/// Whether the process has an object with this handle other than those of the test.
fn is_live(handle: u64) -> bool {
    crate::raw::abi("channel_describe", &[handle]).is_ok()
        || crate::raw::abi("heap_describe", &[handle]).is_ok()
        || crate::raw::abi("event_reset", &[handle]).is_ok()
}

fn wrong_kind_handles() -> i32 {
    let own = Own::make();
    for kind in KINDS {
        expect_refused(&own, own.of(kind), |wanted| wanted != kind);
    }
    0
}

/// Another process reveals the handles of its objects; here they are invalid, and it keeps the objects.
fn foreign_handles() -> i32 {
    let own = Own::make();
    let (client, server) = channel("Errand");
    let informant = child_with_act("informant");
    must("process_give_endpoint", &[informant, 1, server]);
    must("process_start", &[informant]);
    for (number, kind) in KINDS.iter().enumerate() {
        let foreign = ask(client, number as u64);
        expect_refused(&own, foreign, |wanted| wanted == *kind);
        expect_not_waited_for(foreign);
        // A block's address is no handle either.
        expect_refused(&own, ask(client, 100), |wanted| wanted == *kind);
    }
    assert_eq!(ask(client, 200), 0, "the other process's objects were changed");
    must("channel_close", &[client]);
    must("process_wait", &[informant, u64::MAX]);
    0
}

fn child_with_act(act: &str) -> u64 {
    let child = must("process_create", &[put_text("conformance-attacker")]);
    must("process_give_parameter", &[child, 0, put_text(act)]);
    child
}

fn ask(client: u64, question: u64) -> u64 {
    send(client, CALL, (1, 0, 0), &[question]).expect("a question");
    assert_eq!(receive(client), Ok(ANSWER), "an answer");
    crate::raw::word(0)
}

/// Reports the handles of its objects on request, then whether they are unchanged.
fn inform() -> i32 {
    let own = Own::make();
    must("heap_describe", &[own.of(Kind::Block)]);
    let address = crate::raw::word(0);
    let server = must("endpoint_take", &[1]);
    while receive(server) == Ok(CALL) {
        let answer = match crate::raw::word(0) {
            100 => address,
            200 => changed(&own),
            number => own.0[number as usize % KINDS.len()],
        };
        send(server, ANSWER, (1, 0, 0), &[answer]).expect("an answer");
    }
    0
}

/// Number of objects that have changed since their creation.
fn changed(own: &Own) -> u64 {
    let states = [
        crate::raw::abi("channel_describe", &[own.of(Kind::Endpoint)]).is_ok() && crate::raw::word(2) == 0,
        crate::raw::abi("wait_set_wait", &[own.of(Kind::Set), 0, 1]) == Err(Status::TimedOut),
        crate::raw::abi("heap_describe", &[own.of(Kind::Block)]).is_ok() && crate::raw::word(1) == 256,
        crate::raw::abi("thread_join", &[own.of(Kind::Thread), 0]) == Err(Status::TimedOut),
        crate::raw::abi("process_wait", &[own.of(Kind::Child), 0]) == Err(Status::TimedOut),
        crate::raw::abi("mutex_try_acquire", &[own.of(Kind::Mutex)]).is_ok(),
        crate::raw::abi("event_wait", &[own.of(Kind::Event), 0]) == Err(Status::TimedOut),
    ];
    states.iter().filter(|as_it_was| !**as_it_was).count() as u64
}

/// Functions that require a permission in the manifest, with otherwise valid arguments.
fn without_permission() -> i32 {
    let block = make(Kind::Block).expect("a block");
    let child = child().expect("a child");
    let calls: [(&str, &[u64]); 22] = [
        ("list_processes", &[block]),
        ("list_threads", &[block]),
        ("list_channels", &[block]),
        ("list_counters", &[block]),
        ("list_trace", &[1, block]),
        ("list_latencies", &[block]),
        ("stream_start", &[8]),
        ("stream_read", &[block]),
        ("epitaphs", &[]),
        ("contract_automaton", &[0]),
        ("audit_read", &[0]),
        ("audit_note", &[4]),
        ("process_invoke", &[child, 4]),
        ("program_install", &[block, 8]),
        ("program_check", &[block, 8]),
        ("template_image", &[0]),
        ("program_uninstall", &[4]),
        ("system_manifest", &[]),
        ("process_give_device", &[child, 0, 4]),
        ("process_stop_any", &[1, 0]),
        ("machine_power_off", &[3]),
        ("machine_restart", &[]),
    ];
    for (name, arguments) in calls {
        refused(name, arguments, &[Status::NotPermitted]);
    }
    0
}
