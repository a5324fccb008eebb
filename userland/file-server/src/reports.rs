//! Reports of corruption and of failing disks.

use alloc::format;
use alloc::string::String;
use core::cell::{Cell, RefCell};
use core::fmt::Display;

use stdio::report;

/// Maximum reports per volume; after these, clients still get their error codes.
const MAX_REPORTS: u32 = 16;

/// Logs errors: a limited number, and none twice in a row.
#[derive(Default)]
pub struct Reports {
    count: Cell<u32>,
    last: RefCell<String>,
}

impl Reports {
    /// Prints an error.
    pub fn error(&self, error: &dyn Display) {
        if let Some(text) = self.next(error) {
            report::error(format_args!("{text}"));
        }
    }

    fn next(&self, error: &dyn Display) -> Option<String> {
        if self.count.get() >= MAX_REPORTS {
            return None;
        }
        let text = format!("{error}");
        if *self.last.borrow() == text {
            return None;
        }
        self.count.set(self.count.get() + 1);
        self.last.replace(text.clone());
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_not_reported_twice_in_a_row() {
        let reports = Reports::default();
        let reported = [1, 1, 2, 1].map(|error| reports.next(&error).is_some());
        assert_eq!(reported, [true, false, true, true]);
    }

    #[test]
    fn few_errors_are_reported() {
        let reports = Reports::default();
        assert_eq!((0..100).filter_map(|error| reports.next(&error)).count(), 16);
    }
}
