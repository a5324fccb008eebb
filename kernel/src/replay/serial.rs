//! What the driver of a bare machine's serial line sends, so that a replay shows it: a 16550, of which two registers matter.

use alloc::vec::Vec;

/// First port of the line that is a PC's console.
pub const CONSOLE_PORT: u64 = 0x3f8;
/// The transmitter, or the divisor's low byte.
const DATA: u64 = 0;
const LINE_CONTROL: u64 = 3;
/// Line control: the data register is the divisor's.
const DIVISOR: u8 = 0x80;

/// The registers, and what has been sent since it was last taken.
#[derive(Debug, Default)]
pub struct Line {
    control: u8,
    sent: Vec<u8>,
}

impl Line {
    /// A register was written.
    pub fn written(&mut self, register: u64, value: u8) {
        if register == LINE_CONTROL {
            self.control = value;
        }
        if register == DATA && self.control & DIVISOR == 0 {
            self.sent.push(value);
        }
    }

    /// Takes what was sent.
    pub fn take(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_divisor_is_not_sent() {
        let mut line = Line::default();
        let writes = [(DATA, b'a'), (LINE_CONTROL, 0x83), (DATA, 1), (1, 0), (LINE_CONTROL, 3), (DATA, b'b')];
        writes.into_iter().for_each(|(register, value)| line.written(register, value));
        assert_eq!(line.take(), b"ab");
        assert_eq!(line.take(), b"");
    }
}
