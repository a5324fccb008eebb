//! Kills: a process is ended in each ABI function, before it and after it, while it holds a block on loan.
//!
//! The victim calls one function over and over (the attacker's module `killed`). The lender gets its block back once,
//! whole, and its first byte tells where the kill hit. Kills while messages with blocks cross are in `copies`.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use conformance_contract::errand;
use errand::ImpReadyAfterLend;
use sip::debug::Sink;
use sip::exheap::{ExBlock, ExVec};
use sip::process::{Child, Epitaph, EpitaphKind, StopReason, stop_any};
use sip::{Deadline, Status, device, programs, thread, time};

use crate::job::{Job, VICTIM, channel, end_of};
use crate::messages::is_patterned;
use crate::{Body, Outcome, Settings, Test, check};

/// Calls of the run that shows that the function can be called, and how long that takes.
const CALLS: u64 = 8;
/// Bits of the victim's number, as in the attacker's module `killed`.
const CALLS_BIT: u32 = 16;
const SECOND_THREAD: u64 = 1 << 32;
const WAITS: u64 = 1 << 33;

/// Sizes of the lent block in bytes: small, small of another class, one page, many pages.
const SIZES: [usize; 4] = [64, 3000, 4096, 1 << 16];
/// Bound of the time within which a process is killed.
const MAX_RUN_NS: u64 = 4_000_000;
/// Kills of a function from which on some must have come after its first call, and are counted by where they hit.
const MANY: u64 = 1000;
/// Names of buses, of which a machine has one; and the guest that a victim installs.
const BUSES: [&str; 3] = ["simulated-bus", "virtio-mmio", "pci"];
const GUEST: &str = "conformance-guest";

/// The tests of this module: one for each function of the table.
pub(crate) fn tests() -> Vec<Test> {
    let functions = sip::abi::FUNCTIONS.iter().enumerate();
    let test = |(number, function): (usize, &sip::abi::Function)| Test {
        name: format!("killed in: {}", function.name),
        body: Body::AbiFunction(killed, number),
    };
    functions.map(test).collect()
}

/// A seeded pseudo-random generator.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Numbers {
        Numbers(0x9e37_79b9_7f4a_7c15 ^ (seed + 1) << 32)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound.max(1)
    }

    /// Waits for up to twice the time that a run takes, short times more often than long ones.
    pub(crate) fn pause(&mut self, run_ns: u64) {
        let most = (2 * run_ns.min(MAX_RUN_NS)) >> self.below(8);
        thread::sleep(Deadline::after_ns(self.below(most)));
    }
}

/// Where victims were when they ended: the kill may have come earlier, in a call that does not look for one.
#[derive(Default)]
struct Hits {
    before: u64,
    between: u64,
    inside: u64,
    ended: u64,
}

/// How a victim is ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Child,
    ByNumber,
    WithItsParent,
}

/// What the rounds of one function share.
struct Victims {
    number: u64,
    /// The machine's bus, for functions that access hardware.
    bus: Option<&'static str>,
    sink: Sink,
    hits: Hits,
}

/// Processes that call a function are ended at seeded moments.
fn killed(settings: &Settings, number: usize) -> Outcome {
    let function = &sip::abi::FUNCTIONS[number];
    let on_bus = function.group == "Hardware access" && !matches!(function.name, "device_exists" | "wall_time_set");
    let bus = BUSES.into_iter().find(|name| device::exists(name) == Ok(true)).filter(|_| on_bus);
    if on_bus && bus.is_none() {
        sip::log!("this machine has no bus: nobody is killed in {}", function.name);
        return Ok(());
    }
    let sink = Sink::new().map_err(|status| status.text().to_string())?;
    let mut victims = Victims { number: number as u64, bus, sink, hits: Hits::default() };
    let run_ns = victims.run()?;
    let mut numbers = Numbers::new(number as u64);
    for round in 0..settings.kills {
        victims.kill(round, run_ns, &mut numbers).map_err(|why| format!("round {round}: {why}"))?;
    }
    victims.run()?;
    // The last one may have been killed before it removed it.
    let _ = programs::uninstall(GUEST);
    victims.hits.report(settings, function.name)
}

impl Hits {
    fn report(&self, settings: &Settings, name: &str) -> Outcome {
        let Hits { before, between, inside, ended } = self;
        if settings.kills >= MANY {
            sip::log!("{name}: {before} before a call, {between} between calls, {inside} inside, {ended} had ended");
            check!(between + inside + ended > 0, "of {} kills none came after the first call", settings.kills);
        }
        Ok(())
    }

    fn count(&mut self, epitaph: Option<&Epitaph>, mark: u8) {
        let has_ended = epitaph.is_some_and(|epitaph| epitaph.kind != EpitaphKind::Stopped);
        *match mark {
            _ if has_ended => &mut self.ended,
            0 => &mut self.before,
            1 => &mut self.between,
            _ => &mut self.inside,
        } += 1;
    }
}

impl Victims {
    fn job(&self, act: &str, flags: u64) -> Job {
        let job = Job::new(VICTIM, act).number(self.number | flags);
        match (act, self.bus) {
            ("killed", Some(bus)) => job.ending(bus).device(bus),
            (_, bus) => job.ending(bus.unwrap_or_default()),
        }
    }

    fn start(&self, job: Job) -> Result<Child, String> {
        let child = job.create()?.debug_sink(&self.sink).and_then(Child::start);
        child.map_err(|status| format!("the victim does not start: {}", status.text()))
    }

    /// Runs a victim that ends by itself; returns how long it took.
    fn run(&self) -> Result<u64, String> {
        let (importer, exporter) = channel()?;
        let lender = importer.lend(lent(SIZES[0])?);
        let begun = time::monotonic();
        let child = self.start(self.job("killed", CALLS << CALLS_BIT).server(exporter))?;
        let epitaph = end_of(&child)?;
        let run_ns = time::monotonic() - begun;
        self.check_end(&epitaph, false)?;
        come_home(lender, SIZES[0])?;
        Ok(run_ns)
    }

    /// Starts a victim, and ends it before it has got far.
    fn kill(&mut self, round: u64, run_ns: u64, numbers: &mut Numbers) -> Outcome {
        let bytes = SIZES[numbers.below(4) as usize];
        let (importer, exporter) = channel()?;
        let lender = importer.lend(lent(bytes)?);
        let way = [Way::WithItsParent, Way::ByNumber, Way::Child, Way::Child][round as usize % 4];
        let calls = if numbers.below(8) == 0 { CALLS << CALLS_BIT } else { 0 };
        let second = if numbers.below(2) == 0 { SECOND_THREAD } else { 0 };
        let waits = if numbers.below(4) == 0 { WAITS } else { 0 };
        let act = if way == Way::WithItsParent { "killed-parent" } else { "killed" };
        let child = self.start(self.job(act, calls | second | waits).server(exporter))?;
        numbers.pause(if way == Way::WithItsParent { 2 * run_ns } else { run_ns });
        end(&child, way)?;
        let mark = come_home(lender, bytes)?;
        let epitaph = end_of(&child)?;
        self.check_end(&epitaph, true)?;
        self.hits.count(Some(&epitaph).filter(|_| way != Way::WithItsParent), mark);
        Ok(())
    }

    /// A victim was stopped, or has ended as its function does.
    fn check_end(&self, epitaph: &Epitaph, was_stopped: bool) -> Outcome {
        let panics = sip::abi::FUNCTIONS[self.number as usize].name == "process_panic";
        let as_expected = match epitaph.kind {
            EpitaphKind::Stopped => was_stopped,
            EpitaphKind::Exited => epitaph.status == 0,
            EpitaphKind::Panicked => panics && epitaph.text.contains("killed while it panicked"),
            _ => false,
        };
        check!(as_expected, "it ended otherwise: {:?}, {epitaph}", epitaph.kind);
        Ok(())
    }
}

fn end(child: &Child, way: Way) -> Outcome {
    let ended = match way {
        Way::ByNumber => child.id().and_then(|id| match stop_any(id, StopReason::Requested) {
            // It has ended already.
            Err(Status::NotFound) => Ok(()),
            other => other,
        }),
        _ => child.stop(StopReason::Requested),
    };
    ended.map_err(|status| format!("it cannot be stopped: {}", status.text()))
}

fn lent(bytes: usize) -> Result<ExVec<u8>, String> {
    let mut block = ExVec::new(bytes).map_err(|status| status.text().to_string())?;
    for (place, byte) in block.iter_mut().enumerate() {
        *byte = place as u8;
    }
    Ok(block)
}

/// Waits for the borrower's end; the block comes home once, with what the borrower wrote, which is returned.
fn come_home(lender: errand::Imp<errand::states::ReadyAfterLend>, bytes: usize) -> Result<u8, String> {
    let closed = lender.receive_by(Deadline::after_ms(20_000));
    let closed = closed.map_err(|_| String::from("the block has not come home after 20 s"))?;
    let ImpReadyAfterLend::ChannelClosed(mut closed) = closed else { return Err("the loan was returned".into()) };
    let mut home = closed.take_home();
    check!(home.len() == 1, "{} blocks came home", home.len());
    let Some(Ok(data)) = home.pop().map(ExBlock::into_vec::<u8>) else { return Err("it changed its type".into()) };
    check!(data.len() == bytes, "{} bytes of {bytes} came home", data.len());
    check!(data[0] <= 2 && is_patterned(&data[1..], 1), "the block changed on its way");
    Ok(data[0])
}
