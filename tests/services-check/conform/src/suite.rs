//! Counts requests and their results.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Debug;

use client::access::AccessError;
use client::namespace::Namespace;

/// The folder under test, and the results so far.
pub struct Suite {
    /// The folder.
    pub folder: Namespace,
    checks: usize,
    failures: Vec<String>,
}

/// The result of a request that returns no value.
pub type Done = Result<(), AccessError>;

impl Suite {
    /// Creates a suite without results.
    pub fn new(folder: Namespace) -> Suite {
        Suite { folder, checks: 0, failures: Vec::new() }
    }

    /// Compares a reply with the one required by the contract.
    pub fn expect<T: Debug + PartialEq>(&mut self, what: &str, answer: T, wanted: T) {
        self.checks += 1;
        if answer != wanted {
            self.failures.push(format!("{what}: {answer:?} instead of {wanted:?}"));
        }
    }

    /// Number of replies checked.
    pub fn checks(&self) -> usize {
        self.checks
    }

    /// Number of correct ones.
    pub fn right(&self) -> usize {
        self.checks - self.failures.len()
    }

    /// The failures, with the expected replies.
    pub fn failures(&self) -> &[String] {
        &self.failures
    }
}
