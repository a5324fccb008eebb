//! Installing programs into the running system, and taking them out again. Needs the `install` permission.
//!
//! Both last until the machine restarts. Deliberately not here: whether a change is wise (what would lose its provider,
//! what could reach what): the kernel checks the package, `lib/install` the change.

use alloc::string::String;
use core::fmt;

use crate::exheap::ExVec;
use crate::{Status, raw, thread_block};

/// What installing did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Installed {
    /// There was no program of that name.
    New,
    /// A program with an older version was replaced: processes that run keep it, new ones get the new one.
    Replaced,
    /// Exactly this program was there already.
    Same,
}

/// Why a package was not installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstallError {
    /// The kind of reason: [`Status::Refused`] for what is wrong with the package.
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

/// Installs the program of a package file. The kernel copies it.
///
/// # Errors
/// [`Status::NotPermitted`] without the permission, [`Status::Refused`] with the kernel's reason if the package does not
/// pass its checks, [`Status::Exhausted`] if memory is short.
pub fn install(package: &ExVec<u8>) -> Result<Installed, InstallError> {
    answered(raw::value::program_install(package.handle(), package.len() as u64))
}

/// What [`install`] would do with the package file, without doing it.
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

/// Takes the program of this name out: no process is created from it any more.
///
/// # Errors
/// [`Status::NotPermitted`] without the permission, [`Status::NotFound`] if there is no such program,
/// [`Status::Busy`] if it is the one that the system started with.
pub fn uninstall(name: &str) -> Result<(), Status> {
    raw::value::program_uninstall(thread_block::put_bytes(name.as_bytes())?).map(|_| ())
}
