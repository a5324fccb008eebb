//! The service manager: start order, restarts, and notifications.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use client::namespace::Namespace;
use client::services::{self, ServiceManagerError, list, start, stop, text};
use contracts::service_events::{self, ImpReady};
use contracts::service_manager::{self, ImpReadyAfterSubscribe, ServiceError, ServiceRecord};
use sip::process::StopReason;
use sip::{Deadline, Status};

use crate::client::{TIMEOUT_MS, connect, knock, reconnect};
use crate::names::said;
use crate::{Outcome, Test, check};

const RUNNING: &str = "running";
const STOPPED: &str = "stopped";
const FAILED: &str = "failed";

/// The tests of this module.
pub(crate) const TESTS: &[Test] = &[
    ("services: all are listed, started after what they need", order),
    ("services: one is stopped and started", stop_and_start),
    ("services: always, on-failure and never", policies),
    ("services: back-off grows up to the limit", backoff),
    ("services: what says that it cannot serve is not tried again", hopeless),
    ("services: clients connect again after a restart", rebind),
    ("services: changes are announced", events),
    ("services: a subscriber that takes nothing holds up nobody", slow_subscriber),
    ("services: a file system outlives the driver of its disk", disk),
];

fn error(error: ServiceManagerError) -> String {
    error.to_string()
}

fn record(namespace: &mut Namespace, name: &str) -> Result<ServiceRecord, String> {
    let found = list(namespace).map_err(error)?.into_iter().find(|record| text(&record.name) == name);
    found.ok_or_else(|| format!("no service `{name}` is listed"))
}

/// Waits until the service is in the state; returns its record.
fn wait_for(namespace: &mut Namespace, name: &str, state: &str) -> Result<ServiceRecord, String> {
    let deadline = Deadline::after_ms(TIMEOUT_MS);
    loop {
        let found = record(namespace, name)?;
        let word = services::state_word(found.state);
        if word == state {
            return Ok(found);
        }
        check!(!deadline.has_passed(), "`{name}` is {word}, not {state}: {}", text(&found.reason));
        sip::thread::sleep(Deadline::after_ms(1));
    }
}

/// Waits until the service that fails at every start is given up, so that it does not affect counts.
pub(crate) fn settle(namespace: &mut Namespace) -> Outcome {
    wait_for(namespace, "check-limited", FAILED).map(drop)
}

/// Waits until the service runs as another process than before.
fn wait_restarted(namespace: &mut Namespace, name: &str, before: u64) -> Result<ServiceRecord, String> {
    let deadline = Deadline::after_ms(TIMEOUT_MS);
    loop {
        let found = wait_for(namespace, name, RUNNING)?;
        if found.process != before {
            return Ok(found);
        }
        check!(!deadline.has_passed(), "`{name}` was not started again");
        sip::thread::sleep(Deadline::after_ms(1));
    }
}

/// Sends a command that kills the provider.
fn order_end(namespace: &mut Namespace, path: &str, status: u32, order: &str) -> Outcome {
    let knocker = reconnect(namespace, path)?;
    check!(knock(knocker, status, order).is_err(), "{path} survived `{order}`");
    Ok(())
}

fn order(namespace: &mut Namespace) -> Outcome {
    let all = list(namespace).map_err(error)?;
    let names: Vec<String> = all.iter().map(|record| text(&record.name)).collect();
    let place = |name: &str| names.iter().position(|other| other == name).ok_or_else(|| format!("no `{name}`"));
    check!(place("needed")? < place("needs-other")?, "the order is {names:?}");
    check!(place("services-check")? + 1 == names.len(), "the suite is not last: {names:?}");
    let (needed, needs) = (&all[place("needed")?], &all[place("needs-other")?]);
    check!(needed.started_ns < needs.started_ns, "`needed` was started after `needs-other`");
    check!(text(&needs.path) == "/check/needs-other", "the path is {}", text(&needs.path));
    check!(text(&needs.program) == "check-always" && needs.restarts == 0, "{} restarts", needs.restarts);
    let missing = start(namespace, "nothing");
    check!(missing == Err(ServiceManagerError::Service(ServiceError::NotFound)), "{missing:?}");
    Ok(())
}

fn stop_and_start(namespace: &mut Namespace) -> Outcome {
    let again = start(namespace, "needed");
    check!(again == Err(ServiceManagerError::Service(ServiceError::AlreadyRunning)), "{again:?}");
    for _ in 0..10 {
        let before = wait_for(namespace, "needed", RUNNING)?;
        stop(namespace, "needed").map_err(error)?;
        let stopped = wait_for(namespace, "needed", STOPPED)?;
        check!(stopped.process == 0, "a stopped service has process {}", stopped.process);
        check!(connect(namespace, "/check/needed").is_err(), "a stopped service serves");
        let again = stop(namespace, "needed");
        check!(again == Err(ServiceManagerError::Service(ServiceError::NotRunning)), "{again:?}");
        start(namespace, "needed").map_err(error)?;
        let after = wait_for(namespace, "needed", RUNNING)?;
        check!(after.process != before.process, "the same process runs");
        drop(reconnect(namespace, "/check/needed")?);
    }
    Ok(())
}

fn policies(namespace: &mut Namespace) -> Outcome {
    for (status, order) in [(0, "exit"), (3, "exit"), (0, "panic")] {
        let before = wait_for(namespace, "check-always", RUNNING)?;
        order_end(namespace, "/check/check-always", status, order)?;
        let after = wait_restarted(namespace, "check-always", before.process)?;
        check!(after.restarts > before.restarts, "the restart is not counted");
    }
    let before = wait_for(namespace, "check-on-failure", RUNNING)?;
    order_end(namespace, "/check/check-on-failure", 0, "panic")?;
    wait_restarted(namespace, "check-on-failure", before.process)?;
    order_end(namespace, "/check/check-on-failure", 0, "exit")?;
    wait_for(namespace, "check-on-failure", STOPPED)?;
    start(namespace, "check-on-failure").map_err(error)?;
    wait_for(namespace, "check-on-failure", RUNNING)?;
    for (status, end) in [(0, STOPPED), (5, FAILED)] {
        order_end(namespace, "/check/check-never", status, "exit")?;
        let ended = wait_for(namespace, "check-never", end)?;
        let reason = text(&ended.reason);
        check!(reason.contains(&format!("status {status}")), "the reason is `{reason}`");
        start(namespace, "check-never").map_err(error)?;
        wait_for(namespace, "check-never", RUNNING)?;
    }
    Ok(())
}

fn backoff(namespace: &mut Namespace) -> Outcome {
    let before = wait_for(namespace, "check-limited", FAILED)?;
    start(namespace, "check-limited").map_err(error)?;
    let deadline = Deadline::after_ms(TIMEOUT_MS);
    let mut starts: Vec<u64> = Vec::new();
    let last = loop {
        let now = record(namespace, "check-limited")?;
        if now.started_ns != before.started_ns && starts.last() != Some(&now.started_ns) {
            starts.push(now.started_ns);
        }
        if services::state_word(now.state) == FAILED && now.restarts == before.restarts + 4 {
            break now;
        }
        check!(!deadline.has_passed(), "{} starts, and not given up", starts.len());
        sip::thread::sleep(Deadline::after_ms(1));
    };
    let waits: Vec<u64> = starts.windows(2).map(|pair| (pair[1] - pair[0]) / 1_000_000).collect();
    check!(waits.len() == 3, "waits of {waits:?} ms");
    for (wait, least) in waits.iter().zip([40, 80, 160]) {
        check!(*wait >= least, "waits of {waits:?} ms");
    }
    let reason = text(&last.reason);
    check!(reason.contains("status 1"), "the reason is `{reason}`");
    Ok(())
}

fn hopeless(namespace: &mut Namespace) -> Outcome {
    let before = wait_for(namespace, "hopeless", FAILED)?;
    check!(before.restarts == 0, "{} restarts", before.restarts);
    check!(text(&before.reason) == "it was told to refuse", "the reason is `{}`", text(&before.reason));
    Ok(())
}

fn rebind(namespace: &mut Namespace) -> Outcome {
    for _ in 0..20 {
        let before = wait_for(namespace, "check-on-failure", RUNNING)?;
        let knocker = reconnect(namespace, "/check/check-on-failure")?;
        let stopped = sip::process::stop_any(before.process, StopReason::Requested);
        stopped.map_err(|status| status.text().to_string())?;
        check!(knock(knocker, 1, "hello").is_err(), "the dead answers");
        // A waiting client is connected without further action.
        let knocker = reconnect(namespace, "/check/check-on-failure")?;
        drop(knock(knocker, 2, "hello").map_err(said)?);
    }
    Ok(())
}

type Events = service_events::Imp<service_events::states::Ready>;

fn subscribe(namespace: &mut Namespace) -> Result<Events, String> {
    let manager = namespace.open(services::PATH, service_manager::new_channel, |importer| match importer.receive() {
        service_manager::ImpStart::Success { next } => Ok(next),
        _ => Err(Status::Refused.into()),
    });
    let (importer, exporter) = service_events::new_channel().map_err(|status| status.text().to_string())?;
    match manager.map_err(said)?.subscribe(exporter).receive() {
        ImpReadyAfterSubscribe::Done { .. } => Ok(importer),
        _ => Err("the subscription was refused".to_string()),
    }
}

/// Receives events until the service is in the state with this name.
fn hear(mut events: Events, name: &str, state: &str) -> Result<Events, String> {
    loop {
        match events.receive_by(Deadline::after_ms(TIMEOUT_MS)) {
            Ok(ImpReady::Changed { name: changed, state: entered, next, .. }) => {
                events = next.next();
                if text(&changed) == name && services::state_word(entered) == state {
                    return Ok(events);
                }
            }
            Ok(ImpReady::ChannelClosed(_)) => return Err("the subscription was closed".to_string()),
            Err(_) => return Err(format!("nobody told that `{name}` is {state}")),
        }
    }
}

/// Makes the manager detect dead subscribers, which it does when it notifies them.
fn stir(namespace: &mut Namespace) -> Outcome {
    stop(namespace, "needed").map_err(error)?;
    wait_for(namespace, "needed", STOPPED)?;
    start(namespace, "needed").map_err(error)?;
    wait_for(namespace, "needed", RUNNING).map(drop)
}

fn events(namespace: &mut Namespace) -> Outcome {
    let mut events = subscribe(namespace)?;
    stop(namespace, "needed").map_err(error)?;
    events = hear(events, "needed", STOPPED)?;
    start(namespace, "needed").map_err(error)?;
    for state in ["starting", RUNNING] {
        events = hear(events, "needed", state)?;
    }
    order_end(namespace, "/check/check-always", 1, "exit")?;
    for state in ["backing off", "starting", RUNNING] {
        events = hear(events, "check-always", state)?;
    }
    drop(events);
    stir(namespace)
}

fn slow_subscriber(namespace: &mut Namespace) -> Outcome {
    let slow = subscribe(namespace)?;
    let quick = subscribe(namespace)?;
    stop(namespace, "needed").map_err(error)?;
    let quick = hear(quick, "needed", STOPPED)?;
    start(namespace, "needed").map_err(error)?;
    let quick = hear(quick, "needed", RUNNING)?;
    drop((slow, quick));
    stir(namespace)
}

fn disk(namespace: &mut Namespace) -> Outcome {
    if record(namespace, "disk0").is_err() {
        // A machine without a disk has no file system either.
        return Ok(());
    }
    for _ in 0..5 {
        let (driver, files) = (wait_for(namespace, "disk0", RUNNING)?, wait_for(namespace, "disk0-fs", RUNNING)?);
        let names = namespace.names("/fs/disk0").map_err(said)?;
        let stopped = sip::process::stop_any(driver.process, StopReason::Requested);
        stopped.map_err(|status| status.text().to_string())?;
        wait_restarted(namespace, "disk0", driver.process)?;
        let again = namespace.names("/fs/disk0").map_err(said)?;
        check!(again == names, "the disk holds other names than before");
        let still = record(namespace, "disk0-fs")?;
        check!(still.process == files.process, "the file system ended with the driver of its disk");
    }
    // It reaches the driver over as many channels as it has needed since; a new one starts as the first did.
    let files = wait_for(namespace, "disk0-fs", RUNNING)?;
    sip::process::stop_any(files.process, StopReason::Requested).map_err(|status| status.text().to_string())?;
    wait_restarted(namespace, "disk0-fs", files.process)?;
    namespace.names("/fs/disk0").map_err(said)?;
    Ok(())
}
