//! The template: a process that has nothing but the stub, and forks a process for each domain.
//!
//! It is forked while the machine has one thread, gives up everything, and is then a mapper without a domain: the machine
//! commands it to fork. Little is mapped in it, so a fork copies little and the new process has nothing to give up. The
//! descriptor of a new process (pidfd) comes through a socket. The template's parent, the *guard*, only waits for the end
//! of the machine.

use std::io::{self, Read, Write};
use std::mem::{self, MaybeUninit};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::ptr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use super::control::{Command, Control, Controls};
use super::mapper::{Issued, Mapper, command, of_kind};
use super::window::{self, CONTROLS_FILE, IMAGES_FILE, LINE_FILE, MEMORY_FILE, MESSAGE, PROCESSES, STACKS_FILE};
use super::{FIRST_COMMANDS, map_runner, stub, unmap};
use crate::domains::ArenaFiles;
use crate::host;
use crate::keeper::die_with;

/// Above all numbers of the files that a mapper keeps.
const HIGH: RawFd = 16;
/// Lowest number of a file that the template does not have open: the host gives it to the descriptor of a new process.
const FIRST_FREE: RawFd = 0;
/// End of what a process can map.
pub(super) const TASK_END: usize = 0x7fff_ffff_f000;
/// `asm/hwcap2.h`: programs may use WRFSBASE and WRGSBASE.
const HWCAP2_FSGSBASE: libc::c_ulong = 2;
const RSEQ_SIGNATURE: u32 = 0x5305_3053;
const RSEQ_UNREGISTER: u32 = 1;

/// The files of memory that all mappers have open.
#[derive(Debug)]
pub(super) struct MemoryFiles {
    pub(super) arenas: ArenaFiles,
    pub(super) images: OwnedFd,
    pub(super) controls: OwnedFd,
}

/// The machine's side.
#[derive(Debug)]
pub(super) struct Template {
    mapper: Mapper,
    number: u32,
    /// Where the template has its message and the numbers of processes.
    page: usize,
    controls: Arc<Controls>,
    can_reset: bool,
    line: Mutex<Line>,
    /// Closed when the machine ends, which the guard sees.
    _watched: UnixStream,
}

/// The machine's end of the connection, and what the template was told.
#[derive(Debug)]
struct Line {
    stream: UnixStream,
    issued: Issued,
    /// The part of a process that is being made.
    asked: Option<Control>,
}

impl Template {
    /// Forks the template. The process has one thread.
    pub(super) fn start(
        window: usize,
        shared: BorrowedFd<'_>,
        files: &MemoryFiles,
        controls: Arc<Controls>,
    ) -> io::Result<Self> {
        let control = controls.of_template();
        let (ours, theirs) = UnixStream::pair()?;
        let page = window + window::RUNNERS;
        let commands = first_commands(&control, window);
        commands.iter().enumerate().for_each(|(number, command)| control.put(number as u32, command));
        control.issue(commands.len() as u32);
        put_message(&control, page);
        let (mut watched, watching) = UnixStream::pair()?;
        // SAFETY: takes no arguments.
        let machine = unsafe { libc::getpid() };
        // SAFETY: the process has one thread, so the child's memory is consistent.
        match unsafe { libc::fork() } {
            -1 => return Err(io::Error::last_os_error()),
            0 => {
                drop((ours, watched));
                die_with(machine);
                prepare();
                match fork_with_parent() {
                    0 => become_mapper(window, shared, files, &control, &theirs),
                    number => guard(number, watching),
                }
            }
            _ => drop(watching),
        }
        let mut number = [0; 4];
        watched.read_exact(&mut number)?;
        let number = u32::from_le_bytes(number);
        // SAFETY: touches no memory. The guard has not ended, so the number is still the template's.
        let process = unsafe { libc::syscall(libc::SYS_pidfd_open, number, 0) };
        if process < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new, and nobody else owns it.
        let process = unsafe { OwnedFd::from_raw_fd(process as RawFd) };
        let line = Mutex::new(Line { stream: ours, issued: Issued::first(commands.len()), asked: None });
        let mapper = Mapper::new(window, process, control);
        // SAFETY: reads what the host gave the process at its start.
        let can_reset = unsafe { libc::getauxval(libc::AT_HWCAP2) } & HWCAP2_FSGSBASE != 0;
        Ok(Self { mapper, number, page, controls, can_reset, line, _watched: watched })
    }

    /// Returns a process with a part whose first commands are issued, and has the template make the next one, so that
    /// the wait for it is short if there is time until then.
    ///
    /// # Errors
    /// The host refuses another process, or another descriptor; or there is no part.
    pub(super) fn create(&self) -> io::Result<Mapper> {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        if line.asked.is_none() {
            self.ask(&mut line);
        }
        let mut control = line.asked.take().ok_or(io::ErrorKind::OutOfMemory)?;
        if !self.mapper.is_done(&mut line.issued) {
            return Err(io::Error::other("the process that makes those of domains has ended"));
        }
        match receive(&line.stream) {
            Received::Descriptor(process) => {
                self.ask(&mut line);
                Ok(Mapper::new(self.window(), process, control))
            }
            Received::Nothing => {
                control.free(1);
                Err(io::ErrorKind::OutOfMemory.into())
            }
            // The process is there, and nobody can see it end: its part is not used again.
            Received::Lost => {
                control.put(FIRST_COMMANDS as u32, &command(libc::SYS_exit_group, [0; 6]));
                control.issue(FIRST_COMMANDS as u32 + 1);
                Err(io::Error::from_raw_os_error(libc::EMFILE))
            }
        }
    }

    /// Commands the template to make a process, if there is a part for it.
    fn ask(&self, line: &mut Line) {
        let Some(control) = self.controls.take() else { return };
        let first = super::first_commands(&control, self.window());
        first.iter().enumerate().for_each(|(number, command)| control.put(number as u32, command));
        control.issue(first.len() as u32);
        let flags = (libc::CLONE_PIDFD | libc::CLONE_CHILD_SETTID | libc::SIGCHLD) as u64;
        // The descriptor's number, which is known, goes to a word that nobody reads.
        let unused = (self.page + PROCESSES - 8) as u64;
        let number = (self.page + PROCESSES + control.part() * 4) as u64;
        let clone = command(libc::SYS_clone, [flags, 0, unused, number, 0, control.offset(0)]);
        let send = [LINE_FILE as u64, (self.page + MESSAGE) as u64, libc::MSG_NOSIGNAL as u64, 0, 0, 0];
        let commands = [
            of_kind(clone, stub::MAKES_DOMAIN | u64::from(self.number) << 32),
            of_kind(command(libc::SYS_sendmsg, send), stub::MAY_FAIL),
            of_kind(command(libc::SYS_close, [FIRST_FREE as u64, 0, 0, 0, 0, 0]), stub::MAY_FAIL),
        ];
        self.mapper.begin(&mut line.issued, &commands);
        line.asked = Some(control);
    }

    /// Whether a runner can reset itself: it needs the instructions that set FS and GS, which hosts have together.
    pub(super) fn can_reset(&self) -> bool {
        self.can_reset
    }

    fn window(&self) -> usize {
        self.page - window::RUNNERS
    }

    /// Returns the number of the process that was made with this part, once it runs.
    pub(super) fn process_of(&self, control: &Control) -> u32 {
        self.mapper.control.runner(0).half(PROCESSES + control.part() * 4).load(Ordering::Relaxed)
    }
}

/// Returns the commands that the template is made with: nothing is mapped but the window, with a page to write to, and
/// signals are the stub's.
fn first_commands(control: &Control, window: usize) -> Vec<Command> {
    let end = window + window::RUNNERS;
    let action = (window + window::CONSTANTS + window::ACTION) as u64;
    let handle = |signal| command(libc::SYS_rt_sigaction, [signal as u64, action, 0, 8, 0, 0]);
    let mut commands = vec![unmap(0, window), unmap(end, TASK_END)];
    commands.extend(stub::signals().map(handle));
    commands.push(map_runner(control, window, 0));
    commands
}

/// Writes the message that passes a descriptor on, for a template with this page.
fn put_message(control: &Control, page: usize) {
    const PART: usize = MESSAGE + size_of::<libc::msghdr>();
    const RIGHTS: usize = PART + size_of::<libc::iovec>();
    let at = |place: usize| (page + place) as u64;
    // SAFETY: computes with numbers.
    let rights_bytes = unsafe { libc::CMSG_LEN(4) }.into();
    // `struct msghdr`: no name, one part, one control message, no flags.
    let header = [0, 0, at(PART), 1, at(RIGHTS), rights_bytes, 0];
    // One byte of anything.
    let part = [at(PART), 1];
    let kind = u64::from(libc::SOL_SOCKET as u32) | (libc::SCM_RIGHTS as u64) << 32;
    let rights = [rights_bytes, kind, FIRST_FREE as u64];
    let words = header.into_iter().chain(part).chain(rights);
    words.enumerate().for_each(|(index, word)| control.runner(0).set_word(MESSAGE + index * 8, word));
}

/// Forks. The child, which gets 0, ends with this process. The process has one thread.
fn fork_with_parent() -> libc::pid_t {
    // SAFETY: takes no arguments.
    let parent = unsafe { libc::getpid() };
    // SAFETY: the process has one thread, so the child's memory is consistent.
    let number = unsafe { libc::fork() };
    if number == 0 {
        die_with(parent);
    }
    number
}

/// Says the template's number, and ends when the machine does. A machine that is confined may send no signal to
/// processes outside, not even that of its death; so the template ends with this process.
fn guard(template: libc::pid_t, mut watching: UnixStream) -> ! {
    if template > 0 && watching.write_all(&template.to_le_bytes()).is_ok() {
        let mut nothing = [0];
        // Nothing comes; whatever this returns, the machine has ended.
        let _ = watching.read(&mut nothing);
    }
    host::exit_now(0)
}

/// Gives up what a domain's process must not have: privileges to come, signals, dumps of its memory; and lets the host
/// reap processes that have ended.
fn prepare() {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the set is initialised by `sigfillset` before it is used, and `none` is live; the rest touches no memory.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, all.as_ptr(), ptr::null_mut());
        libc::signal(libc::SIGCHLD, libc::SIG_IGN);
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
        libc::setrlimit(libc::RLIMIT_CORE, &none);
    }
}

/// Maps the window, keeps the files of the mappers alone, and starts the stub.
fn become_mapper(
    window: usize,
    shared: BorrowedFd<'_>,
    memory: &MemoryFiles,
    control: &Control,
    line: &UnixStream,
) -> ! {
    let controls = memory.controls.as_raw_fd();
    let files = [
        (controls, CONTROLS_FILE),
        (memory.arenas.memory.as_raw_fd(), MEMORY_FILE),
        (memory.arenas.stacks.as_raw_fd(), STACKS_FILE),
        (memory.images.as_raw_fd(), IMAGES_FILE),
        (line.as_raw_fd(), LINE_FILE),
    ];
    let shared = shared.as_raw_fd();
    let code = window + window::GATES;
    let constants = window + window::CONSTANTS;
    let parts = [
        (code, window::CONSTANTS, libc::PROT_READ | libc::PROT_EXEC, shared, 0),
        (constants, window::SHARED_BYTES - window::CONSTANTS, libc::PROT_READ, shared, window::CONSTANTS as u64),
        (window + window::COMMANDS, window::RUNNERS - window::COMMANDS, libc::PROT_READ, controls, control.offset(0)),
    ];
    for (address, bytes, protection, file, offset) in parts {
        let address: *mut libc::c_void = ptr::with_exposed_provenance_mut(address);
        let flags = libc::MAP_SHARED | libc::MAP_FIXED;
        // SAFETY: the window is reserved, and has nothing else in it.
        let mapped = unsafe { libc::mmap(address, bytes, protection, flags, file, offset as libc::off_t) };
        if mapped == libc::MAP_FAILED {
            host::exit_now(1);
        }
    }
    // First out of the way of the numbers that they are going to have.
    // SAFETY: touches no memory.
    let moved = files.map(|(file, to)| (unsafe { libc::fcntl(file, libc::F_DUPFD, HIGH) }, to));
    for (from, to) in moved {
        // SAFETY: touches no memory. Nothing is used any more that had one of these numbers.
        if unsafe { libc::dup2(from, to) } < 0 {
            host::exit_now(1);
        }
    }
    // SAFETY: neither touches memory, and nothing is used any more that had one of these numbers.
    let closed = unsafe { libc::close_range(0, 2, 0) | libc::close_range(LINE_FILE as u32 + 1, u32::MAX, 0) };
    if closed != 0 || !forget_thread() {
        host::exit_now(1);
    }
    let stub: *const () = ptr::with_exposed_provenance(window + window::STUB);
    // SAFETY: the stub has been mapped there, starts with the mapper, takes no arguments and does not return.
    let mapper: extern "C" fn() -> ! = unsafe { mem::transmute(stub) };
    mapper()
}

/// Has the host forget what it keeps of this thread in memory that is going to be unmapped. False if it does not.
fn forget_thread() -> bool {
    // SAFETY: the host forgets the addresses, and writes nowhere.
    unsafe {
        libc::syscall(libc::SYS_set_robust_list, 0, 24);
        libc::syscall(libc::SYS_set_tid_address, 0);
    }
    // SAFETY: the names are C strings; the C library's values, if it has them, are a signed and an unsigned number.
    let (offset, pointer) = unsafe {
        let offset = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_offset".as_ptr()).cast::<isize>();
        let mut pointer: usize;
        std::arch::asm!("mov {}, fs:[0]", out(reg) pointer, options(nostack, readonly, preserves_flags));
        (offset, pointer)
    };
    if offset.is_null() {
        // A C library that does not use it.
        return true;
    }
    // SAFETY: as above; it is not null.
    let area = pointer.wrapping_add_signed(unsafe { *offset });
    // The host wants the size that was registered, which the C library does not tell: a multiple of 32 from 32 on.
    let unregister = |bytes: usize| {
        // SAFETY: the host compares the address with the one that it has, and writes nowhere.
        unsafe { libc::syscall(libc::SYS_rseq, area, bytes, RSEQ_UNREGISTER, RSEQ_SIGNATURE) == 0 }
    };
    let refuses_all = !(1..=32).any(|count| unregister(32 * count));
    // If nothing is registered, nothing else can be wrong: registering is then possible, and is undone.
    !refuses_all || is_unregistered()
}

/// Whether the thread has no rseq area.
fn is_unregistered() -> bool {
    #[repr(align(32))]
    struct Area([u8; 32]);
    let area = Box::leak(Box::new(Area([0; 32])));
    let address = area.0.as_mut_ptr();
    let call = |flags: u32| {
        // SAFETY: the area lives for ever, has the size and alignment that rseq(2) wants, and is used by nobody else.
        unsafe { libc::syscall(libc::SYS_rseq, address, 32, flags, RSEQ_SIGNATURE) }
    };
    match call(0) {
        0 => call(RSEQ_UNREGISTER) == 0,
        _ => io::Error::last_os_error().raw_os_error() == Some(libc::ENOSYS),
    }
}

/// Room for the control message with a descriptor.
#[repr(align(8))]
struct Room([u8; 64]);

/// What came from the template.
enum Received {
    Descriptor(OwnedFd),
    /// Nothing: there is no new process.
    Nothing,
    /// A message whose descriptor this process has no room for.
    Lost,
}

/// Receives what the template has sent.
fn receive(line: &UnixStream) -> Received {
    let mut byte = [0; 1];
    let mut part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: byte.len() };
    let mut room = Room([0; 64]);
    // SAFETY: all-zero bytes are a valid msghdr.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = room.0.as_mut_ptr().cast();
    message.msg_controllen = room.0.len();
    let count = loop {
        // SAFETY: message, part, byte and room are live across the call.
        let count =
            unsafe { libc::recvmsg(line.as_raw_fd(), &mut message, libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT) };
        if count >= 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            break count;
        }
    };
    if count != 1 {
        return Received::Nothing;
    }
    // SAFETY: the host has filled in the room as the message says. The descriptor is new, and has no other owner.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(&message);
        let wanted = libc::CMSG_LEN(size_of::<RawFd>() as u32) as usize;
        if header.is_null() || (*header).cmsg_len != wanted {
            return Received::Lost;
        }
        Received::Descriptor(OwnedFd::from_raw_fd(libc::CMSG_DATA(header).cast::<RawFd>().read_unaligned()))
    }
}
