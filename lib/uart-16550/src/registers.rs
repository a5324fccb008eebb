//! Offsets of the registers, and their bits.

/// Registers by offset. Some share one.
pub mod offset {
    pub const DATA: u8 = 0;
    pub const DIVISOR_LOW: u8 = 0;
    pub const INTERRUPTS: u8 = 1;
    pub const DIVISOR_HIGH: u8 = 1;
    /// When read.
    pub const IDENTIFICATION: u8 = 2;
    /// When written.
    pub const FIFO: u8 = 2;
    pub const LINE_CONTROL: u8 = 3;
    pub const MODEM_CONTROL: u8 = 4;
    pub const LINE_STATUS: u8 = 5;
    pub const MODEM_STATUS: u8 = 6;
    pub const SCRATCH: u8 = 7;
}

/// Interrupt enable register.
pub mod interrupts {
    pub const RECEIVED: u8 = 1 << 0;
    pub const TRANSMITTER_EMPTY: u8 = 1 << 1;
    pub const LINE_STATUS: u8 = 1 << 2;
}

/// Interrupt identification register.
pub mod identification {
    pub const NONE_PENDING: u8 = 1 << 0;
    pub const CAUSE: u8 = 0x0e;
    pub const TRANSMITTER_EMPTY: u8 = 0x02;
    pub const RECEIVED: u8 = 0x04;
    pub const LINE_STATUS: u8 = 0x06;
    /// Fewer than the trigger level, and no more for a while.
    pub const RECEIVED_SOME: u8 = 0x0c;
    /// Both bits: the FIFOs are on.
    pub const FIFOS: u8 = 0xc0;
}

/// FIFO control register.
pub mod fifo {
    pub const ENABLE: u8 = 1 << 0;
    pub const CLEAR_RECEIVER: u8 = 1 << 1;
    pub const CLEAR_TRANSMITTER: u8 = 1 << 2;
    /// Interrupt at 8 bytes received; the other half is for what comes until they are read.
    pub const TRIGGER_8: u8 = 0x80;
}

/// Line control register.
pub mod line_control {
    /// 8 bits, no parity, 1 stop bit.
    pub const BITS_8: u8 = 0x03;
    /// Registers 0 and 1 are the divisor.
    pub const DIVISOR: u8 = 0x80;
}

/// Modem control register.
pub mod modem_control {
    pub const TERMINAL_READY: u8 = 1 << 0;
    pub const REQUEST_TO_SEND: u8 = 1 << 1;
    /// OUT2, which on a PC connects the interrupt line.
    pub const INTERRUPT_LINE: u8 = 1 << 3;
}

/// Line status register.
pub mod line {
    pub const RECEIVED: u8 = 1 << 0;
    pub const OVERRUN: u8 = 1 << 1;
    pub const BREAK: u8 = 1 << 4;
    pub const TRANSMITTER_EMPTY: u8 = 1 << 5;
}
