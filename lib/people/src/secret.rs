//! Passphrase hashes (scrypt).

use alloc::vec::Vec;
use core::fmt;

use scrypt::{Params, scrypt};

/// Salt length in bytes.
pub const SALT_BYTES: usize = 16;
/// Hash length in bytes.
const HASH_BYTES: usize = 32;
/// Name of the hash function.
const FUNCTION: &str = "scrypt";
/// Separator.
const BETWEEN: char = ':';

/// Cost parameters: `2^log_n * r * 128` bytes of memory, and time proportional to that and to `p`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    log_n: u8,
    r: u32,
    p: u32,
}

impl Cost {
    /// Default for new people: 16 MiB, and some tenths of a second.
    pub const USUAL: Cost = Cost { log_n: 14, r: 8, p: 5 };
    /// Minimum that is accepted, for tests.
    pub const MIN: Cost = Cost { log_n: 4, r: 1, p: 1 };
    /// Maximum of each parameter, so that a line cannot exhaust the memory of `login`.
    pub const MAX: Cost = Cost { log_n: 14, r: 8, p: 16 };

    /// Approximate memory of one hash, in bytes.
    pub fn bytes(self) -> usize {
        128 * self.r as usize * ((1 << self.log_n) + self.p as usize + 1)
    }

    fn parse<'t>(mut parts: impl Iterator<Item = &'t str>) -> Option<Cost> {
        let log_n: u8 = parts.next()?.parse().ok()?;
        let (r, p) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let is_in_range = (Cost::MIN.log_n..=Cost::MAX.log_n).contains(&log_n)
            && (Cost::MIN.r..=Cost::MAX.r).contains(&r)
            && (Cost::MIN.p..=Cost::MAX.p).contains(&p);
        is_in_range.then_some(Cost { log_n, r, p })
    }
}

/// A salted hash with its cost.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    cost: Cost,
    salt: [u8; SALT_BYTES],
    hash: [u8; HASH_BYTES],
}

impl Secret {
    /// Hashes a passphrase; `None` if the cost is impossible.
    pub fn of(passphrase: &[u8], salt: [u8; SALT_BYTES], cost: Cost) -> Option<Secret> {
        let hash = hash(passphrase, &salt, cost)?;
        Some(Secret { cost, salt, hash })
    }

    /// Parses `scrypt:LOG_N:R:P:SALT:HASH`, the last two in hexadecimal digits.
    pub fn parse(text: &str) -> Option<Secret> {
        let mut parts = text.split(BETWEEN);
        if parts.next()? != FUNCTION {
            return None;
        }
        let cost = Cost::parse(&mut parts)?;
        let salt = bytes(parts.next()?)?;
        let hash = bytes(parts.next()?)?;
        parts.next().is_none().then_some(Secret { cost, salt, hash })
    }

    /// Verifies a passphrase, with a constant-time comparison.
    pub fn is_of(&self, passphrase: &[u8]) -> bool {
        let Some(tried) = hash(passphrase, &self.salt, self.cost) else { return false };
        tried.iter().zip(&self.hash).fold(0, |differences, (left, right)| differences | (left ^ right)) == 0
    }
}

fn hash(passphrase: &[u8], salt: &[u8], cost: Cost) -> Option<[u8; HASH_BYTES]> {
    let params = Params::new(cost.log_n, cost.r, cost.p, HASH_BYTES).ok()?;
    let mut hash = [0; HASH_BYTES];
    scrypt(passphrase, salt, &params, &mut hash).ok()?;
    Some(hash)
}

fn bytes<const COUNT: usize>(digits: &str) -> Option<[u8; COUNT]> {
    if digits.len() != 2 * COUNT || !digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    let pairs = (0..COUNT).map(|index| u8::from_str_radix(&digits[2 * index..2 * index + 2], 16).ok());
    pairs.collect::<Option<Vec<u8>>>()?.try_into().ok()
}

impl fmt::Display for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cost { log_n, r, p } = self.cost;
        write!(formatter, "{FUNCTION}:{log_n}:{r}:{p}:")?;
        self.salt.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))?;
        write!(formatter, "{BETWEEN}")?;
        self.hash.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a passphrase's hash")
    }
}
