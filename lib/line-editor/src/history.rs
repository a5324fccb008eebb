//! The lines entered before.

use alloc::collections::VecDeque;
use alloc::string::String;

/// Lines, oldest first; at the limit the oldest is dropped.
#[derive(Clone, Debug)]
pub struct History {
    lines: VecDeque<String>,
    capacity: usize,
}

impl History {
    /// An empty history of at most `capacity` lines.
    pub fn new(capacity: usize) -> History {
        History { lines: VecDeque::new(), capacity }
    }

    /// Adds a line, unless it is blank or the same as the last one.
    pub fn add(&mut self, line: &str) {
        if line.trim().is_empty() || self.lines.back().is_some_and(|last| last == line) || self.capacity == 0 {
            return;
        }
        if self.lines.len() == self.capacity {
            self.lines.pop_front();
        }
        self.lines.push_back(String::from(line));
    }

    /// Returns the number of lines.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The line at this index; 0 is the oldest.
    pub fn get(&self, index: usize) -> Option<&str> {
        self.lines.get(index).map(String::as_str)
    }

    /// All lines, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.lines.iter().map(String::as_str)
    }

    /// The newest line before index `end` that contains `part`.
    pub(crate) fn find_older(&self, part: &str, end: usize) -> Option<usize> {
        (0..end.min(self.lines.len())).rev().find(|&index| self.lines[index].contains(part))
    }

    /// The oldest line from index `start` on that contains `part`.
    pub(crate) fn find_newer(&self, part: &str, start: usize) -> Option<usize> {
        (start..self.lines.len()).find(|&index| self.lines[index].contains(part))
    }
}
