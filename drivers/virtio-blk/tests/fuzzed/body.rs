//! Body of the fuzz target `virtio_blk`: the disk driver against a faulty device.

use sip_virtio::model::kinds::Disk;
use sip_virtio::model::{Machine, Memory};
use sip_virtio::{Core, DeviceError, Direction, Platform, TIME_LIMIT_MS};
use virtio_blk::blk::Blk;

use crate::life;

type Driver = Blk<Machine, Memory>;

const SECTORS: usize = 16;

/// Runs one input.
pub fn run(bytes: &[u8]) {
    life::run(bytes, |way, faults| Machine::new(Disk::new(SECTORS), way, faults), Driver::start, live);
}

fn live(driver: &mut Driver, machine: &Machine, choices: &[u8]) -> Result<(), DeviceError> {
    for &choice in choices {
        let (sector, count) = (u64::from(choice >> 4), 1 + usize::from(choice >> 2 & 3));
        let data = machine.allocate(count * 512).expect("memory");
        match choice & 3 {
            0 => drop(driver.transfer(Direction::FromDevice, sector * 512, data, count * 512)),
            1 => drop(driver.transfer(Direction::ToDevice, sector * 512, data, count * 512)),
            2 => machine.run(),
            _ => driver.serve()?,
        }
    }
    machine.run();
    driver.serve()?;
    machine.pass_ms(TIME_LIMIT_MS);
    let served = driver.serve();
    assert!(served.is_err() || driver.in_flight() == 0, "a request never completes");
    served
}
