//! The service manager: the system's root program. It starts what the system manifest says, in an order derived
//! from what each program needs, watches it, and ends the machine when the primary instance ends.
//!
//! Key types: [`Manager`], [`registry::Registry`] (where each service is), `supervisor` (the life of one),
//! `wiring` (what a child is given). Neighbours: the directory service, which it starts first and where it
//! registers what the others provide; `supervision`, which says when one is started again. Deliberately not here:
//! any protocol of a device or file system.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod machine;
pub mod registry;
mod server;
mod supervisor;
mod wiring;

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use client::namespace::Namespace;
use contracts::directory::{self, ProviderScope};
use contracts::service_provider;
use manifest_model::Instance;
use sip::Deadline;
use sip::device::Declared;
use sip::hardware::{Hardware, Registers};
use sip::process::{Child, StopReason};
use sip::sync::Mutex;
use stdio::report;

use crate::machine::Machine;
use crate::registry::Registry;

sip::startup!();

/// A device of the machine itself: its power button, or what it is told the system's state with.
type MachineDevice = Declared<Hardware>;

/// Written to `system-state` when all that is to run does.
const ALL_RUN: u8 = 1;
/// How often that is looked at.
const LOOK_MS: u64 = 20;

/// What becomes of the primary instance.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Primary {
    /// It runs, and its end is the system's.
    Runs,
    /// It is left out: the system runs until it is asked to end.
    LeftOut,
}

/// What the threads of the service manager share.
pub struct Manager {
    /// What the machine carries.
    pub machine: Machine,
    /// Where each service is.
    pub registry: Registry,
    /// The namespace, once the directory service runs.
    names: Mutex<Option<Namespace>>,
    /// The directory service, and whether people were told that it ended.
    directory: Mutex<Option<Arc<Child>>>,
    is_directory_told: AtomicBool,
    primary: Primary,
}

impl Manager {
    /// Whether the system ends with this instance.
    pub fn is_primary(&self, instance: &Instance) -> bool {
        self.machine.system().primary.as_deref() == Some(&instance.name)
    }

    /// Ends the primary instance, then all services in reverse boot order, and then the machine. Only the first call counts.
    pub fn power_off(&self, exit_status: i32) {
        if self.end_services() {
            // Who ended for want of names may be quicker here than who watches the directory service.
            let directory = self.directory.lock().clone();
            if let Some(Ok(end)) = directory.map(|child| child.wait_until(Deadline::PASSED)) {
                self.tell_directory_end(&format!("{end}"));
            }
            // An exit status has eight bits on the host; what does not fit is still a failure.
            let status = u8::try_from(exit_status).unwrap_or(1);
            let refused = sip::device::power_off(status);
            report::error(format_args!("the machine could not be ended: {}", refused.text()));
        }
    }

    /// Tells people once that the directory service ended.
    fn tell_directory_end(&self, end: &str) {
        if !self.is_directory_told.swap(true, Ordering::AcqRel) {
            report::error(format_args!("the directory service ended ({end}); without names nothing can go on"));
        }
    }

    /// Ends all services likewise, and starts the machine anew.
    pub fn restart(&self) {
        if self.end_services() {
            let refused = sip::device::restart();
            report::error(format_args!("the machine could not be started anew: {}", refused.text()));
        }
    }

    /// Whether this was the first call.
    fn end_services(&self) -> bool {
        let first = self.registry.begin_closing();
        if first {
            let is_primary =
                |&position: &usize| self.is_primary(self.machine.instance(self.registry.service(position).instance));
            // What the primary instance started uses the services, so it ends before them.
            let (primary, others): (Vec<usize>, Vec<usize>) =
                (0..self.registry.service_count()).rev().partition(is_primary);
            for position in primary.into_iter().chain(others) {
                if let Some(child) = self.registry.child(position) {
                    self.end(position, &child, StopReason::Shutdown);
                }
            }
        }
        first
    }

    /// How long a service may take to end by itself, in milliseconds.
    fn ending_ms(&self, position: usize) -> u64 {
        let program = &self.machine.instance(self.registry.service(position).instance).program;
        self.machine.program(program).map_or(0, |manifest| manifest.supervision.ending_ms.into())
    }

    /// Ends a service that runs as this child. One that wants to end by itself hears first that there are no more
    /// clients, and is waited for.
    fn end(&self, position: usize, child: &Child, reason: StopReason) {
        let ending_ms = self.ending_ms(position);
        if ending_ms > 0 && self.let_go(position) {
            // Whether it has ended by then or not, the next step is the same.
            let _ = child.wait_until(Deadline::after_ms(ending_ms));
        }
        // One that has ended by itself in the meantime is what was wanted.
        let _ = child.stop(reason);
    }

    /// Takes the names of a service out, so that it hears that there are no more clients; false if it had none.
    fn let_go(&self, position: usize) -> bool {
        let instance = self.machine.instance(self.registry.service(position).instance);
        let mut names = self.names.lock();
        let Some(namespace) = names.as_mut() else { return false };
        let gone = instance.provides.iter().filter(|path| namespace.deregister(path).is_ok()).count();
        gone > 0
    }
}

/// Runs the system. Does not return while it is healthy.
pub fn main(startup: Startup) -> i32 {
    match boot(&startup) {
        Ok(never) => never,
        Err(reason) => {
            report::error(format_args!("the system cannot start: {reason}"));
            // Where even that is refused, this program's own end is the system's.
            let _ = sip::device::power_off(1);
            1
        }
    }
}

fn boot(startup: &Startup) -> Result<i32, String> {
    let machine = Machine::read()?;
    let order = machine.boot_order()?;
    let (directory, others): (Vec<usize>, Vec<usize>) =
        order.into_iter().partition(|&index| machine.instance(index).provides.iter().any(|path| path == "/"));
    let [directory] = directory[..] else {
        return Err(String::from("the system manifest needs exactly one instance that provides `/`"));
    };
    let registry = Registry::new(&others).map_err(said)?;
    let manager = Arc::new(Manager {
        machine,
        registry,
        directory: Mutex::new(None),
        is_directory_told: AtomicBool::new(false),
        names: Mutex::new(None),
        primary: if startup.without_primary { Primary::LeftOut } else { Primary::Runs },
    });
    watch_power_button(&manager, &startup.power_button)?;
    let state = open_state(&startup.system_state)?;
    let mut namespace = start_directory(&manager, directory)?;
    *manager.names.lock() = namespace.open_directory("").ok();
    let provider = register_self(&mut namespace);
    let booting = manager.clone();
    let boot = move || {
        start_services(&booting, &mut namespace);
        booting.registry.start_is_over();
        if let Some(state) = state {
            report_all_run(&booting.registry, &state);
        }
        // The directory service ends with this endpoint, the one of its first client.
        sip::thread::sleep(sip::Deadline::NEVER);
        drop(namespace);
    };
    let _boot = sip::thread::spawn(boot).map_err(said)?;
    let server = server::Server::new(manager);
    if let Some(provider) = provider {
        sip::executor::block_on(server::accept(server, provider)).map_err(said)?;
    }
    // The threads that watch services go on; whichever sees the end of the system ends the machine.
    sip::thread::sleep(sip::Deadline::NEVER);
    Ok(0)
}

/// Shuts the system down when the machine's power button is pressed, where it has one. Watched before anything else
/// runs, so that nothing is cut off.
fn watch_power_button(manager: &Arc<Manager>, power_button: &MachineDevice) -> Result<(), String> {
    let pressed = match power_button.open().and_then(|button| button.interrupt(0)) {
        Ok(pressed) => pressed,
        Err(sip::Status::NotFound) => return Ok(()),
        Err(status) => return Err(format!("the power button: {}", status.text())),
    };
    let manager = manager.clone();
    let watch = move || match pressed.wait(Deadline::NEVER) {
        Ok(_) => manager.power_off(0),
        Err(status) => report::error(format_args!("the power button is no longer watched: {}", status.text())),
    };
    let _watch = sip::thread::spawn(watch).map_err(said)?;
    Ok(())
}

/// The register for the system's state, of a machine that has one.
fn open_state(device: &MachineDevice) -> Result<Option<Registers>, String> {
    match device.open().and_then(|device| device.range(0)) {
        Ok(state) => Ok(Some(state)),
        Err(sip::Status::NotFound) => Ok(None),
        Err(status) => Err(format!("the device `system-state`: {}", status.text())),
    }
}

/// Tells the machine as soon as all that is to run does.
fn report_all_run(registry: &Registry, state: &Registers) {
    while !registry.is_healthy() {
        if registry.is_closing() {
            return;
        }
        sip::thread::sleep(Deadline::after_ms(LOOK_MS));
    }
    if let Err(status) = state.write8(0, ALL_RUN) {
        report::error(format_args!("the machine cannot be told that all services run: {}", status.text()));
    }
}

/// Starts the directory service. When it ends, all names are lost, and the machine ends.
fn start_directory(manager: &Arc<Manager>, index: usize) -> Result<Namespace, String> {
    let instance = manager.machine.instance(index);
    let program = &instance.program;
    let manifest = manager.machine.program(program).ok_or_else(|| format!("`{program}` is not installed"))?;
    let wired =
        wiring::wire(&manager.machine, instance, manifest, None).map_err(|reason| format!("{program}: {reason}"))?;
    let child = Arc::new(wired.child.start().map_err(said)?);
    *manager.directory.lock() = Some(child.clone());
    let root = wired.root.ok_or_else(|| format!("{program} has no endpoint for its first client"))?;
    let endpoint = match root.receive() {
        directory::ImpStart::Success { next } => next,
        directory::ImpStart::Refused { .. } | directory::ImpStart::ChannelClosed(_) => {
            let end = child.wait().map_or_else(|status| String::from(status.text()), |epitaph| format!("{epitaph}"));
            return Err(format!("{program} ended before it served: {end}"));
        }
    };
    let watching = manager.clone();
    let watch = move || {
        let end = child.wait().map_or_else(|status| String::from(status.text()), |epitaph| format!("{epitaph}"));
        watching.tell_directory_end(&end);
        watching.power_off(1);
    };
    let _watch = sip::thread::spawn(watch).map_err(said)?;
    Ok(Namespace::new(endpoint))
}

type OwnProvider = service_provider::Exp<service_provider::states::Ready>;

/// Puts the manager's own service at its name. The system goes on without it.
fn register_self(namespace: &mut Namespace) -> Option<OwnProvider> {
    let (importer, exporter) = service_provider::new_channel().ok()?;
    let exporter = exporter.ready();
    let service_provider::ImpStart::Ready { next } = importer.receive() else { return None };
    match namespace.register("/service/manager", ProviderScope::Name, next) {
        Ok(()) => Some(exporter),
        Err(error) => {
            report::error(format_args!("{}", server::not_registered(&error)));
            None
        }
    }
}

/// Starts the services one after the other, each when those before it are ready or have failed. Those that the
/// machine cannot run are left out: by then the buses among those before them have said what there is.
fn start_services(manager: &Arc<Manager>, namespace: &mut Namespace) {
    for position in 0..manager.registry.service_count() {
        if manager.registry.is_closing() {
            return;
        }
        let services = manager.registry.list();
        let instance = manager.machine.instance(services[position].instance);
        if manager.primary == Primary::LeftOut && manager.is_primary(instance) {
            manager.registry.leave_out(position);
            continue;
        }
        let absent = |instance| services.iter().any(|service| service.instance == instance && service.absent);
        if !manager.machine.can_run(services[position].instance, absent) {
            manager.registry.leave_out(position);
            continue;
        }
        // Each gets a view of its own, so that one that waits for its provider holds up no other.
        let view = match namespace.open_directory("") {
            Ok(view) => view,
            Err(error) => {
                report::error(format_args!("the namespace cannot be opened: {error}"));
                return;
            }
        };
        let supervised = manager.clone();
        let started = sip::thread::spawn(move || supervisor::supervise(supervised, position, view));
        match started {
            Ok(_thread) => {}
            Err(status) => {
                report::error(format_args!("no thread to watch service {position}: {}", status.text()));
                return;
            }
        }
        manager.registry.wait_settled(position);
    }
}

fn said(status: sip::Status) -> String {
    String::from(status.text())
}
