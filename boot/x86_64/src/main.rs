//! The bare system: kernel and x86-64 machine in one image, entered by a boot loader.
//!
//! Prepares the machine from the boot loader's information, reads the boot image and passes both to the kernel.
//! Deliberately not here: any decision about the programs inside, which is up to the system image.
#![no_std]
#![no_main]
#![deny(unsafe_op_in_unsafe_fn)]

extern crate alloc;

mod heap;

use alloc::format;
use alloc::string::String;
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicPtr, Ordering};

use boot_image::{BootImage, Symbols};
use hal_x86_64::{Bare, Prepared};

memory_functions::memory_functions!();
memory_functions::unwind_symbols!();

#[global_allocator]
static HEAP: kernel::CountedHeap<heap::Heap> = kernel::CountedHeap::new(heap::empty());

/// Exit status of a machine that could not start.
const CANNOT_START: u8 = 1;
/// The boot parameter that requests a boot profile.
const BOOT_MARKS: &str = "boot-marks";

static SYMBOLS: AtomicPtr<Symbols<'static>> = AtomicPtr::new(core::ptr::null_mut());

#[panic_handler]
fn panic(information: &PanicInfo<'_>) -> ! {
    hal_x86_64::kernel_panic(information)
}

/// Entered from the entry code, with the boot loader's values of two registers.
///
/// # Safety
/// Called once, by the entry code of the machine.
#[unsafe(no_mangle)]
unsafe extern "C" fn singularity_start(magic: u32, information: u32) -> ! {
    // SAFETY: this is the only call, with the values passed to the entry code.
    match unsafe { hal_x86_64::prepare(magic, information) } {
        Ok(prepared) => end(&run(prepared)),
        // Allocation is not possible.
        Err(why) => end(why),
    }
}

fn end(why: &str) -> ! {
    hal_x86_64::say(format_args!("cannot start the system: {why}"));
    hal_x86_64::end_failed(CANNOT_START)
}

/// Runs the system to its end, which ends the machine too; returns only on failure, with the reason.
fn run(prepared: Prepared) -> String {
    let image = match BootImage::parse(prepared.module) {
        Ok(image) => image,
        Err(error) => return format!("{error}"),
    };
    SYMBOLS.store(alloc::boxed::Box::leak(alloc::boxed::Box::new(image.symbols)), Ordering::Release);
    hal_x86_64::set_symbols(locate);
    let mut parameters = image.parameters();
    parameters.retain(|(name, value)| {
        let own = name == BOOT_MARKS;
        if own && value != "0" {
            hal_x86_64::want_boot_marks();
        }
        !own
    });
    let boot = kernel::Boot { system_image: image.system, parameters };
    kernel::start(Bare::start(), boot)
}

fn locate(address: usize) -> Option<(&'static str, usize)> {
    // SAFETY: null or symbols that are leaked, stored by `run`.
    unsafe { SYMBOLS.load(Ordering::Acquire).as_ref() }?.locate(address as u64)
}
