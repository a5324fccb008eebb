//! Quotas: what a program may use up, and which of them no program can have.

use serde::{Deserialize, Serialize};

/// Resource limits of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quota {
    /// Paged memory, in KiB.
    pub memory_kib: u32,
    /// Exchange-heap blocks, in KiB.
    pub block_kib: u32,
    /// Threads.
    pub threads: u32,
    /// Handles.
    pub handles: u32,
    /// Channels created by it.
    pub channels: u32,
    /// Simultaneous children.
    pub children: u32,
    /// The stack of each thread, in KiB. What one has beyond the usual size counts as paged memory.
    pub stack_kib: u32,
}

impl Default for Quota {
    fn default() -> Quota {
        Quota {
            memory_kib: 1024,
            block_kib: 1024,
            threads: 8,
            handles: 128,
            channels: 64,
            children: 0,
            stack_kib: Self::USUAL_STACK_KIB,
        }
    }
}

impl Quota {
    /// A stack whose program asks for no other, in KiB.
    pub const USUAL_STACK_KIB: u32 = 256;

    /// Maximum quota of each kind in a manifest.
    pub const MAX: Quota = Quota {
        memory_kib: 4 << 20,
        block_kib: 4 << 20,
        threads: 65_536,
        handles: 1 << 20,
        channels: 1 << 20,
        children: 65_536,
        stack_kib: 8192,
    };

    /// Returns which quota is out of range, if any. A program needs at least a page of memory and a thread.
    pub fn check(&self) -> Result<(), &'static str> {
        self.problems().next().map_or(Ok(()), |(_, problem)| Err(problem))
    }

    /// Invalid values: key in `[quota]`, and the problem.
    pub fn problems(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let max = Quota::MAX;
        let rows = [
            ("memory_kib", self.memory_kib, 4, max.memory_kib, "the quota memory_kib is not between 4 and 4194304"),
            ("block_kib", self.block_kib, 0, max.block_kib, "the quota block_kib is not between 0 and 4194304"),
            ("threads", self.threads, 1, max.threads, "the quota threads is not between 1 and 65536"),
            ("handles", self.handles, 0, max.handles, "the quota handles is not between 0 and 1048576"),
            ("channels", self.channels, 0, max.channels, "the quota channels is not between 0 and 1048576"),
            ("children", self.children, 0, max.children, "the quota children is not between 0 and 65536"),
        ];
        let wrong = rows.into_iter().filter(|(_, value, least, most, _)| value < least || value > most);
        wrong.map(|(key, .., problem)| (key, problem)).chain(self.stack_problem().map(|problem| ("stack_kib", problem)))
    }

    /// What is wrong with the stack, if anything is.
    fn stack_problem(&self) -> Option<&'static str> {
        let usual = Self::USUAL_STACK_KIB;
        if !self.stack_kib.is_power_of_two() || !(usual..=Self::MAX.stack_kib).contains(&self.stack_kib) {
            return Some("the quota stack_kib is none of 256, 512, 1024, 2048, 4096 and 8192");
        }
        let is_too_large = u64::from(self.stack_kib - usual) + 4 > u64::from(self.memory_kib) && self.stack_kib > usual;
        is_too_large.then_some(
            "the quota memory_kib is too small for a stack of stack_kib, which counts as memory beyond 256 KiB",
        )
    }
}
