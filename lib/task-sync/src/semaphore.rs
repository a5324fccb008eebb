//! A bound on the number of concurrent operations.

use alloc::rc::Rc;

use crate::permits::Permits;

/// A number of permits. Clones share them.
#[derive(Clone)]
pub struct Semaphore(Rc<Permits>);

impl Semaphore {
    /// Creates a semaphore with this many free permits.
    pub fn new(permits: usize) -> Semaphore {
        Semaphore(Rc::new(Permits::new(permits)))
    }

    /// Acquires this many permits atomically. More than the total never resolve.
    pub async fn acquire(&self, count: usize) -> Permit {
        self.0.take(count).await;
        Permit { permits: Rc::clone(&self.0), count }
    }
}

/// Permits of a [`Semaphore`], until it is dropped.
#[must_use = "permits are released when this is dropped"]
pub struct Permit {
    permits: Rc<Permits>,
    count: usize,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.permits.give(self.count);
    }
}
