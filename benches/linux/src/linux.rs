//! System calls as safe functions. All unsafe code of the crate is here and in `interface`.

use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;

/// Reads the time-stamp counter.
pub fn cycles() -> u64 {
    // SAFETY: every x86-64 processor has the instruction, and it touches no memory.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Makes the cheapest system call with any effect.
pub fn getppid() {
    // SAFETY: takes no argument and touches no memory of ours.
    unsafe { libc::syscall(libc::SYS_getppid) };
}

/// Yields the processor to another thread.
pub fn yield_processor() {
    // SAFETY: takes no argument and touches no memory of ours.
    unsafe { libc::sched_yield() };
}

/// Writes all dirty data of this file's volume to its disk; returns whether that succeeded.
pub fn sync_volume(file: &std::fs::File) -> bool {
    // SAFETY: takes a descriptor, which is open as long as `file` is borrowed, and touches no memory of ours.
    unsafe { libc::syncfs(std::os::fd::AsRawFd::as_raw_fd(file)) == 0 }
}

/// Drops this file, which must be clean, from the page cache; returns whether that succeeded.
pub fn forget(file: &std::fs::File) -> bool {
    let descriptor = std::os::fd::AsRawFd::as_raw_fd(file);
    // SAFETY: takes a descriptor, which is open as long as `file` is borrowed, and touches no memory of ours.
    unsafe { libc::posix_fadvise(descriptor, 0, 0, libc::POSIX_FADV_DONTNEED) == 0 }
}

/// Makes Linux allocate and free this many bytes, so that the next allocation finds free memory. A virtual machine
/// with free page reporting to its host gets such memory back slowly, with a page fault of the host for each piece.
pub fn have_memory_at_hand(bytes: usize) {
    const PAGE_BYTES: usize = 4096;
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new anonymous mapping at an address chosen by Linux aliases nothing; it is written within its bounds
    // only, and unmapped whole, after which its address is no longer used.
    unsafe {
        let start = libc::mmap(null_mut(), bytes, protection, flags, -1, 0);
        if start == libc::MAP_FAILED {
            return;
        }
        // In huge pages, as the system has it; if there are none, in small ones.
        libc::madvise(start, bytes, libc::MADV_HUGEPAGE);
        for offset in (0..bytes).step_by(PAGE_BYTES) {
            start.cast::<u8>().add(offset).write_volatile(1);
        }
        libc::munmap(start, bytes);
    }
}

/// Pins this thread, and those it creates, to the first allowed processor.
pub fn pin_to_one_processor() -> Option<()> {
    let bytes = size_of::<libc::cpu_set_t>();
    // SAFETY: an all-zero set is the empty set, and both calls get its true size.
    unsafe {
        let mut allowed: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, bytes, &mut allowed) != 0 {
            return None;
        }
        let first = (0..libc::CPU_SETSIZE as usize).find(|&processor| libc::CPU_ISSET(processor, &allowed))?;
        let mut one: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(first, &mut one);
        (libc::sched_setaffinity(0, bytes, &one) == 0).then_some(())
    }
}

/// Creates a thread that exits immediately, and joins it.
pub fn create_and_join_thread() {
    extern "C" fn end_at_once(_: *mut c_void) -> *mut c_void {
        null_mut()
    }
    let mut thread: libc::pthread_t = 0;
    // SAFETY: `thread` is written before it is read, the function needs no argument, and the thread is
    // joined exactly once.
    unsafe {
        if libc::pthread_create(&mut thread, std::ptr::null(), end_at_once, null_mut()) == 0 {
            libc::pthread_join(thread, null_mut());
        }
    }
}

/// One end of a pair of stream sockets; closed when dropped.
pub struct Socket(c_int);

impl Socket {
    /// A connected pair.
    pub fn pair() -> Option<(Socket, Socket)> {
        let mut ends = [0; 2];
        // SAFETY: the array has room for the two descriptors.
        let result = unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM, 0, ends.as_mut_ptr()) };
        (result == 0).then(|| (Socket(ends[0]), Socket(ends[1])))
    }

    /// Sends all bytes; returns false if the peer is gone.
    pub fn send_whole(&self, bytes: &[u8]) -> bool {
        let mut rest = bytes;
        while !rest.is_empty() {
            // SAFETY: pointer and length are those of a live slice.
            let sent = unsafe { libc::send(self.0, rest.as_ptr().cast(), rest.len(), libc::MSG_NOSIGNAL) };
            let Some(sent) = usize::try_from(sent).ok().filter(|&sent| sent > 0) else { return false };
            rest = &rest[sent..];
        }
        true
    }

    /// Fills the buffer; returns false if the peer is gone.
    pub fn receive_whole(&self, buffer: &mut [u8]) -> bool {
        let mut filled = 0;
        while filled < buffer.len() {
            let rest = &mut buffer[filled..];
            // SAFETY: pointer and length are those of a live slice that is exclusively borrowed.
            let got = unsafe { libc::read(self.0, rest.as_mut_ptr().cast(), rest.len()) };
            let Some(got) = usize::try_from(got).ok().filter(|&got| got > 0) else { return false };
            filled += got;
        }
        true
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // SAFETY: the descriptor is this value's own and is not used again.
        unsafe { libc::close(self.0) };
    }
}

/// A listening Unix socket with a path; closed when dropped.
pub struct Listener(c_int);

/// Builds the address of a socket with this path, which must be shorter than 108 bytes.
fn address_of(path: &CStr) -> Option<libc::sockaddr_un> {
    // SAFETY: all zeros are a valid address structure.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let name = path.to_bytes_with_nul();
    let room = address.sun_path.get_mut(..name.len())?;
    for (to, from) in room.iter_mut().zip(name) {
        *to = *from as libc::c_char;
    }
    Some(address)
}

impl Listener {
    /// Binds the path and listens.
    pub fn bind(path: &CStr) -> Option<Listener> {
        let address = address_of(path)?;
        // SAFETY: the address lives through the call and its true size is given.
        unsafe {
            let listener = Listener(libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0));
            let bytes = size_of::<libc::sockaddr_un>() as libc::socklen_t;
            let bound = libc::bind(listener.0, (&raw const address).cast(), bytes) == 0;
            (bound && libc::listen(listener.0, 16) == 0).then_some(listener)
        }
    }

    /// Accepts the next client.
    pub fn accept(&self) -> Option<Socket> {
        // SAFETY: null pointers request no address.
        let socket = unsafe { libc::accept(self.0, null_mut(), null_mut()) };
        (socket >= 0).then_some(Socket(socket))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // SAFETY: the descriptor is this value's own and is not used again.
        unsafe { libc::close(self.0) };
    }
}

/// Connects to the service at this path.
pub fn connect(path: &CStr) -> Option<Socket> {
    let address = address_of(path)?;
    // SAFETY: the address lives through the call and its true size is given.
    unsafe {
        let socket = Socket(libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0));
        let bytes = size_of::<libc::sockaddr_un>() as libc::socklen_t;
        (libc::connect(socket.0, (&raw const address).cast(), bytes) == 0).then_some(socket)
    }
}

/// Runs a loop of two instructions this many times.
pub fn loop_of_two_instructions(times: u64) {
    // SAFETY: counts a register of its own down to zero, and clobbers only the flags.
    unsafe { core::arch::asm!("2:", "dec {0}", "jnz 2b", inout(reg) times.max(1) => _, options(nomem, nostack)) };
}

/// Mounts procfs at its usual path; for the init process of a system.
pub fn mount_proc() -> bool {
    let (kind, place) = (c"proc".as_ptr(), c"/proc".as_ptr());
    // SAFETY: the strings are zero-terminated, and there is no data.
    unsafe { libc::mount(kind, place, kind, 0, std::ptr::null()) == 0 }
}

/// Powers the machine off. Returns only if this is not the init process of a system.
pub fn power_off() {
    // SAFETY: takes a flag only.
    unsafe { libc::reboot(libc::RB_POWER_OFF) };
}

/// An epoll set; closed when dropped.
pub struct WaitSet(c_int);

impl WaitSet {
    /// Creates a set that waits for input on one socket.
    pub fn of(socket: &Socket) -> Option<WaitSet> {
        // SAFETY: takes a flag only.
        let set = WaitSet(unsafe { libc::epoll_create1(0) });
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
        // SAFETY: both descriptors are live, and the event is read before the call returns.
        let result = unsafe { libc::epoll_ctl(set.0, libc::EPOLL_CTL_ADD, socket.0, &mut event) };
        (result == 0).then_some(set)
    }

    /// Waits until input is readable.
    pub fn wait(&self) -> bool {
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        // SAFETY: there is room for the one event that may be written.
        unsafe { libc::epoll_wait(self.0, &mut event, 1, -1) == 1 }
    }
}

impl Drop for WaitSet {
    fn drop(&mut self) {
        // SAFETY: the descriptor is this value's own and is not used again.
        unsafe { libc::close(self.0) };
    }
}

/// A child process.
pub struct Child(libc::pid_t);

impl Child {
    /// Waits for it to end.
    pub fn wait(&self) {
        // SAFETY: a null status pointer requests no status.
        unsafe { libc::waitpid(self.0, null_mut(), 0) };
    }

    /// Kills it.
    pub fn kill(&self) {
        // SAFETY: the child has not been waited for, so the number is still its own.
        unsafe { libc::kill(self.0, libc::SIGKILL) };
    }
}

/// Forks a process that does `work` and exits. Must be called while there is only one thread.
pub fn fork(work: impl FnOnce()) -> Option<Child> {
    // SAFETY: this program is single-threaded whenever it forks, so the child may continue as usual; it exits through
    // _exit, which runs no handlers of the parent.
    unsafe {
        match libc::fork() {
            -1 => None,
            0 => {
                work();
                libc::_exit(0)
            }
            child => Some(Child(child)),
        }
    }
}

/// Sleeps until a signal arrives.
pub fn wait_for_a_signal() {
    // SAFETY: takes no argument and touches no memory of ours.
    unsafe { libc::pause() };
}

/// Spawns the program without arguments and waits for it; returns whether it exited with status 0.
pub fn spawn_and_wait(program: &CStr) -> bool {
    let mut child = 0;
    let mut status = -1;
    let arguments = [program.as_ptr().cast_mut(), null_mut()];
    let environment = [null_mut()];
    // SAFETY: the path and both lists are zero-terminated and live until the call returns.
    let spawned = unsafe {
        libc::posix_spawn(
            &mut child,
            program.as_ptr(),
            std::ptr::null(),
            std::ptr::null(),
            arguments.as_ptr(),
            environment.as_ptr(),
        )
    };
    // SAFETY: the status is written to a live variable.
    spawned == 0 && unsafe { libc::waitpid(child, &mut status, 0) } == child && status == 0
}
