//! What a program in a hosted domain leaves in its thread, for another program in the same process; and a program that
//! looks for it.
//!
//! It ends by a forged exit, and then makes its thread look like one that waits for its next turn.

use core::arch::asm;

use sip::abi::stack::USUAL_BYTES;

use crate::Act;
use crate::domains::{
    ARGUMENTS, FUTEX, GATE, INSTRUCTION, IS_WHOLE, KIND, RUNNER, SIGRETURN, STACK, STUB, TURN, raw_call, window,
};
use crate::raw::{number_of, stack_start};

pub(crate) const ACTS: &[(&str, Act)] = &[("domain-leave", |way| leave(way)), ("domain-look", |_| look())];

const JUNK: u64 = 0x5a5a_5a5a_5a5a;
const PAGE_BYTES: usize = 4096;
const RUNNER_BYTES: usize = 8 * PAGE_BYTES;
const SIGPROCMASK: u64 = 14;
const SIGALTSTACK: u64 = 131;
/// Offset of the number of the domain's thread in its exchange page.
const THREAD: usize = 112;
/// Offsets of free room there: a word, and a frame.
const WORD: usize = 2400;
const FRAME: usize = 2432;
const TRAP_FLAG: u64 = 1 << 8;
/// The stub's signals: SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV, SIGSYS.
const FAULTS: u64 = 1 << 3 | 1 << 4 | 1 << 6 | 1 << 7 | 1 << 10 | 1 << 30;
const SIGALRM: u64 = 1 << 13;

/// The stub's instruction that sleeps until the runner's turn: a SYSCALL before a comparison of a word of the commands.
fn sleeping() -> usize {
    let stub = window() + STUB;
    let byte = |offset: usize| {
        let place: *const u8 = core::ptr::with_exposed_provenance(stub + offset);
        // SAFETY: the page may be read.
        unsafe { place.read() }
    };
    let found = (0..PAGE_BYTES - 4).find(|&at| (0..4).map(|more| byte(at + more)).eq([0x0f, 0x05, 0x83, 0x3d]));
    stub + found.expect("the stub sleeps")
}

/// Leaves junk, and ends: with all signals blocked (0), with the trap flag and no signal blocked (1) or all (2), asleep for
/// another word (3), awake in the stub (4), or with GS as it was (5).
fn leave(way: u64) -> i32 {
    let page = window() + RUNNER;
    let put = |offset: usize, value: u64| {
        let place: *mut u64 = core::ptr::with_exposed_provenance_mut(page + offset);
        // SAFETY: the page is this program's to write.
        unsafe { place.write_volatile(value) };
    };
    let target = if way == 4 { window() + STUB } else { sleeping() };
    let word = page + if way == 3 { WORD } else { TURN };
    (PAGE_BYTES..RUNNER_BYTES).step_by(8).for_each(|offset| put(offset, JUNK));
    // `ucontext_t`, as in `domains`: all memory is the signal stack; R8 to R15 are JUNK, as are RBP, RBX and RSP, and the others
    // say to wait for the word while it is 0.
    let mut frame = [0u64; 38];
    frame[4] = 1 << 47;
    frame[5..5 + 16].fill(JUNK);
    frame[5 + 2] = 0;
    frame[5 + 8] = word as u64;
    frame[5 + 9] = 0;
    frame[5 + 12] = 0;
    frame[5 + 13] = FUTEX;
    frame[5 + 16] = target as u64;
    frame[5 + 17] = 0x202 | if matches!(way, 1 | 2) { TRAP_FLAG } else { 0 };
    frame[5 + 18] = 0x33 | 0x2b << 48;
    frame[37] = if way == 1 { 0 } else { u64::MAX };
    put(WORD, 0);
    (0..38).for_each(|index| put(FRAME + index * 8, frame[index]));
    put(THREAD, 1);
    put(KIND, 1);
    put(GATE, number_of("process_exit") as u64);
    put(ARGUMENTS, 0);
    put(STACK, (stack_start() + USUAL_BYTES / 2) as u64);
    put(INSTRUCTION, 0);
    put(IS_WHOLE, 0);
    // SAFETY: none; it is this program's own end.
    unsafe {
        asm!(
            // `wrgsbase rax; ret`, `wrfsbase rax; ret` and `mov ds, ecx; mov es, ecx; ret`, hidden.
            "lea r11, [rip + 2f]",
            "call r11",
            "lea r11, [rip + 3f]",
            "call r11",
            "lea r11, [rip + 4f]",
            "call r11",
            // The turn is the kernel's: the program ends, whatever the thread does.
            "mov dword ptr [r12], 0",
            "mov rsp, r13",
            "mov eax, r14d",
            "lea r11, [rip + 5f]",
            "jmp r11",
            ".byte 0x48, 0xb8",
            "2: .byte 0xf3, 0x48, 0x0f, 0xae, 0xd8, 0xc3, 0x90, 0x90",
            ".byte 0x48, 0xb8",
            "3: .byte 0xf3, 0x48, 0x0f, 0xae, 0xd0, 0xc3, 0x90, 0x90",
            ".byte 0x48, 0xb8",
            "4: .byte 0x8e, 0xd9, 0x8e, 0xc1, 0xc3, 0x90, 0x90, 0x90",
            ".byte 0x48, 0xb8",
            "5: .byte 0x0f, 0x05, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90",
            "ud2",
            in("rax") if way == 5 { page as u64 } else { JUNK },
            in("rcx") 0x2b,
            in("r12") page + TURN,
            in("r13") page + FRAME,
            in("r14") SIGRETURN,
            options(noreturn),
        );
    }
}

/// Runs what is hidden in the immediate of a `mov rax, imm64`; returns RAX.
macro_rules! hidden {
    ($bytes:literal) => {{
        let value: u64;
        // SAFETY: reads a register.
        unsafe {
            asm!(
                "lea r11, [rip + 2f]",
                "call r11",
                "jmp 3f",
                ".byte 0x48, 0xb8",
                concat!("2: .byte ", $bytes, ", 0xc3"),
                "3:",
                inout("rax") 0u64 => value,
                out("r11") _,
            );
        }
        value
    }};
}

/// Looks whether anything is left of another program.
fn look() -> i32 {
    let page = window() + RUNNER;
    // `rdgsbase rax`, `rdfsbase rax`, `mov eax, ds`, `mov eax, es`.
    assert_eq!(hidden!("0xf3,0x48,0x0f,0xae,0xc8,0x90,0x90"), page as u64, "the base of GS");
    assert_eq!(hidden!("0xf3,0x48,0x0f,0xae,0xc0,0x90,0x90"), 0, "the base of FS");
    assert_eq!(hidden!("0x8c,0xd8,0x90,0x90,0x90,0x90,0x90"), 0, "DS");
    assert_eq!(hidden!("0x8c,0xc0,0x90,0x90,0x90,0x90,0x90"), 0, "ES");
    let mut stack = [JUNK; 3];
    raw_call(SIGALTSTACK, [0, stack.as_mut_ptr().expose_provenance() as u64, 0, 0]);
    let wanted = [(page + PAGE_BYTES) as u64, 0, (RUNNER_BYTES - PAGE_BYTES) as u64];
    assert_eq!(stack, wanted, "the signal stack");
    let mut blocked = [JUNK];
    raw_call(SIGPROCMASK, [0, 0, blocked.as_mut_ptr().expose_provenance() as u64, 8]);
    assert_eq!(blocked[0] & (FAULTS | SIGALRM), SIGALRM, "signals blocked");
    let word = |offset: usize| {
        let place: *const u64 = core::ptr::with_exposed_provenance(page + offset);
        // SAFETY: the page may be read.
        unsafe { place.read_volatile() }
    };
    assert!(word(THREAD) > 1, "the thread's number");
    // A signal's frame is at the other end.
    let is_left =
        [WORD, FRAME + 32].into_iter().chain((PAGE_BYTES..2 * PAGE_BYTES).step_by(8)).find(|&at| word(at) != 0);
    assert_eq!(is_left, None, "the runner's pages");
    0
}
