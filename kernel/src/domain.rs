//! Which SIP runs in which hardware domain: the policy of the system manifest.
//!
//! A declared domain is for every one of its SIPs apart, or shared by all of them. A shared one has a space while a SIP
//! is in it, and another the next time. Neighbours: `space` below; `lifecycle` above asks for each new SIP.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use abi::Status;
use hal_api::DomainRing;
use manifest_model::{Apart, Domain};

use crate::installed;
use crate::lock::SpinLock;
use crate::machine::machine;
use crate::program::{Loaded, Program};
use crate::space::{self, SpaceRef};

/// The latest space of each shared domain, by index in the system manifest. Each refers to its space.
static SHARED: SpinLock<Vec<Option<SpaceRef>>> = SpinLock::new(Vec::new());

/// Why a SIP gets no domain.
#[derive(Debug)]
pub enum NoDomain {
    /// The machine has no more, or no memory for it.
    Status(Status),
    /// The policy gives the program none, but it needs one; with the reason.
    Refused(String),
}

/// Checks the domains of a system against the machine. Called at boot.
///
/// # Errors
/// The reason.
pub fn check(domains: &[Apart]) -> Result<(), String> {
    match domains.first() {
        Some(first) if machine().max_domains() == 0 => Err(format!(
            "the system has the hardware domain `{}`, and this machine has none: run it on a bare machine, or without its domains",
            first.name
        )),
        _ => match domains.iter().find(|domain| domain.kind == Domain::Ring0) {
            Some(privileged) if !machine().has_privileged_domains() => Err(format!(
                "the hardware domain `{}` is in ring 0, and this machine's are all in ring 3: change its kind, or run the system on a bare machine",
                privileged.name
            )),
            _ => Ok(()),
        },
    }
}

/// Returns the space for a new SIP, which has joined it; `None` if it is the kernel's own.
pub fn join(program: &'static Program, loaded: &Loaded) -> Result<Option<SpaceRef>, NoDomain> {
    let found = installed::domain_of(&program.manifest);
    let (kind, wanted) = (found.map_or(Domain::Kernel, |(_, domain)| domain.kind), program.manifest.domain);
    if !kind.gives(wanted) {
        return Err(NoDomain::Refused(format!(
            "program {} asks for a domain of the kind {}, and the system has none for it",
            program.manifest.name,
            wanted.word()
        )));
    }
    let Some((index, domain)) = found else { return Ok(None) };
    let ring = if domain.kind == Domain::Ring0 { DomainRing::Ring0 } else { DomainRing::Ring3 };
    let space =
        if domain.each { space::create(ring, true) } else { join_shared(index, ring) }.map_err(NoDomain::Status)?;
    if space.map_image(&loaded.segments).is_err() {
        space.leave();
        return Err(NoDomain::Status(Status::Exhausted));
    }
    Ok(Some(space))
}

fn join_shared(index: usize, ring: DomainRing) -> Result<SpaceRef, Status> {
    let mut shared = SHARED.lock();
    if shared.len() <= index {
        shared.resize(index + 1, None);
    }
    let Some(place) = shared.get_mut(index) else { return Err(Status::Exhausted) };
    if let Some(space) = place.filter(|space| space.join()) {
        return Ok(space);
    }
    let space = space::create(ring, false)?;
    if let Some(before) = place.replace(space.refer()) {
        before.forget();
    }
    Ok(space)
}

#[cfg(test)]
mod tests;
