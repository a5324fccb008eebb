//! The scheduler: no thread monopolizes a processor, and none starves.

use alloc::string::ToString;
use alloc::vec::Vec;

use sip::{Deadline, diagnostics, thread, time};

use crate::job::{channel, citizen, end_of, stop_running};
use crate::{Outcome, Settings, Test, check, function};

/// The tests of this module.
pub(crate) fn tests() -> Vec<Test> {
    alloc::vec![
        function("scheduler: an endless loop is preempted", endless_loops),
        function("scheduler: a message pair beside hogs is not starved", pair_beside_hogs),
        function("scheduler: hogs beside a message pair are not starved", hogs_beside_pair),
        function("scheduler: a sleeper beside hogs wakes in time", sleeper_beside_hogs),
        function("scheduler: others run while a long chain is freed", |_| citizen("free-chains").succeed()),
    ]
}

/// More than one for each processor.
fn hogs(act: &str) -> Result<Vec<sip::process::Child>, alloc::string::String> {
    (0..2 * thread::processor_count()).map(|_| citizen(act).start()).collect()
}

fn stop_all(children: &[sip::process::Child]) -> Outcome {
    children.iter().try_for_each(stop_running)
}

fn endless_loops(_: &Settings) -> Outcome {
    for act in ["spin", "spin-in-kernel"] {
        let hogs = hogs(act)?;
        for number in 0..20 {
            citizen("exit").number(number).run()?;
        }
        stop_all(&hogs)?;
    }
    Ok(())
}

/// Number of calls between a pair of processes in 300 ms.
fn pair_beside_hogs(settings: &Settings) -> Outcome {
    let most = if settings.domains || settings.own_domains { 60_000 } else { 5000 };
    for act in ["spin", "spin-in-kernel"] {
        let hogs = hogs(act)?;
        let (importer, exporter) = channel()?;
        let server = citizen("serve").server(exporter).start()?;
        let start = time::monotonic();
        let client = citizen("ask-often").number(20_000).client(importer).start()?;
        end_of(&client)?;
        let milliseconds = (time::monotonic() - start) / 1_000_000;
        end_of(&server)?;
        stop_all(&hogs)?;
        // Each quantum of the pair fits thousands of calls; one per quantum would take minutes.
        check!(milliseconds < most, "20,000 questions beside {act} took {milliseconds} ms");
    }
    Ok(())
}

fn hogs_beside_pair(_: &Settings) -> Outcome {
    let hogs = hogs("spin")?;
    let mut pairs = Vec::new();
    for _ in 0..2 * thread::processor_count() {
        let (importer, exporter) = channel()?;
        pairs.push((citizen("serve").server(exporter).start()?, citizen("ask-often").client(importer).start()?));
    }
    let start = sip::debug::cycles();
    thread::sleep(Deadline::after_ms(400));
    let all = sip::debug::cycles() - start;
    let records = diagnostics::processes().map_err(|status| status.text().to_string())?;
    let mut slowest = u64::MAX;
    for hog in &hogs {
        let id = hog.id().map_err(|status| status.text().to_string())?;
        let record = records.iter().find(|record| record.id == id).ok_or("a hog is gone")?;
        slowest = slowest.min(record.cycles);
    }
    drop(records);
    stop_all(&hogs)?;
    for (server, client) in &pairs {
        stop_running(client)?;
        end_of(server)?;
    }
    // A third of the processors' time would be fair to each; below a thirtieth is starvation.
    check!(slowest > all / 60, "a hog had {} thousandths of a processor", slowest * 1000 / all);
    Ok(())
}

fn sleeper_beside_hogs(_: &Settings) -> Outcome {
    let hogs = hogs("spin")?;
    let mut worst = 0;
    for _ in 0..10 {
        let start = time::monotonic();
        thread::sleep(Deadline::after_ms(5));
        worst = worst.max((time::monotonic() - start) / 1_000_000);
    }
    stop_all(&hogs)?;
    // Hogs do not end, so a sleeper that has to wait for them does not wake at all. The host has other work, too.
    check!(worst < 2_000, "5 ms of sleep beside hogs took {worst} ms");
    Ok(())
}
