//! Accounts: growth of the kernel's memory while a program calls a function is charged to that program.

use alloc::format;
use alloc::string::String;

use conformance_contract::errand::ImpReadyAfterCall;
use sip::process::Child;
use sip::{Deadline, diagnostics, thread};

use crate::job::{ATTACKER, Job, VICTIM, channel, end_of};
use crate::{Body, Outcome, Settings, Test, check};

/// Uncharged growth: chunks of free slots, the suite's own blocks, stacks of measured threads.
const SLACK_BYTES: u64 = 400 * 1024;
/// Tolerance as a fraction of the growth: 1 / this.
const PART: u64 = 20;
/// Duration without changes in a settled system, and timeout for that.
const SETTLED_MS: u64 = 10;
const SETTLED_WITHIN_MS: u64 = 2_000;

/// The tests of this module: one for each function of the table.
pub(crate) fn tests() -> alloc::vec::Vec<Test> {
    let functions = sip::abi::FUNCTIONS.iter().enumerate();
    let test = |(number, function): (usize, &sip::abi::Function)| Test {
        name: format!("account: {}", function.name),
        body: Body::AbiFunction(is_charged, number),
    };
    functions.map(test).collect()
}

/// Memory allocated by the kernel, for itself and for programs.
fn in_use() -> Result<u64, String> {
    let counters = diagnostics::counters().map_err(|status| format!("the counters: {}", status.text()))?;
    let of = |name: &str| counters.iter().find(|record| diagnostics::name(&record.name) == name);
    let value = |name: &str| of(name).map(|record| record.value).ok_or_else(|| format!("there is no counter `{name}`"));
    Ok(value("arena bytes")? + value("kernel heap bytes")?)
}

/// The same, once it no longer changes: services may still be starting.
fn settled_in_use() -> Result<u64, String> {
    let deadline = Deadline::after_ms(SETTLED_WITHIN_MS);
    let mut before = in_use()?;
    loop {
        thread::sleep(Deadline::after_ms(SETTLED_MS));
        let now = in_use()?;
        if now == before || deadline.has_passed() {
            return Ok(now);
        }
        before = now;
    }
}

/// Memory charged to a program and its children.
fn charged(child: &Child) -> Result<u64, String> {
    let id = child.id().map_err(|status| format!("its process id: {}", status.text()))?;
    let records = diagnostics::processes().map_err(|status| format!("the processes: {}", status.text()))?;
    let members = records.iter().filter(|record| record.id == id || record.parent == id);
    Ok(members.map(|record| record.memory_bytes + record.block_bytes + record.kernel_bytes).sum())
}

fn is_charged(_: &Settings, number: usize) -> Outcome {
    let (importer, exporter) = channel()?;
    // The one function that keeps memory and needs a permission.
    let program = if sip::abi::FUNCTIONS[number].name == "stream_start" { VICTIM } else { ATTACKER };
    let child = Job::new(program, "account").number(number as u64).server(exporter).start()?;
    let ask = |importer: conformance_contract::errand::Imp<conformance_contract::errand::states::Ready>| match importer
        .call(0)
        .receive()
    {
        ImpReadyAfterCall::Answer { next, .. } => Ok(next),
        ImpReadyAfterCall::ChannelClosed(_) => Err(format!("it ended: {:?}", end_of(&child))),
    };
    let importer = ask(importer)?;
    let before = (settled_in_use()?, charged(&child)?);
    let importer = ask(importer)?;
    let after = (charged(&child)?, in_use()?);
    let importer = importer.call(0);
    let (grown, charged) = (after.1.saturating_sub(before.0), after.0.saturating_sub(before.1));
    let epitaph = end_of(&child)?;
    drop(importer);
    check!(epitaph.is_success(), "{epitaph}");
    check!(
        grown <= charged + charged / PART + SLACK_BYTES,
        "the kernel's memory grew by {} KiB, and {} KiB were charged",
        grown / 1024,
        charged / 1024
    );
    Ok(())
}
