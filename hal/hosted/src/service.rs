//! The process as a service of its host: how its log is written, who is told that it serves, how it ends.
//!
//! Key type: [`Service`]. The system inside says through the device `system-state` that all that is to run does; the
//! supervisor of this process hears of it from the process that it started, the `keeper` where there is one. Neighbours:
//! `host` (signals and endings), `debug_output` (the log). Deliberately not here: the form of lines and datagrams, which
//! is crate `host-service`'s.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use hal_api::{Hardware, Range, RangeKind};
use host_service::log::{self, Format};
use host_service::notify::{self, State};

use crate::{host, keeper};

/// The device's name.
const NAME: &str = "system-state";
/// Its one register: whatever is written there says that all that is to run does.
const REGISTER: Range = Range { kind: RangeKind::Ports, base: 0x7000, bytes: 1 };

/// A process that is a service.
#[derive(Clone, Debug)]
pub struct Service {
    /// How its log is written.
    pub log: Format,
    /// What it serves, said when it does.
    pub announcement: String,
}

static SERVICE: OnceLock<Service> = OnceLock::new();
/// That all runs was told.
static READY: AtomicBool = AtomicBool::new(false);
/// The supervisor's process told that it serves.
static SERVES: AtomicBool = AtomicBool::new(false);
/// A reload is under way.
static RELOADING: AtomicBool = AtomicBool::new(false);
/// That it stops was told.
static STOPPING: AtomicBool = AtomicBool::new(false);

/// Makes the process a service: what is said on standard error has the time and its author, and a system that was shut
/// down by a signal ends the process with its own exit status. To be called before `own_process`.
pub fn run_as_service(service: Service) {
    SERVICE.get_or_init(|| service);
}

/// Whether the process is one.
pub(crate) fn is_one() -> bool {
    SERVICE.get().is_some()
}

/// Lines as the log has them; nothing where they stay as they are.
pub(crate) fn stamped(lines: &[u8]) -> Option<String> {
    SERVICE.get().map(|service| log::stamp(lines, service.log, log::unix_ms()))
}

/// What the kernel is told of the device.
pub(crate) fn hardware() -> Hardware {
    Hardware { name: NAME.into(), ranges: vec![REGISTER], interrupts: Vec::new() }
}

/// See [`hal_api::Machine::may_claim`].
pub(crate) fn may_claim(range: Range) -> bool {
    range == REGISTER
}

/// A write to a register; false if it is not the device's.
pub(crate) fn write(kind: RangeKind, address: u64) -> bool {
    let own = kind == REGISTER.kind && address == REGISTER.base;
    if own && !READY.swap(true, Ordering::SeqCst) {
        all_runs();
    }
    own
}

fn all_runs() {
    if let Some(service) = SERVICE.get() {
        let process = keeper::first_process();
        host::say(&format!("{}; SIGTERM or Ctrl-C ends it in order (process {process})", service.announcement));
    }
    if keeper::is_there() {
        keeper::report_state(State::Ready);
    } else {
        tell(State::Ready);
    }
}

/// The system inside is about to end.
pub(crate) fn stops() {
    if keeper::is_there() {
        keeper::report_state(State::Stopping);
    } else {
        tell(State::Stopping);
    }
}

/// Renews what is kept of files and tells the supervisor, in the process that it started: it is over when they have
/// been looked at again. One that does not serve yet keeps nothing. False if the process is no service.
pub(crate) fn reload() -> bool {
    if !is_one() {
        return false;
    }
    if SERVES.load(Ordering::SeqCst) && !STOPPING.load(Ordering::SeqCst) && !RELOADING.swap(true, Ordering::SeqCst) {
        let renew = || {
            let told = notify::reload();
            RELOADING.store(false, Ordering::SeqCst);
            match told {
                Ok(()) => host::say("reloaded: changed files are served, and the access log was opened again"),
                Err(error) => {
                    host::say(&format!("the supervisor at NOTIFY_SOCKET cannot be told of a reload ({error})"))
                }
            }
        };
        let thread = thread::Builder::new().name("reload".into()).stack_size(64 * 1024).spawn(renew);
        if let Err(error) = thread {
            RELOADING.store(false, Ordering::SeqCst);
            host::say(&format!("no thread for a reload ({error}); the supervisor is not told of it"));
        }
    }
    true
}

/// Tells the supervisor, from the process that it started.
pub(crate) fn tell(state: State) {
    if state == State::Stopping && STOPPING.swap(true, Ordering::SeqCst) {
        return;
    }
    if state == State::Ready {
        SERVES.store(true, Ordering::SeqCst);
    }
    if let Err(error) = notify::tell(state) {
        host::say(&format!("the supervisor at NOTIFY_SOCKET cannot be told that this is {state:?} ({error})"));
    }
}
