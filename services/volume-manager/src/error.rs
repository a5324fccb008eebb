//! Why a request was not done, with a sentence for people.

use alloc::format;
use alloc::string::{String, ToString};

use client::access::AccessError;
use contracts::directory::NameError;
use contracts::file_system::FileSystemError;
use contracts::service_provider::StartError;
use contracts::volume_manager::VolumeError;
use sip::Status;

/// Why a request was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Error {
    /// For programs.
    pub(crate) error: VolumeError,
    /// For people.
    pub(crate) explanation: String,
}

impl Error {
    pub(crate) fn new(error: VolumeError, explanation: impl Into<String>) -> Error {
        Error { error, explanation: explanation.into() }
    }

    /// The kernel did not give what is needed.
    pub(crate) fn exhausted(what: &str, status: Status) -> Error {
        Error::new(VolumeError::Exhausted, format!("{what}: {}", status.text()))
    }
}

/// What to tell of the directory's answer about a mount point.
pub(crate) fn of_point(point: &str, error: AccessError) -> Error {
    let kind = match error {
        AccessError::Name(NameError::AlreadyExists | NameError::NotSupported) => VolumeError::PointBusy,
        AccessError::Name(NameError::NotPermitted) => VolumeError::NotPermitted,
        AccessError::Name(NameError::Exhausted) | AccessError::System(_) => VolumeError::Exhausted,
        _ => VolumeError::BadRequest,
    };
    let words = match kind {
        VolumeError::PointBusy => {
            String::from("something else has that name, or serves the folder in which it would be")
        }
        _ => error.to_string(),
    };
    Error::new(kind, format!("{point}: {words}"))
}

/// A file system's reason not to serve.
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

/// A file system's reason not to have written everything.
pub(crate) fn of_file_system(point: &str, error: FileSystemError) -> Error {
    let (error, words) = match error {
        FileSystemError::DeviceError => (
            VolumeError::DeviceError,
            "its disk could not be written; what was not written is kept, `log` may tell more",
        ),
        FileSystemError::Unavailable => {
            (VolumeError::DeviceError, "the driver of its disk has ended; what was not written is kept, try again")
        }
        FileSystemError::Damaged => (
            VolumeError::Damaged,
            "what is on the disk contradicts itself; what was not written is kept, copy away what you need",
        ),
        FileSystemError::Exhausted => (VolumeError::Exhausted, "its file system has no memory left; try again"),
        FileSystemError::NoSpace => (VolumeError::NoSpace, "the volume has no room left for what was not written"),
    };
    Error::new(error, format!("{point}: {words}"))
}

/// The reason that a tool's exit status stands for; `None` where it is none.
pub(crate) fn of_tool(status: i32) -> Option<VolumeError> {
    /// What the statuses for particular reasons begin with.
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
    fn exit_statuses_of_tools_number_the_reasons() {
        assert_eq!(of_tool(16), Some(VolumeError::NotFound));
        for status in 16..29 {
            assert_eq!(of_tool(status).map(|reason| reason as i32), Some(status - 16));
        }
        for status in [i32::MIN, -1, 0, 1, 4, 8, 15, 29] {
            assert_eq!(of_tool(status), None, "{status}");
        }
    }
}
