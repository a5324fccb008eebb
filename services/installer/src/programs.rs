//! The running system, as the kernel reports it, in the form that the install check takes.

use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::RefCell;

use install::{Installed, Program};
use manifest_model::{Manifest, PublicKey, SystemManifest};
use sip::{Status, diagnostics};

/// The system manifest that the machine was booted with.
///
/// # Errors
/// The kernel does not return it, or it cannot be decoded.
pub(crate) fn system_manifest() -> Result<SystemManifest, String> {
    let bytes = diagnostics::system_manifest().map_err(|status| String::from(status.text()))?;
    SystemManifest::decode(&bytes).map_err(|_| "the system manifest is of another version".to_string())
}

/// The installed programs, cached until the kernel's change counter moves.
#[derive(Default)]
pub(crate) struct Present {
    /// The cached value and the change counter it was read at.
    read: RefCell<Option<(u64, Rc<Installed>)>>,
}

impl Present {
    /// The currently installed programs.
    pub(crate) fn get(&self, booted: &SystemManifest) -> Result<Rc<Installed>, Status> {
        let changes = diagnostics::program_changes();
        let mut read = self.read.borrow_mut();
        match &*read {
            Some((before, installed)) if *before == changes => Ok(Rc::clone(installed)),
            _ => {
                let installed = Rc::new(present(booted)?);
                *read = Some((changes, Rc::clone(&installed)));
                Ok(installed)
            }
        }
    }
}

fn present(booted: &SystemManifest) -> Result<Installed, Status> {
    let mut programs = Vec::new();
    for index in 0..diagnostics::program_count() {
        let (manifest, key) = diagnostics::program_and_key(index)?;
        let manifest = Manifest::decode(&manifest).map_err(|_| Status::Unknown)?;
        programs.push(Program { manifest, key: PublicKey(key) });
    }
    let mut system = booted.clone();
    let starts = |name: &str| name == system.root || system.instances.iter().any(|instance| instance.program == name);
    let names = programs.iter().map(|program| program.manifest.name.as_str());
    let installed = names.filter(|name| !starts(name)).map(String::from).collect();
    system.installed = installed;
    Ok(Installed { system, programs })
}

/// Whether the service manager, which uses the manifest from boot, can start the new version: parameters, endpoints
/// and other items that it passes by index must commit their indices.
pub(crate) fn fits_running(old: &Manifest, new: &Manifest) -> bool {
    let same_parameters = old.parameters.len() == new.parameters.len()
        && old.parameters.iter().zip(&new.parameters).all(|(old, new)| old.name == new.name && old.kind == new.kind);
    same_parameters
        && old.endpoints == new.endpoints
        && old.provides == new.provides
        && old.devices == new.devices
        && old.contracts == new.contracts
}
