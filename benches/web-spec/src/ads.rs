//! Ad selection: tables of visitors and advertisements, and the choice between them.
//!
//! As in SPECweb99: a visitor's *personality* and an advertisement's audience are bit sets in five groups; each group
//! in which they intersect scores points, and the next advertisement with enough points is shown. The tables are
//! computed from indices alone, so that a client can generate the same ones. Deliberately not here: cookies and pages.

use alloc::vec::Vec;

/// Number of advertisements.
pub const ADS: usize = 360;

/// Default number of visitors.
pub const VISITORS: u32 = 10_000;

/// Maximum number of visitors: each takes four bytes.
pub const MAX_VISITORS: u32 = 1_000_000;

/// A group of personality bits, and the position of an advertisement's points for it.
struct Group {
    bits: u32,
    points_shift: u32,
}

/// Sex, age, region and two interests.
const GROUPS: [Group; 5] = [
    Group { bits: 0x3000_0000, points_shift: 16 },
    Group { bits: 0x0f00_0000, points_shift: 12 },
    Group { bits: 0x00f0_0000, points_shift: 8 },
    Group { bits: 0x000f_fc00, points_shift: 4 },
    Group { bits: 0x0000_03ff, points_shift: 0 },
];

/// An advertisement.
#[derive(Clone, Copy, Debug)]
struct Ad {
    /// Audience, as personality bits.
    audience: u32,
    /// Points for each group, four bits each.
    points: u32,
    /// Minimum points to be shown.
    needed: u32,
    /// Last day of validity, counted from the first day of the tables.
    last_day: u32,
}

/// The advertisement chosen for a visitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Number of the advertisement.
    pub ad: u32,
    /// Its points.
    pub points: u32,
    /// Whether it has expired and is not shown.
    pub expired: bool,
}

impl Choice {
    /// Path of its picture, relative to the root of the files.
    pub fn picture(&self) -> alloc::string::String {
        let (folder, place) = (self.ad / 36, self.ad % 36);
        alloc::format!("dir{folder:05}/class{}_{}", place / 9, place % 9)
    }
}

/// All visitors and advertisements.
pub struct Tables {
    personalities: Vec<u32>,
    ads: Vec<Ad>,
    /// The current day.
    pub today: u32,
}

impl Tables {
    /// Generates tables of this many visitors, at most [`MAX_VISITORS`].
    pub fn new(visitors: u32, today: u32) -> Tables {
        let mut numbers = Numbers(0x2545_f491_4f6c_dd1d);
        let personalities = (0..visitors.clamp(1, MAX_VISITORS)).map(|_| numbers.personality()).collect();
        let ads = (0..ADS).map(|_| numbers.ad()).collect();
        Tables { personalities, ads, today }
    }

    /// Number of visitors.
    pub fn visitors(&self) -> usize {
        self.personalities.len()
    }

    /// Chooses the next advertisement for this visitor, after the last one shown. `None` if there is no such visitor
    /// or advertisement.
    pub fn choose(&self, visitor: u32, last_ad: u32) -> Option<Choice> {
        let personality = *self.personalities.get(visitor as usize)?;
        let last = last_ad as usize;
        if last >= self.ads.len() {
            return None;
        }
        let after = (last + 1..self.ads.len()).chain(0..=last);
        let choice = |number: usize| {
            let ad = self.ads.get(number)?;
            let points = points(personality & ad.audience, ad.points);
            let expired = ad.last_day < self.today;
            (points >= ad.needed).then_some(Choice { ad: number as u32, points, expired })
        };
        // If none has enough points, the next one is shown anyway.
        let next = (last + 1) % self.ads.len();
        let unfit = Choice { ad: next as u32, points: 0, expired: false };
        Some(after.into_iter().find_map(choice).unwrap_or(unfit))
    }
}

/// Returns the points for the intersection of a visitor and an audience.
fn points(common: u32, points: u32) -> u32 {
    GROUPS.iter().filter(|group| common & group.bits != 0).map(|group| points >> group.points_shift & 0xf).sum()
}

/// Deterministic pseudo-random numbers (xorshift64*).
struct Numbers(u64);

impl Numbers {
    /// Returns a number from 0 to `bound` - 1.
    fn below(&mut self, bound: u32) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        ((number * u64::from(bound)) >> 32) as u32
    }

    /// Returns one bit in each group.
    fn personality(&mut self) -> u32 {
        GROUPS.iter().map(|group| self.bit_of(group.bits)).fold(0, |bits, bit| bits | bit)
    }

    fn bit_of(&mut self, bits: u32) -> u32 {
        1 << (bits.trailing_zeros() + self.below(bits.count_ones()))
    }

    fn ad(&mut self) -> Ad {
        // Two bits in each group give an audience that includes some visitors.
        let audience = self.personality() | self.personality();
        let points = GROUPS.iter().fold(0, |points, group| points | (1 + self.below(15)) << group.points_shift);
        Ad { audience, points, needed: 5 + self.below(20), last_day: self.below(100) }
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_group_is_in_a_personality_once() {
        let tables = Tables::new(500, 0);
        for personality in &tables.personalities {
            for group in &GROUPS {
                assert_eq!((personality & group.bits).count_ones(), 1, "{personality:08x}");
            }
        }
        assert_eq!(GROUPS.iter().fold(0, |bits, group| bits | group.bits), 0x3fff_ffff);
    }

    #[test]
    fn points_count_what_is_common() {
        assert_eq!(points(0, 0xf_ffff), 0);
        assert_eq!(points(0x2000_0001, 0x3_0007), 3 + 7);
        assert_eq!(points(0x3fff_ffff, 0x1_2345), 1 + 2 + 3 + 4 + 5);
    }

    #[test]
    fn advertisements_go_round() {
        let tables = Tables::new(100, 0);
        for visitor in [0, 17, 99] {
            let mut seen = BTreeSet::new();
            let mut last = 0;
            for _ in 0..2 * ADS {
                let choice = tables.choose(visitor, last).expect("a choice");
                assert_ne!(choice.ad, last, "the same one again");
                seen.insert(choice.ad);
                last = choice.ad;
            }
            assert!(seen.len() > 10 && seen.len() < ADS, "{} seen by {visitor}", seen.len());
        }
    }

    #[test]
    fn the_same_numbers_make_the_same_tables() {
        let (one, other) = (Tables::new(50, 3), Tables::new(50, 3));
        assert!((0..50).all(|visitor| one.choose(visitor, 7) == other.choose(visitor, 7)));
    }

    #[test]
    fn who_is_unknown_sees_nothing() {
        let tables = Tables::new(100, 0);
        assert_eq!(tables.choose(100, 0), None);
        assert_eq!(tables.choose(0, ADS as u32), None);
        assert_eq!(tables.choose(u32::MAX, u32::MAX), None);
        assert_eq!(Tables::new(0, 0).visitors(), 1);
    }

    #[test]
    fn what_ran_out_is_said_to_have() {
        let tables = Tables::new(100, 200);
        assert!((0..100).filter_map(|visitor| tables.choose(visitor, 5)).any(|choice| choice.expired));
    }

    #[test]
    fn a_picture_is_one_of_the_files() {
        let choice = |ad| Choice { ad, points: 0, expired: false };
        assert_eq!(choice(0).picture(), "dir00000/class0_0");
        assert_eq!(choice(359).picture(), "dir00009/class3_8");
        assert_eq!(choice(46).picture(), "dir00001/class1_1");
    }
}
