//! What can be wrong with a device, in words for the person who looks after the machine.

use core::fmt;

use sip::Status;

/// Why a device is not used, or not any longer. A driver that meets one while it works reports it and ends;
/// it is then started again, and the device reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceError {
    /// Its ranges of registers are not those of a virtio device.
    NoVirtioDevice,
    /// It only knows the interface of before virtio 1.0.
    OldInterface,
    /// It is another kind of device.
    OtherKind {
        /// The kind that the driver drives.
        wanted: u32,
        /// What the device says it is.
        found: u32,
    },
    /// It does not confirm that it was reset.
    NotReset,
    /// It does not accept the features that it offered.
    FeaturesRefused,
    /// It lacks a feature that the driver needs.
    FeatureMissing(&'static str),
    /// A queue that the driver needs is missing or too short.
    QueueTooShort {
        /// Number of the queue.
        queue: u16,
        /// Entries needed.
        needed: u32,
        /// Entries the device has.
        found: u32,
    },
    /// A queue is in use although the device has just been reset.
    QueueInUse(u16),
    /// It does not take the interrupt that it was given.
    NoInterrupt,
    /// Its registers cannot be reached.
    Registers(Status),
    /// There is no memory for it to reach.
    Memory(Status),
    /// Its configuration changes without end.
    Unsteady,
    /// It says that it cannot go on.
    NeedsReset,
    /// It answers a request that was never made, or was answered before.
    UnknownRequest {
        /// Number of the queue.
        queue: u16,
        /// What it calls the request.
        request: u16,
    },
    /// It says that it wrote more than it was given room for.
    TooMuchWritten {
        /// Bytes of room.
        room: u32,
        /// Bytes it says.
        written: u32,
    },
    /// It says that it wrote less than a whole answer has.
    TooLittleWritten {
        /// Bytes of a whole answer.
        needed: u32,
        /// Bytes it says.
        written: u32,
    },
    /// Its answer or its configuration has a value that means nothing.
    Nonsense {
        /// Which value.
        what: &'static str,
        /// The value.
        value: u64,
    },
    /// It has not answered a request in time.
    NoAnswer {
        /// How long was waited.
        waited_ms: u64,
    },
}

impl fmt::Display for DeviceError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            DeviceError::NoVirtioDevice => formatter.write_str("the registers are not those of a virtio device"),
            DeviceError::OldInterface => formatter.write_str(
                "the device only knows the interface of before virtio 1.0; make the machine offer a modern one",
            ),
            DeviceError::OtherKind { wanted, found } => {
                write!(formatter, "the device is of virtio kind {found}, and this driver drives kind {wanted}")
            }
            DeviceError::NotReset => formatter.write_str("the device does not confirm that it was reset"),
            DeviceError::FeaturesRefused => formatter.write_str("the device refuses features that it offered itself"),
            DeviceError::FeatureMissing(feature) => write!(formatter, "the device lacks the feature {feature}"),
            DeviceError::QueueTooShort { queue, needed, found } => {
                write!(formatter, "queue {queue} of the device has {found} entries, and {needed} are needed")
            }
            DeviceError::QueueInUse(queue) => write!(formatter, "queue {queue} of the device is in use after a reset"),
            DeviceError::NoInterrupt => formatter.write_str("the device does not take the interrupt that it was given"),
            DeviceError::Registers(status) => write!(formatter, "the device's registers fail: {}", status.text()),
            DeviceError::Memory(status) => write!(formatter, "there is no memory for the device: {}", status.text()),
            DeviceError::Unsteady => formatter.write_str("the device's configuration changes without end"),
            DeviceError::NeedsReset => formatter.write_str("the device says that it cannot go on without a reset"),
            DeviceError::UnknownRequest { queue, request } => {
                write!(formatter, "the device answers request {request} of queue {queue}, which is not under way")
            }
            DeviceError::TooMuchWritten { room, written } => {
                write!(formatter, "the device says that it wrote {written} bytes where {room} have room")
            }
            DeviceError::TooLittleWritten { needed, written } => {
                write!(formatter, "the device says that it wrote {written} bytes of an answer of {needed}")
            }
            DeviceError::Nonsense { what, value } => write!(formatter, "the device gives {value} as {what}"),
            DeviceError::NoAnswer { waited_ms } => {
                write!(formatter, "the device has not answered a request for {waited_ms} ms")
            }
        }
    }
}
