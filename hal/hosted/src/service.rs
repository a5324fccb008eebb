//! The process as a service of its host: log format, readiness notification, shutdown.
//!
//! Key type: [`Service`]. The system inside reports through the device `system-state` that everything is running; the
//! supervisor is notified from the process that it started, the `keeper` if there is one. Neighbours:
//! `host` (signals and endings), `debug_output` (the log). Deliberately not here: the format of lines and datagrams, which
//! is in crate `host-service`.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use hal_api::{Hardware, Range, RangeKind};
use host_service::log::{self, Format};
use host_service::notify::{self, Reloads, State};

use crate::{host, keeper};

/// The device's name.
const NAME: &str = "system-state";
/// Its one register: any write to it reports that everything is running.
const REGISTER: Range = Range { kind: RangeKind::Ports, base: 0x7000, bytes: 1 };

/// Configuration of a process that is a service.
#[derive(Clone, Debug)]
pub struct Service {
    /// Format of its log.
    pub log: Format,
    /// Message about its purpose, logged once it is ready.
    pub announcement: String,
}

static SERVICE: OnceLock<Service> = OnceLock::new();
/// Whether the system has reported that everything runs.
static READY: AtomicBool = AtomicBool::new(false);
/// Whether the supervisor was notified of that, in the process that it started.
static SERVES: AtomicBool = AtomicBool::new(false);
static RELOADS: Reloads = Reloads::new();
/// Whether the supervisor was notified of the shutdown.
static STOPPING: AtomicBool = AtomicBool::new(false);

/// Makes the process a service: lines on standard error get a timestamp and their author, and a system that was shut
/// down by a signal ends the process with its own exit status. Must be called before `own_process`.
pub fn run_as_service(service: Service) {
    SERVICE.get_or_init(|| service);
}

/// Returns whether the process is a service.
pub(crate) fn is_one() -> bool {
    SERVICE.get().is_some()
}

/// Returns the lines in the format of the log; `None` if they need no change.
pub(crate) fn stamped(lines: &[u8]) -> Option<String> {
    SERVICE.get().map(|service| log::stamp(lines, service.log, log::unix_ms()))
}

/// Returns the device for the kernel.
pub(crate) fn hardware() -> Hardware {
    Hardware { name: NAME.into(), ranges: vec![REGISTER], interrupts: Vec::new() }
}

/// See [`hal_api::Machine::may_claim`].
pub(crate) fn may_claim(range: Range) -> bool {
    range == REGISTER
}

/// Handles a register write; false if the register is not the device's.
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

/// Reports that the system inside is about to end.
pub(crate) fn stops() {
    if keeper::is_there() {
        keeper::report_state(State::Stopping);
    } else {
        tell(State::Stopping);
    }
}

/// Starts a reload of cached files and notifies the supervisor, in the process that it started. Without effect before
/// the service is ready, as nothing is cached then. False if the process is no service.
pub(crate) fn reload() -> bool {
    if !is_one() {
        return false;
    }
    if SERVES.load(Ordering::SeqCst) && !STOPPING.load(Ordering::SeqCst) && RELOADS.request() {
        let thread = thread::Builder::new().name("reload".into()).stack_size(64 * 1024).spawn(run_reloads);
        if let Err(error) = thread {
            RELOADS.finish();
            host::say(&format!("no thread for a reload ({error}); the supervisor is not told of it"));
        }
    }
    true
}

fn run_reloads() {
    loop {
        match notify::reload() {
            Ok(()) => host::say("reloaded: changed files are served, and the access log was opened again"),
            Err(error) => host::say(&format!("the supervisor at NOTIFY_SOCKET cannot be told of a reload ({error})")),
        }
        if !RELOADS.finish() {
            return;
        }
    }
}

/// Notifies the supervisor, from the process that it started.
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
