//! Device errors, with messages for the administrator of the machine.

use core::fmt;

use sip::Status;

/// Reason why a device is not, or no longer, used. A driver that meets one at run time reports it and ends;
/// it is then restarted, and the device reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceError {
    /// Its register ranges are not those of a virtio device.
    NoVirtioDevice,
    /// It has only the legacy interface, from before virtio 1.0.
    OldInterface,
    /// It is another kind of device.
    OtherKind {
        /// Device id that the driver expects.
        wanted: u32,
        /// Device id that the device reports.
        found: u32,
    },
    /// It does not confirm a reset.
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
    /// A queue is enabled although the device has just been reset.
    QueueInUse(u16),
    /// It does not accept the interrupt vector.
    NoInterrupt,
    /// Register access failed.
    Registers(Status),
    /// DMA memory could not be allocated.
    Memory(Status),
    /// Its configuration keeps changing.
    Unsteady,
    /// It reports that it needs a reset.
    NeedsReset,
    /// It completes a request that was never made, or was completed before.
    UnknownRequest {
        /// Number of the queue.
        queue: u16,
        /// Id of the request according to the device.
        request: u16,
    },
    /// It claims to have written more than the buffer holds.
    TooMuchWritten {
        /// Size of the buffer in bytes.
        room: u32,
        /// Bytes according to the device.
        written: u32,
    },
    /// It claims to have written less than a complete answer.
    TooLittleWritten {
        /// Bytes of a complete answer.
        needed: u32,
        /// Bytes according to the device.
        written: u32,
    },
    /// Its answer or its configuration has an invalid value.
    Nonsense {
        /// Name of the field.
        what: &'static str,
        /// The value.
        value: u64,
    },
    /// A request timed out.
    NoAnswer {
        /// Time since the request, in milliseconds.
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
