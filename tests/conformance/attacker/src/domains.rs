//! Attacks of code in a hardware domain, which has the whole processor but its privileges.
//!
//! They only make sense where the MMU contains them: in the kernel's own domain some of them would end the machine.
//! Instructions that no image may have are hidden in immediates.

use core::arch::asm;

use sip::abi::limits::{MESSAGE_WORDS, STACK_SLOT_BYTES};
use sip::abi::stack::USUAL_BYTES;

use crate::Act;
use crate::messages::{GIVE, send};
use crate::raw::{entry_address, must, number_of, set_words, slot, stack_start, word};

pub(crate) const ACTS: &[(&str, Act)] = &[
    ("domain-instruction", |number| instruction(number)),
    ("domain-read", |number| access(number, false)),
    ("domain-write", |number| access(number, true)),
    ("domain-read-code", |page| read(near_own_code(page as usize))),
    ("domain-jump", |number| jump(number)),
    ("domain-number", |number| by_number(number)),
    ("domain-survives", |_| survives()),
    ("domain-race", |_| race()),
    ("domain-write-after-send", |bytes| write_after_send(bytes, send_block)),
    ("domain-streaming-stores", |bytes| stream_and_send(bytes)),
    ("domain-forged-exit", |bytes| write_after_send(bytes, send_by_forged_exit)),
    ("domain-host-call", |number| host_call(number)),
    ("domain-wait-of-host", |_| wait_of_host()),
    ("domain-deaf", |_| deaf()),
    ("domain-stolen-wakes", |_| steal_wakes()),
    ("domain-stub", |offset| into_stub(offset)),
    ("domain-no-way-out", |number| no_way_out(number)),
];

/// Whether the machine is a process, where a gate is a move to EAX and a jump into the window with the domain's runners.
fn is_hosted() -> bool {
    let gate: *const u8 = core::ptr::with_exposed_provenance(entry_address(0));
    // SAFETY: gates may be read.
    unsafe { gate.read() == 0xb8 }
}

/// The window, and offsets in it: the stub, and the exchange page of the only runner of a program with one thread.
pub(crate) fn window() -> usize {
    entry_address(0)
}
pub(crate) const STUB: usize = 0x1000;
const COMMANDS: usize = 0x3000;
pub(crate) const RUNNER: usize = 0x4000;
/// Offsets in the exchange page.
pub(crate) const TURN: usize = 0;
pub(crate) const KIND: usize = 24;
pub(crate) const GATE: usize = 32;
pub(crate) const ARGUMENTS: usize = 40;
pub(crate) const STACK: usize = 128 + 512 + 4 * 8;
pub(crate) const INSTRUCTION: usize = 128 + 512 + 16 * 8;
pub(crate) const IS_WHOLE: usize = INSTRUCTION + 16;

/// Runs the instruction hidden in the immediate of a `mov rax, imm64`, which is entered at its third byte and returns;
/// `$bytes` is seven bytes, with NOPs.
macro_rules! hidden {
    ($bytes:literal, $rax:expr) => {{
        let rax: u64 = $rax;
        // SAFETY: none; the processor must refuse the instruction, or it concerns this program alone.
        unsafe {
            asm!(
                "lea r11, [rip + 2f]",
                "call r11",
                "jmp 3f",
                ".byte 0x48, 0xb8",
                concat!("2: .byte ", $bytes, ", 0xc3"),
                "3:",
                inout("rax") rax => _,
                inout("rcx") 0xc000_0080u64 => _,
                inout("rdx") 0u64 => _,
                out("rdi") _,
                out("rsi") _,
                out("r8") _,
                out("r9") _,
                out("r10") _,
                out("r11") _,
            );
        }
    }};
}

/// Memory that an instruction may read its operand from.
static OPERAND: [u64; 8] = [0; 8];

/// A far pointer: any offset, and the kernel's code selector.
static FAR: [u16; 8] = [0x1000, 0, 0, 0, 8, 0, 0, 0];

/// An instruction that the processor must refuse, numbered as in the runner.
fn instruction(number: u64) -> i32 {
    let operand = OPERAND.as_ptr().expose_provenance() as u64;
    match number {
        0 => hidden!("0xfa,0x90,0x90,0x90,0x90,0x90,0x90", 0),
        1 => hidden!("0xfb,0x90,0x90,0x90,0x90,0x90,0x90", 0),
        2 => hidden!("0xf4,0x90,0x90,0x90,0x90,0x90,0x90", 0),
        3 => hidden!("0xec,0x90,0x90,0x90,0x90,0x90,0x90", 0),
        4 => hidden!("0xee,0x90,0x90,0x90,0x90,0x90,0x90", 0),
        5 => hidden!("0x6c,0x90,0x90,0x90,0x90,0x90,0x90", 0),
        6 => hidden!("0x0f,0x20,0xc0,0x90,0x90,0x90,0x90", 0),
        7 => hidden!("0x0f,0x22,0xd8,0x90,0x90,0x90,0x90", 0),
        8 => hidden!("0x0f,0x20,0xe0,0x90,0x90,0x90,0x90", 0),
        9 => hidden!("0x0f,0x22,0xe0,0x90,0x90,0x90,0x90", 0),
        10 => hidden!("0x0f,0x23,0xf8,0x90,0x90,0x90,0x90", 0x400),
        11 => hidden!("0x0f,0x21,0xf8,0x90,0x90,0x90,0x90", 0),
        12 => hidden!("0x0f,0x32,0x90,0x90,0x90,0x90,0x90", 0),
        13 => hidden!("0x0f,0x30,0x90,0x90,0x90,0x90,0x90", 0),
        14 => hidden!("0x0f,0x01,0xf8,0x90,0x90,0x90,0x90", 0),
        15 => hidden!("0x48,0x0f,0x07,0x90,0x90,0x90,0x90", 0),
        16 => hidden!("0x0f,0x34,0x90,0x90,0x90,0x90,0x90", 0),
        17 => hidden!("0x48,0x0f,0x35,0x90,0x90,0x90,0x90", 0),
        18 => hidden!("0xcd,0x80,0x90,0x90,0x90,0x90,0x90", 0),
        19 => hidden!("0xcd,0x0e,0x90,0x90,0x90,0x90,0x90", 0),
        20 => hidden!("0xcd,0x02,0x90,0x90,0x90,0x90,0x90", 0),
        21 => hidden!("0xcd,0xf0,0x90,0x90,0x90,0x90,0x90", 0),
        22 => hidden!("0xcd,0xf4,0x90,0x90,0x90,0x90,0x90", 0),
        23 => hidden!("0xcc,0x90,0x90,0x90,0x90,0x90,0x90", 0),
        24 => hidden!("0xf1,0x90,0x90,0x90,0x90,0x90,0x90", 0),
        25 => hidden!("0x0f,0x01,0x10,0x90,0x90,0x90,0x90", operand),
        26 => hidden!("0x0f,0x01,0x18,0x90,0x90,0x90,0x90", operand),
        27 => hidden!("0x0f,0x00,0xd8,0x90,0x90,0x90,0x90", 40),
        28 => hidden!("0x0f,0x00,0xd0,0x90,0x90,0x90,0x90", 40),
        29 => hidden!("0x0f,0x01,0x38,0x90,0x90,0x90,0x90", operand),
        30 => hidden!("0x0f,0x09,0x90,0x90,0x90,0x90,0x90", 0),
        31 => hidden!("0x0f,0x08,0x90,0x90,0x90,0x90,0x90", 0),
        32 => hidden!("0x0f,0x06,0x90,0x90,0x90,0x90,0x90", 0),
        33 => hidden!("0x0f,0x01,0xf0,0x90,0x90,0x90,0x90", 0),
        34 => hidden!("0x0f,0x33,0x90,0x90,0x90,0x90,0x90", 0),
        35 => hidden!("0x48,0xff,0x18,0x90,0x90,0x90,0x90", FAR.as_ptr().expose_provenance() as u64),
        36 => hidden!("0x6a,0x08,0x50,0x48,0xcb,0x90,0x90", 0x1000),
        37 => hidden!("0x8e,0xd0,0x90,0x90,0x90,0x90,0x90", 16),
        38 => hidden!("0x8e,0xd8,0x90,0x90,0x90,0x90,0x90", 16),
        39 => hidden!("0x8e,0xe8,0x90,0x90,0x90,0x90,0x90", 40),
        40 => hidden!("0xf3,0x48,0x0f,0xae,0xd0,0x90,0x90", 0),
        41 => hidden!("0xf3,0x48,0x0f,0xae,0xd8,0x90,0x90", 0),
        42 => hidden!("0x0f,0x01,0xd1,0x90,0x90,0x90,0x90", 0),
        43 => hidden!("0x6a,0x10,0x6a,0x00,0x9c,0x48,0xcf", 0),
        // Leaves the trap flag set: the next instruction traps.
        44 => hidden!("0x68,0x00,0x01,0x00,0x00,0x9d,0x90", 0),
        _ => panic!("there is no instruction {number}"),
    }
    0
}

/// Addresses that are not the program's: the kernel's, the machine's, others', and what is only to be read.
fn address(number: u64) -> usize {
    let own_page = must("memory_allocate", &[1]) as usize;
    match number {
        // The kernel's image: its constants, its code, its data.
        0 => 0x20_0000,
        1 => 0x28_0000,
        2 => 0x34_0000,
        // Its heap, and the window through which it writes images.
        3 => 0x2000_0000_0000,
        4 => 0x3000_0000_0000,
        // Registers of the interrupt controllers.
        5 => 0xfee0_0000,
        6 => 0xfec0_0000,
        // The first memory of the machine, and of processors that start.
        7 => 0x0,
        8 => 0x8000,
        // Stacks: the first, and those beside this one.
        9 => 0x1000_0000_0000 + STACK_SLOT_BYTES - 64,
        10 => slot() - 64,
        11 => slot() + 2 * STACK_SLOT_BYTES - 64,
        // The guard of this one.
        12 => stack_start() + 64,
        // Memory before and after a page of this program.
        13 => own_page - (1 << 20),
        14 => own_page + (16 << 20),
        // Not canonical, and the other half.
        15 => 0x8000_0000_0000,
        16 => 0xffff_8000_0000_0000,
        17 => usize::MAX - 7,
        _ => panic!("there is no address {number}"),
    }
}

fn access(number: u64, writes: bool) -> i32 {
    let address = address(number);
    if !writes {
        return read(address);
    }
    // SAFETY: none; the machine must refuse it.
    unsafe { asm!("mov qword ptr [{}], 7", in(reg) address, options(nostack, preserves_flags)) };
    0
}

fn read(address: usize) -> i32 {
    // SAFETY: none; the machine must refuse it.
    unsafe { asm!("mov {0}, [{0}]", inout(reg) address => _, options(nostack, preserves_flags, readonly)) };
    0
}

/// Returns the address of a page of code, of which the number's lower bits are known and the others are those of this code.
fn near_own_code(page: usize) -> usize {
    let own: fn(u64) -> usize = address;
    own as usize >> CODE_BITS << CODE_BITS | page << 12
}
const CODE_BITS: u32 = 42;

fn jump(number: u64) -> i32 {
    let target = address(number);
    // SAFETY: none; the machine must refuse it.
    unsafe { asm!("call {}", in(reg) target, clobber_abi("C")) };
    0
}

/// Enters the kernel by a jump behind the start of a gate, which would say its own number.
fn enter_by_gate(number: u64, arguments: [u64; 6]) -> (u64, u64) {
    let (status, value): (u64, u64);
    let [first, second, third, fourth, fifth, sixth] = arguments;
    // SAFETY: the kernel's answer concerns this program alone.
    unsafe {
        asm!(
            "call r11",
            inout("rax") number => status,
            inout("rdx") third => value,
            in("rdi") first,
            in("rsi") second,
            in("rcx") fourth,
            in("r8") fifth,
            in("r9") sixth,
            in("r11") entry_address(0) + 5,
            clobber_abi("C"),
        );
    }
    (status, value)
}

/// Enters the kernel by its own SYSCALL, with any stack pointer; returns status and value.
fn enter(number: u64, stack: Option<u64>, arguments: [u64; 6]) -> (u64, u64) {
    if is_hosted() {
        return enter_by_gate(number, arguments);
    }
    let (status, value): (u64, u64);
    let [first, second, third, fourth, fifth, sixth] = arguments;
    // SAFETY: the kernel's answer concerns this program alone. The stack pointer is put back before it is used.
    unsafe {
        asm!(
            "mov r12, rsp",
            "lea r15, [rip + 4f]",
            "lea r11, [rip + 2f]",
            "test r13, r13",
            "cmovnz rsp, r14",
            "jmp r11",
            // `syscall; jmp r15`, hidden.
            ".byte 0x48, 0xb8",
            "2: .byte 0x0f, 0x05, 0x41, 0xff, 0xe7, 0x90, 0x90, 0x90",
            "4: mov rsp, r12",
            inout("rax") number => status,
            inout("rdx") third => value,
            inout("rdi") first => _,
            inout("rsi") second => _,
            inout("r8") fifth => _,
            inout("r9") sixth => _,
            inout("r10") fourth => _,
            out("rcx") _,
            out("r11") _,
            out("r12") _,
            inout("r13") u64::from(stack.is_some()) => _,
            inout("r14") stack.unwrap_or(0) => _,
            out("r15") _,
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
            out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
            out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
        );
    }
    (status, value)
}

/// Calls a number that no function has.
fn by_number(number: u64) -> i32 {
    let _ = enter(if number == 0 { u64::MAX } else { number }, None, [u64::MAX; 6]);
    0
}

/// The same where a gate is code of the domain, which needs its stack.
fn survives_hosted() -> i32 {
    unmask_exceptions();
    must_work(None);
    for flag in [1u64 << 18, 1 << 14, 1 << 10] {
        let status: u64;
        // SAFETY: the flags are as a function leaves them when the gate returns; the call concerns this program alone.
        unsafe {
            asm!(
                "lea r15, [rip + 4f]",
                "lea r14, [rip + 2f]",
                "push r13",
                "jmp r14",
                // `popfq; call r11; jmp r15`, hidden.
                ".byte 0x48, 0xb8",
                "2: .byte 0x9d, 0x41, 0xff, 0xd3, 0x41, 0xff, 0xe7, 0x90",
                "4: lea r15, [rip + 6f]",
                "lea r14, [rip + 5f]",
                "push 0x202",
                "jmp r14",
                // `popfq; jmp r15`.
                ".byte 0x48, 0xb8",
                "5: .byte 0x9d, 0x41, 0xff, 0xe7, 0x90, 0x90, 0x90, 0x90",
                "6:",
                inout("rax") number_of("time_monotonic") as u64 => status,
                in("r11") entry_address(0) + 5,
                in("r13") flag | 0x202,
                out("r14") _,
                out("r15") _,
                clobber_abi("C"),
            );
        }
        assert_eq!(status, 0, "with the flags {flag:x}");
    }
    0
}

/// Unmasks all floating-point exceptions, and leaves one pending.
fn unmask_exceptions() {
    const UNMASKED: [u64; 1] = [0];
    let control = UNMASKED.as_ptr().expose_provenance() as u64;
    hidden!("0x0f,0xae,0x10,0x90,0x90,0x90,0x90", control);
    hidden!("0xd9,0x28,0xd9,0xe8,0x90,0x90,0x90", control);
    hidden!("0xd9,0xee,0xde,0xf9,0x90,0x90,0x90", 0);
}

/// States of the processor in which a call works as in any other.
fn survives() -> i32 {
    must_work(None);
    if is_hosted() {
        return survives_hosted();
    }
    for stack in [0, 1, 0x8000_0000_0000, u64::MAX, 0x2000_0000_0000, 0x1000_0000_0000, 0x20_0000] {
        must_work(Some(stack));
    }
    // Null selectors: the bases of FS and GS are 0 then.
    hidden!("0x8e,0xd8,0x8e,0xc0,0x90,0x90,0x90", 0);
    hidden!("0x8e,0xe0,0x8e,0xe8,0x90,0x90,0x90", 0);
    must_work(None);
    unmask_exceptions();
    must_work(None);
    for _ in 0..200 {
        // Alignment check, nested task and direction flag.
        for flag in [1u64 << 18, 1 << 14, 1 << 10] {
            with_flag(flag);
        }
    }
    nothing_is_left();
    0
}

fn must_work(stack: Option<u64>) {
    let (status, value) = enter(number_of("time_monotonic") as u64, stack, [u64::MAX; 6]);
    assert!(status == 0 && value > 0, "with the stack {stack:x?} the kernel answered {status}, {value}");
}

fn with_flag(flag: u64) {
    let status: u64;
    // SAFETY: the flags are put back; the call concerns this program alone.
    unsafe {
        asm!(
            "lea r15, [rip + 4f]",
            "lea r11, [rip + 2f]",
            "push r13",
            "jmp r11",
            // `popfq; syscall; jmp r15`, hidden.
            ".byte 0x48, 0xb8",
            "2: .byte 0x9d, 0x0f, 0x05, 0x41, 0xff, 0xe7, 0x90, 0x90",
            "4: lea r15, [rip + 6f]",
            "lea r11, [rip + 5f]",
            "push 0x202",
            "jmp r11",
            // `popfq; jmp r15`.
            ".byte 0x48, 0xb8",
            "5: .byte 0x9d, 0x41, 0xff, 0xe7, 0x90, 0x90, 0x90, 0x90",
            "6:",
            inout("rax") number_of("time_monotonic") as u64 => status,
            inout("r13") flag | 0x202 => _,
            out("r15") _,
            clobber_abi("C"),
        );
    }
    assert_eq!(status, 0, "with the flags {flag:x}");
}

/// After a call no register has anything of the kernel's or of others.
fn nothing_is_left() {
    let mut left = [1u64; 9];
    // SAFETY: the call concerns this program alone.
    unsafe {
        asm!(
            "movq xmm0, r13",
            "movq xmm7, r13",
            "movq xmm15, r13",
            "lea r15, [rip + 4f]",
            "lea r11, [rip + 2f]",
            "jmp r11",
            ".byte 0x48, 0xb8",
            "2: .byte 0x0f, 0x05, 0x41, 0xff, 0xe7, 0x90, 0x90, 0x90",
            "4: mov [r12], rsi",
            "mov [r12 + 8], rdi",
            "mov [r12 + 16], r8",
            "mov [r12 + 24], r9",
            "mov [r12 + 32], r10",
            "movq [r12 + 40], xmm0",
            "movq [r12 + 48], xmm7",
            "movq [r12 + 56], xmm15",
            "mov qword ptr [r12 + 64], 0",
            inout("rax") number_of("time_monotonic") as u64 => _,
            in("r12") left.as_mut_ptr(),
            in("r13") u64::MAX,
            out("r15") _,
            clobber_abi("C"),
        );
    }
    assert_eq!(left, [0; 9], "registers after a call");
}

/// Writes to the message buffer of a thread that calls the kernel all the time.
fn race() -> i32 {
    let end = slot() + STACK_SLOT_BYTES;
    let block = end - size_of::<sip::abi::ThreadBlock>();
    let writer = sip::thread::spawn(move || {
        let buffer: *mut u64 = core::ptr::with_exposed_provenance_mut(block);
        let mut junk = 0x9e37_79b9_7f4a_7c15u64;
        for _ in 0..2_000_000 {
            junk ^= junk << 13;
            junk ^= junk >> 7;
            junk ^= junk << 17;
            // SAFETY: none; both threads write to it.
            unsafe { buffer.add(junk as usize % MESSAGE_WORDS).write_volatile(junk) };
        }
    });
    let writer = writer.expect("a thread");
    for _ in 0..5_000 {
        for name in ["process_create", "stack_bounds", "memory_usage", "principal_self"] {
            let _ = crate::raw::abi(name, &[8]);
        }
    }
    writer.join().expect("it ends");
    0
}

/// Sends a block of this many bytes, and writes to it for ever.
fn write_after_send(bytes: u64, send: fn(u64, u64, u64)) -> i32 {
    let client = must("endpoint_take", &[0]);
    let block = must("heap_allocate", &[bytes, sip::abi::type_tag("byte")]);
    let address: *mut u8 = core::ptr::with_exposed_provenance_mut(word(0) as usize);
    let fill = |with: u8| {
        for offset in 0..bytes as usize {
            // SAFETY: none once the block is sent.
            unsafe { address.add(offset).write_volatile(with) };
        }
    };
    fill(1);
    send(client, block, bytes);
    loop {
        (2..=255).for_each(fill);
    }
}

/// Sends a block of this many bytes whose last words are nontemporal stores, which may still be on their way to memory.
fn stream_and_send(bytes: u64) -> i32 {
    let client = must("endpoint_take", &[0]);
    let block = must("heap_allocate", &[bytes, sip::abi::type_tag("byte")]);
    let address = word(0);
    for value in 1..=STREAMED {
        for offset in (0..bytes).step_by(8) {
            let word = u64::from_ne_bytes([value; 8]);
            // SAFETY: the block is this program's, of whole words.
            unsafe {
                asm!("movnti [{}], {}", in(reg) address + offset, in(reg) word, options(nostack, preserves_flags))
            };
        }
    }
    send_block(client, block, bytes);
    0
}
/// The last value of its bytes.
const STREAMED: u8 = 9;

fn send_block(client: u64, block: u64, bytes: u64) {
    send(client, GIVE, (0, 1, 0), &[block, 0, bytes]).expect("a good message");
}

/// Has the kernel believe that this thread called it and waits, and goes on.
fn send_by_forged_exit(client: u64, block: u64, bytes: u64) {
    set_words(&[block, 0, bytes]);
    let page = window() + RUNNER;
    let put = |offset: usize, value: u64| {
        let place: *mut u64 = core::ptr::with_exposed_provenance_mut(page + offset);
        // SAFETY: the page is this program's to write.
        unsafe { place.write_volatile(value) };
    };
    put(KIND, 1);
    put(GATE, number_of("channel_send") as u64);
    put(ARGUMENTS, client);
    put(ARGUMENTS + 8, sip::abi::message_word(GIVE, 0, 1, 0));
    put(STACK, (stack_start() + USUAL_BYTES / 2) as u64);
    put(INSTRUCTION, 0);
    put(IS_WHOLE, 0);
    let turn: *mut u32 = core::ptr::with_exposed_provenance_mut(page + TURN);
    // SAFETY: as above.
    unsafe { turn.write_volatile(0) };
}

/// Makes a system call of the host, hidden; returns what comes back.
pub(crate) fn raw_call(number: u64, arguments: [u64; 4]) -> u64 {
    let answer: u64;
    let [first, second, third, fourth] = arguments;
    // SAFETY: none; the host must refuse it, or it concerns this program alone.
    unsafe {
        asm!(
            "lea r15, [rip + 4f]",
            "lea r11, [rip + 2f]",
            "jmp r11",
            // `syscall; jmp r15`, hidden.
            ".byte 0x48, 0xb8",
            "2: .byte 0x0f, 0x05, 0x41, 0xff, 0xe7, 0x90, 0x90, 0x90",
            "4:",
            inout("rax") number => answer,
            in("rdi") first,
            in("rsi") second,
            in("rdx") third,
            in("r10") fourth,
            out("r15") _,
            out("rcx") _,
            out("r11") _,
        );
    }
    answer
}

fn host_call(number: u64) -> i32 {
    raw_call(number, [u64::MAX; 4]);
    0
}

pub(crate) const FUTEX: u64 = 202;
pub(crate) const SIGRETURN: u64 = 15;

/// Waits by the host for what never comes.
fn wait_of_host() -> i32 {
    let word = [7u32; 1];
    loop {
        raw_call(FUTEX, [word.as_ptr().expose_provenance() as u64, 0, 7, 0]);
    }
}

/// Waits for the word that wakes the mapper, on one thread, while another needs the mapper all the time.
fn steal_wakes() -> i32 {
    let commands = window() + COMMANDS;
    let waiter = move || {
        let word: *const u32 = core::ptr::with_exposed_provenance(commands);
        for _ in 0..300 {
            // SAFETY: the page may be read.
            let now = unsafe { word.read_volatile() };
            // A timeout of a millisecond, in case that nothing comes any more.
            let limit = [0u64, 1_000_000];
            raw_call(FUTEX, [commands as u64, 0, now.into(), limit.as_ptr().expose_provenance() as u64]);
        }
    };
    let waiters = [(); 3].map(|()| sip::thread::spawn(waiter).expect("a thread"));
    for _ in 0..1_000 {
        let page = must("memory_allocate", &[1]);
        must("memory_free", &[page]);
    }
    waiters.into_iter().for_each(|waiter| waiter.join().expect("it ends"));
    0
}

/// Blocks all signals, by a forged signal frame, and calls nobody any more.
fn deaf() -> i32 {
    // `ucontext_t`: the registers from word 5 on, in Linux's order; RSP, RIP, the flags and the segments are numbers 15
    // to 18; the signal mask is word 37.
    let mut frame = [0u64; 128];
    frame[5 + 15] = (stack_start() + USUAL_BYTES / 2) as u64;
    frame[5 + 17] = 0x202;
    frame[5 + 18] = 0x33 | 0x2b << 48;
    frame[37] = u64::MAX;
    // SAFETY: the thread never returns.
    unsafe {
        asm!(
            "lea rax, [rip + 3f]",
            "mov [r12 + 21 * 8], rax",
            "lea r11, [rip + 2f]",
            "mov rsp, r12",
            "mov eax, r13d",
            "jmp r11",
            ".byte 0x48, 0xb8",
            "2: .byte 0x0f, 0x05, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90",
            "3: jmp 3b",
            in("r12") frame.as_mut_ptr(),
            in("r13") SIGRETURN,
            options(noreturn),
        );
    }
}

/// Jumps into the stub, with the address of its own memory in most registers.
fn into_stub(offset: u64) -> i32 {
    let target = window() + STUB + offset as usize;
    let own = must("memory_allocate", &[1]);
    // SAFETY: none; it is this program's own end.
    unsafe {
        asm!(
            "mov rbx, rdi", "mov rbp, rdi", "mov r12, rdi", "mov r13, rdi", "mov r14, rdi", "mov r15, rdi",
            "jmp r11",
            in("r11") target, in("rdi") own, in("rsi") own, in("rdx") own, in("rcx") 64, in("r8") own, in("r9") own,
            in("r10") own, in("rax") own,
            options(noreturn),
        );
    }
}

/// Destroys what its own calls need, and calls.
fn no_way_out(number: u64) -> i32 {
    match number {
        // GS leads nowhere.
        0 => hidden!("0x8e,0xe0,0x8e,0xe8,0x90,0x90,0x90", 0),
        // GS leads to memory of its own, which is no runner's.
        1 => hidden!("0xf3,0x48,0x0f,0xae,0xd8,0x90,0x90", must("memory_allocate", &[1])),
        // The exchange page is full of ones, from the word after the turn on.
        2 => {
            for word in 1..512 {
                let place: *mut u64 = core::ptr::with_exposed_provenance_mut(window() + RUNNER + word * 8);
                // SAFETY: the page is this program's to write.
                unsafe { place.write_volatile(u64::MAX) };
            }
        }
        // There is no stack.
        _ => {
            // SAFETY: none; the thread never returns.
            unsafe {
                asm!("mov rsp, 8", "call r11", "ud2", in("r11") entry_address(0), options(noreturn));
            }
        }
    }
    let _ = enter_by_gate(number_of("time_monotonic") as u64, [0; 6]);
    0
}
