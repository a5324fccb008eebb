//! The register layout of virtio over MMIO (4.2.2).

use core::fmt;

use layout::Access;

/// "virt", little-endian.
pub const MAGIC: u32 = 0x7472_6976;

/// The registers; those of queues are for the selected one. Device-specific configuration follows.
#[layout::registers(bytes = 0x100)]
pub struct Registers {
    /// [`MAGIC`].
    #[at(0x00)]
    pub magic: ReadOnly<u32>,
    /// Version: 1 (legacy) or 2.
    #[at(0x04)]
    pub version: ReadOnly<u32>,
    /// Device type; 0: none.
    #[at(0x08)]
    pub device_id: ReadOnly<u32>,
    /// Vendor id.
    #[at(0x0c)]
    pub vendor_id: ReadOnly<u32>,
    /// Device features.
    #[at(0x10)]
    pub device_features: ReadOnly<u32>,
    /// Device feature select: which 32 bits are shown.
    #[at(0x14)]
    pub device_features_select: WriteOnly<u32>,
    /// Driver features.
    #[at(0x20)]
    pub driver_features: WriteOnly<u32>,
    /// Driver feature select.
    #[at(0x24)]
    pub driver_features_select: WriteOnly<u32>,
    /// Queue select.
    #[at(0x30)]
    pub queue_select: WriteOnly<u32>,
    /// Maximum queue size.
    #[at(0x34)]
    pub queue_size_most: ReadOnly<u32>,
    /// Queue size.
    #[at(0x38)]
    pub queue_size: WriteOnly<u32>,
    /// Queue ready.
    #[at(0x44)]
    pub queue_ready: ReadWrite<u32>,
    /// Queue notification.
    #[at(0x50)]
    pub queue_notify: WriteOnly<u32>,
    /// Interrupt status.
    #[at(0x60)]
    pub interrupt_status: ReadOnly<u32>,
    /// Interrupt acknowledgment.
    #[at(0x64)]
    pub interrupt_acknowledge: WriteOnly<u32>,
    /// Device status; 0 resets it.
    #[at(0x70)]
    pub status: ReadWrite<u32>,
    /// Descriptor area, lower half.
    #[at(0x80)]
    pub queue_descriptors_low: WriteOnly<u32>,
    /// Upper half.
    #[at(0x84)]
    pub queue_descriptors_high: WriteOnly<u32>,
    /// Driver area, lower half.
    #[at(0x90)]
    pub queue_driver_low: WriteOnly<u32>,
    /// Upper half.
    #[at(0x94)]
    pub queue_driver_high: WriteOnly<u32>,
    /// Device area, lower half.
    #[at(0xa0)]
    pub queue_device_low: WriteOnly<u32>,
    /// Upper half.
    #[at(0xa4)]
    pub queue_device_high: WriteOnly<u32>,
    /// Configuration generation.
    #[at(0xfc)]
    pub generation: ReadOnly<u32>,
}

/// A device in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// Device type.
    pub device_id: u32,
    /// Vendor id.
    pub vendor_id: u32,
    /// Version: 1 (legacy) or 2.
    pub version: u32,
}

/// Why a slot is unusable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Not a virtio slot.
    NoSlot,
    /// Unsupported version.
    Version(u32),
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoSlot => formatter.write_str("there is no virtio slot"),
            Error::Version(version) => write!(formatter, "unsupported version {version}; 1 and 2 are supported"),
        }
    }
}

/// Probes a slot; `None` if it is empty.
pub fn probe<A: Access<u32>>(registers: &Registers<A>) -> Result<Option<Device>, Error> {
    if registers.magic().read() != MAGIC {
        return Err(Error::NoSlot);
    }
    let version = registers.version().read();
    let device_id = registers.device_id().read();
    match (device_id, version) {
        (0, _) => Ok(None),
        (_, 1 | 2) => Ok(Some(Device { device_id, vendor_id: registers.vendor_id().read(), version })),
        _ => Err(Error::Version(version)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Words([u32; 4]);

    impl Access<u32> for Words {
        fn read(&self, offset: u64) -> u32 {
            self.0[(offset / 4) as usize]
        }

        fn write(&self, _: u64, _: u32) {
            panic!("a slot is only looked at");
        }
    }

    fn probe(words: [u32; 4]) -> Result<Option<Device>, Error> {
        super::probe(&Registers::over(Words(words)))
    }

    #[test]
    fn slots_hold_a_device_or_nothing_or_are_none() {
        let device = Device { device_id: 2, vendor_id: 0x554d_4551, version: 2 };
        assert_eq!(probe([MAGIC, 2, 2, 0x554d_4551]), Ok(Some(device)));
        assert_eq!(probe([MAGIC, 1, 0, 0]), Ok(None));
        assert_eq!(probe([MAGIC, 77, 0, 0]), Ok(None));
        assert_eq!(probe([MAGIC, 3, 2, 0]), Err(Error::Version(3)));
        assert_eq!(probe([u32::MAX; 4]), Err(Error::NoSlot));
        assert_eq!(probe([0; 4]), Err(Error::NoSlot));
    }

    #[test]
    fn no_answer_of_a_slot_is_too_strange() {
        let mut state = 1u32;
        for _ in 0..100_000 {
            let mut words = [0; 4];
            for word in &mut words {
                state ^= state << 13;
                state ^= state >> 17;
                state ^= state << 5;
                *word = state;
            }
            words[0] = if state.is_multiple_of(3) { MAGIC } else { words[0] };
            words[1] %= 4;
            if let Ok(Some(found)) = probe(words) {
                assert!(found.device_id != 0 && (1..=2).contains(&found.version));
            }
        }
    }
}
