//! The bare machine as a whole, built from the boot loader's information.
//!
//! Key type: [`Bare`]. [`prepare`] divides memory in this order: what the boot loader reports as
//! free, less what is occupied; room for images and for each processor; a share of frames for stacks,
//! the kernel's heap and page tables; and the largest run that remains for SIPs. Each function of
//! [`Machine`] delegates to the module that implements it.

use core::cell::UnsafeCell;
use core::ptr;
use core::slice;
use core::sync::atomic::{AtomicBool, Ordering};

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;
use hal_api::{
    Arena, Device, DeviceFailure, DeviceRequest, DomainAccess, DomainContext, DomainExit, DomainId, DomainRing,
    Hardware, InterruptMessage, KernelEntries, Layout, Machine, MapError, Range, RangeKind, Segment, Submitted, Width,
};

use crate::firmware::Firmware;
use crate::frames::{self, FRAME_BYTES};
use crate::handover::Handover;
use crate::paging::{self, Access, NoFrame, PageSize};
use crate::processors::{self, Room};
use crate::regions::{Region, Regions};
use crate::{
    clock, crossing, domains, gates, hardware, interrupts, layout, lines, local, marks, output, power, power_button,
    protection, registers, report, trampoline,
};

const MIB: u64 = 1 << 20;
/// Memory below is left to the firmware and to starting processors.
const LOW_MEMORY: u64 = MIB;
const REACHABLE: u64 = 1 << 32;
const LARGE_PAGE: u64 = 2 * MIB;
/// Room for images in addition to the boot module's size: each image is rounded up to whole pages.
const IMAGE_ROOM: u64 = 2 * MIB;
/// Divisor of the share of memory that goes to frames.
const FRAMES_SHARE: u64 = 3;
/// Minimum memory in bytes for SIPs and frames together.
const MIN_MEMORY: u64 = 16 * MIB;

/// The bare machine.
pub struct Bare {
    layout: Layout,
    firmware: Firmware,
    hardware: Vec<Hardware>,
    /// Ordinary memory, which no driver may claim.
    memory: Regions,
    /// Its size in bytes.
    memory_bytes: u64,
}

/// Result of [`prepare`] for the boot crate.
pub struct Prepared {
    /// The boot module.
    pub module: &'static [u8],
    /// The boot loader's command line.
    pub command_line: &'static str,
}

struct Early {
    firmware: Firmware,
    handover: Handover,
    layout: Layout,
    memory: Regions,
    memory_bytes: u64,
}

struct Place(UnsafeCell<Option<Early>>);

// SAFETY: written by `prepare` and read by `Bare::start`, both on the boot processor before others run
// any of this module's code.
unsafe impl Sync for Place {}

static EARLY: Place = Place(UnsafeCell::new(None));
static PREPARED: AtomicBool = AtomicBool::new(false);
static MACHINE: core::sync::atomic::AtomicPtr<Bare> = core::sync::atomic::AtomicPtr::new(ptr::null_mut());

/// Builds a machine from the boot loader's information: memory, page tables, interrupt tables and time. Nothing may be
/// allocated before it returns. An error is a human-readable sentence; the machine is unusable then.
///
/// # Safety
/// Called once, before anything else, with the values passed to the entry code.
pub unsafe fn prepare(magic: u32, information: u32) -> Result<Prepared, &'static str> {
    clock::start();
    output::start();
    assert!(!PREPARED.swap(true, Ordering::AcqRel), "the machine is prepared once");
    lines::silence_old_controllers();
    // SAFETY: the values are the boot loader's, and the entry code has mapped the first 4 GiB.
    let (handover, firmware) = unsafe {
        let handover = Handover::read(magic, information)?;
        let firmware = Firmware::read(handover.tables, local::own_number());
        (handover, firmware)
    };
    marks::mark("firmware tables");
    let small_pages = handover.command_line().split_whitespace().any(|word| word == "pages=4k");
    let largest = if small_pages { PageSize::Small } else { PageSize::largest() };
    // SAFETY: the state is the early one that it requires.
    let early = unsafe { take_memory(handover, firmware, largest) }?;
    marks::mark("page tables");
    // SAFETY: the only place that writes it; no other processor runs.
    let early = unsafe { (*EARLY.0.get()).insert(early) };
    let module = early.handover.module;
    // SAFETY: the module is mapped read-only, and nothing else uses its memory.
    let module =
        unsafe { slice::from_raw_parts(ptr::with_exposed_provenance(module.start as usize), module.bytes() as usize) };
    Ok(Prepared { module, command_line: early.handover.command_line() })
}

/// Divides memory, builds and activates the page tables, and starts the processors.
///
/// # Safety
/// The first 4 GiB are identity-mapped, nothing else runs, and what the hand-over lists as free is free.
unsafe fn take_memory(handover: Handover, firmware: Firmware, largest: PageSize) -> Result<Early, &'static str> {
    const NO_ROOM: &str = "there is too little memory below 4 GiB to start";
    const NO_FRAMES: &str = "there is too little memory for page tables";
    let mut handover = handover;
    let mut free = core::mem::replace(&mut handover.free, Regions::new());
    let module = handover.module;
    free.remove(Region { start: 0, end: LOW_MEMORY });
    free.trim_to_pages(FRAME_BYTES as u64);
    let mut memory = Regions::new();
    free.iter().for_each(|region| memory.add(region));
    memory.add(module);
    memory.add(Region { start: layout::start(), end: layout::end() });
    let memory_bytes = memory.bytes();
    free.remove(Region { start: layout::start(), end: layout::end().next_multiple_of(LARGE_PAGE) });
    let free_bytes = free.bytes();

    let room_bytes = size_of::<Room>() as u64 * firmware.processor_count as u64;
    let rooms = free.take(room_bytes, FRAME_BYTES as u64, 0, REACHABLE).ok_or(NO_ROOM)?;
    let image_bytes = (module.bytes() + IMAGE_ROOM).next_multiple_of(LARGE_PAGE);
    let images = free.take(image_bytes, LARGE_PAGE, 0, REACHABLE).ok_or(NO_ROOM)?;
    if free_bytes < image_bytes + room_bytes + MIN_MEMORY {
        report::say(format_args!(
            "too little memory: {} MiB are free and {} MiB are needed; give the machine more",
            free_bytes >> 20,
            (image_bytes + room_bytes + MIN_MEMORY).div_ceil(MIB)
        ));
        return Err("the machine has too little memory");
    }
    let arena = divide(&mut free, free_bytes / FRAMES_SHARE);
    // Page tables are built while only the first 4 GiB are mapped, so frames start with those.
    for region in free.iter().filter(|region| region.end <= REACHABLE) {
        // SAFETY: free memory without another user, mapped now and in the tables below.
        unsafe { frames::add(region) };
    }
    let kernel =
        [(layout::start(), Access::Read), (layout::code(), Access::Execute), (layout::code_end(), Access::Read)];
    let ends = [layout::code(), layout::code_end(), layout::data()];
    let map_all = || -> Result<(), NoFrame> {
        for ((start, access), end) in kernel.into_iter().zip(ends) {
            paging::map_identity(start, end, access, PageSize::Small)?;
        }
        paging::map_identity(layout::data(), layout::end(), Access::Write, PageSize::Small)?;
        paging::map_identity(module.start, module.end.next_multiple_of(FRAME_BYTES as u64), Access::Read, largest)?;
        paging::map_identity(rooms, rooms + room_bytes, Access::Write, largest)?;
        paging::reserve_small(images, images + image_bytes)?;
        for region in free.iter() {
            paging::map_identity(region.start, region.end, Access::Write, largest)?;
        }
        paging::map_identity(arena.start, arena.end, Access::Write, largest)?;
        let devices = firmware.controllers[..firmware.controller_count].iter().map(|controller| controller.address);
        for address in devices.chain([firmware.local]).chain(power_registers(&firmware)) {
            let page = address & !(FRAME_BYTES as u64 - 1);
            paging::map_identity(page, page + FRAME_BYTES as u64, Access::Device, PageSize::Small)?;
        }
        Ok(())
    };
    map_all().map_err(|NoFrame| NO_FRAMES)?;
    // SAFETY: the tables map the kernel, the boot stack in its data, and all that is used from here on.
    unsafe { paging::activate() };
    // SAFETY: memory without another user, of which nothing is mapped and for which there are tables.
    unsafe { frames::add_images(Region { start: images, end: images + image_bytes }) };
    for region in free.iter().filter(|region| region.end > REACHABLE) {
        // SAFETY: as above; mapped by now.
        unsafe { frames::add(region) };
    }
    // SAFETY: the registers were mapped above; this is the boot processor, and the rooms are zeroed here
    // and used by the processors only.
    unsafe {
        ptr::write_bytes(ptr::with_exposed_provenance_mut::<u8>(rooms as usize), 0, room_bytes as usize);
        start_processors(&firmware, ptr::with_exposed_provenance_mut(rooms as usize)).map_err(|NoFrame| NO_FRAMES)?;
    }
    let layout = Layout {
        stacks: Arena { base: paging::STACKS_BASE, bytes: paging::STACKS_BYTES },
        memory: Arena { base: arena.start as usize, bytes: arena.bytes() as usize },
        memory_is_clear: false,
        images: Arena { base: images as usize, bytes: image_bytes as usize },
        windows: Arena { base: paging::WINDOWS_BASE, bytes: paging::WINDOWS_BYTES },
    };
    Ok(Early { firmware, handover, layout, memory, memory_bytes })
}

/// Returns the addresses of the power-off and reset registers that are memory-mapped.
fn power_registers(firmware: &Firmware) -> impl Iterator<Item = u64> {
    use crate::firmware::Register::Memory;
    let off = firmware.off.and_then(|(register, _)| if let Memory(address) = register { Some(address) } else { None });
    let reset =
        firmware.reset.and_then(|(register, _)| if let Memory(address) = register { Some(address) } else { None });
    off.into_iter().chain(reset)
}

/// Removes the largest run from free memory, except for the part that frames still need: the run for SIPs.
fn divide(free: &mut Regions, frames_bytes: u64) -> Region {
    let whole = free.largest().unwrap_or_default();
    free.remove(whole);
    let of_whole = frames_bytes.saturating_sub(free.bytes()).next_multiple_of(LARGE_PAGE);
    let start = whole.start.saturating_add(of_whole).next_multiple_of(LARGE_PAGE).min(whole.end);
    free.add(Region { start: whole.start, end: start });
    Region { start, end: whole.end }
}

/// # Safety
/// The final tables are active and map the APICs' registers; `rooms` is zeroed memory, one `Room`
/// for each processor, without another user.
unsafe fn start_processors(firmware: &Firmware, rooms: *mut Room) -> Result<(), NoFrame> {
    // SAFETY: by the caller's contract.
    unsafe {
        local::place(firmware.local as usize);
        processors::identify(0, rooms);
    }
    marks::mark("own processor");
    if !clock::calibrate() {
        report::say(format_args!("no timer tells how fast the processor is; times are guesses"));
    }
    marks::mark("clock calibration");
    // SAFETY: the registers were mapped; the rest by the caller's contract.
    unsafe {
        lines::start(firmware, local::number());
        processors::start_others(&firmware.processors[1..firmware.processor_count], rooms.add(1))?;
    }
    marks::mark("other processors");
    Ok(())
}

impl Bare {
    /// Returns the machine, once [`prepare`] has run and allocation works.
    ///
    /// # Panics
    /// If `prepare` has not run.
    pub fn start() -> &'static Bare {
        // SAFETY: `prepare` wrote it on this same processor, and nothing else accesses it.
        let early = unsafe { (*EARLY.0.get()).as_ref() };
        let early = early.expect("the machine is prepared first");
        let mut hardware = hardware::find(&early.firmware, early.handover.command_line(), &early.memory);
        hardware.extend(early.firmware.button.and_then(power_button::start));
        let mut memory = Regions::new();
        early.memory.iter().for_each(|region| memory.add(region));
        let machine = Box::leak(Box::new(Bare {
            layout: early.layout,
            firmware: early.firmware,
            hardware,
            memory,
            memory_bytes: early.memory_bytes,
        }));
        MACHINE.store(machine, Ordering::Release);
        machine
    }
}

/// Ends the machine after a failure, with as much of it as is known.
pub(crate) fn end_failed(exit_status: u8) -> ! {
    // SAFETY: null or a machine that lives for ever.
    match unsafe { MACHINE.load(Ordering::Acquire).as_ref() } {
        Some(machine) => power::off(&machine.firmware, exit_status),
        None => power::off_unknown(exit_status),
    }
}

impl Bare {
    /// Whether whole pages are of the arenas of which a domain may have a part.
    fn may_be_in_domain(&self, address: usize, bytes: usize) -> bool {
        let inside = |arena: Arena| arena.contains(address) && bytes <= arena.bytes - (address - arena.base);
        let whole = address.is_multiple_of(FRAME_BYTES) && bytes.is_multiple_of(FRAME_BYTES);
        let Layout { memory, images, windows, .. } = self.layout;
        whole && [memory, images, windows].into_iter().any(inside)
    }
}

impl Machine for Bare {
    fn processor_count(&self) -> usize {
        processors::count()
    }

    fn layout(&self) -> Layout {
        self.layout
    }

    fn run_processors(&self, bases: &[usize], main: extern "C" fn(processor: usize), entries: KernelEntries) {
        let entries = Box::leak(Box::new(entries));
        trampoline::prepare(entries);
        interrupts::publish(entries);
        processors::run(bases, main)
    }

    /// Guard pages of stacks are never mapped: `paging` skips them.
    fn guard(&self, _address: usize, _bytes: usize) {}

    fn decommit(&self, address: usize, bytes: usize) {
        if self.layout.stacks.contains(address) {
            paging::shrink_stack(address, bytes);
        } else {
            assert!(self.layout.memory.contains(address) && bytes <= self.layout.memory.bytes, "not memory of SIPs");
            // SAFETY: whole pages of the memory arena, whose contents the kernel gives up by calling this.
            unsafe { ptr::write_bytes(ptr::with_exposed_provenance_mut::<u64>(address), 0, bytes / 8) };
        }
    }

    fn map_image(&self, segments: &[Segment<'_>]) -> Result<(), MapError> {
        for segment in segments {
            let end = segment.address.checked_add(segment.bytes.len()).ok_or(MapError)?;
            let inside = self.layout.images.contains(segment.address)
                && end <= self.layout.images.base + self.layout.images.bytes;
            if segment.bytes.is_empty() || !inside || !segment.address.is_multiple_of(FRAME_BYTES) {
                return Err(MapError);
            }
        }
        let end = segments.iter().map(|segment| segment.address + segment.bytes.len()).max();
        if !end.is_none_or(frames::give_to_images) {
            return Err(MapError);
        }
        for segment in segments {
            let access = if segment.executable { Access::Execute } else { Access::Read };
            for (index, bytes) in segment.bytes.chunks(FRAME_BYTES).enumerate() {
                let page = segment.address + index * FRAME_BYTES;
                // SAFETY: a page of the image arena by the check above; it fails if the page is in use. The
                // kernel is not migrated between processors.
                let mapped = unsafe { paging::map_image_page(page, bytes, access, processors::own_number()) };
                mapped.map_err(|NoFrame| MapError)?;
            }
        }
        Ok(())
    }

    fn idle(&self, _processor: usize, deadline_ns: u64) {
        processors::idle(deadline_ns);
    }

    fn wake(&self, processor: usize) {
        processors::wake(processor);
    }

    fn interrupt(&self, processor: usize) {
        processors::interrupt(processor);
    }

    fn relax(&self, _spins: u32) {
        core::hint::spin_loop();
    }

    fn monotonic_ns(&self) -> u64 {
        clock::monotonic_ns()
    }

    fn wall_ns(&self) -> u64 {
        clock::wall_ns()
    }

    /// None: all devices are driven by SIPs.
    fn devices(&self) -> Vec<Device> {
        Vec::new()
    }

    fn console_size(&self, _device: usize) -> (u16, u16) {
        (0, 0)
    }

    fn spare_frames(&self) -> usize {
        frames::spare()
    }

    fn stack_in_use(&self, address: usize, bytes: usize) -> usize {
        paging::stack_in_use(address, bytes)
    }

    fn memory_in_use(&self) -> Option<u64> {
        let free = (frames::left() * FRAME_BYTES) as u64 + self.layout.memory.bytes as u64;
        Some(self.memory_bytes.saturating_sub(free))
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::from([("memory bytes", self.memory_bytes), ("hardware domains", domains::count() as u64)])
    }

    fn kernel_image(&self) -> Vec<Cow<'static, [u8]>> {
        layout::constant_parts().map(Cow::Borrowed).into()
    }

    fn boot_mark(&self, name: &str) {
        marks::mark_late(name);
    }

    fn hardware(&self) -> Vec<Hardware> {
        self.hardware.clone()
    }

    fn may_claim(&self, range: Range) -> bool {
        registers::may_claim(range, &self.memory, &self.firmware)
    }

    fn interrupt_lines(&self) -> u32 {
        lines::COUNT
    }

    fn register_read(&self, kind: RangeKind, address: u64, width: Width) -> u64 {
        registers::read(kind, address, width)
    }

    fn register_write(&self, kind: RangeKind, address: u64, width: Width, value: u64) {
        registers::write(kind, address, width, value);
    }

    fn interrupt_mask(&self, line: u32, masked: bool) {
        lines::mask(line, masked);
    }

    fn interrupt_message(&self) -> Option<InterruptMessage> {
        lines::take_message()
    }

    fn device_address(&self, address: usize, bytes: usize) -> Option<u64> {
        let arena = self.layout.memory;
        (arena.contains(address) && bytes <= arena.bytes - (address - arena.base)).then_some(address as u64)
    }

    fn set_wall_ns(&self, now: u64) -> bool {
        clock::set_wall(now);
        true
    }

    fn device_submit(&self, _request: DeviceRequest) -> Submitted {
        Submitted::Complete(Err(DeviceFailure))
    }

    fn debug_write(&self, text: &[u8]) {
        output::write(text);
    }

    fn has_privileged_domains(&self) -> bool {
        true
    }

    fn max_domains(&self) -> u32 {
        domains::MAX_DOMAINS as u32
    }

    fn domain_gate(&self, number: usize) -> usize {
        gates::address(number)
    }

    fn domain_create(&self, ring: DomainRing) -> Option<DomainId> {
        domains::create(ring)
    }

    fn domain_destroy(&self, domain: DomainId) {
        domains::destroy(domain);
    }

    fn domain_map(&self, domain: DomainId, address: usize, bytes: usize, access: DomainAccess) -> Result<(), MapError> {
        if !self.may_be_in_domain(address, bytes) {
            return Err(MapError);
        }
        domains::map(domain, address, bytes, access).map_err(|NoFrame| MapError)
    }

    fn window_map(&self, address: usize, memory: usize, bytes: usize) -> Result<(), MapError> {
        paging::map_window(address, memory, bytes).map_err(|NoFrame| MapError)
    }

    fn window_release(&self, address: usize, _bytes: usize) {
        paging::release_window(address);
    }

    fn domain_map_private(
        &self,
        domain: DomainId,
        address: usize,
        memory: usize,
        bytes: usize,
    ) -> Result<(), MapError> {
        if !self.may_be_in_domain(address, bytes) || !self.may_be_in_domain(memory, bytes) {
            return Err(MapError);
        }
        domains::map_private(domain, address, memory, bytes).map_err(|NoFrame| MapError)
    }

    fn domain_map_stack(&self, domain: DomainId, address: usize) -> Result<(), MapError> {
        if !paging::is_stack(address) {
            return Err(MapError);
        }
        domains::map_stack(domain, address).map_err(|NoFrame| MapError)
    }

    fn domain_unmap(&self, domain: DomainId, address: usize, bytes: usize) {
        domains::unmap(domain, address, bytes);
    }

    fn domain_enter(&self, domain: DomainId, context: &mut DomainContext) -> DomainExit {
        crossing::enter(domain, context)
    }

    fn domain_weaknesses(&self) -> Vec<&'static str> {
        protection::weaknesses()
    }

    #[cfg(feature = "recording")]
    fn takes_recording(&self) -> bool {
        true
    }

    #[cfg(feature = "recording")]
    fn record(&self, bytes: &[u8]) {
        crate::recording::append(bytes);
    }

    fn power_off(&self, exit_status: u8) -> ! {
        marks::print();
        power::off(&self.firmware, exit_status)
    }

    fn restart(&self) -> ! {
        power::restart(&self.firmware)
    }
}

/// Grows the kernel's heap by at least `bytes` bytes; returns start and length of the new range, which follows the last.
pub fn grow_heap(bytes: usize) -> Option<(usize, usize)> {
    paging::grow_heap(bytes)
}
