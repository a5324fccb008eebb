//! Hardware protection domains: each is a process of the host that has nothing but the memory mapped into it.
//!
//! Key type: [`Domains`]. A domain's process has two kinds of threads: the *mapper*, which does what the kernel commands;
//! and *runners*, on which the domain's programs run, one for each processor that is in the domain at once. The kernel's memory, image and stack arenas are files then, of which the mapper maps parts at the
//! addresses that they have in the kernel. A thread enters by giving a runner its turn and waits, first spinning, then
//! asleep; it comes out by a call, a fault or the signal that interrupts it. Neighbours: `stub` has the code, `template`
//! makes the processes, `mapper` commands them, `control` is what both sides write.
//!
//! What comes out of a domain is a claim. The one thing that the kernel relies on is that memory is unmapped when
//! [`Domains::unmap`] returns: the mapper acknowledges it through a file that no runner has, or the process has ended. A
//! runner that does not come out when interrupted ends with its process.
//!
//! Locks: a domain's, for moments and while its mapper works. Deliberately not here: which program is in which domain.

#[allow(unsafe_code)]
mod control;
mod filter;
mod image_pages;
mod kept;
mod mapper;
#[allow(unsafe_code)]
mod stub;
#[allow(unsafe_code)]
mod template;
mod window;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use abi::limits::STACK_GUARD_BYTES;
use abi::stack;
use hal_api::{Arena, DomainAccess, DomainContext, DomainExit, DomainId, Fault, FaultKind, Layout, MapError};

use self::control::{Command, Control, Controls, Exchange};
use self::image_pages::ImagePages;
use self::kept::Kept;
use self::mapper::{Issued, Mapper, command, of_kind};
use self::template::{MemoryFiles, Template};
use self::window::{IMAGES_FILE, MEMORY_FILE, STACKS_FILE};
use crate::arena::{self, HOST_PAGE_BYTES, range_within};
use crate::image::{self, Images};
use crate::{entries, processor, signal};

/// Maximum domains: what the hosts' usual limits of open files and processes allow.
pub(crate) const MAX_DOMAINS: usize = 1024;

/// Turns of a loop before a thread that is in a domain sleeps: some microseconds, longer than it takes from one call to
/// the next in a program that exchanges messages.
const SPINS: u32 = 500;
const YIELDS: u32 = 100;
/// A thread in a domain is interrupted after this long.
const QUANTUM: Duration = Duration::from_millis(10);
/// An interrupt that found the stub at work is repeated after this long.
const AGAIN: Duration = Duration::from_millis(1);
/// A runner has to come out by this many interrupts, one each millisecond. Counted, because time that the host gives to
/// nobody, as when it is paused, is not the runner's fault.
const MAX_INTERRUPTS: u32 = 2_000;
/// Commands that a domain's process is made with.
const FIRST_COMMANDS: usize = 3;
/// A runner is a thread with the mapper's memory and signal handlers, and without its files.
const OF_A_RUNNER: libc::c_int = libc::CLONE_VM
    | libc::CLONE_FS
    | libc::CLONE_SIGHAND
    | libc::CLONE_THREAD
    | libc::CLONE_SYSVSEM
    | libc::CLONE_PARENT_SETTID;

/// The domains of the machine.
#[derive(Debug)]
pub(crate) struct Domains {
    window: usize,
    layout: Layout,
    template: Arc<Template>,
    kept: Kept,
    images: File,
    /// First addresses of the image pages that are in the file of images.
    written: Mutex<BTreeSet<usize>>,
    list: Box<[Mutex<Option<Arc<Domain>>>]>,
    count: AtomicUsize,
}

/// A domain's process. Its part of the file of controls is free once nobody refers to it any more.
#[derive(Debug)]
struct Domain {
    window: usize,
    mapper: Mapper,
    template: Arc<Template>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    issued: Issued,
    /// Mappings that are made before the domain is entered the next time.
    later: Vec<Command>,
    images: ImagePages,
    /// Runners made, and those in use, by bit.
    made: usize,
    used: u64,
    /// Number that the host has given the first runner's thread, once it is known.
    thread: Option<u64>,
    stage: Stage,
}

/// A domain's life and its process's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Open,
    /// Nothing is mapped any more but the stub and pages of images.
    Closed,
    /// The runner resets itself, or has.
    Resetting,
    /// Nothing is left of the programs.
    Clean,
}

/// The arenas' files, for a machine with domains.
#[derive(Debug)]
pub(crate) struct ArenaFiles {
    pub(crate) memory: OwnedFd,
    pub(crate) stacks: OwnedFd,
}

thread_local! {
    /// The runner that this processor was in last.
    static LAST: RefCell<Option<(Arc<Domain>, usize)>> = const { RefCell::new(None) };
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Domains {
    /// Starts the template and tries a domain. The process has one thread.
    ///
    /// # Errors
    /// What the host refuses.
    pub(crate) fn start(layout: Layout, arenas: ArenaFiles) -> io::Result<Self> {
        let window = arena::reserve_window(window::BYTES)?;
        let images = image::sized_file(c"singularity-images", layout.images.bytes)?;
        let mut shared = image::memory_file(c"singularity-stub")?;
        shared.write_all(&stub::bytes(window))?;
        let controls: OwnedFd = image::sized_file(c"singularity-domains", window::CONTROLS_BYTES)?.into();
        let mapped = Arc::new(Controls::map(controls.as_fd())?);
        let files = MemoryFiles { arenas, images: images.try_clone()?.into(), controls };
        let domains = Self {
            window,
            layout,
            template: Arc::new(Template::start(window, shared.as_fd(), &files, mapped)?),
            kept: Kept::default(),
            images,
            written: Mutex::default(),
            list: (0..window::PARTS).map(|_| Mutex::default()).collect(),
            count: AtomicUsize::new(0),
        };
        domains.try_one()?;
        Ok(domains)
    }

    /// Enters a domain that has nothing, and sees it fault: all that the host has to allow has been used then.
    fn try_one(&self) -> io::Result<()> {
        let domain = Arc::new(self.create_domain()?);
        let mut context = DomainContext::start(HOST_PAGE_BYTES, HOST_PAGE_BYTES, 0);
        let exit = domain.enter(&mut context);
        domain.end();
        match exit {
            DomainExit::Missing(fault) if fault.instruction == HOST_PAGE_BYTES => Ok(()),
            _ => {
                Err(io::Error::other("a process for a domain ended by itself: seccomp filters may not be allowed here"))
            }
        }
    }

    /// See [`hal_api::Machine::domain_gate`].
    pub(crate) fn gate(&self, number: usize) -> usize {
        stub::gate(self.window, number)
    }

    /// Returns the number of domains.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    fn create_domain(&self) -> io::Result<Domain> {
        Ok(Domain {
            window: self.window,
            mapper: self.template.create()?,
            template: Arc::clone(&self.template),
            state: Mutex::new(State {
                issued: Issued::first(FIRST_COMMANDS),
                later: Vec::new(),
                images: ImagePages::default(),
                made: 1,
                used: 0,
                thread: None,
                stage: Stage::Open,
            }),
        })
    }

    /// See [`hal_api::Machine::domain_create`].
    pub(crate) fn create(&self) -> Option<DomainId> {
        if self.count.fetch_add(1, Ordering::Relaxed) >= MAX_DOMAINS {
            self.count.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let Some(domain) = self.kept.take().or_else(|| self.create_domain().ok().map(Arc::new)) else {
            self.count.fetch_sub(1, Ordering::Relaxed);
            return None;
        };
        // The number of its part: no other domain has it while anybody refers to this one.
        let number = domain.mapper.control.part();
        *lock(&self.list[number]) = Some(domain);
        Some(DomainId(number as u32))
    }

    /// See [`hal_api::Machine::domain_close`].
    pub(crate) fn close(&self, id: DomainId) {
        if let Some(domain) = self.get(id) {
            domain.close();
        }
    }

    /// See [`hal_api::Machine::domain_destroy`].
    pub(crate) fn destroy(&self, id: DomainId) {
        let found = self.list.get(id.0 as usize).and_then(|place| lock(place).take());
        if let Some(domain) = found {
            self.count.fetch_sub(1, Ordering::Relaxed);
            domain.close();
            if !Mapper::is_ended(&lock(&domain.state).issued) {
                self.kept.keep(domain);
            }
        }
    }

    fn get(&self, id: DomainId) -> Option<Arc<Domain>> {
        self.list.get(id.0 as usize).and_then(|place| lock(place).clone())
    }

    /// See [`hal_api::Machine::domain_map`].
    pub(crate) fn map(
        &self,
        images: &Images,
        id: DomainId,
        address: usize,
        bytes: usize,
        access: DomainAccess,
    ) -> Result<(), MapError> {
        let (file, offset) = self.place(address, bytes).ok_or(MapError)?;
        if file == IMAGES_FILE {
            self.write_image(images, address, bytes, offset)?;
        }
        let protection = match access {
            DomainAccess::Read => libc::PROT_READ,
            DomainAccess::Write => libc::PROT_READ | libc::PROT_WRITE,
            DomainAccess::Execute => libc::PROT_READ | libc::PROT_EXEC,
        };
        self.get(id).ok_or(MapError)?.map_later(address, bytes, protection, file, offset);
        Ok(())
    }

    /// See [`hal_api::Machine::domain_map_private`].
    pub(crate) fn map_private(
        &self,
        id: DomainId,
        address: usize,
        memory: usize,
        bytes: usize,
    ) -> Result<(), MapError> {
        let (file, offset) = self.place(memory, bytes).filter(|&(file, _)| file == MEMORY_FILE).ok_or(MapError)?;
        let Layout { images, windows, .. } = self.layout;
        let may_be_there = [images, windows].into_iter().any(|arena| range_within(arena, address, bytes));
        let domain = self.get(id).filter(|_| may_be_there).ok_or(MapError)?;
        domain.map_later(address, bytes, libc::PROT_READ | libc::PROT_WRITE, file, offset);
        Ok(())
    }

    /// See [`hal_api::Machine::domain_map_stack`]. Maps the whole stack but its guard: what is not used costs nothing.
    pub(crate) fn map_stack(&self, id: DomainId, address: usize) -> Result<(), MapError> {
        let start = stack::start(address) + STACK_GUARD_BYTES;
        let bytes = stack::bytes_at(address) - STACK_GUARD_BYTES;
        let (file, offset) = self.place(start, bytes).filter(|&(file, _)| file == STACKS_FILE).ok_or(MapError)?;
        self.get(id).ok_or(MapError)?.map_later(start, bytes, libc::PROT_READ | libc::PROT_WRITE, file, offset);
        Ok(())
    }

    /// See [`hal_api::Machine::domain_unmap`].
    pub(crate) fn unmap(&self, id: DomainId, address: usize, bytes: usize) {
        let is_known = self.place(address, bytes).is_some() || range_within(self.layout.windows, address, bytes);
        assert!(is_known, "{bytes} bytes at {address:#x} are in no arena");
        let Some(domain) = self.get(id) else { return };
        let mut state = lock(&domain.state);
        if state.stage != Stage::Open {
            return;
        }
        let mut commands = state.take_later();
        state.images.forget(address..address + bytes);
        commands.push(unmap(address, address + bytes));
        domain.command(&mut state, &commands);
    }

    /// See [`hal_api::Machine::domain_enter`].
    pub(crate) fn enter(&self, id: DomainId, context: &mut DomainContext) -> DomainExit {
        match self.get(id) {
            Some(domain) => domain.enter(context),
            None => DomainExit::Fault(ended(context)),
        }
    }

    /// Returns the file that has these pages of an arena, and their offset in it.
    fn place(&self, address: usize, bytes: usize) -> Option<(i32, usize)> {
        let within = |arena: Arena| range_within(arena, address, bytes).then(|| address - arena.base);
        let Layout { memory, stacks, images, .. } = self.layout;
        [(memory, MEMORY_FILE), (stacks, STACKS_FILE), (images, IMAGES_FILE)]
            .into_iter()
            .find_map(|(arena, file)| Some((file, within(arena)?)))
    }

    /// Writes pages of an image, once, to the file that domains map them from. The kernel's own mapping is of a file that
    /// cannot be changed.
    fn write_image(&self, images: &Images, address: usize, bytes: usize, offset: usize) -> Result<(), MapError> {
        let mut written = lock(&self.written);
        if written.contains(&address) {
            return Ok(());
        }
        let pages = images.bytes(address, bytes).ok_or(MapError)?;
        self.images.write_all_at(pages, offset as u64).map_err(|_| MapError)?;
        written.insert(address);
        Ok(())
    }
}

/// The fault of a thread whose domain's process has ended.
fn ended(context: &DomainContext) -> Fault {
    Fault {
        kind: FaultKind::DomainEnded,
        instruction: context.instruction as usize,
        address: 0,
        stack: context.stack(),
    }
}

impl Domain {
    fn map_later(&self, address: usize, bytes: usize, protection: i32, file: i32, offset: usize) {
        let flags = libc::MAP_SHARED | libc::MAP_FIXED;
        let arguments = [address as u64, bytes as u64, protection as u64, flags as u64, file as u64, offset as u64];
        let command = command(libc::SYS_mmap, arguments);
        let mut state = lock(&self.state);
        if file != IMAGES_FILE || !state.images.is_left(&command) {
            state.later.push(command);
        }
    }

    /// Has the mapper do all these; false if the process has ended, which it does if one fails.
    fn command(&self, state: &mut State, commands: &[Command]) -> bool {
        self.mapper.command(&mut state.issued, commands)
    }

    /// Ends the process. When this returns it has no memory.
    fn end(&self) {
        self.mapper.end(&mut lock(&self.state).issued);
    }

    /// Leaves nothing mapped but the stub and pages of images, if the process can be kept; else ends it. The domain is not
    /// entered again.
    fn close(&self) {
        let mut state = lock(&self.state);
        if state.stage != Stage::Open {
            return;
        }
        let undone = std::mem::take(&mut state.later);
        if state.made != 1 || state.used != 0 || state.thread.is_none() || !self.template.can_reset() {
            self.mapper.end(&mut state.issued);
            return;
        }
        self.mapper.control.rest();
        let left = state.images.leave(&undone);
        if self.command(&mut state, &unmap_all(self.window, left)) {
            self.mapper.control.clear_commands();
            state.stage = Stage::Closed;
        }
    }

    /// Gets the process of a closed domain on its way to another one. Returns whether it is ready for that.
    fn renew(&self) -> bool {
        let mut state = lock(&self.state);
        let control = &self.mapper.control;
        match (state.stage, state.thread) {
            (Stage::Closed, Some(thread)) if control.runner(0).is_asleep() => {
                control.reset(thread);
                state.stage = Stage::Resetting;
            }
            (Stage::Resetting, _) if control.runner(0).is_asleep() => {
                control.end_reset();
                state.stage = Stage::Clean;
            }
            _ => {}
        }
        state.stage == Stage::Clean
    }

    /// Whether the process is ready for another domain.
    fn is_clean(&self) -> bool {
        lock(&self.state).stage == Stage::Clean
    }

    /// Gives a process that is ready to a new domain.
    fn open(&self) {
        self.mapper.control.begin_soon();
        lock(&self.state).stage = Stage::Open;
    }

    /// Takes a runner for the calling thread and lets it go, once all is mapped that is to be; `None` if the process has
    /// ended.
    fn send_in(self: &Arc<Self>, context: &DomainContext) -> Option<usize> {
        let mut state = lock(&self.state);
        if state.stage != Stage::Open {
            return None;
        }
        let mut commands = state.take_later();
        let number = (!state.used).trailing_zeros() as usize;
        let exchange = self.mapper.control.runner(number);
        self.rest_last(number);
        if number < state.made && state.thread.is_some() && (1..mapper::BATCH).contains(&commands.len()) {
            // The mapper lets the runner go itself, so that the way is shorter.
            if !self.mapper.is_done(&mut state.issued) {
                return None;
            }
            exchange.put_context(context);
            exchange.go_by_mapper();
            commands.push(let_go(self.window, number));
            self.mapper.begin(&mut state.issued, &commands);
        } else {
            self.map_before(&mut state, commands, number)?;
            exchange.put_context(context);
            exchange.go();
        }
        state.used |= 1 << number;
        Some(number)
    }

    /// Runs the calling thread in the domain until it comes out.
    fn enter(self: &Arc<Self>, context: &mut DomainContext) -> DomainExit {
        context.flags &= DomainContext::OWN_FLAGS;
        processor::forget_interrupts();
        let Some(runner) = self.send_in(context) else { return DomainExit::Fault(ended(context)) };
        let exchange = self.mapper.control.runner(runner);
        let exit = if self.comes_out(&exchange) {
            exchange.take_context(context);
            exit_of(&exchange, context)
        } else {
            DomainExit::Fault(ended(context))
        };
        lock(&self.state).used &= !(1 << runner);
        exit
    }

    /// Has all mapped that is to be before a runner goes, which is made if it is new; `None` if the process has ended.
    fn map_before(&self, state: &mut State, mut commands: Vec<Command>, runner: usize) -> Option<()> {
        let is_new = runner >= state.made;
        if is_new {
            commands.extend(make_runner(&self.mapper.control, self.window, runner));
        }
        // The first time there may be none, and the runner is made all the same. Later there may be none because another
        // runner's processor took them: the mapper may not have done them yet.
        let is_done = if commands.is_empty() && state.thread.is_some() {
            self.mapper.is_done(&mut state.issued)
        } else {
            self.command(state, &commands)
        };
        state.made += usize::from(is_new);
        // Nothing has run yet that could change it.
        state.thread.get_or_insert_with(|| self.mapper.control.runner(0).word(window::THREAD));
        is_done.then_some(())
    }

    /// Has the runner that the calling processor was in before sleep, if it is another: the processors of the host are for
    /// those that have something to do.
    fn rest_last(self: &Arc<Self>, runner: usize) {
        LAST.with_borrow_mut(|last| {
            if let Some((domain, before)) = last
                && !(Arc::ptr_eq(domain, self) && *before == runner)
            {
                domain.mapper.control.runner(*before).rest(window::SOON);
            }
            *last = Some((Arc::clone(self), runner));
        });
    }

    /// Waits until the runner is out; false if its process has ended.
    fn comes_out(&self, exchange: &Exchange<'_>) -> bool {
        // On the runner's processor, waiting awake is in its way.
        let spins = if exchange.shares_processor() { 1 } else { SPINS };
        for _ in 0..spins {
            if exchange.is_out() {
                return true;
            }
            if processor::was_interrupted() {
                break;
            }
            std::hint::spin_loop();
        }
        for _ in 0..YIELDS {
            if exchange.is_out() {
                return true;
            }
            if processor::was_interrupted() {
                break;
            }
            std::thread::yield_now();
        }
        let mut interrupts = 0;
        while !exchange.is_out() {
            if self.mapper.has_ended() {
                return false;
            }
            let is_over = match interrupts {
                // A signal that came before the sleep would not end it.
                0 => !processor::was_interrupted() && exchange.sleep(QUANTUM),
                _ => exchange.sleep(AGAIN),
            };
            if exchange.is_out() {
                break;
            }
            if interrupts > MAX_INTERRUPTS {
                self.end();
                return false;
            }
            if is_over
                && interrupts == 0
                && let Some(entries) = entries::get()
            {
                (entries.tick)(true);
            }
            if is_over || processor::was_interrupted() {
                self.interrupt(exchange);
                interrupts += 1;
            }
        }
        true
    }

    /// Makes a runner come out. It has a claim for a thread's number, which leads to nobody outside its process.
    fn interrupt(&self, exchange: &Exchange<'_>) {
        let thread = exchange.word(window::THREAD);
        let process = self.template.process_of(&self.mapper.control);
        let kill = [process.into(), thread & 0x7fff_ffff, stub::INTERRUPT_SIGNAL as u64, 0, 0, 0];
        self.command(&mut lock(&self.state), &[of_kind(command(libc::SYS_tgkill, kill), stub::MAY_FAIL)]);
    }
}

impl State {
    /// Takes the commands that come before the domain is entered or anything else is unmapped: what an ended domain's
    /// programs have left, and this one's have not asked for, goes.
    fn take_later(&mut self) -> Vec<Command> {
        let mut commands: Vec<_> = self.images.take_left().map(|pages| unmap(pages.start, pages.end)).collect();
        commands.append(&mut self.later);
        commands
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        self.end();
        let runners = lock(&self.state).made;
        self.mapper.control.free(runners);
    }
}

/// Returns the commands that a domain's process is made with: it cannot reach the machine, and has a runner.
fn first_commands(control: &Control, window: usize) -> [Command; FIRST_COMMANDS] {
    let [map, make] = make_runner(control, window, 0);
    [map, command(libc::SYS_close, [window::LINE_FILE as u64, 0, 0, 0, 0, 0]), make]
}

/// Returns the commands that leave nothing mapped but the window with its first runner, and these pages.
fn unmap_all(window: usize, mut left: Vec<Range<usize>>) -> Vec<Command> {
    left.push(window..window + window::RUNNERS + window::RUNNER_BYTES);
    left.sort_by_key(|pages| pages.start);
    let starts = left.iter().map(|pages| pages.start).chain([template::TASK_END]);
    let ends = [0].into_iter().chain(left.iter().map(|pages| pages.end));
    ends.zip(starts).filter(|(end, start)| end < start).map(|(end, start)| unmap(end, start)).collect()
}

/// Returns the command that unmaps all between two addresses.
fn unmap(from: usize, to: usize) -> Command {
    command(libc::SYS_munmap, [from as u64, (to - from) as u64, 0, 0, 0, 0])
}

/// Returns the command that maps a runner's memory.
fn map_runner(control: &Control, window: usize, number: usize) -> Command {
    let place = window::RUNNERS + number * window::RUNNER_BYTES;
    let protection = (libc::PROT_READ | libc::PROT_WRITE) as u64;
    let flags = (libc::MAP_SHARED | libc::MAP_FIXED) as u64;
    let offset = control.offset(place - window::COMMANDS);
    let (address, bytes) = ((window + place) as u64, window::RUNNER_BYTES as u64);
    command(libc::SYS_mmap, [address, bytes, protection, flags, window::CONTROLS_FILE as u64, offset])
}

/// Returns the command that gives a runner the mapper's turn.
fn let_go(window: usize, number: usize) -> Command {
    /// `futex.h`: sets the word to [`window::OF_DOMAIN`], and wakes whoever waits for it, but nobody else: it is not 5 before.
    const SET: u64 = (window::OF_DOMAIN as u64) << 12 | 5;
    let turn = (window + window::RUNNERS + number * window::RUNNER_BYTES + window::TURN) as u64;
    command(libc::SYS_futex, [turn, libc::FUTEX_WAKE_OP as u64, libc::c_int::MAX as u64, 0, turn, SET])
}

/// Returns the commands that make a runner.
fn make_runner(control: &Control, window: usize, number: usize) -> [Command; 2] {
    let address = (window + window::RUNNERS + number * window::RUNNER_BYTES) as u64;
    control.runner(number).set_word(window::SELF, address);
    let stack = (window + window::CONSTANTS + window::SIGNAL_STACKS + number * window::SIGNAL_STACK_BYTES) as u64;
    let thread = address + window::THREAD as u64;
    let make = command(libc::SYS_clone, [OF_A_RUNNER as u64, address, thread, 0, 0, stack]);
    [map_runner(control, window, number), of_kind(make, stub::MAKES_RUNNER)]
}

/// Returns why a thread came out, as its domain claims.
fn exit_of(exchange: &Exchange<'_>, context: &DomainContext) -> DomainExit {
    match exchange.word(window::KIND) {
        window::INTERRUPT => DomainExit::Interrupt,
        window::CALL => {
            let argument = |index| exchange.word(window::ARGUMENTS + index * 8);
            DomainExit::Call { gate: exchange.word(window::GATE), arguments: std::array::from_fn(argument) }
        }
        _ => fault_of(exchange, context),
    }
}

/// Vector of a page fault.
const TRAP_PAGE: i64 = 14;
/// `si_code`: nothing is mapped there.
const SEGV_MAPERR: u64 = 1;

fn fault_of(exchange: &Exchange<'_>, context: &DomainContext) -> DomainExit {
    let (instruction, stack) = (context.instruction as usize, context.stack());
    let fault = |kind, instruction, address| Fault { kind, instruction, address, stack };
    let number = libc::c_int::try_from(exchange.word(window::SIGNAL_NUMBER)).unwrap_or(0);
    match (number, exchange.word(window::VECTOR) as i64) {
        (libc::SIGSEGV, TRAP_PAGE) if exchange.word(window::CODE) == SEGV_MAPERR => {
            DomainExit::Missing(fault(FaultKind::Memory, instruction, exchange.word(window::ADDRESS) as usize))
        }
        // A privileged instruction, or an address that is none.
        (libc::SIGSEGV, signal::TRAP_PROTECTION) | (libc::SIGILL, _) => {
            DomainExit::Fault(fault(FaultKind::Instruction, instruction, 0))
        }
        (libc::SIGFPE, _) => DomainExit::Fault(fault(FaultKind::Arithmetic, instruction, 0)),
        (libc::SIGTRAP, _) => DomainExit::Fault(fault(FaultKind::Trap, instruction, 0)),
        (libc::SIGSYS, _) => {
            DomainExit::Fault(fault(FaultKind::HostCall, instruction.wrapping_sub(signal::SYSCALL_BYTES), 0))
        }
        _ => DomainExit::Fault(fault(FaultKind::Memory, instruction, exchange.word(window::ADDRESS) as usize)),
    }
}
