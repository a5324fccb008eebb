//! Processors: starting, idling, waking, interrupting, and TLB shootdown.
//!
//! Key type: [`Processor`], found through the FS base register. Deliberately not here: the code that a processor
//! runs, which is the kernel's `main`.

use core::arch::asm;
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use x86_64::instructions::interrupts;
use x86_64::registers::model_specific::{FsBase, GsBase};
use x86_64::{VirtAddr, instructions};

use crate::crossing::{self, Area};
use crate::domains::{self, Seen};
use crate::entry::{START_CODE, START_DATA, StartData, processor_start, processor_start_end};
use crate::firmware::MAX_PROCESSORS;
use crate::frames::FRAME_BYTES;
use crate::interrupts::{FORGET, INTERRUPT, STOP, WAKE};
use crate::paging::{self, Access, NoFrame, PageSize};
use crate::processor_tables::Tables;
use crate::{clock, local, protection};

const QUANTUM_NS: u64 = 10_000_000;
/// Maximum sleep, so that a timer which counts down does not overflow.
const LONGEST_SLEEP_NS: u64 = 10_000_000_000;
/// Stack of a processor before the kernel runs on it, and of its idle context after.
const STACK_BYTES: usize = 64 * 1024;

/// Running, without a pending wake.
const RUNNING: u32 = 0;
/// A wake is pending that no idle has consumed.
const WOKEN: u32 = 1;
/// Sleeping, or about to.
const ASLEEP: u32 = 2;

/// One processor; on a cache line of its own, because others write to `word`.
#[repr(C, align(64))]
struct Processor {
    /// Its own address, to which the FS base register points.
    own: AtomicUsize,
    number: AtomicU32,
    /// Its local APIC id.
    controller: AtomicU32,
    /// `RUNNING`, `WOKEN` or `ASLEEP`.
    word: AtomicU32,
    online: AtomicBool,
    /// The last TLB shootdown that it has carried out.
    forgotten: AtomicU64,
    /// Address of its area for the way to domains.
    area: AtomicUsize,
}

static LIST: [Processor; MAX_PROCESSORS] = [const {
    Processor {
        own: AtomicUsize::new(0),
        number: AtomicU32::new(0),
        controller: AtomicU32::new(0),
        word: AtomicU32::new(RUNNING),
        online: AtomicBool::new(false),
        forgotten: AtomicU64::new(0),
        area: AtomicUsize::new(0),
    }
}; MAX_PROCESSORS];
static COUNT: AtomicUsize = AtomicUsize::new(1);
/// Number of TLB shootdowns requested.
static FORGET_REQUESTS: AtomicU64 = AtomicU64::new(0);
/// Releases the started processors.
static GO: AtomicBool = AtomicBool::new(false);
static MAIN: AtomicUsize = AtomicUsize::new(0);
static BASES: [AtomicUsize; MAX_PROCESSORS] = [const { AtomicUsize::new(0) }; MAX_PROCESSORS];

/// Memory needed by each processor; the first does not use the stack.
#[repr(C, align(4096))]
pub(crate) struct Room {
    stack: MaybeUninit<[u8; STACK_BYTES]>,
    tables: Alone,
    seen: MaybeUninit<Seen>,
}

/// Whole pages, which are mapped in every domain.
#[repr(C, align(4096))]
struct Alone(MaybeUninit<Tables>);

fn current() -> &'static Processor {
    let own: usize;
    // SAFETY: the FS base register points to a `Processor` of `LIST` from `identify` on, which runs
    // before interrupts are on; the first word is its address.
    unsafe {
        asm!("mov {}, fs:[0]", out(reg) own, options(nostack, preserves_flags, readonly));
        &*ptr::with_exposed_provenance(own)
    }
}

/// Returns all other online processors; none before the first has been identified.
fn others() -> impl Iterator<Item = &'static Processor> {
    let online = |one: &&'static Processor| one.online.load(Ordering::Acquire);
    let own = LIST.iter().any(|one| online(&one)).then(|| current().number.load(Ordering::Relaxed));
    LIST.iter().filter(online).filter(move |other| Some(other.number.load(Ordering::Relaxed)) != own)
}

/// Returns the number of processors that run.
pub(crate) fn count() -> usize {
    COUNT.load(Ordering::Acquire)
}

/// Returns the number of this processor.
pub(crate) fn own_number() -> usize {
    current().number.load(Ordering::Relaxed) as usize
}

/// Returns the number of this processor, and its area for the way to domains.
pub(crate) fn own_number_and_area() -> (usize, *mut Area) {
    let own = current();
    (own.number.load(Ordering::Relaxed) as usize, ptr::with_exposed_provenance_mut(own.area.load(Ordering::Relaxed)))
}

/// Returns this processor's area for the way to domains.
pub(crate) fn own_area() -> *mut Area {
    ptr::with_exposed_provenance_mut(current().area.load(Ordering::Relaxed))
}

/// Sets up the calling processor as number `number`: its tables, its FS base, its local APIC.
///
/// # Safety
/// Called once on each processor, interrupts off, the boot processor first; `room` is memory for one
/// `Room`, zeroed, without another user.
pub(crate) unsafe fn identify(number: usize, room: *mut Room) {
    // SAFETY: passed on to the caller.
    let (tables, seen): (*mut Tables, *const Seen) =
        unsafe { ((&raw mut (*room).tables).cast(), (&raw const (*room).seen).cast()) };
    // SAFETY: as above.
    unsafe { Tables::install(tables) };
    let own = &LIST[number];
    own.own.store(ptr::from_ref(own).expose_provenance(), Ordering::Relaxed);
    own.number.store(number as u32, Ordering::Relaxed);
    FsBase::write(VirtAddr::from_ptr(own));
    // SAFETY: the kernel's tables are active, and have no page of user mode. The area is in the processor's tables, which
    // are mapped in every domain once they are known; those and `seen`, zeroed, are this processor's for ever.
    unsafe {
        protection::enable();
        let area = &raw mut (*tables).area;
        crossing::prepare(area, VirtAddr::from_ptr(own).as_u64());
        own.area.store(area.expose_provenance(), Ordering::Relaxed);
        domains::know(number, tables, seen);
    }
    local::enable();
    own.controller.store(local::number(), Ordering::Relaxed);
    own.forgotten.store(FORGET_REQUESTS.load(Ordering::SeqCst), Ordering::SeqCst);
    own.online.store(true, Ordering::SeqCst);
}

/// Starts the other processors; each then waits for [`run`]. One that does not answer in time is left out.
///
/// # Safety
/// The final page tables are active, the pages at `START_CODE` and `START_DATA` are unused memory, and
/// `rooms` is memory for as many `Room`s, zeroed, without another user.
pub(crate) unsafe fn start_others(controllers: &[u32], rooms: *mut Room) -> Result<(), NoFrame> {
    if controllers.is_empty() {
        return Ok(());
    }
    let (code, data) = (START_CODE as u64, START_DATA as u64);
    let page = FRAME_BYTES as u64;
    paging::map_identity(code, code + page, Access::Write, PageSize::Small)?;
    paging::map_identity(data, data + page, Access::Write, PageSize::Small)?;
    let first = &raw const processor_start;
    let bytes = (&raw const processor_start_end).addr() - first.addr();
    // SAFETY: the two symbols enclose the start-up code, which is less than a page; the page is unused.
    unsafe { ptr::copy_nonoverlapping(first, ptr::with_exposed_provenance_mut(START_CODE), bytes) };
    paging::unmap_identity(START_CODE, START_CODE + FRAME_BYTES);
    paging::map_identity(code, code + page, Access::Execute, PageSize::Small)?;
    controllers.iter().for_each(|&controller| local::send_init(controller));
    // Intel SDM volume 3, 9.4.4.1: 10 ms between reset and start.
    clock::wait_ns(10_000_000);
    for (index, &controller) in controllers.iter().enumerate() {
        let number = count();
        // SAFETY: `rooms` has one for each.
        let room = unsafe { rooms.add(index) };
        let start = StartData {
            page_tables: paging::root(),
            stack: room.expose_provenance() as u64 + STACK_BYTES as u64,
            entry: started as *const () as u64,
            argument: room.addr() as u64,
        };
        // SAFETY: nothing else uses the page, and the previous processor has read its own data by now.
        unsafe { ptr::with_exposed_provenance_mut::<StartData>(START_DATA).write_volatile(start) };
        if wake_one(controller, number) {
            COUNT.store(number + 1, Ordering::Release);
        }
    }
    paging::unmap_identity(START_CODE, START_CODE + FRAME_BYTES);
    paging::unmap_identity(START_DATA, START_DATA + FRAME_BYTES);
    Ok(())
}

fn wake_one(controller: u32, number: usize) -> bool {
    let online = || LIST[number].online.load(Ordering::SeqCst);
    for timeout_ns in [1_000_000, 200_000_000] {
        local::send_start(controller, (START_CODE / FRAME_BYTES) as u8);
        let end = clock::monotonic_ns() + timeout_ns;
        while !online() && clock::monotonic_ns() < end {
            core::hint::spin_loop();
        }
        if online() {
            return true;
        }
    }
    false
}

/// The first Rust code on a started processor.
extern "C" fn started(room: *mut Room) -> ! {
    // SAFETY: the boot processor has chosen the number and the room for this processor, and waits
    // until it is online before it starts another.
    unsafe { identify(count(), room) };
    while !GO.load(Ordering::Acquire) {
        core::hint::spin_loop();
    }
    work()
}

fn work() -> ! {
    let number = own_number();
    let base = BASES[number].load(Ordering::Relaxed) as u64;
    GsBase::write(VirtAddr::new(base));
    // SAFETY: the area is this processor's.
    unsafe { crossing::set_kernel_gs(own_area(), base) };
    arm_quantum();
    interrupts::enable();
    // SAFETY: `run` stored this function's address before it released the processors.
    let main: extern "C" fn(usize) = unsafe { core::mem::transmute(MAIN.load(Ordering::Acquire)) };
    main(number);
    halt()
}

/// Runs `main` on every processor. Does not return.
pub(crate) fn run(bases: &[usize], main: extern "C" fn(usize)) -> ! {
    for (place, &base) in BASES.iter().zip(bases) {
        place.store(base, Ordering::Relaxed);
    }
    MAIN.store(main as usize, Ordering::Release);
    GO.store(true, Ordering::Release);
    work()
}

fn arm_quantum() {
    local::arm(QUANTUM_NS, clock::cycles_after_ns(QUANTUM_NS));
}

/// See [`hal_api::Machine::idle`]. Returns after any interrupt.
pub(crate) fn idle(deadline_ns: u64) {
    let word = &current().word;
    interrupts::disable();
    let may_sleep = word.compare_exchange(RUNNING, ASLEEP, Ordering::AcqRel, Ordering::Acquire).is_ok();
    let now = clock::monotonic_ns();
    if may_sleep && now < deadline_ns {
        let wait = (deadline_ns - now).min(LONGEST_SLEEP_NS);
        local::arm(wait, clock::cycles_after_ns(wait));
        // An interrupt before the processor halts ends the halt: interrupts are enabled only after the
        // instruction that follows STI.
        interrupts::enable_and_hlt();
        interrupts::disable();
    }
    word.store(RUNNING, Ordering::Release);
    arm_quantum();
    interrupts::enable();
}

/// See [`hal_api::Machine::wake`].
pub(crate) fn wake(number: usize) {
    let processor = &LIST[number];
    if processor.word.swap(WOKEN, Ordering::AcqRel) == ASLEEP {
        local::send(processor.controller.load(Ordering::Relaxed), WAKE);
    }
}

/// See [`hal_api::Machine::interrupt`].
pub(crate) fn interrupt(number: usize) {
    let processor = &LIST[number];
    let own = ptr::eq(processor, current());
    if !own && processor.word.load(Ordering::Acquire) != ASLEEP {
        local::send(processor.controller.load(Ordering::Relaxed), INTERRUPT);
    } else if own {
        // The kernel checks what is pending before it leaves.
        interrupts::without_interrupts(|| {
            if let Some(entries) = crate::interrupts::entries() {
                (entries.tick)(false);
            }
        });
    }
}

/// Handles the timer interrupt: returns whether the processor is busy, and so has used up a quantum.
pub(crate) fn timer_struck() -> bool {
    let busy = current().word.load(Ordering::Acquire) != ASLEEP;
    if busy {
        arm_quantum();
    }
    busy
}

/// Marks this processor as woken: the idle loop has to check for work before it sleeps.
pub(crate) fn keep_awake() {
    current().word.store(WOKEN, Ordering::Release);
}

/// TLB shootdown: flushes the TLBs of all other processors, and waits until they have.
pub(crate) fn forget_translations() {
    if count() == 1 {
        return;
    }
    let request = FORGET_REQUESTS.fetch_add(1, Ordering::SeqCst) + 1;
    for other in others() {
        local::send(other.controller.load(Ordering::Relaxed), FORGET);
    }
    for other in others() {
        while other.forgotten.load(Ordering::SeqCst) < request {
            core::hint::spin_loop();
        }
    }
}

/// The same on those other processors, by number, for which the condition holds, and until it holds no more.
pub(crate) fn forget_where(holds: impl Fn(usize) -> bool) {
    let mut request = 0;
    for other in others() {
        let number = other.number.load(Ordering::Relaxed) as usize;
        if !holds(number) {
            continue;
        }
        if request == 0 {
            request = FORGET_REQUESTS.fetch_add(1, Ordering::SeqCst) + 1;
        }
        local::send(other.controller.load(Ordering::Relaxed), FORGET);
        while holds(number) && other.forgotten.load(Ordering::SeqCst) < request {
            core::hint::spin_loop();
        }
    }
}

/// Flushes this processor's TLB on another's request.
pub(crate) fn forget_own_translations() {
    let request = FORGET_REQUESTS.load(Ordering::SeqCst);
    instructions::tlb::flush_all();
    current().forgotten.fetch_max(request, Ordering::SeqCst);
}

/// Stops all other processors for good.
pub(crate) fn stop_others() {
    for other in others() {
        local::send(other.controller.load(Ordering::Relaxed), STOP);
    }
}

/// Stops this processor for good.
pub(crate) fn halt() -> ! {
    loop {
        interrupts::disable();
        instructions::hlt();
    }
}
