//! Errors of requests to the namespace and to files, in one type for programs that only report them.

use core::fmt;

use contracts::directory::NameError;
use contracts::file::FileError;
use sip::Status;

/// Error of a request for a name or a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessError {
    /// The directory service or file system refused the name.
    Name(NameError),
    /// The file system refused the operation on the file.
    File(FileError),
    /// The path lies in no file system, so no file, folder or link can be created there.
    NoFileSystem,
    /// The server ended before it answered.
    ServerEnded,
    /// The server runs but did not answer within the request's limit; its channel was closed.
    NoAnswer {
        /// The contract of the request.
        contract: &'static str,
        /// The limit that passed, in seconds.
        limit_s: u64,
    },
    /// The kernel refused a block or a channel for the request.
    System(Status),
}

impl AccessError {
    /// Returns whether a retry may succeed: the server ended and is being restarted.
    pub fn may_pass(self) -> bool {
        matches!(
            self,
            AccessError::Name(NameError::Unavailable)
                | AccessError::File(FileError::Unavailable)
                | AccessError::ServerEnded
        )
    }

    /// Returns whether every other request to this volume will fail as well.
    pub fn concerns_all(self) -> bool {
        matches!(
            self,
            AccessError::Name(NameError::ReadOnly | NameError::NoSpace | NameError::Unavailable)
                | AccessError::File(FileError::ReadOnly | FileError::NoSpace | FileError::Unavailable)
                | AccessError::ServerEnded
                | AccessError::NoAnswer { .. }
                | AccessError::System(_)
        )
    }
}

impl From<NameError> for AccessError {
    fn from(error: NameError) -> AccessError {
        AccessError::Name(error)
    }
}

impl From<FileError> for AccessError {
    fn from(error: FileError) -> AccessError {
        AccessError::File(error)
    }
}

impl From<Status> for AccessError {
    fn from(status: Status) -> AccessError {
        AccessError::System(status)
    }
}

impl fmt::Display for AccessError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AccessError::Name(error) => formatter.write_str(name_text(*error)),
            AccessError::File(error) => formatter.write_str(file_text(*error)),
            AccessError::NoFileSystem => formatter.write_str(NO_FILE_SYSTEM),
            AccessError::ServerEnded => {
                formatter.write_str("its server ended during the request; try again, it is being restarted")
            }
            AccessError::NoAnswer { contract, limit_s } => write!(
                formatter,
                "its server has not answered a {contract} request for {limit_s} s; `ps` and `log` show \
                 what it waits for, and `stop` and `start`, or `umount` and `mount`, start it again"
            ),
            AccessError::System(status) => write!(formatter, "the kernel refused: {}", status.text()),
        }
    }
}

const NOT_FOUND: &str = "not found; look at the folder above it with `ls`";
const NO_FILE_SYSTEM: &str =
    "it lies in no file system, so nothing can be made there; choose a path below a mounted volume (`df` lists them)";
const NOT_PERMITTED: &str =
    "this program may not; the system manifest's [[bind]] rules and `acl` on the path say who may";
const UNAVAILABLE: &str = "its server is not running; see `ps` and `log`, `start` starts it";
const BELOW_ENDED: &str = "the driver of its disk ended during the request; try again, it is being restarted";
const NOT_A_DIRECTORY: &str = "a part of the path is not a folder";
const IS_A_DIRECTORY: &str = "it is a folder; `ls` shows what is in it";
const BAD_PATH: &str = "invalid path: parts are UTF-8 of at most 255 bytes, without `..`";
const TOO_MANY_LINKS: &str = "too many levels of symbolic links";
const DEVICE: &str = "the device failed; see `log`";
const DAMAGED: &str = "the file system is damaged there; unmount it and run `check --repair` on its disk";
const READ_ONLY: &str = "its volume is mounted read only; `df` shows which are";
const NO_SPACE: &str = "its volume has no room left; remove something from it (`df` and `du` show what takes room)";
const EXHAUSTED: &str = "its server has no memory or handles left; end some of its clients and try again";

fn name_text(error: NameError) -> &'static str {
    match error {
        NameError::NotFound => NOT_FOUND,
        NameError::NotPermitted => NOT_PERMITTED,
        NameError::Unavailable => UNAVAILABLE,
        NameError::WrongContract => "its provider speaks another contract",
        NameError::NotADirectory => NOT_A_DIRECTORY,
        NameError::IsADirectory => IS_A_DIRECTORY,
        NameError::BadPath => BAD_PATH,
        NameError::TooManyLinks => TOO_MANY_LINKS,
        NameError::AlreadyExists => "the name is taken",
        NameError::NotSupported => "its server does not support this",
        NameError::DeviceError => DEVICE,
        NameError::Damaged => DAMAGED,
        NameError::Exhausted => EXHAUSTED,
        NameError::ReadOnly => READ_ONLY,
        NameError::NoSpace => NO_SPACE,
        NameError::NotEmpty => "the folder is not empty",
        NameError::IntoItself => "a folder cannot be moved into itself or below itself",
        NameError::TooManyNames => "too many hard links",
        NameError::BadAcl => "not a valid access control list; see `setacl -?`",
    }
}

fn file_text(error: FileError) -> &'static str {
    match error {
        FileError::NotFound => NOT_FOUND,
        FileError::NotPermitted => NOT_PERMITTED,
        FileError::IsADirectory => IS_A_DIRECTORY,
        FileError::NotADirectory => NOT_A_DIRECTORY,
        FileError::NotAFile => "it is neither a file nor a folder",
        FileError::BadPath => BAD_PATH,
        FileError::TooManyLinks => TOO_MANY_LINKS,
        FileError::DeviceError => DEVICE,
        FileError::Unavailable => BELOW_ENDED,
        FileError::Damaged => DAMAGED,
        FileError::Exhausted => EXHAUSTED,
        FileError::ReadOnly => READ_ONLY,
        FileError::NoSpace => NO_SPACE,
        FileError::TooLarge => "the file would be too large for its file system",
    }
}
