//! A program to be started for a test.

use alloc::format;
use alloc::string::{String, ToString};

use conformance_contract::errand;
use sip::process::{Child, Epitaph, EpitaphKind, StopReason, create};
use sip::{Deadline, Status};

/// The safe test program.
pub(crate) const CITIZEN: &str = "conformance-citizen";
/// The driver of the simulated hardware.
pub(crate) const DRIVER: &str = "conformance-driver";
/// The unsafe one with permissions, to be killed.
pub(crate) const VICTIM: &str = "conformance-victim";
/// The unsafe one with large stacks.
pub(crate) const DEEP: &str = "conformance-deep";
/// The unsafe one.
pub(crate) const ATTACKER: &str = "conformance-attacker";

const ACT: usize = 0;
const NUMBER: usize = 1;
const ENDING: usize = 2;
const CLIENT: usize = 0;
const SERVER: usize = 1;

/// The suite's device among the driver's devices. The attacker's is its first.
const DRIVERS_DEVICE: usize = 1;

/// Timeout for a program that is to end by itself.
const TIMEOUT_MS: u64 = 180_000;

/// A program with its act.
pub(crate) struct Job {
    program: &'static str,
    act: String,
    number: u64,
    ending: &'static str,
    client: Option<errand::Imp<errand::states::Ready>>,
    server: Option<errand::Exp<errand::states::Ready>>,
    device: Option<&'static str>,
}

/// An act of the citizen.
pub(crate) fn citizen(act: &str) -> Job {
    Job::new(CITIZEN, act)
}

/// An act of the driver.
pub(crate) fn driver(act: &str) -> Job {
    Job::new(DRIVER, act)
}

/// An act of the attacker.
pub(crate) fn attacker(act: &str) -> Job {
    Job::new(ATTACKER, act)
}

impl Job {
    pub(crate) fn new(program: &'static str, act: &str) -> Job {
        Job { program, act: act.to_string(), number: 0, ending: "exit", client: None, server: None, device: None }
    }

    pub(crate) fn number(self, number: u64) -> Job {
        Job { number, ..self }
    }

    pub(crate) fn ending(self, ending: &'static str) -> Job {
        Job { ending, ..self }
    }

    /// Sets its client end of a channel.
    pub(crate) fn client(self, client: errand::Imp<errand::states::Ready>) -> Job {
        Job { client: Some(client), ..self }
    }

    /// Sets its server end of a channel.
    pub(crate) fn server(self, server: errand::Exp<errand::states::Ready>) -> Job {
        Job { server: Some(server), ..self }
    }

    /// Sets the device to open.
    pub(crate) fn device(self, name: &'static str) -> Job {
        Job { device: Some(name), ..self }
    }

    /// Starts it.
    pub(crate) fn start(self) -> Result<Child, String> {
        let act = self.act.clone();
        let say = |what: &str, status: Status| format!("{act}: {what}: {}", status.text());
        let child = self.create()?;
        child.start().map_err(|status| say("cannot start", status))
    }

    /// Creates it without starting it.
    pub(crate) fn create(self) -> Result<Child, String> {
        let act = self.act;
        let say = |what: &str, status: Status| format!("{act}: {what}: {}", status.text());
        let child = create(self.program).map_err(|error| format!("{act}: it cannot be created: {error}"))?;
        let mut child = child
            .parameter(ACT, &act)
            .and_then(|child| child.parameter(NUMBER, &self.number.to_string()))
            .and_then(|child| child.parameter(ENDING, self.ending))
            .map_err(|status| say("a parameter cannot be given", status))?;
        if let Some(client) = self.client {
            child = child.endpoint(CLIENT, client).map_err(|status| say("its client endpoint", status))?;
        }
        if let Some(server) = self.server {
            child = child.endpoint(SERVER, server).map_err(|status| say("its server endpoint", status))?;
        }
        if let Some(name) = self.device {
            let index = if self.program == DRIVER { DRIVERS_DEVICE } else { 0 };
            child = child.device(index, name).map_err(|status| say("its device", status))?;
        }
        Ok(child)
    }

    /// Runs it to completion.
    pub(crate) fn run(self) -> Result<Epitaph, String> {
        end_of(&self.start()?)
    }

    /// Runs it; it must exit with status 0.
    pub(crate) fn succeed(self) -> Result<(), String> {
        let act = self.act.clone();
        let epitaph = self.run()?;
        if epitaph.is_success() { Ok(()) } else { Err(format!("{act}: {epitaph}")) }
    }
}

/// Waits for a child's end, which must be soon.
pub(crate) fn end_of(child: &Child) -> Result<Epitaph, String> {
    match child.wait_until(Deadline::after_ms(TIMEOUT_MS)) {
        Ok(epitaph) => Ok(epitaph),
        Err(status) => {
            // So that the following tests have the machine to themselves.
            let _ = child.stop(StopReason::Requested);
            Err(format!("a child did not end: {}", status.text()))
        }
    }
}

/// Kills a child, which must end immediately by that.
pub(crate) fn stop(child: &Child) -> Result<Epitaph, String> {
    child.stop(StopReason::Requested).map_err(|status| format!("a child cannot be stopped: {}", status.text()))?;
    let epitaph = child
        .wait_until(Deadline::after_ms(5000))
        .map_err(|status| format!("a stopped child has not ended: {}", status.text()))?;
    Ok(epitaph)
}

/// Waits until all that a child does is wait, however slow the machine is.
pub(crate) fn settle(child: &Child) -> Result<(), String> {
    let id = child.id().map_err(|status| format!("its process id: {}", status.text()))?;
    let deadline = Deadline::after_ms(SETTLED_WITHIN_MS);
    while !deadline.has_passed() {
        let threads = sip::diagnostics::threads().map_err(|status| format!("the threads: {}", status.text()))?;
        let mut own = threads.iter().filter(|thread| thread.process == id).peekable();
        if own.peek().is_some() && own.all(|thread| thread.state == sip::abi::ThreadState::Blocked as u64) {
            return Ok(());
        }
        sip::thread::sleep(Deadline::after_ms(1));
    }
    Err("a child goes on that was to wait".into())
}
const SETTLED_WITHIN_MS: u64 = 10_000;

/// Stops a child that cannot have ended otherwise.
pub(crate) fn stop_running(child: &Child) -> Result<(), String> {
    let epitaph = stop(child)?;
    if epitaph.kind == EpitaphKind::Stopped {
        Ok(())
    } else {
        Err(format!("a child that was to be stopped had ended: {epitaph}"))
    }
}

/// A new channel.
#[allow(clippy::type_complexity, reason = "the two ends are what there is")]
pub(crate) fn channel() -> Result<(errand::Imp<errand::states::Ready>, errand::Exp<errand::states::Ready>), String> {
    errand::new_channel().map_err(|status| format!("a channel cannot be made: {}", status.text()))
}
