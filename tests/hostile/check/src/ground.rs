//! Targets of attacks, and services that must still work afterwards.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use client::access::AccessError;
use client::namespace::Namespace;
use client::volume_managers::VolumeManager;
use contracts::directory::{self, CreateMode};
use contracts::volume_manager::{FormatOptions, MountAccess};
use hostile_contract::guard::{self, ImpReadyAfterCheck, ImpReadyAfterServe};
use hostile_contract::talk::{self, ImpReadyAfterCall, ImpStart};
use sip::exheap::ExVec;
use sip::process::{Child, StopReason, create};
use sip::{Deadline, diagnostics};

use crate::{Outcome, check};

const VICTIM: &str = "hostile-victim";
const GUARD_SLOT: usize = 0;
/// Prefix of hostile programs and their children.
const OURS: &str = "hostile-";
const DISK: &str = "/dev/ram0";
const VOLUME: &str = "/fs/vault";
const FILE: &str = "/fs/vault/ledger";
const FILE_BYTES: usize = 20_000;
/// Default format options.
const OPTIONS: FormatOptions =
    FormatOptions { block_bytes: 0, nodes: 0, reserved_percent: 0, plain: 0, label: [0; 32] };
/// Timeout for the victim's reply.
const LIMIT_MS: u64 = 60_000;

/// All targets.
pub(crate) struct Ground {
    namespace: Namespace,
    victim: Victim,
    /// Epitaphs already checked.
    epitaphs: String,
}

/// A running victim.
struct Victim {
    process: Child,
    guard: Option<guard::Imp<guard::states::Ready>>,
}

fn said(what: &str) -> impl Fn(AccessError) -> String + use<'_> {
    move |error| format!("{what}: {error}")
}

impl Ground {
    /// Starts the victim and writes the file.
    pub(crate) fn prepare(namespace: directory::Imp<directory::states::Ready>) -> Result<Ground, String> {
        let mut namespace = Namespace::new(namespace);
        let mut manager = VolumeManager::open(&mut namespace, "ext2").map_err(|error| error.to_string())?;
        manager.format(DISK, OPTIONS).map_err(|error| error.to_string())?;
        manager.mount(DISK, VOLUME, MountAccess::WriteIfPossible).map_err(|error| error.to_string())?;
        let block = ExVec::from_slice(&content()).map_err(|status| String::from(status.text()))?;
        let mut file = namespace.create_file(FILE, 0o644, CreateMode::New).map_err(said(FILE))?;
        file.write_at(block, 0, FILE_BYTES).and_then(|written| written.all()).map_err(said(FILE))?;
        drop(file);
        // The memory disk allocates blocks as it is written, which must be over before resources are counted.
        namespace.open_directory(VOLUME).and_then(|mut volume| volume.sync()).map_err(said(VOLUME))?;
        let mut ground = Ground { namespace, victim: Victim::start()?, epitaphs: String::new() };
        ground.serves()?;
        ground.epitaphs = epitaphs()?;
        Ok(ground)
    }

    /// A conversation with the victim, for a hostile program.
    pub(crate) fn new_client(&mut self) -> Result<talk::Imp<talk::states::Ready>, String> {
        self.victim.new_client()
    }

    /// The namespace, for a hostile program.
    pub(crate) fn new_names(&mut self) -> Result<directory::Imp<directory::states::Ready>, String> {
        let names = self.namespace.open_directory("/").map_err(said("/"))?;
        names.into_endpoint().ok_or_else(|| String::from("the namespace has ended"))
    }

    /// Replaces a damaged victim.
    pub(crate) fn renew_victim(&mut self) -> Outcome {
        let _ = self.victim.process.stop(StopReason::Requested);
        self.victim = Victim::start()?;
        self.epitaphs = epitaphs()?;
        Ok(())
    }

    /// Checks the victim's canaries.
    pub(crate) fn is_unharmed(&mut self) -> Outcome {
        self.victim.is_unharmed()
    }

    /// Checks that the machine still works: the victim replies, a file is read, a process is created and communicates.
    pub(crate) fn serves(&mut self) -> Outcome {
        self.victim.answers()?;
        check!(self.read()? == content(), "{FILE} says something else");
        let mut other = Victim::start().map_err(|why| format!("no process can be created: {why}"))?;
        other.is_unharmed()?;
        other.end()
    }

    /// Checks that no other program than hostile ones and their children has ended since the last call.
    pub(crate) fn nobody_else_ended(&mut self) -> Outcome {
        let now = epitaphs()?;
        let before = core::mem::replace(&mut self.epitaphs, now);
        let is_old = |line: &str| before.lines().any(|old| old == line);
        let others: Vec<&str> = self.epitaphs.lines().filter(|line| !line.contains(OURS) && !is_old(line)).collect();
        check!(others.is_empty(), "others ended: {}", others.join("; "));
        Ok(())
    }

    fn read(&mut self) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        let read = self.namespace.open_file(FILE).and_then(|mut file| {
            let mut pieces = file.pieces();
            while let Some(piece) = pieces.next()? {
                bytes.extend_from_slice(piece);
            }
            Ok(bytes)
        });
        read.map_err(said(FILE))
    }
}

impl Victim {
    fn start() -> Result<Victim, String> {
        let refused = |status: sip::Status| format!("{VICTIM}: {}", status.text());
        let (importer, exporter) = guard::new_channel().map_err(refused)?;
        let child = create(VICTIM).map_err(|error| format!("{VICTIM}: {error}"))?;
        let process = child.endpoint(GUARD_SLOT, exporter).and_then(Child::start).map_err(refused)?;
        Ok(Victim { process, guard: Some(importer) })
    }

    fn guard(&mut self) -> Result<guard::Imp<guard::states::Ready>, String> {
        self.guard.take().ok_or_else(|| self.ended())
    }

    fn ended(&self) -> String {
        match self.process.wait_until(Deadline::PASSED) {
            Ok(epitaph) => format!("the victim ended: {epitaph}"),
            Err(_) => String::from("the victim does not answer"),
        }
    }

    fn is_unharmed(&mut self) -> Outcome {
        match self.guard()?.check().receive_by(Deadline::after_ms(LIMIT_MS)) {
            Ok(ImpReadyAfterCheck::Intact { next }) => {
                self.guard = Some(next);
                Ok(())
            }
            Ok(ImpReadyAfterCheck::Damaged { place, index, found, next }) => {
                self.guard = Some(next);
                Err(format!("the victim's canary was overwritten: {place:?}, at {index} is {found:#x}"))
            }
            Ok(ImpReadyAfterCheck::ChannelClosed(_)) | Err(_) => Err(self.ended()),
        }
    }

    fn new_client(&mut self) -> Result<talk::Imp<talk::states::Ready>, String> {
        let (client, server) =
            talk::new_channel().map_err(|status| format!("a channel to the victim: {}", status.text()))?;
        match self.guard()?.serve(server).receive_by(Deadline::after_ms(LIMIT_MS)) {
            Ok(ImpReadyAfterServe::Serving { next }) => self.guard = Some(next),
            Ok(ImpReadyAfterServe::ChannelClosed(_)) | Err(_) => return Err(self.ended()),
        }
        match client.receive_by(Deadline::after_ms(LIMIT_MS)) {
            Ok(ImpStart::Success { next }) => Ok(next),
            Ok(ImpStart::ChannelClosed(_)) | Err(_) => Err(self.ended()),
        }
    }

    fn answers(&mut self) -> Outcome {
        match self.new_client()?.call(41).receive_by(Deadline::after_ms(LIMIT_MS)) {
            Ok(ImpReadyAfterCall::Answer { value: 42, .. }) => Ok(()),
            Ok(ImpReadyAfterCall::Answer { value, .. }) => Err(format!("the victim answers {value}, not 42")),
            Ok(ImpReadyAfterCall::ChannelClosed(_)) | Err(_) => Err(self.ended()),
        }
    }

    /// It exits when its endpoint closes.
    fn end(mut self) -> Outcome {
        self.guard = None;
        let epitaph = self.process.wait_until(Deadline::after_ms(LIMIT_MS));
        let epitaph =
            epitaph.map_err(|status| format!("a process that was created does not end: {}", status.text()))?;
        check!(epitaph.is_success(), "a process that was created ended otherwise: {epitaph}");
        Ok(())
    }
}

fn content() -> Vec<u8> {
    (0..FILE_BYTES as u64).map(|index| hostile_contract::pattern::word(7, index) as u8).collect()
}

fn epitaphs() -> Result<String, String> {
    diagnostics::epitaphs().map_err(|status| format!("the epitaphs: {}", status.text()))
}
