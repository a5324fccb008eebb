//! Sequence numbers, which wrap (RFC 9293, section 3.4).

use core::ops::Add;

/// A sequence number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seq(pub u32);

impl Seq {
    /// Whether it precedes `other`, modulo 2^32.
    pub fn is_before(self, other: Seq) -> bool {
        (self.0.wrapping_sub(other.0) as i32) < 0
    }

    /// Whether it follows `other`, modulo 2^32.
    pub fn is_after(self, other: Seq) -> bool {
        other.is_before(self)
    }

    /// Distance from `other`, which must not follow it.
    pub fn since(self, earlier: Seq) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }

    /// The later of two.
    pub fn max(self, other: Seq) -> Seq {
        if self.is_before(other) { other } else { self }
    }

    /// The earlier of two.
    pub fn min(self, other: Seq) -> Seq {
        if self.is_before(other) { self } else { other }
    }

    /// The number before it.
    pub fn previous(self) -> Seq {
        Seq(self.0.wrapping_sub(1))
    }
}

impl Add<u32> for Seq {
    type Output = Seq;

    fn add(self, count: u32) -> Seq {
        Seq(self.0.wrapping_add(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_holds_across_the_wrap() {
        let (low, high) = (Seq(u32::MAX - 1), Seq(3));
        assert!(low.is_before(high) && high.is_after(low) && !low.is_before(low));
        assert_eq!((high.since(low), low + 5, low.max(high), low.min(high)), (5, high, high, low));
        assert_eq!(Seq(0).previous(), Seq(u32::MAX));
    }
}
