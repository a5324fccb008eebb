//! A declared device, before and after it is opened.

use core::fmt;
use core::marker::PhantomData;

use super::Device;
use crate::hardware::Hardware;
use crate::hardware::bus::Bus;
use crate::{Deadline, Status, time};

/// Retry interval for a device that another process has open, in milliseconds.
const AGAIN_AFTER_MS: u64 = 1;

/// The driver's view of an opened device: the device as such, or an object with a field for each of its declared
/// resources, which `sip::startup!` generates.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is nothing that a device is opened as",
    note = "the manifest's `object` names a type that implements `sip::device::DeviceObject`"
)]
pub trait DeviceObject: Sized {
    /// Opens the device at `index` of the manifest's device list.
    fn open(index: usize) -> Result<Self, Status>;
}

impl DeviceObject for Device {
    fn open(index: usize) -> Result<Device, Status> {
        Device::open(index)
    }
}

impl DeviceObject for Hardware {
    fn open(index: usize) -> Result<Hardware, Status> {
        Hardware::open(index)
    }
}

impl DeviceObject for Bus {
    fn open(index: usize) -> Result<Bus, Status> {
        Hardware::open(index).map(Bus::new)
    }
}

/// A device of the manifest: a field of `Startup`, whose type determines the form in which it is opened. It is opened
/// only on demand, so a driver can report a device error to its parent.
pub struct Declared<D> {
    index: usize,
    object: PhantomData<fn() -> D>,
}

impl<D: DeviceObject> Declared<D> {
    /// Returns the device at `index` of the manifest's device list. For generated code.
    #[doc(hidden)]
    pub const fn at(index: usize) -> Declared<D> {
        Declared { index, object: PhantomData }
    }

    /// Opens it. `NotFound` if the machine has none; `Busy` while another process has it open.
    pub fn open(&self) -> Result<D, Status> {
        D::open(self.index)
    }

    /// Opens it, retrying while it is busy: the machine may still be completing requests of a driver that was ended. There
    /// is no timeout; that is for the parent process.
    pub fn open_when_free(&self) -> Result<D, Status> {
        loop {
            match self.open() {
                Err(Status::Busy) => time::sleep_until(Deadline::after_ms(AGAIN_AFTER_MS)),
                other => return other,
            }
        }
    }
}

impl<D> fmt::Debug for Declared<D> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "device {}", self.index)
    }
}
