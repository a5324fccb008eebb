//! MSI-X (6.8.2).

use crate::capabilities::{self, Capability};
use crate::{Address, Bar, ConfigurationSpace, Span};

const ENABLE: u32 = 1 << 31;
const MASK_ALL: u32 = 1 << 30;
const ENTRY_BYTES: u64 = 16;
const ENTRY_MASKED: u32 = 1;

/// The MSI-X table of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    capability: Capability,
    /// Number of entries.
    pub entries: u16,
    /// Address of the table.
    pub span: Span,
}

/// A message: address and data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Address.
    pub address: u64,
    /// Data.
    pub data: u32,
}

/// Access to memory-mapped registers, by address.
pub trait Memory {
    /// Writes a 32-bit register; false if that is impossible.
    #[must_use]
    fn write32(&mut self, address: u64, value: u32) -> bool;
}

impl Table {
    /// Finds the table of a function with these BARs; `None` if it has none, or one outside them.
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

    /// Writes these messages to the first entries, masks the others and enables MSI-X. Memory decoding must be enabled.
    /// False if the table cannot be written.
    #[must_use]
    pub fn set(
        &self,
        space: &mut impl ConfigurationSpace,
        memory: &mut impl Memory,
        address: Address,
        messages: &[Message],
    ) -> bool {
        // The lower half, with the id, is read-only.
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

    /// Disables MSI-X.
    pub fn disable(&self, space: &mut impl ConfigurationSpace, address: Address) {
        space.write(address, self.capability.offset, 0);
    }
}
