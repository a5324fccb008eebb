//! Process lifecycle: exit statuses, waiting, stopping, closing handles, families.

use alloc::string::ToString;
use alloc::vec::Vec;

use conformance_contract::errand;
use errand::{ExpReady, ImpReadyAfterCall};
use sip::process::{EpitaphKind, StopReason};
use sip::{Deadline, Status, diagnostics, thread, time};

use crate::job::{attacker, channel, citizen, end_of, stop_running};
use crate::{Outcome, Settings, Test, check, function};

/// The tests of this module.
pub(crate) fn tests() -> Vec<Test> {
    alloc::vec![
        function("process: exit statuses", exit_statuses),
        function("process: wait ends at its deadline", wait_deadline),
        function("process: stopped while it sleeps, computes, calls, waits", stopped),
        function("process: never started", never_started),
        function("process: stopped before it starts", stopped_before_start),
        function("process: cannot start twice or be given more later", given_late),
        function("process: a released child goes on", released),
        function("process: children end with their parent", orphans),
        function("process: grandchildren end with a stopped parent", stopped_family),
        function("process: epitaphs are kept", epitaphs_kept),
        function("process: unknown program", unknown_program),
    ]
}

fn exit_statuses(_: &Settings) -> Outcome {
    for status in [0, 1, 2, 77, 255, 1000] {
        let epitaph = citizen("exit").number(status).run()?;
        check!(epitaph.kind == EpitaphKind::Exited, "kind {:?}", epitaph.kind);
        check!(epitaph.status == status as i32, "status {} of {status}", epitaph.status);
    }
    Ok(())
}

fn wait_deadline(_: &Settings) -> Outcome {
    let child = citizen("sleep").start()?;
    let start = time::monotonic();
    let answer = child.wait_until(Deadline::after_ms(10));
    let waited = (time::monotonic() - start) / 1_000_000;
    check!(answer == Err(Status::TimedOut), "the wait for a sleeper answered {answer:?}");
    check!((10..500).contains(&waited), "10 ms took {waited} ms");
    check!(child.wait_until(Deadline::PASSED) == Err(Status::TimedOut), "a deadline that has passed");
    stop_running(&child)?;
    let twice = (child.wait(), child.wait());
    check!(twice.0.is_ok() && twice.0 == twice.1, "an epitaph can be asked for again: {twice:?}");
    Ok(())
}

fn stopped(_: &Settings) -> Outcome {
    for act in ["sleep", "spin", "spin-in-kernel", "serve", "ask-often"] {
        for delay_us in [0, 50, 2000, 15_000] {
            let (importer, exporter) = channel()?;
            let mut job = citizen(act);
            let mut kept = (None, None);
            match act {
                "serve" => (job, kept.0) = (job.server(exporter), Some(importer)),
                "ask-often" => (job, kept.1) = (job.client(importer), Some(exporter)),
                _ => {}
            }
            let child = job.start()?;
            thread::sleep(Deadline::after_ns(delay_us * 1000));
            stop_running(&child)?;
        }
    }
    for (reason, word) in [(StopReason::Interrupted, "interrupted"), (StopReason::Shutdown, "shutdown")] {
        let child = citizen("sleep").start()?;
        child.stop(reason).map_err(|status| status.text().to_string())?;
        let epitaph = end_of(&child)?;
        check!(epitaph.text.contains(word), "the epitaph of a {word} child: {epitaph}");
        check!(epitaph.text.contains("conformance"), "the epitaph does not say who: {epitaph}");
    }
    Ok(())
}

fn never_started(_: &Settings) -> Outcome {
    let (importer, exporter) = channel()?;
    let child = citizen("serve").server(exporter).create()?;
    check!(child.wait_until(Deadline::after_ms(1)) == Err(Status::TimedOut), "a child that has not started");
    drop(child);
    // The endpoints given to it are closed.
    let ImpReadyAfterCall::ChannelClosed(_) = importer.call(1).receive() else {
        return Err("the endpoint of a child that was given up is open".into());
    };
    Ok(())
}

fn stopped_before_start(_: &Settings) -> Outcome {
    let child = citizen("exit").create()?;
    stop_running(&child)?;
    check!(child.start().is_err(), "a stopped child was started");
    Ok(())
}

fn given_late(_: &Settings) -> Outcome {
    let child = citizen("sleep").start()?;
    check!(child.id().is_ok_and(|id| id > 1), "the child's id");
    let (_importer, exporter) = channel()?;
    let child = match child.endpoint(1, exporter) {
        Err(Status::WrongState) => citizen("sleep").start()?,
        other => return Err(alloc::format!("an endpoint was given to a running child: {:?}", other.err())),
    };
    let late = child.parameter(0, "exit").err();
    check!(late == Some(Status::WrongState), "a parameter was given to a running child: {late:?}");
    // Both children's handles were closed by that, and they keep running: kill them by their number.
    for record in diagnostics::processes().map_err(|status| status.text().to_string())?.iter() {
        if diagnostics::name(&record.name) == "conformance-citizen" {
            sip::process::stop_any(record.id, StopReason::Requested).map_err(|status| status.text().to_string())?;
        }
    }
    Ok(())
}

fn released(_: &Settings) -> Outcome {
    let (importer, exporter) = channel()?;
    citizen("released-child").server(exporter).succeed()?;
    let ImpReadyAfterCall::Answer { value: 8, next } = importer.call(7).receive() else {
        return Err("a child that was released has ended with its parent".into());
    };
    drop(next);
    Ok(())
}

fn orphans(_: &Settings) -> Outcome {
    for ending in ["exit", "panic"] {
        let (importer, exporter) = channel()?;
        let parent = citizen("parent").number(5).ending(ending).client(importer).start()?;
        let ExpReady::Call { .. } = exporter.receive() else { return Err("the parent said nothing".into()) };
        end_of(&parent)?;
    }
    let text = diagnostics::epitaphs().map_err(|status| status.text().to_string())?;
    check!(text.contains("ended with its parent"), "the epitaphs do not tell of orphans: {text}");
    Ok(())
}

fn stopped_family(_: &Settings) -> Outcome {
    for delay_ms in [0, 1, 4, 10] {
        let parent = citizen("parent").number(6).ending("wait").start()?;
        thread::sleep(Deadline::after_ms(delay_ms));
        stop_running(&parent)?;
    }
    Ok(())
}

/// Times of traces and epitaphs are those of the last tick, which comes every 10 ms, and later on a busy host.
const TICK_NS: u64 = 500_000_000;

fn epitaphs_kept(_: &Settings) -> Outcome {
    let begun_ns = sip::time::monotonic().saturating_sub(TICK_NS);
    let child = attacker("read-null").start()?;
    let id = child.id().map_err(|status| status.text().to_string())?;
    let epitaph = end_of(&child)?;
    drop(child);
    let text = diagnostics::epitaphs().map_err(|status| status.text().to_string())?;
    let line = alloc::format!("conformance-attacker {}", epitaph.text);
    let known = text.lines().find_map(|known| known.strip_prefix(&alloc::format!("{id} "))).unwrap_or_default();
    let (time, rest) = known.split_once(' ').unwrap_or_default();
    check!(rest == line, "of the process {id} it says `{rest}` in place of `{line}`");
    let ended_ns: u64 = time.parse().map_err(|_| alloc::format!("`{time}` is no time"))?;
    let now_ns = sip::time::monotonic();
    check!((begun_ns..=now_ns).contains(&ended_ns), "{ended_ns} is not between {begun_ns} and {now_ns}");
    let trace = diagnostics::trace(id).map_err(|status| alloc::format!("the trace: {}", status.text()))?;
    let ended = trace.iter().any(|record| record.kind == diagnostics::TraceKind::Ended as u64);
    check!(ended, "the trace of an ended process does not tell of its end");
    let first = trace.first().map_or(0, |record| record.time_ns);
    check!((begun_ns..=now_ns).contains(&first), "the trace begins at {first}, not after {begun_ns}");
    Ok(())
}

fn unknown_program(_: &Settings) -> Outcome {
    let error = sip::process::create("no-such-program").err().ok_or("a program that is not there was created")?;
    check!(error.status == Status::NotFound, "{error}");
    let long = "x".repeat(600);
    check!(sip::process::create(&long).is_err(), "a name that does not fit");
    check!(sip::process::create("").is_err(), "an empty name");
    Ok(())
}
