//! The service manager: the system's root program. It starts the instances of the system manifest in an order derived
//! from their requirements, supervises them, and shuts down when the primary instance ends.
//!
//! Key types: [`Manager`], [`registry::Registry`] (state of each service), `supervisor` (one service's thread),
//! `wiring` (parameters, devices and endpoints of a child). Neighbours: the directory service, which it starts first
//! and registers services with; `supervision`, the restart policy. Deliberately not here: any protocol of a device or
//! file system.
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

/// A device of the machine itself: the power button, or the register that reports the system's state.
type MachineDevice = Declared<Hardware>;

/// Written to `system-state` when all services run.
const ALL_RUN: u8 = 1;
/// Interval of polling for that, in milliseconds.
const POLL_MS: u64 = 20;

/// Whether the primary instance is started.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Primary {
    /// It is started, and the system ends with it.
    Runs,
    /// It is not started; the system runs until shutdown is requested.
    LeftOut,
}

/// State shared by the threads of the service manager.
pub struct Manager {
    /// Boot information.
    pub machine: Machine,
    /// State of each service.
    pub registry: Registry,
    /// The namespace, once the directory service runs.
    names: Mutex<Option<Namespace>>,
    /// The directory service, until its end was reported.
    directory: Mutex<Option<Arc<Child>>>,
    is_directory_told: AtomicBool,
    primary: Primary,
}

impl Manager {
    /// Whether the system ends with this instance.
    pub fn is_primary(&self, instance: &Instance) -> bool {
        self.machine.system().primary.as_deref() == Some(&instance.name)
    }

    /// Ends the primary instance, then all services in reverse boot order, and powers off. Only the first call counts.
    pub fn power_off(&self, exit_status: i32) {
        if self.end_services() {
            // A service that failed for lack of names may get here before the directory's supervisor.
            let directory = self.directory.lock().clone();
            if let Some(Ok(end)) = directory.map(|child| child.wait_until(Deadline::PASSED)) {
                self.report_directory_end(&format!("{end}"));
            }
            // The host's exit status has eight bits; larger values are failures too.
            let status = u8::try_from(exit_status).unwrap_or(1);
            let refused = sip::device::power_off(status);
            report::error(format_args!("the machine cannot be powered off: {}", refused.text()));
        }
    }

    /// Reports once that the directory service ended.
    fn report_directory_end(&self, end: &str) {
        if !self.is_directory_told.swap(true, Ordering::AcqRel) {
            report::error(format_args!("the directory service ended ({end}); without names nothing can go on"));
        }
    }

    /// Ends all services likewise, and reboots.
    pub fn restart(&self) {
        if self.end_services() {
            let refused = sip::device::restart();
            report::error(format_args!("the machine cannot be rebooted: {}", refused.text()));
        }
    }

    /// Ends all services in reverse boot order; false if shutdown had already begun.
    fn end_services(&self) -> bool {
        let first = self.registry.begin_closing();
        if first {
            let is_primary =
                |&position: &usize| self.is_primary(self.machine.instance(self.registry.service(position).instance));
            // Programs of the primary instance use the services, so it ends first.
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

    /// Grace period of a service to exit by itself, in milliseconds.
    fn ending_ms(&self, position: usize) -> u64 {
        let program = &self.machine.instance(self.registry.service(position).instance).program;
        self.machine.program(program).map_or(0, |manifest| manifest.supervision.ending_ms.into())
    }

    /// Ends a service. One with a grace period first loses its provider channels and may exit by itself.
    fn end(&self, position: usize, child: &Child, reason: StopReason) {
        let ending_ms = self.ending_ms(position);
        if ending_ms > 0 && self.deregister(position) {
            // Stop it whether or not it has exited.
            let _ = child.wait_until(Deadline::after_ms(ending_ms));
        }
        // It may have ended already.
        let _ = child.stop(reason);
    }

    /// Deregisters a service's names, which closes its provider channels; false if it had none.
    fn deregister(&self, position: usize) -> bool {
        let instance = self.machine.instance(self.registry.service(position).instance);
        let mut names = self.names.lock();
        let Some(namespace) = names.as_mut() else { return false };
        let gone = instance.provides.iter().filter(|path| namespace.deregister(path).is_ok()).count();
        gone > 0
    }
}

/// Runs the system. Returns only on a fatal error.
pub fn main(startup: Startup) -> i32 {
    match boot(&startup) {
        Ok(never) => never,
        Err(reason) => {
            report::error(format_args!("the system cannot start: {reason}"));
            // If that is refused, the exit of this program ends the system.
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
    let registry = Registry::new(&others).map_err(status_text)?;
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
        // Keep the first client's endpoint: the directory service ends when it closes.
        sip::thread::sleep(sip::Deadline::NEVER);
        drop(namespace);
    };
    let _boot = sip::thread::spawn(boot).map_err(status_text)?;
    let server = server::Server::new(manager);
    if let Some(provider) = provider {
        sip::executor::block_on(server::accept(server, provider)).map_err(status_text)?;
    }
    // The supervising threads continue; one of them powers off.
    sip::thread::sleep(sip::Deadline::NEVER);
    Ok(0)
}

/// Shuts down when the power button, if there is one, is pressed. Opened before any service starts, so that no press
/// is missed.
fn watch_power_button(manager: &Arc<Manager>, power_button: &MachineDevice) -> Result<(), String> {
    let pressed = match power_button.open().and_then(|button| button.interrupt(0)) {
        Ok(pressed) => pressed,
        Err(sip::Status::NotFound) => return Ok(()),
        Err(status) => return Err(format!("the power button: {}", status.text())),
    };
    let manager = manager.clone();
    let watch = move || match pressed.wait(Deadline::NEVER) {
        Ok(_) => manager.power_off(0),
        Err(status) => report::error(format_args!("the power button failed: {}", status.text())),
    };
    let _watch = sip::thread::spawn(watch).map_err(status_text)?;
    Ok(())
}

/// The register for the system's state, if the machine has one.
fn open_state(device: &MachineDevice) -> Result<Option<Registers>, String> {
    match device.open().and_then(|device| device.range(0)) {
        Ok(state) => Ok(Some(state)),
        Err(sip::Status::NotFound) => Ok(None),
        Err(status) => Err(format!("the device `system-state`: {}", status.text())),
    }
}

/// Reports to the machine once all services run.
fn report_all_run(registry: &Registry, state: &Registers) {
    while !registry.is_healthy() {
        if registry.is_closing() {
            return;
        }
        sip::thread::sleep(Deadline::after_ms(POLL_MS));
    }
    if let Err(status) = state.write8(0, ALL_RUN) {
        report::error(format_args!("`system-state` cannot be written: {}", status.text()));
    }
}

/// Starts the directory service. When it ends, all names are lost, and the machine powers off.
fn start_directory(manager: &Arc<Manager>, index: usize) -> Result<Namespace, String> {
    let instance = manager.machine.instance(index);
    let program = &instance.program;
    let manifest = manager.machine.program(program).ok_or_else(|| format!("`{program}` is not installed"))?;
    let wired =
        wiring::wire(&manager.machine, instance, manifest, None).map_err(|reason| format!("{program}: {reason}"))?;
    let child = Arc::new(wired.child.start().map_err(status_text)?);
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
        watching.report_directory_end(&end);
        watching.power_off(1);
    };
    let _watch = sip::thread::spawn(watch).map_err(status_text)?;
    Ok(Namespace::new(endpoint))
}

type OwnProvider = service_provider::Exp<service_provider::states::Ready>;

/// Registers the manager's own service. The system runs without it if that fails.
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

/// Starts the services in boot order, each when its predecessors are ready or have failed. A service whose device is
/// missing is left out; the bus drivers before it have reported the devices by then.
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
        // Each thread has its own channel to the namespace, so that one waiting for a provider blocks no other.
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
                report::error(format_args!("no thread for service {position}: {}", status.text()));
                return;
            }
        }
        manager.registry.wait_settled(position);
    }
}

fn status_text(status: sip::Status) -> String {
    String::from(status.text())
}
