//! Finding processes among the system's records, by id, by the name of an instance or by that of their program.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use contracts::service_manager::ServiceRecord;
use sip::diagnostics::{ProcessRecord, ProcessState, name};
use text::padded;

use crate::namespace::Namespace;
use crate::services;
use crate::volume_managers::VolumeManager;

/// Names of instances: those of services, and for the file systems of mounted volumes their mount points.
#[derive(Default)]
pub struct Instances {
    services: Vec<ServiceRecord>,
    /// Names and the processes that have them.
    running: Vec<(String, u64)>,
}

impl Instances {
    /// Asks the service manager and the volume managers. What cannot be asked has no instances.
    pub fn read(namespace: &mut Namespace) -> Instances {
        let services = services::list(namespace).unwrap_or_default();
        let mut running: Vec<(String, u64)> =
            services.iter().map(|service| (services::text(&service.name), service.process)).collect();
        for manager in &mut VolumeManager::open_all(namespace).unwrap_or_default() {
            let mounts = manager.list().unwrap_or_default();
            running.extend(mounts.iter().map(|mount| (padded(&mount.point), mount.process)));
        }
        running.retain(|(_, process)| *process != 0);
        Instances { services, running }
    }

    /// The name of the instance that is this process.
    pub fn name_of(&self, process: u64) -> Option<&str> {
        self.running.iter().find(|(_, id)| *id == process).map(|(name, _)| name.as_str())
    }

    /// The service with this name, whether it runs or not.
    pub fn service(&self, name: &str) -> Option<&ServiceRecord> {
        self.services.iter().find(|service| services::text(&service.name) == name)
    }

    /// The processes that a person means by a process id, the name of an instance, or else a program's name: all of it.
    pub fn select<'a>(&self, all: &'a [ProcessRecord], target: &str) -> Vec<&'a ProcessRecord> {
        match self.running.iter().find(|(name, _)| name == target) {
            Some((_, id)) => all.iter().filter(|process| process.id == *id).collect(),
            None => select(all, target),
        }
    }
}

/// The processes that a person means by a process id or a program's name.
pub fn select<'a>(all: &'a [ProcessRecord], target: &str) -> Vec<&'a ProcessRecord> {
    match target.parse::<u64>() {
        Ok(id) => all.iter().filter(|process| process.id == id).collect(),
        Err(_) => all.iter().filter(|process| name(&process.name) == target).collect(),
    }
}

/// What to say where [`select`] finds nothing.
pub fn none(target: &str) -> String {
    format!("no process has the id or name `{target}`, and no instance; `ps` lists them")
}

/// The word for a process's state.
pub fn state_word(state: u64) -> &'static str {
    ProcessState::from_number(state).map_or("unknown", ProcessState::text)
}

/// A process as people know it: `cat (17)`; what no record tells is `nobody`.
pub fn title(all: &[ProcessRecord], id: u64) -> String {
    match all.iter().find(|process| process.id == id) {
        Some(process) => format!("{} ({id})", name(&process.name)),
        None if id == 0 => String::from("nobody"),
        None => format!("({id})"),
    }
}
