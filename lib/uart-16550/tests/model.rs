//! The driver against a model of the device, and against arbitrary devices.

use std::cell::RefCell;
use std::collections::VecDeque;

use layout::Access;
use uart_16550::{FIFO_BYTES, NoDevice, Registers, Served, Uart};

/// A device, by register offset (0 to 7).
trait Device {
    fn read(&mut self, offset: u64) -> u8;
    fn write(&mut self, offset: u64, value: u8);
}

struct Lent<'a, D>(RefCell<&'a mut D>);

impl<D: Device> Access<u8> for Lent<'_, D> {
    fn read(&self, offset: u64) -> u8 {
        self.0.borrow_mut().read(offset)
    }

    fn write(&self, offset: u64, value: u8) {
        self.0.borrow_mut().write(offset, value);
    }
}

fn start<'a, D: Device>(device: &'a mut D, input: &mut Vec<u8>) -> Result<Uart<Lent<'a, D>>, NoDevice> {
    Uart::start(Registers::over(Lent(RefCell::new(device))), input)
}

/// The model, for the registers in use.
#[derive(Default)]
struct Model {
    scratch: u8,
    enabled: u8,
    line_control: u8,
    modem_control: u8,
    fifos: bool,
    receiver: VecDeque<u8>,
    overrun: bool,
    transmitter: usize,
    transmitter_announced: bool,
    sent: Vec<u8>,
}

impl Model {
    fn has_divisor(&self) -> bool {
        self.line_control & 0x80 != 0
    }

    fn arrive(&mut self, bytes: &[u8]) {
        let room = if self.fifos { 16 } else { 1 };
        for &byte in bytes {
            if self.receiver.len() < room {
                self.receiver.push_back(byte);
            } else {
                self.overrun = true;
            }
        }
    }

    /// The line has transmitted all written bytes.
    fn drain(&mut self) {
        self.transmitter = 0;
        self.transmitter_announced = false;
    }

    fn cause(&self) -> u8 {
        let fifos = if self.fifos { 0xc0 } else { 0 };
        fifos
            | if self.enabled & 4 != 0 && self.overrun {
                6
            } else if self.enabled & 1 != 0 && !self.receiver.is_empty() {
                4
            } else if self.enabled & 2 != 0 && self.transmitter == 0 && !self.transmitter_announced {
                2
            } else {
                1
            }
    }
}

impl Device for Model {
    fn read(&mut self, offset: u64) -> u8 {
        match offset {
            0 if !self.has_divisor() => self.receiver.pop_front().unwrap_or(0),
            1 if !self.has_divisor() => self.enabled,
            2 => {
                let cause = self.cause();
                self.transmitter_announced |= cause & 0x0f == 2;
                cause
            }
            5 => {
                let overrun = u8::from(std::mem::take(&mut self.overrun)) << 1;
                let empty = u8::from(self.transmitter == 0) << 5;
                u8::from(!self.receiver.is_empty()) | overrun | empty
            }
            7 => self.scratch,
            _ => 0,
        }
    }

    fn write(&mut self, offset: u64, value: u8) {
        match offset {
            0 if !self.has_divisor() => {
                assert!(self.transmitter < 16, "bytes are handed over that the device has no room for");
                self.sent.push(value);
                self.transmitter += 1;
            }
            1 if !self.has_divisor() => {
                self.transmitter_announced &= value & 2 == 0;
                self.enabled = value;
            }
            2 => {
                if (value & 1 != 0) != self.fifos || value & 2 != 0 {
                    self.receiver.clear();
                }
                self.fifos = value & 1 != 0;
            }
            3 => self.line_control = value,
            4 => self.modem_control = value,
            7 => self.scratch = value,
            _ => {}
        }
    }
}

#[test]
fn what_came_before_the_driver_is_kept() {
    let mut model = Model::default();
    model.arrive(b"x");
    let mut input = Vec::with_capacity(100);
    start(&mut model, &mut input).unwrap();
    assert_eq!(input, b"x");
    assert!(model.fifos && model.enabled == 0);
    // Including leftovers of the previous driver in the FIFO.
    model.arrive(b"yz");
    let mut uart = start(&mut model, &mut input).unwrap();
    uart.start_receiving();
    assert_eq!(uart.serve(&mut input), Ok(Served::default()));
    assert_eq!(input, b"xyz");
}

#[test]
fn a_reader_without_room_leaves_bytes_in_the_device() {
    let mut model = Model::default();
    let mut input = Vec::with_capacity(100);
    start(&mut model, &mut input).unwrap();
    model.arrive(b"0123456789");
    let mut uart = start(&mut model, &mut input).unwrap();
    uart.start_receiving();
    let mut input = Vec::with_capacity(4);
    let room = input.capacity();
    assert_eq!(uart.serve(&mut input), Ok(Served::default()));
    assert_eq!((input.as_slice(), input.capacity()), (&b"0123"[..], room));
    assert!(!uart.is_receiving());
    input = Vec::with_capacity(100);
    uart.start_receiving();
    uart.serve(&mut input).unwrap();
    assert_eq!(input, b"456789");
    assert_ne!(model.modem_control & 2, 0);
}

#[test]
fn lost_bytes_are_noticed() {
    let mut model = Model::default();
    let mut input = Vec::with_capacity(100);
    start(&mut model, &mut input).unwrap();
    model.arrive(&[b'a'; 20]);
    let mut uart = start(&mut model, &mut input).unwrap();
    uart.start_receiving();
    assert!(uart.serve(&mut input).unwrap().overrun);
    assert_eq!(input.len(), 16);
}

#[test]
fn output_goes_a_fifo_at_a_time() {
    let mut model = Model::default();
    let text: Vec<u8> = (0..100).collect();
    let mut done = 0;
    while done < text.len() {
        let mut uart = start(&mut model, &mut Vec::new()).unwrap();
        let count = uart.transmit(&text[done..]).unwrap();
        assert!(count > 0 && count <= FIFO_BYTES);
        done += count;
        // The transmitter is busy.
        assert_eq!(uart.transmit(b"more"), Ok(0));
        uart.announce_room();
        assert_eq!(uart.serve(&mut Vec::with_capacity(1)), Ok(Served::default()));
        model.drain();
    }
    assert_eq!(model.sent, text);
    let mut uart = start(&mut model, &mut Vec::new()).unwrap();
    uart.announce_room();
    assert!(uart.serve(&mut Vec::with_capacity(1)).unwrap().room);
    // Reported once per request.
    assert_eq!(uart.serve(&mut Vec::with_capacity(1)), Ok(Served::default()));
}

/// Responds from a number sequence, and counts accesses.
struct Nonsense {
    state: u64,
    accesses: usize,
    /// The scratch register; a device without it is not detected.
    scratch: u8,
}

impl Device for Nonsense {
    fn read(&mut self, offset: u64) -> u8 {
        self.accesses += 1;
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        if offset == 7 { self.scratch } else { (self.state >> 16) as u8 }
    }

    fn write(&mut self, offset: u64, value: u8) {
        self.accesses += 1;
        if offset == 7 {
            self.scratch = value;
        }
    }
}

#[test]
fn nonsense_takes_a_bounded_time() {
    for seed in 1..2_000 {
        let mut device = Nonsense { state: seed, accesses: 0, scratch: 0 };
        let mut input = Vec::with_capacity(100);
        if let Ok(mut uart) = start(&mut device, &mut input) {
            uart.start_receiving();
            for _ in 0..10 {
                let _ = uart.serve(&mut input);
                let _ = uart.transmit(b"0123456789abcdefghijk");
                uart.announce_room();
            }
        }
        assert!(device.accesses < 200_000);
        assert!(input.len() <= 1_300);
    }
}

#[test]
fn a_port_that_is_not_there_is_no_device() {
    struct Nothing;
    impl Device for Nothing {
        fn read(&mut self, _: u64) -> u8 {
            0xff
        }
        fn write(&mut self, _: u64, _: u8) {}
    }
    assert_eq!(start(&mut Nothing, &mut Vec::new()).map(drop), Err(NoDevice));
}
