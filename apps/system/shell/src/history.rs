//! Command history and its recall: `!!`, `!5`, `!-2`, `!ec`.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;

/// Maximum lines kept.
const LINES_KEPT: usize = 1_000;

/// Entered lines, oldest first.
#[derive(Default)]
pub struct History {
    lines: VecDeque<String>,
    /// Number of dropped older lines.
    dropped: usize,
}

impl History {
    /// Adds a line, unless it is empty or the same as the last.
    pub fn add(&mut self, line: &str) {
        let line = line.trim_end();
        if line.trim_start().is_empty() || self.lines.back().is_some_and(|last| last == line) {
            return;
        }
        if self.lines.len() == LINES_KEPT {
            self.lines.pop_front();
            self.dropped += 1;
        }
        self.lines.push_back(String::from(line));
    }

    /// Returns the last `count` lines with their numbers.
    pub fn last(&self, count: usize) -> impl Iterator<Item = (usize, &str)> {
        let skipped = self.lines.len().saturating_sub(count);
        let first = self.dropped + 1;
        self.lines.iter().enumerate().skip(skipped).map(move |(index, line)| (first + index, line.as_str()))
    }

    /// Returns the history line selected by a line that begins with `!`, followed by the text after its first blank;
    /// `None` without a match. An error is a sentence.
    pub fn recall(&self, line: &str) -> Option<Result<String, String>> {
        let asked = line.trim().strip_prefix('!')?;
        let (which, rest) = asked.find(char::is_whitespace).map_or((asked, ""), |blank| asked.split_at(blank));
        if which.is_empty() || which.starts_with('=') {
            return None;
        }
        let found = match (which, which.parse::<i64>()) {
            ("!", _) => self.lines.back(),
            (_, Ok(number)) => self.numbered(number),
            (prefix, Err(_)) => self.lines.iter().rev().find(|line| line.starts_with(prefix)),
        };
        Some(match found {
            Some(line) => Ok(format!("{line}{rest}")),
            None => Err(format!("no earlier line matches `!{which}`; `history` lists them")),
        })
    }

    /// By number; a negative number counts back from the last line.
    fn numbered(&self, number: i64) -> Option<&String> {
        let distance = usize::try_from(number.unsigned_abs()).ok()?;
        let index = if number < 0 {
            self.lines.len().checked_sub(distance)?
        } else {
            distance.checked_sub(self.dropped + 1)?
        };
        self.lines.get(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn filled() -> History {
        let mut history = History::default();
        for line in ["echo one", "ls -l", "ls -l", "  ", "echo two  "] {
            history.add(line);
        }
        history
    }

    #[test]
    fn lines_are_kept_once_and_numbered() {
        let history = filled();
        let all: Vec<(usize, &str)> = history.last(10).collect();
        assert_eq!(all, [(1, "echo one"), (2, "ls -l"), (3, "echo two")]);
        assert_eq!(history.last(1).collect::<Vec<_>>(), [(3, "echo two")]);
    }

    #[test]
    fn lines_are_recalled_by_number_and_by_their_beginning() {
        let history = filled();
        for (asked, expected) in [
            ("!!", "echo two"),
            ("!1", "echo one"),
            (" !-2", "ls -l"),
            ("!ls", "ls -l"),
            ("!ec", "echo two"),
            ("!! | wc", "echo two | wc"),
            ("!2 /fs", "ls -l /fs"),
        ] {
            assert_eq!(history.recall(asked), Some(Ok(String::from(expected))), "{asked}");
        }
        for asked in ["!9", "!0", "!-4", "!nothing", "!99999999999999999999"] {
            assert!(matches!(history.recall(asked), Some(Err(_))), "{asked}");
        }
        for asked in ["", "echo !!", "!", "! ls", "!= 3"] {
            assert_eq!(history.recall(asked), None, "{asked}");
        }
        assert!(matches!(History::default().recall("!!"), Some(Err(_))));
    }

    #[test]
    fn the_oldest_are_forgotten_and_numbers_stay() {
        let mut history = History::default();
        (0..LINES_KEPT + 5).for_each(|number| history.add(&format!("echo {number}")));
        assert_eq!(history.last(usize::MAX).next(), Some((6, "echo 5")));
        assert_eq!(history.recall("!6"), Some(Ok(String::from("echo 5"))));
        assert!(matches!(history.recall("!5"), Some(Err(_))));
    }
}
