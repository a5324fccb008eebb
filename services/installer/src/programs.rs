//! The system as it runs: what the kernel has, as the install check wants to see it.

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
/// The kernel does not give it, or it cannot be read.
pub(crate) fn system_manifest() -> Result<SystemManifest, String> {
    let bytes = diagnostics::system_manifest().map_err(|status| String::from(status.text()))?;
    SystemManifest::decode(&bytes).map_err(|_| "the system manifest is of another version".to_string())
}

/// What is installed, read again where some came or went.
#[derive(Default)]
pub(crate) struct Present {
    /// With the number of changes before it was read.
    read: RefCell<Option<(u64, Rc<Installed>)>>,
}

impl Present {
    /// What is installed at this moment.
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

/// Whether the service manager, which goes by the manifest of the program that it was booted with, can start the newer
/// one: what it sets by number must have the same number.
pub(crate) fn fits_running(old: &Manifest, new: &Manifest) -> bool {
    let same_parameters = old.parameters.len() == new.parameters.len()
        && old.parameters.iter().zip(&new.parameters).all(|(old, new)| old.name == new.name && old.kind == new.kind);
    same_parameters
        && old.endpoints == new.endpoints
        && old.provides == new.provides
        && old.devices == new.devices
        && old.contracts == new.contracts
}
