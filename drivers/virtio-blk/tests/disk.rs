//! The disk driver against a correct device.

use sip_virtio::model::kinds::Disk;
use sip_virtio::model::{Behaviour, Faults, Machine, Memory, Way};
use sip_virtio::{Core, DeviceError, Direction, Kind, Platform};
use virtio_blk::blk::{Blk, Finished, Key};

type Driver = Blk<Machine, Memory>;

const WAYS: [Way; 2] = [Way::Mmio, Way::Pci];

fn started(disk: Disk, way: Way) -> (Machine, Driver) {
    let machine = Machine::new(disk, way, Faults::none());
    let driver = Driver::start(machine.clone()).expect("a correct device");
    (machine, driver)
}

fn block(machine: &Machine, bytes: &[u8]) -> Memory {
    let memory = machine.allocate(bytes.len()).expect("memory");
    memory.fill(bytes);
    memory
}

fn finish(machine: &Machine, driver: &mut Driver, key: Key) -> Finished<Memory> {
    machine.run();
    driver.serve().expect("a correct device");
    driver.take(key).expect("the device has answered")
}

#[test]
fn writes_are_read_back() {
    for way in WAYS {
        let (machine, mut driver) = started(Disk::new(64), way);
        assert_eq!((driver.size_bytes(), driver.is_read_only()), (64 * 512, false));
        let text: Vec<u8> = (0..1024u32).map(|index| (index * 7) as u8).collect();
        let key = driver.transfer(Direction::ToDevice, 512, block(&machine, &text), 1024).expect("room");
        assert!(finish(&machine, &mut driver, key).done);
        let key = driver.flush().expect("room");
        assert!(finish(&machine, &mut driver, key).done);
        let key = driver.transfer(Direction::FromDevice, 512, block(&machine, &[1; 2048]), 1024).expect("room");
        let read = finish(&machine, &mut driver, key);
        assert!(read.done);
        let bytes = read.data.expect("the block comes back").to_vec();
        assert_eq!(&bytes[..1024], &text);
        assert_eq!(&bytes[1024..], &[1; 1024], "bytes outside the transfer are unchanged");
        drop(driver);
        machine.run();
        assert_eq!((machine.stray_accesses(), machine.blocks()), (0, 0), "a driver that ends leaves nothing pinned");
    }
}

#[test]
fn many_transfers_are_in_flight() {
    for way in WAYS {
        let (machine, mut driver) = started(Disk::new(64), way);
        let mut keys = Vec::new();
        let mut refused = 0;
        for sector in 0..40 {
            match driver.transfer(Direction::ToDevice, sector * 512, block(&machine, &[sector as u8; 512]), 512) {
                Ok(key) => keys.push(key),
                Err(busy) => {
                    assert!(busy.data.is_some(), "the block comes back");
                    refused += 1;
                }
            }
        }
        assert!(keys.len() >= 16 && refused > 0, "{} at once", keys.len());
        assert_eq!(driver.in_flight(), keys.len());
        machine.run();
        driver.serve().expect("a correct device");
        assert!(keys.iter().all(|&key| driver.take(key).expect("answered").done));
        assert_eq!(driver.in_flight(), 0);
        let key = driver.transfer(Direction::FromDevice, 15 * 512, block(&machine, &[0; 512]), 512).expect("room");
        assert_eq!(finish(&machine, &mut driver, key).data.expect("a block").to_vec(), [15; 512]);
    }
}

#[test]
fn an_io_error_is_distinguished_from_an_invalid_answer() {
    let mut disk = Disk::new(64);
    disk.bad_sectors.push(3);
    let (machine, mut driver) = started(disk, Way::Mmio);
    for direction in [Direction::FromDevice, Direction::ToDevice] {
        let key = driver.transfer(direction, 2 * 512, block(&machine, &[0; 1024]), 1024).expect("room");
        let finished = finish(&machine, &mut driver, key);
        assert!(!finished.done && finished.data.is_some());
    }
    let key = driver.transfer(Direction::FromDevice, 0, block(&machine, &[0; 512]), 512).expect("room");
    assert!(finish(&machine, &mut driver, key).done, "the driver continues");
}

#[test]
fn a_read_only_disk_is_reported() {
    let mut disk = Disk::new(8);
    disk.read_only = true;
    let (_, driver) = started(disk, Way::Pci);
    assert!(driver.is_read_only());
}

#[test]
fn a_driver_that_takes_over_resets_the_device() {
    for way in WAYS {
        let machine = Machine::new(Disk::new(64), way, Faults::none());
        let mut first = Driver::start(machine.clone()).expect("a correct device");
        for sector in 0..5 {
            first.transfer(Direction::FromDevice, sector * 512, block(&machine, &[0; 512]), 512).expect("room");
        }
        // Its memory stays pinned, like that of a program that was killed.
        std::mem::forget(first);
        let mut second = Driver::start(machine.clone()).expect("it resets the device");
        let key = second.transfer(Direction::FromDevice, 0, block(&machine, &[9; 512]), 512).expect("room");
        let finished = finish(&machine, &mut second, key);
        assert!(finished.done);
        assert_eq!(finished.data.expect("a block").to_vec(), [0; 512]);
    }
}

/// A disk with a custom answer.
struct Odd {
    answer: fn(room: usize) -> Option<Vec<u8>>,
    sectors: u64,
}

impl Behaviour for Odd {
    fn kind(&self) -> Kind {
        Kind::Block
    }

    fn features(&self) -> u64 {
        0
    }

    fn configuration(&self) -> Vec<u8> {
        self.sectors.to_le_bytes().to_vec()
    }

    fn queues(&self) -> u16 {
        1
    }

    fn answer(&mut self, _queue: u16, _readable: &[u8], room: usize) -> Option<Vec<u8>> {
        (self.answer)(room)
    }
}

/// Returns the error of reading one sector of such a disk.
fn error(answer: fn(usize) -> Option<Vec<u8>>) -> DeviceError {
    let machine = Machine::new(Odd { answer, sectors: 64 }, Way::Mmio, Faults::none());
    let mut driver = Driver::start(machine.clone()).expect("a correct start");
    driver.transfer(Direction::FromDevice, 0, block(&machine, &[0; 512]), 512).expect("room");
    machine.run();
    machine.pass_ms(4_999);
    if let Err(error) = driver.serve() {
        return error;
    }
    machine.pass_ms(1);
    driver.serve().expect_err("an invalid answer")
}

#[test]
fn short_and_invalid_answers_are_errors() {
    assert_eq!(
        error(|room| Some(vec![0; room - 1])),
        DeviceError::Nonsense { what: "the status of a request", value: 255 }
    );
    assert_eq!(error(|_| Some(Vec::new())), DeviceError::Nonsense { what: "the status of a request", value: 255 });
    assert_eq!(error(|room| Some(vec![7; room])), DeviceError::Nonsense { what: "the status of a request", value: 7 });
    assert_eq!(error(|_| None), DeviceError::NoAnswer { waited_ms: 5_000 });
    let huge = Odd { answer: |_| None, sectors: u64::MAX };
    let started = Driver::start(Machine::new(huge, Way::Pci, Faults::none()));
    assert!(matches!(started.err(), Some(DeviceError::Nonsense { .. })));
}

#[test]
fn another_kind_of_device_is_refused() {
    let machine = Machine::new(sip_virtio::model::kinds::Entropy::default(), Way::Mmio, Faults::none());
    assert_eq!(Driver::start(machine).err(), Some(DeviceError::OtherKind { wanted: 2, found: 4 }));
}
