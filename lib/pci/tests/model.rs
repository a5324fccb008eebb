//! A conforming bus: two devices with virtio structures, a bridge, and one device behind it.

use std::collections::BTreeMap;

use pci::msix::{Memory, Message, Table};
use pci::virtio::{Error, Structures};
use pci::{
    Address, BarKind, ConfigurationSpace, Function, Placement, Span, bars, command, enumerate, register, set_command,
};

/// Configuration registers of a function.
#[derive(Default)]
struct Registers {
    values: BTreeMap<u16, u32>,
    /// Writable bits by register.
    writable: BTreeMap<u16, u32>,
}

impl Registers {
    fn new(values: &[(u16, u32)]) -> Registers {
        let mut registers = Registers { values: values.iter().copied().collect(), ..Registers::default() };
        registers.writable.insert(register::COMMAND, 0x0547);
        registers
    }

    fn bar(mut self, index: u16, low: u32, bytes: u64) -> Registers {
        let at = register::BARS + 4 * index;
        let flags = if low & 1 == 1 { 0x3 } else { 0xf };
        self.values.insert(at, low);
        self.writable.insert(at, !((bytes - 1) as u32 | flags));
        if low & 7 == 4 {
            self.values.insert(at + 4, 0);
            self.writable.insert(at + 4, !((bytes - 1) >> 32) as u32);
        }
        self
    }

    /// Capabilities of a virtio device: its structures in this BAR, a page each, and MSI-X in another.
    fn virtio(mut self, bar: u32, table: u32) -> Registers {
        *self.values.entry(register::COMMAND).or_default() |= 1 << 20;
        self.values.insert(register::CAPABILITIES, 0x40);
        let mut at = 0x40;
        for (kind, offset, bytes) in [(1, 0, 0x1000), (3, 0x1000, 0x1000), (4, 0x2000, 0x1000), (2, 0x3000, 0x1000)] {
            let next = at + 0x14;
            self.values.insert(at, 0x09 | u32::from(next) << 8 | 0x14 << 16 | kind << 24);
            self.values.extend([(at + 4, bar), (at + 8, offset), (at + 12, bytes), (at + 16, 4)]);
            at = next;
        }
        self.values.extend([(at, 0x11 | 2 << 16), (at + 4, table), (at + 8, table | 0x800)]);
        self.writable.insert(at, 0xc000_0000);
        self
    }
}

#[derive(Default)]
struct Bus {
    functions: BTreeMap<Address, Registers>,
    /// Whether a BAR was written while memory decoding was enabled.
    moved_while_answering: bool,
}

impl ConfigurationSpace for Bus {
    fn read(&mut self, address: Address, offset: u16) -> u32 {
        let Some(function) = self.functions.get(&address) else { return u32::MAX };
        function.values.get(&offset).copied().unwrap_or(0)
    }

    fn write(&mut self, address: Address, offset: u16, value: u32) {
        let Some(function) = self.functions.get_mut(&address) else { return };
        let command = function.values.get(&register::COMMAND).copied().unwrap_or(0);
        self.moved_while_answering |= (0x10..0x28).contains(&offset) && command & 3 != 0;
        let writable = function.writable.get(&offset).copied().unwrap_or(0);
        let before = function.values.entry(offset).or_default();
        *before = *before & !writable | value & writable;
    }
}

const fn at(bus: u8, slot: u8, function: u8) -> Address {
    Address { bus, slot, function }
}

fn identity(vendor: u32, device: u32) -> (u16, u32) {
    (register::IDENTITY, device << 16 | vendor)
}

const HOST: Address = at(0, 0, 0);
const DISK: Address = at(0, 1, 0);
const BRIDGE: Address = at(0, 3, 0);
const RANDOM: Address = at(5, 0, 0);

fn bus() -> Bus {
    let mut bus = Bus::default();
    let host = Registers::new(&[identity(0x8086, 0x29c0), (register::CLASS, 0x0600_0000)]);
    bus.functions.insert(HOST, host);
    let transitional = [identity(0x1af4, 0x1001), (register::CLASS, 0x0100_0000), (register::SUBSYSTEM, 0x0002_1af4)];
    let disk = Registers::new(&transitional)
        .bar(0, 0xc081, 128)
        .bar(1, 0xfebd_1000, 4096)
        .bar(4, 0xfe00_400c, 16384)
        .virtio(4, 1);
    bus.functions.insert(DISK, disk);
    let many = Registers::new(&[identity(0x8086, 0x2918), (register::HEADER, 0x0080_0000)]);
    bus.functions.insert(at(0, 31, 0), many);
    bus.functions.insert(at(0, 31, 3), Registers::new(&[identity(0x8086, 0x2930)]));
    // A single-function device: function 1 aliases function 0.
    bus.functions.insert(at(0, 1, 1), Registers::new(&[identity(0x1af4, 0x1001)]));
    let bridge = [
        identity(0x1b36, 0x000c),
        (register::CLASS, 0x0604_0000),
        (register::HEADER, 0x0001_0000),
        (register::BUSES, 0x0005_0500),
        (register::BRIDGE_MEMORY, 0xfe90_fe80),
        (register::BRIDGE_PREFETCHABLE, 0x0011_0001),
        (register::BRIDGE_PREFETCHABLE + 4, 0x8),
        (register::BRIDGE_PREFETCHABLE + 8, 0x8),
    ];
    bus.functions.insert(BRIDGE, Registers::new(&bridge));
    let random = Registers::new(&[identity(0x1af4, 0x1044), (register::CLASS, 0x00ff_0001)])
        .bar(1, 0, 4096)
        .bar(4, 0xc, 16384)
        .virtio(4, 1);
    bus.functions.insert(RANDOM, random);
    bus
}

/// Assigned BARs.
fn bases(bus: &mut Bus, function: &Function) -> Vec<u64> {
    bars::read(bus, function).iter().map(|bar| bar.base).filter(|&base| base != 0).collect()
}

#[test]
fn all_functions_are_found_also_behind_bridges() {
    let found = enumerate(&mut bus());
    let addresses: Vec<Address> = found.iter().map(|function| function.address).collect();
    assert_eq!(addresses, [HOST, DISK, BRIDGE, at(0, 31, 0), at(0, 31, 3), RANDOM]);
    let ids: Vec<_> = found.iter().map(pci::virtio::device_id).collect();
    assert_eq!(ids, [None, Some(2), None, None, None, Some(4)]);
    assert_eq!(found[5].behind, Some(2));
    let bridge = found[2].bridge.unwrap();
    assert_eq!((bridge.secondary, bridge.memory), (5, Some(Span { base: 0xfe80_0000, bytes: 0x20_0000 })));
    assert_eq!(bridge.prefetchable, Some(Span { base: 0x8_0000_0000, bytes: 0x20_0000 }));
    assert!(found[0].is_host() && !found[1].is_host());
    assert_eq!(RANDOM.to_string(), "05:00.0");
}

#[test]
fn sizes_are_asked_for_while_nothing_answers_and_all_is_as_before() {
    let mut bus = bus();
    let found = enumerate(&mut bus);
    set_command(&mut bus, DISK, 0x0007);
    let sized = bars::size(&mut bus, &found[1]);
    let shapes: Vec<_> = sized.iter().map(|bar| (bar.index, bar.kind, bar.base, bar.bytes)).collect();
    let expected = [
        (0, BarKind::Ports, 0xc080, 128),
        (1, BarKind::Memory32, 0xfebd_1000, 4096),
        (4, BarKind::Memory64, 0xfe00_4000, 16384),
    ];
    assert_eq!(shapes, expected);
    assert!(sized[2].prefetchable && !sized[1].prefetchable);
    assert!(!bus.moved_while_answering);
    assert_eq!(command(&mut bus, DISK), 0x0007);
    assert_eq!(bases(&mut bus, &found[1]), [0xc080, 0xfebd_1000, 0xfe00_4000]);
}

#[test]
fn what_the_firmware_left_out_is_placed_behind_its_bridge() {
    let mut bus = bus();
    let found = enumerate(&mut bus);
    let mut placement = Placement::new(vec![Span { base: 0xc000_0000, bytes: 0x3ec0_0000 }]);
    assert!(placement.take(Span { base: 0xfe80_0000, bytes: 4096 }));
    let within = found[found[5].behind.unwrap()].bridge.unwrap().memory;
    let mut sized = bars::size(&mut bus, &found[5]);
    for bar in &mut sized {
        assert!(!placement.take(bar.span()));
        let placed = placement.place(bar.bytes, 1 << 32, within).unwrap();
        bars::place(&mut bus, RANDOM, bar, placed.base);
    }
    assert_eq!(bases(&mut bus, &found[5]), [0xfe80_1000, 0xfe80_4000]);
    assert_eq!(placement.window_of(sized[1].span()), Some((0, 0x3e80_4000)));
}

#[test]
fn structures_and_messages_of_a_device() {
    #[derive(Default)]
    struct Words(BTreeMap<u64, u32>);
    impl Memory for Words {
        fn write32(&mut self, address: u64, value: u32) -> bool {
            self.0.insert(address, value);
            true
        }
    }
    let mut bus = bus();
    let found = enumerate(&mut bus);
    let sized = bars::size(&mut bus, &found[1]);
    let structures = Structures::find(&mut bus, DISK, &sized).unwrap();
    let page = |number: u64| Span { base: 0xfe00_4000 + number * 4096, bytes: 4096 };
    assert_eq!(structures.common, page(0));
    assert_eq!((structures.interrupt_status, structures.device), (page(1), Some(page(2))));
    assert_eq!((structures.notification, structures.doorbell_distance), (page(3), 4));
    assert_eq!(structures.status(), 0xfe00_4014);

    let table = Table::find(&mut bus, DISK, &sized).unwrap();
    assert_eq!((table.entries, table.span), (3, Span { base: 0xfebd_1000, bytes: 48 }));
    assert!(!structures.overlap(table.span));
    let mut words = Words::default();
    let messages = [41, 42].map(|data| Message { address: 0xfee0_1000, data });
    assert!(table.set(&mut bus, &mut words, DISK, &messages));
    let entry = |number: u64| [0, 4, 8, 12].map(|offset| words.0[&(0xfebd_1000 + number * 16 + offset)]);
    assert_eq!([entry(0), entry(1)], [[0xfee0_1000, 0, 41, 0], [0xfee0_1000, 0, 42, 0]]);
    assert_eq!(entry(2)[3], 1);
    let control = |bus: &mut Bus| bus.functions[&DISK].values[&0x90] >> 16;
    assert_eq!(control(&mut bus), 0x8002);
    table.disable(&mut bus, DISK);
    assert_eq!(control(&mut bus), 0x0002);
}

#[test]
fn structures_have_to_lie_where_the_device_answers() {
    let mut bus = bus();
    let found = enumerate(&mut bus);
    let sized = bars::size(&mut bus, &found[1]);
    let mut change = |offset: u16, value: u32| {
        let disk = bus.functions.get_mut(&DISK).unwrap();
        let before = disk.values.insert(offset, value).unwrap();
        let outcome = Structures::find(&mut bus, DISK, &sized).map(drop);
        bus.functions.get_mut(&DISK).unwrap().values.insert(offset, before);
        outcome
    };
    // Common configuration: another BAR, past its end, too short, misaligned.
    assert_eq!(change(0x44, 2), Err(Error::Misplaced));
    assert_eq!(change(0x44, 0), Err(Error::Misplaced));
    assert_eq!(change(0x48, 0x3008), Err(Error::Misplaced));
    assert_eq!(change(0x48, 0xffff_f000), Err(Error::Misplaced));
    assert_eq!(change(0x4c, 55), Err(Error::Misplaced));
    assert_eq!(change(0x48, 2), Err(Error::Misplaced));
    // A list that is too short, and a cyclic one.
    assert_eq!(change(0x54, 0x0314_0009), Err(Error::Missing));
    assert_eq!(change(0x54, 0x0314_4009), Err(Error::Missing));
    assert_eq!(change(0x50, 0), Ok(()));
}
