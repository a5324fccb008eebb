//! Errors of requests, with an explanation for the user.

use alloc::format;
use alloc::string::{String, ToString};

use client::access::AccessError;
use contracts::directory::NameError;
use contracts::file_system::FileSystemError;
use contracts::service_provider::StartError;
use contracts::volume_manager::VolumeError;
use sip::Status;

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Error {
    /// The code in the reply.
    pub(crate) error: VolumeError,
    /// Text for the user.
    pub(crate) explanation: String,
}

impl Error {
    pub(crate) fn new(error: VolumeError, explanation: impl Into<String>) -> Error {
        Error { error, explanation: explanation.into() }
    }

    /// A kernel resource was refused.
    pub(crate) fn exhausted(what: &str, status: Status) -> Error {
        Error::new(VolumeError::Exhausted, format!("{what}: {}", status.text()))
    }
}

/// Maps a directory error about a mount point.
pub(crate) fn of_point(point: &str, error: AccessError) -> Error {
    let kind = match error {
        AccessError::Name(NameError::AlreadyExists | NameError::NotSupported) => VolumeError::PointBusy,
        AccessError::Name(NameError::NotPermitted) => VolumeError::NotPermitted,
        AccessError::Name(NameError::Exhausted) | AccessError::System(_) => VolumeError::Exhausted,
        _ => VolumeError::BadRequest,
    };
    let words = match kind {
        VolumeError::PointBusy => String::from("the name is taken, or its folder belongs to another file system"),
        _ => error.to_string(),
    };
    Error::new(kind, format!("{point}: {words}"))
}

/// Maps a file system's start error.
pub(crate) fn of_start(error: StartError) -> VolumeError {
    match error {
        StartError::Missing => VolumeError::DeviceError,
        StartError::NotRecognised => VolumeError::NotRecognised,
        StartError::NotSupported => VolumeError::NotSupported,
        StartError::Damaged => VolumeError::Damaged,
        StartError::BadParameter => VolumeError::BadRequest,
        StartError::Exhausted => VolumeError::Exhausted,
    }
}

/// Maps a file system's flush error.
pub(crate) fn of_file_system(point: &str, error: FileSystemError) -> Error {
    let (error, words) = match error {
        FileSystemError::DeviceError => {
            (VolumeError::DeviceError, "writing to its disk failed; unwritten data is kept, `log` may tell more")
        }
        FileSystemError::Unavailable => {
            (VolumeError::DeviceError, "the driver of its disk has ended; unwritten data is kept, try again")
        }
        FileSystemError::Damaged => {
            (VolumeError::Damaged, "the file system is inconsistent; unwritten data is kept, copy away what you need")
        }
        FileSystemError::Exhausted => (VolumeError::Exhausted, "its file system is out of memory; try again"),
        FileSystemError::NoSpace => (VolumeError::NoSpace, "the volume has no space left for the unwritten data"),
    };
    Error::new(error, format!("{point}: {words}"))
}

/// Decodes a tool's exit status; `None` if it is not a known error.
pub(crate) fn of_tool(status: i32) -> Option<VolumeError> {
    /// Exit status of the first specific error.
    const FIRST: i32 = 16;
    const REASONS: [VolumeError; 13] = [
        VolumeError::NotFound,
        VolumeError::NotPermitted,
        VolumeError::NotRecognised,
        VolumeError::NotSupported,
        VolumeError::DiskBusy,
        VolumeError::PointBusy,
        VolumeError::NotMounted,
        VolumeError::DeviceError,
        VolumeError::ReadOnly,
        VolumeError::Damaged,
        VolumeError::NoSpace,
        VolumeError::BadRequest,
        VolumeError::Exhausted,
    ];
    usize::try_from(status.checked_sub(FIRST)?).ok().and_then(|index| REASONS.get(index).copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_statuses_of_tools_match_the_errors() {
        assert_eq!(of_tool(16), Some(VolumeError::NotFound));
        for status in 16..29 {
            assert_eq!(of_tool(status).map(|reason| reason as i32), Some(status - 16));
        }
        for status in [i32::MIN, -1, 0, 1, 4, 8, 15, 29] {
            assert_eq!(of_tool(status), None, "{status}");
        }
    }
}
