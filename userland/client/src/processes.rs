//! Finds processes in the kernel's records by id, instance name or program name.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use contracts::service_manager::ServiceRecord;
use sip::diagnostics::{ProcessRecord, ProcessState, name};
use text::padded;

use crate::namespace::Namespace;
use crate::services;
use crate::volume_managers::VolumeManager;

/// Names of instances: of services, and of file systems the mount points.
#[derive(Default)]
pub struct Instances {
    services: Vec<ServiceRecord>,
    /// Names and process ids.
    running: Vec<(String, u64)>,
}

impl Instances {
    /// Queries the service manager and the volume managers. One that cannot be reached has no instances.
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

    /// Returns the instance name of a process.
    pub fn name_of(&self, process: u64) -> Option<&str> {
        self.running.iter().find(|(_, id)| *id == process).map(|(name, _)| name.as_str())
    }

    /// Returns the service of this name, running or not.
    pub fn service(&self, name: &str) -> Option<&ServiceRecord> {
        self.services.iter().find(|service| services::text(&service.name) == name)
    }

    /// Returns the processes with this id, else this instance name, else all of this program.
    pub fn select<'a>(&self, all: &'a [ProcessRecord], target: &str) -> Vec<&'a ProcessRecord> {
        match self.running.iter().find(|(name, _)| name == target) {
            Some((_, id)) => all.iter().filter(|process| process.id == *id).collect(),
            None => select(all, target),
        }
    }
}

/// Returns the processes with this id or of this program.
pub fn select<'a>(all: &'a [ProcessRecord], target: &str) -> Vec<&'a ProcessRecord> {
    match target.parse::<u64>() {
        Ok(id) => all.iter().filter(|process| process.id == id).collect(),
        Err(_) => all.iter().filter(|process| name(&process.name) == target).collect(),
    }
}

/// Message for when [`select`] finds nothing.
pub fn none(target: &str) -> String {
    format!("no process has the id or name `{target}`, and no instance; `ps` lists them")
}

/// Returns the name of a process state.
pub fn state_word(state: u64) -> &'static str {
    ProcessState::from_number(state).map_or("unknown", ProcessState::text)
}

/// Formats a process as `cat (17)`; `nobody` without a record.
pub fn title(all: &[ProcessRecord], id: u64) -> String {
    match all.iter().find(|process| process.id == id) {
        Some(process) => format!("{} ({id})", name(&process.name)),
        None if id == 0 => String::from("nobody"),
        None => format!("({id})"),
    }
}
