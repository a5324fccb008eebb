//! The driver of random bytes against a correct device, and against a faulty one.

use sip_virtio::model::kinds::Entropy;
use sip_virtio::model::{Faults, Machine, Memory, Numbers, Way};
use sip_virtio::{Core, DeviceError, Platform, TIME_LIMIT_MS};
use virtio_rng::rng::Rng;

type Driver = Rng<Machine, Memory>;

fn machine(most: usize, way: Way, faults: Faults) -> Machine {
    Machine::new(Entropy { last: 0, most }, way, faults)
}

#[test]
fn a_block_is_filled_by_several_requests() {
    for way in [Way::Mmio, Way::Pci] {
        let machine = machine(3, way, Faults::none());
        let mut driver = Driver::start(machine.clone()).expect("a correct device");
        let mut block = machine.allocate(8).expect("memory");
        let mut filled = 0;
        while filled < 8 {
            let key = driver.fill(block, filled, 8 - filled).expect("room");
            machine.run();
            driver.serve().expect("a correct device");
            let (memory, count) = driver.take(key).expect("answered");
            assert!(count <= 3);
            (block, filled) = (memory, filled + count);
        }
        assert_eq!(block.to_vec(), [1, 2, 3, 4, 5, 6, 7, 8]);
    }
}

#[test]
fn a_short_queue_is_supported() {
    let machine = machine(0, Way::Mmio, Faults::none());
    let mut driver = Driver::start(machine.clone()).expect("a correct device");
    let mut submitted = 0;
    while driver.fill(machine.allocate(16).expect("memory"), 0, 16).is_ok() {
        submitted += 1;
    }
    assert_eq!(submitted, 8);
}

fn live(machine: &Machine, numbers: &mut Numbers) -> Result<(), DeviceError> {
    let mut driver = Driver::start(machine.clone())?;
    for key in 1..30 {
        let bytes = 1 + numbers.below(100) as usize;
        // If the queue is full, the memory is returned.
        let _ = driver.fill(machine.allocate(100).expect("memory"), numbers.below(101 - bytes as u64) as usize, bytes);
        if numbers.below(2) == 0 {
            machine.run();
            driver.serve()?;
            if let Some((_, count)) = driver.take(key) {
                assert!((1..=100).contains(&count));
            }
        }
    }
    machine.run();
    driver.serve()?;
    machine.pass_ms(TIME_LIMIT_MS);
    let served = driver.serve();
    assert!(served.is_err() || driver.in_flight() == 0, "a request never completes");
    served
}

#[test]
fn invalid_answers_are_survived() {
    for seed in 0..300 {
        let mut numbers = Numbers::from_seed(seed);
        let way = if seed % 2 == 0 { Way::Mmio } else { Way::Pci };
        let often = [2, 10, 50, 300][(seed / 2 % 4) as usize];
        let machine = machine(seed as usize % 7, way, Faults::often(often, Numbers::from_seed(!seed)));
        for _ in 0..6 {
            if let Err(error) = live(&machine, &mut numbers) {
                assert!(!error.to_string().is_empty());
            }
        }
        machine.set_faults(Faults::none());
        assert_eq!(live(&machine, &mut numbers), Ok(()), "a correct device");
    }
}
