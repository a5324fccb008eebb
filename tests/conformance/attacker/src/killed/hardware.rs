//! Scenes of devices: a bus of the machine, a device that the process publishes on it and drives itself, and the
//! random bytes of a hosted machine.
//!
//! Whatever a killed process left, the next one adopts: it confirms the device, and declares it quiescent.

use sip::Status;
use sip::abi::{Function, SUBMIT_DONE, SUBMIT_QUEUED, limits};

use super::{Scene, Stage};
use crate::objects::block;
use crate::raw::{put_text, word};

/// Devices of the manifest.
const BUS: u64 = 0;
const DEVICE: u64 = 1;
const RANDOM: u64 = 2;

/// The device that is published, and one that never is.
const NAME: &str = "killed-device";
const FORMING: &str = "killed-forming";
/// Bytes of a device's one range, and where the first begins: in the last device of the simulated bus, which nothing
/// else uses, or at the start of a smaller bus.
const BYTES: u64 = 4;
const SIMULATED_OFFSET: u64 = 3 * 4096 + 8;

pub(super) fn is_exclusive(function: &Function) -> bool {
    function.group == "Hardware access"
}

pub(super) fn scene(name: &str) -> Option<Scene> {
    Some(match name {
        "device_open" | "device_describe" | "device_close" => |stage| {
            let bus = stage.must("device_open", &[BUS]);
            stage.run("device_describe", &[bus]);
            stage.run("device_close", &[bus]);
        },
        "device_submit" | "device_complete" => submit,
        "range_describe" => |stage| {
            let device = device(stage);
            stage.run("range_describe", &[device, 0]);
            stage.run("device_close", &[device]);
        },
        "register_read" | "register_write" => |stage| {
            let device = device(stage);
            for _ in 0..4 {
                let value = stage.must("register_read", &[device, 0, 0, BYTES]);
                stage.run("register_write", &[device, 0, 0, BYTES, value]);
            }
            stage.run("device_close", &[device]);
        },
        "interrupt_wait" => |stage| {
            let device = device(stage);
            for _ in 0..4 {
                let waited = stage.one_of("interrupt_wait", &[device, 0, stage.deadline()], &[Status::TimedOut]);
                assert!(waited.is_none(), "nothing fires");
            }
            stage.run("device_close", &[device]);
        },
        "dma_begin" | "dma_end" => dma,
        "device_exists" => |stage| stage.run("device_exists", &[put_text(NAME)]),
        "wall_time_set" => |stage| {
            let now = stage.must("time_wall", &[]);
            // A host keeps its own time.
            stage.one_of("wall_time_set", &[now], &[Status::NotPermitted]);
        },
        // They would end the test: no program of the suite is permitted to.
        "machine_power_off" => |stage| refused(stage, "machine_power_off", &[0]),
        "machine_restart" => |stage| refused(stage, "machine_restart", &[]),
        _ => return bus_scene(name),
    })
}

fn bus_scene(name: &str) -> Option<Scene> {
    Some(match name {
        "interrupt_allocate" => |stage| {
            let bus = stage.must("device_open", &[BUS]);
            stage.run("interrupt_allocate", &[bus]);
            stage.run("device_close", &[bus]);
        },
        "publication_create" | "publication_add_range" | "publication_add_interrupt" => |stage| {
            let bus = stage.must("device_open", &[BUS]);
            let publication = stage.must("publication_create", &[bus, put_text(FORMING)]);
            add_range(stage, bus, publication, BYTES);
            add_interrupt(stage, bus, publication);
            stage.run("device_close", &[bus]);
        },
        "publication_open" => |stage| {
            let (bus, _) = publish(stage);
            stage.run("device_close", &[bus]);
        },
        "publication_released" | "publication_ready" => |stage| {
            let device = device(stage);
            stage.run("device_close", &[device]);
            let (bus, publication) = bus(stage);
            let released = stage.must("publication_released", &[bus, limits::NEVER]);
            assert_eq!(released, publication, "the device that was closed");
            stage.run("publication_ready", &[bus, publication]);
            if stage.waits_for_ever() {
                stage.run("publication_released", &[bus, limits::NEVER]);
            }
        },
        _ => return None,
    })
}

fn refused(stage: &Stage, name: &str, arguments: &[u64]) {
    assert!(stage.one_of(name, arguments, &[Status::NotPermitted]).is_none(), "{name} was permitted");
}

fn add_range(stage: &Stage, bus: u64, publication: u64, offset: u64) {
    let bytes = stage.must("range_describe", &[bus, 0]);
    let first = if bytes > SIMULATED_OFFSET + 2 * BYTES { SIMULATED_OFFSET } else { 0 };
    stage.run("publication_add_range", &[bus, publication, 0, first + offset, BYTES]);
}

fn add_interrupt(stage: &Stage, bus: u64, publication: u64) {
    let interrupt = stage.must("interrupt_allocate", &[bus]);
    stage.run("publication_add_interrupt", &[bus, publication, interrupt]);
}

/// Opens the bus, and publishes the device or adopts it.
fn publish(stage: &Stage) -> (u64, u64) {
    let bus = stage.must("device_open", &[BUS]);
    let publication = stage.must("publication_create", &[bus, put_text(NAME)]);
    let is_adopted = word(0) == 1;
    add_range(stage, bus, publication, 0);
    if !is_adopted {
        add_interrupt(stage, bus, publication);
    }
    stage.run("publication_open", &[bus, publication]);
    quiesce(stage, (bus, publication));
    (bus, publication)
}

/// Declares the device quiescent if its driver, this process or the last, has left it.
fn quiesce(stage: &Stage, (bus, publication): (u64, u64)) {
    while stage.one_of("publication_released", &[bus, 0], &[Status::TimedOut]).is_some() {
        stage.run("publication_ready", &[bus, publication]);
    }
}

/// The bus, with the device published on it.
fn bus(stage: &mut Stage) -> (u64, u64) {
    let bus = stage.bus.unwrap_or_else(|| publish(stage));
    stage.bus = Some(bus);
    bus
}

/// The device, open, whatever its last driver left.
fn device(stage: &mut Stage) -> u64 {
    let bus = bus(stage);
    quiesce(stage, bus);
    stage.must("device_open", &[DEVICE])
}

fn dma(stage: &mut Stage) {
    let device = device(stage);
    for bytes in [200, 1 << 16] {
        let pinned = block(bytes);
        stage.run("dma_begin", &[device, pinned]);
        stage.run("dma_end", &[device, pinned]);
        stage.run("heap_free", &[pinned]);
    }
    // The machine keeps it until the device is declared quiescent.
    stage.run("dma_begin", &[device, block(4096)]);
    stage.run("device_close", &[device]);
    let bus = bus(stage);
    quiesce(stage, bus);
}

fn submit(stage: &mut Stage) {
    let Some(device) = stage.one_of("device_open", &[RANDOM], &[Status::NotFound]) else {
        return submit_to_hardware(stage);
    };
    let buffer = block(64);
    let value = stage.must("device_submit", &[device, 0, 0, buffer, 7, 0]);
    assert_eq!(value, SUBMIT_DONE, "nothing is written to the block");
    stage.run("heap_free", &[buffer]);
    for bytes in [1, 200, 4096] {
        let buffer = block(bytes);
        let block = match stage.must("device_submit", &[device, 0, 0, buffer, 0, bytes]) {
            SUBMIT_QUEUED => stage.must("device_complete", &[device, limits::NEVER]),
            block => block,
        };
        assert_eq!((block, word(3)), (buffer, Status::Ok as u64), "the block of the operation");
        stage.run("heap_free", &[block]);
    }
    // Nothing is queued.
    assert!(stage.one_of("device_complete", &[device, 0], &[Status::TimedOut]).is_none());
    stage.run("device_close", &[device]);
}

/// A bare machine has no device that takes operations.
fn submit_to_hardware(stage: &mut Stage) {
    let (bus, buffer) = (stage.must("device_open", &[BUS]), block(64));
    assert!(stage.one_of("device_submit", &[bus, 0, 0, buffer, 0, 64], &[Status::BadHandle]).is_none());
    assert!(stage.one_of("device_complete", &[bus, 0], &[Status::BadHandle]).is_none());
    stage.run("heap_free", &[buffer]);
    stage.run("device_close", &[bus]);
}
