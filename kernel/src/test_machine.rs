//! A machine for unit tests: a clock, memory that never runs short, programs without packages, and one processor.
//!
//! The test itself is the processor's idle context. It creates threads ([`spawn`]), whose code is a closure that calls
//! the kernel, and runs them until all of them wait or have ended ([`run`]). Host threads started by a test are no
//! processors: they must not wake or wait.

extern crate std;

pub mod domains;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use abi::ProcessState;
use hal_api::{
    Arena, Device, DeviceRequest, DomainAccess, DomainContext, DomainExit, DomainId, DomainRing, KernelEntries, Layout,
    Machine, MapError, Segment, Submitted,
};
use manifest_model::{Category, Code, Manifest, PublicKey};

use crate::cpu::{self, Cpu};
use crate::lifecycle;
use crate::lock::AtomicRef;
use crate::preempt::PENDING_TIMER;
use crate::process::ProcessRef;
use crate::program::{Loaded, Program};
use crate::space::{self, SpaceRef};
use crate::thread::{self, Argument, ThreadRef};
use crate::{deferred, sched};

struct TestMachine;

/// Memory of the machine. The host allocates the pages that a test touches.
const MEMORY_BYTES: usize = 1 << 30;
const MEMORY_ALIGN: usize = 2 << 20;

const STACKS_BYTES: usize = abi::stack::range_bytes(256);

/// Leaked, zeroed memory of the host.
fn leaked(bytes: usize, align: usize) -> Arena {
    let memory = std::vec![0u8; bytes + align].leak();
    Arena { base: memory.as_mut_ptr().expose_provenance().next_multiple_of(align), bytes }
}

fn memory() -> Arena {
    static MEMORY: OnceLock<Arena> = OnceLock::new();
    *MEMORY.get_or_init(|| leaked(MEMORY_BYTES, MEMORY_ALIGN))
}

fn stacks() -> Arena {
    static STACKS: OnceLock<Arena> = OnceLock::new();
    *STACKS.get_or_init(|| leaked(STACKS_BYTES, abi::stack::GROUP_BYTES))
}

/// Two windows, which no test uses the pages of.
const WINDOWS: Arena = Arena { base: 0x4000_0000_0000, bytes: 2 * abi::limits::WINDOW_BYTES };

std::thread_local! {
    static PAUSES: core::cell::Cell<usize> = const { core::cell::Cell::new(0) };
}

/// Counts a preemption point of the calling test.
pub fn count_pause() {
    PAUSES.set(PAUSES.get() + 1);
}

/// Number of preemption points passed by the calling test.
pub fn pauses() -> usize {
    PAUSES.get()
}

/// Pages left for the kernel's own objects; tests lower it.
pub static SPARE_FRAMES: AtomicUsize = AtomicUsize::new(usize::MAX);

const START_NS: u64 = 1_000_000;
/// The monotonic clock, changed only by [`advance`].
static CLOCK_NS: AtomicU64 = AtomicU64::new(START_NS);

/// Advances the clock.
pub fn advance(ns: u64) {
    CLOCK_NS.fetch_add(ns, Ordering::Relaxed);
}

impl Machine for TestMachine {
    fn processor_count(&self) -> usize {
        1
    }
    fn layout(&self) -> Layout {
        let arena = memory();
        Layout { stacks: stacks(), memory: arena, memory_is_clear: true, images: arena, windows: WINDOWS }
    }
    fn run_processors(&self, _: &[usize], _: extern "C" fn(usize), _: KernelEntries) {}
    fn guard(&self, _: usize, _: usize) {}
    fn decommit(&self, _: usize, _: usize) {}
    fn window_map(&self, _: usize, _: usize, _: usize) -> Result<(), MapError> {
        domains::MAPPED_WINDOWS.fetch_add(1, Ordering::Relaxed);
        if domains::HAS_FRAMES.load(Ordering::Relaxed) { Ok(()) } else { Err(MapError) }
    }
    fn window_release(&self, _: usize, _: usize) {
        domains::RELEASED.fetch_add(1, Ordering::Relaxed);
    }
    fn window_clear(&self, _: usize, _: usize) -> bool {
        domains::CLEARS_WINDOWS.load(Ordering::Relaxed)
    }
    fn map_image(&self, _: &[Segment<'_>]) -> Result<(), MapError> {
        Err(MapError)
    }
    fn idle(&self, _: usize, _: u64) {}
    fn wake(&self, _: usize) {}
    fn interrupt(&self, _: usize) {}
    fn relax(&self, _: u32) {
        std::thread::yield_now();
    }
    fn monotonic_ns(&self) -> u64 {
        CLOCK_NS.load(Ordering::Relaxed)
    }
    fn wall_ns(&self) -> u64 {
        0
    }
    fn devices(&self) -> Vec<Device> {
        Vec::new()
    }
    fn console_size(&self, _: usize) -> (u16, u16) {
        (0, 0)
    }
    fn device_submit(&self, _: DeviceRequest) -> Submitted {
        Submitted::Queued
    }
    fn debug_write(&self, _: &[u8]) {}
    fn power_off(&self, _: u8) -> ! {
        panic!("a test turned the machine off")
    }
    fn restart(&self) -> ! {
        panic!("a test started the machine anew")
    }
    fn spare_frames(&self) -> usize {
        SPARE_FRAMES.load(Ordering::Relaxed)
    }
    fn max_domains(&self) -> u32 {
        domains::MAX
    }
    fn domain_gate(&self, number: usize) -> usize {
        domains::GATES + number
    }
    fn domain_create(&self, _ring: DomainRing) -> Option<DomainId> {
        domains::create()
    }
    fn domain_destroy(&self, domain: DomainId) {
        domains::destroy(domain);
    }
    fn domain_map(&self, domain: DomainId, address: usize, bytes: usize, access: DomainAccess) -> Result<(), MapError> {
        domains::map(domain, address, bytes, access)
    }
    fn domain_map_private(
        &self,
        domain: DomainId,
        address: usize,
        _memory: usize,
        bytes: usize,
    ) -> Result<(), MapError> {
        domains::map(domain, address, bytes, DomainAccess::Write)
    }
    fn domain_map_stack(&self, domain: DomainId, address: usize) -> Result<(), MapError> {
        domains::map_stack(domain, address)
    }
    fn domain_unmap(&self, domain: DomainId, address: usize, bytes: usize) {
        domains::unmap(domain, address, bytes);
    }
    fn domain_enter(&self, domain: DomainId, context: &mut DomainContext) -> DomainExit {
        domains::enter(domain, context)
    }
}

/// Locks the machine for one test, whose host thread becomes the processor.
pub fn alone() -> MutexGuard<'static, ()> {
    static PROCESSOR: OnceLock<&'static Cpu> = OnceLock::new();
    static ONE: Mutex<()> = Mutex::new(());
    let guard = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let processor = PROCESSOR.get_or_init(|| {
        crate::machine::install(&TestMachine);
        crate::memory::start();
        crate::device::start();
        crate::hardware::start();
        // The threads of tests call the kernel directly.
        thread::start(thread::Startup {
            abi_table: 0,
            arrive: deferred::arrive_new_thread,
            cross: crate::crossing::run_inside,
        });
        assert_eq!(crate::crossing::start(), Ok(()));
        // The end of the SIP with the number 1 is the system's.
        assert!(lifecycle::create(program("first.test"), None).is_ok());
        Cpu::make(0)
    });
    processor.pending.store(0, Ordering::Relaxed);
    set_gs_base(processor.base());
    guard
}

/// Sets the GS base of the calling host thread.
fn set_gs_base(base: usize) {
    const ARCH_PRCTL: isize = 158;
    const ARCH_SET_GS: usize = 0x1001;
    let mut result = ARCH_PRCTL;
    // SAFETY: on x86-64 Linux nothing but the kernel under test uses GS; thread-local storage is reached through FS.
    unsafe {
        core::arch::asm!(
            "syscall",
            inout("rax") result,
            in("rdi") ARCH_SET_GS,
            in("rsi") base,
            out("rcx") _,
            out("r11") _,
            options(nostack)
        );
    }
    assert_eq!(result, 0, "the GS base cannot be set");
}

/// Spawns a runnable thread of a SIP. It runs the closure, which calls the kernel as an ABI function does, and ends.
pub fn spawn(process: ProcessRef, code: impl FnOnce() + 'static) -> ThreadRef {
    extern "C" fn main(code: usize) -> ! {
        // SAFETY: made by `into_raw` below, for this thread alone.
        let code = unsafe { Box::from_raw(core::ptr::with_exposed_provenance_mut::<Box<dyn FnOnce()>>(code)) };
        code();
        leave_kernel();
        lifecycle::end_current_thread()
    }
    let code: Box<Box<dyn FnOnce()>> = Box::new(Box::new(code));
    let argument = Argument::Word(Box::into_raw(code).expose_provenance() as u64);
    assert!(!process.is_dying(), "a SIP ends with its last thread");
    process.state.store(ProcessState::Running as u64, Ordering::Release);
    let thread = thread::create(process, main as *const () as usize, argument).expect("a thread");
    thread.end.lock().released = true;
    sched::make_runnable(thread);
    thread
}

/// Ends an ABI call of a thread: does pending work. Does not return if the thread's SIP is being ended.
pub fn leave_kernel() {
    deferred::service_pending();
}

/// Simulates a timer interrupt of the running thread.
pub fn end_quantum() {
    crate::arch::cpu_set_pending(PENDING_TIMER);
    leave_kernel();
}

/// Runs threads until none is runnable.
pub fn run() {
    while sched::run_next(cpu::this()) {}
}

/// Creates a program with the manifest and without a package.
pub fn unloaded(manifest: Manifest) -> Program {
    Program {
        principal: manifest.principal(),
        manifest_bytes: &[],
        manifest,
        package: &[],
        key: PublicKey::NONE,
        identity: [0; 32],
        installed: AtomicBool::new(true),
        loaded: AtomicRef::none(),
        loading: AtomicBool::new(false),
    }
}

/// Creates a program with the manifest, as if it had been loaded.
pub fn loaded(manifest: Manifest) -> &'static Program {
    let program = Box::leak(Box::new(unloaded(manifest)));
    let loaded = Box::leak(Box::new(Loaded {
        entry: 0,
        base: 0,
        faults: package_check::Faults::default(),
        segments: Vec::new(),
        data: Vec::new(),
        contracts: Vec::new(),
    }));
    program.loaded.set(Some(loaded));
    program
}

/// Creates a SIP that may have children, from a program of its own.
pub fn parent(children: u32) -> ProcessRef {
    with_quota(|quota| quota.children = children)
}

/// Puts a SIP that owns nothing into a new domain; returns the space and the domain's number.
pub fn put_apart(process: ProcessRef) -> (SpaceRef, u32) {
    let space = space::create(DomainRing::Ring3, false).expect("a domain");
    process.space.set(Some(space));
    (space, space.domain().0)
}

/// Creates a SIP from a program of its own, with a changed quota.
pub fn with_quota(change: impl FnOnce(&mut manifest_model::Quota)) -> ProcessRef {
    let mut manifest = Manifest::plain("parent", "test", Category::Test, Code::Script { text: String::new() });
    change(&mut manifest.quota);
    match lifecycle::create(loaded(manifest), None) {
        Ok(parent) => parent.process(),
        Err(_) => panic!("no parent can be made"),
    }
}

/// Creates a plain program with this principal.
pub fn program(principal: &str) -> &'static Program {
    let (name, publisher) = principal.split_once('.').expect("a name and a publisher");
    loaded(Manifest::plain(name, publisher, Category::Test, Code::Script { text: String::new() }))
}
