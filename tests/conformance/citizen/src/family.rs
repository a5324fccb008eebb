//! Acts of parents.

use sip::process;

use crate::{Stage, sleep_forever};

const SELF: &str = "conformance-citizen";
const ACT: usize = 0;
const NUMBER: usize = 1;
const ENDING: usize = 2;

/// Creates a child, which creates a child, and so on `number` generations deep; then exits. The last one sleeps.
pub(crate) fn parent(mut stage: Stage) -> i32 {
    if stage.number == 0 {
        sleep_forever();
    }
    let older = process::create(SELF).expect("a child");
    let older = older.parameter(ACT, "sleep").and_then(process::Child::start).expect("the child starts");
    let deeper = process::create(SELF).expect("a second child");
    let deeper = deeper
        .parameter(ACT, "parent")
        .and_then(|child| child.parameter(NUMBER, &alloc::format!("{}", stage.number - 1)))
        .and_then(|child| child.parameter(ENDING, "wait"))
        .and_then(process::Child::start)
        .expect("the second child starts");
    let created_only = process::create(SELF).expect("a child that is never started");
    // Report that all are running.
    if let Some(client) = stage.client.take() {
        drop(client.call(1));
    }
    sip::thread::sleep(sip::Deadline::after_ms(3));
    core::mem::forget((older, deeper, created_only));
    stage.end()
}

/// Closes a running child's handle and exits; the child keeps running.
pub(crate) fn released_child(mut stage: Stage) -> i32 {
    let server = stage.server();
    let child = process::create(SELF).expect("a child");
    let child = child
        .parameter(ACT, "serve")
        .and_then(|child| child.endpoint(1, server))
        .and_then(process::Child::start)
        .expect("the child starts");
    drop(child);
    0
}
