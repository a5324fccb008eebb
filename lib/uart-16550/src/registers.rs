//! The registers and their bits (National Semiconductor, *PC16550D*, 1995, section 8).

/// The port.
#[layout::registers(bytes = 8)]
pub struct Registers {
    /// A byte that was received.
    #[at(0)]
    pub received: ReadOnly<u8>,
    /// A byte to be sent.
    #[at(0)]
    pub send: WriteOnly<u8>,
    /// What interrupts.
    #[at(1)]
    pub interrupts: ReadWrite<Interrupts>,
    /// Why it interrupts.
    #[at(2)]
    pub identification: ReadOnly<Identification>,
    /// How the FIFOs work.
    #[at(2)]
    pub fifo: WriteOnly<Fifo>,
    /// What a character looks like on the line.
    #[at(3)]
    pub line_control: ReadWrite<LineControl>,
    /// What the modem is told.
    #[at(4)]
    pub modem_control: ReadWrite<ModemControl>,
    /// What goes on on the line.
    #[at(5)]
    pub line_status: ReadOnly<LineStatus>,
    /// What the modem tells; reading it ends its interrupt.
    #[at(6)]
    pub modem_status: ReadOnly<u8>,
    /// Keeps a byte, for nothing.
    #[at(7)]
    pub scratch: ReadWrite<u8>,
    /// By what the clock of 115,200 Hz is divided: the lower half. In place of the data, while
    /// [`LineControl::divisor`] is set.
    #[at(0, bank = "divisor")]
    pub divisor_low: ReadWrite<u8>,
    /// The upper half, in place of the interrupts.
    #[at(1, bank = "divisor")]
    pub divisor_high: ReadWrite<u8>,
}

/// Interrupt enable register.
#[layout::bits(u8)]
pub struct Interrupts {
    /// A byte was received.
    #[bit(0)]
    pub received: bool,
    /// There is room for bytes to send.
    #[bit(1)]
    pub transmitter_empty: bool,
    /// Something is wrong on the line.
    #[bit(2)]
    pub line_status: bool,
}

/// Interrupt identification register.
#[layout::bits(u8)]
pub struct Identification {
    /// Nothing interrupts.
    #[bit(0)]
    pub none_pending: bool,
    /// What does: see [`cause`].
    #[bits(1..=3)]
    pub cause: u8,
    /// 3: the FIFOs are on.
    #[bits(6..=7)]
    pub fifos: u8,
}

/// Values of [`Identification::cause`].
pub mod cause {
    /// There is room for bytes to send.
    pub const TRANSMITTER_EMPTY: u8 = 1;
    /// A byte was received, or as many as were to trigger.
    pub const RECEIVED: u8 = 2;
    /// Something is wrong on the line.
    pub const LINE_STATUS: u8 = 3;
    /// Fewer than the trigger level, and no more for a while.
    pub const RECEIVED_SOME: u8 = 6;
}

/// [`Identification::fifos`] when they are on.
pub const FIFOS_ON: u8 = 3;

/// FIFO control register.
#[layout::bits(u8)]
pub struct Fifo {
    /// They are used.
    #[bit(0)]
    pub enable: bool,
    /// What was received is forgotten.
    #[bit(1)]
    pub clear_receiver: bool,
    /// What was to be sent is forgotten.
    #[bit(2)]
    pub clear_transmitter: bool,
    /// At how many bytes received it interrupts; [`TRIGGER_8`].
    #[bits(6..=7)]
    pub trigger: u8,
}

/// Interrupt at 8 bytes received; the other half of the FIFO is for what comes until they are read.
pub const TRIGGER_8: u8 = 2;

/// Line control register.
#[layout::bits(u8)]
pub struct LineControl {
    /// Bits of a character, from 5 (0) to 8 (3).
    #[bits(0..=1)]
    pub character: u8,
    /// Registers 0 and 1 are the divisor.
    #[bit(7)]
    pub divisor: bool,
}

/// Modem control register.
#[layout::bits(u8)]
pub struct ModemControl {
    /// Somebody is here.
    #[bit(0)]
    pub terminal_ready: bool,
    /// The other side may send.
    #[bit(1)]
    pub request_to_send: bool,
    /// OUT2, which on a PC connects the interrupt line.
    #[bit(3)]
    pub interrupt_line: bool,
}

/// Line status register.
#[layout::bits(u8)]
pub struct LineStatus {
    /// A byte is there.
    #[bit(0)]
    pub received: bool,
    /// One was lost.
    #[bit(1)]
    pub overrun: bool,
    /// The line is held low, which looks like a zero byte.
    #[bit(4)]
    pub is_break: bool,
    /// The transmitter takes [`FIFO_BYTES`](crate::FIFO_BYTES).
    #[bit(5)]
    pub transmitter_empty: bool,
}
