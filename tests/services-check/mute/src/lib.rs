//! Test SIP: a folder, a file, a disk and a network interface that open and then never reply, and a provider that does
//! not even accept its first client. It keeps running, so no peer sees its channel closed.
//!
//! Deliberately not here: anything that replies to a request.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use core::future::pending;

use contracts::nic_device::NicFeatures;
use contracts::{directory, disk, file, nic_device};
use provider::accept;
use sip::executor;

sip::startup!();

/// MAC address of the interface.
const ADDRESS: [u8; 6] = [2, 0, 0, 0, 0, 1];
const MTU: u32 = 1500;

/// Reports readiness, and then never replies.
pub fn main(startup: Startup) -> i32 {
    let Startup { folders, files, disks, interfaces, nobody } = startup;
    let serving = async move {
        executor::spawn(accept(folders.ready(), |client: directory::Exp<directory::states::Start>| async move {
            let _asked = client.success().receive_async().await;
            pending::<()>().await;
        }));
        executor::spawn(accept(files.ready(), |client: file::Exp<file::states::Start>| async move {
            let _asked = client.success().receive_async().await;
            pending::<()>().await;
        }));
        executor::spawn(accept(disks.ready(), |client: disk::Exp<disk::states::Start>| async move {
            let _asked = client.success().receive_async().await;
            pending::<()>().await;
        }));
        executor::spawn(accept(interfaces.ready(), |client: nic_device::Exp<nic_device::states::Start>| async move {
            let _asked = client.device_info(ADDRESS, MTU, 0, NicFeatures::empty()).receive_async().await;
            pending::<()>().await;
        }));
        let _clients = nobody.ready();
        pending::<i32>().await
    };
    executor::block_on(serving).unwrap_or(1)
}
