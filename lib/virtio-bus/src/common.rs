//! The common configuration of a virtio device on PCI (4.1.4.3).

/// The registers, one queue's at a time. Addresses are written as two halves, as every device takes them.
#[layout::registers(bytes = 56)]
pub struct Registers {
    /// Which 32 of the offered features are shown.
    #[at(0)]
    pub device_features_select: ReadWrite<u32>,
    /// Features that the device offers.
    #[at(4)]
    pub device_features: ReadOnly<u32>,
    /// Which 32 of the accepted features are shown.
    #[at(8)]
    pub driver_features_select: ReadWrite<u32>,
    /// Features that the driver accepts.
    #[at(12)]
    pub driver_features: ReadWrite<u32>,
    /// The interrupt for changes of the configuration.
    #[at(16)]
    pub configuration_vector: ReadWrite<u16>,
    /// How many queues there are.
    #[at(18)]
    pub queues: ReadOnly<u16>,
    /// The device's status; 0 resets it.
    #[at(20)]
    pub status: ReadWrite<u8>,
    /// Changes with the configuration.
    #[at(21)]
    pub generation: ReadOnly<u8>,
    /// Which queue is shown.
    #[at(22)]
    pub queue_select: ReadWrite<u16>,
    /// Its most descriptors when read; those that it has when written.
    #[at(24)]
    pub queue_size: ReadWrite<u16>,
    /// Its interrupt.
    #[at(26)]
    pub queue_vector: ReadWrite<u16>,
    /// 1: it is used.
    #[at(28)]
    pub queue_enable: ReadWrite<u16>,
    /// Its doorbell, in distances of doorbells.
    #[at(30)]
    pub queue_doorbell: ReadOnly<u16>,
    /// Address of its descriptors.
    #[at(32)]
    pub queue_descriptors_low: ReadWrite<u32>,
    /// Their upper half.
    #[at(36)]
    pub queue_descriptors_high: ReadWrite<u32>,
    /// Address of what the driver writes.
    #[at(40)]
    pub queue_driver_low: ReadWrite<u32>,
    /// Its upper half.
    #[at(44)]
    pub queue_driver_high: ReadWrite<u32>,
    /// Address of what the device writes.
    #[at(48)]
    pub queue_device_low: ReadWrite<u32>,
    /// Its upper half.
    #[at(52)]
    pub queue_device_high: ReadWrite<u32>,
}
