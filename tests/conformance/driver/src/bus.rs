//! The bus: publishes two of its devices and operates on them at its client's request.

use errand::ExpReady;
use sip::hardware::Hardware;
use sip::hardware::bus::{Bus, DeviceNumber, Publication};
use sip::{Deadline, Status};

use crate::{Stage, devices, register};
use conformance_contract::errand;

/// Requests to the bus: this, with the device in the bits from 8 on.
const IS_ADOPTED: u64 = 1;
const LINE: u64 = 2;
const RELEASED: u64 = 3;
const FILL: u64 = 4;
const SILENCE: u64 = 5;

const NAMES: [&str; 2] = ["sim-a", "sim-b"];
/// Data of a line's interrupt message, in addition to its number.
const MESSAGE_DATA: u32 = 0x4000;

struct Published {
    number: DeviceNumber,
    is_adopted: bool,
    line: u32,
}

fn open_bus() -> Bus {
    Bus::new(Hardware::open(devices::SIMULATED_BUS as usize).expect("the bus"))
}

fn publish(bus: &Bus, index: usize) -> Published {
    let publication = bus.publish(NAMES[index]).expect("a publication");
    let first = index as u64 * register::DEVICE_BYTES;
    publication.add_range(0, first, register::DEVICE_BYTES).expect("the range of the device");
    let adopted = publication.adopted().map(|messages| messages[0].data);
    let data = adopted.unwrap_or_else(|| {
        let allocated = bus.allocate_interrupt().expect("an interrupt");
        assert_eq!(publication.add_interrupt(allocated.interrupt), Ok(0));
        allocated.message.data
    });
    let number = publication.open().expect("the device can be opened");
    Published { number, is_adopted: adopted.is_some(), line: data - MESSAGE_DATA }
}

/// Publishes the devices, and replies until its client is gone.
pub(crate) fn serve(mut stage: Stage) -> i32 {
    let mut server = stage.server();
    let bus = open_bus();
    let registers = bus.hardware().range(0).expect("the registers of the bus");
    let published = [publish(&bus, 0), publish(&bus, 1)];
    while let ExpReady::Call { value, next } = server.receive() {
        let index = (value >> 8) as usize;
        let device = &published[index];
        let first = index as u64 * register::DEVICE_BYTES;
        let answer = match value & 0xff {
            IS_ADOPTED => device.is_adopted.into(),
            LINE => device.line.into(),
            RELEASED => match bus.next_released(Deadline::after_ms(2000)) {
                Ok(number) => u64::from(number == device.number),
                Err(status) => status as u64 + 1000,
            },
            FILL => registers.write32(first + register::DMA_FILL, 0xee).map_or(1, |()| 0),
            SILENCE => {
                registers.write32(first + register::RESET, 1).expect("a register");
                bus.ready(device.number).map_or_else(|status| status as u64, |()| 0)
            }
            _ => u64::MAX,
        };
        server = next.answer(answer);
    }
    0
}

fn refused<T>(what: &str, answer: Result<T, Status>, with: Status) {
    assert!(answer.as_ref().err() == Some(&with), "{what}: {:?}, not {with:?}", answer.err());
}

/// Operations that a bus must not perform.
pub(crate) fn rules(_: Stage) -> i32 {
    let bus = open_bus();
    refused("a name that is none", bus.publish("Sim A").map(drop), Status::BadArgument);
    refused("a name of the machine's", bus.publish("console").map(drop), Status::Busy);
    refused("its own name", bus.publish("simulated-bus").map(drop), Status::Busy);
    let whole = 4 * register::DEVICE_BYTES;
    let third = bus.publish("sim-c").expect("a publication");
    refused("a name twice", bus.publish("sim-c").map(drop), Status::Busy);
    refused("a range that is not there", third.add_range(2, 0, 1), Status::NotFound);
    refused("nothing of a range", third.add_range(0, 0, 0), Status::BadArgument);
    refused("past the end", third.add_range(0, whole - 8, 9), Status::BadArgument);
    refused("far past the end", third.add_range(0, u64::MAX - 3, 8), Status::BadArgument);
    assert_eq!(third.add_range(0, 2 * register::DEVICE_BYTES, register::DEVICE_BYTES), Ok(0));
    refused("an interrupt that is not there", third.add_interrupt(200), Status::NotFound);
    assert_eq!(third.add_interrupt(1), Ok(0));
    refused("an interrupt twice", third.add_interrupt(1), Status::Busy);
    let given = bus.hardware().interrupt(1).expect("an interrupt of the bus");
    refused("an interrupt that was given", given.wait(Deadline::PASSED), Status::NotPermitted);
    let fourth = bus.publish("sim-d").expect("a publication");
    let other = third.number();
    refused("a part of another device", fourth.add_range(0, 3 * register::DEVICE_BYTES - 1, 2), Status::Busy);
    refused("a device that nobody had", bus.ready(other), Status::WrongState);
    open_early(third);
    0
}

/// A device exists from the moment when it is opened to drivers.
fn open_early(publication: Publication) {
    let number = publication.number();
    assert_eq!(publication.open(), Ok(number));
}
