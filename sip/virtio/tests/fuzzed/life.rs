//! What the fuzz targets of drivers over virtio do with their bytes: what the driver does is chosen by the first ones,
//! what the device does wrong by the rest. Then the same once more with a device that does right.

use sip_virtio::Trouble;
use sip_virtio::model::{Faults, Machine, Numbers, Way};

/// One occasion of so many in a thousand is used.
const OFTEN: u64 = 100;
/// What a driver does, a byte each.
const STEPS: usize = 24;

/// Does it: `make` makes the machine with the device, and `live` is one life of the driver.
pub fn run(bytes: &[u8], make: impl Fn(Way, Faults) -> Machine, live: impl Fn(&Machine, &[u8]) -> Result<(), Trouble>) {
    let Some((choices, device)) = bytes.split_at_checked(STEPS) else { return };
    let way = if choices[0] & 1 == 0 { Way::Mmio } else { Way::Pci };
    let machine = make(way, Faults::often(OFTEN, Numbers::from_bytes(device)));
    if let Err(trouble) = live(&machine, choices) {
        assert!(!trouble.to_string().is_empty());
    }
    machine.set_faults(Faults::none());
    assert_eq!(live(&machine, choices), Ok(()), "it does all right now");
}
