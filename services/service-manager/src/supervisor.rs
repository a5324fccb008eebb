//! Supervision of one service: a thread that starts it, waits for its end and restarts it.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use client::namespace::Namespace;
use contracts::directory::ProviderScope;
use contracts::service_manager::ServiceState;
use contracts::service_provider::{self, StartError};
use manifest_model::{Instance, Manifest};
use sip::Deadline;
use sip::process::{Child, EpitaphKind, StopReason};
use stdio::report;
use supervision::{Backoff, End, Next};

use crate::Manager;
use crate::registry::Service;
use crate::wiring::{self, Provided};

/// Timeout for a service to become ready, in milliseconds.
const READY_MS: u64 = 30_000;

/// Outcome of a start.
enum Started {
    /// It runs, and the paths that it provides are registered.
    Running,
    /// It failed before that.
    Failed { reason: String, end: End },
}

/// Why a service is not restarted for now.
enum Rest {
    /// A stop was requested.
    Asked,
    /// By its restart policy; the state to enter.
    Own(ServiceState),
}

/// Supervises the service at this position in the registry as long as the system runs.
pub fn supervise(manager: Arc<Manager>, position: usize, mut namespace: Namespace) {
    let registry = &manager.registry;
    let instance = manager.machine.instance(registry.service(position).instance).clone();
    let Some(manifest) = manager.machine.program(&instance.program).cloned() else {
        registry.enter(position, ServiceState::Failed, format!("the program `{}` is not installed", instance.program));
        return;
    };
    let mut backoff = Backoff::new(manifest.supervision);
    loop {
        let begun = sip::time::monotonic();
        let needs_before = needs(&manager, &instance);
        let outcome = run(&manager, position, &instance, &manifest, &mut namespace);
        registry.ended(position);
        if manager.is_primary(&instance) {
            manager.power_off(outcome.status);
        }
        let ran_ns = sip::time::monotonic().saturating_sub(begun);
        let was_wanted = registry.is_wanted(position);
        let end = match outcome.end {
            End::Hopeless if needs(&manager, &instance) != needs_before || lacks(&manager, &instance) => End::Failure,
            end => end,
        };
        let next = if was_wanted { backoff.after(end, ran_ns) } else { Next::Rest };
        let resting = match next {
            Next::Restart { after_ms } => {
                registry.enter(position, ServiceState::BackingOff, outcome.reason.clone());
                // Check its requirements after a short delay: their end may be noticed after the end of their
                // dependants.
                let first_ms = after_ms.min(backoff.shortest_ms());
                let mut wanted = wait_backoff(&manager, position, Deadline::after_ms(first_ms));
                if needs(&manager, &instance) != needs_before {
                    backoff.forgive();
                } else if wanted && after_ms > first_ms {
                    wanted = wait_backoff(&manager, position, Deadline::after_ms(after_ms - first_ms));
                }
                if wanted { None } else { Some(Rest::Asked) }
            }
            Next::Rest if was_wanted => Some(Rest::Own(ServiceState::Stopped)),
            Next::Rest => Some(Rest::Asked),
            Next::GiveUp => {
                let often = if end == End::Hopeless { "" } else { "; it failed too often and is not restarted" };
                report::error(format_args!("service {}: {}{often}", instance.name, outcome.reason));
                Some(Rest::Own(ServiceState::Failed))
            }
        };
        if let Some(rest) = resting {
            retire(&instance, &mut namespace);
            match rest {
                Rest::Own(state) => registry.rest(position, state, outcome.reason),
                // A start may have been requested in the meantime; `enter` does not reset it.
                Rest::Asked => registry.enter(position, ServiceState::Stopped, outcome.reason),
            }
            while !registry.is_wanted(position) {
                registry.wait_command(position, Deadline::NEVER);
            }
            backoff = Backoff::new(manifest.supervision);
        }
        registry.count_restart(position);
    }
}

/// Process ids of the services that the instance requires, 0 for one that does not run. If they change while the
/// instance runs, its end is not counted as its own failure.
fn needs(manager: &Manager, instance: &Instance) -> Vec<u64> {
    let required = |service: &Service| instance.requires.contains(&manager.machine.instance(service.instance).name);
    manager.registry.list().iter().filter(|service| required(service)).map(|service| service.process).collect()
}

/// Whether a service that the instance requires is about to start. What the instance finds wrong without it says nothing
/// of the instance's configuration.
fn lacks(manager: &Manager, instance: &Instance) -> bool {
    let starts = |service: &Service| matches!(service.state, ServiceState::Starting | ServiceState::BackingOff);
    let required = |service: &Service| instance.requires.contains(&manager.machine.instance(service.instance).name);
    manager.registry.list().iter().any(|service| required(service) && starts(service))
}

/// Waits for the deadline; false if a stop was requested.
fn wait_backoff(manager: &Manager, position: usize, deadline: Deadline) -> bool {
    while manager.registry.is_wanted(position) && !deadline.has_passed() {
        manager.registry.wait_command(position, deadline);
    }
    manager.registry.is_wanted(position)
}

/// Deregisters the service's names, so that new clients fail at once.
fn retire(instance: &Instance, namespace: &mut Namespace) {
    for path in &instance.provides {
        // It may never have been registered.
        let _ = namespace.deregister(path);
    }
}

/// Outcome of a run.
struct Outcome {
    end: End,
    reason: String,
    status: i32,
}

impl Outcome {
    fn failure(reason: String) -> Outcome {
        Outcome { end: End::Failure, reason, status: 1 }
    }
}

/// Runs the service once, from start to end.
fn run(
    manager: &Manager,
    position: usize,
    instance: &Instance,
    manifest: &Manifest,
    namespace: &mut Namespace,
) -> Outcome {
    let wired = match wiring::wire(&manager.machine, instance, manifest, Some(namespace)) {
        Ok(wired) => wired,
        Err(reason) => return Outcome::failure(format!("could not be started: {reason}")),
    };
    let child = match wired.child.start() {
        Ok(child) => Arc::new(child),
        Err(status) => return Outcome::failure(format!("could not be started: {}", status.text())),
    };
    manager.registry.starting(position, child.clone());
    match await_ready(wired.provided, instance, manifest, namespace) {
        Started::Running => {
            manager.registry.enter(position, ServiceState::Running, String::new());
            ending(&child)
        }
        Started::Failed { reason, end } => {
            // It may have ended already; its epitaph is more specific than the closed channel.
            let _ = child.stop(StopReason::Requested);
            let outcome = ending(&child);
            let reason = if end == End::Hopeless { reason } else { format!("{reason}: {}", outcome.reason) };
            Outcome { end, reason, status: 1 }
        }
    }
}

/// Waits until the service is ready on each path that it provides, and registers the paths.
fn await_ready(provided: Provided, instance: &Instance, manifest: &Manifest, namespace: &mut Namespace) -> Started {
    let deadline = Deadline::after_ms(READY_MS);
    for (number, endpoint) in provided.into_iter().enumerate() {
        let ready = match endpoint.receive_by(deadline) {
            Ok(service_provider::ImpStart::Ready { next }) => next,
            Ok(service_provider::ImpStart::NotReady { error, explanation, .. }) => {
                let end = if error == StartError::Exhausted { End::Failure } else { End::Hopeless };
                return Started::Failed { reason: explanation.to_text(), end };
            }
            Ok(service_provider::ImpStart::ChannelClosed(_)) => {
                return Started::Failed { reason: "ended before it was ready".to_string(), end: End::Failure };
            }
            Err(_) => {
                let reason = format!("was not ready within {} s", READY_MS / 1000);
                return Started::Failed { reason, end: End::Failure };
            }
        };
        let Some(path) = instance.provides.get(number) else { continue };
        let contract =
            manifest.provides.get(number).and_then(|provide| manifest.contracts.get(provide.contract as usize));
        let scope = match contract {
            Some(contract) if contract.name == "Directory" => ProviderScope::Subtree,
            _ => ProviderScope::Name,
        };
        if let Err(error) = namespace.register(path, scope, ready) {
            return Started::Failed { reason: format!("{path} could not be registered: {error}"), end: End::Failure };
        }
    }
    Started::Running
}

fn ending(child: &Child) -> Outcome {
    match child.wait() {
        Ok(epitaph) if epitaph.is_success() => Outcome { end: End::Success, reason: epitaph.to_string(), status: 0 },
        Ok(epitaph) if epitaph.kind == EpitaphKind::Stopped => {
            Outcome { end: End::Stopped, reason: epitaph.to_string(), status: 1 }
        }
        Ok(epitaph) => {
            // `status` is an exit status only if it exited.
            let status = if epitaph.kind == EpitaphKind::Exited { epitaph.status } else { 1 };
            Outcome { end: End::Failure, reason: epitaph.to_string(), status }
        }
        Err(status) => Outcome::failure(format!("its exit status is unknown: {}", status.text())),
    }
}
