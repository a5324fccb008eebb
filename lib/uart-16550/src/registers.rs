//! Registers and bits (National Semiconductor, *PC16550D*, 1995, section 8).

/// Register map.
#[layout::registers(bytes = 8)]
pub struct Registers {
    /// RBR: received byte.
    #[at(0)]
    pub received: ReadOnly<u8>,
    /// THR: byte to transmit.
    #[at(0)]
    pub send: WriteOnly<u8>,
    /// IER.
    #[at(1)]
    pub interrupts: ReadWrite<Interrupts>,
    /// IIR.
    #[at(2)]
    pub identification: ReadOnly<Identification>,
    /// FCR.
    #[at(2)]
    pub fifo: WriteOnly<Fifo>,
    /// LCR.
    #[at(3)]
    pub line_control: ReadWrite<LineControl>,
    /// MCR.
    #[at(4)]
    pub modem_control: ReadWrite<ModemControl>,
    /// LSR.
    #[at(5)]
    pub line_status: ReadOnly<LineStatus>,
    /// MSR; reading it clears its interrupt.
    #[at(6)]
    pub modem_status: ReadOnly<u8>,
    /// SCR: scratch register.
    #[at(7)]
    pub scratch: ReadWrite<u8>,
    /// DLL: divisor of 115,200 Hz, lower half; replaces the data register while [`LineControl::divisor`] is set.
    #[at(0, bank = "divisor")]
    pub divisor_low: ReadWrite<u8>,
    /// DLM: upper half, replaces IER.
    #[at(1, bank = "divisor")]
    pub divisor_high: ReadWrite<u8>,
}

/// Interrupt enable register.
#[layout::bits(u8)]
pub struct Interrupts {
    /// Received data available.
    #[bit(0)]
    pub received: bool,
    /// Transmitter holding register empty.
    #[bit(1)]
    pub transmitter_empty: bool,
    /// Receiver line status.
    #[bit(2)]
    pub line_status: bool,
}

/// Interrupt identification register.
#[layout::bits(u8)]
pub struct Identification {
    /// No interrupt pending.
    #[bit(0)]
    pub none_pending: bool,
    /// The pending cause: see [`cause`].
    #[bits(1..=3)]
    pub cause: u8,
    /// 3: FIFOs enabled.
    #[bits(6..=7)]
    pub fifos: u8,
}

/// Values of [`Identification::cause`].
pub mod cause {
    /// Transmitter holding register empty.
    pub const TRANSMITTER_EMPTY: u8 = 1;
    /// Received data available, or trigger level reached.
    pub const RECEIVED: u8 = 2;
    /// Receiver line status.
    pub const LINE_STATUS: u8 = 3;
    /// Character timeout: data below the trigger level, and no more for some time.
    pub const RECEIVED_SOME: u8 = 6;
}

/// [`Identification::fifos`] with FIFOs enabled.
pub const FIFOS_ON: u8 = 3;

/// FIFO control register.
#[layout::bits(u8)]
pub struct Fifo {
    /// Enables the FIFOs.
    #[bit(0)]
    pub enable: bool,
    /// Clears the receive FIFO.
    #[bit(1)]
    pub clear_receiver: bool,
    /// Clears the transmit FIFO.
    #[bit(2)]
    pub clear_transmitter: bool,
    /// Receive trigger level; see [`TRIGGER_8`].
    #[bits(6..=7)]
    pub trigger: u8,
}

/// Trigger at 8 bytes; the other half of the FIFO is for bytes that arrive before the driver reads.
pub const TRIGGER_8: u8 = 2;

/// Line control register.
#[layout::bits(u8)]
pub struct LineControl {
    /// Bits per character, from 5 (0) to 8 (3).
    #[bits(0..=1)]
    pub character: u8,
    /// Divisor latch access (DLAB).
    #[bit(7)]
    pub divisor: bool,
}

/// Modem control register.
#[layout::bits(u8)]
pub struct ModemControl {
    /// DTR.
    #[bit(0)]
    pub terminal_ready: bool,
    /// RTS.
    #[bit(1)]
    pub request_to_send: bool,
    /// OUT2, which enables the interrupt line on a PC.
    #[bit(3)]
    pub interrupt_line: bool,
}

/// Line status register.
#[layout::bits(u8)]
pub struct LineStatus {
    /// Data ready.
    #[bit(0)]
    pub received: bool,
    /// Overrun error.
    #[bit(1)]
    pub overrun: bool,
    /// Break, which is received as a zero byte.
    #[bit(4)]
    pub is_break: bool,
    /// The transmitter accepts [`FIFO_BYTES`](crate::FIFO_BYTES).
    #[bit(5)]
    pub transmitter_empty: bool,
}
