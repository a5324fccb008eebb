//! Performs acts of the conformance suite in safe Rust.
//!
//! One act per process: the parameter `act` names it. An act that checks something panics on a violation; the runner
//! shows the panic's message. Deliberately not here: anything unsafe; that is the attacker's.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod closing;
mod copies;
mod family;
mod principals;
mod quotas;
mod scheduling;
mod shortage;
mod sinks;
mod synchronization;
mod talk;
mod waiting;

use alloc::string::String;

use conformance_contract::errand;
use sip::Deadline;

sip::startup!();

/// Resources of an act.
pub(crate) struct Stage {
    number: u64,
    ending: String,
    client: Option<errand::Imp<errand::states::Ready>>,
    server: Option<errand::Exp<errand::states::Ready>>,
}

impl Stage {
    fn client(&mut self) -> errand::Imp<errand::states::Ready> {
        self.client.take().expect("the act needs the endpoint `client`")
    }

    fn server(&mut self) -> errand::Exp<errand::states::Ready> {
        self.server.take().expect("the act needs the endpoint `server`")
    }

    /// Ends the process as the parameter `ending` requires, with everything it still holds.
    fn end(&self) -> ! {
        match self.ending.as_str() {
            "exit" => sip::process::exit(0),
            "panic" => panic!("as it was asked to"),
            "wait" => sleep_forever(),
            other => panic!("there is no ending `{other}`"),
        }
    }
}

fn sleep_forever() -> ! {
    loop {
        sip::thread::sleep(Deadline::NEVER);
    }
}

type Act = fn(Stage) -> i32;

const ACTS: &[(&str, Act)] = &[
    ("exit", |stage| stage.number as i32),
    ("panic", |stage| panic!("the reason is {}", stage.number)),
    ("sleep", |_| sleep_forever()),
    ("code-page", |_| (sleep_forever as fn() -> ! as usize >> 12 & 0x3fff_ffff) as i32),
    ("nap", |_| {
        sip::thread::sleep(Deadline::after_ms(300));
        0
    }),
    ("spin", |_| scheduling::spin()),
    ("spin-in-kernel", |_| scheduling::spin_in_kernel()),
    ("free-chains", |_| scheduling::free_chains()),
    ("serve", talk::serve),
    ("hold-channels", talk::hold_channels),
    ("send-three", talk::send_three),
    ("send-block", talk::send_block),
    ("receive-nothing", talk::receive_nothing),
    ("return-loan", talk::return_loan),
    ("keep-loan", talk::keep_loan),
    ("drop-loan", talk::drop_loan),
    ("lend-on", talk::lend_on),
    ("lend-and-end", talk::lend_and_end),
    ("pass-and-end", talk::pass_and_end),
    ("keep-passed", talk::keep_passed),
    ("ask-often", talk::ask_often),
    ("copy-there", copies::there),
    ("copy-back", copies::back),
    ("hold-everything", closing::hold_everything),
    ("closed-after-queue", closing::closed_after_queue),
    ("parent", family::parent),
    ("released-child", family::released_child),
    ("memory-quota", quotas::memory),
    ("heap-quota", quotas::heap),
    ("block-quota", quotas::blocks),
    ("attached-block-quota", quotas::attached_blocks),
    ("thread-quota", quotas::threads),
    ("handle-quota", quotas::handles),
    ("channel-quota", quotas::channels),
    ("child-quota", quotas::children),
    ("mutex", synchronization::mutex),
    ("events", synchronization::events),
    ("join", synchronization::join),
    ("sleep-order", synchronization::sleep_order),
    ("yield-order", synchronization::yield_order),
    ("deadlines", waiting::deadlines),
    ("wait-set", waiting::wait_set),
    ("wait-any", waiting::wait_any),
    ("switch-receive", waiting::switch_receive),
    ("log", sinks::log),
    ("log-below", sinks::log_below),
    ("log-when-asked", sinks::log_when_asked),
    ("debug-sink", sinks::debug_sink),
    ("say-principal", principals::say),
    ("speak-in-role", principals::speak_in_role),
    ("invoke-chain", principals::invoke_chain),
    ("pass-on", principals::pass_on),
    ("delegate-on", principals::delegate_on),
    ("note-and-read", principals::note_and_read),
    ("install-itself", principals::install_itself),
    ("launch", shortage::launch),
    ("hoard-memory", shortage::memory),
    ("hoard-blocks", shortage::blocks),
    ("hoard-channels", shortage::channels),
    ("hoard-children", shortage::children),
];

/// Performs the requested act.
pub fn main(startup: Startup) -> i32 {
    let Some((_, act)) = ACTS.iter().find(|(name, _)| *name == startup.act) else {
        panic!("there is no act `{}`", startup.act);
    };
    act(Stage {
        number: startup.number.unsigned_abs(),
        ending: startup.ending,
        client: startup.client,
        server: startup.server,
    })
}
