//! The clock's registers (Motorola MC146818A data sheet; the century register is a later convention).

use core::fmt;

use layout::Access;
use text::Moment;

/// The pair of ports for index and data.
#[layout::registers(bytes = 2)]
pub struct Window {
    /// Index of the register.
    #[at(0)]
    pub number: WriteOnly<u8>,
    /// The register with that index.
    #[at(1)]
    pub register: ReadWrite<u8>,
}

/// The clock's registers, by index.
#[layout::registers(bytes = 128)]
pub struct Registers {
    /// From 0 to 59.
    #[at(0x00)]
    second: ReadWrite<u8>,
    /// From 0 to 59.
    #[at(0x02)]
    minute: ReadWrite<u8>,
    /// From 0 to 23, or from 1 to 12 with [`AFTERNOON`].
    #[at(0x04)]
    hour: ReadWrite<u8>,
    /// 1 is Sunday.
    #[at(0x06)]
    weekday: ReadWrite<u8>,
    /// From 1.
    #[at(0x07)]
    day: ReadWrite<u8>,
    /// From 1.
    #[at(0x08)]
    month: ReadWrite<u8>,
    /// Within the century.
    #[at(0x09)]
    year: ReadWrite<u8>,
    /// Update status.
    #[at(0x0a)]
    progress: ReadOnly<Progress>,
    /// Number format and control.
    #[at(0x0b)]
    format: ReadWrite<Format>,
    /// Battery status.
    #[at(0x0d)]
    battery: ReadOnly<Battery>,
}

/// Register A.
#[layout::bits(u8)]
struct Progress {
    /// An update is in progress; the time must not be read.
    #[bit(7)]
    updating: bool,
}

/// Register B.
#[layout::bits(u8)]
struct Format {
    /// Hours are from 0 to 23, not from 1 to 12 with [`AFTERNOON`].
    #[bit(1)]
    is_24_hours: bool,
    /// Numbers are binary, not BCD.
    #[bit(2)]
    is_binary: bool,
    /// The clock is stopped, to be set.
    #[bit(7)]
    halted: bool,
}

/// Register D.
#[layout::bits(u8)]
struct Battery {
    /// It has not failed.
    #[bit(7)]
    valid: bool,
}

/// PM flag of an hour from 1 to 12.
const AFTERNOON: u8 = 0x80;

/// Access to the registers.
pub trait Ports: Access<u8> {
    /// Sleeps for a tenth of a millisecond.
    fn pause(&self);
}

/// Maximum attempts to read a time that does not change meanwhile.
const ATTEMPTS: usize = 100;
/// Without a century register, two-digit years from this one on are of the 20th century, lower ones of the 21st.
const FIRST_YEAR: i64 = 1970;

/// Reason why the time could not be read or set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// There is no clock at the ports.
    NoClock,
    /// The clock reports that its battery was empty.
    PowerLost,
    /// The registers hold no valid date and time.
    NoTime,
    /// The clock cannot represent this time.
    OutOfRange,
    /// The time read back differs from the time set.
    NotKept,
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Error::NoClock => "no real-time clock answers at the ports 0x70 and 0x71",
            Error::PowerLost => "the real-time clock has lost power; set it",
            Error::NoTime => "the real-time clock has no valid date and time; set it",
            Error::OutOfRange => "the real-time clock cannot represent this time",
            Error::NotKept => "the real-time clock does not keep the time it was set to",
        })
    }
}

/// The clock.
#[derive(Debug)]
pub struct Clock<P> {
    registers: Registers<P>,
    century_register: Option<u8>,
}

/// The raw time in the registers.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Sample {
    second: u8,
    minute: u8,
    hour: u8,
    day: u8,
    month: u8,
    year: u8,
    century: u8,
}

impl<P: Ports> Clock<P> {
    /// Creates a clock with the index of its century register, if it has one.
    pub fn new(ports: P, century_register: Option<u8>) -> Clock<P> {
        Clock { registers: Registers::over(ports), century_register }
    }

    /// Returns seconds since 1970-01-01 00:00 UTC.
    pub fn read(&self) -> Result<i64, Error> {
        let sample = self.sample()?;
        if !self.registers.battery().read().valid() {
            return Err(Error::PowerLost);
        }
        let format = self.registers.format().read();
        self.moment(sample, format).and_then(|moment| moment.to_unix()).ok_or(Error::NoTime)
    }

    /// Sets the clock, in its current number format.
    pub fn set(&self, seconds: i64) -> Result<(), Error> {
        let moment = Moment::from_unix(seconds);
        let years = if self.century_register.is_some() { FIRST_YEAR..10_000 } else { FIRST_YEAR..FIRST_YEAR + 100 };
        if !years.contains(&moment.year) {
            return Err(Error::OutOfRange);
        }
        // A missing clock reads as all ones, which include the busy flag.
        self.steady()?;
        let registers = &self.registers;
        let format = registers.format().read().with_halted(false);
        registers.format().write(format.with_halted(true));
        let number = |value: u8| if format.is_binary() { value } else { ((value / 10) << 4) | (value % 10) };
        let hour = match (format.is_24_hours(), moment.hour) {
            (true, hour) => number(hour),
            (false, hour) => number((hour + 11) % 12 + 1) | if hour >= 12 { AFTERNOON } else { 0 },
        };
        registers.second().write(number(moment.second));
        registers.minute().write(number(moment.minute));
        registers.hour().write(hour);
        registers.weekday().write(number(moment.weekday + 1));
        registers.day().write(number(moment.day));
        registers.month().write(number(moment.month));
        registers.year().write(number((moment.year % 100) as u8));
        if let Some(register) = self.century_register {
            registers.access().write(register.into(), number((moment.year / 100) as u8));
        }
        registers.format().write(format);
        // The seconds may have advanced meanwhile.
        match self.read() {
            Ok(time) if (seconds..=seconds + 2).contains(&time) => Ok(()),
            _ => Err(Error::NotKept),
        }
    }

    /// Waits until no update is in progress.
    fn steady(&self) -> Result<(), Error> {
        for _ in 0..ATTEMPTS {
            if !self.registers.progress().read().updating() {
                return Ok(());
            }
            self.registers.access().pause();
        }
        Err(Error::NoClock)
    }

    /// Reads the registers consistently: until two reads are equal.
    fn sample(&self) -> Result<Sample, Error> {
        for _ in 0..ATTEMPTS {
            self.steady()?;
            let first = self.read_registers();
            if !self.registers.progress().read().updating() && self.read_registers() == first {
                return Ok(first);
            }
        }
        Err(Error::NoTime)
    }

    fn read_registers(&self) -> Sample {
        let registers = &self.registers;
        Sample {
            second: registers.second().read(),
            minute: registers.minute().read(),
            hour: registers.hour().read(),
            day: registers.day().read(),
            month: registers.month().read(),
            year: registers.year().read(),
            century: self.century_register.map_or(0, |register| registers.access().read(register.into())),
        }
    }

    /// Decodes a sample in this format.
    fn moment(&self, sample: Sample, format: Format) -> Option<Moment> {
        let number = |value: u8| match (format.is_binary(), value >> 4, value & 0x0f) {
            (true, ..) => Some(value),
            (false, tens @ 0..=9, ones @ 0..=9) => Some(tens * 10 + ones),
            (false, ..) => None,
        };
        let hour = if format.is_24_hours() {
            number(sample.hour)?
        } else {
            let hour = number(sample.hour & !AFTERNOON).filter(|hour| (1..=12).contains(hour))?;
            hour % 12 + if sample.hour & AFTERNOON != 0 { 12 } else { 0 }
        };
        let year = i64::from(number(sample.year).filter(|&year| year < 100)?);
        // Not a plausible century: this machine uses the register for something else.
        let century = number(sample.century).filter(|century| self.century_register.is_some() && *century >= 19);
        let year = match century {
            Some(century) => i64::from(century) * 100 + year,
            None if year < FIRST_YEAR % 100 => 2000 + year,
            None => 1900 + year,
        };
        let (month, day) = (number(sample.month)?, number(sample.day)?);
        let (minute, second) = (number(sample.minute)?, number(sample.second)?);
        Some(Moment { year, month, day, weekday: 0, hour, minute, second })
    }
}
