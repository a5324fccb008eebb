//! Finding, resetting and starting a device.

use core::time::Duration;

use layout::Access;
use sip::Status;
use virtio_drivers::transport::{DeviceStatus, DeviceType, InterruptStatus, Transport};

use crate::error::DeviceError;
use crate::link::Link;
use crate::platform::{DeviceMemory, Platform};
use crate::queue::Queue;

/// `VIRTIO_F_VERSION_1`: the interface of virtio 1.0 and later, the only one that is driven here.
const VERSION_1: u64 = 1 << 32;
/// How long a device has for confirming a reset.
const RESET_WITHIN: Duration = Duration::from_secs(1);
/// A device that interrupts more often than this is not asked each time whether its configuration has changed. What
/// interrupts last is looked at once more when nothing has come for a while (see [`Running`](crate::Running)).
const CONFIGURATION_EVERY: Duration = Duration::from_millis(100);
/// How often a configuration that changes while it is read is read again.
const CONFIGURATION_TRIES: u32 = 16;

/// Kinds of devices that there are drivers for.
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
    /// A folder of the host.
    Folder,
}

impl Kind {
    /// Its number in the virtio specification.
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

/// Why a device interrupted. Both may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    /// A queue may have answers.
    pub queue: bool,
    /// The configuration may have changed.
    pub configuration: bool,
}

/// A device whose features are agreed on.
pub struct Device<P: Platform> {
    platform: P,
    link: Link<P::Registers>,
    features: u64,
    /// When it was last taken for possible that the configuration has changed.
    looked_ns: u64,
}

impl<P: Platform> Device<P> {
    /// Resets the device and agrees on features: all of `needed` (each with its name for people), and those
    /// of `wanted` that the device offers.
    ///
    /// # Errors
    /// It is no such device, does not confirm its reset within a second, or lacks or refuses features.
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

    /// Whether a feature was agreed on.
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

    /// Lets the device work, once its queues are set up.
    ///
    /// # Errors
    /// It says at once that it cannot.
    pub fn ready(&mut self) -> Result<(), DeviceError> {
        self.link.finish_init();
        self.check()
    }

    /// Reads the configuration until it does not change while it is read.
    ///
    /// # Errors
    /// It always changes; the registers fail.
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

    /// Asks why the device interrupted, and ends the interrupt.
    ///
    /// # Errors
    /// The registers fail; the device says that it cannot go on.
    pub fn interrupted(&mut self) -> Result<Cause, DeviceError> {
        let pending = self.link.ack_interrupt();
        self.link.error()?;
        let mut cause = Cause {
            queue: pending.contains(InterruptStatus::QUEUE_INTERRUPT),
            configuration: pending.contains(InterruptStatus::DEVICE_CONFIGURATION_INTERRUPT),
        };
        if !self.link.tells_cause() {
            // Each read of a register leaves a virtual machine, so a busy device's configuration is looked at now
            // and then.
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

    /// The device's clock and memory.
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

/// The device's own configuration, while it is read: an access for a map of it. What lies outside of it fails, and so
/// does writing.
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

/// Resets the device. Whether it confirms that within a second: it then reaches no memory any more.
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
