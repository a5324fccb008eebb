//! Replay of a recording: the programs run as they ran, and each call is answered by what was recorded.
//!
//! One context at a time runs on one processor: this loop, or a thread until its next call. A thread runs when the
//! event of its return is reached, to its next call, which must be the recorded one. Within a process that is the order
//! of the recording; and memory that passes from one process to another is given up by a call before the return
//! that gives it, so all processes can be replayed in one address space, each at its addresses. There are no processes,
//! channels and devices: `events` knows what a program must be given, `contexts` runs it. Neighbours: `recorder`
//! wrote the events, `entry` has the ABI table. Deliberately not here: what opaque processes
//! do, which share memory with a device or have unsafe code; the others are given what those left, from the recording.

mod checks;
mod contexts;
mod events;
mod memory;
mod output;
mod position;
mod programs;
mod serial;

pub use contexts::{Hooks, call, stack_used_up};

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use recording::Event;

use crate::cpu::Cpu;
use crate::debug_output;
use crate::lock::SpinLock;
use crate::machine::machine;

/// Exit status of a replay that does not go as the recording, or whose programs are not those of its system image.
const DIVERGED: u8 = 125;

/// What is replayed.
pub struct Replay {
    /// The system image that ran.
    pub system_image: &'static [u8],
    /// All events, in order.
    pub events: Vec<Event>,
    /// What of it.
    pub of: Part,
}

/// What of a recording is replayed, and what for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All.
    All,
    /// This process alone.
    Process(u64),
    /// All, without output: the events are written to the machine's recording, with arguments and messages of all calls
    /// that are replayed. So much of them also if a program does something else.
    Completed,
}

static REPLAY: SpinLock<Option<Replay>> = SpinLock::new(None);
static BEGUN: AtomicBool = AtomicBool::new(false);

/// Replays on the kernel's machine, which ends then. Returns only on failure, with the reason.
pub fn start(replay: Replay, hooks: Hooks) -> String {
    contexts::start(hooks);
    *REPLAY.lock() = Some(replay);
    let cpus: Vec<&'static Cpu> = (0..machine().processor_count() as u32).map(Cpu::make).collect();
    let bases: Vec<usize> = cpus.iter().map(|cpu| cpu.base()).collect();
    machine().run_processors(&bases, run, contexts::entries());
    "the machine stopped its processors".into()
}

extern "C" fn run(_processor: usize) {
    if BEGUN.swap(true, Ordering::AcqRel) {
        return;
    }
    let Some(mut replay) = REPLAY.lock().take() else { return };
    let status = match programs::load(&replay.events).and_then(|()| events::replay(&mut replay)) {
        Ok(done) => {
            position::end();
            debug_output::line(format_args!(
                "replayed {} events of {}, as recorded; hash {:016x}",
                done.events,
                count(done.processes),
                done.hash
            ));
            done.status
        }
        Err(why) => {
            position::end();
            debug_output::line(format_args!("{why}"));
            DIVERGED
        }
    };
    machine().power_off(status)
}

fn count(processes: usize) -> String {
    if processes == 1 { "1 process".into() } else { format!("{processes} processes") }
}
