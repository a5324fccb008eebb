//! Health check for load balancers and supervisors: whether all services that should run do.
//!
//! A service that was stopped on purpose, or that has finished, is no failure. Deliberately not here: performance of a
//! service.

use alloc::string::String;

use client::namespace::Namespace;
use client::services;
use contracts::service_manager::{ServiceRecord, ServiceState};
use web_application::Reply;

/// Response to `/health`.
pub fn reply(namespace: Option<&mut Namespace>) -> Reply {
    let services = namespace.and_then(|namespace| services::list(namespace).ok());
    let (status, text) = match services {
        Some(services) => judge(&services),
        None => (503, String::from("the service manager does not answer\n")),
    };
    Reply::text(text).with_status(status).not_kept()
}

/// Returns the HTTP status, and a line for each service that should run but does not; or `ok`.
fn judge(services: &[ServiceRecord]) -> (u16, String) {
    let is_well = |state: u32| state == ServiceState::Running as u32 || state == ServiceState::Stopped as u32;
    let mut text = String::new();
    for service in services.iter().filter(|service| !is_well(service.state)) {
        text.push_str(&services::text(&service.name));
        text.push_str(": ");
        text.push_str(services::state_word(service.state));
        text.push('\n');
    }
    if text.is_empty() { (200, String::from("ok\n")) } else { (503, text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(name: &str, state: ServiceState) -> ServiceRecord {
        ServiceRecord {
            name: text::pad(name),
            program: text::pad(name),
            path: text::pad(""),
            reason: text::pad(""),
            process: 0,
            restarts: 0,
            started_ns: 0,
            state: state as u32,
            reserved: 0,
        }
    }

    #[test]
    fn a_system_is_well_when_all_that_is_wanted_runs() {
        let mut services = [service("a", ServiceState::Running), service("b", ServiceState::Stopped)];
        assert_eq!(judge(&services), (200, "ok\n".into()));
        for state in [ServiceState::Starting, ServiceState::BackingOff, ServiceState::Failed] {
            services[1] = service("b", state);
            let (status, text) = judge(&services);
            assert_eq!((status, text), (503, alloc::format!("b: {}\n", services::state_word(state as u32))));
        }
    }
}
