//! Many SIPs and channels that are alive during another measurement.

use alloc::vec::Vec;

use bench_contract::measured::{self, states::Ready};
use sip::diagnostics;

use crate::measures::{Failure, Other, Server};

/// Number of channels per SIP of the crowd.
const CHANNELS_EACH: u64 = 10;

/// The crowd: each SIP waits on a channel of its own.
pub struct Crowd {
    servers: Vec<Server>,
    channels: Vec<(measured::Imp<Ready>, measured::Exp<Ready>)>,
    bytes_per_sip: u64,
}

impl Crowd {
    /// Starts `count` SIPs and creates ten channels for each.
    pub fn gather(count: i64) -> Result<Crowd, Failure> {
        let count = count.clamp(0, 19_000) as u64;
        let before = memory_bytes()?;
        let mut servers = Vec::new();
        for _ in 0..count {
            // An answer shows that it has started and waits for the next request.
            servers.push(Server::start(Other::Sip)?.ask()?);
        }
        let bytes_per_sip = memory_bytes()?.saturating_sub(before).checked_div(count).unwrap_or(0);
        let mut channels = Vec::new();
        for _ in 0..count * (CHANNELS_EACH - 1) {
            channels.push(measured::new_channel().map_err(|_| Failure("no channel for the crowd"))?);
        }
        Ok(Crowd { servers, channels, bytes_per_sip })
    }

    /// Number of SIPs.
    pub fn sips(&self) -> u64 {
        self.servers.len() as u64
    }

    /// Number of channels, including those of the SIPs.
    pub fn channels(&self) -> u64 {
        (self.servers.len() + self.channels.len()) as u64
    }

    /// Paged memory per SIP in bytes, without its stack and image.
    pub fn bytes_per_sip(&self) -> u64 {
        self.bytes_per_sip
    }

    /// Ends all SIPs and waits for them.
    pub fn dismiss(self) -> Result<(), Failure> {
        drop(self.channels);
        self.servers.into_iter().try_for_each(Server::end)
    }
}

/// Paged memory of all SIPs in bytes.
fn memory_bytes() -> Result<u64, Failure> {
    let processes = diagnostics::processes().map_err(|_| Failure("the list of processes cannot be read"))?;
    Ok(processes.iter().map(|process| process.memory_bytes).sum())
}
