//! Scenes of configuration, diagnostics, memory, time and synchronization.

use sip::Status;
use sip::abi::limits;

use super::{Scene, Stage};
use crate::objects::block;
use crate::raw::{put_text, set_byte, set_words, word};

/// A package of the suite that can be installed.
const GUEST: &[u8] = include_bytes!("../../../runner/guests/first.package");
const GUEST_NAME: &str = "conformance-guest";

/// Bytes of the blocks that diagnostics fill: not all records fit.
const RECORDS_BYTES: u64 = 4096;

pub(super) fn scene(name: &str) -> Option<Scene> {
    Some(match name {
        "parameter_length" => |stage| stage.run("parameter_length", &[0]),
        "parameter_read" => |stage| stage.run("parameter_read", &[0, 0]),
        "system_manifest" => |stage| free_answer(stage, "system_manifest", &[]),
        "program_count" => |stage| stage.run("program_count", &[]),
        "program_manifest" => |stage| free_answer(stage, "program_manifest", &[0]),
        "program_install" | "program_uninstall" => |stage| {
            let package = package();
            stage.run("program_install", &[package, GUEST.len() as u64]);
            stage.run("program_uninstall", &[put_text(GUEST_NAME)]);
            stage.run("heap_free", &[package]);
        },
        "program_check" => |stage| {
            let package = package();
            stage.run("program_check", &[package, GUEST.len() as u64]);
            stage.run("heap_free", &[package]);
        },
        "program_changes" => |stage| stage.run("program_changes", &[]),
        "measurement" => |stage| stage.run("measurement", &[stage.round % 2]),
        "template_image" => |stage| {
            for index in 0..stage.must("program_count", &[]) {
                if let Some(block) = stage.one_of("template_image", &[index], &[Status::NotFound]) {
                    stage.run("heap_free", &[block]);
                }
            }
        },
        "cycles" => |stage| stage.run("cycles", &[]),
        "trace_note" => |stage| stage.run("trace_note", &[1, 2]),
        "audit_note" => |stage| stage.run("audit_note", &[put_text("somebody refused read on nothing (killed)")]),
        "list_processes" => |stage| list(stage, "list_processes"),
        "list_threads" => |stage| list(stage, "list_threads"),
        "list_channels" => |stage| list(stage, "list_channels"),
        "list_counters" => |stage| list(stage, "list_counters"),
        "list_trace" => |stage| {
            let (block, id) = (block(RECORDS_BYTES), stage.must("process_id", &[]));
            stage.run("list_trace", &[id, block]);
            stage.run("heap_free", &[block]);
        },
        "list_latencies" => |stage| list(stage, "list_latencies"),
        "stream_start" => |stage| {
            // Another stage may have it.
            let statuses = &[Status::Busy];
            if stage.one_of("stream_start", &[64 + stage.round % 512], statuses).is_some() {
                stage.run("stream_start", &[0]);
            }
        },
        "stream_read" => |stage| {
            let block = block(RECORDS_BYTES);
            if stage.one_of("stream_start", &[512], &[Status::Busy]).is_some() {
                // The other thread may have ended it.
                stage.one_of("stream_read", &[block], &[Status::WrongState]);
            }
            stage.run("heap_free", &[block]);
        },
        "epitaphs" => |stage| free_answer(stage, "epitaphs", &[]),
        "audit_read" => |stage| free_answer(stage, "audit_read", &[0]),
        "contract_automaton" => |stage| free_answer(stage, "contract_automaton", &[0]),
        _ => return memory_scene(name).or_else(|| synchronization_scene(name)),
    })
}

fn memory_scene(name: &str) -> Option<Scene> {
    Some(match name {
        "stack_bounds" => |stage| stage.run("stack_bounds", &[]),
        "stack_left" => |stage| stage.run("stack_left", &[]),
        "memory_allocate" | "memory_free" => |stage| {
            let address = stage.must("memory_allocate", &[1 + stage.round % 8]);
            set_byte(address, 1);
            stage.run("memory_free", &[address]);
        },
        "memory_grow" => |stage| {
            let address = stage.must("memory_allocate", &[256 + stage.round % 8]);
            if let Some(added) = stage.one_of("memory_grow", &[address, 16], &[Status::WouldBlock]) {
                set_byte(added + 16 * 4096 - 1, 1);
            }
            stage.run("memory_free", &[address]);
        },
        "memory_reserve" => |stage| {
            let window = stage.must("memory_reserve", &[stage.round % 3]);
            for pages in [1, 1 + stage.round % 8] {
                stage.run("memory_grow", &[window, pages]);
            }
            set_byte(window, 1);
            stage.run("memory_free", &[window]);
        },
        "memory_usage" => |stage| stage.run("memory_usage", &[]),
        "principal_self" => |stage| stage.run("principal_self", &[]),
        "time_monotonic" => |stage| stage.run("time_monotonic", &[]),
        "time_wall" => |stage| stage.run("time_wall", &[]),
        "processor_count" => |stage| stage.run("processor_count", &[]),
        _ => return None,
    })
}

fn synchronization_scene(name: &str) -> Option<Scene> {
    Some(match name {
        "mutex_create" | "mutex_acquire" | "mutex_try_acquire" | "mutex_release" | "mutex_close" => |stage| {
            let mutex = stage.must("mutex_create", &[]);
            for acquire in ["mutex_acquire", "mutex_try_acquire"] {
                let arguments = [mutex, limits::NEVER];
                stage.run(acquire, &arguments[..if acquire == "mutex_acquire" { 2 } else { 1 }]);
                stage.run("mutex_release", &[mutex]);
            }
            stage.run("mutex_close", &[mutex]);
        },
        "event_create_manual" | "event_reset" => |stage| {
            let event = stage.must("event_create_manual", &[]);
            stage.run("event_set", &[event]);
            stage.run("event_reset", &[event]);
            stage.run("event_close", &[event]);
        },
        "event_create_auto" | "event_set" | "event_wait" | "event_close" => |stage| {
            let event = stage.must("event_create_auto", &[]);
            stage.run("event_set", &[event]);
            stage.run("event_wait", &[event, limits::NEVER]);
            assert!(stage.one_of("event_wait", &[event, stage.deadline()], &[Status::TimedOut]).is_none());
            stage.run("event_close", &[event]);
        },
        "wait_any" => |stage| {
            let (event, endpoint) = (stage.must("event_create_auto", &[]), stage.pair().1);
            set_words(&[endpoint, event]);
            assert!(stage.one_of("wait_any", &[2, stage.deadline()], &[Status::TimedOut]).is_none());
            stage.run("event_set", &[event]);
            set_words(&[endpoint, event]);
            assert_eq!(stage.must("wait_any", &[2, limits::NEVER]), 1, "the event that was set");
            stage.run("event_close", &[event]);
        },
        _ => return None,
    })
}

/// Calls a function that returns a new block.
fn free_answer(stage: &Stage, name: &str, arguments: &[u64]) {
    let block = stage.must(name, arguments);
    stage.run("heap_free", &[block]);
}

/// Has a block filled with records.
fn list(stage: &Stage, name: &str) {
    let block = block(RECORDS_BYTES);
    stage.run(name, &[block]);
    stage.run("heap_free", &[block]);
}

/// A block with the package.
fn package() -> u64 {
    let package = block(GUEST.len() as u64);
    for (address, &byte) in (word(0)..).zip(GUEST) {
        set_byte(address, byte);
    }
    package
}
