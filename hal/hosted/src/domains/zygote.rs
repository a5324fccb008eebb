//! The process that makes the domains' processes: forked before the machine has threads and secrets, it creates for each
//! domain a process that has nothing but the stub and the files of all memory, and starts the mapper in it.
//!
//! The machine asks for more than it needs at once, so that some are always ready. It sends one byte for each, and gets the
//! process's descriptor (pidfd), its control file, the counter of acknowledgements, and its number. Deliberately not
//! here: the commands for the mapper.

use std::io::{self, Read, Write};
use std::mem::{self, MaybeUninit};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::ptr;
use std::sync::Mutex;

use super::window::{self, ACKNOWLEDGE_FILE, CONTROL_FILE, IMAGES_FILE, MEMORY_FILE, STACKS_FILE};
use crate::domains::ArenaFiles;
use crate::keeper::die_with;
use crate::{host, image};

/// Processes asked for before they are needed.
const AHEAD: u32 = 4;
/// Descriptors of an answer.
const ANSWERED: usize = 3;
/// Above all numbers of the files that a mapper keeps.
const HIGH: RawFd = 16;
const RSEQ_SIGNATURE: u32 = 0x5305_3053;
const RSEQ_UNREGISTER: u32 = 1;

/// The files of memory that all mappers have open.
#[derive(Debug)]
pub(super) struct MemoryFiles {
    pub(super) arenas: ArenaFiles,
    pub(super) images: OwnedFd,
}

/// A process for a domain. It ends when its mapper is told to, or when the zygote ends.
#[derive(Debug)]
pub(super) struct Process {
    /// Readable when the process has ended.
    pub(super) descriptor: OwnedFd,
    pub(super) control: OwnedFd,
    pub(super) acknowledge: OwnedFd,
    pub(super) number: u32,
}

/// The machine's end of the connection to the zygote.
#[derive(Debug)]
pub(super) struct Zygote {
    line: Mutex<Line>,
}

/// The connection, and the requests without an answer.
#[derive(Debug)]
struct Line {
    stream: UnixStream,
    asked: u32,
}

impl Zygote {
    /// Forks the zygote. The process has one thread.
    pub(super) fn start(window: usize, shared: BorrowedFd<'_>, files: &MemoryFiles) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        // SAFETY: takes no arguments.
        let machine = unsafe { libc::getpid() };
        // SAFETY: the process has one thread, so the child's memory is consistent.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                drop(ours);
                die_with(machine);
                prepare();
                keep_large_memory();
                Maker { window, shared, files, line: &theirs }.serve();
                host::exit_now(0)
            }
            _ => Ok(Self { line: Mutex::new(Line { stream: ours, asked: 0 }) }),
        }
    }

    /// Returns a new process.
    pub(super) fn create(&self) -> io::Result<Process> {
        let mut line = self.line.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        while line.asked <= AHEAD {
            line.stream.write_all(b"c")?;
            line.asked += 1;
        }
        let (number, descriptors) = receive(&line.stream)?;
        line.asked -= 1;
        let [descriptor, control, acknowledge] = descriptors.ok_or_else(|| io::Error::from_raw_os_error(-number))?;
        Ok(Process { descriptor, control, acknowledge, number: number.unsigned_abs() })
    }
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

/// Keeps large memory, such as the system image, from the processes to come: to copy what maps it would take longer than
/// all else of a fork. They use only what was made since, and this module's constants.
fn keep_large_memory() {
    const LARGE_BYTES: usize = 1 << 20;
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        let range = words.next().and_then(|range| range.split_once('-'));
        let is_anonymous = words.nth(3) == Some("0") && words.next().is_none();
        let bounds = range.map(|(start, end)| [start, end].map(|word| usize::from_str_radix(word, 16)));
        if let (Some([Ok(start), Ok(end)]), true) = (bounds, is_anonymous)
            && end - start >= LARGE_BYTES
        {
            // SAFETY: changes only what a fork copies; the processes to come use nothing of it.
            unsafe { libc::madvise(ptr::with_exposed_provenance_mut(start), end - start, libc::MADV_DONTFORK) };
        }
    }
}

/// The zygote's side.
struct Maker<'a> {
    window: usize,
    shared: BorrowedFd<'a>,
    files: &'a MemoryFiles,
    line: &'a UnixStream,
}

impl Maker<'_> {
    /// Answers requests until the machine ends.
    fn serve(&self) {
        let mut line = self.line;
        let mut request = [0];
        while line.read_exact(&mut request).is_ok() {
            if send(line, &self.make()).is_err() {
                break;
            }
        }
    }

    /// Makes a process.
    fn make(&self) -> io::Result<Process> {
        let control: OwnedFd = image::sized_file(c"singularity-domain", window::CONTROL_BYTES)?.into();
        super::prepare(control.as_fd(), self.window)?;
        // SAFETY: touches no memory; the descriptor is new.
        let acknowledge = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
        if acknowledge < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: as above, and nobody else owns it.
        let acknowledge = unsafe { OwnedFd::from_raw_fd(acknowledge) };
        let mut descriptor: libc::c_int = -1;
        // SAFETY: takes no arguments.
        let zygote = unsafe { libc::getpid() };
        // SAFETY: as fork, in a process with one thread; `descriptor` is live. The child uses nothing that the C library
        // keeps of processes and threads.
        let number =
            unsafe { libc::syscall(libc::SYS_clone, libc::CLONE_PIDFD | libc::SIGCHLD, 0, &raw mut descriptor, 0, 0) };
        match number {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                die_with(zygote);
                self.become_mapper(control.as_raw_fd(), acknowledge.as_raw_fd())
            }
            number => {
                // SAFETY: the host has opened it for this process, and nobody else owns it.
                let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
                Ok(Process { descriptor, control, acknowledge, number: number as u32 })
            }
        }
    }

    /// Maps the window, keeps the files of the mapper alone, and starts it.
    fn become_mapper(&self, control: RawFd, acknowledge: RawFd) -> ! {
        let files = [
            (control, CONTROL_FILE),
            (self.files.arenas.memory.as_raw_fd(), MEMORY_FILE),
            (self.files.arenas.stacks.as_raw_fd(), STACKS_FILE),
            (self.files.images.as_raw_fd(), IMAGES_FILE),
            (acknowledge, ACKNOWLEDGE_FILE),
        ];
        let shared = self.shared.as_raw_fd();
        let code = self.window + window::GATES;
        let constants = self.window + window::CONSTANTS;
        let parts = [
            (code, window::CONSTANTS, libc::PROT_READ | libc::PROT_EXEC, shared, 0),
            (constants, window::SHARED_BYTES - window::CONSTANTS, libc::PROT_READ, shared, window::CONSTANTS),
            (self.window + window::COMMANDS, window::RUNNERS - window::COMMANDS, libc::PROT_READ, control, 0),
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
        let closed =
            unsafe { libc::close_range(0, 2, 0) | libc::close_range(ACKNOWLEDGE_FILE as u32 + 1, u32::MAX, 0) };
        if closed != 0 || !forget_thread() {
            host::exit_now(1);
        }
        let stub: *const () = ptr::with_exposed_provenance(self.window + window::STUB);
        // SAFETY: the stub has been mapped there, starts with the mapper, takes no arguments and does not return.
        let mapper: extern "C" fn() -> ! = unsafe { mem::transmute(stub) };
        mapper()
    }
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

/// Room for the control message with an answer's descriptors.
#[repr(align(8))]
struct Room([u8; 64]);

/// Sends an answer: the number and the descriptors, or a negative error number alone.
fn send(line: &UnixStream, answer: &io::Result<Process>) -> io::Result<()> {
    let number = match answer {
        Ok(process) => process.number as i32,
        Err(error) => -error.raw_os_error().unwrap_or(libc::EIO),
    };
    let mut bytes = number.to_le_bytes();
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let mut room = Room([0; 64]);
    // SAFETY: all-zero bytes are a valid msghdr.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    if let Ok(process) = answer {
        let files = [&process.descriptor, &process.control, &process.acknowledge].map(|file| file.as_raw_fd());
        message.msg_control = room.0.as_mut_ptr().cast();
        // SAFETY: computes with numbers; then writes a header and three numbers into a room that is large enough.
        unsafe {
            message.msg_controllen = libc::CMSG_SPACE(size_of_val(&files) as u32) as usize;
            let header = &mut *libc::CMSG_FIRSTHDR(&message);
            (header.cmsg_level, header.cmsg_type) = (libc::SOL_SOCKET, libc::SCM_RIGHTS);
            header.cmsg_len = libc::CMSG_LEN(size_of_val(&files) as u32) as usize;
            libc::CMSG_DATA(header).cast::<[RawFd; ANSWERED]>().write_unaligned(files);
        }
    }
    // SAFETY: message, part, bytes and room are live across the call.
    let sent = unsafe { libc::sendmsg(line.as_raw_fd(), &message, libc::MSG_NOSIGNAL) };
    if sent == 4 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Receives an answer.
fn receive(line: &UnixStream) -> io::Result<(i32, Option<[OwnedFd; ANSWERED]>)> {
    let mut bytes = [0; 4];
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let mut room = Room([0; 64]);
    // SAFETY: all-zero bytes are a valid msghdr.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = room.0.as_mut_ptr().cast();
    message.msg_controllen = room.0.len();
    let count = loop {
        // SAFETY: message, part, bytes and room are live across the call.
        let count = unsafe { libc::recvmsg(line.as_raw_fd(), &mut message, libc::MSG_CMSG_CLOEXEC) };
        if count >= 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            break count;
        }
    };
    if count != 4 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    // SAFETY: the host has filled in the room as the message says. The descriptors are new, and have no other owner.
    let descriptors = unsafe {
        let header = libc::CMSG_FIRSTHDR(&message);
        let wanted = libc::CMSG_LEN(size_of::<[RawFd; ANSWERED]>() as u32) as usize;
        (!header.is_null() && (*header).cmsg_len == wanted).then(|| {
            let files = libc::CMSG_DATA(header).cast::<[RawFd; ANSWERED]>().read_unaligned();
            files.map(|file| OwnedFd::from_raw_fd(file))
        })
    };
    Ok((i32::from_le_bytes(bytes), descriptors))
}
