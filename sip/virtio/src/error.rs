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
            DeviceError::NoVirtioDevice => formatter.write_str("the register ranges are not those of a virtio device"),
            DeviceError::OldInterface => {
                formatter.write_str("the device has only the legacy interface; configure the machine for virtio 1.0")
            }
            DeviceError::OtherKind { wanted, found } => {
                write!(formatter, "the device has virtio id {found}, and this driver is for {wanted}")
            }
            DeviceError::NotReset => formatter.write_str("the device does not confirm its reset"),
            DeviceError::FeaturesRefused => formatter.write_str("the device rejects features that it offered"),
            DeviceError::FeatureMissing(feature) => write!(formatter, "the device lacks the feature {feature}"),
            DeviceError::QueueTooShort { queue, needed, found } => {
                write!(formatter, "queue {queue} of the device has {found} entries, and {needed} are needed")
            }
            DeviceError::QueueInUse(queue) => write!(formatter, "queue {queue} of the device is in use after a reset"),
            DeviceError::NoInterrupt => formatter.write_str("the device rejects its interrupt vector"),
            DeviceError::Registers(status) => write!(formatter, "register access failed: {}", status.text()),
            DeviceError::Memory(status) => write!(formatter, "no DMA memory for the device: {}", status.text()),
            DeviceError::Unsteady => formatter.write_str("the device's configuration keeps changing"),
            DeviceError::NeedsReset => formatter.write_str("the device needs a reset"),
            DeviceError::UnknownRequest { queue, request } => {
                write!(formatter, "the device completed request {request} of queue {queue}, which is not in flight")
            }
            DeviceError::TooMuchWritten { room, written } => {
                write!(formatter, "the device reports {written} bytes written to a buffer of {room}")
            }
            DeviceError::TooLittleWritten { needed, written } => {
                write!(formatter, "the device reports {written} bytes written of a reply of {needed}")
            }
            DeviceError::Nonsense { what, value } => write!(formatter, "the device reports {value} as {what}"),
            DeviceError::NoAnswer { waited_ms } => {
                write!(formatter, "a request timed out after {waited_ms} ms")
            }
        }
    }
}
