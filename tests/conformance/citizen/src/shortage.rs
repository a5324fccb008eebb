//! Acts of programs that exhaust a resource, and of a parent that survives them.

use alloc::vec::Vec;

use conformance_contract::errand;
use sip::exheap::ExVec;
use sip::process::{self, Child, Epitaph, EpitaphKind};
use sip::{Deadline, thread, time};

use crate::{Stage, sleep_forever};

const SELF: &str = "conformance-citizen";
const ACT: usize = 0;
/// Hoarder numbers from here on run concurrently with others.
const AMONG_OTHERS: u64 = 4;
/// Timeout for a hoarder: many times its usual duration, since the host may be busy.
const TIMEOUT_MS: u64 = 90_000;
/// Time limit of a short sleep with a little work while memory runs out: a hang, not a delay, is a failure.
const RESPONSE_MS: u64 = 20_000;

/// Starts the hoarder with this number; it must be ended because memory ran out, with little effect on this program.
/// From [`AMONG_OTHERS`] on others run concurrently, and a hoarder may not even get enough memory to start: then it is
/// restarted.
pub(crate) fn launch(stage: Stage) -> i32 {
    let (number, among_others) = (stage.number % AMONG_OTHERS, stage.number >= AMONG_OTHERS);
    let act = ["hoard-memory", "hoard-blocks", "hoard-channels", "hoard-children"][number as usize];
    let deadline = Deadline::after_ms(TIMEOUT_MS);
    let epitaph = loop {
        let ended = start(act).map(|hoarder| watch(&hoarder, deadline));
        match ended {
            Ok(epitaph) if epitaph.kind == EpitaphKind::MemoryRanOut || !among_others => break epitaph,
            // Memory of the previous hoarder is freed in steps.
            Err(status) => assert!(
                among_others || status == sip::Status::Exhausted,
                "the hoarder does not start: {}",
                status.text()
            ),
            Ok(_) => {}
        }
        assert!(!deadline.has_passed(), "no hoarder gets anywhere");
        pause();
    };
    assert_eq!(epitaph.kind, EpitaphKind::MemoryRanOut, "{epitaph}");
    assert!(epitaph.text.contains("memory ran out") && epitaph.text.contains("the most of all"), "{epitaph}");
    if number == 3 && !among_others {
        assert!(epitaph.text.contains("programs that it started"), "{epitaph}");
    }
    0
}

/// Waits for the hoarder's end, and checks that little else is affected.
fn watch(hoarder: &Child, deadline: Deadline) -> Epitaph {
    loop {
        let before = time::monotonic();
        if let Ok(epitaph) = hoarder.wait_until(Deadline::after_ms(5)) {
            return epitaph;
        }
        let block = ExVec::<u8>::new(4096).expect("a service gets a block also when memory is low");
        drop(block);
        let took = (time::monotonic() - before) / 1_000_000;
        assert!(took < RESPONSE_MS, "a short wait took {took} ms");
        assert!(!deadline.has_passed(), "the hoarder goes on");
    }
}

fn start(act: &str) -> Result<Child, sip::Status> {
    process::create(SELF).map_err(|error| error.status)?.parameter(ACT, act)?.start()
}

/// More memory may be free a little later.
fn pause() {
    thread::sleep(Deadline::after_ms(1));
}

/// Allocates all pages, and then retries forever.
pub(crate) fn memory(_: Stage) -> i32 {
    let mut hoard: Vec<Vec<u8>> = Vec::with_capacity(100_000);
    loop {
        let mut more = Vec::new();
        match more.try_reserve_exact(16_384) {
            Ok(()) => {
                more.resize(16_384, 1);
                hoard.push(more);
            }
            Err(_) => pause(),
        }
    }
}

/// Blocks of all sizes.
pub(crate) fn blocks(_: Stage) -> i32 {
    let mut hoard = Vec::with_capacity(30_000);
    for size in [64usize, 2048, 100, 65_536, 1024].iter().cycle() {
        match ExVec::<u8>::new(*size) {
            Ok(block) => hoard.push(block),
            Err(_) => pause(),
        }
    }
    0
}

/// Fills as many channels as it can create.
pub(crate) fn channels(_: Stage) -> i32 {
    let mut hoard = Vec::with_capacity(2_000);
    loop {
        match (errand::new_channel(), ExVec::<u8>::new(65_536)) {
            (Ok((importer, exporter)), Ok(block)) => hoard.push((importer.give(block), exporter)),
            _ => pause(),
        }
    }
}

/// Starts programs that do the same, and closes their handles.
pub(crate) fn children(_: Stage) -> i32 {
    let mut started = 0;
    // Memory may be short because some is still being freed: a refusal is not counted.
    while started < 64 {
        match start("hoard-children") {
            Ok(_) => started += 1,
            Err(_) => pause(),
        }
    }
    sleep_forever()
}
