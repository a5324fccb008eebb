//! Errors of the tool: a sentence for the report, and an exit status.

use alloc::format;
use alloc::string::{String, ToString};

use client::access::AccessError;
use contracts::directory::NameError;
use contracts::volume_manager::VolumeError;
use fat::Error;
use stdio::PipeBroken;

/// Exit status of the contract's first error.
const FIRST_REASON: i32 = 16;

/// Why a task failed.
pub(crate) struct Refusal {
    reason: VolumeError,
    /// Text for the user.
    pub(crate) sentence: String,
}

impl Refusal {
    pub(crate) fn new(reason: VolumeError, sentence: impl Into<String>) -> Refusal {
        Refusal { reason, sentence: sentence.into() }
    }

    /// The exit status of this error.
    pub(crate) fn status(&self) -> i32 {
        FIRST_REASON + self.reason as i32
    }

    /// A disk that cannot be opened.
    pub(crate) fn access(error: AccessError) -> Refusal {
        let reason = match error {
            AccessError::Name(NameError::NotFound | NameError::NotADirectory) => VolumeError::NotFound,
            AccessError::Name(NameError::NotPermitted) => VolumeError::NotPermitted,
            AccessError::Name(NameError::WrongContract | NameError::BadPath) => VolumeError::BadRequest,
            AccessError::System(_) | AccessError::Name(NameError::Exhausted) => VolumeError::Exhausted,
            _ => VolumeError::DeviceError,
        };
        Refusal::new(reason, error.to_string())
    }

    /// The reader of the report is gone.
    pub(crate) fn pipe(broken: PipeBroken) -> Refusal {
        Refusal::new(VolumeError::Exhausted, broken.to_string())
    }

    /// A failed format.
    pub(crate) fn format(error: Error, label: &str) -> Refusal {
        match error {
            Error::BadName => {
                let label = label.escape_debug();
                let sentence = format!(
                    "`{label}` is not a valid label: at most 11 ASCII characters, letters, digits and some punctuation"
                );
                Refusal::new(VolumeError::BadRequest, sentence)
            }
            Error::NoSpace => Refusal::new(
                VolumeError::NoSpace,
                "the disk is too small for a FAT volume, or for clusters of that size",
            ),
            Error::TooLarge | Error::Exhausted => Refusal::new(
                VolumeError::NotSupported,
                "the disk is too large for a FAT volume, or for clusters of that size",
            ),
            other => Refusal::check(other),
        }
    }

    /// A failed check.
    pub(crate) fn check(error: Error) -> Refusal {
        let reason = match error {
            Error::NotRecognised => VolumeError::NotRecognised,
            Error::NotSupported => VolumeError::NotSupported,
            Error::Damaged(_) => VolumeError::Damaged,
            Error::ReadOnly => VolumeError::ReadOnly,
            Error::Exhausted => VolumeError::Exhausted,
            Error::NoSpace => VolumeError::NoSpace,
            _ => VolumeError::DeviceError,
        };
        Refusal::new(reason, error.to_string())
    }
}
