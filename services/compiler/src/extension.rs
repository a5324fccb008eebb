//! Extensions of the compiler, children with nothing but channels to it: who allocates registers, and who proves that
//! they are allocated right.
//!
//! The allocator is asked for each function, by the thread that compiles it, and meanwhile another thread computes. Its
//! answer is used if it fits the function; whatever else comes is the end of the compilation, with a sentence. So is the
//! end of a child, or one that takes too long. The checker gets function and answer, and its verdict is taken two
//! functions later: it works while code is written. Neighbours: `regalloc2` has the seam, `register-allocation` the form
//! of what passes. Deliberately not here: trust in a child. What it wrote is proven like the compiler's own work.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use contracts::allocation_checker::{self, ImpReadyAfterProve};
use contracts::register_allocator::{self, ImpReadyAfterAllocate};
use regalloc2::{Function, MachineEnv, Output, RegallocOptions, seam};
use register_allocation::answer;
use sip::channel::TypedEndpoint;
use sip::exheap::ExVec;
use sip::process::{self, Child, StopReason};
use sip::sync::{Event, Mutex};
use sip::{Deadline, Status};

use crate::MAX_THREADS;

/// Slots of an extension's endpoints, one for each thread of the compiler.
const SLOTS: [usize; MAX_THREADS] = [0, 1];
/// Maximum length of an extension's sentence, in characters.
const MAX_REASON: usize = 300;

/// The extensions that are wanted: names of programs, empty for none.
pub struct Wanted {
    pub allocator: String,
    pub checker: String,
    /// Maximum time for a function, each for allocating and proving.
    pub limit_ms: i64,
}

/// The extensions of this process, the same for all its threads.
#[derive(Clone)]
pub struct Extension(Option<Arc<Running>>);

type Idle = register_allocator::Imp<register_allocator::states::Ready>;
type Checker = allocation_checker::Imp<allocation_checker::states::Ready>;
type Proving = allocation_checker::Imp<allocation_checker::states::ReadyAfterProve>;

/// A client of the checker: without a question, or with one that is not answered yet.
enum Proof {
    Idle(Checker),
    Asked(Proving),
}

struct Running {
    allocator: Process,
    /// Endpoints that no thread uses.
    idle: Mutex<Vec<Idle>>,
    checker: Option<Process>,
    /// The one that was asked longest ago comes first.
    proofs: Mutex<VecDeque<Proof>>,
    limit_ms: u64,
    /// Set while no thread computes: threads of one process share a heap, and would wait for each other at each allocation.
    /// None if there is one thread.
    turn: Option<Event>,
    /// Why the first question went wrong that did.
    failure: Mutex<Option<String>>,
}

struct Process {
    name: String,
    child: Child,
}

impl Wanted {
    /// Starts the extensions, and has the code generator, in this many threads, call them.
    ///
    /// # Errors
    /// One does not start, for this reason.
    pub fn started(&self, threads: usize) -> Result<Extension, String> {
        if self.allocator.is_empty() {
            return if self.checker.is_empty() {
                Ok(Extension(None))
            } else {
                Err(format!("`{}` has no allocator to check; name one, or neither", self.checker))
            };
        }
        let (allocator, idle) = begin(&self.allocator, register_allocator::new_channel)?;
        let (checker, proofs) = match self.checker.as_str() {
            "" => (None, VecDeque::new()),
            name => begin(name, allocation_checker::new_channel)
                .map(|(process, proofs)| (Some(process), proofs.into_iter().map(Proof::Idle).collect()))?,
        };
        let turn = if threads > 1 { Some(Event::auto().map_err(|status| String::from(status.text()))?) } else { None };
        let running = Arc::new(Running {
            allocator,
            idle: Mutex::new(idle),
            checker,
            proofs: Mutex::new(proofs),
            limit_ms: u64::try_from(self.limit_ms).unwrap_or(0),
            turn,
            failure: Mutex::new(None),
        });
        running.end_turn();
        seam::set(Box::new(Seam(Arc::clone(&running))));
        Ok(Extension(Some(running)))
    }
}

/// Starts a program with the exporting ends of channels, and returns their other ends.
fn begin<I, E: TypedEndpoint>(
    name: &str,
    channel: impl Fn() -> Result<(I, E), Status>,
) -> Result<(Process, Vec<I>), String> {
    let missing = |reason: &str| format!("the extension `{name}` does not start: {reason}; add it to the system");
    let failed = |status: Status| match status {
        // Whoever ends it may find it between its creation and its start.
        Status::WrongState => format!("the extension `{name}` ended: it was stopped before it had started"),
        status => format!("the extension `{name}` does not start: {}; try again later", status.text()),
    };
    let mut child = process::create(name).map_err(|error| missing(&error.reason))?;
    let mut ends = Vec::new();
    for slot in SLOTS {
        let (importer, exporter) = channel().map_err(failed)?;
        child = child.endpoint(slot, exporter).map_err(failed)?;
        ends.push(importer);
    }
    let child = child.start().map_err(failed)?;
    Ok((Process { name: name.into(), child }, ends))
}

impl Extension {
    /// Whether an answer did not come, or was none.
    pub fn has_failed(&self) -> bool {
        self.0.as_ref().is_some_and(|running| running.failure.lock().is_some())
    }

    /// Computes in turn with the other threads: one does at a time, while the others wait for a child.
    pub fn in_turn<T>(&self, work: impl FnOnce() -> T) -> T {
        let Some(running) = &self.0 else { return work() };
        running.begin_turn();
        let result = work();
        running.end_turn();
        result
    }

    /// Waits for the last proofs.
    ///
    /// # Errors
    /// Why what was compiled must not be used.
    pub fn finish(&self) -> Result<(), String> {
        let Some(running) = &self.0 else { return Ok(()) };
        let proofs = core::mem::take(&mut *running.proofs.lock());
        for proof in proofs {
            let settled = running.settled(proof);
            running.noted(settled.map(|checker| running.proofs.lock().push_back(Proof::Idle(checker))));
        }
        running.failure.lock().clone().map_or(Ok(()), Err)
    }
}

struct Seam(Arc<Running>);

impl seam::Allocator for Seam {
    fn allocate(&self, function: &dyn Function, env: &MachineEnv, options: &RegallocOptions) -> Option<Output> {
        if self.0.failure.lock().is_some() {
            return None;
        }
        // The function is allocated here then, and its code dropped.
        self.0.noted(self.0.ask(function, env, options))
    }
}

impl Running {
    /// Keeps the first reason.
    fn noted<T>(&self, result: Result<T, String>) -> Option<T> {
        result
            .map_err(|reason| {
                self.failure.lock().get_or_insert(reason);
            })
            .ok()
    }

    /// Waits, and lets another thread compute.
    fn meanwhile<T>(&self, wait: impl FnOnce() -> T) -> T {
        self.end_turn();
        let result = wait();
        self.begin_turn();
        result
    }

    fn begin_turn(&self) {
        if let Some(turn) = &self.turn {
            turn.wait();
        }
    }

    fn end_turn(&self) {
        if let Some(turn) = &self.turn {
            turn.set();
        }
    }

    fn ask(&self, function: &dyn Function, env: &MachineEnv, options: &RegallocOptions) -> Result<Output, String> {
        let unfit = |malformed| format!("a function cannot be sent to `{}`: {malformed}", self.allocator.name);
        let bytes = register_allocation::encode(function, env, options).map_err(unfit)?;
        let endpoint = self.idle.lock().pop().ok_or_else(|| self.allocator.lost())?;
        let asked = endpoint.allocate(copy(&bytes)?);
        let answered = self.meanwhile(|| asked.receive_by(Deadline::after_ms(self.limit_ms)));
        let allocation = match answered {
            Ok(ImpReadyAfterAllocate::Allocated { allocation, next }) => {
                self.idle.lock().push(next);
                allocation
            }
            Ok(ImpReadyAfterAllocate::Refused { reason, .. }) => return Err(self.allocator.refused(&reason)),
            Ok(ImpReadyAfterAllocate::ChannelClosed(_)) => return Err(self.allocator.ended()),
            Err(_) => return Err(self.allocator.stopped(self.limit_ms)),
        };
        let output = answer::decode(&allocation, function, env).map_err(|malformed| {
            format!(
                "the answer of the extension `{}` does not fit its function: {malformed}; {ADVICE}",
                self.allocator.name
            )
        })?;
        if self.checker.is_some() {
            self.prove(copy(&bytes)?, allocation)?;
        }
        Ok(output)
    }

    /// Begins a proof, once the endpoint's last one is done.
    fn prove(&self, function: ExVec<u8>, allocation: ExVec<u8>) -> Result<(), String> {
        let proof = self.proofs.lock().pop_front();
        let proof = proof.ok_or_else(|| format!("the checker is gone; {ADVICE}"))?;
        let checker = self.meanwhile(|| self.settled(proof))?;
        self.proofs.lock().push_back(Proof::Asked(checker.prove(function, allocation)));
        Ok(())
    }

    /// Waits for what a checker has to say.
    fn settled(&self, proof: Proof) -> Result<Checker, String> {
        let proving = match proof {
            Proof::Idle(checker) => return Ok(checker),
            Proof::Asked(proving) => proving,
        };
        let process = self.checker.as_ref().unwrap_or(&self.allocator);
        match proving.receive_by(Deadline::after_ms(self.limit_ms)) {
            Ok(ImpReadyAfterProve::Proven { next }) => Ok(next),
            Ok(ImpReadyAfterProve::Refused { reason, .. }) => Err(format!(
                "the extension `{}` refuses what `{}` allocated: {}; {ADVICE}",
                process.name,
                self.allocator.name,
                line(&reason)
            )),
            Ok(ImpReadyAfterProve::ChannelClosed(_)) => Err(process.ended()),
            Err(_) => Err(process.stopped(self.limit_ms)),
        }
    }
}

/// What a person can do about an extension.
const ADVICE: &str = "compile without it";

impl Process {
    fn refused(&self, reason: &[u8]) -> String {
        format!("the extension `{}` refuses a function: {}; {ADVICE}", self.name, line(reason))
    }

    fn lost(&self) -> String {
        format!("the extension `{}` is gone; {ADVICE}", self.name)
    }

    fn ended(&self) -> String {
        let end = self.child.wait().map_or_else(|status| status.text().to_string(), |epitaph| epitaph.to_string());
        format!("the extension `{}` ended: {}; {ADVICE}", self.name, line(end.as_bytes()))
    }

    /// Ends one that takes too long.
    fn stopped(&self, limit_ms: u64) -> String {
        // It may have ended by itself.
        let _ = self.child.stop(StopReason::Requested);
        let _ = self.child.wait();
        format!("the extension `{}` takes more than {limit_ms} ms for a function; {ADVICE}", self.name)
    }
}

/// What a child says, which is a claim: one line of printable text without a remedy.
fn line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text).replace("; ", ", ");
    text.chars().filter(|letter| !letter.is_control()).take(MAX_REASON).collect()
}

fn copy(bytes: &[u8]) -> Result<ExVec<u8>, String> {
    ExVec::from_slice(bytes)
        .map_err(|status| format!("a function of {} bytes: {}; {ADVICE}", bytes.len(), status.text()))
}
