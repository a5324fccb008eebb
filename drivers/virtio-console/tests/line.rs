//! The console driver against a correct device, and against a faulty one.

use sip_virtio::model::kinds::Console;
use sip_virtio::model::{Faults, Machine, Memory, Numbers, Way};
use sip_virtio::{Core, DeviceError, Platform, TIME_LIMIT_MS};
use virtio_console::line::Line;

type Driver = Line<Machine, Memory>;

fn buffer(machine: &Machine, text: &[u8]) -> Memory {
    let memory = machine.allocate(64).expect("memory");
    memory.fill(text);
    memory
}

#[test]
fn input_and_output_are_transferred() {
    for way in [Way::Mmio, Way::Pci] {
        let mut console = Console::default();
        console.input.push_back(b"typed before".to_vec());
        console.input.push_back(vec![b'x'; 100]);
        let machine = Machine::new(console, way, Faults::none());
        let mut driver = Driver::start(machine.clone()).expect("a correct device");
        for _ in 0..3 {
            driver.add_buffer(buffer(&machine, &[]), 64).expect("room");
        }
        let key = driver.write(buffer(&machine, b"hello"), 5).expect("room");
        assert!(!driver.is_written(key));
        machine.run();
        driver.serve().expect("a correct device");
        assert!(driver.is_written(key) && !driver.is_written(key));
        let (first, count) = driver.take_received().expect("input");
        assert_eq!(&first.to_vec()[..count], b"typed before");
        let counts: Vec<usize> = core::iter::from_fn(|| driver.take_received()).map(|(_, count)| count).collect();
        assert_eq!(counts, [64, 36]);
        assert_eq!(machine.stray_accesses(), 0);
    }
}

#[test]
fn output_that_is_not_consumed_times_out() {
    let machine = Machine::new(Console::default(), Way::Mmio, Faults::none());
    let mut driver = Driver::start(machine.clone()).expect("a correct device");
    driver.add_buffer(buffer(&machine, &[]), 64).expect("room");
    machine.pass_ms(10 * TIME_LIMIT_MS);
    assert_eq!(driver.serve(), Ok(()), "input has no timeout");
    driver.write(buffer(&machine, b"hello"), 5).expect("room");
    machine.pass_ms(TIME_LIMIT_MS);
    assert_eq!(driver.serve(), Err(DeviceError::NoAnswer { waited_ms: TIME_LIMIT_MS }));
}

fn live(machine: &Machine, numbers: &mut Numbers) -> Result<(), DeviceError> {
    let mut driver = Driver::start(machine.clone())?;
    driver.columns_and_rows()?;
    for key in 0..40 {
        match numbers.below(5) {
            // If the queue is full, the buffer is returned.
            0 => drop(driver.add_buffer(buffer(machine, &[]), 64)),
            1 | 2 => drop(driver.write(buffer(machine, b"text"), 1 + numbers.below(64) as usize)),
            3 => machine.run(),
            _ => {
                driver.serve()?;
                driver.is_written(key);
                while let Some((_, count)) = driver.take_received() {
                    assert!(count <= 64, "more input than the buffer has room for");
                }
            }
        }
    }
    machine.run();
    driver.serve()?;
    machine.pass_ms(TIME_LIMIT_MS);
    let served = driver.serve();
    assert!(served.is_err() || driver.in_flight() == 0, "output never completes");
    served
}

#[test]
fn invalid_answers_are_survived() {
    for seed in 0..300 {
        let mut numbers = Numbers::from_seed(seed);
        let way = if seed % 2 == 0 { Way::Mmio } else { Way::Pci };
        let often = [2, 10, 50, 300][(seed / 2 % 4) as usize];
        let mut console = Console::default();
        console.input.extend((0..20).map(|length| vec![b'y'; length * 5]));
        let machine = Machine::new(console, way, Faults::often(often, Numbers::from_seed(!seed)));
        for _ in 0..6 {
            if let Err(error) = live(&machine, &mut numbers) {
                assert!(!error.to_string().is_empty());
            }
        }
        machine.set_faults(Faults::none());
        assert_eq!(live(&machine, &mut numbers), Ok(()), "a correct device");
    }
}
