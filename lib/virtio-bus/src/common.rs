//! The common configuration structure of virtio over PCI (4.1.4.3).

/// The registers; those of queues are for the selected one. Addresses are written as two halves, which all devices
/// support.
#[layout::registers(bytes = 56)]
pub struct Registers {
    /// Device feature select: which 32 bits are shown.
    #[at(0)]
    pub device_features_select: ReadWrite<u32>,
    /// Device features.
    #[at(4)]
    pub device_features: ReadOnly<u32>,
    /// Driver feature select.
    #[at(8)]
    pub driver_features_select: ReadWrite<u32>,
    /// Driver features.
    #[at(12)]
    pub driver_features: ReadWrite<u32>,
    /// MSI-X vector of configuration changes.
    #[at(16)]
    pub configuration_vector: ReadWrite<u16>,
    /// Number of queues.
    #[at(18)]
    pub queues: ReadOnly<u16>,
    /// Device status; 0 resets it.
    #[at(20)]
    pub status: ReadWrite<u8>,
    /// Configuration generation.
    #[at(21)]
    pub generation: ReadOnly<u8>,
    /// Queue select.
    #[at(22)]
    pub queue_select: ReadWrite<u16>,
    /// Queue size: its maximum when read, the size in use when written.
    #[at(24)]
    pub queue_size: ReadWrite<u16>,
    /// MSI-X vector of the queue.
    #[at(26)]
    pub queue_vector: ReadWrite<u16>,
    /// Queue enable.
    #[at(28)]
    pub queue_enable: ReadWrite<u16>,
    /// Notification offset, in units of the multiplier.
    #[at(30)]
    pub queue_doorbell: ReadOnly<u16>,
    /// Descriptor area, lower half.
    #[at(32)]
    pub queue_descriptors_low: ReadWrite<u32>,
    /// Upper half.
    #[at(36)]
    pub queue_descriptors_high: ReadWrite<u32>,
    /// Driver area, lower half.
    #[at(40)]
    pub queue_driver_low: ReadWrite<u32>,
    /// Upper half.
    #[at(44)]
    pub queue_driver_high: ReadWrite<u32>,
    /// Device area, lower half.
    #[at(48)]
    pub queue_device_low: ReadWrite<u32>,
    /// Upper half.
    #[at(52)]
    pub queue_device_high: ReadWrite<u32>,
}
