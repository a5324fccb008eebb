//! Requests to the volume managers, for command-line programs.
//!
//! Key types: [`VolumeManager`] (one of them), [`VolumeManagerError`]. Deliberately not here: resolving a path to its
//! volume (`file-tools`).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;
use core::{fmt, mem};

use contracts::directory::NameError;
use contracts::file_system::VolumeStatistics;
use contracts::volume_manager::{
    self, CheckMode, CheckOutcome, FormatOptions, MountAccess, MountRecord, VolumeError, states,
};
use sip::channel::Receiver;
use sip::exheap::ExVec;

use crate::access::AccessError;
use crate::answer::{BULK_LIMIT, REQUEST_LIMIT, VOLUME_LIMIT, wait};
use crate::namespace::{Namespace, block};

/// Kinds of file systems with a manager.
pub const KINDS: [&str; 2] = ["ext2", "fat"];

/// Error of a request to a volume manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VolumeManagerError {
    /// The manager could not be reached.
    Access {
        /// The kind of file system.
        kind: String,
        /// The error.
        error: AccessError,
    },
    /// The manager refused the request.
    Manager {
        /// Machine-readable error.
        error: VolumeError,
        /// Explanation for the user.
        explanation: String,
    },
}

impl VolumeManagerError {
    /// Returns the manager's own error, if it was reached.
    pub fn error(&self) -> Option<VolumeError> {
        match self {
            VolumeManagerError::Access { .. } => None,
            VolumeManagerError::Manager { error, .. } => Some(*error),
        }
    }
}

impl fmt::Display for VolumeManagerError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VolumeManagerError::Access { kind, error: AccessError::Name(NameError::NotFound) } => {
                write!(
                    formatter,
                    "there is no manager of {kind} volumes in this system; `ls /dev` shows which there are"
                )
            }
            VolumeManagerError::Access { kind, error } => write!(formatter, "the manager of {kind} volumes: {error}"),
            VolumeManagerError::Manager { explanation, .. } => formatter.write_str(explanation),
        }
    }
}

type Endpoint = volume_manager::Imp<states::Ready>;

/// An open volume manager.
pub struct VolumeManager {
    kind: String,
    /// The endpoint between requests, or the error that closed it.
    endpoint: Result<Endpoint, AccessError>,
}

impl VolumeManager {
    /// Opens the manager of one kind of file system.
    pub fn open(namespace: &mut Namespace, kind: &str) -> Result<VolumeManager, VolumeManagerError> {
        let opened = namespace.open(&format!("/dev/{kind}"), volume_manager::new_channel, |importer| {
            match wait(importer, REQUEST_LIMIT)? {
                volume_manager::ImpStart::Success { next } => Ok(next),
                volume_manager::ImpStart::Refused { .. } => Err(NameError::Exhausted.into()),
                volume_manager::ImpStart::ChannelClosed(_) => Err(AccessError::ServerEnded),
            }
        });
        match opened {
            Ok(endpoint) => Ok(VolumeManager { kind: kind.into(), endpoint: Ok(endpoint) }),
            Err(error) => Err(VolumeManagerError::Access { kind: kind.into(), error }),
        }
    }

    /// Opens all managers of this system.
    pub fn open_all(namespace: &mut Namespace) -> Result<Vec<VolumeManager>, VolumeManagerError> {
        let mut managers = Vec::new();
        for kind in KINDS {
            match VolumeManager::open(namespace, kind) {
                Ok(manager) => managers.push(manager),
                Err(VolumeManagerError::Access { error: AccessError::Name(NameError::NotFound), .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(managers)
    }

    /// Returns the kind of file system it manages.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Mounts a disk. If it is read-only, returns the reason.
    pub fn mount(
        &mut self,
        disk: &str,
        point: &str,
        access: MountAccess,
    ) -> Result<Option<String>, VolumeManagerError> {
        let (disk, point) = (self.block(disk)?, self.block(point)?);
        match self.ask(BULK_LIMIT, |ready| ready.mount(disk, point, access))? {
            volume_manager::ImpReadyAfterMount::Mounted { read_only, explanation, next } => {
                self.endpoint = Ok(next);
                Ok(read_only.then(|| explanation.to_text()))
            }
            volume_manager::ImpReadyAfterMount::Failed { error, explanation, next } => {
                Err(self.failed(error, &explanation, next))
            }
            volume_manager::ImpReadyAfterMount::ChannelClosed(_) => Err(self.ended()),
        }
    }

    /// Unmounts the volume at a path.
    pub fn unmount(&mut self, point: &str) -> Result<(), VolumeManagerError> {
        let point = self.block(point)?;
        match self.ask(BULK_LIMIT, |ready| ready.unmount(point))? {
            volume_manager::ImpReadyAfterUnmount::Done { next } => {
                self.endpoint = Ok(next);
                Ok(())
            }
            volume_manager::ImpReadyAfterUnmount::Failed { error, explanation, next } => {
                Err(self.failed(error, &explanation, next))
            }
            volume_manager::ImpReadyAfterUnmount::ChannelClosed(_) => Err(self.ended()),
        }
    }

    /// Formats a disk. Returns the report.
    pub fn format(&mut self, disk: &str, options: FormatOptions) -> Result<String, VolumeManagerError> {
        let disk = self.block(disk)?;
        match self.ask(VOLUME_LIMIT, |ready| ready.format(disk, options))? {
            volume_manager::ImpReadyAfterFormat::Formatted { report, next } => {
                self.endpoint = Ok(next);
                Ok(report.to_text())
            }
            volume_manager::ImpReadyAfterFormat::Failed { error, explanation, next } => {
                Err(self.failed(error, &explanation, next))
            }
            volume_manager::ImpReadyAfterFormat::ChannelClosed(_) => Err(self.ended()),
        }
    }

    /// Checks the file system on a disk. Returns the outcome and the report.
    pub fn check(&mut self, disk: &str, mode: CheckMode) -> Result<(CheckOutcome, String), VolumeManagerError> {
        let disk = self.block(disk)?;
        match self.ask(VOLUME_LIMIT, |ready| ready.check(disk, mode))? {
            volume_manager::ImpReadyAfterCheck::Checked { outcome, report, next } => {
                self.endpoint = Ok(next);
                Ok((outcome, report.to_text()))
            }
            volume_manager::ImpReadyAfterCheck::Failed { error, explanation, next } => {
                Err(self.failed(error, &explanation, next))
            }
            volume_manager::ImpReadyAfterCheck::ChannelClosed(_) => Err(self.ended()),
        }
    }

    /// Lists the mounted volumes.
    pub fn list(&mut self) -> Result<Vec<MountRecord>, VolumeManagerError> {
        let mut room = 32;
        loop {
            let records = ExVec::<MountRecord>::new(room).map_err(|status| self.error(status.into()))?;
            match self.ask(REQUEST_LIMIT, |ready| ready.list(records))? {
                volume_manager::ImpReadyAfterList::Listed { mounts, count, next } => {
                    self.endpoint = Ok(next);
                    let count = count as usize;
                    if count <= mounts.len() {
                        return Ok(mounts[..count].to_vec());
                    }
                    room = count;
                }
                volume_manager::ImpReadyAfterList::ChannelClosed(_) => return Err(self.ended()),
            }
        }
    }

    /// Returns the statistics of the volume at a path.
    pub fn statistics(&mut self, point: &str) -> Result<VolumeStatistics, VolumeManagerError> {
        let point = self.block(point)?;
        match self.ask(REQUEST_LIMIT, |ready| ready.get_statistics(point))? {
            volume_manager::ImpReadyAfterGetStatistics::Statistics { statistics, next } => {
                self.endpoint = Ok(next);
                Ok(statistics)
            }
            volume_manager::ImpReadyAfterGetStatistics::Failed { error, explanation, next } => {
                Err(self.failed(error, &explanation, next))
            }
            volume_manager::ImpReadyAfterGetStatistics::ChannelClosed(_) => Err(self.ended()),
        }
    }

    /// Waits until written data of all its volumes is on their media.
    pub fn sync(&mut self) -> Result<(), VolumeManagerError> {
        match self.ask(BULK_LIMIT, |ready| ready.sync())? {
            volume_manager::ImpReadyAfterSync::Done { next } => {
                self.endpoint = Ok(next);
                Ok(())
            }
            volume_manager::ImpReadyAfterSync::Failed { error, explanation, next } => {
                Err(self.failed(error, &explanation, next))
            }
            volume_manager::ImpReadyAfterSync::ChannelClosed(_) => Err(self.ended()),
        }
    }

    /// Sends a request and waits for its answer, which returns the endpoint.
    fn ask<R: Receiver>(
        &mut self,
        limit: Duration,
        request: impl FnOnce(Endpoint) -> R,
    ) -> Result<R::Event, VolumeManagerError> {
        let ready = mem::replace(&mut self.endpoint, Err(AccessError::ServerEnded));
        let answer = ready.and_then(|ready| wait(request(ready), limit));
        answer.map_err(|error| {
            self.endpoint = Err(error);
            self.error(error)
        })
    }

    fn block(&self, text: &str) -> Result<ExVec<u8>, VolumeManagerError> {
        block(text).map_err(|status| self.error(status.into()))
    }

    fn failed(&mut self, error: VolumeError, explanation: &ExVec<u8>, next: Endpoint) -> VolumeManagerError {
        self.endpoint = Ok(next);
        VolumeManagerError::Manager { error, explanation: explanation.to_text() }
    }

    fn ended(&self) -> VolumeManagerError {
        self.error(AccessError::ServerEnded)
    }

    fn error(&self, error: AccessError) -> VolumeManagerError {
        VolumeManagerError::Access { kind: self.kind.clone(), error }
    }
}

/// Sends a request to each manager in turn until one answers with anything but `unknown`. If none does, returns the
/// last answer.
pub fn ask_each<T>(
    managers: &mut [VolumeManager],
    unknown: VolumeError,
    mut ask: impl FnMut(&mut VolumeManager) -> Result<T, VolumeManagerError>,
) -> Result<T, VolumeManagerError> {
    let mut last = None;
    for manager in managers {
        match ask(manager) {
            Err(error) if error.error() == Some(unknown) => last = Some(error),
            other => return other,
        }
    }
    Err(last.unwrap_or_else(|| VolumeManagerError::Access {
        kind: KINDS.join(" or ").to_string(),
        error: NameError::NotFound.into(),
    }))
}

/// Resolves a disk given as a path or as a name in `/dev`.
pub fn disk_path(working_folder: &str, asked: &str) -> String {
    match asked.contains('/') {
        true => path::absolute(working_folder, asked),
        false => path::join("/dev", asked),
    }
}
