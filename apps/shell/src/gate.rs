//! Which jobs may use the console: one that may not waits where it would.
//!
//! There is no way to halt another SIP's threads, so Ctrl-Z takes the console from a job instead. What a job reads and
//! writes there passes through threads of the shell, and those wait here.

use alloc::sync::Arc;

use sip::Status;
use sip::sync::{Event, Mutex};

/// What a job may do with the console.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read and write: it is the foreground job.
    Full,
    /// Write: it runs in the background.
    Output,
    /// Neither: it was stopped.
    Nothing,
    /// It has ended. What it wrote before is shown; nothing is read for it.
    Ended,
}

/// The console as one job sees it.
pub struct Gate {
    access: Mutex<Access>,
    /// Set while the job may write.
    writes: Event,
    /// Set while the job may read, or will never again.
    reads: Event,
}

impl Gate {
    /// A gate for a job that begins with this access.
    pub fn new(access: Access) -> Result<Arc<Gate>, Status> {
        let gate = Gate { access: Mutex::new(access), writes: Event::manual()?, reads: Event::manual()? };
        gate.set(access);
        Ok(Arc::new(gate))
    }

    /// Changes what the job may do.
    pub fn set(&self, access: Access) {
        let mut current = self.access.lock();
        *current = access;
        let (writes, reads) = match access {
            Access::Full | Access::Ended => (true, true),
            Access::Output => (true, false),
            Access::Nothing => (false, false),
        };
        for (event, is_set) in [(&self.writes, writes), (&self.reads, reads)] {
            if is_set { event.set() } else { event.reset() }
        }
    }

    /// What the job may do.
    pub fn access(&self) -> Access {
        *self.access.lock()
    }

    /// Waits until the job may write.
    pub fn wait_to_write(&self) {
        self.writes.wait();
    }

    /// Waits until the job may read; false if it will never again.
    pub fn wait_to_read(&self) -> bool {
        loop {
            self.reads.wait();
            match self.access() {
                Access::Full => return true,
                Access::Ended => return false,
                // It was taken away again in the meantime.
                Access::Output | Access::Nothing => {}
            }
        }
    }
}
