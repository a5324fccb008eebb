//! The clock driver against a model of its registers, in each number format, and with invalid contents.

use std::cell::RefCell;

use layout::Access;
use rtc::cmos::{Clock, Error, Ports};
use text::Moment;

const BINARY: u8 = 0x04;
const HOURS_24: u8 = 0x02;
const CENTURY: u8 = 0x32;

/// A clock, accessed by register index.
trait Device {
    fn read(&mut self, register: u8) -> u8;
    fn write(&mut self, register: u8, value: u8);
    fn pause(&mut self);
}

struct Reached<D>(RefCell<D>);

impl<D: Device> Access<u8> for Reached<D> {
    fn read(&self, offset: u64) -> u8 {
        self.0.borrow_mut().read(offset.try_into().expect("registers have small numbers"))
    }

    fn write(&self, offset: u64, value: u8) {
        self.0.borrow_mut().write(offset.try_into().expect("registers have small numbers"), value);
    }
}

impl<D: Device> Ports for Reached<D> {
    fn pause(&self) {
        self.0.borrow_mut().pause();
    }
}

fn clock<D: Device>(device: D, century_register: Option<u8>) -> Clock<Reached<D>> {
    Clock::new(Reached(RefCell::new(device)), century_register)
}

struct Model {
    registers: [u8; 128],
    /// Number of reads after which the second advances.
    ticks_in: Option<usize>,
}

impl Model {
    fn new(format: u8) -> Model {
        let mut registers = [0; 128];
        registers[0x0b] = format;
        registers[0x0d] = 0x80;
        Model { registers, ticks_in: None }
    }

    fn with(format: u8, values: &[(u8, u8)]) -> Model {
        let mut model = Model::new(format);
        for &(register, value) in values {
            model.registers[usize::from(register)] = value;
        }
        model
    }
}

impl Device for &mut Model {
    fn read(&mut self, register: u8) -> u8 {
        match &mut self.ticks_in {
            Some(0) => {
                self.ticks_in = None;
                // From 59 seconds on, so that an inconsistent read differs from a consistent one.
                self.registers[0] = 0x00;
                self.registers[2] += 1;
            }
            Some(reads) => *reads -= 1,
            None => {}
        }
        self.registers[usize::from(register)]
    }

    fn write(&mut self, register: u8, value: u8) {
        self.registers[usize::from(register)] = value;
    }

    fn pause(&mut self) {
        self.registers[0x0a] = 0;
    }
}

fn unix(text: &str) -> i64 {
    Moment::parse(text).and_then(|moment| moment.to_unix()).unwrap_or_else(|| panic!("{text} is not a valid time"))
}

const TIMES: [&str; 12] = [
    "1970-01-01 00:00:00",
    "1972-02-29 12:00:00",
    "1999-12-31 23:59:59",
    "2000-01-01 00:00:00",
    "2000-02-29 00:30:00",
    "2024-02-29 23:59:59",
    "2026-11-21 06:14:44",
    "2069-12-31 11:59:59",
    "2099-12-31 23:59:59",
    "2100-01-01 00:00:00",
    "2100-02-28 12:59:59",
    "2400-02-29 13:00:00",
];

#[test]
fn seconds_and_moments_round_trip() {
    assert_eq!(unix("1970-01-01 00:00:00"), 0);
    assert_eq!(unix("2026-11-21 03:06:38"), 1_795_230_398);
    for day in (-700_000_i64..2_900_000).step_by(13) {
        let seconds = day * 86_400 + day.rem_euclid(86_400);
        let moment = Moment::from_unix(seconds);
        if (0..10_000).contains(&moment.year) {
            assert_eq!(moment.to_unix(), Some(seconds), "{moment}");
        }
    }
}

#[test]
fn times_round_trip_in_every_format() {
    for format in [0, BINARY, HOURS_24, BINARY | HOURS_24] {
        for time in TIMES {
            let mut model = Model::new(format);
            let with_century = clock(&mut model, Some(CENTURY));
            assert_eq!(with_century.set(unix(time)), Ok(()), "{time} in format {format}");
            assert_eq!(with_century.read(), Ok(unix(time)));
            assert_eq!(model.registers[0x0b], format);
            // The same without a century register, within a hundred years.
            let without = clock(&mut model, None);
            let has_century = !(1970..2070).contains(&Moment::from_unix(unix(time)).year);
            assert_eq!(without.read() != Ok(unix(time)), has_century);
            assert_eq!(without.set(unix(time)), if has_century { Err(Error::OutOfRange) } else { Ok(()) });
        }
    }
}

#[test]
fn hours_before_and_after_noon() {
    for (register, hour) in [(0x12, 0), (0x01, 1), (0x11, 11), (0x92, 12), (0x81, 13), (0x91, 23)] {
        let mut model = Model::with(0, &[(4, register), (7, 1), (8, 1), (9, 0)]);
        let time = clock(&mut model, None).read();
        assert_eq!(time, Ok(unix("2000-01-01 00:00:00") + hour * 3600), "{register:#x}");
    }
}

#[test]
fn an_implausible_century_register_is_ignored() {
    for century in [0x00, 0x18, 0xff, 0xaa] {
        let mut model = Model::with(HOURS_24, &[(7, 1), (8, 1), (9, 0x26), (CENTURY, century)]);
        assert_eq!(clock(&mut model, Some(CENTURY)).read(), Ok(unix("2026-01-01 00:00:00")));
    }
}

#[test]
fn reads_are_consistent_across_ticks() {
    for ticks_in in 0..60 {
        let values = [(0, 0x59), (2, 0x07), (4, 0x08), (7, 0x21), (8, 0x11), (9, 0x26), (CENTURY, 0x20), (0x0a, 0x80)];
        let mut model = Model::with(HOURS_24, &values);
        model.ticks_in = Some(ticks_in);
        let time = clock(&mut model, Some(CENTURY)).read().unwrap();
        let before = unix("2026-11-21 08:07:59");
        assert!([before, before + 1].contains(&time), "{time} with a tick after {ticks_in} reads");
    }
}

#[test]
fn invalid_registers_are_refused() {
    let good = [(0, 0x01), (2, 0x02), (4, 0x03), (7, 0x04), (8, 0x05), (9, 0x06), (CENTURY, 0x20)];
    assert!(clock(&mut Model::with(HOURS_24, &good), Some(CENTURY)).read().is_ok());
    let wrong: [(u8, u8); 14] = [
        (0, 0x60),
        (0, 0x0a),
        (2, 0x60),
        (2, 0xff),
        (4, 0x24),
        (4, 0xc0),
        (7, 0x00),
        (7, 0x32),
        (7, 0x1f),
        (8, 0x00),
        (8, 0x13),
        (9, 0xa0),
        (9, 0x9a),
        (8, 0xff),
    ];
    for (register, value) in wrong {
        let mut model = Model::with(HOURS_24, &good);
        model.registers[usize::from(register)] = value;
        let time = clock(&mut model, Some(CENTURY)).read();
        assert_eq!(time, Err(Error::NoTime), "{value:#x} in register {register}");
    }
    // 29 February of a common year; 31 April; hours of the other format.
    for (format, values) in [
        (HOURS_24, [(7, 0x29), (8, 0x02), (9, 0x25)]),
        (HOURS_24, [(7, 0x31), (8, 0x04), (9, 0x25)]),
        (0, [(4, 0x00), (8, 0x04), (9, 0x25)]),
        (0, [(4, 0x13), (8, 0x04), (9, 0x25)]),
        (BINARY | HOURS_24, [(9, 100), (8, 4), (7, 1)]),
    ] {
        let mut model = Model::with(format, &good);
        model.registers[usize::from(CENTURY)] = 20;
        for (register, value) in values {
            model.registers[usize::from(register as u8)] = value;
        }
        assert_eq!(clock(&mut model, Some(CENTURY)).read(), Err(Error::NoTime), "{values:x?}");
    }
}

#[test]
fn lost_power_and_a_missing_clock_are_reported() {
    let mut model = Model::with(HOURS_24, &[(7, 1), (8, 1), (0x0d, 0)]);
    assert_eq!(clock(&mut model, None).read(), Err(Error::PowerLost));

    struct Nothing;
    impl Device for Nothing {
        fn read(&mut self, _: u8) -> u8 {
            0xff
        }
        fn write(&mut self, _: u8, _: u8) {}
        fn pause(&mut self) {}
    }
    assert_eq!(clock(Nothing, Some(CENTURY)).read(), Err(Error::NoClock));
    assert_eq!(clock(Nothing, Some(CENTURY)).set(0), Err(Error::NoClock));
    assert_eq!(clock(Nothing, Some(CENTURY)).set(-1), Err(Error::OutOfRange));

    struct Zeroes;
    impl Device for Zeroes {
        fn read(&mut self, _: u8) -> u8 {
            0
        }
        fn write(&mut self, _: u8, _: u8) {}
        fn pause(&mut self) {}
    }
    assert_eq!(clock(Zeroes, None).read(), Err(Error::PowerLost));
    assert_eq!(clock(Zeroes, None).set(0), Err(Error::NotKept));
}

#[test]
fn registers_that_never_settle_are_refused() {
    struct Restless(u64);
    impl Device for Restless {
        fn read(&mut self, register: u8) -> u8 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let random = (self.0 >> 56) as u8;
            if register == 0x0a { random & 0x7f } else { random }
        }
        fn write(&mut self, _: u8, _: u8) {}
        fn pause(&mut self) {}
    }
    for seed in 0..200 {
        assert!(clock(Restless(seed), Some(CENTURY)).read().is_err());
        assert!(clock(Restless(seed), Some(CENTURY)).set(1).is_err());
    }
}
