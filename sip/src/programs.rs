//! Installing programs into the running system, and removing them. Needs the `install` permission.
//!
//! Both last until the machine restarts. Deliberately not here: the consequences of a change (which programs lose a
//! provider, how reach changes): the kernel checks the package, `lib/install` the change.

use alloc::string::String;
use core::fmt;

use crate::exheap::ExVec;
use crate::{Status, raw, thread_block};

/// Effect of an installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Installed {
    /// There was no program with that name.
    New,
    /// Replaced an older version: running processes keep theirs, new ones get the new one.
    Replaced,
    /// Exactly this program was installed already.
    Same,
}

/// Reason why a package was not installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstallError {
    /// The error: [`Status::Refused`] for a defective package.
    pub status: Status,
    /// The reason in words, for people.
    pub reason: String,
}

impl fmt::Display for InstallError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.reason)
    }
}

impl From<Status> for InstallError {
    fn from(status: Status) -> InstallError {
        InstallError { status, reason: String::from(status.text()) }
    }
}

/// Installs the program of a package file, which the kernel copies.
///
/// # Errors
/// [`Status::NotPermitted`] without the permission, [`Status::Refused`] with the kernel's reason if the package fails
/// its checks, [`Status::Exhausted`] if memory is short.
pub fn install(package: &ExVec<u8>) -> Result<Installed, InstallError> {
    answered(raw::value::program_install(package.handle(), package.len() as u64))
}

/// Returns the effect that [`install`] would have: a dry run.
///
/// # Errors
/// Those of [`install`].
pub fn check(package: &ExVec<u8>) -> Result<Installed, InstallError> {
    answered(raw::value::program_check(package.handle(), package.len() as u64))
}

fn answered(answer: Result<u64, Status>) -> Result<Installed, InstallError> {
    match answer {
        Ok(0) => Ok(Installed::New),
        Ok(1) => Ok(Installed::Replaced),
        Ok(_) => Ok(Installed::Same),
        Err(Status::Refused) => Err(InstallError { status: Status::Refused, reason: thread_block::refusal() }),
        Err(status) => Err(status.into()),
    }
}

/// Removes the program of this name: no more processes can be created from it.
///
/// # Errors
/// [`Status::NotPermitted`] without the permission, [`Status::NotFound`] if there is no such program,
/// [`Status::Busy`] if it is the program that the system started with.
pub fn uninstall(name: &str) -> Result<(), Status> {
    raw::value::program_uninstall(thread_block::put_bytes(name.as_bytes())?).map(|_| ())
}
