//! Leak detection after a hostile program's end.

use alloc::format;
use alloc::string::String;

use sip::{Deadline, diagnostics, thread};

use crate::{Outcome, check};

/// Timeout for descendants to end and be reaped.
const LIMIT_MS: u64 = 60_000;

/// Resources in use by the system.
pub(crate) struct Count {
    objects: resource_counts::Count,
    unowned_pages: u64,
}

impl Count {
    /// Takes a count once nothing changes any more.
    pub(crate) fn settled() -> Result<Count, String> {
        Ok(Count { objects: resource_counts::Count::settled()?, unowned_pages: unowned_pages()? })
    }

    /// Waits until all counters are back at this count.
    pub(crate) fn wait_until_back(&self) -> Outcome {
        let deadline = Deadline::after_ms(LIMIT_MS);
        loop {
            match self.objects.wait_until_back() {
                Ok(()) => break,
                Err(why) if deadline.has_passed() => return Err(why),
                Err(_) => thread::yield_now(),
            }
        }
        let now = unowned_pages()?;
        check!(now <= self.unowned_pages, "pages that no process owns: {} -> {now}", self.unowned_pages);
        Ok(())
    }
}

/// Pages in use beyond those of live processes: the heaps of services never shrink.
fn unowned_pages() -> Result<u64, String> {
    let unread = |status: sip::Status| format!("the diagnostics: {}", status.text());
    let owned: u64 = diagnostics::processes().map_err(unread)?.iter().map(|process| process.memory_bytes / 4096).sum();
    let counters = diagnostics::counters().map_err(unread)?;
    let pages = counters.iter().find(|record| diagnostics::name(&record.name) == "pages");
    // A process may have grown between the two readings.
    pages.map(|record| record.value.saturating_sub(owned)).ok_or_else(|| String::from("there is no counter `pages`"))
}
