//! One ABI function, called over and over with valid arguments until the process is killed.
//!
//! Each function of the table has a scene: a short cycle that makes what the function needs, calls it, and gives
//! everything up again. The process holds a block on loan, and its first byte tells the lender where the kill hit.
//! Deliberately not here: the kills, which are the runner's; calls with arguments that are refused.

mod families;
mod hardware;
mod kernel;
mod talk;

use sip::abi::{FUNCTIONS, Function, limits};
use sip::{Deadline, Status, thread};

use crate::Act;
use crate::objects::channel;
use crate::raw::{abi, must, put_text, set_byte, word};

/// `killed` calls the function with its number; `killed-parent` has a child that does.
pub(crate) const ACTS: &[(&str, Act)] = &[("killed", killed), ("killed-parent", parent)];

/// The number of an act: the function, the calls (0: until it is killed), a second thread, a wait without end.
const CALLS_BIT: u32 = 16;
const SECOND_THREAD: u64 = 1 << 32;
const WAITS: u64 = 1 << 33;
/// The cycle from which on a function that can wait does so for ever, with [`WAITS`].
const WAIT_FROM: u64 = 3;

/// First byte of the borrowed block: no call yet, between calls, inside the function.
const BETWEEN: u8 = 1;
const INSIDE: u8 = 2;

/// Endpoint slots of the manifest.
const CLIENT: u64 = 0;
const SERVER: u64 = 1;

/// One cycle.
type Scene = fn(&mut Stage);

/// What the scenes of a thread work with.
struct Stage {
    function: &'static Function,
    /// Cycles so far.
    round: u64,
    waits: bool,
    /// The borrowed block, while this thread has it.
    loan: Option<u64>,
    /// Its address.
    mark: Option<u64>,
    /// Both ends of a channel, between two conversations.
    pair: Option<(u64, u64)>,
    /// The bus and the publication of its device.
    bus: Option<(u64, u64)>,
}

impl Stage {
    fn new(function: &'static Function, waits: bool) -> Stage {
        Stage { function, round: 0, waits, loan: None, mark: None, pair: None, bus: None }
    }

    /// Calls a function and marks whether it is the one to be killed in.
    fn call(&self, name: &str, arguments: &[u64]) -> Result<u64, Status> {
        let mark = self.mark.filter(|_| name == self.function.name);
        mark.inspect(|&address| set_byte(address, INSIDE));
        let answer = abi(name, arguments);
        mark.inspect(|&address| set_byte(address, BETWEEN));
        answer
    }

    /// Calls a function that must succeed.
    #[track_caller]
    fn must(&self, name: &str, arguments: &[u64]) -> u64 {
        self.one_of(name, arguments, &[]).expect("it succeeds")
    }

    /// The same, where the value does not matter.
    #[track_caller]
    fn run(&self, name: &str, arguments: &[u64]) {
        self.must(name, arguments);
    }

    /// Calls a function that must succeed or fail with one of these errors.
    #[track_caller]
    fn one_of(&self, name: &str, arguments: &[u64], errors: &[Status]) -> Option<u64> {
        match self.call(name, arguments) {
            Ok(value) => Some(value),
            Err(status) if errors.contains(&status) => None,
            Err(status) => panic!("{name}{arguments:x?}: {}", status.text()),
        }
    }

    /// Whether the function is now to wait until the process is killed.
    fn waits_for_ever(&self) -> bool {
        self.waits && self.round >= WAIT_FROM
    }

    /// No deadline if it waits for ever, else a near one.
    fn deadline(&self) -> u64 {
        if self.waits_for_ever() { limits::NEVER } else { Deadline::after_ns(20_000).as_ns() }
    }

    /// The ends of a channel on which nothing is under way.
    fn pair(&mut self) -> (u64, u64) {
        *self.pair.get_or_insert_with(|| channel("Errand"))
    }

    /// Takes the loan, whose address is not valid any more.
    fn take_loan(&mut self) -> Option<u64> {
        self.mark = None;
        self.loan.take()
    }

    /// Has it back.
    fn keep_loan(&mut self, block: u64) {
        self.loan = Some(block);
        must("heap_describe", &[block]);
        self.mark = Some(word(0));
    }
}

fn killed(number: u64) -> i32 {
    let function = &FUNCTIONS[number as usize & 0xffff];
    let calls = number >> CALLS_BIT & 0xffff;
    let Some(scene) = scene(function.name) else { panic!("`{}` has no scene to be killed in", function.name) };
    let mut stage = Stage::new(function, number & WAITS != 0);
    if let Some(block) = borrow() {
        stage.keep_loan(block);
        stage.mark.inspect(|&address| set_byte(address, BETWEEN));
    }
    if number & SECOND_THREAD != 0 && !is_exclusive(function) {
        let waits = stage.waits;
        drop(thread::spawn(move || repeat(scene, Stage::new(function, waits), u64::MAX)));
    }
    repeat(scene, stage, if calls == 0 { u64::MAX } else { calls });
    0
}

fn repeat(scene: Scene, mut stage: Stage, cycles: u64) {
    while stage.round < cycles {
        scene(&mut stage);
        stage.round += 1;
    }
}

/// The block that the runner lent before it started this process.
fn borrow() -> Option<u64> {
    let server = abi("endpoint_take", &[SERVER]).ok()?;
    must("channel_try_receive", &[server]);
    Some(word(0))
}

/// Whether a second thread, or what it does, would be in the first one's way.
fn is_exclusive(function: &Function) -> bool {
    hardware::is_exclusive(function) || function.name.starts_with("program_")
}

/// Has a child that calls the function, and sleeps.
fn parent(number: u64) -> i32 {
    let child = must("process_create", &[put_text("conformance-victim")]);
    must("process_give_parameter", &[child, 0, put_text("killed")]);
    must("process_give_parameter", &[child, 1, put_text(&alloc::format!("{number}"))]);
    let bus = sip::config::with_default::<alloc::string::String>(2, "ending", "").expect("a name");
    if !bus.is_empty() {
        must("process_give_device", &[child, 0, put_text(&bus)]);
    }
    let server = must("endpoint_take", &[SERVER]);
    must("process_give_endpoint", &[child, SERVER, server]);
    must("process_start", &[child]);
    crate::sleep_forever()
}

/// The scene of a function.
fn scene(name: &str) -> Option<Scene> {
    talk::scene(name)
        .or_else(|| families::scene(name))
        .or_else(|| kernel::scene(name))
        .or_else(|| hardware::scene(name))
}
