//! Body of the fuzz target `virtio_net`: the network driver against a faulty device.

use sip_virtio::model::kinds::Network;
use sip_virtio::model::{Machine, Memory};
use sip_virtio::{Core, DeviceError, Platform, TIME_LIMIT_MS};
use virtio_net::net::Net;

use crate::life;

type Driver = Net<Machine, Memory>;

/// Runs one input.
pub fn run(bytes: &[u8]) {
    life::run(bytes, |way, faults| Machine::new(Network::default(), way, faults), Driver::start, live);
}

fn live(driver: &mut Driver, machine: &Machine, choices: &[u8]) -> Result<(), DeviceError> {
    for &choice in choices {
        let bytes = 1 + 4 * usize::from(choice);
        let buffer = machine.allocate(bytes).expect("memory");
        match choice & 3 {
            0 => drop(driver.add_buffer(buffer, bytes)),
            1 => drop(driver.send(buffer, bytes, &[choice; 12])),
            2 => machine.run(),
            _ => driver.serve()?,
        }
        while let Some(packet) = driver.take_received() {
            assert!(packet.bytes <= packet.memory.to_vec().len(), "a packet longer than its buffer");
        }
        while driver.take_sent().is_some() {}
    }
    machine.run();
    driver.serve()?;
    while driver.take_sent().is_some() {}
    machine.pass_ms(TIME_LIMIT_MS);
    driver.serve()
}
