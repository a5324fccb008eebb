//! Scenes of child processes, their debug sinks, and threads.

use sip::Status;
use sip::abi::limits;

use super::{BETWEEN, CLIENT, INSIDE, Scene, Stage};
use crate::objects::{channel, end_thread, sleep_thread, thread_at};
use crate::raw::{put_text, set_byte, word};

const PROGRAM: &str = "conformance-attacker";
/// An act that does not exist, so that the child panics and its text is in the debug sink.
const PANICS: &str = "panics";
const SLEEPS: &str = "sleep";

pub(super) fn scene(name: &str) -> Option<Scene> {
    Some(match name {
        "process_create" | "process_give_parameter" => |stage| {
            let child = created(stage, SLEEPS);
            release(stage, child);
        },
        "process_invoke" => |stage| {
            let child = created(stage, SLEEPS);
            let role_bytes = if stage.round % 2 == 1 { put_text("tester") } else { 0 };
            stage.run("process_invoke", &[child, role_bytes]);
            release(stage, child);
        },
        "process_give_endpoint" => |stage| {
            let (child, (importer, exporter)) = (created(stage, SLEEPS), channel("Errand"));
            stage.run("process_give_endpoint", &[child, CLIENT, importer]);
            release(stage, child);
            assert!(stage.one_of("channel_receive", &[exporter, limits::NEVER], &[Status::Closed]).is_none());
            stage.run("channel_close", &[exporter]);
        },
        "process_give_device" => |stage| {
            let child = created(stage, SLEEPS);
            stage.run("process_give_device", &[child, 0, put_text("random0")]);
            release(stage, child);
        },
        "process_start" | "process_stop" | "process_id_of" => |stage| {
            let child = started(stage, SLEEPS);
            stage.run("process_id_of", &[child]);
            stage.run("process_stop", &[child, 0]);
            wait_and_release(stage, child);
        },
        "process_wait" => |stage| {
            let child = started(stage, SLEEPS);
            assert!(stage.one_of("process_wait", &[child, stage.deadline()], &[Status::TimedOut]).is_none());
            stage.run("process_stop", &[child, 0]);
            wait_and_release(stage, child);
        },
        "process_release" => |stage| {
            let (created, started) = (created(stage, SLEEPS), started(stage, SLEEPS));
            release(stage, created);
            stage.run("process_stop", &[started, 0]);
            wait_and_release(stage, started);
        },
        "process_stop_any" => |stage| {
            let child = started(stage, SLEEPS);
            let id = stage.must("process_id_of", &[child]);
            stage.run("process_stop_any", &[id, 0]);
            wait_and_release(stage, child);
        },
        // These end the process themselves, so that the kill races with its end.
        "process_exit" => |stage| stage.run("process_exit", &[0]),
        "process_panic" => |stage| stage.run("process_panic", &[put_text("killed while it panicked")]),
        "process_id" => |stage| stage.run("process_id", &[]),
        "debug_write" => |stage| stage.run("debug_write", &[put_text("a line\n")]),
        _ => return sink_scene(name).or_else(|| thread_scene(name)),
    })
}

fn sink_scene(name: &str) -> Option<Scene> {
    Some(match name {
        "debug_sink_create" | "debug_sink_close" => |stage| {
            let sink = stage.must("debug_sink_create", &[]);
            stage.run("debug_sink_close", &[sink]);
        },
        "debug_sink_give" => |stage| {
            let (sink, child) = (stage.must("debug_sink_create", &[]), created(stage, SLEEPS));
            stage.run("debug_sink_give", &[child, sink]);
            release(stage, child);
            stage.run("debug_sink_close", &[sink]);
        },
        "debug_sink_read" => |stage| {
            let (sink, child) = (stage.must("debug_sink_create", &[]), created(stage, PANICS));
            stage.run("debug_sink_give", &[child, sink]);
            stage.run("process_start", &[child]);
            wait_and_release(stage, child);
            assert!(stage.must("debug_sink_read", &[sink]) > 0, "the panic's text");
            stage.run("debug_sink_close", &[sink]);
        },
        _ => return None,
    })
}

fn thread_scene(name: &str) -> Option<Scene> {
    Some(match name {
        "thread_exit" => |stage| {
            let thread = stage
                .must("thread_create", &[exit as extern "C" fn(u64) -> ! as usize as u64, stage.mark.unwrap_or(0)]);
            stage.run("thread_join", &[thread, limits::NEVER]);
            stage.mark.inspect(|&address| set_byte(address, BETWEEN));
        },
        "thread_create" => |stage| {
            let thread = stage.must("thread_create", &[end_thread as extern "C" fn(u64) -> ! as usize as u64, 0]);
            stage.run("thread_join", &[thread, limits::NEVER]);
        },
        "thread_join" => |stage| {
            let code = if stage.waits_for_ever() { sleep_thread } else { end_thread };
            let thread = thread_at(code).expect("a thread");
            stage.run("thread_join", &[thread, limits::NEVER]);
        },
        "thread_release" => |stage| {
            // With one processor, those that were released may not have ended yet.
            let thread = loop {
                match thread_at(end_thread) {
                    Err(Status::QuotaExceeded) => stage.run("thread_yield", &[]),
                    thread => break thread.expect("a thread"),
                }
            };
            stage.run("thread_release", &[thread]);
        },
        "thread_yield" => |stage| stage.run("thread_yield", &[]),
        "thread_sleep" => |stage| stage.run("thread_sleep", &[stage.deadline()]),
        "thread_self" => |stage| stage.run("thread_self", &[]),
        _ => return None,
    })
}

/// Code of a thread that exits at once, and marks it at this address, if any.
extern "C" fn exit(mark: u64) -> ! {
    if mark != 0 {
        set_byte(mark, INSIDE);
    }
    end_thread(0)
}

fn created(stage: &Stage, act: &str) -> u64 {
    let child = stage.must("process_create", &[put_text(PROGRAM)]);
    stage.run("process_give_parameter", &[child, 0, put_text(act)]);
    child
}

fn started(stage: &Stage, act: &str) -> u64 {
    let child = created(stage, act);
    stage.run("process_start", &[child]);
    child
}

fn release(stage: &Stage, child: u64) {
    stage.run("process_release", &[child]);
}

fn wait_and_release(stage: &Stage, child: u64) {
    stage.run("process_wait", &[child, limits::NEVER]);
    assert_eq!(stage.call("process_wait", &[child, 0]).map(|_| word(0)), Ok(word(0)), "the end stays known");
    release(stage, child);
}
