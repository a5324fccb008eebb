//! Random bytes for a program: the `Entropy` contract as one function.
//!
//! Deliberately not here: a PRNG; each byte comes from the machine's source.

use core::fmt;

use contracts::entropy::{self, EntropyError, states};
use sip::exheap::ExVec;

use crate::access::AccessError;
use crate::answer::{DEVICE_LIMIT, REQUEST_LIMIT, wait};
use crate::namespace::Namespace;

/// Path of the machine's source of random bytes.
pub const SOURCE: &str = "/dev/random";

/// Error of a request for random bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RandomError {
    /// The source could not be opened, or its driver ended.
    Access(AccessError),
    /// The source failed.
    Source(EntropyError),
}

impl<E: Into<AccessError>> From<E> for RandomError {
    fn from(error: E) -> RandomError {
        RandomError::Access(error.into())
    }
}

impl fmt::Display for RandomError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RandomError::Access(error) => error.fmt(formatter),
            RandomError::Source(EntropyError::DeviceError) => formatter.write_str("the device failed; see `log`"),
            RandomError::Source(EntropyError::Exhausted) => {
                formatter.write_str("its driver is out of memory; try again")
            }
        }
    }
}

/// An open source of random bytes.
pub struct Source {
    endpoint: entropy::Imp<states::Ready>,
}

impl Source {
    /// Opens the machine's source.
    ///
    /// # Errors
    /// There is none, or the program may not use it.
    pub fn open(namespace: &mut Namespace) -> Result<Source, RandomError> {
        let opened = namespace.open(SOURCE, entropy::new_channel, |importer| match wait(importer, REQUEST_LIMIT)? {
            entropy::ImpStart::Success { next } => Ok(Ok(next)),
            entropy::ImpStart::Refused { error, .. } => Ok(Err(error)),
            entropy::ImpStart::ChannelClosed(_) => Err(AccessError::ServerEnded),
        })?;
        opened.map(|endpoint| Source { endpoint }).map_err(RandomError::Source)
    }

    /// Fills a block with random bytes.
    ///
    /// # Errors
    /// The device failed, or its driver ended; open the source again.
    pub fn fill(self, data: ExVec<u8>) -> Result<(Source, ExVec<u8>), RandomError> {
        match wait(self.endpoint.fill(data), DEVICE_LIMIT)? {
            entropy::ImpReadyAfterFill::Filled { data, next } => Ok((Source { endpoint: next }, data)),
            entropy::ImpReadyAfterFill::NotFilled { error, .. } => Err(RandomError::Source(error)),
            entropy::ImpReadyAfterFill::ChannelClosed(_) => Err(AccessError::ServerEnded.into()),
        }
    }
}
