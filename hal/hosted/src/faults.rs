//! Fault injection: device requests that fail on purpose, for tests of error handling.
//!
//! Key type: [`Faults`]. Present only on request. Deliberately not here: the devices affected.

use std::sync::atomic::{AtomicU64, Ordering};

use abi::sockets::Failure;
use hal_api::DeviceFailure;

/// The injected errors, in rotation.
const KINDS: [Result<Failure, DeviceFailure>; 7] = [
    Ok(Failure::TooManySockets),
    Ok(Failure::Reset),
    Err(DeviceFailure),
    Ok(Failure::Exhausted),
    Ok(Failure::Other),
    Ok(Failure::TimedOut),
    Ok(Failure::NotPermitted),
];

/// Injects a fault at a fixed interval.
#[derive(Debug)]
pub(crate) struct Faults {
    every: u64,
    counted: AtomicU64,
}

impl Faults {
    /// Fails one request of this many.
    pub(crate) fn every(requests: u32) -> Self {
        Self { every: u64::from(requests).max(1), counted: AtomicU64::new(0) }
    }

    /// Counts a request and returns the fault to inject, if any.
    pub(crate) fn next(&self) -> Option<Result<Failure, DeviceFailure>> {
        let number = self.counted.fetch_add(1, Ordering::Relaxed) + 1;
        number.is_multiple_of(self.every).then(|| KINDS[(number / self.every) as usize % KINDS.len()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_so_many_fails_and_each_in_another_way() {
        let faults = Faults::every(3);
        let found: Vec<_> = (0..21).map(|_| faults.next()).collect();
        assert!(found.iter().enumerate().all(|(index, fault)| fault.is_some() == (index % 3 == 2)));
        let kinds: Vec<_> = found.into_iter().flatten().collect();
        assert!(KINDS.iter().all(|kind| kinds.contains(kind)));
    }
}
