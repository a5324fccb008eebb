//! Driver of a host folder of the hosted machine: one device, served by crate `folder-server`.
//!
//! The machine answers at once what it can without blocking, and the rest on threads of its own. Neighbours:
//! `folder-server` (the clients). Deliberately not here: the protocol.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod exchanges;

use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;

use folder_server::Mount;
use sip::Status;
use sip::device::{Declared, Device, DeviceKind, DeviceOperation};
use sip::exheap::ExVec;

use exchanges::Exchanges;

sip::startup!();

/// Maximum length of a folder's name in bytes.
const NAME_BYTES: usize = 256;

/// Serves the folder until the provider channel closes.
pub fn main(startup: Startup) -> i32 {
    folder_server::run(startup.clients, startup.namespace, || open(&startup.folder))
}

fn open(folder: &Declared<Device>) -> Result<Mount, String> {
    let refused = |status: Status| format!("the folder cannot be opened: {}", status.text());
    let device = folder.open_when_free().map_err(refused)?;
    if device.describe().map_err(refused)?.kind != DeviceKind::Folder {
        return Err(String::from("the device is not a folder; declare one in the system manifest"));
    }
    let block = ExVec::new(NAME_BYTES).map_err(refused)?;
    let name = device.perform(DeviceOperation::Read, 0, block, NAME_BYTES).map_err(|error| refused(error.status))?;
    name.result.map_err(refused)?;
    let name = String::from_utf8_lossy(&name.block[..name.bytes]).into_owned();
    let exchanges = Exchanges::new(device);
    Ok(Mount { name, transport: Rc::new(exchanges) })
}
