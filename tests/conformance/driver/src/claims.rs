//! Devices fixed by the manifest, and exclusive claims.

use conformance_contract::errand::ImpReadyAfterCall;
use sip::Status;
use sip::device::Device;
use sip::hardware::{Hardware, RangeKind};

use crate::{Stage, devices};

/// Ports take widths up to 4.
pub(crate) fn ports(_: Stage) -> i32 {
    let hardware = Hardware::open(devices::PORTS as usize).expect("the ports");
    assert_eq!((hardware.range_count(), hardware.interrupt_count()), (1, 0));
    let ports = hardware.range(0).expect("a range");
    assert_eq!((ports.kind(), ports.base(), ports.bytes()), (RangeKind::Ports, 0x6000, 8));
    ports.write32(4, 0x0403_0201).expect("a port");
    assert_eq!((ports.read32(4), ports.read16(6), ports.read8(7)), (Ok(0x0403_0201), Ok(0x0403), Ok(4)));
    assert_eq!(ports.read64(0), Err(Status::BadArgument));
    assert_eq!(ports.read8(8), Err(Status::BadArgument));
    // A device that no bus has published reaches no memory.
    let block = sip::exheap::ExVec::<u8>::new(64).expect("a block");
    assert_eq!(hardware.begin_dma(block).map_err(|(_, status)| status).err(), Some(Status::NotPermitted));
    0
}

/// Opens the ports, notifies its client, and waits for the reply.
pub(crate) fn hold_ports(mut stage: Stage) -> i32 {
    let _ports = Hardware::open(devices::PORTS as usize).expect("the ports");
    match stage.client().call(1).receive() {
        ImpReadyAfterCall::Answer { .. } => 0,
        ImpReadyAfterCall::ChannelClosed(_) => 1,
    }
}

/// Opens the device with this number: its exit status is that of the kernel's reply.
pub(crate) fn open(stage: Stage) -> i32 {
    Device::open(stage.number as usize).map_or_else(|status| status as i32, |_| 0)
}

/// The host provides a hosted system's wall clock.
pub(crate) fn wall_clock(_: Stage) -> i32 {
    let before = sip::time::wall();
    assert_eq!(sip::time::set_wall(1), Err(Status::NotPermitted));
    assert!(sip::time::wall() >= before);
    0
}
