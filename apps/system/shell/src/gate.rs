//! Console access of jobs: a job without access blocks when it uses the console.
//!
//! Another SIP's threads cannot be halted, so Ctrl-Z takes the console from a job instead. A job's console I/O passes
//! through threads of the shell, which block here.

use alloc::sync::Arc;

use sip::Status;
use sip::sync::{Event, Mutex};

/// A job's access to the console.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read and write: the foreground job.
    Full,
    /// Write only: a background job.
    Output,
    /// None: a stopped job.
    Nothing,
    /// The job has ended. Its remaining output is shown; no input is read for it.
    Ended,
}

/// The console access of one job.
pub struct Gate {
    access: Mutex<Access>,
    /// Set while the job may write.
    writes: Event,
    /// Set while the job may read, or once it never will again.
    reads: Event,
}

impl Gate {
    /// Creates a gate with this access.
    pub fn new(access: Access) -> Result<Arc<Gate>, Status> {
        let gate = Gate { access: Mutex::new(access), writes: Event::manual()?, reads: Event::manual()? };
        gate.set(access);
        Ok(Arc::new(gate))
    }

    /// Changes the job's access.
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

    /// The job's access.
    pub fn access(&self) -> Access {
        *self.access.lock()
    }

    /// Waits until the job may write.
    pub fn wait_to_write(&self) {
        self.writes.wait();
    }

    /// Waits until the job may read; false if it never will again.
    pub fn wait_to_read(&self) -> bool {
        loop {
            self.reads.wait();
            match self.access() {
                Access::Full => return true,
                Access::Ended => return false,
                // The access was revoked in the meantime.
                Access::Output | Access::Nothing => {}
            }
        }
    }
}
