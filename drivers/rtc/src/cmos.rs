//! The clock's registers (Motorola MC146818A data sheet; its century register is a later custom).

use core::fmt;

use contracts::text::Moment;
use layout::Access;

/// The two ports through which the registers are reached: one says which, the other is it.
#[layout::registers(bytes = 2)]
pub struct Window {
    /// The number of the register.
    #[at(0)]
    pub number: WriteOnly<u8>,
    /// The register of that number.
    #[at(1)]
    pub register: ReadWrite<u8>,
}

/// The clock's registers, by their number.
#[layout::registers(bytes = 128)]
pub struct Registers {
    /// From 0 to 59.
    #[at(0x00)]
    second: ReadWrite<u8>,
    /// From 0 to 59.
    #[at(0x02)]
    minute: ReadWrite<u8>,
    /// From 0 to 23, or twice from 1 to 12, then with [`AFTERNOON`].
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
    /// Of the century.
    #[at(0x09)]
    year: ReadWrite<u8>,
    /// What the clock does.
    #[at(0x0a)]
    progress: ReadOnly<Progress>,
    /// How the clock is read.
    #[at(0x0b)]
    format: ReadWrite<Format>,
    /// Whether it ran.
    #[at(0x0d)]
    battery: ReadOnly<Battery>,
}

/// Register A.
#[layout::bits(u8)]
struct Progress {
    /// The clock counts on; the time is not to be read.
    #[bit(7)]
    updating: bool,
}

/// Register B.
#[layout::bits(u8)]
struct Format {
    /// Hours are from 0 to 23, not twice from 1 to 12.
    #[bit(1)]
    is_24_hours: bool,
    /// Numbers are binary, not BCD.
    #[bit(2)]
    is_binary: bool,
    /// The clock stands still, to be set.
    #[bit(7)]
    halted: bool,
}

/// Register D.
#[layout::bits(u8)]
struct Battery {
    /// It has held.
    #[bit(7)]
    valid: bool,
}

/// In the hour, where that goes from 1 to 12.
const AFTERNOON: u8 = 0x80;

/// A way to the registers.
pub trait Ports: Access<u8> {
    /// Lets some time pass: a tenth of a millisecond.
    fn pause(&self);
}

/// How often the clock is asked for a time that stays the same while it is read.
const ATTEMPTS: usize = 100;
/// Without a century register, years from here on are of the 20th century, those before of the 21st.
const FIRST_YEAR: i64 = 1970;

/// Why there is no time, or it was not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// No clock answers.
    NoClock,
    /// The clock says that its battery was empty.
    PowerLost,
    /// What the clock tells is no date and time.
    NoTime,
    /// The clock cannot tell this time.
    OutOfRange,
    /// The clock does not keep what it is told.
    NotKept,
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Error::NoClock => "no real-time clock answers at the ports 0x70 and 0x71",
            Error::PowerLost => "the real-time clock has lost its power; set it",
            Error::NoTime => "what the real-time clock tells is no date and time; set it",
            Error::OutOfRange => "the real-time clock cannot tell this time",
            Error::NotKept => "the real-time clock does not keep the time it is told",
        })
    }
}

/// The clock.
#[derive(Debug)]
pub struct Clock<P> {
    registers: Registers<P>,
    century_register: Option<u8>,
}

/// The time as it stands in the registers.
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
    /// A clock, and where it keeps the century.
    pub fn new(ports: P, century_register: Option<u8>) -> Clock<P> {
        Clock { registers: Registers::over(ports), century_register }
    }

    /// Seconds since 1970-01-01 00:00 UTC.
    pub fn read(&self) -> Result<i64, Error> {
        let sample = self.sample()?;
        if !self.registers.battery().read().valid() {
            return Err(Error::PowerLost);
        }
        let format = self.registers.format().read();
        self.moment(sample, format).and_then(|moment| moment.to_unix()).ok_or(Error::NoTime)
    }

    /// Sets the clock, in the format that it has.
    pub fn set(&self, seconds: i64) -> Result<(), Error> {
        let moment = Moment::from_unix(seconds);
        let years = if self.century_register.is_some() { FIRST_YEAR..10_000 } else { FIRST_YEAR..FIRST_YEAR + 100 };
        if !years.contains(&moment.year) {
            return Err(Error::OutOfRange);
        }
        // A clock that is not there has all bits set, also those that say that it is busy.
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
        // A second may have passed since.
        match self.read() {
            Ok(told) if (seconds..=seconds + 2).contains(&told) => Ok(()),
            _ => Err(Error::NotKept),
        }
    }

    /// Waits until the clock does not count on just now.
    fn steady(&self) -> Result<(), Error> {
        for _ in 0..ATTEMPTS {
            if !self.registers.progress().read().updating() {
                return Ok(());
            }
            self.registers.access().pause();
        }
        Err(Error::NoClock)
    }

    /// The registers, read so that they belong together: twice the same.
    fn sample(&self) -> Result<Sample, Error> {
        for _ in 0..ATTEMPTS {
            self.steady()?;
            let first = self.look();
            if !self.registers.progress().read().updating() && self.look() == first {
                return Ok(first);
            }
        }
        Err(Error::NoTime)
    }

    fn look(&self) -> Sample {
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

    /// What a sample means in this format.
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
        // A register that holds no century is used for something else on this machine.
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
