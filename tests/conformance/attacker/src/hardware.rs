//! Attacks on a device's reach, by a driver that owns one.

use sip::Status;

use crate::Act;
use crate::messages::{GIVE, send};
use crate::objects::{block, channel};
use crate::raw::{abi, must, put_text, refused};

pub(crate) const ACTS: &[(&str, Act)] = &[
    ("pinned-block", |_| pinned_block()),
    ("send-pinned", |_| send_pinned()),
    ("close-while-pinned", |_| close_while_pinned()),
    ("bus-without-permission", |_| bus_without_permission()),
];

/// A pinned block keeps its address and its owner.
fn pinned_block() -> i32 {
    let device = must("device_open", &[0]);
    let (pinned, other) = (block(8192), block(64));
    must("dma_begin", &[device, pinned]);
    refused("dma_begin", &[device, pinned], &[Status::Busy]);
    refused("heap_free", &[pinned], &[Status::Busy]);
    refused("heap_split", &[pinned, 4096], &[Status::Busy]);
    refused("heap_attach", &[pinned, other], &[Status::Busy]);
    refused("heap_attach", &[other, pinned], &[Status::Busy]);
    refused("heap_detach", &[pinned], &[Status::Busy]);
    must("heap_describe", &[pinned]);
    refused("dma_end", &[device, other], &[Status::BadHandle]);
    must("dma_end", &[device, pinned]);
    refused("dma_end", &[device, pinned], &[Status::BadHandle]);
    must("heap_attach", &[pinned, other]);
    refused("dma_begin", &[device, pinned], &[Status::BadArgument]);
    must("heap_free", &[pinned]);
    refused("dma_begin", &[device, pinned], &[Status::BadHandle]);
    must("device_close", &[device]);
    refused("register_read", &[device, 0, 0, 1], &[Status::BadHandle]);
    0
}

/// Ends the process.
fn send_pinned() -> i32 {
    let device = must("device_open", &[0]);
    let (client, _server) = channel("Errand");
    let pinned = block(64);
    must("dma_begin", &[device, pinned]);
    let answer = send(client, GIVE, (0, 1, 0), &[pinned, 0, 0]);
    panic!("a block that a device reaches was sent: {answer:?}");
}

/// The block is released with the device.
fn close_while_pinned() -> i32 {
    let device = must("device_open", &[0]);
    let pinned = block(64);
    must("dma_begin", &[device, pinned]);
    must("device_close", &[device]);
    refused("heap_describe", &[pinned], &[Status::BadHandle]);
    refused("heap_free", &[pinned], &[Status::BadHandle]);
    0
}

/// Only the bus driver is a bus.
fn bus_without_permission() -> i32 {
    let device = must("device_open", &[1]);
    let calls: [(&str, &[u64]); 7] = [
        ("interrupt_allocate", &[device]),
        ("publication_create", &[device, put_text("sim-x")]),
        ("publication_add_range", &[device, 0, 0, 0, 1]),
        ("publication_add_interrupt", &[device, 0, 0]),
        ("publication_open", &[device, 0]),
        ("publication_released", &[device, 0]),
        ("publication_ready", &[device, 0]),
    ];
    for (name, arguments) in calls {
        refused(name, arguments, &[Status::NotPermitted]);
    }
    refused("wall_time_set", &[0], &[Status::NotPermitted]);
    refused("device_exists", &[4], &[Status::NotPermitted]);
    assert!(abi("device_close", &[device]).is_ok());
    0
}
