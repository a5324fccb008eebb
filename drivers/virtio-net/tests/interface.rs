//! The network driver against a correct device, and against a faulty one.

use nic_server::Events;
use sip_virtio::model::kinds::Network;
use sip_virtio::model::{Faults, Machine, Memory, Numbers, Way};
use sip_virtio::{Core, DeviceError, Platform, TIME_LIMIT_MS};
use virtio_net::net::{MAX_PACKETS, Net};
use virtio_net::offload;

type Driver = Net<Machine, Memory>;

const BUFFER_BYTES: usize = 1518;
const WHOLE: [u8; offload::BYTES] = [0; offload::BYTES];

fn buffer(machine: &Machine, text: &[u8]) -> Memory {
    let memory = machine.allocate(BUFFER_BYTES).expect("memory");
    memory.fill(text);
    memory
}

#[test]
fn packets_are_sent_and_received() {
    for way in [Way::Mmio, Way::Pci] {
        let machine = Machine::new(Network::default(), way, Faults::none());
        let mut driver = Driver::start(machine.clone()).expect("a correct device");
        let description = driver.description().expect("a valid configuration");
        assert_eq!(description.mac, [0x52, 0x54, 0, 0x12, 0x34, 0x56]);
        assert_eq!((description.mtu, description.link_bits_per_s), (1500, u64::MAX));
        for _ in 0..4 {
            driver.add_buffer(buffer(&machine, &[]), BUFFER_BYTES).expect("room");
        }
        for text in ["the first packet", "the second"] {
            driver.send(buffer(&machine, text.as_bytes()), text.len(), &WHOLE).expect("room");
        }
        machine.run();
        machine.run();
        driver.serve().expect("a correct device");
        let news = driver.take_events();
        assert!(news.received && news.sent && !news.link);
        assert_eq!((driver.receive_buffers(), driver.transmit_buffers()), (4, 2));
        for text in ["the first packet", "the second"] {
            let packet = driver.take_received().expect("the device loops packets back");
            assert_eq!(&packet.memory.to_vec()[..packet.bytes], text.as_bytes());
            assert_eq!(&driver.take_sent().expect("it was sent").to_vec()[..text.len()], text.as_bytes());
        }
        assert!(driver.take_received().is_none() && driver.take_sent().is_none());
        assert_eq!(machine.stray_accesses(), 0);
    }
}

#[test]
fn max_packets_are_in_flight() {
    let machine = Machine::new(Network::default(), Way::Pci, Faults::none());
    let mut driver = Driver::start(machine.clone()).expect("a correct device");
    for _ in 0..MAX_PACKETS {
        driver.add_buffer(buffer(&machine, &[]), BUFFER_BYTES).expect("room");
        driver.send(buffer(&machine, &[1]), 1, &WHOLE).expect("room");
    }
    assert!(driver.add_buffer(buffer(&machine, &[]), BUFFER_BYTES).is_err());
    assert!(driver.send(buffer(&machine, &[]), 1, &WHOLE).is_err());
}

#[test]
fn a_link_down_is_an_event() {
    let machine = Machine::new(Network { link: false, ..Network::default() }, Way::Pci, Faults::none());
    let driver = Driver::start(machine).expect("a correct device");
    assert_eq!(driver.description().expect("a valid configuration").link_bits_per_s, 0);
}

#[test]
fn offloads_are_offered_and_requested() {
    let offers = 1 | 1 << 1 | 1 << 11;
    let machine = Machine::new(Network { offers, flags: 2, ..Network::default() }, Way::Pci, Faults::none());
    let mut driver = Driver::start(machine.clone()).expect("a correct device");
    let offered = driver.description().expect("a valid configuration").offered;
    assert!(offered.checksum && offered.segmentation_version_4 && !offered.segmentation_version_6);
    let header = [1, 1, 54, 0, 0xb4, 5, 34, 0, 16, 0, 0, 0];
    driver.add_buffer(buffer(&machine, &[]), BUFFER_BYTES).expect("room");
    driver.send(buffer(&machine, &[9; 60]), 60, &header).expect("room");
    driver.notify();
    machine.run();
    machine.run();
    driver.poll(false).expect("a correct device");
    let packet = driver.take_received().expect("the device loops packets back");
    assert!(packet.is_checked && packet.bytes == 60);
    assert_eq!(packet.memory.to_vec()[..60], [9; 60]);
    assert!(driver.take_sent().is_some());
    assert_eq!(driver.take_events(), Events::default(), "a taken packet is no pending event");
}

#[test]
fn checksum_offload_needs_both_directions() {
    let offers = 1 << 1 | 1 << 11;
    let machine = Machine::new(Network { offers, flags: 2, ..Network::default() }, Way::Pci, Faults::none());
    let mut driver = Driver::start(machine.clone()).expect("a correct device");
    assert_eq!(driver.description().expect("a valid configuration").offered, offload::Offered::default());
    driver.add_buffer(buffer(&machine, &[]), BUFFER_BYTES).expect("room");
    driver.send(buffer(&machine, &[9]), 1, &WHOLE).expect("room");
    driver.notify();
    machine.run();
    machine.run();
    driver.serve().expect("a correct device");
    assert!(driver.take_events().received && driver.has_received());
    assert!(driver.take_received().is_some_and(|packet| !packet.is_checked));
}

fn live(machine: &Machine, numbers: &mut Numbers) -> Result<(), DeviceError> {
    let mut driver = Driver::start(machine.clone())?;
    for _ in 0..40 {
        match numbers.below(8) {
            // If the queue is full, the buffer is returned.
            0 | 1 => drop(driver.add_buffer(buffer(machine, &[]), BUFFER_BYTES)),
            2 | 3 => drop(driver.send(buffer(machine, &[7]), 1 + numbers.below(1500) as usize, &WHOLE)),
            4 => machine.run(),
            5 => driver.notify(),
            6 => driver.poll(numbers.below(2) == 0)?,
            _ => {
                driver.serve()?;
                driver.take_events();
                while let Some(packet) = driver.take_received() {
                    assert!(packet.bytes <= BUFFER_BYTES, "a packet longer than its buffer");
                }
                while driver.take_sent().is_some() {}
            }
        }
    }
    machine.run();
    driver.serve()?;
    while driver.take_sent().is_some() {}
    machine.pass_ms(TIME_LIMIT_MS);
    let served = driver.serve();
    while driver.take_sent().is_some() {}
    assert!(served.is_err() || driver.transmit_buffers() == 0, "a packet is never sent");
    served
}

#[test]
fn invalid_answers_are_survived() {
    for seed in 0..300 {
        let mut numbers = Numbers::from_seed(seed);
        let way = if seed % 2 == 0 { Way::Mmio } else { Way::Pci };
        let often = [2, 10, 50, 300][(seed / 2 % 4) as usize];
        let machine = Machine::new(Network::default(), way, Faults::often(often, Numbers::from_seed(!seed)));
        for _ in 0..6 {
            if let Err(error) = live(&machine, &mut numbers) {
                assert!(!error.to_string().is_empty());
            }
        }
        machine.set_faults(Faults::none());
        assert_eq!(live(&machine, &mut numbers), Ok(()), "a correct device");
    }
}
