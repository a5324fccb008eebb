//! Dependency resolution: the provider of each endpoint's binding, and the resulting start order.
//!
//! Key functions: [`boot_order`], [`provider_of`], [`can_run`]. Neighbours: the service manager starts a system in
//! this order; `manifest` and `install` refuse systems without one. Deliberately not here: starting, and the handling
//! of an instance's exit.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use manifest_model::{Instance, Manifest, Source, SystemManifest};

/// Why there is no start order. Indices are those of [`SystemManifest::instances`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderError {
    /// An instance's program does not exist.
    UnknownProgram {
        /// The instance.
        instance: usize,
    },
    /// No instance provides the path of an endpoint.
    NoProvider {
        /// The instance.
        instance: usize,
        /// Its endpoint slot.
        slot: usize,
        /// The path.
        path: String,
    },
    /// A required instance does not exist.
    UnknownRequirement {
        /// The instance.
        instance: usize,
        /// The required one.
        name: String,
    },
    /// A dependency cycle: each instance needs the next, the last needs the first.
    Cycle {
        /// The instances.
        instances: Vec<usize>,
    },
}

/// The server of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// The instance with this index.
    Instance(usize),
    /// The root program, which runs before all instances.
    Root,
}

/// The server of `path` under the contract of this name: the provider of exactly that path, or else of the nearest path
/// above it if it provides the same contract (a directory's entries are directories).
pub fn provider_of<'m>(
    system: &SystemManifest,
    programs: impl Fn(&str) -> Option<&'m Manifest>,
    path: &str,
    contract: &str,
) -> Option<Provider> {
    let mut best: Option<(usize, Provider, bool)> = None;
    let mut consider = |provided: &str, provider: Provider, talks: &str| {
        let above = provided == "/" || path.strip_prefix(provided).is_some_and(|rest| rest.starts_with('/'));
        if (provided == path || above) && best.is_none_or(|(length, ..)| provided.len() > length) {
            best = Some((provided.len(), provider, talks == contract));
        }
    };
    if let Some(manifest) = programs(&system.root) {
        for provide in &manifest.provides {
            consider(&provide.path, Provider::Root, contract_name(manifest, provide.contract));
        }
    }
    for (index, instance) in system.instances.iter().enumerate() {
        let Some(manifest) = programs(&instance.program) else { continue };
        for (provide, path) in manifest.provides.iter().zip(&instance.provides) {
            consider(path, Provider::Instance(index), contract_name(manifest, provide.contract));
        }
    }
    best.filter(|(.., talks)| *talks).map(|(_, provider, _)| provider)
}

fn contract_name(manifest: &Manifest, contract: u16) -> &str {
    manifest.contracts.get(contract as usize).map_or("", |contract| contract.name.as_str())
}

/// The path that an instance's endpoint slot is bound to, if any.
pub fn bound_path<'a>(instance: &'a Instance, manifest: &'a Manifest, slot: usize) -> Option<&'a str> {
    match instance.endpoints.get(slot) {
        Some(Some(path)) => Some(path),
        _ => match &manifest.endpoints.get(slot)?.source {
            Source::Path(path) => Some(path),
            _ => None,
        },
    }
}

/// A dependency of an instance.
struct Need {
    instance: usize,
    /// Whether the instance cannot start without it.
    firm: bool,
}

/// The start order: dependencies first, then the primary instance, otherwise the order of the system manifest.
/// `programs` finds a program's manifest by name.
///
/// An instance depends on the providers of its endpoints' paths, the instances it `requires` and those it comes
/// `after`. The provider of an optional endpoint is a weak dependency, ignored where it would block everything.
pub fn boot_order<'m>(
    system: &SystemManifest,
    programs: impl Fn(&str) -> Option<&'m Manifest>,
) -> Result<Vec<usize>, OrderError> {
    let mut needs = Vec::new();
    for index in 0..system.instances.len() {
        needs.push(needs_of(system, &programs, index)?);
    }
    let first = needed_by_primary(system, &needs);
    let mut wish: Vec<usize> = (0..needs.len()).collect();
    // Stable sort: ties keep the manifest's order.
    wish.sort_by_key(|&index| !first[index]);
    let mut order = Vec::new();
    let mut started = vec![false; needs.len()];
    while order.len() < needs.len() {
        let ready = |patient: bool| {
            let met = |need: &Need| started[need.instance] || !(patient || need.firm);
            wish.iter().copied().find(|&index| !started[index] && needs[index].iter().all(met))
        };
        let Some(index) = ready(true).or_else(|| ready(false)) else {
            return Err(OrderError::Cycle { instances: cycle(&needs, &started) });
        };
        started[index] = true;
        order.push(index);
    }
    Ok(order)
}

/// For each instance, whether it is the primary one or a transitive dependency of it.
fn needed_by_primary(system: &SystemManifest, needs: &[Vec<Need>]) -> Vec<bool> {
    let mut needed = vec![false; needs.len()];
    let is_primary = |instance: &Instance| system.primary.as_ref() == Some(&instance.name);
    let mut open: Vec<usize> = system.instances.iter().position(is_primary).into_iter().collect();
    while let Some(index) = open.pop() {
        if !core::mem::replace(&mut needed[index], true) {
            open.extend(needs[index].iter().map(|need| need.instance));
        }
    }
    needed
}

fn needs_of<'m>(
    system: &SystemManifest,
    programs: &impl Fn(&str) -> Option<&'m Manifest>,
    index: usize,
) -> Result<Vec<Need>, OrderError> {
    let instance = &system.instances[index];
    let manifest = programs(&instance.program).ok_or(OrderError::UnknownProgram { instance: index })?;
    let mut needs = Vec::new();
    for (number, slot) in manifest.endpoints.iter().enumerate() {
        let Some(path) = bound_path(instance, manifest, number) else { continue };
        match provider_of(system, programs, path, contract_name(manifest, slot.contract)) {
            Some(Provider::Instance(provider)) if provider != index => {
                needs.push(Need { instance: provider, firm: !slot.optional });
            }
            Some(_) => {}
            None if slot.optional => {}
            None => return Err(OrderError::NoProvider { instance: index, slot: number, path: path.into() }),
        }
    }
    for name in instance.requires.iter().chain(&instance.after) {
        let required = system.instances.iter().position(|other| other.name == *name);
        let required =
            required.ok_or_else(|| OrderError::UnknownRequirement { instance: index, name: name.clone() })?;
        needs.push(Need { instance: required, firm: true });
    }
    Ok(needs)
}

/// Follows firm dependencies from a blocked instance until one repeats.
fn cycle(needs: &[Vec<Need>], started: &[bool]) -> Vec<usize> {
    let mut path: Vec<usize> = started.iter().position(|started| !started).into_iter().collect();
    while let Some(&last) = path.last() {
        // A blocked instance depends on one that has not started.
        let next = needs[last].iter().find(|need| need.firm && !started[need.instance]);
        let Some(next) = next.map(|need| need.instance) else { break };
        if let Some(first) = path.iter().position(|&seen| seen == next) {
            return path.split_off(first);
        }
        path.push(next);
    }
    path
}

/// Returns whether an instance can run on a machine with the devices for which `device` is true, without the instances
/// for which `absent` is true. A required instance always runs. An optional one does not if one of its devices, an
/// instance it requires, or the provider of a required endpoint is missing.
pub fn can_run<'m>(
    system: &SystemManifest,
    programs: impl Fn(&str) -> Option<&'m Manifest>,
    index: usize,
    device: impl Fn(&str) -> bool,
    absent: impl Fn(usize) -> bool,
) -> bool {
    let instance = &system.instances[index];
    if !instance.optional {
        return true;
    }
    let Some(manifest) = programs(&instance.program) else { return false };
    let named = instance.devices.iter().zip(&manifest.devices).filter(|(_, need)| !need.is_fixed());
    let provided = |(number, slot): (usize, &manifest_model::EndpointSlot)| {
        let Some(path) = bound_path(instance, manifest, number).filter(|_| !slot.optional) else { return true };
        match provider_of(system, &programs, path, contract_name(manifest, slot.contract)) {
            Some(Provider::Instance(provider)) => !absent(provider),
            Some(Provider::Root) => true,
            None => false,
        }
    };
    let required = |name: &String| {
        system.instances.iter().position(|other| other.name == *name).is_some_and(|required| !absent(required))
    };
    named.map(|(name, _)| name).all(|name| device(name))
        && manifest.endpoints.iter().enumerate().all(provided)
        && instance.requires.iter().all(required)
}
