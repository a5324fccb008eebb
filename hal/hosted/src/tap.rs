//! A TAP interface of the host as a device; see [`abi::packets`].
//!
//! Key types: [`TapSpecification`] (an interface to open), [`Tap`] (an open interface), [`TapError`]. Packets are
//! received under one lock, so that they keep their order. A pending request gets its packet from the host thread that
//! waits for packets, or from the next request, whichever comes first. Closing the device cancels pending requests
//! before it can be opened again, so that none takes a packet of the next owner. Neighbour: `tap_calls` (system calls).
//! Deliberately not here: the contents of packets.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use abi::packets::{CHECKSUM_GOOD, NO_WAIT, Treatment};
use hal_api::{DeviceFailure, DeviceKind, DeviceOperation, DeviceResult, Submitted};

use crate::entries;
use crate::socket_calls::{self, number};
use crate::tap_calls::{self as calls, Header};
use crate::transfer::Memory;

/// `features` of the driver's contract: checksum offload for TCP and UDP, and TCP segmentation offload for IPv4 and
/// IPv6.
const TREATED: u64 = 1 | 1 << 1 | 1 << 2;
/// Address of the host's end if this machine creates the interface.
const HOST_ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 168, 77, 1);
const HOST_MASK: Ipv4Addr = Ipv4Addr::new(255, 255, 255, 0);
/// MTU of an interface that this machine creates: only memory lies between the ends, as for the host's loopback.
const HOST_MTU: u16 = 16 * 1024;

const THREAD_STACK_BYTES: usize = 128 * 1024;

/// A TAP interface to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TapSpecification {
    /// The host's name for it.
    pub name: String,
    /// Disables offloads: every packet carries its checksums. Otherwise the host fills them in where needed.
    pub plain: bool,
}

/// Reason why a TAP interface cannot be used.
#[derive(Debug)]
pub struct TapError {
    name: String,
    reason: io::Error,
}

impl fmt::Display for TapError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, reason } = self;
        match reason.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => write!(
                formatter,
                "TAP interface {name}: this user may not open it; make it for this user: `sudo ip tuntap add dev {name} \
                 mode tap user $USER && sudo ip address add {HOST_ADDRESS}/24 dev {name} && sudo ip link set {name} up`"
            ),
            Some(libc::EBUSY) => write!(
                formatter,
                "TAP interface {name}: another program is using it; end that one, or give another interface"
            ),
            Some(libc::EINVAL) => write!(
                formatter,
                "TAP interface {name}: the host has an interface of this name, which is no TAP interface; give the name of another"
            ),
            Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => write!(
                formatter,
                "TAP interface {name}: the host has no /dev/net/tun; load its driver with `sudo modprobe tun`"
            ),
            _ if reason.kind() == io::ErrorKind::InvalidInput => {
                write!(
                    formatter,
                    "TAP interface {name}: this is no name of an interface; use 1 to 15 letters and digits"
                )
            }
            _ => write!(formatter, "TAP interface {name}: it cannot be opened ({reason}); look at it with `ip link`"),
        }
    }
}

/// A pending read.
#[derive(Clone, Copy, Debug)]
struct Request {
    token: u64,
    memory: Memory,
}

#[derive(Debug, Default)]
struct State {
    /// In the order in which they get packets.
    requests: VecDeque<Request>,
    /// Interrupts the host thread's wait; created with the thread.
    alarm: Option<Arc<OwnedFd>>,
}

/// The device.
#[derive(Debug)]
pub(crate) struct Tap {
    file: OwnedFd,
    treats: bool,
    /// The machine's own hardware address, distinct from that of the host's end.
    hardware: [u8; 6],
    mtu: u16,
    state: Mutex<State>,
    begun: Condvar,
}

impl Tap {
    /// Opens the interface, or creates it; returns the device, and a notice if it is down.
    pub(crate) fn open(specification: &TapSpecification) -> Result<(Arc<Tap>, Option<String>), TapError> {
        let name = &specification.name;
        let failed = |reason| TapError { name: name.clone(), reason };
        let is_new = !calls::exists(name);
        let treats = !specification.plain;
        let file = calls::open(name, treats).map_err(failed)?;
        let mut notice = None;
        if is_new {
            calls::bring_up(name, HOST_ADDRESS, HOST_MASK, HOST_MTU).map_err(failed)?;
        } else if !calls::is_up(name).map_err(failed)? {
            notice = Some(format!(
                "TAP interface {name}: it is down, and no packet goes over it; type `sudo ip link set {name} up`"
            ));
        }
        let hardware = own_address(calls::hardware_address(name).map_err(failed)?);
        let mtu = calls::mtu(name).map_err(failed)?;
        let (state, begun) = (Mutex::default(), Condvar::new());
        Ok((Arc::new(Tap { file, treats, hardware, mtu, state, begun }), notice))
    }

    /// Returns kind and properties for the kernel.
    pub(crate) fn kind(&self) -> DeviceKind {
        let features = if self.treats { TREATED } else { 0 };
        DeviceKind::Packets { mac_address: self.hardware, mtu: self.mtu, features }
    }

    /// Starts a request.
    pub(crate) fn submit(
        self: &Arc<Self>,
        token: u64,
        operation: DeviceOperation,
        offset: u64,
        memory: Memory,
    ) -> Submitted {
        match operation {
            DeviceOperation::Read => self.read(Request { token, memory }, offset & NO_WAIT == 0),
            DeviceOperation::Write => Submitted::Complete(self.send(Treatment::from_offset(offset), memory)),
            DeviceOperation::Flush => {
                self.look(&mut lock(&self.state));
                Submitted::Complete(Ok(0))
            }
        }
    }

    fn read(self: &Arc<Self>, request: Request, waits: bool) -> Submitted {
        let mut state = lock(&self.state);
        self.look(&mut state);
        let nothing = Submitted::Complete(Ok(0));
        if !state.requests.is_empty() {
            if waits {
                state.requests.push_back(request);
            }
            return if waits { Submitted::Queued } else { nothing };
        }
        match self.receive(request.memory) {
            Ok(Some(answer)) => Submitted::Complete(Ok(answer)),
            Ok(None) if !waits => nothing,
            Ok(None) if self.prepare(&mut state).is_ok() => {
                state.requests.push_back(request);
                self.begun.notify_one();
                Submitted::Queued
            }
            Ok(None) | Err(DeviceFailure) => Submitted::Complete(Err(DeviceFailure)),
        }
    }

    /// Receives an available packet.
    fn receive(&self, memory: Memory) -> Result<Option<usize>, DeviceFailure> {
        loop {
            match calls::receive(number(&self.file), self.treats, memory) {
                Ok((bytes, header)) => {
                    let good = if header.is_good { CHECKSUM_GOOD as usize } else { 0 };
                    return Ok(Some(bytes | good));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                // The interface was removed.
                Err(_) => return Err(DeviceFailure),
            }
        }
    }

    fn send(&self, treatment: Treatment, memory: Memory) -> DeviceResult {
        // Offloads that were not offered are refused.
        if treatment != Treatment::default() && !self.treats {
            return Err(DeviceFailure);
        }
        let Treatment { checksum_start, checksum_offset, segment_bytes, header_bytes, version_6 } = treatment;
        let header = Header {
            checksum_start,
            checksum_offset: checksum_offset.into(),
            segment_bytes,
            header_bytes: header_bytes.into(),
            version_6,
            is_good: false,
        };
        match calls::send(number(&self.file), self.treats, header, memory) {
            Ok(()) => Ok(memory.bytes()),
            Err(error) if error.raw_os_error() == Some(libc::EBADFD) => Err(DeviceFailure),
            // Dropped: no room, the interface is down, or it is not a valid packet.
            Err(_) => Ok(0),
        }
    }

    /// Delivers available packets to pending requests.
    fn look(&self, state: &mut State) {
        while let Some(request) = state.requests.front() {
            let result = match self.receive(request.memory) {
                Ok(None) => return,
                Ok(Some(answer)) => Ok(answer),
                Err(failure) => Err(failure),
            };
            let token = request.token;
            state.requests.pop_front();
            // Under the lock, so that packets are completed in order.
            announce(token, result);
        }
    }

    /// Creates the host thread that waits for packets.
    fn prepare(self: &Arc<Self>, state: &mut State) -> io::Result<()> {
        if state.alarm.is_none() {
            let alarm = socket_calls::alarm()?;
            let device = Arc::clone(self);
            let thread = thread::Builder::new().name("tap".into()).stack_size(THREAD_STACK_BYTES);
            thread.spawn(move || device.wait())?;
            state.alarm = Some(Arc::new(alarm));
        }
        Ok(())
    }

    /// Runs the host thread, which waits while a request is pending.
    fn wait(&self) {
        let mut state = lock(&self.state);
        loop {
            let alarm = if state.requests.is_empty() { None } else { state.alarm.clone() };
            let Some(alarm) = alarm else {
                state = self.begun.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(state);
            socket_calls::wait_for_any(&[number(&self.file), number(&alarm)]);
            socket_calls::silence(number(&alarm));
            state = lock(&self.state);
            self.look(&mut state);
        }
    }

    /// See [`hal_api::Machine::device_closed`].
    pub(crate) fn close(&self) {
        let mut state = lock(&self.state);
        let requests = std::mem::take(&mut state.requests);
        if let Some(alarm) = &state.alarm {
            socket_calls::ring(number(alarm));
        }
        drop(state);
        for request in requests {
            announce(request.token, Err(DeviceFailure));
        }
    }
}

/// Derives the machine's address from that of the host's end: locally administered, with the last bit changed.
fn own_address(mut address: [u8; 6]) -> [u8; 6] {
    address[0] = address[0] & !1 | 2;
    address[5] ^= 1;
    address
}

fn announce(token: u64, result: DeviceResult) {
    if let Some(entries) = entries::get() {
        (entries.device_complete)(token, result.unwrap_or(0) as u64, result.is_err());
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_unusable_interface_has_its_sentence() {
        let cases = [
            (libc::EPERM, "ip tuntap add dev x mode tap"),
            (libc::EBUSY, "another program"),
            (libc::EINVAL, "of another"),
            (libc::ENOENT, "modprobe tun"),
            (libc::EIO, "ip link"),
        ];
        for (number, part) in cases {
            let said = TapError { name: "x".into(), reason: io::Error::from_raw_os_error(number) }.to_string();
            assert!(said.starts_with("TAP interface x: ") && said.contains(part) && said.contains("; "), "{said}");
        }
        for name in ["", "a-name-that-is-far-too-long"] {
            let refused = Tap::open(&TapSpecification { name: name.into(), plain: true }).err();
            // Without /dev/net/tun the error differs.
            assert!(refused.is_some(), "{name}");
        }
    }

    #[test]
    fn the_machine_has_an_address_of_its_own() {
        assert_eq!(own_address([0x0a, 1, 2, 3, 4, 5]), [0x0a, 1, 2, 3, 4, 4]);
        assert_eq!(own_address([0x01, 1, 2, 3, 4, 4]), [0x02, 1, 2, 3, 4, 5]);
    }
}
