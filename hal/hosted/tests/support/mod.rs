//! A minimal kernel for the machine: one processor, which calls SIP code and returns when
//! the code returns or faults.

use std::arch::{asm, naked_asm};
use std::fs::File;
use std::mem::offset_of;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use abi::limits::{STACK_GUARD_BYTES, STACK_SLOT_BYTES};
use hal_api::{Fault, KernelEntries, Layout, Machine, Segment};
use hal_hosted::{Configuration, Confinement, DiskAccess, DiskSpecification, Hosted};

/// Environment variable of a child whose machine has to be confined.
pub const CONFINED: &str = "HAL_HOSTED_TEST_CONFINED";
/// Bytes of the test disk.
pub const DISK_BYTES: usize = 1 << 20;
/// Result of a run that faulted.
pub const FAULTED: u64 = u64::MAX - 1;

/// The per-processor block that GS points to.
#[repr(C)]
struct Block {
    /// The kernel's stack pointer while SIP code runs.
    kernel_stack: AtomicUsize,
    /// The top of the running thread's slot, or 0.
    stack_top: AtomicUsize,
}

static BLOCK: Block = Block { kernel_stack: AtomicUsize::new(0), stack_top: AtomicUsize::new(0) };

/// Number of the machine's calls of `interrupt`.
pub static INTERRUPTS: AtomicU64 = AtomicU64::new(0);
/// Number of those with the direction flag set or the stack misaligned.
pub static BAD_INTERRUPTS: AtomicU64 = AtomicU64::new(0);
/// Number of its calls of `tick` for the timer.
pub static TIMER_TICKS: AtomicU64 = AtomicU64::new(0);

static LAST_FAULT: Mutex<Option<Fault>> = Mutex::new(None);
static COMPLETIONS: Mutex<Vec<(u64, u64, bool)>> = Mutex::new(Vec::new());
static COMPLETED: Condvar = Condvar::new();
static LAYOUT: OnceLock<Layout> = OnceLock::new();
static PROGRAM: Mutex<Option<Box<dyn FnOnce() + Send>>> = Mutex::new(None);
static GATE: Mutex<()> = Mutex::new(());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The file of the test disk, which has been unlinked.
pub static DISK_FILE: OnceLock<File> = OnceLock::new();

/// The one machine of this test process: one processor; `disk0` is writable, `disk1` read-only.
pub fn machine() -> &'static Hosted {
    static MACHINE: OnceLock<&'static Hosted> = OnceLock::new();
    MACHINE.get_or_init(|| {
        let path = std::env::temp_dir().join(format!("hal-hosted-test-{}.disk", std::process::id()));
        std::fs::write(&path, vec![0; DISK_BYTES]).expect("a writable temporary folder");
        let second = path.with_extension("disk1");
        std::fs::write(&second, b"read only").expect("a writable temporary folder");
        let disks = vec![
            DiskSpecification { path: path.clone(), access: DiskAccess::WriteIfAllowed },
            DiskSpecification { path: second.clone(), access: DiskAccess::ReadOnly },
        ];
        let confinement = match std::env::var_os(CONFINED) {
            Some(_) => Confinement::Confined,
            None => Confinement::Unconfined,
        };
        let configuration = Configuration { processors: Some(1), disks, confinement, ..Configuration::default() };
        let started = Hosted::start(&configuration).expect("a machine");
        DISK_FILE.set(File::open(&path).expect("the disk's file")).expect("set once");
        for path in [path, second] {
            std::fs::remove_file(path).expect("a file of our own");
        }
        LAYOUT.set(started.machine.layout()).expect("set once");
        started.machine
    })
}

extern "C" fn nothing_fires(_line: u32) {}

extern "C" fn no_overflow(_instruction: usize, _address: usize) -> bool {
    false
}

/// Runs a closure on the processor; one at a time.
pub fn on_processor(program: impl FnOnce() + Send + 'static) {
    let _gate = lock(&GATE);
    *lock(&PROGRAM) = Some(Box::new(program));
    let entries = KernelEntries {
        is_sip_code,
        overflowed_at_entry: no_overflow,
        tick,
        interrupt,
        fault,
        stack_top,
        fired: nothing_fires,
        running: || None,
        device_complete,
    };
    machine().run_processors(&[&raw const BLOCK as usize], processor_main, entries);
}

/// Runs code at an address on the stack slot, with `argument` in RDI; returns its result, or [`FAULTED`].
pub fn run_sip(entry: usize, slot: usize, argument: usize) -> u64 {
    let top = slot + STACK_SLOT_BYTES - 1024;
    BLOCK.stack_top.store(top, Ordering::SeqCst);
    // SAFETY: the slot is unused and guarded, the code is mapped; `enter` saves the callee-saved registers.
    let answer = unsafe { enter(entry, top, argument) };
    BLOCK.stack_top.store(0, Ordering::SeqCst);
    answer
}

/// Takes the fault of the last run, if it had one.
pub fn take_fault() -> Option<Fault> {
    lock(&LAST_FAULT).take()
}

/// Waits for a request's completion; returns the bytes transferred and whether it failed.
pub fn completion(token: u64) -> (u64, bool) {
    let mut list = lock(&COMPLETIONS);
    loop {
        if let Some(index) = list.iter().position(|entry| entry.0 == token) {
            let (_, done, failed) = list.swap_remove(index);
            return (done, failed);
        }
        let (next, waited) =
            COMPLETED.wait_timeout(list, Duration::from_secs(10)).unwrap_or_else(PoisonError::into_inner);
        assert!(!waited.timed_out(), "request {token} never completes");
        list = next;
    }
}

/// Returns an unused stack slot, guarded.
pub fn new_slot() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(30_000);
    let slot = machine().layout().stacks.base + NEXT.fetch_add(1, Ordering::SeqCst) * STACK_SLOT_BYTES;
    machine().guard(abi::stack::start(slot), STACK_GUARD_BYTES);
    slot
}

/// Returns an unused page of the memory arena.
pub fn new_page() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    machine().layout().memory.base + NEXT.fetch_add(1, Ordering::SeqCst) * 4096
}

/// Returns an unused address for an image of up to 64 KiB.
pub fn new_image_address() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    machine().layout().images.base + NEXT.fetch_add(1, Ordering::SeqCst) * 65_536
}

/// Maps code at an unused address and returns it.
pub fn map_code(bytes: &[u8]) -> usize {
    let address = new_image_address();
    machine().map_image(&[Segment { address, bytes, executable: true }]).expect("an image is mapped");
    address
}

/// Returns a word in memory that SIP code shares with the test.
pub fn shared_word(address: usize) -> &'static AtomicU64 {
    // SAFETY: the address is of a page from `new_page`, which is mapped, zeroed and never freed.
    unsafe { &*std::ptr::with_exposed_provenance(address) }
}

extern "C" fn processor_main(_number: usize) {
    let program = lock(&PROGRAM).take();
    program.expect("a program")();
}

extern "C" fn is_sip_code(instruction: usize) -> bool {
    LAYOUT.get().is_some_and(|layout| layout.images.contains(instruction))
}

extern "C" fn tick(timer: bool) -> bool {
    if timer {
        TIMER_TICKS.fetch_add(1, Ordering::SeqCst);
    }
    true
}

extern "C" fn stack_top() -> usize {
    let top: usize;
    // SAFETY: the machine has set GS to `BLOCK` on every processor, and calls this only on processors.
    unsafe { asm!("mov {}, gs:[{}]", out(reg) top, const offset_of!(Block, stack_top), options(nostack, readonly)) };
    top
}

extern "C" fn device_complete(token: u64, done: u64, failed: bool) {
    lock(&COMPLETIONS).push((token, done, failed));
    COMPLETED.notify_all();
}

extern "C" fn fault(fault: &Fault) -> ! {
    *lock(&LAST_FAULT) = Some(*fault);
    // SAFETY: SIP code was running, so `enter` has saved the kernel's stack pointer.
    unsafe { leave(FAULTED) }
}

/// Counts, and clobbers every caller-saved register.
#[unsafe(naked)]
extern "C" fn interrupt() {
    naked_asm!(
        "lock inc qword ptr [rip + {count}]",
        "pushfq",
        "pop rax",
        "test eax, 0x400",
        "jnz 2f",
        "lea rax, [rsp + 8]",
        "test eax, 0xf",
        "jz 3f",
        "2:",
        "lock inc qword ptr [rip + {bad}]",
        "cld",
        "3:",
        "vzeroall",
        "xor eax, eax",
        "xor ecx, ecx",
        "xor edx, edx",
        "xor esi, esi",
        "xor edi, edi",
        "xor r8d, r8d",
        "xor r9d, r9d",
        "xor r10d, r10d",
        "xor r11d, r11d",
        "ret",
        count = sym INTERRUPTS,
        bad = sym BAD_INTERRUPTS,
    )
}

#[unsafe(naked)]
unsafe extern "C" fn enter(entry: usize, top: usize, argument: usize) -> u64 {
    naked_asm!(
        "push rbx",
        "push rbp",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "mov gs:[{kernel_stack}], rsp",
        "mov rsp, rsi",
        "mov rax, rdi",
        "mov rdi, rdx",
        "call rax",
        "cld",
        "mov rdi, rax",
        "jmp {leave}",
        kernel_stack = const offset_of!(Block, kernel_stack),
        leave = sym leave,
    )
}

#[unsafe(naked)]
unsafe extern "C" fn leave(answer: u64) -> ! {
    naked_asm!(
        "mov rax, rdi",
        "mov rsp, gs:[{kernel_stack}]",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbp",
        "pop rbx",
        "ret",
        kernel_stack = const offset_of!(Block, kernel_stack),
    )
}
