//! Errors of the system's contracts as those of WASI.

use client::access::AccessError;
use client::random::RandomError;
use contracts::directory::NameError;
use contracts::file::FileError;
use sip::Status;
use stdio::PipeBroken;

use crate::abi::Errno;

impl From<NameError> for Errno {
    fn from(error: NameError) -> Errno {
        match error {
            NameError::NotFound => Errno::NOENT,
            NameError::NotPermitted => Errno::ACCES,
            NameError::NotADirectory => Errno::NOTDIR,
            NameError::IsADirectory => Errno::ISDIR,
            NameError::BadPath | NameError::IntoItself | NameError::BadAcl => Errno::INVAL,
            NameError::TooManyLinks => Errno::LOOP,
            NameError::AlreadyExists => Errno::EXIST,
            NameError::NotSupported | NameError::WrongContract => Errno::NOTSUP,
            NameError::Unavailable | NameError::DeviceError | NameError::Damaged => Errno::IO,
            NameError::Exhausted => Errno::NFILE,
            NameError::ReadOnly => Errno::ROFS,
            NameError::NoSpace => Errno::NOSPC,
            NameError::NotEmpty => Errno::NOTEMPTY,
            NameError::TooManyNames => Errno::MLINK,
        }
    }
}

impl From<FileError> for Errno {
    fn from(error: FileError) -> Errno {
        match error {
            FileError::NotFound => Errno::NOENT,
            FileError::NotPermitted => Errno::ACCES,
            FileError::IsADirectory => Errno::ISDIR,
            FileError::NotADirectory => Errno::NOTDIR,
            FileError::NotAFile => Errno::NXIO,
            FileError::BadPath => Errno::INVAL,
            FileError::TooManyLinks => Errno::LOOP,
            FileError::DeviceError | FileError::Unavailable | FileError::Damaged => Errno::IO,
            FileError::Exhausted => Errno::NFILE,
            FileError::ReadOnly => Errno::ROFS,
            FileError::NoSpace => Errno::NOSPC,
            FileError::TooLarge => Errno::FBIG,
        }
    }
}

impl From<Status> for Errno {
    /// A kernel refuses a block or a channel when a quota has run out.
    fn from(_: Status) -> Errno {
        Errno::NFILE
    }
}

impl From<AccessError> for Errno {
    fn from(error: AccessError) -> Errno {
        match error {
            AccessError::Name(error) => error.into(),
            AccessError::File(error) => error.into(),
            AccessError::NoFileSystem => Errno::ACCES,
            AccessError::ServerEnded | AccessError::NoAnswer { .. } => Errno::IO,
            AccessError::System(status) => status.into(),
        }
    }
}

impl From<RandomError> for Errno {
    fn from(error: RandomError) -> Errno {
        match error {
            RandomError::Access(error) => error.into(),
            RandomError::Source(_) => Errno::IO,
        }
    }
}

impl From<PipeBroken> for Errno {
    fn from(error: PipeBroken) -> Errno {
        match error {
            PipeBroken::Closed | PipeBroken::Refused(_) => Errno::PIPE,
            PipeBroken::System(status) => status.into(),
        }
    }
}
