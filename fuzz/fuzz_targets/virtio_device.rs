//! A virtio device that the bytes make answer nonsense, under the drivers of disks and of network interfaces.
//! What the driver does is chosen by the first bytes, what the device does wrong by the rest.
#![no_main]

use sip_virtio::model::kinds::{Disk, Network};
use sip_virtio::model::{Faults, Machine, Memory, Numbers, Way};
use sip_virtio::{Core, Direction, Platform, TIME_LIMIT_MS, Trouble};
use virtio_blk::blk::Blk;
use virtio_net::net::Net;

/// One occasion of so many in a thousand is used.
const OFTEN: u64 = 100;
const STEPS: usize = 24;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((choices, device)) = bytes.split_at_checked(STEPS) else { return };
    let way = if choices[0] & 1 == 0 { Way::Mmio } else { Way::Pci };
    let faults = || Faults::often(OFTEN, Numbers::from_bytes(device));
    for disk in [true, false] {
        let machine = if disk {
            Machine::new(Disk::new(16), way, faults())
        } else {
            Machine::new(Network::default(), way, faults())
        };
        let live = |machine: &Machine| if disk { transfer(machine, choices) } else { talk(machine, choices) };
        if let Err(trouble) = live(&machine) {
            assert!(!trouble.to_string().is_empty());
        }
        machine.set_faults(Faults::none());
        assert_eq!(live(&machine), Ok(()), "it does all right now");
    }
});

fn transfer(machine: &Machine, choices: &[u8]) -> Result<(), Trouble> {
    let mut driver = Blk::<Machine, Memory>::start(machine.clone())?;
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
    assert!(served.is_err() || driver.under_way() == 0, "a request is waited for without end");
    served
}

fn talk(machine: &Machine, choices: &[u8]) -> Result<(), Trouble> {
    let mut driver = Net::<Machine, Memory>::start(machine.clone())?;
    for &choice in choices {
        let bytes = 1 + 4 * usize::from(choice);
        let buffer = machine.allocate(bytes).expect("memory");
        match choice & 3 {
            0 => drop(driver.give(buffer, bytes)),
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
