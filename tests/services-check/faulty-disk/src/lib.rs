//! A disk for tests of the layers above: it fails on request, and loses what was not flushed.
//!
//! [`plan`] decides which request fails, [`cache`] holds unflushed data, [`medium`] stores the bytes, [`disk`]
//! combines the three, [`control`] receives commands. Deliberately not here: any knowledge of the contents of the
//! disk.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod cache;
mod control;
mod disk;
mod medium;
pub mod plan;

use alloc::string::String;

use client::namespace::Namespace;
use contracts::service_provider::{self, StartError};
use disk_server::Disk;
use faulty_contract::number;
use sip::exheap::ExVec;
use stdio::report;

use disk::FaultyDisk;
use medium::Bytes;

sip::startup!();

/// Serves the disk until the provider channel closes.
pub fn main(startup: Startup) -> i32 {
    let plan = faulty_contract::plan_of_parameters!(startup);
    let serving = async move {
        let bytes = if startup.over.is_empty() {
            Bytes::in_memory(number(startup.size_mib) << 20)
        } else {
            Bytes::over(Namespace::new(startup.namespace), &startup.over).await
        };
        match bytes {
            Ok(bytes) => {
                let disk = Disk::new(FaultyDisk::new(bytes, plan, startup.write_through));
                let controlled = disk.clone();
                let controllers = startup.controllers.ready();
                sip::executor::spawn(provider::accept(controllers, move |client| {
                    control::serve(controlled.clone(), client)
                }));
                provider::accept(startup.clients.ready(), move |client| disk.serve(client)).await;
                0
            }
            Err(reason) => refuse(startup.clients, &reason),
        }
    };
    sip::executor::block_on(serving).unwrap_or(1)
}

fn refuse(clients: service_provider::Exp<service_provider::states::Start>, reason: &String) -> i32 {
    match ExVec::from_slice(reason.as_bytes()) {
        Ok(block) => drop(clients.not_ready(StartError::Missing, block)),
        Err(_) => report::error(format_args!("{reason}")),
    }
    1
}
