//! The only code in a domain that is not a program's: it enters programs, leaves them, and has the mapper change what
//! is mapped.
//!
//! Everything that the domain can write, it may write at any time. So the *mapper*, whose thread has no filter and has
//! the files of all memory open, keeps everything in registers: it has no stack, reads nothing but the page of commands
//! and the constants, which the domain cannot write, and does for each command one system call. The *template* is a mapper
//! without a domain, of which the others are forks. A *runner* enters
//! programs. It has no files and a filter that leaves it four calls: futex(2), to wait and to wake, sched_yield(2),
//! sigprocmask(2) and sigreturn(2); no signal comes before it has the filter. What
//! it writes into its exchange page is a claim, as is the number of the gate in a call: code in the domain can write
//! there too, or jump to any instruction here, and does itself no more than it could do without.
//!
//! A call ([`gate`]) stores what a function keeps and the arguments. An interrupt is a signal, after which the whole
//! context is stored, unless it hit the stub: then the call that is being made is as good. Any other signal is a fault.

use std::arch::global_asm;
use std::mem::offset_of;

use hal_api::{DomainContext, MAX_GATES};

use super::filter;
use super::window::{self, CONTEXT};
use crate::arena::HOST_PAGE_BYTES;
use crate::signal;

/// Signal that makes a runner come out.
pub(super) const INTERRUPT_SIGNAL: libc::c_int = signal::INTERRUPT;
/// Signals that are faults of the domain.
const FAULTS: [libc::c_int; 6] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGSYS];

/// Turns of a loop before a runner asks which processor it is on, if it was another one than the kernel's.
const FIRST_SPINS: u32 = 32;
/// Bits of what Linux has RDTSCP tell that are a processor's number.
const PROCESSOR: u32 = 0xfff;
/// Turns of a loop before a sleep: some microseconds, longer than most calls take.
const SPINS: u32 = 400;
/// Times that a runner gives way to others before a sleep, which costs a processor of the host its idling and waking.
const YIELDS: u32 = 8;
/// The same for a mapper, which has the next command soon or not for long.
const MAPPER_YIELDS: u32 = 100;
/// Kinds of commands, the lower half of a command's last word. Of those below `MAY_FAIL` none may: the process ends.
pub(super) const MUST_SUCCEED: u64 = 0;
/// Makes a runner.
pub(super) const MAKES_RUNNER: u64 = 1;
pub(super) const MAY_FAIL: u64 = 2;
/// Makes a process for a domain; the upper half is the number of the template's.
pub(super) const MAKES_DOMAIN: u64 = 3;

const SA_RESTORER: u64 = 0x0400_0000;
const ARCH_SET_GS: u32 = 0x1001;
const ARCH_SET_FS: u32 = 0x1002;

/// Offsets in `ucontext_t` of registers, which Linux has in another order, and of the vector state.
const REGISTERS: usize = 40;
const VECTORS: usize = REGISTERS + 23 * 8;
/// Offset in `ucontext_t` of the mask of signals.
const SIGNAL_MASK: usize = REGISTERS + 32 * 8;
const UC_SIGCONTEXT_SS: u64 = 2;
const UC_STRICT_RESTORE_SS: u64 = 4;
/// Interrupts enabled, and a bit that is always set.
const FLAGS_OF_USERS: u64 = 0x202;
const CODE_SELECTOR: u64 = 0x33;
const DATA_SELECTOR: u64 = 0x2b;
const fn register(number: libc::c_int) -> usize {
    REGISTERS + number as usize * 8
}

global_asm!(
    ".pushsection .text.domain_stub, \"ax\"",
    ".p2align 12",
    ".globl domain_stub, domain_stub_gate, domain_stub_wait, domain_stub_asleep, domain_stub_signal, domain_stub_end",
    // The mapper starts here. R12D is the number of commands done, RBX the page of commands.
    "domain_stub:",
    "    xor r12d, r12d",
    "    lea rbx, [rip + domain_stub + {commands}]",
    "1:  mov r15d, {mapper_yields}",
    "2:  cmp [rbx], r12d",
    "    jne 3f",
    "    cmp dword ptr [rbx + {mapper_rests}], 0",
    "    jne 10f",
    "    mov eax, {sched_yield}",
    "    syscall",
    "    dec r15d",
    "    jnz 2b",
    "10: mov eax, {futex}",
    "    mov rdi, rbx",
    "    xor esi, esi",
    "    mov edx, r12d",
    "    xor r10d, r10d",
    "    syscall",
    "    jmp 1b",
    "3:  mov r13d, r12d",
    "    and r13d, {ring} - 1",
    "    shl r13d, 6",
    "    mov rax, [rbx + r13 + {ring_offset}]",
    "    mov rdi, [rbx + r13 + {ring_offset} + 8]",
    "    mov rsi, [rbx + r13 + {ring_offset} + 16]",
    "    mov rdx, [rbx + r13 + {ring_offset} + 24]",
    "    mov r10, [rbx + r13 + {ring_offset} + 32]",
    "    mov r8, [rbx + r13 + {ring_offset} + 40]",
    "    mov r9, [rbx + r13 + {ring_offset} + 48]",
    "    mov r14, [rbx + r13 + {ring_offset} + 56]",
    "    syscall",
    "    cmp r14d, {makes_runner}",
    "    jne 7f",
    "    test rax, rax",
    "    jz 5f",
    "    jmp 4f",
    "7:  cmp r14d, {makes_domain}",
    "    jne 4f",
    "    test rax, rax",
    "    jz 6f",
    "4:  inc r12d",
    "    cmp rax, -4096",
    "    jbe 1b",
    "    cmp r14d, {may_fail}",
    "    jae 1b",
    "    jmp 9f",
    // A new process, R9 the offset of its part of the file of controls: ends with the template, whose number is the upper
    // half of R14, and starts with its own commands.
    "6:  mov eax, {prctl}",
    "    mov edi, {set_death_signal}",
    "    mov esi, {kill}",
    "    syscall",
    "    test rax, rax",
    "    jnz 9f",
    "    mov eax, {getppid}",
    "    syscall",
    "    shr r14, 32",
    "    cmp eax, r14d",
    "    jne 9f",
    "    mov eax, {mmap}",
    "    mov rdi, rbx",
    "    mov esi, {page}",
    "    mov edx, {readable}",
    "    mov r10d, {shared_fixed}",
    "    mov r8d, {controls_file}",
    "    syscall",
    "    cmp rax, rbx",
    "    jne 9f",
    "    xor r12d, r12d",
    "    jmp 1b",
    // A new runner: RSP is its exchange page, R9 the `stack_t` of its signal stack.
    "5:  mov rbx, rsp",
    "    mov r15, r9",
    "    mov eax, {close_range}",
    "    xor edi, edi",
    "    mov esi, -1",
    "    xor edx, edx",
    "    syscall",
    "    test rax, rax",
    "    jnz 9f",
    "    mov eax, {arch_prctl}",
    "    mov edi, {set_gs}",
    "    mov rsi, rbx",
    "    syscall",
    "    test rax, rax",
    "    jnz 9f",
    "    mov eax, {arch_prctl}",
    "    mov edi, {set_fs}",
    "    xor esi, esi",
    "    syscall",
    "    test rax, rax",
    "    jnz 9f",
    "    mov eax, {sigaltstack}",
    "    mov rdi, r15",
    "    xor esi, esi",
    "    syscall",
    "    test rax, rax",
    "    jnz 9f",
    "    mov eax, {seccomp}",
    "    mov edi, 1",
    "    xor esi, esi",
    "    lea rdx, [rip + domain_stub + {filter}]",
    "    syscall",
    "    test rax, rax",
    "    jnz 9f",
    // Signals come from here on. Their frames are in memory that the domain can write, and so may their return be: no
    // thread without a filter may take one.
    "    mov eax, {rt_sigprocmask}",
    "    mov edi, {set_mask}",
    "    lea rsi, [rip + domain_stub + {mask}]",
    "    xor edx, edx",
    "    mov r10d, 8",
    "    syscall",
    "    test rax, rax",
    "    jz 12f",
    "9:  mov eax, {exit_group}",
    "    mov edi, 1",
    "    syscall",
    "    ud2",
    // A call: EAX the number of the gate, the return address on the stack.
    "domain_stub_gate:",
    "    mov gs:[{arguments}], rdi",
    "    mov gs:[{arguments} + 8], rsi",
    "    mov gs:[{arguments} + 16], rdx",
    "    mov gs:[{arguments} + 24], rcx",
    "    mov gs:[{arguments} + 32], r8",
    "    mov gs:[{arguments} + 40], r9",
    "    mov gs:[{gate}], rax",
    "    mov gs:[{registers} + 3 * 8], rbx",
    "    mov gs:[{registers} + 5 * 8], rbp",
    "    mov gs:[{registers} + 12 * 8], r12",
    "    mov gs:[{registers} + 13 * 8], r13",
    "    mov gs:[{registers} + 14 * 8], r14",
    "    mov gs:[{registers} + 15 * 8], r15",
    "    mov rax, [rsp]",
    "    mov gs:[{instruction}], rax",
    "    lea rax, [rsp + 8]",
    "    mov gs:[{registers} + 4 * 8], rax",
    "    mov qword ptr gs:[{is_whole}], 0",
    "    mov qword ptr gs:[{kind}], {call}",
    // The turn is the kernel's.
    "11: xor eax, eax",
    "    xchg gs:[{turn}], eax",
    "    cmp dword ptr gs:[{kernel_sleeps}], 0",
    "    je 12f",
    "    mov eax, {futex}",
    "    mov rdi, gs:[{self_address}]",
    "    mov esi, 1",
    "    mov edx, 1",
    "    syscall",
    // Wait for the domain's turn.
    "domain_stub_wait:",
    "12: mov eax, gs:[{kernel_processor}]",
    "    cmp gs:[{runner_processor}], eax",
    "    je 27f",
    "    mov ecx, {first_spins}",
    "13: cmp dword ptr gs:[{turn}], {of_domain}",
    "    je 16f",
    "    cmp dword ptr gs:[{rest}], 0",
    "    jne 21f",
    "    pause",
    "    dec ecx",
    "    jnz 13b",
    // On the processor that the kernel waits on, waiting awake is in its way.
    "27: rdtscp",
    "    and ecx, {processor}",
    "    mov gs:[{runner_processor}], ecx",
    "    cmp gs:[{kernel_processor}], ecx",
    "    je 21f",
    "    mov ecx, {spins}",
    "24: cmp dword ptr gs:[{turn}], {of_domain}",
    "    je 16f",
    "    cmp dword ptr gs:[{rest}], 0",
    "    jne 21f",
    "    pause",
    "    dec ecx",
    "    jnz 24b",
    "21: mov r12d, {yields}",
    "23: cmp dword ptr gs:[{rest}], {at_once}",
    "    je 22f",
    "    mov eax, {sched_yield}",
    "    syscall",
    "    cmp dword ptr gs:[{turn}], {of_domain}",
    "    je 25f",
    "    dec r12d",
    "    jnz 23b",
    "22: mov eax, 1",
    "    xchg gs:[{runner_sleeps}], eax",
    "14: cmp dword ptr gs:[{turn}], {of_domain}",
    "    je 15f",
    "    mov eax, {futex}",
    "    mov rdi, gs:[{self_address}]",
    "    xor esi, esi",
    "    xor edx, edx",
    "    xor r10d, r10d",
    "    syscall",
    "domain_stub_asleep:",
    "    cmp dword ptr [rip + domain_stub + {reset}], 0",
    "    je 14b",
    // The thread has run other code: whatever a program can have left in it is replaced, and nothing that it has is used.
    // With another stack pointer the host might take it to be on its signal stack, which it could not change then.
    "    xor esp, esp",
    "    lea rdi, [rip + domain_stub + {signal_stacks}]",
    "    xor esi, esi",
    "    mov eax, {sigaltstack}",
    "    syscall",
    "    test rax, rax",
    "    jnz 28f",
    "    mov ds, eax",
    "    mov es, eax",
    "    mov fs, eax",
    "    mov gs, eax",
    "    wrfsbase rax",
    "    lea rax, [rip + domain_stub + {first_runner}]",
    "    wrgsbase rax",
    // All other registers, the mask of signals and the vector state.
    "    lea rsp, [rip + domain_stub + {clean}]",
    "    mov eax, {rt_sigreturn}",
    "    syscall",
    "    ud2",
    "domain_stub_reset_end:",
    "15: mov dword ptr gs:[{runner_sleeps}], 0",
    "25: rdtscp",
    "    and ecx, {processor}",
    "    mov gs:[{runner_processor}], ecx",
    "16: cmp qword ptr gs:[{is_whole}], 0",
    "    jne 17f",
    // After a call: what a function keeps, and its result.
    "    cld",
    "    fninit",
    "    ldmxcsr [rip + 20f]",
    "    mov rax, gs:[{registers}]",
    "    mov rdx, gs:[{registers} + 2 * 8]",
    "    mov rbx, gs:[{registers} + 3 * 8]",
    "    mov rbp, gs:[{registers} + 5 * 8]",
    "    mov r12, gs:[{registers} + 12 * 8]",
    "    mov r13, gs:[{registers} + 13 * 8]",
    "    mov r14, gs:[{registers} + 14 * 8]",
    "    mov r15, gs:[{registers} + 15 * 8]",
    "    mov rsp, gs:[{registers} + 4 * 8]",
    "    jmp qword ptr gs:[{instruction}]",
    // After an interrupt, and at the start: all of it.
    "17: fxrstor64 gs:[{vectors}]",
    "    mov rsp, gs:[{self_address}]",
    "    add rsp, {scratch}",
    "    push qword ptr gs:[{flags}]",
    "    popfq",
    "    mov rax, gs:[{registers}]",
    "    mov rcx, gs:[{registers} + 1 * 8]",
    "    mov rdx, gs:[{registers} + 2 * 8]",
    "    mov rbx, gs:[{registers} + 3 * 8]",
    "    mov rbp, gs:[{registers} + 5 * 8]",
    "    mov rsi, gs:[{registers} + 6 * 8]",
    "    mov rdi, gs:[{registers} + 7 * 8]",
    "    mov r8, gs:[{registers} + 8 * 8]",
    "    mov r9, gs:[{registers} + 9 * 8]",
    "    mov r10, gs:[{registers} + 10 * 8]",
    "    mov r11, gs:[{registers} + 11 * 8]",
    "    mov r12, gs:[{registers} + 12 * 8]",
    "    mov r13, gs:[{registers} + 13 * 8]",
    "    mov r14, gs:[{registers} + 14 * 8]",
    "    mov r15, gs:[{registers} + 15 * 8]",
    "    mov rsp, gs:[{registers} + 4 * 8]",
    "    jmp qword ptr gs:[{instruction}]",
    // A signal: EDI its number, RSI its `siginfo_t`, RDX the `ucontext_t`, on the signal stack.
    "domain_stub_signal:",
    "    cld",
    "    mov r8d, edi",
    "    mov r9, rsi",
    "    mov r10d, {of_signal}",
    "    mov rcx, [rdx + {rip_place}]",
    "    cmp edi, {interrupt_signal}",
    "    je 26f",
    // Any other while the thread resets itself, as by a trap flag that was left: this would resume with what was left.
    "    lea rax, [rip + domain_stub_asleep]",
    "    cmp rcx, rax",
    "    jb 18f",
    "    lea rax, [rip + domain_stub_reset_end]",
    "    cmp rcx, rax",
    "    jae 18f",
    // The filter ends the process.
    "28: mov eax, {ending}",
    "    syscall",
    "    ud2",
    "26: lea rax, [rip + domain_stub]",
    "    sub rcx, rax",
    "    cmp rcx, {page}",
    "    jae 19f",
    "    lea rsp, [rdx]",
    "    mov eax, {rt_sigreturn}",
    "    syscall",
    "    ud2",
    "19: mov r10d, {interrupt}",
    "18: mov gs:[{kind}], r10",
    "    mov rsi, [rdx + {vectors_place}]",
    "    mov rdi, gs:[{self_address}]",
    "    add rdi, {vectors}",
    "    mov ecx, 64",
    "    rep movsq",
    "    mov gs:[{signal_number}], r8",
    "    mov rax, [r9 + 16]",
    "    mov gs:[{address}], rax",
    "    mov eax, [r9 + 8]",
    "    mov gs:[{code}], rax",
    "    mov rax, [rdx + {vector_place}]",
    "    mov gs:[{vector}], rax",
    "    mov rax, [rdx + {rax_place}]",
    "    mov gs:[{registers}], rax",
    "    mov rax, [rdx + {rcx_place}]",
    "    mov gs:[{registers} + 1 * 8], rax",
    "    mov rax, [rdx + {rdx_place}]",
    "    mov gs:[{registers} + 2 * 8], rax",
    "    mov rax, [rdx + {rbx_place}]",
    "    mov gs:[{registers} + 3 * 8], rax",
    "    mov rax, [rdx + {rsp_place}]",
    "    mov gs:[{registers} + 4 * 8], rax",
    "    mov rax, [rdx + {rbp_place}]",
    "    mov gs:[{registers} + 5 * 8], rax",
    "    mov rax, [rdx + {rsi_place}]",
    "    mov gs:[{registers} + 6 * 8], rax",
    "    mov rax, [rdx + {rdi_place}]",
    "    mov gs:[{registers} + 7 * 8], rax",
    // R8 to R15 are first in both.
    "    lea rsi, [rdx + {registers_place}]",
    "    mov rdi, gs:[{self_address}]",
    "    add rdi, {registers} + 8 * 8",
    "    mov ecx, 8",
    "    rep movsq",
    "    mov rax, [rdx + {rip_place}]",
    "    mov gs:[{instruction}], rax",
    "    mov rax, [rdx + {flags_place}]",
    "    mov gs:[{flags}], rax",
    "    mov qword ptr gs:[{is_whole}], 1",
    "    jmp 11b",
    ".p2align 2",
    "20: .long 0x1f80",
    "domain_stub_end:",
    ".popsection",
    commands = const window::COMMANDS - window::STUB,
    mask = const window::CONSTANTS - window::STUB + window::MASK,
    filter = const window::CONSTANTS - window::STUB + window::FILTER_PROGRAM,
    first_spins = const FIRST_SPINS,
    spins = const SPINS,
    processor = const PROCESSOR,
    runner_processor = const window::RUNNER_PROCESSOR,
    kernel_processor = const window::KERNEL_PROCESSOR,
    yields = const YIELDS,
    mapper_yields = const MAPPER_YIELDS,
    sched_yield = const libc::SYS_sched_yield,
    ring = const window::RING,
    ring_offset = const window::RING_OFFSET,
    makes_runner = const MAKES_RUNNER,
    makes_domain = const MAKES_DOMAIN,
    mapper_rests = const window::MAPPER_RESTS,
    reset = const window::COMMANDS - window::STUB + window::RESET,
    first_runner = const window::RUNNERS - window::STUB,
    signal_stacks = const window::CONSTANTS - window::STUB + window::SIGNAL_STACKS,
    clean = const window::CONSTANTS - window::STUB + window::CLEAN,
    may_fail = const MAY_FAIL,
    prctl = const libc::SYS_prctl,
    set_death_signal = const libc::PR_SET_PDEATHSIG,
    kill = const libc::SIGKILL,
    getppid = const libc::SYS_getppid,
    mmap = const libc::SYS_mmap,
    readable = const libc::PROT_READ,
    shared_fixed = const libc::MAP_SHARED | libc::MAP_FIXED,
    controls_file = const window::CONTROLS_FILE,
    futex = const libc::SYS_futex,
    close_range = const libc::SYS_close_range,
    arch_prctl = const libc::SYS_arch_prctl,
    sigaltstack = const libc::SYS_sigaltstack,
    rt_sigprocmask = const libc::SYS_rt_sigprocmask,
    rt_sigreturn = const libc::SYS_rt_sigreturn,
    seccomp = const libc::SYS_seccomp,
    exit_group = const libc::SYS_exit_group,
    ending = const filter::ENDING,
    set_gs = const ARCH_SET_GS,
    set_fs = const ARCH_SET_FS,
    set_mask = const libc::SIG_SETMASK,
    arguments = const window::ARGUMENTS,
    gate = const window::GATE,
    kind = const window::KIND,
    call = const window::CALL,
    interrupt = const window::INTERRUPT,
    of_signal = const window::SIGNAL,
    turn = const window::TURN,
    of_domain = const window::OF_DOMAIN,
    kernel_sleeps = const window::KERNEL_SLEEPS,
    runner_sleeps = const window::RUNNER_SLEEPS,
    rest = const window::REST,
    at_once = const window::AT_ONCE,
    self_address = const window::SELF,
    signal_number = const window::SIGNAL_NUMBER,
    vector = const window::VECTOR,
    address = const window::ADDRESS,
    code = const window::CODE,
    scratch = const window::SCRATCH,
    page = const HOST_PAGE_BYTES,
    interrupt_signal = const INTERRUPT_SIGNAL,
    registers = const CONTEXT + offset_of!(DomainContext, registers),
    vectors = const CONTEXT + offset_of!(DomainContext, vectors),
    instruction = const CONTEXT + offset_of!(DomainContext, instruction),
    flags = const CONTEXT + offset_of!(DomainContext, flags),
    is_whole = const CONTEXT + offset_of!(DomainContext, is_whole),
    registers_place = const register(libc::REG_R8),
    rax_place = const register(libc::REG_RAX),
    rcx_place = const register(libc::REG_RCX),
    rdx_place = const register(libc::REG_RDX),
    rbx_place = const register(libc::REG_RBX),
    rsp_place = const register(libc::REG_RSP),
    rbp_place = const register(libc::REG_RBP),
    rsi_place = const register(libc::REG_RSI),
    rdi_place = const register(libc::REG_RDI),
    rip_place = const register(libc::REG_RIP),
    flags_place = const register(libc::REG_EFL),
    vector_place = const register(libc::REG_TRAPNO),
    vectors_place = const VECTORS,
);

unsafe extern "C" {
    static domain_stub: u8;
    static domain_stub_gate: u8;
    static domain_stub_wait: u8;
    static domain_stub_asleep: u8;
    static domain_stub_signal: u8;
    static domain_stub_end: u8;
}

/// Offset of a part of the stub.
fn offset_of_part(part: *const u8) -> usize {
    part.addr() - (&raw const domain_stub).addr()
}

/// Returns gates, stub and constants for a window at this address.
pub(super) fn bytes(window: usize) -> Vec<u8> {
    let mut bytes = vec![0xcc; window::SHARED_BYTES];
    for number in 0..MAX_GATES {
        let place = window::GATES + number * window::GATE_BYTES;
        let gate = window::STUB + offset_of_part(&raw const domain_stub_gate);
        // MOV EAX, number; JMP gate.
        bytes[place] = 0xb8;
        bytes[place + 1..place + 5].copy_from_slice(&(number as u32).to_le_bytes());
        bytes[place + 5] = 0xe9;
        bytes[place + 6..place + 10].copy_from_slice(&((gate - (place + 10)) as u32).to_le_bytes());
    }
    let length = offset_of_part(&raw const domain_stub_end);
    assert!(length <= HOST_PAGE_BYTES, "the stub fits into its page");
    // SAFETY: the section above has these bytes, one after the other, and nobody writes to them.
    let stub = unsafe { std::slice::from_raw_parts(&raw const domain_stub, length) };
    bytes[window::STUB..window::STUB + length].copy_from_slice(stub);
    let constants = &mut bytes[window::CONSTANTS..];
    let mut put = |offset: usize, part: &[u8]| constants[offset..offset + part.len()].copy_from_slice(part);
    let filter = filter::program(window, asleep(window));
    let at = window + window::CONSTANTS;
    put(window::FILTER_PROGRAM, &((filter.len() / 8) as u64).to_le_bytes());
    put(window::FILTER_PROGRAM + 8, &((at + window::FILTER) as u64).to_le_bytes());
    put(window::FILTER, &filter);
    let handler = window + window::STUB + offset_of_part(&raw const domain_stub_signal);
    let flags = (libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER) as u64 | SA_RESTORER;
    // Nobody returns from the handler, so the restorer is never used.
    let action = [handler as u64, flags, handler as u64, 0];
    put(window::ACTION, &action.map(u64::to_le_bytes).concat());
    let open = FAULTS.iter().chain([&INTERRUPT_SIGNAL]).fold(0u64, |set, signal| set | 1 << (signal - 1));
    put(window::MASK, &(!open).to_le_bytes());
    put(window::CLEAN, &clean_context(window, !open));
    for number in 0..window::MAX_RUNNERS {
        let place = window::SIGNAL_STACKS + number * window::SIGNAL_STACK_BYTES;
        put(place, &signal_stack(window, number).map(u64::to_le_bytes).concat());
    }
    bytes
}

/// Returns the signals that the stub handles.
pub(super) fn signals() -> impl Iterator<Item = libc::c_int> {
    FAULTS.into_iter().chain([INTERRUPT_SIGNAL])
}

/// Returns the address after the stub's instruction that sleeps until a runner's turn.
pub(super) fn asleep(window: usize) -> usize {
    window + window::STUB + offset_of_part(&raw const domain_stub_asleep)
}

/// Returns the address of a gate in a window.
pub(super) fn gate(window: usize, number: usize) -> usize {
    window + window::GATES + number.min(MAX_GATES - 1) * window::GATE_BYTES
}

/// Returns the `ucontext_t` of the first runner that waits for its turn and has run nothing. Without an address of vector
/// state the host clears that.
fn clean_context(window: usize, mask: u64) -> Vec<u8> {
    let wait = window + window::STUB + offset_of_part(&raw const domain_stub_wait);
    let mut words = [0u64; 38];
    words[0] = UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS;
    words[2..5].copy_from_slice(&signal_stack(window, 0));
    words[register(libc::REG_RIP) / 8] = wait as u64;
    words[register(libc::REG_EFL) / 8] = FLAGS_OF_USERS;
    words[register(libc::REG_CSGSFS) / 8] = CODE_SELECTOR | DATA_SELECTOR << 48;
    words[SIGNAL_MASK / 8] = mask;
    words.map(u64::to_le_bytes).concat()
}

/// Returns the `stack_t` of a runner.
fn signal_stack(window: usize, number: usize) -> [u64; window::SIGNAL_STACK_BYTES / 8] {
    let start = window + window::RUNNERS + number * window::RUNNER_BYTES + HOST_PAGE_BYTES;
    [start as u64, 0, (window::RUNNER_BYTES - HOST_PAGE_BYTES) as u64]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stub_touches_no_memory_but_by_registers_and_gs_and_its_own_pages() {
        // What refers to anything outside the three pages would be relative to where it was linked.
        let bytes = bytes(0x1000_0000);
        assert_eq!(bytes.len(), window::SHARED_BYTES);
        assert_eq!(bytes[..2], [0xb8, 0]);
        assert_eq!(gate(0x1000, usize::MAX), 0x1000 + (MAX_GATES - 1) * window::GATE_BYTES);
    }

    #[test]
    fn a_runner_takes_no_signal_before_it_has_its_filter() {
        let stub = bytes(0x1000_0000)[window::STUB..window::CONSTANTS].to_vec();
        // MOV EAX, number.
        let place = |call: libc::c_long| {
            let wanted = [&[0xb8][..], &(call as u32).to_le_bytes()].concat();
            let mut places = stub.windows(5).enumerate().filter(|(_, bytes)| *bytes == wanted).map(|(place, _)| place);
            (places.next().expect("one"), places.next())
        };
        let ((filter, None), (unmask, None)) = (place(libc::SYS_seccomp), place(libc::SYS_rt_sigprocmask)) else {
            panic!("each call is made in one place");
        };
        assert!(filter < unmask);
    }

    #[test]
    fn what_sleeps_is_a_syscall() {
        let stub = &bytes(0x1000_0000)[window::STUB..];
        let place = offset_of_part(&raw const domain_stub_asleep);
        assert_eq!(stub[place - 2..place], [0x0f, 0x05]);
    }
}
