//! The installer: installs, upgrades and uninstalls programs of the running system, subject to the install check.
//!
//! The check sees the system as the kernel has it, with the rules from boot. An accepted package is written to the
//! store, installed in the kernel, and then entered in the store's index, in this order: after a crash the medium has
//! the old or the new state, and the kernel at worst a program that lasts until the machine restarts.
//! Key types: [`store::Store`], [`index::Index`], [`replay::System`]. Deliberately not here: the check (`lib/install`),
//! the right to bind to the installer (the system manifest), and the kernel's own verification.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod compiled;
mod folder;
mod guard;
pub mod index;
mod programs;
pub mod replay;
pub mod store;

use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::RefCell;

use client::access::AccessError;
use client::namespace::Namespace;
use contracts::directory::NameError;
use contracts::installer::{Exp, ExpReady, InstallOutcome, InstallerError, states};
use install::{Change, Code, Finding, Installed, Line, Map, Program, Report, Topic};
use manifest_model::SystemManifest;
use package::Package;
use principal::Pattern;
use sip::exheap::ExVec;
use sip::programs as kernel;
use sip::{Deadline, Status};
use stdio::report;

use crate::compiled::Extensions;
use crate::folder::Folder;
use crate::index::Kept;
use crate::programs::Present;
use crate::replay::System;
use crate::store::Store;

sip::startup!();

/// Serves clients of `/service/installer`.
pub fn main(startup: Startup) -> i32 {
    let booted = match programs::system_manifest() {
        Ok(booted) => booted,
        Err(why) => return failed(&why),
    };
    let changers: Result<Vec<Pattern>, _> = startup.changers.iter().map(|text| Pattern::parse(text)).collect();
    let changers = match changers {
        Ok(changers) => changers,
        Err(error) => return failed(&format!("the parameter `changers`: {error}; {}", error.remedy())),
    };
    let mut installer = Installer {
        namespace: Namespace::new(startup.namespace),
        store: startup.store,
        changers,
        booted,
        present: Present::default(),
        extensions: Extensions { allocator: startup.allocator, checker: startup.checker },
    };
    // Before readiness, so that programs of the store are there once the system has started.
    let is_loaded = installer.load(When::BeforeReady);
    let clients = startup.clients.ready();
    if !is_loaded {
        installer.load(When::Ready);
    }
    let installer = Rc::new(RefCell::new(installer));
    let serving = provider::accept(clients, move |client| serve(installer.clone(), client));
    match sip::executor::block_on(serving) {
        Ok(()) => 0,
        Err(_) => 1,
    }
}

fn failed(why: &str) -> i32 {
    report::error(format_args!("{why}"));
    1
}

type Answer = Result<(InstallOutcome, String), InstallerError>;

/// A requested change.
#[derive(Clone, Copy)]
enum Request<'a> {
    Install(&'a ExVec<u8>),
    Upgrade(&'a ExVec<u8>, bool),
    Uninstall(&'a str),
}

impl Request<'_> {
    /// Its name in the audit log.
    fn right(self) -> &'static str {
        match self {
            Request::Install(_) => "install",
            Request::Upgrade(..) => "upgrade",
            Request::Uninstall(_) => "uninstall",
        }
    }
}

struct Installer {
    namespace: Namespace,
    /// Path of the store's folder; empty if there is none.
    store: String,
    /// Principals that may make changes; if empty, all that may bind.
    changers: Vec<Pattern>,
    booted: SystemManifest,
    present: Present,
    /// What the compiler is started with.
    extensions: Extensions,
}

/// Serves one client. Requests of all clients are serialised: each is checked against the result of the previous one.
async fn serve(installer: Rc<RefCell<Installer>>, client: Exp<states::Start>) {
    let mut client = client.success();
    macro_rules! answered {
        ($next:expr, $answer:expr) => {{
            let next = $next;
            let answer: Answer = $answer(&mut *installer.borrow_mut(), &sip::principal::of_peer(&next));
            match answer.and_then(|(outcome, text)| Ok((outcome, report_block(&text)?))) {
                Ok((outcome, report)) => next.reported(outcome, report),
                Err(error) => next.failed(error),
            }
        }};
    }
    loop {
        client = match client.receive_async().await {
            ExpReady::Install { package, dry_run, next } => {
                answered!(next, |installer: &mut Installer, who: &_| installer.change(
                    who,
                    Request::Install(&package),
                    dry_run
                ))
            }
            ExpReady::Upgrade { package, more, dry_run, next } => {
                answered!(next, |installer: &mut Installer, who: &_| installer.change(
                    who,
                    Request::Upgrade(&package, more),
                    dry_run
                ))
            }
            ExpReady::Uninstall { name, dry_run, next } => {
                let name = name.to_text();
                answered!(next, |installer: &mut Installer, who: &_| installer.change(
                    who,
                    Request::Uninstall(&name),
                    dry_run
                ))
            }
            ExpReady::Verify { next } => answered!(next, |installer: &mut Installer, _: &_| installer.verify()),
            ExpReady::Explain { name, next } => {
                let name = name.to_text();
                answered!(next, |installer: &mut Installer, _: &_| installer.explain(&name))
            }
            ExpReady::ChannelClosed(_) => return,
        };
    }
}

fn report_block(text: &str) -> Result<ExVec<u8>, InstallerError> {
    ExVec::from_slice(text.as_bytes()).map_err(|_| InstallerError::Exhausted)
}

impl Installer {
    /// Installs the store's programs in the kernel; returns whether there was time for all. The installer starts after the
    /// volumes are mounted.
    fn load(&mut self, when: When) -> bool {
        if self.store.is_empty() {
            return true;
        }
        let mut store = match self.existing_store() {
            Ok(Some(store)) => store,
            // No store or no such volume; do not create one just to read it.
            Ok(None) | Err(Unusable::Absent) => return true,
            Err(Unusable::Because(why)) => {
                report::error(format_args!("{}: {why}", self.store));
                return true;
            }
        };
        let index = store.index().clone();
        let until = match when {
            When::BeforeReady => Some(Deadline::PASSED),
            When::Ready => None,
        };
        let mut replayed = Replayed { installer: self, store: &mut store, until, is_late: false };
        let problems = replay::replay(&index, &mut replayed);
        if replayed.is_late {
            return false;
        }
        for why in problems {
            report::error(format_args!("{}: {why}", self.store));
        }
        true
    }

    /// The check of `lib/install`, and restrictions of a running system.
    fn judge(&self, present: &Installed, change: &Change<'_>) -> Report {
        let mut report = install::check(present, change);
        let starts = |name: &str| self.booted.instances.iter().any(|instance| instance.program == name);
        let problem = match change {
            Change::Uninstall { name } if starts(name) => Some("it starts with the system"),
            Change::Upgrade { program: Program { manifest, .. }, .. } if starts(&manifest.name) => {
                let fits = present.manifest(&manifest.name).is_none_or(|old| programs::fits_running(old, manifest));
                (!fits).then_some(
                    "it starts with the system, and the new version has other parameters, endpoints, paths, \
                     devices or contracts",
                )
            }
            _ => None,
        };
        if let Some(what) = problem {
            let remedy = "change the system image with `cargo sing` and start it";
            report.lines.push(Line::refused(Finding::new(Code::NeedsRestart, change.name(), what, remedy)));
        }
        report
    }

    fn change(&mut self, who: &Result<String, Status>, request: Request<'_>, dry_run: bool) -> Answer {
        if !dry_run {
            self.allow(who, request.right())?;
        }
        let present = self.present.get(&self.booted).map_err(|_| InstallerError::Exhausted)?;
        let (outcome, name, report) = self.changed(&present, request, dry_run)?;
        if let (InstallOutcome::Refused, false, Ok(who)) = (outcome, dry_run, who) {
            let mut codes: Vec<&str> = report.refused().filter_map(|line| Some(line.code?.text())).collect();
            codes.sort_unstable();
            codes.dedup();
            // An invalid name is not copied to the log.
            let object = if manifest_model::is_name(&name) { name } else { "invalid name".into() };
            sip::audit::refused(who, request.right(), &object, &codes.join(" "));
        }
        Ok((outcome, report.to_string()))
    }

    /// Makes the change if the check accepts it and it is not a dry run. Also returns the program's name and the
    /// report.
    fn changed(
        &mut self,
        present: &Installed,
        request: Request<'_>,
        dry_run: bool,
    ) -> Result<(InstallOutcome, String, Report), InstallerError> {
        let program = match request {
            Request::Install(package) | Request::Upgrade(package, _) => match program_of(package) {
                Ok(program) => Some(program),
                Err(line) => {
                    let report = Report { lines: Vec::from([line]), reach: None };
                    return Ok((InstallOutcome::Refused, "package".into(), report));
                }
            },
            Request::Uninstall(_) => None,
        };
        let change = match (request, &program) {
            (Request::Upgrade(_, more), Some(program)) => Change::Upgrade { program, more },
            (Request::Uninstall(name), _) => Change::Uninstall { name },
            (_, Some(program)) => Change::Install { program, at_boot: false, allow: &[] },
            (_, None) => return Err(InstallerError::Exhausted),
        };
        let name = String::from(change.name());
        let mut report = self.judge(present, &change);
        if let (Request::Install(package) | Request::Upgrade(package, _), true) = (request, report.is_accepted()) {
            // Report the kernel's verification too: signature, image, instructions.
            report.lines.insert(
                0,
                match kernel::check(package) {
                    Ok(_) => Line::proved(Topic::Signature, verified_of(program.as_ref())),
                    Err(error) => refusal(change.name(), &error.reason),
                },
            );
        }
        if !report.is_accepted() || dry_run {
            let outcome = if report.is_accepted() { InstallOutcome::Proved } else { InstallOutcome::Refused };
            return Ok((outcome, name, report));
        }
        let more = matches!(request, Request::Upgrade(_, true));
        let (outcome, line) = match (request, &program) {
            (Request::Install(package) | Request::Upgrade(package, _), Some(program)) => {
                self.install(present, program, package, more)
            }
            _ => self.uninstall(change.name()),
        };
        report.lines.push(line);
        Ok((outcome, name, report))
    }

    /// Checks that the caller may make changes; a refusal is audited.
    fn allow(&self, who: &Result<String, Status>, right: &str) -> Result<(), InstallerError> {
        let who = who.as_ref().map_err(|_| InstallerError::NotPermitted)?;
        if self.changers.is_empty() || self.changers.iter().any(|pattern| pattern.matches(who)) {
            return Ok(());
        }
        sip::audit::refused(who, right, client::installer::PATH, "parameter changers");
        Err(InstallerError::NotPermitted)
    }

    /// Installs an accepted package.
    fn install(
        &mut self,
        present: &Installed,
        program: &Program,
        package: &ExVec<u8>,
        more: bool,
    ) -> (InstallOutcome, Line) {
        let ready = match compiled::ready(&self.extensions, present, package, None, None) {
            Ok(ready) => ready,
            Err(failed) => return (InstallOutcome::Refused, failed.line(&program.manifest.name)),
        };
        let kept = Kept { name: program.manifest.name.clone(), version: program.manifest.version, more };
        // A store failure does not prevent the install; the report says that it lasts until a restart.
        let staged = self.open_store().map_err(|why| why.explanation(&self.store)).and_then(|mut store| {
            store.stage(&kept, package, &ready.kept)?;
            Ok(store)
        });
        if let Err(error) = kernel::install(&ready.block) {
            if let Ok(mut store) = staged {
                store.discard(&kept);
            }
            return (InstallOutcome::Refused, refusal(&kept.name, &error.reason));
        }
        let done = staged.and_then(|mut store| store.commit(kept));
        self.outcome(done)
    }

    fn uninstall(&mut self, name: &str) -> (InstallOutcome, Line) {
        if let Err(status) = kernel::uninstall(name) {
            return (InstallOutcome::Refused, refusal(name, status.text()));
        }
        let is_of_the_image = self.booted.programs().contains(&name);
        let opened = self.open_store().map_err(|why| why.explanation(&self.store));
        let kept = opened.and_then(|mut store| store.unlist(name, is_of_the_image));
        self.outcome(kept)
    }

    fn outcome(&self, kept: Result<(), String>) -> (InstallOutcome, Line) {
        match kept {
            Ok(()) => (InstallOutcome::Done, Line::proved(Topic::System, format!("kept in {}", self.store))),
            Err(why) => {
                let what = format!("done, and lasts until the machine restarts: {why}");
                (InstallOutcome::NotKept, Line::note(Topic::System, what))
            }
        }
    }

    /// The store, created if its volume is mounted and has none.
    fn open_store(&mut self) -> Result<Store<Folder>, Unusable> {
        if self.store.is_empty() {
            return Err(Unusable::Absent);
        }
        let folder = Folder::open(&mut self.namespace, &self.store)?;
        Store::open(folder).map_err(Unusable::Because)
    }

    /// The store, if it exists.
    fn existing_store(&mut self) -> Result<Option<Store<Folder>>, Unusable> {
        if self.store.is_empty() {
            return Ok(None);
        }
        let folder = Folder::existing(&mut self.namespace, &self.store)?;
        folder.map(Store::open).transpose().map_err(Unusable::Because)
    }

    fn verify(&mut self) -> Answer {
        let present = self.present.get(&self.booted).map_err(|_| InstallerError::Exhausted)?;
        let mut report = install::verify(&present);
        let opened = self.existing_store();
        if let Err(Unusable::Because(why)) = &opened {
            report.lines.push(Line::note(Topic::File, format!("{} is ignored: {why}", self.store)));
        }
        if let Ok(Some(mut store)) = opened {
            for kept in store.index().kept.clone() {
                let subject = &kept.name;
                report.lines.push(match store.package(&kept) {
                    Err(why) => {
                        let (what, remedy) = why.rsplit_once("; ").unwrap_or((&why, ""));
                        Line::refused(Finding::new(Code::NotAsKept, subject, what, remedy))
                    }
                    Ok(bytes) => {
                        let image = store.image(&kept);
                        match compiled::ready(&self.extensions, &present, &bytes, image.as_deref(), None) {
                            Err(failed) => failed.line(subject),
                            Ok(ready) => match kernel::check(&ready.block) {
                                Ok(_) => {
                                    Line::proved(Topic::File, format!("`{subject}` as it is kept in {}", self.store))
                                }
                                Err(error) => refusal(subject, &error.reason),
                            },
                        }
                    }
                });
            }
        }
        let outcome = if report.is_accepted() { InstallOutcome::Proved } else { InstallOutcome::Refused };
        Ok((outcome, report.to_string()))
    }

    fn explain(&mut self, name: &str) -> Answer {
        let present = self.present.get(&self.booted).map_err(|_| InstallerError::Exhausted)?;
        let Some(program) = present.program(name) else {
            let remedy = "`help` lists the programs";
            let finding = Finding::new(Code::NotInstalled, name, format!("no program `{name}` is installed"), remedy);
            return Ok((InstallOutcome::Refused, Line::refused(finding).to_string() + "\n"));
        };
        let map = Map::of(&present);
        let rows = install::explanation(&present, program, &map);
        let mut text: String = rows.iter().map(|(word, text)| format!("{word:<12} {text}\n")).collect();
        if let Some(reach) = map.reach(name) {
            text.push_str(&reach.to_string());
        }
        Ok((InstallOutcome::Proved, text))
    }
}

/// When the store is replayed.
#[derive(Clone, Copy)]
enum When {
    /// WebAssembly programs are left for later: the system does not wait for proofs, and starts without an installer that
    /// is not ready in time.
    BeforeReady,
    /// There is time for everything.
    Ready,
}

/// The running system, during replay of the store.
struct Replayed<'a> {
    installer: &'a Installer,
    store: &'a mut Store<Folder>,
    /// When there is no more time for WebAssembly programs.
    until: Option<Deadline>,
    /// Whether there was not enough of it.
    is_late: bool,
}

impl Replayed<'_> {
    fn present(&self) -> Result<Rc<Installed>, String> {
        self.installer.present.get(&self.installer.booted).map_err(|status| status.text().to_string())
    }

    fn judged(&self, present: &Installed, change: &Change<'_>) -> Result<(), String> {
        self.installer.judge(present, change).refused().next().map_or(Ok(()), |line| Err(line.to_string()))
    }
}

impl System for Replayed<'_> {
    fn has(&mut self, name: &str) -> bool {
        self.present().is_ok_and(|present| present.program(name).is_some())
    }

    fn has_kept(&mut self, kept: &Kept) -> bool {
        let Ok(present) = self.present() else { return false };
        let there = present.manifest(&kept.name).filter(|there| there.version == kept.version);
        there.is_some_and(|there| match self.store.package(kept) {
            Ok(bytes) => Package::parse(&bytes).is_ok_and(|package| package.manifest == *there),
            Err(_) => false,
        })
    }

    fn uninstall(&mut self, name: &str) -> Result<(), String> {
        let present = self.present()?;
        self.judged(&present, &Change::Uninstall { name })?;
        kernel::uninstall(name).map_err(|status| status.text().to_string())
    }

    fn install(&mut self, kept: &Kept) -> Result<(), String> {
        let bytes = self.store.package(kept)?;
        let present = self.present()?;
        let program = program_of(&bytes).map_err(|line| line.to_string())?;
        let change = match present.program(&kept.name) {
            // Its reach was approved at install, and no other program can write to the store.
            Some(_) => Change::Upgrade { program: &program, more: kept.more },
            None => Change::Install { program: &program, at_boot: false, allow: &[] },
        };
        self.judged(&present, &change)?;
        let is_module = program.manifest.code.template().is_some();
        let image = if is_module { self.store.image(kept) } else { None };
        let ready = compiled::ready(&self.installer.extensions, &present, &bytes, image.as_deref(), self.until);
        // Whatever failed, it is tried again without a limit.
        self.is_late |= is_module && ready.is_err() && self.until.is_some();
        let ready = ready.map_err(|failed| failed.line(&kept.name).to_string())?;
        kernel::install(&ready.block).map_err(|error| error.to_string())?;
        if image.as_ref().is_some_and(|image| *image != ready.kept) {
            report::error(format_args!("the kept image of `{}` was not its own, and is compiled again", kept.name));
        }
        if ready.kept != image.unwrap_or_default() {
            // Without it, the next start compiles again.
            let _ = self.store.keep_image(kept, &ready.kept);
        }
        Ok(())
    }
}

/// Why a store cannot be used.
enum Unusable {
    /// There is no volume, or no store is configured.
    Absent,
    /// Another reason, for a message.
    Because(String),
}

impl From<AccessError> for Unusable {
    fn from(error: AccessError) -> Unusable {
        match error {
            AccessError::Name(NameError::NotFound | NameError::Unavailable) => Unusable::Absent,
            error => Unusable::Because(error.to_string()),
        }
    }
}

impl Unusable {
    fn explanation(self, path: &str) -> String {
        match self {
            Unusable::Absent if path.is_empty() => {
                "this system has no store (the installer's parameter `store`)".into()
            }
            Unusable::Absent => format!("there is no volume at {path}"),
            Unusable::Because(why) => format!("{path}: {why}"),
        }
    }
}

/// Decodes a package without verifying it, which the kernel does later; or the line to report.
fn program_of(package: &[u8]) -> Result<Program, Line> {
    match Package::parse(package) {
        Ok(package) => Ok(Program { manifest: package.manifest, key: package.key }),
        Err(error) => Err(refusal("", &error.to_string())),
    }
}

/// What the kernel's check of a package has verified.
fn verified_of(program: Option<&Program>) -> &'static str {
    match program.and_then(|program| program.manifest.code.template()) {
        Some(_) => {
            "the kernel has verified signature, trust and module, which is compiled and proven when it is installed"
        }
        None => "the kernel has verified signature, trust, image and instructions",
    }
}

/// A report line for a refused program. `why`: the problem, and after a semicolon the remedy.
fn refusal(name: &str, why: &str) -> Line {
    let (what, remedy) = why.rsplit_once("; ").unwrap_or((why, ""));
    Line::refused(Finding::new(Code::KernelRefuses, name, what, remedy))
}
