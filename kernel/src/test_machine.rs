//! What unit tests need to make SIPs that never run: a machine with a clock and memory that is never short, and programs
//! that are loaded from nothing.
//!
//! No processor is there: nothing may be waited for, and no thread made.

extern crate std;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use hal_api::{Arena, Device, DeviceRequest, KernelEntries, Layout, Machine, MapError, Segment, Submitted};
use package::{Category, Code, Manifest, PublicKey};

use crate::lifecycle;
use crate::lock::AtomicRef;
use crate::process::ProcessRef;
use crate::program::{Loaded, Program};

struct TestMachine;

/// Pages that the machine has. The host gives those that a test touches.
const MEMORY_BYTES: usize = 1 << 30;
const MEMORY_ALIGN: usize = 2 << 20;

/// The machine's memory.
fn memory() -> Arena {
    static BASE: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    let base = BASE.get_or_init(|| {
        let memory = std::vec![0u8; MEMORY_BYTES + MEMORY_ALIGN].leak();
        memory.as_mut_ptr().expose_provenance().next_multiple_of(MEMORY_ALIGN)
    });
    Arena { base: *base, bytes: MEMORY_BYTES }
}

std::thread_local! {
    static PAUSES: core::cell::Cell<usize> = const { core::cell::Cell::new(0) };
}

/// Long work of the calling test may be preempted here.
pub fn count_pause() {
    PAUSES.set(PAUSES.get() + 1);
}

/// How often long work of the calling test could have been preempted.
pub fn pauses() -> usize {
    PAUSES.get()
}

/// Pages that are left for the kernel's own objects; tests make them few.
pub static SPARE_FRAMES: AtomicUsize = AtomicUsize::new(usize::MAX);

impl Machine for TestMachine {
    fn processor_count(&self) -> usize {
        1
    }
    fn layout(&self) -> Layout {
        let arena = memory();
        Layout { stacks: arena, memory: arena, memory_is_clear: true, images: arena }
    }
    fn run_processors(&self, _: &[usize], _: extern "C" fn(usize), _: KernelEntries) {}
    fn guard(&self, _: usize, _: usize) {}
    fn decommit(&self, _: usize, _: usize) {}
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
        1_000_000
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
}

/// The machine, for one test at a time.
pub fn alone() -> MutexGuard<'static, ()> {
    static START: Once = Once::new();
    static ONE: Mutex<()> = Mutex::new(());
    let guard = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    START.call_once(|| {
        crate::machine::install(&TestMachine);
        crate::memory::start();
        crate::device::start();
        crate::hardware::start();
        // The end of the SIP with the number 1 is the system's.
        assert!(lifecycle::create(program("first.test"), None).is_ok());
    });
    guard
}

/// A program with the manifest, whose package is none.
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

/// A program with the manifest, as if it had been loaded.
pub fn loaded(manifest: Manifest) -> &'static Program {
    let program = Box::leak(Box::new(unloaded(manifest)));
    let loaded = Box::leak(Box::new(Loaded { entry: 0, code: Vec::new(), contracts: Vec::new() }));
    program.loaded.set(Some(loaded));
    program
}

/// A SIP that may have children, of a program of its own.
pub fn parent(children: u32) -> ProcessRef {
    with_quota(|quota| quota.children = children)
}

/// A SIP of a program of its own, whose quota is made by changing the plain one.
pub fn with_quota(change: impl FnOnce(&mut package::Quota)) -> ProcessRef {
    let mut manifest = Manifest::plain("parent", "test", Category::Test, Code::Script { text: String::new() });
    change(&mut manifest.quota);
    match lifecycle::create(loaded(manifest), None) {
        Ok(parent) => parent.process(),
        Err(_) => panic!("no parent can be made"),
    }
}

/// A plain program with this principal.
pub fn program(principal: &str) -> &'static Program {
    let (name, publisher) = principal.split_once('.').expect("a name and a publisher");
    loaded(Manifest::plain(name, publisher, Category::Test, Code::Script { text: String::new() }))
}
