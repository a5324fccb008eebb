//! Tests that start one program and check its exit: assertions of the program itself, and each kind of failure that
//! the kernel must detect.

use alloc::format;
use alloc::vec::Vec;

use sip::process::EpitaphKind;

use crate::job::{ATTACKER, CITIZEN, DEEP, Job, VICTIM};
use crate::{Body, Outcome, Test, check};

/// A program, and its required exit.
pub(crate) struct Ending {
    name: &'static str,
    program: &'static str,
    act: &'static str,
    number: u64,
    kind: EpitaphKind,
    says: &'static [&'static str],
}

const fn citizen(name: &'static str, act: &'static str) -> Ending {
    Ending { name, program: CITIZEN, act, number: 0, kind: EpitaphKind::Exited, says: &[] }
}

const fn attacker(name: &'static str, act: &'static str) -> Ending {
    Ending { name, program: ATTACKER, act, number: 0, kind: EpitaphKind::Exited, says: &[] }
}

const fn fault(name: &'static str, act: &'static str, says: &'static [&'static str]) -> Ending {
    Ending { name, program: ATTACKER, act, number: 0, kind: EpitaphKind::Faulted, says }
}

const fn overflow(name: &'static str, act: &'static str, says: &'static [&'static str]) -> Ending {
    Ending { name, program: ATTACKER, act, number: 0, kind: EpitaphKind::StackOverflow, says }
}

/// An act with large stacks, which ends well.
const fn deep(name: &'static str, act: &'static str) -> Ending {
    Ending { name, program: DEEP, act, number: 0, kind: EpitaphKind::Exited, says: &[] }
}

/// An act that goes past the end of a large stack.
const fn deep_overflow(name: &'static str, act: &'static str, says: &'static [&'static str]) -> Ending {
    Ending { name, program: DEEP, act, number: 0, kind: EpitaphKind::StackOverflow, says }
}

/// A message forbidden by the contract: the epitaph names message, state and contract.
const fn violation(name: &'static str, act: &'static str, says: &'static [&'static str]) -> Ending {
    Ending { name, program: ATTACKER, act, number: 0, kind: EpitaphKind::ContractViolation, says }
}

const ENDINGS: &[Ending] = &[
    citizen("mutex: many threads lose no update", "mutex"),
    citizen("event: one set wakes one waiter", "events"),
    citizen("thread: join gives the value", "join"),
    citizen("thread: sleepers wake in order", "sleep-order"),
    citizen("thread: yield takes turns", "yield-order"),
    citizen("deadline: a receive ends at its deadline", "deadlines"),
    citizen("wait set: each endpoint is announced once", "wait-set"),
    citizen("wait any: tells which is ready", "wait-any"),
    citizen("switch-receive: takes from either endpoint", "switch-receive"),
    citizen("debug sink: has the text of those that were given it", "debug-sink"),
    citizen("closed: shows after what was queued", "closed-after-queue"),
    citizen("quota: memory", "memory-quota"),
    citizen("quota: blocks", "block-quota"),
    citizen("quota: attached blocks are charged", "attached-block-quota"),
    citizen("quota: handles", "handle-quota"),
    citizen("quota: channels", "channel-quota"),
    citizen("quota: children", "child-quota"),
    citizen("quota: 20,000 threads", "thread-quota"),
    Ending {
        name: "quota: a heap that cannot grow ends its process alone",
        program: CITIZEN,
        act: "heap-quota",
        number: 0,
        kind: EpitaphKind::Panicked,
        says: &["memory allocation"],
    },
    citizen("death: holding everything", "hold-everything"),
    Ending {
        name: "death: a panic's message is in the epitaph",
        program: CITIZEN,
        act: "panic",
        number: 4711,
        kind: EpitaphKind::Panicked,
        says: &["the reason is 4711", "lib.rs"],
    },
    fault("code: a write to it faults", "write-code", &["accessed address"]),
    fault("code: a write to constants faults", "write-constants", &["accessed address"]),
    fault("code: heap pages do not execute", "execute-heap", &["jumped to"]),
    fault("code: the stack does not execute", "execute-stack", &["jumped to"]),
    fault("code: blocks do not execute", "execute-block", &["jumped to"]),
    fault("fault: null read", "read-null", &["accessed address 0x0 at conformance-attacker+"]),
    fault("fault: null write", "write-null", &["accessed address 0x0 at conformance-attacker+"]),
    fault("fault: wild read", "read-wild", &["accessed address"]),
    fault("fault: a window without pages", "read-window", &["accessed address"]),
    fault("fault: behind the pages of a window", "write-behind-window", &["accessed address"]),
    fault("fault: a window without pages, used before", "read-window-of-no-pages-again", &["accessed address"]),
    fault("fault: behind the pages of a window, used before", "write-behind-window-again", &["accessed address"]),
    fault("fault: a window that was given up", "read-freed-window", &["accessed address"]),
    fault("code: pages of a window do not execute", "jump-window", &["jumped to"]),
    fault("fault: wild jump", "jump-wild", &["jumped to"]),
    fault("fault: jump to null", "jump-null", &["jumped to"]),
    fault("fault: a jump outside the canonical addresses", "jump-noncanonical", &[]),
    fault("fault: an undefined instruction", "undefined-instruction", &["bad instruction"]),
    fault("fault: divide by zero", "divide-by-zero", &["divided by zero"]),
    fault("fault: on a second thread", "fault-on-thread", &["accessed address 0x0"]),
    fault("fault: with a stack pointer that leads nowhere", "fault-without-stack", &[]),
    overflow("stack: endless recursion", "recurse", &["stack"]),
    overflow("stack: one frame that is too big", "big-frame", &["stack"]),
    overflow("stack: a kernel call with the stack used up", "call-at-stack-end", &["called the kernel"]),
    overflow("stack: recursion on a second thread", "recurse-on-thread", &["stack"]),
    overflow("stack: recursion into the kernel", "recurse-into-kernel", &["stack"]),
    deep("stack: large ones, of two threads at once, are used to their ends", "use-stacks"),
    deep("stack: what large ones have beyond the usual size is charged", "stack-quota"),
    deep_overflow("stack: endless recursion on a large one", "recurse", &["used up its stack"]),
    deep_overflow("stack: a kernel call with a large one used up", "call-at-stack-end", &["called the kernel"]),
    deep_overflow("stack: recursion on a large one of a second thread", "recurse-on-thread", &["stack"]),
    deep_overflow("stack: recursion into the kernel on a large one", "recurse-into-kernel", &["stack"]),
    violation("contract: out of state", "send-out-of-state", &["Answer", "READY", "Errand"]),
    violation("contract: twice in a row", "send-twice-in-a-row", &["Call", "READY after Call", "Errand"]),
    violation("contract: a message that does not exist", "send-unknown", &["message 999", "READY", "Errand"]),
    violation("contract: wrong direction", "send-wrong-direction", &["Call", "READY", "Errand", "direction"]),
    violation("contract: wrong shape", "send-wrong-shape", &["Call", "READY", "Errand", "arguments"]),
    violation("contract: scalars for a block", "send-scalars-for-block", &["Give", "READY", "Errand", "arguments"]),
    violation("contract: a bool of 2", "send-bad-bool", &["Mark", "READY", "Errand", "value"]),
    violation("contract: an enum out of range", "send-bad-enum", &["Mark", "READY", "Errand", "value"]),
    violation("contract: an unknown flag", "send-bad-flags", &["Mark", "READY", "Errand", "value"]),
    violation("block: twice in one message", "send-block-twice-in-one", &["GiveTwo", "Errand", "does not own"]),
    violation("block: twice in two messages", "send-block-twice-in-two", &["Give", "Errand", "does not own"]),
    violation("block: one that was freed", "send-freed-block", &["Give", "Errand", "does not own"]),
    violation("block: a forged handle", "send-forged-block", &["Give", "Errand", "does not own"]),
    violation("block: of another type", "send-block-of-other-type", &["Give", "Errand", "another type"]),
    violation("block: a lent one as its own", "send-lent-as-own", &["Give", "Errand", "lent block"]),
    violation("block: an endpoint's handle", "send-endpoint-as-block", &["Give", "Errand", "does not own"]),
    violation(
        "loan: returns what was not lent",
        "return-not-lent",
        &["Returned", "Errand", "not lent over this channel"],
    ),
    violation(
        "loan: returns over another channel",
        "return-elsewhere",
        &["Returned", "Errand", "not lent over this channel"],
    ),
    violation("loan: lends on too deep", "lend-too-deep", &["Lend", "Errand", "too often"]),
    violation("endpoint: through its own channel", "pass-own-channel", &["Pass", "Errand", "very channel"]),
    violation("endpoint: its own peer", "pass-own-peer", &["Pass", "Errand"]),
    violation("endpoint: in another state", "pass-wrong-state", &["Pass", "Errand", "state"]),
    violation("endpoint: the wrong end", "pass-wrong-end", &["Pass", "Errand", "side"]),
    violation("endpoint: of another contract", "pass-wrong-contract", &["Pass", "Errand", "contract"]),
    violation("endpoint: whose turn it is not", "pass-any-not-its-turn", &["PassAny", "Errand", "turn"]),
    violation("endpoint: twice", "pass-twice", &["Pass", "Errand", "does not own"]),
    violation("endpoint: with a loan out", "pass-with-loan", &["PassAny", "Errand"]),
    violation("endpoint: a forged handle", "pass-forged", &["Pass", "Errand", "does not own"]),
    attacker("block: split, attach, detach and their limits", "block-operations"),
    attacker("block: a freed loan goes home", "free-loan"),
    attacker("block: a loan cannot be taken apart", "take-loan-apart"),
    attacker("handle: closed ones are refused everywhere", "stale-handles"),
    attacker("handle: forged ones are refused everywhere", "forged-handles"),
    attacker("handle: another process's are refused everywhere", "foreign-handles"),
    attacker("handle: of the wrong kind are refused everywhere", "wrong-kind-handles"),
    attacker("permission: functions that need one are refused", "without-permission"),
    attacker("thread: only code can be an entry", "thread-entries"),
    attacker("thread: two joins of one thread", "double-join"),
    attacker("memory: only whole allocations can be freed", "memory-claims"),
    attacker("mutex: only its holder releases it", "mutex-claims"),
    attacker("mutex: of a thread that ended", "mutex-of-dead-thread"),
    attacker("mutex: contended, wakes each that waits", "mutex-contended"),
    attacker("loan: passes while others are charged anew", "loans-settled"),
    attacker("wait any: passes on the wake-up that it does not use", "wait-any-shared"),
    attacker("wait set: endpoints that are not in it", "wait-set-strangers"),
    attacker("wait set: several keys of one wait", "wait-set-several-keys"),
    attacker("wait set: closed with endpoints in it", "wait-set-closed-full"),
    attacker("wait set: alerts", "wait-set-alerts"),
    attacker("wait set: many threads wait for it", "wait-set-many-waiters"),
    attacker("wait set: receive or be added", "receive-or-add"),
    attacker("text: lengths out of range", "lengths"),
    attacker("endpoint: moves in a message", "pass-well"),
    attacker("child: claims about children", "child-claims"),
    attacker("child: more parameters than it may be given", "fill-parameters"),
    attacker("child: given up while another thread gives it something", "give-to-what-is-given-up"),
];

impl Ending {
    /// Runs the program.
    pub(crate) fn check(&self) -> Outcome {
        let epitaph = Job::new(self.program, self.act).number(self.number).run()?;
        check!(epitaph.kind == self.kind, "it ended otherwise: {:?}, {epitaph}", epitaph.kind);
        let exits = self.kind != EpitaphKind::Exited || epitaph.status == 0;
        check!(exits, "it exited with status {}", epitaph.status);
        for part in self.says {
            check!(epitaph.text.contains(part), "the epitaph does not say `{part}`: {epitaph}");
        }
        Ok(())
    }
}

/// The tests of this module.
pub(crate) fn tests() -> Vec<Test> {
    ENDINGS.iter().map(|ending| Test { name: ending.name.into(), body: Body::Ending(ending) }).collect()
}

/// Starts every program once, so that its image is mapped.
pub(crate) fn load_programs() {
    for program in [CITIZEN, ATTACKER, DEEP, VICTIM] {
        // A program that cannot start fails every test by itself.
        if let Err(why) = Job::new(program, "exit").succeed() {
            sip::log!("{program}: {}", format!("{why}"));
        }
    }
}
