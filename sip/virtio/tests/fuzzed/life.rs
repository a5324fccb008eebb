//! What the fuzz targets of drivers over virtio do with their bytes: what the driver does is chosen by the first ones,
//! what the device does wrong by the rest. Then the same once more with a device that does right.
//!
//! A device that is wrong to the end may never be silenced, and then keeps what it could write to: in a process of its
//! own that goes with the driver, and here it does not. So that is tried now and then only; else a fuzzer's memory runs
//! out.

use sip_virtio::DeviceError;
use sip_virtio::model::{Faults, Machine, Numbers, Way};

/// One occasion of so many in a thousand is used.
const OFTEN: u64 = 100;
/// What a driver does, a byte each.
const STEPS: usize = 24;
/// The second byte of an input whose device is wrong to the end.
const WRONG_TO_THE_END: u8 = 0xfe;

/// Does it: `make` makes the machine with the device, `start` begins the life of a driver, and `live` is the rest of it.
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
