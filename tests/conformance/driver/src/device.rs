//! A device: its registers, its interrupt, its DMA memory.

use alloc::vec;
use core::hint::black_box;

use conformance_contract::errand::ExpReady;
use sip::exheap::ExVec;
use sip::hardware::{Hardware, Interrupt, RangeKind, Registers};
use sip::select::wait_any;
use sip::{Deadline, Status};

use crate::{Stage, devices, register, sleep_forever};

/// Byte with which a device fills memory here.
const FILLED: u8 = 0x5a;

fn open() -> (Hardware, Registers) {
    let hardware = Hardware::open(devices::DEVICE as usize).expect("the device");
    assert_eq!((hardware.range_count(), hardware.interrupt_count()), (1, 1));
    let registers = hardware.range(0).expect("its registers");
    (hardware, registers)
}

/// Every width, and nothing outside of the range.
pub(crate) fn registers(_: Stage) -> i32 {
    let (hardware, registers) = open();
    assert_eq!((registers.kind(), registers.bytes()), (RangeKind::Memory, register::DEVICE_BYTES));
    assert!(hardware.range(1).is_err() && hardware.interrupt(1).is_err());
    registers.write64(8, 0x0807_0605_0403_0201).expect("a register");
    assert_eq!(registers.read64(8), Ok(0x0807_0605_0403_0201));
    assert_eq!(registers.read32(12), Ok(0x0807_0605));
    assert_eq!(registers.read16(10), Ok(0x0403));
    assert_eq!(registers.read8(15), Ok(8));
    registers.write8(8, 0xff).expect("a register");
    registers.write16(10, 0xeeee).expect("a register");
    registers.write32(12, 0xdddd_dddd).expect("a register");
    assert_eq!(registers.read64(8), Ok(0xdddd_dddd_eeee_02ff));
    let refused = Err(Status::BadArgument);
    for offset in [register::DEVICE_BYTES, u64::MAX, u64::MAX - 7, 1 << 63] {
        assert_eq!(registers.read8(offset), Err(Status::BadArgument));
        assert_eq!(registers.write8(offset, 1), refused);
    }
    assert!(registers.read8(register::DEVICE_BYTES - 1).is_ok());
    for (bytes, offsets) in [(2, [1, register::DEVICE_BYTES - 1]), (4, [2, register::DEVICE_BYTES - 2]), (8, [4, 12])] {
        for offset in offsets {
            let answer = match bytes {
                2 => registers.write16(offset, 0),
                4 => registers.write32(offset, 0),
                _ => registers.write64(offset, 0),
            };
            assert_eq!(answer, refused, "{bytes} bytes at {offset}");
        }
    }
    drop(registers);
    drop(hardware);
    // Closed, but not silenced yet.
    assert_eq!(sip::device::Device::open(devices::DEVICE as usize).err(), Some(Status::Busy));
    0
}

/// The device's interrupt, which is that line of the machine's.
fn interrupt(hardware: &Hardware) -> Interrupt {
    hardware.interrupt(0).expect("its interrupt")
}

/// Interrupts before the wait, during it, and none.
pub(crate) fn interrupts(stage: Stage) -> i32 {
    let (hardware, registers) = open();
    let (interrupt, line) = (interrupt(&hardware), stage.number as u32);
    // The first wait enables the line.
    assert_eq!(interrupt.wait(Deadline::PASSED), Err(Status::TimedOut));
    registers.write32(register::FIRE, line | 3 << 16).expect("a register");
    assert_eq!(interrupt.wait(Deadline::NEVER), Ok(3));
    let before = sip::time::monotonic();
    assert_eq!(interrupt.wait(Deadline::after_ms(20)), Err(Status::TimedOut));
    assert!(sip::time::monotonic() - before >= 19_000_000);
    for round in 0..20 {
        registers.write32(register::FIRE_LATER, line | (round % 4) << 16).expect("a register");
        assert_eq!(interrupt.wait(Deadline::after_ms(10_000)), Ok(1), "round {round}");
    }
    // Together with other objects.
    for round in 0..3 {
        registers.write32(register::FIRE_LATER, line | round << 16).expect("a register");
        assert_eq!(wait_any(&[&hardware], Deadline::after_ms(10_000)), Some(0), "any, round {round}");
        assert_eq!(interrupt.wait(Deadline::PASSED), Ok(1));
    }
    assert_eq!(wait_any(&[&hardware], Deadline::after_ms(5)), None);
    // With all processors busy.
    let _busy = sip::thread::spawn(|| {
        loop {
            black_box(0);
        }
    });
    for round in 0..20 {
        registers.write32(register::FIRE_LATER, line | (round % 4) << 16).expect("a register");
        assert_eq!(interrupt.wait(Deadline::after_ms(10_000)), Ok(1), "busy, round {round}");
    }
    // Another device's interrupt is not delivered to this one.
    registers.write32(register::FIRE, (line ^ 1) | 1 << 16).expect("a register");
    assert_eq!(interrupt.wait(Deadline::after_ms(20)), Err(Status::TimedOut));
    sip::process::exit(0)
}

/// Waits until it is killed.
pub(crate) fn interrupt_killed(mut stage: Stage) -> i32 {
    let (hardware, _registers) = open();
    let _told = stage.client().call(1);
    let waited = interrupt(&hardware).wait(Deadline::NEVER);
    panic!("nothing fired, and yet: {waited:?}");
}

/// Interrupt storm: the kernel masks the line and notifies the driver.
pub(crate) fn storm(stage: Stage) -> i32 {
    let (hardware, registers) = open();
    let (interrupt, line) = (interrupt(&hardware), stage.number as u32);
    assert_eq!(interrupt.wait(Deadline::PASSED), Err(Status::TimedOut));
    registers.write32(register::FIRE, line | 30_000 << 16).expect("a register");
    assert_eq!(interrupt.wait(Deadline::after_ms(1000)), Err(Status::DeviceError));
    registers.write32(register::FIRE, line | 1 << 16).expect("a register");
    assert_eq!(interrupt.wait(Deadline::after_ms(20)), Err(Status::DeviceError));
    0
}

/// The device writes a block, which is an ordinary one again afterwards.
pub(crate) fn dma(_: Stage) -> i32 {
    let (hardware, registers) = open();
    for bytes in [1usize, 64, 5000, 100_000] {
        let mut block = ExVec::from_slice(&vec![1u8; bytes]).expect("a block");
        block[0] = 7;
        let mut pinned = hardware.begin_dma(block).map_err(|(_, status)| status).expect("a pin");
        assert_eq!(pinned.bytes(), bytes);
        let mut seen = [0u8; 1];
        pinned.write(bytes - 1, &[9]).expect("the last byte");
        assert_eq!(pinned.write(bytes, &[9]), Err(Status::BadArgument));
        assert_eq!(pinned.read(usize::MAX, &mut seen), Err(Status::BadArgument));
        pinned.read(bytes - 1, &mut seen).expect("the last byte");
        assert_eq!(seen, [9]);
        registers.write64(register::DMA_ADDRESS, pinned.device_address()).expect("a register");
        registers.write32(register::DMA_BYTES, bytes as u32).expect("a register");
        registers.write32(register::DMA_FILL, FILLED.into()).expect("a register");
        pinned.read(0, &mut seen).expect("the first byte");
        assert_eq!(seen, [FILLED]);
        let block = pinned.end();
        assert!(block.iter().all(|&byte| byte == FILLED));
    }
    let empty = ExVec::<u8>::new(0).expect("an empty block");
    assert_eq!(hardware.begin_dma(empty).map_err(|(_, status)| status).err(), Some(Status::BadArgument));
    0
}

/// Pins a block of its own and one on loan, notifies its client, and waits to be killed.
pub(crate) fn hold_dma(mut stage: Stage) -> i32 {
    let (hardware, registers) = open();
    let ExpReady::Lend { data, next: _next } = stage.server().receive() else { panic!("no loan came") };
    let own = ExVec::<u8>::new(65_536).expect("a block");
    let own = hardware.begin_dma(own).map_err(|(_, status)| status).expect("a pin");
    let lent = hardware.begin_dma(data).map_err(|(_, status)| status).expect("a pin of a block on loan");
    let aim = if stage.number == 0 { own.device_address() } else { lent.device_address() };
    registers.write64(register::DMA_ADDRESS, aim).expect("a register");
    registers.write32(register::DMA_BYTES, 4096).expect("a register");
    let _told = stage.client().call(1);
    sleep_forever()
}
