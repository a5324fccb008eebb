//! Acts that the processor refuses.

use core::arch::asm;

use crate::Act;
use crate::raw::must;

pub(crate) const ACTS: &[(&str, Act)] = &[
    ("write-code", |_| write_to(victim_code as extern "C" fn() as usize)),
    ("write-constants", |_| write_to(CONSTANT.as_ptr().expose_provenance())),
    ("execute-heap", |_| execute_at(must("memory_allocate", &[1]) as usize)),
    ("execute-stack", |_| execute_stack()),
    ("execute-block", |_| execute_block()),
    ("read-null", |_| read_from(0)),
    ("write-null", |_| write_to(0)),
    ("read-wild", |_| read_from(0x1234_5678_9000)),
    ("read-window", |_| read_from(must("memory_reserve", &[0]) as usize)),
    ("write-behind-window", |_| {
        let window = must("memory_reserve", &[0]);
        must("memory_grow", &[window, 3]);
        crate::raw::set_byte(window + 3 * 4096 - 1, 1);
        write_to(window as usize + 3 * 4096)
    }),
    // Fewer pages may stay mapped, zeroed.
    ("read-freed-window", |_| {
        let window = must("memory_reserve", &[600]);
        crate::raw::set_byte(window, 1);
        must("memory_free", &[window]);
        read_from(window as usize)
    }),
    ("read-window-of-no-pages-again", |_| {
        free_windows();
        read_from(must("memory_reserve", &[0]) as usize)
    }),
    ("write-behind-window-again", |_| {
        free_windows();
        let window = must("memory_reserve", &[3]);
        crate::raw::set_byte(window + 3 * 4096 - 1, 1);
        write_to(window as usize + 3 * 4096)
    }),
    ("jump-window", |_| {
        let window = must("memory_reserve", &[0]);
        must("memory_grow", &[window, 1]);
        execute_at(window as usize)
    }),
    ("jump-wild", |_| jump_to(0x1234_5678_9000)),
    ("jump-null", |_| jump_to(0)),
    ("jump-noncanonical", |_| jump_to(0x8000_1234_5678_9000)),
    ("undefined-instruction", |_| undefined_instruction()),
    ("divide-by-zero", |_| divide_by_zero()),
    ("fault-on-thread", |_| on_thread(|| _ = read_from(0))),
    ("fault-without-stack", |_| fault_without_stack()),
];

/// Takes and frees windows with 1 to 5 pages, so that some of each are free.
fn free_windows() {
    let windows: [u64; 5] = core::array::from_fn(|index| must("memory_reserve", &[index as u64 + 1]));
    for window in windows {
        crate::raw::set_byte(window, 1);
        must("memory_free", &[window]);
    }
}

static CONSTANT: [u8; 64] = [0x5a; 64];

extern "C" fn victim_code() {
    core::hint::black_box(1);
}

/// Runs on another thread while this one waits.
pub(crate) fn on_thread(body: fn()) -> i32 {
    let thread = sip::thread::spawn(body).expect("a thread");
    thread.join().expect("it ends");
    0
}

fn write_to(address: usize) -> i32 {
    let target: *mut u8 = core::ptr::with_exposed_provenance_mut(address);
    // SAFETY: none; the machine must refuse it.
    unsafe { asm!("mov byte ptr [{}], 0xc3", in(reg) target, options(nostack, preserves_flags)) };
    0
}

fn read_from(address: usize) -> i32 {
    let value: usize;
    // SAFETY: none; the machine must refuse it.
    unsafe { asm!("mov {}, [{}]", out(reg) value, in(reg) address, options(nostack, preserves_flags, readonly)) };
    value as i32
}

fn jump_to(address: usize) -> i32 {
    // SAFETY: none; the machine must refuse it.
    let target: extern "C" fn() = unsafe { core::mem::transmute(core::hint::black_box(address)) };
    target();
    0
}

const RETURN: u8 = 0xc3;

fn execute_at(address: usize) -> i32 {
    let target: *mut u8 = core::ptr::with_exposed_provenance_mut(address);
    // SAFETY: the address is this process's own data, with room for a byte.
    unsafe { target.write_volatile(RETURN) };
    jump_to(address)
}

fn execute_stack() -> i32 {
    let mut code = [RETURN; 64];
    execute_at(core::hint::black_box(&mut code).as_mut_ptr().expose_provenance())
}

fn execute_block() -> i32 {
    must("heap_allocate", &[4096, sip::abi::type_tag("byte")]);
    execute_at(crate::raw::word(0) as usize)
}

fn undefined_instruction() -> i32 {
    // SAFETY: none; the processor must refuse it.
    unsafe { asm!("ud2", options(nostack)) };
    0
}

fn divide_by_zero() -> i32 {
    let quotient: u64;
    // SAFETY: none; the processor must refuse it.
    unsafe {
        asm!("div {zero}", zero = in(reg) 0u64, inout("rax") 1u64 => quotient, inout("rdx") 0u64 => _, options(nostack));
    }
    quotient as i32
}

/// The fault handler must not use the stack pointer of the fault.
fn fault_without_stack() -> i32 {
    // SAFETY: none; it does not return.
    unsafe { asm!("mov rsp, 16", "mov rax, [rax]", in("rax") 24, options(noreturn)) }
}
