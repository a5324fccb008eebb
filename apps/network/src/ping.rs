//! Sends ICMP echo requests and reports the round-trip times.
//!
//! Key module: `tally` (statistics). The network stack sends the requests and waits for the replies.

mod tally;

use alloc::format;
use alloc::string::String;
use core::net::IpAddr;
use core::time::Duration;

use client::namespace::Namespace;
use contracts::dns::AddressFamily;
use contracts::ip_configuration::IpError;
use network::address::Target;
use network::ip::IpStack;
use network::{NetError, resolve};
use sip::Deadline;
use stdio::{Output, PipeBroken, report};
use text::duration;

use tally::Tally;

sip::startup!("ping/manifest.toml");

/// Maximum payload in bytes: a packet of maximum size less the IPv6 and ICMP headers.
const MAX_BYTES: i64 = 65_535 - 40 - 8;

/// Advice if the stack cannot send echo requests: it is the host's.
const NO_ECHOES: &str =
    "the host does not permit ping; on Linux, `sysctl net.ipv4.ping_group_range='0 2147483647'` does";

/// Sends the requests, prints a line for each, and sums up.
pub fn main(startup: Startup) -> i32 {
    let plan = match Plan::new(startup.count, startup.size, startup.interval, startup.wait) {
        Ok(plan) => plan,
        Err(problem) => {
            report::error(format_args!("{problem}"));
            return 2;
        }
    };
    let mut namespace = Namespace::new(startup.namespace);
    let family = match (startup.ipv4, startup.ipv6) {
        (true, false) => AddressFamily::Version4,
        (false, true) => AddressFamily::Version6,
        _ => AddressFamily::Any,
    };
    let host = match Target::parse_host(&startup.host) {
        Ok(host) => host,
        Err(error) => return report::path_error(&format!("`{}`", startup.host), &error),
    };
    let found = resolve(&mut namespace, &host, family);
    let address = match found.map(|addresses| addresses.first().copied()) {
        Ok(Some(address)) => address,
        Ok(None) => return report::path_error(&startup.host, &NetError::Dns(contracts::dns::DnsError::NotFound)),
        Err(error) => return report::path_error(&startup.host, &error),
    };
    let mut stack = match IpStack::open(&mut namespace) {
        Ok(stack) => stack,
        Err(error) => return report::path_error(network::IP, &error),
    };
    let mut output = Output::new(startup.output);
    let mut tally = Tally::default();
    match plan.carry_out(&mut stack, address, &mut output, &mut tally) {
        Ok(()) => {
            let summary = format!("{tally}\n");
            let status = i32::from(tally.answered() == 0);
            output.write(summary.as_bytes()).map_or(1, |()| output.finish_with(status))
        }
        Err(Ending::Stack(error)) => {
            // Output printed so far is still shown.
            output.finish_with(1);
            match error {
                NetError::Ip(IpError::NotSupported) => report::path_error(&startup.host, &NO_ECHOES),
                NetError::Ip(IpError::BadAddress) => {
                    let bytes = plan.bytes;
                    report::path_error(
                        &startup.host,
                        &format_args!(
                            "{bytes} bytes do not fit one packet on this path; use a smaller --size (`ipconfig` shows the mtu)"
                        ),
                    )
                }
                error => report::path_error(&startup.host, &error),
            }
        }
        Err(Ending::Output) => 1,
    }
}

/// Why pinging ended early.
enum Ending {
    /// The stack failed or cannot send echo requests.
    Stack(NetError),
    /// The reader of the output has ended.
    Output,
}

impl From<PipeBroken> for Ending {
    fn from(_: PipeBroken) -> Ending {
        Ending::Output
    }
}

struct Plan {
    /// `None`: until interrupted.
    count: Option<u64>,
    bytes: u32,
    interval: Duration,
    wait_ms: u32,
}

impl Plan {
    fn new(count: i64, bytes: i64, interval: Duration, wait: Duration) -> Result<Plan, String> {
        let count = u64::try_from(count).map_err(|_| format!("`--count {count}`: use a number from 0"))?;
        let in_range = u32::try_from(bytes).ok().filter(|_| bytes <= MAX_BYTES);
        let bytes = in_range.ok_or_else(|| format!("`--size {bytes}`: write a number from 0 to {MAX_BYTES}"))?;
        let wait_ms = u32::try_from(wait.as_millis()).unwrap_or(u32::MAX).clamp(1, u32::MAX - 1);
        Ok(Plan { count: (count > 0).then_some(count), bytes, interval, wait_ms })
    }

    fn carry_out(
        &self,
        stack: &mut IpStack,
        address: IpAddr,
        output: &mut Output,
        tally: &mut Tally,
    ) -> Result<(), Ending> {
        let interval_ns = u64::try_from(self.interval.as_nanos()).unwrap_or(u64::MAX);
        output.write(format!("PING {address}: {} data bytes\n", self.bytes).as_bytes())?;
        let mut number: u64 = 0;
        while self.count.is_none_or(|count| number < count) {
            number += 1;
            let next = Deadline::after_ns(interval_ns);
            let line = self.ask(stack, address, number, tally)?;
            output.write(line.as_bytes())?;
            output.flush()?;
            if self.count.is_none_or(|count| number < count) {
                sip::time::sleep_until(next);
            }
        }
        Ok(())
    }

    /// Sends one request; returns the line that reports its result.
    fn ask(&self, stack: &mut IpStack, address: IpAddr, number: u64, tally: &mut Tally) -> Result<String, Ending> {
        // The sequence number wraps after 65,535.
        let sequence = (number & 0xffff) as u16;
        match stack.ping(address, self.bytes, sequence, self.wait_ms) {
            Ok(pong) => {
                tally.note(Some(pong.round_trip_ns));
                let hops = match pong.hop_limit {
                    0 => String::new(),
                    hops => format!(", ttl {hops}"),
                };
                Ok(format!("{number}: reply from {} in {}{hops}\n", pong.address, duration(pong.round_trip_ns)))
            }
            Err(NetError::Ip(IpError::TimedOut)) => {
                tally.note(None);
                Ok(format!("{number}: no reply within {}\n", duration(u64::from(self.wait_ms) * 1_000_000)))
            }
            Err(NetError::Ip(IpError::Unreachable)) => {
                tally.note(None);
                Ok(format!("{number}: {address} is unreachable\n"))
            }
            Err(error) => Err(Ending::Stack(error)),
        }
    }
}
