//! Requests to the service manager, for command-line programs.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use contracts::directory::NameError;
use contracts::service_manager::{self, ServiceError, ServiceRecord, states};
use sip::Deadline;
use sip::exheap::ExVec;

use crate::access::AccessError;
use crate::answer::{BULK_LIMIT, REQUEST_LIMIT, wait};
use crate::namespace::{Namespace, block};

/// Path of the service manager.
pub const PATH: &str = "/service/manager";

/// Interval at which a wait for the end of the boot checks whether it was cancelled, in milliseconds.
const POLL_MS: u64 = 50;

/// Error of a request to the service manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceManagerError {
    /// The service manager could not be reached.
    Access(AccessError),
    /// The service manager refused the request.
    Service(ServiceError),
}

impl fmt::Display for ServiceManagerError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            ServiceManagerError::Access(error) => return write!(formatter, "the service manager: {error}"),
            ServiceManagerError::Service(ServiceError::NotFound) => "no service has that name; `services` lists them",
            ServiceManagerError::Service(ServiceError::NotPermitted) => {
                "this program may not; the system manifest's [[bind]] rules say who may"
            }
            ServiceManagerError::Service(ServiceError::AlreadyRunning) => "it is already running",
            ServiceManagerError::Service(ServiceError::NotRunning) => "it is not running",
            ServiceManagerError::Service(ServiceError::NotStarted) => "its program could not be started; see `log`",
            ServiceManagerError::Service(ServiceError::Exhausted) => {
                "the service manager is out of memory; try again later"
            }
        };
        formatter.write_str(text)
    }
}

impl<E: Into<AccessError>> From<E> for ServiceManagerError {
    fn from(error: E) -> ServiceManagerError {
        ServiceManagerError::Access(error.into())
    }
}

type Endpoint = service_manager::Imp<states::Ready>;

fn open(namespace: &mut Namespace) -> Result<Endpoint, AccessError> {
    namespace.open(PATH, service_manager::new_channel, |importer| match wait(importer, REQUEST_LIMIT)? {
        service_manager::ImpStart::Success { next } => Ok(next),
        service_manager::ImpStart::Refused { .. } => Err(NameError::Exhausted.into()),
        service_manager::ImpStart::ChannelClosed(_) => Err(AccessError::ServerEnded),
    })
}

/// Lists all services in boot order.
pub fn list(namespace: &mut Namespace) -> Result<Vec<ServiceRecord>, ServiceManagerError> {
    let mut endpoint = open(namespace)?;
    let mut room = 64;
    loop {
        let records = ExVec::<ServiceRecord>::new(room)?;
        match wait(endpoint.list(records), REQUEST_LIMIT)? {
            service_manager::ImpReadyAfterList::Listed { records, count, next } => {
                let count = count as usize;
                if count <= records.len() {
                    return Ok(records[..count].to_vec());
                }
                room = count;
                endpoint = next;
            }
            service_manager::ImpReadyAfterList::ChannelClosed(_) => return Err(AccessError::ServerEnded.into()),
        }
    }
}

/// Waits until boot is complete: each service runs or has failed. Polls `is_given_up`; returns false once that returns
/// true.
pub fn await_start(
    namespace: &mut Namespace,
    mut is_given_up: impl FnMut() -> bool,
) -> Result<bool, ServiceManagerError> {
    let mut waiting = open(namespace)?.await_start();
    loop {
        waiting = match waiting.receive_by(Deadline::after_ms(POLL_MS)) {
            Ok(service_manager::ImpReadyAfterAwaitStart::Started { .. }) => return Ok(true),
            Ok(service_manager::ImpReadyAfterAwaitStart::ChannelClosed(_)) => {
                return Err(AccessError::ServerEnded.into());
            }
            Err(_) if is_given_up() => return Ok(false),
            Err(waiting) => waiting,
        };
    }
}

/// Starts a service that was stopped or failed.
pub fn start(namespace: &mut Namespace, name: &str) -> Result<(), ServiceManagerError> {
    match wait(open(namespace)?.start(block(name)?), BULK_LIMIT)? {
        service_manager::ImpReadyAfterStart::Done { .. } => Ok(()),
        service_manager::ImpReadyAfterStart::Failed { error, .. } => Err(ServiceManagerError::Service(error)),
        service_manager::ImpReadyAfterStart::ChannelClosed(_) => Err(AccessError::ServerEnded.into()),
    }
}

/// Stops a service until it is started again.
pub fn stop(namespace: &mut Namespace, name: &str) -> Result<(), ServiceManagerError> {
    match wait(open(namespace)?.stop(block(name)?), BULK_LIMIT)? {
        service_manager::ImpReadyAfterStop::Done { .. } => Ok(()),
        service_manager::ImpReadyAfterStop::Failed { error, .. } => Err(ServiceManagerError::Service(error)),
        service_manager::ImpReadyAfterStop::ChannelClosed(_) => Err(AccessError::ServerEnded.into()),
    }
}

/// Checks whether the caller may end programs of other principals.
pub fn ask_control(namespace: &mut Namespace) -> Result<(), ServiceManagerError> {
    match wait(open(namespace)?.ask_control(), REQUEST_LIMIT)? {
        service_manager::ImpReadyAfterAskControl::Done { .. } => Ok(()),
        service_manager::ImpReadyAfterAskControl::Failed { error, .. } => Err(ServiceManagerError::Service(error)),
        service_manager::ImpReadyAfterAskControl::ChannelClosed(_) => Err(AccessError::ServerEnded.into()),
    }
}

/// Restarts the machine.
pub fn restart(namespace: &mut Namespace) -> Result<(), ServiceManagerError> {
    match wait(open(namespace)?.restart(), BULK_LIMIT)? {
        // As for `power_off`.
        service_manager::ImpReadyAfterRestart::Done { .. }
        | service_manager::ImpReadyAfterRestart::ChannelClosed(_) => Ok(()),
        service_manager::ImpReadyAfterRestart::Failed { error, .. } => Err(ServiceManagerError::Service(error)),
    }
}

/// Powers the machine off with an exit status.
pub fn power_off(namespace: &mut Namespace, exit_status: u32) -> Result<(), ServiceManagerError> {
    match wait(open(namespace)?.power_off(exit_status), BULK_LIMIT)? {
        // The machine may be off before the answer.
        service_manager::ImpReadyAfterPowerOff::Done { .. }
        | service_manager::ImpReadyAfterPowerOff::ChannelClosed(_) => Ok(()),
        service_manager::ImpReadyAfterPowerOff::Failed { error, .. } => Err(ServiceManagerError::Service(error)),
    }
}

/// Returns the name of a service state, from its number in a record.
pub fn state_word(state: u32) -> &'static str {
    const WORDS: [&str; 5] = ["starting", "running", "backing off", "stopped", "failed"];
    WORDS.get(state as usize).copied().unwrap_or("unknown")
}

/// A padded text of a record.
pub fn text(padded: &[u8]) -> String {
    text::padded(padded)
}
