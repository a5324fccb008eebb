//! Attacks from hardware domains, on a system whose programs run in them (parameter `domains`).

use alloc::format;
use alloc::vec::Vec;

use conformance_contract::errand;
use errand::ExpReady;
use sip::process::EpitaphKind;
use sip::{Deadline, Status, log, thread};

use crate::host_calls::calls_allowed;
use crate::job::{attacker, channel, citizen, end_of, stop, stop_running};
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
const NUMBERS: [u64; 4] = [sip::abi::FUNCTIONS.len() as u64, 127, 1 << 32, 0];
/// Processes beyond the domains of the machine.
const TOO_MANY: usize = 1_100;

/// The tests of this module; none where programs do not run in domains that contain any code.
pub(crate) fn tests(settings: &Settings) -> Vec<Test> {
    if !settings.domains {
        return Vec::new();
    }
    let mut tests = alloc::vec![
        function("domain: no privileged instruction", instructions),
        function("domain: no memory but its own is read", |_| addresses("domain-read")),
        function("domain: no memory but its own is written", |_| addresses("domain-write")),
        function("domain: no code but its own is run", |_| addresses("domain-jump")),
        function("domain: a function that does not exist", numbers),
        function("domain: any state of the processor at a call", |_| attacker("domain-survives").succeed()),
        function("domain: a message buffer that changes during calls", |_| attacker("domain-race").succeed()),
        function("domain: a block that its sender still writes to", |_| {
            blocks_that_change("domain-write-after-send", "accessed address")
        }),
        function("domain: nontemporal stores before a block is sent", streaming_stores),
    ];
    if settings.own_domains {
        tests.push(function("domain: more processes than domains", too_many));
    }
    if is_hosted() {
        tests.extend([
            function("domain: no system call of the host but five", host_calls),
            function("domain: who cannot be interrupted ends", deaf),
            function("domain: whoever waits where the mapper does takes no wake from it", |_| {
                attacker("domain-stolen-wakes").succeed()
            }),
            function("domain: a jump into the stub harms nobody else", stub),
            function("domain: a broken way out harms nobody else", no_way_out),
            function("domain: nothing is left in a thread for the next program", left_overs),
            function("domain: no program that had the process before is left in it", other_images),
            function("domain: a forged exit keeps nothing mapped", |_| {
                // The runner may take the answer to the forged call for that to its fault, and resume where it was forged.
                blocks_that_change("domain-forged-exit", "address")
            }),
        ]);
    }
    tests
}

/// Whether the domains are processes of a host.
fn is_hosted() -> bool {
    matches!(calls_allowed(), Ok(Some(_)))
}

/// Numbers of the host's system calls, and the five that a runner may make: sigprocmask, sigreturn, sched_yield, sigaltstack and
/// futex.
const HOST_CALLS: core::ops::Range<u64> = 0..470;
const LEFT: [u64; 5] = [14, SIGRETURN, 24, 131, FUTEX];
const SIGRETURN: u64 = 15;
const FUTEX: u64 = 202;
/// Those that Linux keeps for its probes: uretprobe and uprobe.
const PROBES: [u64; 2] = [335, 336];

fn host_calls(_: &Settings) -> Outcome {
    // Those of the x32 ABI, too.
    for number in HOST_CALLS.filter(|number| !LEFT.contains(number)).chain([1 << 30, 1 << 30 | 202, 1 << 62]) {
        let epitaph = attacker("domain-host-call").number(number).run()?;
        let is_told = epitaph.text.contains("made a system call of the host");
        // Filters do not see what Linux keeps for its probes, which does nothing for anybody else.
        let is_ended = epitaph.kind == EpitaphKind::Faulted && is_told || PROBES.contains(&number);
        check!(is_ended, "system call {number}: {epitaph}");
    }
    // Those with arguments that are none.
    for number in [SIGRETURN, FUTEX] {
        let epitaph = attacker("domain-host-call").number(number).run()?;
        check!(epitaph.kind == EpitaphKind::Faulted, "system call {number}: {epitaph}");
    }
    Ok(())
}

/// A thread that sleeps in the host, or whose signals are blocked, is ended with its domain.
fn deaf(_: &Settings) -> Outcome {
    for act in ["domain-deaf", "domain-wait-of-host"] {
        let child = attacker(act).start()?;
        thread::sleep(Deadline::after_ms(50));
        if act == "domain-deaf" {
            let epitaph = end_of(&child)?;
            check!(epitaph.text.contains("its hardware domain ended"), "{act}: {epitaph}");
        } else {
            // A signal ends each wait, so that it can be stopped as any other.
            stop_running(&child)?;
        }
    }
    Ok(())
}

/// Offsets in the stub, which is somewhat longer than a thousand bytes.
const OFFSETS: core::ops::Range<u64> = 0..1300;
const APART: usize = 97;

fn stub(_: &Settings) -> Outcome {
    for offset in OFFSETS.step_by(APART) {
        // It may call the kernel, with any arguments, for ever, and end in any way.
        let child = attacker("domain-stub").number(offset).start()?;
        thread::sleep(Deadline::after_ms(20));
        stop(&child).map_err(|why| format!("offset {offset}: {why}"))?;
    }
    Ok(())
}

/// Ways to leave something in a thread, and programs at once afterwards: more than processes are kept.
const WAYS_TO_LEAVE: u64 = 6;
const AFTERWARDS: usize = 40;

/// Processes of domains are used again. What a program has left in the registers, the signal stack and mask, and the pages
/// of its thread, no other finds.
fn left_overs(_: &Settings) -> Outcome {
    for way in 0..WAYS_TO_LEAVE {
        for _ in 0..3 {
            let epitaph = attacker("domain-leave").number(way).run()?;
            check!(epitaph.kind == EpitaphKind::Exited, "way {way}: {epitaph}");
        }
        thread::sleep(Deadline::after_ms(20));
        let children: Result<Vec<_>, _> = (0..AFTERWARDS).map(|_| attacker("domain-look").start()).collect();
        for child in &children? {
            let epitaph = end_of(child)?;
            check!(epitaph.is_success(), "after way {way}: {epitaph}");
        }
    }
    Ok(())
}

/// The code of another program, which was mapped in the same process before, is not.
fn other_images(_: &Settings) -> Outcome {
    for round in 0..AFTERWARDS {
        // However many processes are kept, each is one's and then the other's.
        for _ in 0..round % 3 {
            citizen("code-page").run()?;
        }
        let page = citizen("code-page").run()?.status as u64;
        let epitaph = attacker("domain-read-code").number(page).run()?;
        let is_refused = epitaph.kind == EpitaphKind::Faulted && epitaph.text.contains("accessed address");
        check!(is_refused, "code at page {page:#x}: {epitaph}");
    }
    Ok(())
}

fn no_way_out(_: &Settings) -> Outcome {
    for number in 0..4 {
        let epitaph = attacker("domain-no-way-out").number(number).run()?;
        // What is in the exchange page is written anew by each call.
        let is_ended = number == 2 || matches!(epitaph.kind, EpitaphKind::Faulted | EpitaphKind::StackOverflow);
        check!(is_ended, "{number}: {epitaph}");
    }
    Ok(())
}

fn instructions(_: &Settings) -> Outcome {
    let is_hosted = is_hosted();
    for (number, what) in (0..).zip(INSTRUCTIONS) {
        let epitaph = attacker("domain-instruction").number(number).run().map_err(|why| format!("{what}: {why}"))?;
        // Linux lets its processes set these bases; the next call of the kernel shows what comes of it.
        let is_allowed = is_hosted && ["wrfsbase", "wrgsbase"].contains(&what);
        check!(is_allowed || epitaph.kind == EpitaphKind::Faulted, "{what}: {epitaph}");
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
/// The write to the block that left ends the sender, with `text` in its epitaph.
fn blocks_that_change(act: &'static str, text: &str) -> Outcome {
    for (bytes, is_remapped) in [(64, false), (2048, false), (4096, true), (1 << 20, true)] {
        let (importer, exporter) = channel()?;
        let sender = attacker(act).number(bytes).client(importer).start()?;
        let ExpReady::Give { data, .. } = exporter.receive() else { return Err("the block is lost".into()) };
        let before = data.to_vec();
        check!(before.len() as u64 == bytes, "{} bytes came, not {bytes}", before.len());
        thread::sleep(Deadline::after_ms(30));
        check!(data[..] == before[..], "a block of {bytes} bytes changed after it was received");
        if is_remapped {
            let epitaph = end_of(&sender)?;
            let is_caught = epitaph.kind == EpitaphKind::Faulted && epitaph.text.contains(text);
            check!(is_caught, "after {bytes} bytes: {epitaph}");
        } else {
            stop_running(&sender)?;
        }
    }
    Ok(())
}

/// What was stored before a block left is in it when it is received, even if the stores bypassed the caches.
fn streaming_stores(_: &Settings) -> Outcome {
    /// As the attacker has it.
    const STREAMED: u8 = 9;
    for round in 0..ROUNDS {
        for bytes in [64, 2048, 4096, 1 << 16] {
            let (importer, exporter) = channel()?;
            let sender = attacker("domain-streaming-stores").number(bytes).client(importer).start()?;
            let ExpReady::Give { data, .. } = exporter.receive() else { return Err("the block is lost".into()) };
            let old = data.iter().position(|&byte| byte != STREAMED);
            check!(old.is_none(), "in round {round} byte {old:?} of {bytes} was not there yet");
            check!(end_of(&sender)?.is_success(), "the sender of {bytes} bytes");
        }
    }
    Ok(())
}
const ROUNDS: usize = 20;

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
