//! Declarations: register accesses, bits, and encoded records.

use std::cell::RefCell;

use layout::{Access, Map};

/// Memory that records every access.
#[derive(Default)]
struct Memory {
    bytes: RefCell<[u8; 32]>,
    accesses: RefCell<Vec<(char, u64, usize)>>,
}

macro_rules! accesses {
    ($($number:ident),*) => {$(
        impl Access<$number> for Memory {
            fn read(&self, offset: u64) -> $number {
                self.accesses.borrow_mut().push(('r', offset, size_of::<$number>()));
                let bytes = self.bytes.borrow();
                $number::from_le_bytes(*bytes[offset as usize..].first_chunk().expect("the map is shorter"))
            }

            fn write(&self, offset: u64, value: $number) {
                self.accesses.borrow_mut().push(('w', offset, size_of::<$number>()));
                let bytes = value.to_le_bytes();
                self.bytes.borrow_mut()[offset as usize..][..bytes.len()].copy_from_slice(&bytes);
            }
        }
    )*};
}

accesses!(u8, u16, u32, u64);

/// Channel control.
#[layout::bits(u16)]
pub struct Control {
    /// Running.
    #[bit(0)]
    pub running: bool,
    /// Priority.
    #[bits(3..=5)]
    pub priority: u8,
    /// All but the sign of a number.
    #[bits(6..=14)]
    pub length: u16,
    /// Last one.
    #[bit(15)]
    pub last: bool,
}

/// A device with a bank.
#[layout::registers(bytes = 24)]
struct Device {
    /// Receive.
    #[at(0)]
    received: ReadOnly<u8>,
    /// Transmit.
    #[at(0)]
    send: WriteOnly<u8>,
    /// Accessible while a switch is set.
    #[at(0, bank = "divisor")]
    divisor: ReadWrite<u16>,
    /// Channel.
    #[at(2)]
    control: ReadWrite<Control>,
    /// Source.
    #[at(8)]
    address: ReadWrite<u64>,
    /// Length.
    #[at(20)]
    count: ReadWrite<u32>,
}

#[test]
fn each_access_is_one_of_the_declared_width_at_the_declared_place() {
    let device = Device::over(Memory::default());
    device.send().write(7);
    device.received().read();
    device.divisor().write(0x102);
    device.control().write(Control::NONE.with_running(true));
    device.address().write(1 << 63);
    assert_eq!((device.address().read(), device.count().read()), (1 << 63, 0));
    assert!(device.control().read().running());
    let expected =
        [('w', 0, 1), ('r', 0, 1), ('w', 0, 2), ('w', 2, 2), ('w', 8, 8), ('r', 8, 8), ('r', 20, 4), ('r', 2, 2)];
    assert_eq!(*device.access().accesses.borrow(), expected);
    assert_eq!((<Device<Memory> as Map>::BYTES, device.count().offset()), (24, 20));
}

#[test]
fn bits_are_changed_one_by_one() {
    let control = Control::from_bits(0b110);
    let changed = control.with_priority(5).with_length(0x1ff).with_last(true);
    assert_eq!(changed.bits(), 0b1111_1111_1110_1110);
    assert_eq!((changed.priority(), changed.length(), changed.last(), changed.running()), (5, 0x1ff, true, false));
    assert_eq!(changed.with_length(0).with_priority(0).with_last(false), control);
    // Excess bits do not reach other fields.
    assert_eq!(Control::NONE.with_priority(0xff), Control::NONE.with_priority(7));
    for bits in 0..=u16::MAX {
        let control = Control::from_bits(bits);
        let rest = bits & 0b110;
        let again = Control::from_bits(rest)
            .with_running(control.running())
            .with_priority(control.priority())
            .with_length(control.length())
            .with_last(control.last());
        assert_eq!(again, control);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, layout::Record)]
#[record(bytes = 4, order = "big")]
struct Port {
    number: u16,
    control: Control,
}

#[derive(Clone, Debug, PartialEq, Eq, layout::Record)]
#[record(bytes = 32, order = "little")]
struct Header {
    kind: u8,
    #[at(2)]
    delta: i16,
    /// Nested records keep their own byte order.
    ports: [Port; 2],
    #[at(16)]
    size: u64,
    name: [u8; 5],
}

const BYTES: [u8; 32] = [
    9, 0, 0xfe, 0xff, 0, 80, 0x80, 1, 1, 0xbb, 0, 0, 0, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1, b'h', b'e', b'l', b'l', b'o',
    0, 0, 0,
];

fn header() -> Header {
    let ports = [
        Port { number: 80, control: Control::NONE.with_running(true).with_last(true) },
        Port { number: 443, control: Control::NONE },
    ];
    Header { kind: 9, delta: -2, ports, size: 0x0102_0304_0506_0708, name: *b"hello" }
}

#[test]
fn records_are_their_bytes() {
    assert_eq!(header().to_bytes(), BYTES);
    assert_eq!(Header::from_bytes(&BYTES), header());
    let mut longer = BYTES.to_vec();
    longer.push(1);
    assert_eq!(Header::parse(&longer), Some(header()));
    assert_eq!(Header::parse(&BYTES[..31]), None);
    assert_eq!((Header::BYTES, Port::BYTES), (32, 4));
}

#[test]
fn what_belongs_to_no_field_is_left_alone() {
    let mut bytes = [0xaa; 32];
    header().write(&mut bytes);
    let kept: Vec<usize> = (0..32).filter(|&at| bytes[at] != BYTES[at]).collect();
    assert_eq!(kept, [1, 12, 13, 14, 15, 29, 30, 31]);
    assert!(kept.iter().all(|&at| bytes[at] == 0xaa));
}
