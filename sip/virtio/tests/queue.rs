//! The adapter's guarantees for a queue, whatever its device does.

use sip_virtio::model::{Behaviour, Faults, Machine, Memory, Way};
use sip_virtio::{Data, Device, DeviceError, Direction, Kind, Platform, Queue, Refused, Reply, Request};

/// Part of its configuration.
#[layout::registers(bytes = 8)]
struct Own {
    #[at(0)]
    all: ReadWrite<u64>,
    #[at(0, bank = "single")]
    first: ReadOnly<u8>,
    #[at(1, bank = "single")]
    second: ReadOnly<u8>,
    #[at(2, bank = "single")]
    third: ReadOnly<u16>,
    #[at(4, bank = "single")]
    fifth: ReadOnly<u32>,
}

type Requests = Queue<Machine, 8, Memory, u32>;

/// A device that writes the given bytes.
struct Writer {
    answer: Vec<u8>,
}

impl Behaviour for Writer {
    fn kind(&self) -> Kind {
        Kind::Entropy
    }

    fn features(&self) -> u64 {
        1 << 3
    }

    fn configuration(&self) -> Vec<u8> {
        vec![1, 2, 3, 4, 5, 6, 7, 8]
    }

    fn queues(&self) -> u16 {
        1
    }

    fn answer(&mut self, _queue: u16, _readable: &[u8], _room: usize) -> Option<Vec<u8>> {
        Some(self.answer.clone())
    }
}

fn started(answer: &[u8], way: Way) -> (Machine, Device<Machine>, Requests) {
    let machine = Machine::new(Writer { answer: answer.to_vec() }, way, Faults::none());
    let mut device = Device::start(machine.clone(), Kind::Entropy, &[], 0).expect("the device is right");
    let queue = device.queue(0).expect("it has the queue");
    device.ready().expect("the device is right");
    (machine, device, queue)
}

fn data(machine: &Machine, offset: usize, bytes: usize, direction: Direction) -> Option<Data<Memory>> {
    Some(Data { memory: machine.allocate(64).expect("memory"), offset, bytes, direction })
}

#[test]
fn header_data_and_reply_each_have_their_place() {
    for way in [Way::Mmio, Way::Pci] {
        let (machine, _device, mut queue) = started(b"ABCDEFdata", way);
        let first = Request {
            header: &[9; 4],
            data: data(&machine, 10, 20, Direction::FromDevice),
            reply: Reply::BeforeData(6),
        };
        let second =
            Request { header: &[], data: data(&machine, 0, 8, Direction::FromDevice), reply: Reply::AfterData(2) };
        queue.submit(first, 1).expect("room");
        queue.submit(second, 2).expect("room");
        assert_eq!(queue.in_flight(), 2);
        machine.run();
        let first = queue.complete().expect("the device is right").expect("it has answered");
        assert_eq!((first.tag, first.written, &first.reply[..8]), (1, 10, &b"ABCDEF\0\0"[..]));
        assert_eq!(&first.data.expect("data").memory.to_vec()[8..16], b"\0\0data\0\0");
        let second = queue.complete().expect("the device is right").expect("it has answered");
        assert_eq!((second.tag, &second.reply[..2]), (2, &b"ta"[..]));
        assert_eq!(&second.data.expect("data").memory.to_vec()[..9], b"ABCDEFda\0");
        assert!(queue.complete().expect("the device is right").is_none());
        assert_eq!(machine.stray_accesses(), 0);
    }
}

#[test]
fn a_reply_behind_the_data_lies_in_its_block_and_has_its_room_there() {
    for way in [Way::Mmio, Way::Pci] {
        let (machine, _device, mut queue) = started(b"answer", way);
        let asked = |room| Request {
            header: &[],
            data: data(&machine, 4, 10, Direction::ToDevice),
            reply: Reply::InBlock(room),
        };
        queue.submit(asked(50), 1).expect("room");
        machine.run();
        let answered = queue.complete().expect("the device is right").expect("it has answered");
        assert_eq!((answered.tag, answered.written), (1, 6));
        assert_eq!(&answered.data.expect("data").memory.to_vec()[12..21], b"\0\0answer\0");
        queue.submit(asked(5), 2).expect("room");
        machine.run();
        assert_eq!(queue.complete().err(), Some(DeviceError::TooMuchWritten { room: 5, written: 6 }));
        assert_eq!(machine.stray_accesses(), 0);
    }
}

#[test]
#[should_panic(expected = "a part of 51 bytes")]
fn a_reply_behind_the_data_ends_with_the_block() {
    let (machine, _device, mut queue) = started(&[], Way::Mmio);
    let data = data(&machine, 4, 10, Direction::ToDevice);
    drop(queue.submit(Request { header: &[], data, reply: Reply::InBlock(51) }, 1));
}

#[test]
fn a_full_queue_gives_the_data_back() {
    let (machine, _device, mut queue) = started(&[], Way::Pci);
    for tag in 0..8 {
        let asked = Request { header: &[], data: data(&machine, 0, 64, Direction::ToDevice), reply: Reply::None };
        queue.submit(asked, tag).expect("room");
    }
    let asked = Request { header: &[], data: data(&machine, 0, 64, Direction::ToDevice), reply: Reply::None };
    let refused = queue.submit(asked, 8).expect_err("there is no room");
    assert!(matches!(refused, Refused { data: Some(_), tag: 8, error: None }));
}

#[test]
fn more_than_there_is_room_for_is_an_error_and_the_data_stays_until_the_reset() {
    let (machine, device, mut queue) = started(&[7; 9], Way::Mmio);
    let asked = Request { header: &[], data: data(&machine, 0, 9, Direction::FromDevice), reply: Reply::None };
    queue.submit(asked, 1).expect("room");
    let asked = Request { header: &[], data: data(&machine, 0, 8, Direction::FromDevice), reply: Reply::None };
    queue.submit(asked, 2).expect("room");
    machine.run();
    assert_eq!(queue.complete().expect("so far all is right").expect("answered").tag, 1);
    let before = machine.blocks();
    let error = DeviceError::TooMuchWritten { room: 8, written: 9 };
    assert_eq!(queue.complete().err(), Some(error));
    assert_eq!(machine.blocks(), before, "the device may still have it");
    let asked = Request { header: &[1], data: None, reply: Reply::None };
    assert_eq!(queue.submit(asked, 3).expect_err("nothing more is asked of it").error, Some(error));
    assert_eq!(queue.complete().err(), Some(error), "error does not pass");
    drop((queue, device));
    assert_eq!(machine.blocks(), 0);
}

#[test]
fn memory_of_a_device_that_is_not_reset_is_never_given_back() {
    let (machine, _device, mut queue) = started(&[], Way::Mmio);
    let asked = Request { header: &[], data: data(&machine, 0, 64, Direction::FromDevice), reply: Reply::None };
    queue.submit(asked, 1).expect("room");
    let before = machine.blocks();
    machine.set_deaf(true);
    drop(queue);
    assert_eq!(machine.blocks(), before);
    assert_eq!(Device::start(machine.clone(), Kind::Entropy, &[], 0).err(), Some(DeviceError::NotReset));
    machine.set_deaf(false);
    assert!(Device::start(machine, Kind::Entropy, &[], 0).is_ok());
}

#[test]
fn a_device_is_started_once_its_features_are_agreed_on() {
    let machine = Machine::new(Writer { answer: Vec::new() }, Way::Pci, Faults::none());
    let device = Device::start(machine.clone(), Kind::Entropy, &[(1 << 3, "the third")], 1 << 5).expect("offered");
    assert!(device.has(1 << 3) && device.has(1 << 32) && !device.has(1 << 5));
    let read = device.configuration(|from| {
        let own = Own::over(from);
        (own.second().read(), own.third().read(), own.fifth().read(), own.all().read())
    });
    assert_eq!(read, Ok((2, 0x0403, 0x0807_0605, 0x0807_0605_0403_0201)));
    let written = device.configuration(|from| Own::over(from).all().write(0));
    assert_eq!(written, Err(DeviceError::Registers(sip::Status::NotPermitted)), "a configuration is read only");
    let missing = Device::start(machine.clone(), Kind::Entropy, &[(1 << 4, "the fourth")], 0).err();
    assert_eq!(missing, Some(DeviceError::FeatureMissing("the fourth")));
}

#[test]
fn a_configuration_that_never_stays_the_same_is_error() {
    for way in [Way::Mmio, Way::Pci] {
        let machine = Machine::new(Writer { answer: Vec::new() }, way, Faults::none());
        let device = Device::start(machine.clone(), Kind::Entropy, &[], 0).expect("the device is right");
        machine.set_restless(true);
        assert_eq!(device.configuration(|from| Own::over(from).first().read()), Err(DeviceError::Unsteady));
        machine.set_restless(false);
        assert_eq!(device.configuration(|from| Own::over(from).first().read()), Ok(1));
    }
}

#[test]
fn a_queue_that_is_missing_or_too_short_is_refused() {
    let machine = Machine::new(Writer { answer: Vec::new() }, Way::Mmio, Faults::none());
    let mut device = Device::start(machine, Kind::Entropy, &[], 0).expect("the device is right");
    let missing = device.queue::<8, Memory, u32>(1).err();
    assert_eq!(missing, Some(DeviceError::QueueTooShort { queue: 1, needed: 8, found: 0 }));
    let long = device.queue::<512, Memory, u32>(0).err();
    assert_eq!(long, Some(DeviceError::QueueTooShort { queue: 0, needed: 512, found: 256 }));
    let _first = device.queue::<8, Memory, u32>(0).expect("it has the queue");
    assert_eq!(device.queue::<8, Memory, u32>(0).err(), Some(DeviceError::QueueInUse(0)));
}

#[test]
fn a_request_that_is_not_answered_is_noticed() {
    let (machine, _device, mut queue) = started(&[], Way::Mmio);
    assert_eq!(queue.check_time(5_000), Ok(()));
    queue.submit(Request { header: &[1], data: None, reply: Reply::None }, 1).expect("room");
    machine.pass_ms(4_999);
    assert_eq!(queue.check_time(5_000), Ok(()));
    machine.pass_ms(1);
    assert_eq!(queue.check_time(5_000), Err(DeviceError::NoAnswer { waited_ms: 5_000 }));
}
