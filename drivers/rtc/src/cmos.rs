//! The clock's registers (Motorola MC146818A data sheet; its century register is a later custom).

use core::fmt;

use contracts::text::Moment;

/// Access to the registers, by their number.
pub trait Ports {
    /// Reads one.
    fn read(&mut self, register: u8) -> u8;
    /// Writes one.
    fn write(&mut self, register: u8, value: u8);
    /// Lets some time pass: a tenth of a millisecond.
    fn pause(&mut self);
}

const SECOND: u8 = 0x00;
const MINUTE: u8 = 0x02;
const HOUR: u8 = 0x04;
const WEEKDAY: u8 = 0x06;
const DAY: u8 = 0x07;
const MONTH: u8 = 0x08;
const YEAR: u8 = 0x09;

const STATUS_A: u8 = 0x0a;
/// The clock counts on; the time is not to be read.
const A_UPDATING: u8 = 0x80;
const STATUS_B: u8 = 0x0b;
/// The clock stands still, to be set.
const B_SET: u8 = 0x80;
/// Numbers are binary, not BCD.
const B_BINARY: u8 = 0x04;
/// Hours are from 0 to 23, not twice from 1 to 12.
const B_24_HOURS: u8 = 0x02;
const STATUS_D: u8 = 0x0d;
/// The battery has held.
const D_VALID: u8 = 0x80;
/// In the hour, where that goes from 1 to 12.
const AFTERNOON: u8 = 0x80;

/// How often the clock is asked for a time that stays the same while it is read.
const ATTEMPTS: usize = 100;
/// Without a century register, years from here on are of the 20th century, those before of the 21st.
const FIRST_YEAR: i64 = 1970;

/// Why there is no time, or it was not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
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

impl fmt::Display for Trouble {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Trouble::NoClock => "no real-time clock answers at the ports 0x70 and 0x71",
            Trouble::PowerLost => "the real-time clock has lost its power; set it",
            Trouble::NoTime => "what the real-time clock tells is no date and time; set it",
            Trouble::OutOfRange => "the real-time clock cannot tell this time",
            Trouble::NotKept => "the real-time clock does not keep the time it is told",
        })
    }
}

/// The clock.
#[derive(Debug)]
pub struct Clock<P> {
    ports: P,
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
        Clock { ports, century_register }
    }

    /// Seconds since 1970-01-01 00:00 UTC.
    pub fn read(&mut self) -> Result<i64, Trouble> {
        let sample = self.sample()?;
        if self.ports.read(STATUS_D) & D_VALID == 0 {
            return Err(Trouble::PowerLost);
        }
        let format = self.ports.read(STATUS_B);
        self.moment(sample, format).and_then(|moment| moment.to_unix()).ok_or(Trouble::NoTime)
    }

    /// Sets the clock, in the format that it has.
    pub fn set(&mut self, seconds: i64) -> Result<(), Trouble> {
        let moment = Moment::from_unix(seconds);
        let years = if self.century_register.is_some() { FIRST_YEAR..10_000 } else { FIRST_YEAR..FIRST_YEAR + 100 };
        if !years.contains(&moment.year) {
            return Err(Trouble::OutOfRange);
        }
        // A clock that is not there has all bits set, also those that say that it is busy.
        self.steady()?;
        let format = self.ports.read(STATUS_B) & !B_SET;
        self.ports.write(STATUS_B, format | B_SET);
        let number = |value: u8| if format & B_BINARY != 0 { value } else { ((value / 10) << 4) | (value % 10) };
        let hour = match (format & B_24_HOURS != 0, moment.hour) {
            (true, hour) => number(hour),
            (false, hour) => number((hour + 11) % 12 + 1) | if hour >= 12 { AFTERNOON } else { 0 },
        };
        let fields = [
            (SECOND, number(moment.second)),
            (MINUTE, number(moment.minute)),
            (HOUR, hour),
            (WEEKDAY, number(moment.weekday + 1)),
            (DAY, number(moment.day)),
            (MONTH, number(moment.month)),
            (YEAR, number((moment.year % 100) as u8)),
        ];
        for (register, value) in fields {
            self.ports.write(register, value);
        }
        if let Some(register) = self.century_register {
            self.ports.write(register, number((moment.year / 100) as u8));
        }
        self.ports.write(STATUS_B, format);
        // A second may have passed since.
        match self.read() {
            Ok(told) if (seconds..=seconds + 2).contains(&told) => Ok(()),
            _ => Err(Trouble::NotKept),
        }
    }

    /// Waits until the clock does not count on just now.
    fn steady(&mut self) -> Result<(), Trouble> {
        for _ in 0..ATTEMPTS {
            if self.ports.read(STATUS_A) & A_UPDATING == 0 {
                return Ok(());
            }
            self.ports.pause();
        }
        Err(Trouble::NoClock)
    }

    /// The registers, read so that they belong together: twice the same.
    fn sample(&mut self) -> Result<Sample, Trouble> {
        for _ in 0..ATTEMPTS {
            self.steady()?;
            let first = self.registers();
            if self.ports.read(STATUS_A) & A_UPDATING == 0 && self.registers() == first {
                return Ok(first);
            }
        }
        Err(Trouble::NoTime)
    }

    fn registers(&mut self) -> Sample {
        Sample {
            second: self.ports.read(SECOND),
            minute: self.ports.read(MINUTE),
            hour: self.ports.read(HOUR),
            day: self.ports.read(DAY),
            month: self.ports.read(MONTH),
            year: self.ports.read(YEAR),
            century: self.century_register.map_or(0, |register| self.ports.read(register)),
        }
    }

    /// What a sample means in this format.
    fn moment(&self, sample: Sample, format: u8) -> Option<Moment> {
        let number = |value: u8| match (format & B_BINARY != 0, value >> 4, value & 0x0f) {
            (true, ..) => Some(value),
            (false, tens @ 0..=9, ones @ 0..=9) => Some(tens * 10 + ones),
            (false, ..) => None,
        };
        let hour = if format & B_24_HOURS != 0 {
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
