//! Attacks from hardware domains, on a system whose programs run in them (parameter `domains`).

use alloc::format;
use alloc::vec::Vec;

use conformance_contract::errand;
use errand::ExpReady;
use sip::process::EpitaphKind;
use sip::{Deadline, Status, log, thread};

use crate::job::{attacker, channel, citizen, end_of, stop_running};
use crate::{Outcome, Settings, Test, check, function};

/// The attacker's instructions, by number.
const INSTRUCTIONS: [&str; 45] = [
    "cli",
    "sti",
    "hlt",
    "in",
    "out",
    "insb",
    "read cr0",
    "write cr3",
    "read cr4",
    "write cr4",
    "write dr7",
    "read dr7",
    "rdmsr",
    "wrmsr",
    "swapgs",
    "sysret",
    "sysenter",
    "sysexit",
    "int 0x80",
    "int 14",
    "int 2",
    "int 0xf0",
    "int 0xf4",
    "int3",
    "int1",
    "lgdt",
    "lidt",
    "ltr",
    "lldt",
    "invlpg",
    "wbinvd",
    "invd",
    "clts",
    "lmsw",
    "rdpmc",
    "call far to the kernel's code",
    "ret far to the kernel's code",
    "load SS with the kernel's",
    "load DS with the kernel's",
    "load GS with the task state",
    "wrfsbase",
    "wrgsbase",
    "xsetbv",
    "iret to null code",
    "the trap flag",
];
/// Its addresses.
const ADDRESSES: u64 = 18;
/// Numbers of functions that do not exist; 0 stands for the highest.
const NUMBERS: [u64; 4] = [112, 127, 1 << 32, 0];
/// Processes beyond the domains of the machine.
const TOO_MANY: usize = 1_100;

/// The tests of this module; none where programs do not run in domains.
pub(crate) fn tests(settings: &Settings) -> Vec<Test> {
    if !settings.domains {
        return Vec::new();
    }
    alloc::vec![
        function("domain: no privileged instruction", instructions),
        function("domain: no memory but its own is read", |_| addresses("domain-read")),
        function("domain: no memory but its own is written", |_| addresses("domain-write")),
        function("domain: no code but its own is run", |_| addresses("domain-jump")),
        function("domain: a function that does not exist", numbers),
        function("domain: any state of the processor at a call", |_| attacker("domain-survives").succeed()),
        function("domain: a message buffer that changes during calls", |_| attacker("domain-race").succeed()),
        function("domain: a block that its sender still writes to", write_after_send),
        function("domain: more processes than domains", too_many),
    ]
}

fn instructions(_: &Settings) -> Outcome {
    for (number, what) in (0..).zip(INSTRUCTIONS) {
        let epitaph = attacker("domain-instruction").number(number).run().map_err(|why| format!("{what}: {why}"))?;
        check!(epitaph.kind == EpitaphKind::Faulted, "{what}: {epitaph}");
    }
    log!("{} instructions were refused", INSTRUCTIONS.len());
    Ok(())
}

fn addresses(act: &str) -> Outcome {
    for number in 0..ADDRESSES {
        let epitaph = attacker(act).number(number).run()?;
        let is_ended = matches!(epitaph.kind, EpitaphKind::Faulted | EpitaphKind::StackOverflow);
        check!(is_ended, "address {number}: {epitaph}");
    }
    Ok(())
}

fn numbers(_: &Settings) -> Outcome {
    for number in NUMBERS {
        let epitaph = attacker("domain-number").number(number).run()?;
        let is_told = epitaph.kind == EpitaphKind::Faulted && epitaph.text.contains("which does not exist");
        check!(is_told, "function {number}: {epitaph}");
    }
    Ok(())
}

/// What is received does not change any more: a small block is a copy, and a large one has left the sender's domain.
fn write_after_send(_: &Settings) -> Outcome {
    for (bytes, is_remapped) in [(64, false), (2048, false), (4096, true), (1 << 20, true)] {
        let (importer, exporter) = channel()?;
        let sender = attacker("domain-write-after-send").number(bytes).client(importer).start()?;
        let ExpReady::Give { data, .. } = exporter.receive() else { return Err("the block is lost".into()) };
        let before = data.to_vec();
        check!(before.len() as u64 == bytes, "{} bytes came, not {bytes}", before.len());
        thread::sleep(Deadline::after_ms(30));
        check!(data[..] == before[..], "a block of {bytes} bytes changed after it was received");
        if is_remapped {
            let epitaph = end_of(&sender)?;
            let is_caught = epitaph.kind == EpitaphKind::Faulted && epitaph.text.contains("accessed address");
            check!(is_caught, "after {bytes} bytes: {epitaph}");
        } else {
            stop_running(&sender)?;
        }
    }
    Ok(())
}

/// The machine has 1,024 domains: one process more is refused, and all others live on.
fn too_many(_: &Settings) -> Outcome {
    let mut crowd = Vec::new();
    let refused = loop {
        match citizen("sleep").start() {
            Ok(child) => crowd.push(child),
            Err(why) => break why,
        }
        check!(crowd.len() < TOO_MANY, "there are {} processes", crowd.len());
    };
    check!(refused.contains(Status::Exhausted.text()), "{refused}");
    check!(crowd.len() > 900, "only {} processes: {refused}", crowd.len());
    for child in &crowd {
        stop_running(child).map_err(|why| format!("of {}: {why}", crowd.len()))?;
    }
    Ok(())
}
