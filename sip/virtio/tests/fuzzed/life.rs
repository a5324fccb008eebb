//! Common body of the fuzz targets of virtio drivers: the first bytes choose the driver's actions, the rest the device's
//! faults. Then the same again without faults.
//!
//! A device that stays faulty to the end may never confirm its reset, and then its memory is leaked: a driver's process
//! would free it, this one does not. So that case is tried only rarely, or the fuzzer would run out of memory.

use sip_virtio::DeviceError;
use sip_virtio::model::{Faults, Machine, Numbers, Way};

/// Faults per thousand occasions.
const OFTEN: u64 = 100;
/// Actions of the driver, one byte each.
const STEPS: usize = 24;
/// The second byte of an input whose device stays faulty to the end.
const WRONG_TO_THE_END: u8 = 0xfe;

/// Runs one input: `make` creates the machine with the device, `start` starts a driver, and `live` drives it.
pub fn run<D>(
    bytes: &[u8],
    make: impl Fn(Way, Faults) -> Machine,
    start: impl Fn(Machine) -> Result<D, DeviceError>,
    live: impl Fn(&mut D, &Machine, &[u8]) -> Result<(), DeviceError>,
) {
    let Some((choices, device)) = bytes.split_at_checked(STEPS) else { return };
    let way = if choices[0] & 1 == 0 { Way::Mmio } else { Way::Pci };
    let machine = make(way, Faults::often(OFTEN, Numbers::from_bytes(device)));
    let whole_life = |is_wrong_to_the_end: bool| {
        let mut driver = start(machine.clone())?;
        let end = live(&mut driver, &machine, choices);
        if !is_wrong_to_the_end {
            machine.set_faults(Faults::none());
        }
        drop(driver);
        end
    };
    if let Err(error) = whole_life(choices[1] == WRONG_TO_THE_END) {
        assert!(!error.to_string().is_empty());
    }
    machine.set_faults(Faults::none());
    assert_eq!(whole_life(false), Ok(()), "it does all right now");
}
