//! Pieces of position-independent code that tests map as images.

use std::arch::global_asm;

macro_rules! code {
    ($($(#[$documentation:meta])* $name:ident = [$($line:literal),* $(,)?];)*) => {
        $(
            global_asm!(
                ".pushsection .rodata",
                concat!(".globl hal_test_", stringify!($name), "_start, hal_test_", stringify!($name), "_end"),
                concat!("hal_test_", stringify!($name), "_start:"),
                $($line,)*
                concat!("hal_test_", stringify!($name), "_end:"),
                ".popsection",
            );
            $(#[$documentation])*
            pub fn $name() -> &'static [u8] {
                unsafe extern "C" {
                    #[link_name = concat!("hal_test_", stringify!($name), "_start")]
                    static START: u8;
                    #[link_name = concat!("hal_test_", stringify!($name), "_end")]
                    static END: u8;
                }
                let start = &raw const START;
                let bytes = (&raw const END).addr() - start.addr();
                // SAFETY: the labels enclose one piece of constant data.
                unsafe { std::slice::from_raw_parts(start, bytes) }
            }
        )*
    };
}

code! {
    /// Writes to the address in RDI.
    write_there = ["mov qword ptr [rdi], 7", "mov eax, 1", "ret"];
    /// Reads the address in RDI and returns its contents.
    read_there = ["mov rax, [rdi]", "ret"];
    /// Makes a system call of the host: getpid.
    ask_for_the_process = ["mov eax, 39", "syscall", "ret"];
    /// Jumps to the address in RDI.
    jump_there = ["jmp rdi"];
    /// An undefined instruction.
    undefined = ["ud2"];
    /// A privileged instruction.
    halt = ["hlt"];
    /// A breakpoint.
    breakpoint = ["int3"];
    /// Divides one by the number in RDI.
    divide = ["xor edx, edx", "mov eax, 1", "div rdi", "ret"];
    /// Pushes without end.
    overflow = ["2:", "push rax", "jmp 2b"];
    /// Loops for ever with the stack pointer in RDI.
    loop_on_stack = ["mov rsp, rdi", "2:", "jmp 2b"];
    /// Fills every register, vector register, a wide half, the red zone and the direction flag with
    /// patterns, and compares them until the word at RDI is not 0. Returns 0, or the line that differed.
    compare_all = [
        "mov rsi, 0x0101010101010101",
        "mov rbx, 0x0202020202020202",
        "mov rbp, 0x0303030303030303",
        "mov r8, 0x0404040404040404",
        "mov r9, 0x0505050505050505",
        "mov r10, 0x0606060606060606",
        "mov r11, 0x0707070707070707",
        "mov r12, 0x0808080808080808",
        "mov r13, 0x0909090909090909",
        "mov r14, 0x0a0a0a0a0a0a0a0a",
        "mov r15, 0x0b0b0b0b0b0b0b0b",
        "movq xmm0, rsi",
        "movq xmm1, rbx",
        "movq xmm15, r15",
        "vinsertf128 ymm1, ymm1, xmm15, 1",
        "mov [rsp - 8], r8",
        "mov [rsp - 64], r9",
        "mov [rsp - 128], r10",
        "std",
        "2:",
        "movq rcx, xmm0", "mov eax, 1", "cmp rcx, rsi", "jne 3f",
        "movq rcx, xmm1", "mov eax, 2", "cmp rcx, rbx", "jne 3f",
        "movq rcx, xmm15", "mov eax, 3", "cmp rcx, r15", "jne 3f",
        "vextractf128 xmm3, ymm1, 1", "movq rcx, xmm3", "mov eax, 4", "cmp rcx, r15", "jne 3f",
        "mov eax, 5", "cmp r8, [rsp - 8]", "jne 3f",
        "mov eax, 6", "cmp r9, [rsp - 64]", "jne 3f",
        "mov eax, 7", "cmp r10, [rsp - 128]", "jne 3f",
        "mov rcx, 0x0101010101010101", "mov edx, 0x20", "mov eax, 8", "cmp rsi, rcx", "jne 3f", "mov eax, 9", "cmp edx, 0x20", "jne 3f",
        "mov rdx, 0x0101010101010101",
        "add rcx, rdx", "mov eax, 10", "cmp rbx, rcx", "jne 3f",
        "add rcx, rdx", "mov eax, 11", "cmp rbp, rcx", "jne 3f",
        "add rcx, rdx", "mov eax, 12", "cmp r8, rcx", "jne 3f",
        "add rcx, rdx", "mov eax, 13", "cmp r9, rcx", "jne 3f",
        "add rcx, rdx", "mov eax, 14", "cmp r10, rcx", "jne 3f",
        "add rcx, rdx", "mov eax, 15", "cmp r11, rcx", "jne 3f",
        "add rcx, rdx", "mov eax, 16", "cmp r12, rcx", "jne 3f",
        "add rcx, rdx", "mov eax, 17", "cmp r13, rcx", "jne 3f",
        "add rcx, rdx", "mov eax, 18", "cmp r14, rcx", "jne 3f",
        "add rcx, rdx", "mov eax, 19", "cmp r15, rcx", "jne 3f",
        // The flag is read below the red zone, on a stack that is then not 16-byte-aligned.
        "lea rsp, [rsp - 136]", "pushfq", "pop rcx", "lea rsp, [rsp + 136]",
        "mov eax, 20", "test ecx, 0x400", "jz 3f",
        "cmp qword ptr [rdi], 0",
        "je 2b",
        "xor eax, eax",
        "3:",
        "cld",
        "vzeroupper",
        "ret",
    ];
}
