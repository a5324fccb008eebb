//! Whether all that is to run does, for whoever watches the machine: a load balancer, a supervisor.
//!
//! A service that was stopped on purpose, or that has done its work, is no fault. Deliberately not here: how well a
//! service does what it does.

use alloc::string::String;

use client::namespace::Namespace;
use client::services;
use contracts::service_manager::{ServiceRecord, ServiceState};
use web_application::Reply;

/// What is answered at `/health`.
pub fn reply(namespace: Option<&mut Namespace>) -> Reply {
    let services = namespace.and_then(|namespace| services::list(namespace).ok());
    let (status, text) = match services {
        Some(services) => judge(&services),
        None => (503, String::from("the service manager does not answer\n")),
    };
    Reply::text(text).with_status(status).not_kept()
}

/// The status, and a line for each service that does not run but should; or `ok`.
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
