//! The disk driver against a faulty device: whatever it does, the driver neither panics nor hangs,
//! reports the error in a line, and works again once the same device is correct.

use std::collections::BTreeSet;

use sip_virtio::model::kinds::Disk;
use sip_virtio::model::{Faults, Machine, Memory, Numbers, Way};
use sip_virtio::{Core, DeviceError, Direction, Platform, TIME_LIMIT_MS};
use virtio_blk::blk::Blk;

type Driver = Blk<Machine, Memory>;

const SECTORS: u64 = 64;
const STARTS: u32 = 6;
const STEPS: u32 = 40;

/// Runs one driver; returns the error that ended it, if any.
fn live(machine: &Machine, numbers: &mut Numbers) -> Result<(), DeviceError> {
    let mut driver = Driver::start(machine.clone())?;
    for _ in 0..STEPS {
        let sector = numbers.below(SECTORS);
        let count = 1 + numbers.below(SECTORS - sector) as usize;
        let direction = if numbers.below(2) == 0 { Direction::FromDevice } else { Direction::ToDevice };
        match numbers.below(8) {
            0..4 => {
                let data = machine.allocate(count * 512).expect("memory");
                // If the queue is full, the block is returned.
                let _ = driver.transfer(direction, sector * 512, data, count * 512);
            }
            4 => drop(driver.flush()),
            5 | 6 => machine.run(),
            _ => {
                driver.serve()?;
                (0..100).for_each(|key| drop(driver.take(key)));
            }
        }
    }
    machine.run();
    driver.serve()?;
    // No request completes from here on, so the rest must time out.
    machine.pass_ms(TIME_LIMIT_MS);
    let served = driver.serve();
    assert!(served.is_err() || driver.in_flight() == 0, "a request never completes");
    served
}

fn read_works(machine: &Machine) {
    let mut driver = Driver::start(machine.clone()).expect("a correct device");
    let key = driver.transfer(Direction::FromDevice, 0, machine.allocate(512).expect("memory"), 512).expect("room");
    machine.run();
    driver.serve().expect("a correct device");
    assert!(driver.take(key).expect("answered").done);
}

fn try_seeds(seeds: std::ops::Range<u64>) -> BTreeSet<String> {
    let mut failures = BTreeSet::new();
    for seed in seeds {
        let way = if seed % 2 == 0 { Way::Mmio } else { Way::Pci };
        let mut numbers = Numbers::from_seed(seed);
        // From rare to very frequent faults.
        let often = [2, 10, 50, 300][(seed / 2 % 4) as usize];
        let machine = Machine::new(Disk::new(SECTORS as usize), way, Faults::often(often, Numbers::from_seed(!seed)));
        for _ in 0..STARTS {
            if let Err(error) = live(&machine, &mut numbers) {
                let line = error.to_string();
                assert!(!line.is_empty() && !line.contains('\n'), "{line:?}");
                failures.insert(format!("{error:?}").chars().take_while(|c| c.is_alphanumeric()).collect());
            }
        }
        machine.set_faults(Faults::none());
        read_works(&machine);
    }
    failures
}

#[test]
fn invalid_answers_are_survived() {
    let failures = try_seeds(0..400);
    // The model reaches all kinds of errors.
    for kind in ["NoAnswer", "Nonsense", "NotReset", "OtherKind", "TooMuchWritten", "UnknownRequest", "NeedsReset"] {
        assert!(failures.contains(kind), "no {kind} among {failures:?}");
    }
}

#[test]
#[ignore = "takes minutes"]
fn invalid_answers_are_survived_at_length() {
    try_seeds(400..20_000);
}
