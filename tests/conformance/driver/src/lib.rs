//! Drives the simulated hardware of the hosted machine: as the driver of its bus, and as that of a device.
//!
//! One act per process, as with the other programs of the suite. Deliberately not here: raw calls, which are the
//! attacker's.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod bus;
mod claims;
mod device;

use conformance_contract::errand;
use sip::Deadline;

sip::startup!();

/// Resources of an act.
pub(crate) struct Stage {
    number: u64,
    client: Option<errand::Imp<errand::states::Ready>>,
    server: Option<errand::Exp<errand::states::Ready>>,
}

impl Stage {
    fn client(&mut self) -> errand::Imp<errand::states::Ready> {
        self.client.take().expect("the act needs the endpoint `client`")
    }

    fn server(&mut self) -> errand::Exp<errand::states::Ready> {
        self.server.take().expect("the act needs the endpoint `server`")
    }
}

/// Registers of the simulated devices; see the machine.
pub(crate) mod register {
    pub(crate) const FIRE: u64 = 0x40;
    pub(crate) const FIRE_LATER: u64 = 0x44;
    pub(crate) const DMA_ADDRESS: u64 = 0x48;
    pub(crate) const DMA_BYTES: u64 = 0x50;
    pub(crate) const DMA_FILL: u64 = 0x54;
    pub(crate) const RESET: u64 = 0x5c;
    /// Stride of the devices in bytes.
    pub(crate) const DEVICE_BYTES: u64 = 4096;
}

pub(crate) fn sleep_forever() -> ! {
    loop {
        sip::thread::sleep(Deadline::NEVER);
    }
}

type Act = fn(Stage) -> i32;

const ACTS: &[(&str, Act)] = &[
    ("sleep", |_| sleep_forever()),
    ("bus", bus::serve),
    ("bus-rules", bus::rules),
    ("registers", device::registers),
    ("interrupts", device::interrupts),
    ("interrupt-killed", device::interrupt_killed),
    ("storm", device::storm),
    ("dma", device::dma),
    ("hold-dma", device::hold_dma),
    ("ports", claims::ports),
    ("hold-ports", claims::hold_ports),
    ("open", claims::open),
    ("wall-clock", claims::wall_clock),
];

/// Performs the requested act.
pub fn main(startup: Startup) -> i32 {
    let Some((_, act)) = ACTS.iter().find(|(name, _)| *name == startup.act) else {
        panic!("there is no act `{}`", startup.act);
    };
    act(Stage { number: startup.number.unsigned_abs(), client: startup.client, server: startup.server })
}
