//! A slot for a virtio device in memory (4.2.2).

use core::fmt;

use layout::Access;

/// "virt", little endian.
pub const MAGIC: u32 = 0x7472_6976;

/// The registers of a slot, one queue's at a time. Those of a kind of device begin behind them.
#[layout::registers(bytes = 0x100)]
pub struct Registers {
    /// [`MAGIC`].
    #[at(0x00)]
    pub magic: ReadOnly<u32>,
    /// How the registers lie: 1 (old) or 2.
    #[at(0x04)]
    pub version: ReadOnly<u32>,
    /// The kind of device; 0 for none.
    #[at(0x08)]
    pub device_id: ReadOnly<u32>,
    /// Who made it.
    #[at(0x0c)]
    pub vendor_id: ReadOnly<u32>,
    /// Features that the device offers.
    #[at(0x10)]
    pub device_features: ReadOnly<u32>,
    /// Which 32 of them are shown.
    #[at(0x14)]
    pub device_features_select: WriteOnly<u32>,
    /// Features that the driver accepts.
    #[at(0x20)]
    pub driver_features: WriteOnly<u32>,
    /// Which 32 of them are written.
    #[at(0x24)]
    pub driver_features_select: WriteOnly<u32>,
    /// Which queue is shown.
    #[at(0x30)]
    pub queue_select: WriteOnly<u32>,
    /// Its most descriptors.
    #[at(0x34)]
    pub queue_size_most: ReadOnly<u32>,
    /// Its descriptors.
    #[at(0x38)]
    pub queue_size: WriteOnly<u32>,
    /// 1: it is used.
    #[at(0x44)]
    pub queue_ready: ReadWrite<u32>,
    /// Tells the device of a queue with new requests.
    #[at(0x50)]
    pub queue_notify: WriteOnly<u32>,
    /// Why the device interrupts.
    #[at(0x60)]
    pub interrupt_status: ReadOnly<u32>,
    /// Ends the interrupt for these reasons.
    #[at(0x64)]
    pub interrupt_acknowledge: WriteOnly<u32>,
    /// The device's status; 0 resets it.
    #[at(0x70)]
    pub status: ReadWrite<u32>,
    /// Address of the queue's descriptors.
    #[at(0x80)]
    pub queue_descriptors_low: WriteOnly<u32>,
    /// Their upper half.
    #[at(0x84)]
    pub queue_descriptors_high: WriteOnly<u32>,
    /// Address of what the driver writes.
    #[at(0x90)]
    pub queue_driver_low: WriteOnly<u32>,
    /// Its upper half.
    #[at(0x94)]
    pub queue_driver_high: WriteOnly<u32>,
    /// Address of what the device writes.
    #[at(0xa0)]
    pub queue_device_low: WriteOnly<u32>,
    /// Its upper half.
    #[at(0xa4)]
    pub queue_device_high: WriteOnly<u32>,
    /// Changes with the configuration.
    #[at(0xfc)]
    pub generation: ReadOnly<u32>,
}

/// A device in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// What kind it is.
    pub device_id: u32,
    /// Who made it.
    pub vendor_id: u32,
    /// How its registers lie: 1 (old) or 2.
    pub version: u32,
}

/// What a slot holds cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// No slot is there.
    NoSlot,
    /// Its registers lie in a way that no driver knows.
    Version(u32),
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoSlot => formatter.write_str("no virtio slot answers there"),
            Error::Version(version) => write!(formatter, "its version is {version}; 1 and 2 are known"),
        }
    }
}

/// Looks into a slot; `None` if it is empty.
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
