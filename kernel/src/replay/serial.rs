//! What the driver of a bare machine's serial line sends, so that a replay shows it: a 16550, of which two registers matter.

/// First port of the line that is a PC's console.
pub const CONSOLE_PORT: u64 = 0x3f8;
/// The transmitter, or the divisor's low byte.
const DATA: u64 = 0;
const LINE_CONTROL: u64 = 3;
/// Line control: the data register is the divisor's.
const DIVISOR: u8 = 0x80;

/// The registers.
#[derive(Debug, Default)]
pub struct Line {
    control: u8,
}

impl Line {
    /// A register was written; returns what the line sends.
    pub fn written(&mut self, register: u64, value: u8) -> Option<u8> {
        if register == LINE_CONTROL {
            self.control = value;
        }
        (register == DATA && self.control & DIVISOR == 0).then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_divisor_is_not_sent() {
        let mut line = Line::default();
        assert_eq!(line.written(DATA, b'a'), Some(b'a'));
        assert_eq!(line.written(LINE_CONTROL, 0x83), None);
        assert_eq!(line.written(DATA, 1), None);
        assert_eq!(line.written(1, 0), None);
        assert_eq!(line.written(LINE_CONTROL, 3), None);
        assert_eq!(line.written(DATA, b'b'), Some(b'b'));
    }
}
