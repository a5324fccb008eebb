//! Lists of parts: `2`, `1,3`, `2-4`, `3-`, `-2`.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Selected parts, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranges {
    /// First and last of each range, sorted and disjoint.
    ranges: Vec<(usize, usize)>,
}

impl Ranges {
    /// Parses a list. An error is a sentence.
    pub fn parse(text: &str) -> Result<Ranges, String> {
        let problem = || format!("`{text}` is not a list; write it like 2, 1,3, 2-4, 3- or -2, from 1");
        let number = |word: &str| word.parse::<usize>().ok().filter(|number| *number > 0).ok_or_else(problem);
        let mut ranges = Vec::new();
        for part in text.split(',') {
            let range = match part.split_once('-') {
                None => (number(part)?, number(part)?),
                Some(("", "")) => return Err(problem()),
                Some(("", last)) => (1, number(last)?),
                Some((first, "")) => (number(first)?, usize::MAX),
                Some((first, last)) => (number(first)?, number(last)?),
            };
            if range.0 > range.1 {
                return Err(problem());
            }
            ranges.push(range);
        }
        ranges.sort_unstable();
        let mut apart: Vec<(usize, usize)> = Vec::new();
        for (first, last) in ranges {
            match apart.last_mut() {
                Some(before) if first <= before.1 => before.1 = before.1.max(last),
                _ => apart.push((first, last)),
            }
        }
        Ok(Ranges { ranges: apart })
    }

    /// Returns the selected parts among `count`, as ranges counted from 0.
    pub fn within(&self, count: usize) -> impl Iterator<Item = core::ops::Range<usize>> {
        let inside = self.ranges.iter().take_while(move |(first, _)| *first <= count);
        inside.map(move |(first, last)| first - 1..(*last).min(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(text: &str, count: usize) -> Vec<(usize, usize)> {
        let ranges = Ranges::parse(text).unwrap_or_else(|error| panic!("{error}"));
        ranges.within(count).map(|range| (range.start, range.end)).collect()
    }

    #[test]
    fn lists_are_read_in_any_order() {
        assert_eq!(within("2", 5), [(1, 2)]);
        assert_eq!(within("4,1-2,2-3", 5), [(0, 3), (3, 4)]);
        assert_eq!(within("3-", 5), [(2, 5)]);
        assert_eq!(within("-2,9", 5), [(0, 2)]);
    }

    #[test]
    fn what_is_no_list_says_so() {
        for text in ["", "0", "a", "3-2", "-", "1,,2", "1-2-3"] {
            let error = Ranges::parse(text).expect_err("it is no list");
            assert!(error.contains("is not a list"), "{error}");
        }
    }
}
