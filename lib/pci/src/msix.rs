//! Interrupts by messages (6.8.2).

use crate::capabilities::{self, Capability};
use crate::{Address, Bar, ConfigurationSpace, Span};

const ENABLE: u32 = 1 << 31;
const MASK_ALL: u32 = 1 << 30;
const ENTRY_BYTES: u64 = 16;
const ENTRY_MASKED: u32 = 1;

/// The table of messages of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    capability: Capability,
    /// How many messages it holds.
    pub entries: u16,
    /// Where it lies.
    pub span: Span,
}

/// What is written where for an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Where to.
    pub address: u64,
    /// What.
    pub data: u32,
}

/// Registers in memory, by their address.
pub trait Memory {
    /// Writes a register of 32 bits. False if that is impossible.
    #[must_use]
    fn write32(&mut self, address: u64, value: u32) -> bool;
}

impl Table {
    /// The table of a function with these address registers; `None` if it has none, or one that lies outside of
    /// them.
    pub fn find(space: &mut impl ConfigurationSpace, address: Address, bars: &[Bar]) -> Option<Table> {
        let found = capabilities::list(space, address);
        let capability = *found.iter().find(|capability| capability.id == capabilities::MSIX)?;
        let entries = (capability.head >> 16 & 0x7ff) as u16 + 1;
        let place = capabilities::read(space, address, &capability, 4);
        let bar = bars.iter().find(|bar| u32::from(bar.index) == place & 7 && bar.is_memory())?;
        let base = bar.base.checked_add(u64::from(place & !7))?;
        let span = Span { base, bytes: u64::from(entries) * ENTRY_BYTES };
        bar.span().contains(span).then_some(Table { capability, entries, span })
    }

    /// Writes these messages into the first entries, masks the others, and lets the function interrupt by
    /// messages. Its registers must answer. False if they cannot be reached.
    #[must_use]
    pub fn set(
        &self,
        space: &mut impl ConfigurationSpace,
        memory: &mut impl Memory,
        address: Address,
        messages: &[Message],
    ) -> bool {
        // The lower half, with the id, cannot be written.
        space.write(address, self.capability.offset, ENABLE | MASK_ALL);
        let mut reached = true;
        for entry in 0..self.entries {
            let at = self.span.base + u64::from(entry) * ENTRY_BYTES;
            let message = messages.get(usize::from(entry));
            let words = match message {
                Some(message) => [message.address as u32, (message.address >> 32) as u32, message.data, 0],
                None => [0, 0, 0, ENTRY_MASKED],
            };
            for (offset, word) in (0..).step_by(4).zip(words) {
                reached &= memory.write32(at + offset, word);
            }
        }
        space.write(address, self.capability.offset, ENABLE);
        reached
    }

    /// Keeps the function from interrupting.
    pub fn disable(&self, space: &mut impl ConfigurationSpace, address: Address) {
        space.write(address, self.capability.offset, 0);
    }
}
