//! The portable kernel core: sealed processes, threads, channels, the exchange heap and the ABI.
//!
//! Key types: [`process::Process`], [`thread::Thread`], [`channel::Channel`], [`exheap::Block`],
//! [`contract::Contract`]; docs/architecture.md has the layers of the modules. Neighbours: `hal-api` below, `abi`
//! above, `package-check` for checks before a program runs. Deliberately not here: names, drivers, files, restarts,
//! policies of any kind; and machine-specific code. Unsafe code: `arch`, `heap`, `lock`, `slab`, `machine`, and single
//! places of `memory`, `thread`, `cpu`, `sched`, `entry`, `program` (see docs/soundness/kernel.md).
#![no_std]

extern crate alloc;

pub mod alarm;
mod arch;
mod audit;
mod call_words;
pub mod channel;
mod claims;
pub mod contract;
mod cpu;
mod crossing;
mod debug_output;
mod deferred;
mod device;
mod diagnostics;
mod domain;
mod entry;
pub mod exheap;
mod handle;
mod handlers;
mod hardware;
mod heap;
mod histogram;
mod installed;
mod latency;
mod lifecycle;
mod lock;
mod machine;
mod measurement;
mod memory;
mod pending_call;
mod preempt;
mod principal;
pub mod process;
mod program;
mod record;
mod recorder;
mod replay;
mod sched;
mod shortage;
mod slab;
mod space;
mod sync;
#[cfg(test)]
mod test_machine;
pub mod thread;
mod timers;
mod unchecked;
mod wait;
pub mod wait_word;
mod watch;

pub use heap::CountedHeap;
pub use replay::{Part, Replay};

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::cpu::Cpu;
use crate::lifecycle::CreateError;
use crate::machine::machine;

/// Maximum share of the kernel's own pages, 1/`SLABS_PART`, for slots of objects of one kind. There are seven kinds.
const SLABS_PART: usize = 12;

/// Boot parameters.
pub struct Boot {
    /// The system image: packages and system manifest. Never copied.
    pub system_image: &'static [u8],
    /// Values for parameters of the root program, by name; a repeated parameter has several. The kernel keeps those of
    /// its own.
    pub parameters: Vec<(String, String)>,
}

/// Whether a system image, which nobody has checked yet, asks for hardware domains. For machines that prepare them.
pub fn wants_domains(system_image: &[u8]) -> bool {
    package::SystemImage::parse(system_image).is_ok_and(|(image, _)| !image.manifest.domains.is_empty())
}

/// Starts the system on a machine and runs it until it powers off, which ends the host process or the hardware. Returns
/// only on failure, with the reason.
pub fn start(on: &'static dyn hal_api::Machine, mut boot: Boot) -> String {
    machine::install(on);
    boot.parameters.retain(|(name, value)| {
        let own = name == latency::PARAMETER;
        if own && value != "0" {
            latency::start();
        }
        !own
    });
    let all = boot.parameters.len();
    if unchecked::is_any() {
        boot.parameters.retain(|(name, _)| name != unchecked::PARAMETER);
    }
    if let Some(why) = unchecked::refusal(boot.parameters.len() < all) {
        return why;
    }
    memory::start();
    slab::set_limit((machine().spare_frames() / SLABS_PART).saturating_mul(abi::limits::PAGE_BYTES));
    program::start();
    device::start();
    hardware::start();
    if let Err(why) = installed::start(boot.system_image) {
        return why;
    }
    recorder::start(boot.system_image);
    if let Some(system) = installed::system()
        && let Err(why) = domain::check(&system.domains)
    {
        return why;
    }
    memory::bound_heap();
    deferred::start();
    thread::start(thread::Startup {
        abi_table: entry::table_address(),
        arrive: deferred::arrive_new_thread,
        cross: crossing::run_inside,
    });
    machine().boot_mark("system image read");
    let cpus: Vec<&'static Cpu> = (0..machine().processor_count() as u32).map(Cpu::make).collect();
    let bases: Vec<usize> = cpus.iter().map(|cpu| cpu.base()).collect();
    *BOOT.lock() = Some(boot.parameters);
    machine().run_processors(&bases, first_or_other_processor, entry::machine_entries());
    "the machine stopped its processors".to_string()
}

/// Replays a recording on a machine, which ends then. Returns only on failure, with the reason.
pub fn replay(on: &'static dyn hal_api::Machine, replay: Replay) -> String {
    machine::install(on);
    program::start();
    match installed::start(replay.system_image) {
        Ok(()) => replay::start(replay, entry::replay_hooks()),
        Err(why) => why,
    }
}

static BOOT: lock::SpinLock<Option<Vec<(String, String)>>> = lock::SpinLock::new(None);
static STARTED: AtomicBool = AtomicBool::new(false);

extern "C" fn first_or_other_processor(_number: usize) {
    if !STARTED.swap(true, Ordering::AcqRel) {
        let parameters = BOOT.lock().take().unwrap_or_default();
        if let Err(why) = start_root(&parameters) {
            debug_output::line(format_args!("cannot start the system: {why}"));
            machine().power_off(1);
        }
    }
    deferred::processor_main();
}

fn start_root(parameters: &[(String, String)]) -> Result<(), String> {
    if machine().max_domains() > 0 {
        crossing::start()?;
    }
    if installed::system().is_some_and(|system| !system.domains.is_empty()) {
        for weakness in machine().domain_weaknesses() {
            debug_output::line(format_args!("hardware domains: {weakness}"));
        }
    }
    let name = &installed::system().ok_or("no system is installed")?.root;
    let program = installed::find(name).ok_or_else(|| format!("the root program {name} is not in the system image"))?;
    let root = lifecycle::create(program, None).map_err(|error| match error {
        CreateError::Refused(why) => why,
        CreateError::Status(status) => format!("program {name}: {}", status.text()),
    })?;
    for (at, (parameter, value)) in parameters.iter().enumerate() {
        let Some((index, declared)) = program.manifest.parameter(parameter) else {
            return Err(format!("program {name} has no parameter {parameter}"));
        };
        if !declared.repeated && parameters[..at].iter().any(|(before, _)| before == parameter) {
            return Err(format!("parameter {parameter} of {name} is given twice; leave one out"));
        }
        let end: &[u8] = if declared.repeated { b"\0" } else { b"" };
        let bytes = [value.as_bytes(), end].concat();
        root.give_parameter(None, index, &bytes)
            .map_err(|status| format!("parameter {parameter} of {name}: {}", status.text()))?;
    }
    root.start(None).map_err(|status| format!("program {name}: {}", status.text()))
}
