//! Processors: starting them, sleeping, waking, interrupting and making them forget translations.
//!
//! Key type: [`Processor`], found through the FS base register. Deliberately not here: what a processor
//! runs; the kernel's `main`.

use core::arch::asm;
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use x86_64::instructions::interrupts;
use x86_64::registers::model_specific::{FsBase, GsBase};
use x86_64::{VirtAddr, instructions};

use crate::entry::{START_CODE, START_DATA, StartData, processor_start, processor_start_end};
use crate::firmware::MAX_PROCESSORS;
use crate::frames::FRAME_BYTES;
use crate::interrupts::{FORGET, INTERRUPT, STOP, WAKE};
use crate::paging::{self, Access, NoFrame, PageSize};
use crate::processor_tables::Tables;
use crate::{clock, local};

const QUANTUM_NS: u64 = 10_000_000;
/// The longest sleep, so that a timer which counts down does not overflow.
const LONGEST_SLEEP_NS: u64 = 10_000_000_000;
/// What a processor does before the kernel runs on it, and its idle context after.
const STACK_BYTES: usize = 64 * 1024;

/// Nothing has happened.
const RUNNING: u32 = 0;
/// A wake has come that no sleep has used up.
const WOKEN: u32 = 1;
/// Asleep, or about to be.
const ASLEEP: u32 = 2;

/// One processor; on a cache line of its own, because others write `word`.
#[repr(C, align(64))]
struct Processor {
    /// Its own address: what the FS base register leads to.
    own: AtomicUsize,
    number: AtomicU32,
    /// Number of its local interrupt controller.
    controller: AtomicU32,
    /// `RUNNING`, `WOKEN` or `ASLEEP`.
    word: AtomicU32,
    online: AtomicBool,
    /// The request to forget translations that it has carried out last.
    forgotten: AtomicU64,
}

static LIST: [Processor; MAX_PROCESSORS] = [const {
    Processor {
        own: AtomicUsize::new(0),
        number: AtomicU32::new(0),
        controller: AtomicU32::new(0),
        word: AtomicU32::new(RUNNING),
        online: AtomicBool::new(false),
        forgotten: AtomicU64::new(0),
    }
}; MAX_PROCESSORS];
static COUNT: AtomicUsize = AtomicUsize::new(1);
/// Counts the requests to forget translations.
static FORGET_REQUESTS: AtomicU64 = AtomicU64::new(0);
/// What started processors wait for.
static GO: AtomicBool = AtomicBool::new(false);
static MAIN: AtomicUsize = AtomicUsize::new(0);
static BASES: [AtomicUsize; MAX_PROCESSORS] = [const { AtomicUsize::new(0) }; MAX_PROCESSORS];

/// What each processor but the first needs of memory, and the first but for the stack.
#[repr(C, align(4096))]
pub(crate) struct Room {
    stack: MaybeUninit<[u8; STACK_BYTES]>,
    tables: MaybeUninit<Tables>,
}

fn current() -> &'static Processor {
    let own: usize;
    // SAFETY: the FS base register leads to a `Processor` of `LIST` from `identify` on, which runs
    // before interrupts are on; the first word is its address.
    unsafe {
        asm!("mov {}, fs:[0]", out(reg) own, options(nostack, preserves_flags, readonly));
        &*ptr::with_exposed_provenance(own)
    }
}

/// All other processors that run; none before the first has been identified.
fn others() -> impl Iterator<Item = &'static Processor> {
    let online = |one: &&'static Processor| one.online.load(Ordering::Acquire);
    let own = LIST.iter().any(|one| online(&one)).then(|| current().number.load(Ordering::Relaxed));
    LIST.iter().filter(online).filter(move |other| Some(other.number.load(Ordering::Relaxed)) != own)
}

/// How many run.
pub(crate) fn count() -> usize {
    COUNT.load(Ordering::Acquire)
}

/// Number of this processor.
pub(crate) fn own_number() -> usize {
    current().number.load(Ordering::Relaxed) as usize
}

/// Makes the calling processor number `number`: its tables, its FS base, its local controller.
///
/// # Safety
/// Called once on each processor, interrupts off, the booting one first; `room` is memory for one
/// `Room`, zeroed, that nothing else ever uses.
pub(crate) unsafe fn identify(number: usize, room: *mut Room) {
    // SAFETY: handed on to the caller.
    unsafe { Tables::install((&raw mut (*room).tables).cast()) };
    let own = &LIST[number];
    own.own.store(ptr::from_ref(own).expose_provenance(), Ordering::Relaxed);
    own.number.store(number as u32, Ordering::Relaxed);
    FsBase::write(VirtAddr::from_ptr(own));
    local::enable();
    own.controller.store(local::number(), Ordering::Relaxed);
    own.forgotten.store(FORGET_REQUESTS.load(Ordering::SeqCst), Ordering::SeqCst);
    own.online.store(true, Ordering::SeqCst);
}

/// Starts the other processors; each then waits for [`run`]. One that does not answer is left out.
///
/// # Safety
/// The final page tables are in use, the pages at `START_CODE` and `START_DATA` are unused memory, and
/// `rooms` is memory for as many `Room`s, zeroed, that nothing else ever uses.
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
        // SAFETY: the page is unused but for this, and the processor before has read its own by now.
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
    // SAFETY: the booting processor has chosen the number and the room for this processor, and waits
    // until it is online before it starts another.
    unsafe { identify(count(), room) };
    while !GO.load(Ordering::Acquire) {
        core::hint::spin_loop();
    }
    work()
}

fn work() -> ! {
    let number = own_number();
    GsBase::write(VirtAddr::new(BASES[number].load(Ordering::Relaxed) as u64));
    arm_quantum();
    interrupts::enable();
    // SAFETY: `run` stored this function's address before it let anybody go.
    let main: extern "C" fn(usize) = unsafe { core::mem::transmute(MAIN.load(Ordering::Acquire)) };
    main(number);
    halt()
}

/// Runs `main` on every processor, for ever.
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
        // An interrupt that comes before the processor halts ends the halt: the first instruction after
        // interrupts are enabled still runs without them.
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
        // The kernel looks at what is pending before it leaves.
        interrupts::without_interrupts(|| {
            if let Some(entries) = crate::interrupts::entries() {
                (entries.tick)(false);
            }
        });
    }
}

/// The timer struck this processor: whether it is busy, and so has used up a quantum.
pub(crate) fn timer_struck() -> bool {
    let busy = current().word.load(Ordering::Acquire) != ASLEEP;
    if busy {
        arm_quantum();
    }
    busy
}

/// Something happened that the idle loop is to look at before it sleeps.
pub(crate) fn keep_awake() {
    current().word.store(WOKEN, Ordering::Release);
}

/// Makes all other processors forget translations of addresses, and waits until they have.
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

/// What a processor does that is asked to.
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
