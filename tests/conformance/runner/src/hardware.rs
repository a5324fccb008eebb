//! Hardware: the reach of drivers, and ownership after the exit of a driver or a bus.
//!
//! The hardware is the hosted machine's simulated bus; on a machine without it there are no such tests.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use conformance_contract::errand;
use errand::{ExpReady, ImpReadyAfterCall, ImpReadyAfterLend};
use sip::exheap::ExVec;
use sip::process::{Child, EpitaphKind};
use sip::{Deadline, Status};

use crate::job::{Job, attacker, channel, driver, end_of, stop_running};
use crate::{Outcome, Settings, Test, check, function};

/// Requests to the bus; see the driver's module `bus`.
const IS_ADOPTED: u64 = 1;
const LINE: u64 = 2;
const RELEASED: u64 = 3;
const FILL: u64 = 4;
const SILENCE: u64 = 5;

/// The devices that it publishes.
const A: u64 = 0;
const B: u64 = 1;
const NAMES: [&str; 2] = ["sim-a", "sim-b"];

/// Among the devices of the driver's manifest.
const DEVICE: u64 = 1;
const OVERLAPPING_PORTS: u64 = 3;
const PORTS_OF_THE_BUS: u64 = 4;
const MEMORY_OF_THE_BUS: u64 = 5;
const LINE_OF_THE_BUS: u64 = 6;
const PORTS_THAT_ARE_NOT_THERE: u64 = 7;
const LINE_THAT_IS_NOT_THERE: u64 = 8;

const LENT_BYTES: usize = 8192;
const PATTERN: u8 = 0x11;

/// The tests of this module.
pub(crate) fn tests() -> Vec<Test> {
    if sip::device::exists("simulated-bus") != Ok(true) {
        sip::log!("there is no simulated bus here: nothing of hardware is tested");
        return Vec::new();
    }
    alloc::vec![
        function("hardware: registers, their widths and their bounds", registers),
        function("hardware: ports that a manifest fixes", ports),
        function("hardware: interrupts are counted and waited for", interrupts),
        function("hardware: a driver that waits for an interrupt can be ended", interrupt_killed),
        function("hardware: a line that fires without end is silenced", storm),
        function("hardware: a device writes a block that is pinned for it", dma),
        function("hardware: a pinned block cannot leave", pinned_block),
        function("hardware: a driver ends, its device still writes", driver_ends),
        function("hardware: the bus ends before its driver", bus_ends_first),
        function("hardware: the bus ends after its driver", bus_ends_last),
        function("hardware: a lender that ended gets nothing back", lender_ends),
        function("hardware: what a bus may not do", bus_rules),
        function("hardware: two owners of one register", conflicts),
        function("hardware: the wall clock is the host's", |_| driver("wall-clock").succeed()),
    ]
}

/// The bus, running.
struct Bus {
    child: Child,
    client: errand::Imp<errand::states::Ready>,
}

impl Bus {
    fn start() -> Result<Bus, String> {
        let (client, server) = channel()?;
        let bus = Bus { child: driver("bus").server(server).start()?, client };
        bus.ask(LINE, A).map(|(bus, _)| bus)
    }

    fn ask(self, what: u64, device: u64) -> Result<(Bus, u64), String> {
        match self.client.call(what | device << 8).receive() {
            ImpReadyAfterCall::Answer { value, next } => Ok((Bus { client: next, ..self }, value)),
            ImpReadyAfterCall::ChannelClosed(_) => Err(format!("the bus ended: {}", end_of(&self.child)?)),
        }
    }

    fn expect(self, what: u64, device: u64, answer: u64) -> Result<Bus, String> {
        let (bus, got) = self.ask(what, device)?;
        check!(got == answer, "the bus was asked for {what} of device {device} and answered {got}, not {answer}");
        Ok(bus)
    }

    /// Waits for the driver to release the device, and silences it.
    fn silence(self, device: u64) -> Result<Bus, String> {
        self.expect(RELEASED, device, 1)?.expect(SILENCE, device, 0)
    }

    fn end(self) -> Outcome {
        drop(self.client);
        let epitaph = end_of(&self.child)?;
        check!(epitaph.is_success(), "the bus: {epitaph}");
        Ok(())
    }
}

/// Runs an act of a device's driver, whose line is the act's number; the device is free again afterwards.
fn drive(act: &str, device: u64) -> Outcome {
    let (bus, line) = Bus::start()?.ask(LINE, device)?;
    let outcome = driver(act).device(NAMES[device as usize]).number(line).succeed();
    let bus = bus.silence(device)?;
    outcome.and(bus.end())
}

fn registers(_: &Settings) -> Outcome {
    drive("registers", A)
}

fn ports(_: &Settings) -> Outcome {
    driver("ports").succeed()
}

fn interrupts(_: &Settings) -> Outcome {
    drive("interrupts", A)
}

/// A running driver that has opened its device.
struct Held {
    child: Child,
    _server: errand::Exp<errand::states::ReadyAfterCall>,
}

impl Held {
    fn start(job: Job) -> Result<Held, String> {
        let (client, server) = channel()?;
        let child = job.client(client).start()?;
        match server.receive() {
            ExpReady::Call { next, .. } => Ok(Held { child, _server: next }),
            _ => Err(format!("a driver ended before it had its device: {}", end_of(&child)?)),
        }
    }
}

fn interrupt_killed(_: &Settings) -> Outcome {
    let mut bus = Bus::start()?;
    for milliseconds in 0..5 {
        let held = Held::start(driver("interrupt-killed").device(NAMES[0]))?;
        sip::thread::sleep(Deadline::after_ms(milliseconds));
        stop_running(&held.child)?;
        bus = bus.silence(A)?;
    }
    bus.end()
}

fn storm(_: &Settings) -> Outcome {
    drive("storm", B)
}

fn dma(_: &Settings) -> Outcome {
    drive("dma", A)
}

fn pinned_block(_: &Settings) -> Outcome {
    let bus = Bus::start()?;
    attacker("pinned-block").device(NAMES[0]).succeed()?;
    let bus = bus.silence(A)?;
    attacker("close-while-pinned").device(NAMES[0]).succeed()?;
    let bus = bus.silence(A)?;
    let epitaph = attacker("send-pinned").device(NAMES[0]).run()?;
    let expected = epitaph.kind == EpitaphKind::ContractViolation && epitaph.text.contains("a device reaches");
    check!(expected, "it ended otherwise: {epitaph}");
    bus.silence(A)?.end()?;
    attacker("bus-without-permission").succeed()
}

type Lender = errand::Imp<errand::states::ReadyAfterLend>;

/// A driver that has pinned a block of its own and one lent to it. Its device writes the former, or with `aim` 1 the
/// latter.
fn hold_dma(aim: u64) -> Result<(Held, Lender), String> {
    let (importer, exporter) = channel()?;
    let block = ExVec::from_slice(&[PATTERN; LENT_BYTES]).map_err(|status| String::from(status.text()))?;
    let lender = importer.lend(block);
    let held = Held::start(driver("hold-dma").device(NAMES[0]).number(aim).server(exporter))?;
    Ok((held, lender))
}

/// No block is returned while the device may write.
fn still_away(lender: Lender) -> Result<Lender, String> {
    match lender.receive_by(Deadline::after_ms(30)) {
        Err(lender) => Ok(lender),
        Ok(_) => Err("the end of the channel shows before the device is silenced".into()),
    }
}

/// Waits for the block's return; its first byte must be this.
fn come_home(lender: Lender, first: u8) -> Outcome {
    let Ok(ImpReadyAfterLend::ChannelClosed(mut closed)) = lender.receive_by(Deadline::after_ms(5000)) else {
        return Err("the block does not come home".into());
    };
    let mut home = closed.take_home();
    check!(home.len() == 1, "{} blocks came home", home.len());
    let Some(Ok(data)) = home.pop().map(sip::exheap::ExBlock::into_vec::<u8>) else {
        return Err("the block changed its type".into());
    };
    check!(data.len() == LENT_BYTES, "{} bytes came home", data.len());
    check!(
        data[0] == first && data[LENT_BYTES - 1] == PATTERN,
        "the block changed: {} {}",
        data[0],
        data[LENT_BYTES - 1]
    );
    Ok(())
}

/// Returns the kernel's result for a driver that opens the device now.
fn opened() -> Result<u64, String> {
    driver("open").number(DEVICE).device(NAMES[0]).run().map(|epitaph| epitaph.status as u64)
}

/// Allocates memory and checks that no device writes to it.
fn nobody_is_harmed() -> Outcome {
    let blocks: Vec<_> = (0..64).filter_map(|_| ExVec::<u8>::new(65_536).ok()).collect();
    check!(!blocks.is_empty(), "no block is to be had");
    check!(blocks.iter().all(|block| block.iter().all(|&byte| byte == 0)), "a new block is not clear");
    Ok(())
}

fn driver_ends(_: &Settings) -> Outcome {
    let mut bus = Bus::start()?;
    for aim in [0, 1] {
        let (held, lender) = hold_dma(aim)?;
        stop_running(&held.child)?;
        let lender = still_away(lender)?;
        check!(opened()? == Status::Busy as u64, "a device that may still write can be opened");
        bus = bus.expect(FILL, A, 0)?;
        nobody_is_harmed()?;
        bus = bus.expect(RELEASED, A, 1)?.expect(FILL, A, 0)?;
        let lender = still_away(lender)?;
        bus = bus.expect(SILENCE, A, 0)?;
        come_home(lender, if aim == 0 { PATTERN } else { 0xee })?;
        check!(opened()? == 0, "a device that was silenced cannot be opened");
        bus = bus.silence(A)?;
    }
    bus.end()
}

fn bus_ends_first(_: &Settings) -> Outcome {
    let bus = Bus::start()?;
    let (held, lender) = hold_dma(0)?;
    bus.end()?;
    stop_running(&held.child)?;
    let lender = still_away(lender)?;
    check!(opened()? == Status::Busy as u64, "a device that may still write can be opened");
    let bus = Bus::start()?.expect(IS_ADOPTED, A, 1)?.expect(IS_ADOPTED, B, 1)?;
    let lender = still_away(lender)?;
    bus.silence(A)?.end()?;
    come_home(lender, PATTERN)?;
    // The driver keeps running while the bus restarts.
    let bus = Bus::start()?;
    let (held, lender) = hold_dma(0)?;
    bus.end()?;
    let bus = Bus::start()?.expect(IS_ADOPTED, A, 1)?.expect(FILL, A, 0)?;
    let lender = still_away(lender)?;
    stop_running(&held.child)?;
    bus.silence(A)?.end()?;
    come_home(lender, PATTERN)
}

fn bus_ends_last(_: &Settings) -> Outcome {
    let bus = Bus::start()?;
    let (held, lender) = hold_dma(1)?;
    stop_running(&held.child)?;
    // The bus was notified, and exits before it has silenced the device.
    bus.expect(RELEASED, A, 1)?.end()?;
    let lender = still_away(lender)?;
    Bus::start()?.silence(A)?.end()?;
    come_home(lender, PATTERN)
}

fn lender_ends(_: &Settings) -> Outcome {
    let bus = Bus::start()?;
    let (held, lender) = hold_dma(0)?;
    drop(lender);
    stop_running(&held.child)?;
    bus.silence(A)?.end()
}

fn bus_rules(_: &Settings) -> Outcome {
    driver("bus-rules").succeed()
}

fn conflicts(_: &Settings) -> Outcome {
    let open = |device: u64| driver("open").number(device).run().map(|epitaph| epitaph.status as u64);
    let expect = |device: u64, status: Status| {
        let answer = open(device)?;
        check!(answer == status as u64, "device {device} was opened with {answer}, not {status:?}");
        Ok(())
    };
    let held = Held::start(driver("hold-ports"))?;
    expect(OVERLAPPING_PORTS, Status::Busy)?;
    stop_running(&held.child)?;
    expect(OVERLAPPING_PORTS, Status::Ok)?;
    let bus = Bus::start()?;
    for device in [PORTS_OF_THE_BUS, MEMORY_OF_THE_BUS, LINE_OF_THE_BUS] {
        expect(device, Status::Busy)?;
    }
    bus.end()?;
    expect(PORTS_OF_THE_BUS, Status::Ok)?;
    expect(PORTS_THAT_ARE_NOT_THERE, Status::NotPermitted)?;
    expect(LINE_THAT_IS_NOT_THERE, Status::NotPermitted)
}
