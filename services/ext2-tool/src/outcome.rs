//! Errors of the tool: a sentence for the report, and an exit status.

use alloc::string::String;
use alloc::string::ToString;
use core::fmt;

use client::access::AccessError;
use contracts::directory::NameError;
use contracts::volume_manager::VolumeError;
use ext2::DiskError;
use stdio::PipeBroken;

/// Exit status of the contract's first error.
const FIRST_REASON: i32 = 16;

/// Why a task failed.
pub(crate) struct Refusal {
    reason: VolumeError,
    sentence: String,
}

impl Refusal {
    pub(crate) fn new(reason: VolumeError, sentence: &dyn fmt::Display) -> Refusal {
        Refusal { reason, sentence: sentence.to_string() }
    }

    pub(crate) fn task(task: &str) -> Refusal {
        Refusal::new(VolumeError::BadRequest, &format_args!("there is no task `{task}`; give `format` or `check`"))
    }

    pub(crate) fn access(error: AccessError) -> Refusal {
        let reason = match error {
            AccessError::Name(NameError::NotFound) => VolumeError::NotFound,
            AccessError::Name(NameError::NotPermitted) => VolumeError::NotPermitted,
            AccessError::System(_) => VolumeError::Exhausted,
            _ => VolumeError::DeviceError,
        };
        Refusal::new(reason, &error)
    }

    /// The exit status of this error.
    pub(crate) fn status(&self) -> i32 {
        FIRST_REASON + self.reason as i32
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.sentence)
    }
}

impl From<PipeBroken> for Refusal {
    fn from(broken: PipeBroken) -> Refusal {
        Refusal::new(VolumeError::Exhausted, &broken)
    }
}

/// Maps a disk error.
pub(crate) fn of_disk(error: DiskError) -> VolumeError {
    match error {
        DiskError::ReadOnly => VolumeError::ReadOnly,
        DiskError::NoMemory => VolumeError::Exhausted,
        DiskError::Failed(_) | DiskError::Short | DiskError::Gone | DiskError::NoAnswer => VolumeError::DeviceError,
    }
}
