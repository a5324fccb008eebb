//! Detecting, resetting and starting a device.

use core::time::Duration;

use layout::Access;
use sip::Status;
use virtio_drivers::transport::{DeviceStatus, DeviceType, InterruptStatus, Transport};

use crate::error::DeviceError;
use crate::link::Link;
use crate::platform::{DeviceMemory, Platform};
use crate::queue::Queue;

/// `VIRTIO_F_VERSION_1`: the interface of virtio 1.0 and later, the only one supported.
const VERSION_1: u64 = 1 << 32;
/// Timeout of a reset.
const RESET_WITHIN: Duration = Duration::from_secs(1);
/// Minimum interval between configuration checks of a device whose interrupts carry no cause. A change signalled by the
/// last interrupt of a burst is found by the check after a quiet period (see [`Running`](crate::Running)).
const CONFIGURATION_EVERY: Duration = Duration::from_millis(100);
/// Maximum attempts to read a configuration that changes meanwhile.
const CONFIGURATION_TRIES: u32 = 16;

/// Supported kinds of devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A network interface.
    Network,
    /// A disk.
    Block,
    /// A console.
    Console,
    /// A source of random bytes.
    Entropy,
    /// A folder of the host (9P).
    Folder,
}

impl Kind {
    /// Returns its device id in the virtio specification.
    pub const fn number(self) -> u32 {
        match self {
            Kind::Network => 1,
            Kind::Block => 2,
            Kind::Console => 3,
            Kind::Entropy => 4,
            Kind::Folder => 9,
        }
    }

    pub(crate) const fn device_type(self) -> DeviceType {
        match self {
            Kind::Network => DeviceType::Network,
            Kind::Block => DeviceType::Block,
            Kind::Console => DeviceType::Console,
            Kind::Entropy => DeviceType::EntropySource,
            Kind::Folder => DeviceType::_9P,
        }
    }
}

/// Causes of an interrupt; both may apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    /// A queue may have completions.
    pub queue: bool,
    /// The configuration may have changed.
    pub configuration: bool,
}

/// A device whose features are negotiated.
pub struct Device<P: Platform> {
    platform: P,
    link: Link<P::Registers>,
    features: u64,
    /// Time of the last configuration check, in nanoseconds.
    looked_ns: u64,
}

impl<P: Platform> Device<P> {
    /// Resets the device and negotiates features: all of `needed` (each with its name for people), and those
    /// of `wanted` that the device offers.
    ///
    /// # Errors
    /// The device is of another kind, does not confirm its reset within a second, or lacks or refuses features.
    pub fn start(
        platform: P,
        kind: Kind,
        needed: &[(u64, &'static str)],
        wanted: u64,
    ) -> Result<Device<P>, DeviceError> {
        let mut link = Link::open(&platform, kind)?;
        if !silence(&mut link, &platform) {
            link.error()?;
            return Err(DeviceError::NotReset);
        }
        let known = DeviceStatus::ACKNOWLEDGE | DeviceStatus::DRIVER;
        link.set_status(DeviceStatus::ACKNOWLEDGE);
        link.set_status(known);
        let offered = link.read_device_features();
        link.error()?;
        if offered & VERSION_1 == 0 {
            return Err(DeviceError::OldInterface);
        }
        let mut features = offered & wanted | VERSION_1;
        for &(feature, name) in needed {
            if offered & feature == 0 {
                return Err(DeviceError::FeatureMissing(name));
            }
            features |= feature;
        }
        link.write_driver_features(features);
        link.set_status(known | DeviceStatus::FEATURES_OK);
        let accepted = link.get_status().contains(DeviceStatus::FEATURES_OK);
        link.error()?;
        if !accepted {
            return Err(DeviceError::FeaturesRefused);
        }
        link.enable_configuration_interrupt();
        link.error()?;
        Ok(Device { platform, link, features, looked_ns: 0 })
    }

    /// Returns whether a feature was negotiated.
    pub fn has(&self, feature: u64) -> bool {
        self.features & feature != 0
    }

    /// Sets a queue up with `SIZE` descriptors, a power of two.
    ///
    /// # Errors
    /// The device has no such queue or a shorter one; there is no memory for it.
    pub fn queue<const SIZE: usize, M: DeviceMemory, T>(
        &mut self,
        index: u16,
    ) -> Result<Queue<P, SIZE, M, T>, DeviceError> {
        Queue::new(&self.platform, &self.link, index)
    }

    /// Sets DRIVER_OK, once the queues are set up.
    ///
    /// # Errors
    /// The device reports at once that it needs a reset or has failed.
    pub fn ready(&mut self) -> Result<(), DeviceError> {
        self.link.finish_init();
        self.check()
    }

    /// Reads the configuration, repeatedly until its generation does not change meanwhile.
    ///
    /// # Errors
    /// The generation keeps changing; register access fails.
    pub fn configuration<V>(&self, read: impl Fn(&Configuration<'_, P>) -> V) -> Result<V, DeviceError> {
        for _ in 0..CONFIGURATION_TRIES {
            let before = self.link.read_config_generation();
            let value = read(&Configuration { link: &self.link });
            let after = self.link.read_config_generation();
            self.link.error()?;
            if before == after {
                return Ok(value);
            }
        }
        Err(DeviceError::Unsteady)
    }

    /// Reads the cause of an interrupt and acknowledges it.
    ///
    /// # Errors
    /// Register access fails; the device needs a reset.
    pub fn interrupted(&mut self) -> Result<Cause, DeviceError> {
        let pending = self.link.ack_interrupt();
        self.link.error()?;
        let mut cause = Cause {
            queue: pending.contains(InterruptStatus::QUEUE_INTERRUPT),
            configuration: pending.contains(InterruptStatus::DEVICE_CONFIGURATION_INTERRUPT),
        };
        if !self.link.tells_cause() {
            // Each register read is a VM exit, so the configuration of a busy device is checked at intervals only.
            let now_ns = self.platform.now_ns();
            cause.configuration = now_ns.saturating_sub(self.looked_ns) >= CONFIGURATION_EVERY.as_nanos() as u64;
            if cause.configuration {
                self.looked_ns = now_ns;
            }
        }
        if cause.configuration {
            self.check()?;
        }
        Ok(cause)
    }

    /// Returns the device's clock and memory.
    pub fn platform(&self) -> &P {
        &self.platform
    }

    fn check(&self) -> Result<(), DeviceError> {
        let status = self.link.get_status();
        self.link.error()?;
        if status.intersects(DeviceStatus::DEVICE_NEEDS_RESET | DeviceStatus::FAILED) {
            return Err(DeviceError::NeedsReset);
        }
        Ok(())
    }
}

/// The device's own configuration, while it is read: an access for a register map. Reads outside of it fail, and so
/// do writes.
pub struct Configuration<'a, P: Platform> {
    link: &'a Link<P::Registers>,
}

macro_rules! configuration_accesses {
    ($($number:ident: $read:ident;)*) => {$(
        impl<P: Platform> Access<$number> for Configuration<'_, P> {
            fn read(&self, offset: u64) -> $number {
                self.link.$read(offset)
            }

            fn write(&self, _: u64, _: $number) {
                self.link.refuse(Status::NotPermitted);
            }
        }
    )*};
}

configuration_accesses! {
    u8: configuration8;
    u16: configuration16;
    u32: configuration32;
    u64: configuration64;
}

/// Resets the device. Returns whether it confirms that within a second: it then does no more DMA.
pub(crate) fn silence<P: Platform>(link: &mut Link<P::Registers>, platform: &P) -> bool {
    link.set_status(DeviceStatus::empty());
    let since = platform.now_ns();
    loop {
        let status = link.get_status();
        if link.error().is_err() {
            return false;
        }
        if status.is_empty() {
            return true;
        }
        if platform.now_ns().saturating_sub(since) >= RESET_WITHIN.as_nanos() as u64 {
            return false;
        }
        platform.pause();
    }
}
