//! Acts on one function of the table, by its number: garbage, and endless calls.

use alloc::vec::Vec;

use sip::abi::{FUNCTIONS, Function, limits, message_word};
use sip::{Deadline, thread};

use crate::Act;
use crate::messages::CALL;
use crate::objects::{KINDS, Kind, end_thread, kind_of, make};
use crate::raw::{abi, call, must, put_text, set_words};

pub(crate) const ACTS: &[(&str, Act)] = &[
    ("garbage", |number| garbage(number as u32 as usize, number >> 32)),
    ("call-for-ever", |number| call_for_ever(number as usize)),
];

const CALLS: u64 = 3000;

/// A seeded pseudo-random generator.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Calls a function with arguments from a pool of plausible numbers.
fn garbage(number: usize, seed: u64) -> i32 {
    let function = &FUNCTIONS[number];
    let mut numbers = Numbers(0x2545_f491_4f6c_dd1d ^ (number as u64) << 8 ^ seed << 40);
    let mut pool: Vec<u64> = KINDS.iter().filter_map(|&kind| make(kind).ok()).collect();
    pool.extend([0, 1, 2, 7, 8, 63, 64, 65, 511, 512, 513, 4096, 1 << 16, 1 << 31, 1 << 32, 1 << 47, 1 << 63]);
    pool.extend([u64::MAX, u64::MAX - 1, i64::MAX as u64, must("memory_allocate", &[2])]);
    for _ in 0..CALLS {
        for place in 0..limits::MESSAGE_WORDS {
            let chosen = numbers.next();
            let word = pool[chosen as usize % pool.len()];
            crate::raw::set_word(place, if chosen >> 60 == 0 { chosen } else { word });
        }
        if numbers.next().is_multiple_of(3) {
            put_text("conformance-attacker");
        }
        let arguments: Vec<u64> =
            function.arguments.iter().map(|&name| argument(function, name, &pool, &mut numbers)).collect();
        let _ = call(number, &arguments);
    }
    0
}

fn argument(function: &Function, name: &str, pool: &[u64], numbers: &mut Numbers) -> u64 {
    let chosen = numbers.next();
    match (name, chosen >> 61) {
        // The handle is needed again.
        ("deadline", 0..4) => 0,
        ("deadline", _) => Deadline::after_ns(20_000).as_ns(),
        // Any other code harms only the process itself.
        ("entry", 0) => end_thread as extern "C" fn(u64) -> ! as usize as u64,
        // Debug output is for users.
        ("length", _) if function.name == "debug_write" => 513 | chosen << 10,
        ("length", 0..3) => 20,
        (_, 0) => chosen,
        _ => pool[chosen as usize % pool.len()],
    }
}

/// Calls a function forever, on two threads, with valid arguments; some of the waiting calls have no deadline. The
/// test stops this process.
fn call_for_ever(number: usize) -> i32 {
    drop(thread::spawn(move || repeat(number)));
    repeat(number)
}

fn repeat(number: usize) -> ! {
    let function = &FUNCTIONS[number];
    for round in 0u64.. {
        let mut made = Vec::new();
        let arguments: Vec<u64> =
            function.arguments.iter().map(|&name| good(function, name, round, &mut made)).collect();
        if function.name == "wait_any" {
            set_words(&[make(Kind::Event).unwrap_or(0), make(Kind::Endpoint).unwrap_or(0)]);
        } else if function.arguments.contains(&"length") {
            put_text("conformance-attacker");
        }
        let answer = call(number, &arguments);
        give_up(function, answer.ok(), &made);
    }
    unreachable!("the rounds do not end")
}

fn good(function: &Function, name: &str, round: u64, made: &mut Vec<(Kind, u64)>) -> u64 {
    if let Some(kind) = kind_of(function, name) {
        let handle = make(kind).unwrap_or(0);
        // A child that runs and whose handle is closed would outlive the test.
        if kind == Kind::Child && round.is_multiple_of(2) && function.name != "process_release" {
            let _ = abi("process_start", &[handle]);
        }
        made.push((kind, handle));
        return handle;
    }
    match name {
        "deadline" => match round % 16 {
            15 => limits::NEVER,
            0..8 => 0,
            _ => Deadline::after_ns(30_000).as_ns(),
        },
        "message" => message_word(CALL, 1, 0, 0),
        "contract" => sip::abi::name_tag("Errand"),
        "entry" => end_thread as extern "C" fn(u64) -> ! as usize as u64,
        "length" if function.name == "debug_write" && !round.is_multiple_of(10_000) => 600,
        "length" => 20,
        "bytes" => 1 << (6 + round % 12),
        "type_tag" => sip::abi::type_tag("byte"),
        "offset" if function.name == "heap_split" => 64,
        "pages" => 1 + round % 8,
        "address" => must("memory_allocate", &[1]),
        "count" => 2,
        _ => 0,
    }
}

/// Releases objects created in a round, so that no quota ends the run.
fn give_up(function: &Function, answer: Option<u64>, made: &[(Kind, u64)]) {
    let mut all = made.to_vec();
    let given = match function.value {
        "importer's endpoint" | "endpoint" => Some(Kind::Endpoint),
        "wait set" => Some(Kind::Set),
        "child" => Some(Kind::Child),
        "thread" if function.name == "thread_create" => Some(Kind::Thread),
        "mutex" => Some(Kind::Mutex),
        "event" => Some(Kind::Event),
        "debug sink" => Some(Kind::Sink),
        value if value.starts_with("block") => Some(Kind::Block),
        _ => None,
    };
    all.extend(given.zip(answer));
    for (kind, handle) in all {
        let _ = match kind {
            Kind::Endpoint => abi("channel_close", &[handle]),
            Kind::Set => abi("wait_set_close", &[handle]),
            Kind::Block => abi("heap_free", &[handle]),
            Kind::Thread => abi("thread_release", &[handle]),
            Kind::Child => abi("process_stop", &[handle, 0]).and_then(|_| abi("process_release", &[handle])),
            Kind::Mutex => abi("mutex_release", &[handle]).and_then(|_| abi("mutex_close", &[handle])),
            Kind::Event => abi("event_close", &[handle]),
            Kind::Device => Ok(0),
            Kind::Sink => abi("debug_sink_close", &[handle]),
        };
    }
    if function.name == "memory_allocate" {
        let _ = answer.map(|address| abi("memory_free", &[address]));
    }
}
