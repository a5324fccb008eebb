//! The first instructions: from the 32-bit state in which PVH and Multiboot2 enter, and from the
//! 16-bit state in which other processors start, to 64-bit code on a stack.
//!
//! Only assembly. It defines `pvh_entry` (ELF note 18 of Xen), `multiboot2_entry` (Multiboot2, entry
//! address tag) and the start-up code of other processors, and calls `singularity_start` of the boot
//! crate with the boot loader's magic number and the address of its information.
//!
//! State when `singularity_start` runs: the first 4 GiB are identity-mapped, writable; interrupts
//! are off; SSE is on; the stack is 64 KiB in `.bss`.

#[cfg(not(test))]
use core::arch::global_asm;

/// EAX when a Multiboot2 loader enters (Multiboot2 3.3).
pub(crate) const MULTIBOOT2_MAGIC: u32 = 0x36d7_6289;

/// Address of the start-up code of other processors: below 1 MiB, page-aligned (Intel SDM volume 3, 9.4.4).
pub(crate) const START_CODE: usize = 0x8000;
/// Address of its data, in a page of its own because no page is both writable and executable.
pub(crate) const START_DATA: usize = 0x9000;

/// Data read by a starting processor at [`START_DATA`].
#[repr(C)]
pub(crate) struct StartData {
    /// Physical address of the page tables, below 4 GiB.
    pub page_tables: u64,
    /// Top of its stack.
    pub stack: u64,
    /// The function it calls, which never returns.
    pub entry: u64,
    /// Its argument.
    pub argument: u64,
}

unsafe extern "C" {
    /// First byte of the start-up code of other processors.
    pub(crate) static processor_start: u8;
    /// The byte after its last.
    pub(crate) static processor_start_end: u8;
}

// Not in tests, which run on the host: the addresses are absolute.
#[cfg(not(test))]
global_asm!(
    ".pushsection .note.pvh, \"a\", @note",
    ".p2align 2",
    ".long 4, 8, 18",
    ".asciz \"Xen\"",
    ".quad pvh_entry",
    ".popsection",
    ".pushsection .multiboot2, \"a\"",
    ".p2align 3",
    "multiboot2_header:",
    ".long 0xe85250d6, 0, multiboot2_header_end - multiboot2_header",
    ".long 0x100000000 - 0xe85250d6 - (multiboot2_header_end - multiboot2_header)",
    // Entry address.
    ".short 3, 0",
    ".long 12, multiboot2_entry",
    ".p2align 3",
    // Modules on page boundaries.
    ".short 6, 0",
    ".long 8",
    ".short 0, 0",
    ".long 8",
    "multiboot2_header_end:",
    ".popsection",
    ".pushsection .text.entry, \"ax\"",
    ".code32",
    ".globl pvh_entry",
    "pvh_entry:",
    "    xor eax, eax",
    "multiboot2_entry:",
    "    cli",
    "    cld",
    "    mov edi, eax",
    "    mov esi, ebx",
    "    mov esp, offset boot_stack_end",
    "    mov eax, offset early_level_3 + 3",
    "    mov dword ptr [early_level_4], eax",
    "    mov eax, offset early_level_2 + 3",
    "    xor ecx, ecx",
    "2:  mov dword ptr [early_level_3 + ecx * 8], eax",
    "    add eax, 4096",
    "    inc ecx",
    "    cmp ecx, 4",
    "    jb 2b",
    "    mov eax, 0x83",
    "    xor ecx, ecx",
    "3:  mov dword ptr [early_level_2 + ecx * 8], eax",
    "    add eax, 0x200000",
    "    inc ecx",
    "    cmp ecx, 2048",
    "    jb 3b",
    "    mov eax, offset early_level_4",
    "    mov cr3, eax",
    // Physical address extension, FXSAVE, SSE exceptions.
    "    mov eax, cr4",
    "    or eax, 0x620",
    "    mov cr4, eax",
    // Long mode, no-execute.
    "    mov ecx, 0xc0000080",
    "    rdmsr",
    "    or eax, 0x900",
    "    wrmsr",
    // Paging, write protection, caches on, no emulation of the floating-point unit.
    "    mov eax, cr0",
    "    and eax, 0x9ffffff3",
    "    or eax, 0x80010023",
    "    mov cr0, eax",
    "    lgdt [early_descriptors_pointer]",
    "    push 8",
    "    mov eax, offset long_entry",
    "    push eax",
    "    retf",
    ".code64",
    "long_entry:",
    "    mov eax, 16",
    "    mov ds, eax",
    "    mov es, eax",
    "    mov ss, eax",
    "    mov fs, eax",
    "    mov gs, eax",
    "    mov esp, offset boot_stack_end",
    "    mov edi, edi",
    "    mov esi, esi",
    "    xor ebp, ebp",
    "    call singularity_start",
    "    ud2",
    ".popsection",
    ".pushsection .rodata.processor_start, \"a\"",
    ".globl processor_start, processor_start_end",
    ".p2align 6",
    ".code16",
    "processor_start:",
    // Jumps over the descriptors, which lie at a fixed offset, to byte 64.
    "    .byte 0xeb, 62",
    ".p2align 3",
    // Byte 8: size and address of the descriptors, which follow at byte 16.
    "    .short 31",
    "    .long {code} + 16",
    "    .short 0",
    "    .quad 0, 0x00af9a000000ffff, 0x00cf92000000ffff, 0x00cf9a000000ffff",
    ".p2align 6",
    "    cli",
    "    cld",
    "    xor ax, ax",
    "    mov ds, ax",
    "    lgdt [{code} + 8]",
    "    mov eax, cr0",
    "    or eax, 1",
    "    mov cr0, eax",
    // A far jump to a 32-bit offset.
    "    .byte 0x66, 0xea",
    "    .long {code} + (processor_32 - processor_start)",
    "    .short 24",
    ".code32",
    "processor_32:",
    "    mov ax, 16",
    "    mov ds, ax",
    "    mov es, ax",
    "    mov ss, ax",
    "    mov eax, dword ptr [{data}]",
    "    mov cr3, eax",
    "    mov eax, cr4",
    "    or eax, 0x620",
    "    mov cr4, eax",
    "    mov ecx, 0xc0000080",
    "    rdmsr",
    "    or eax, 0x900",
    "    wrmsr",
    "    mov eax, cr0",
    "    and eax, 0x9ffffff3",
    "    or eax, 0x80010023",
    "    mov cr0, eax",
    "    .byte 0xea",
    "    .long {code} + (processor_64 - processor_start)",
    "    .short 8",
    ".code64",
    "processor_64:",
    "    mov eax, 16",
    "    mov ds, eax",
    "    mov es, eax",
    "    mov ss, eax",
    "    mov fs, eax",
    "    mov gs, eax",
    "    mov ebx, {data}",
    "    mov rsp, [rbx + 8]",
    "    mov rdi, [rbx + 24]",
    "    mov rax, [rbx + 16]",
    "    xor ebp, ebp",
    "    call rax",
    "    ud2",
    "processor_start_end:",
    ".popsection",
    ".pushsection .rodata.early, \"a\"",
    ".p2align 3",
    "early_descriptors:",
    // The accessed bits are set: otherwise the processor would write them, and the kernel's image would differ from its measurement.
    "    .quad 0, 0x00af9b000000ffff, 0x00cf93000000ffff",
    "early_descriptors_pointer:",
    "    .short 23",
    "    .long early_descriptors",
    "    .long 0",
    ".popsection",
    ".pushsection .bss.early, \"aw\", @nobits",
    ".p2align 12",
    "early_level_4: .skip 4096",
    "early_level_3: .skip 4096",
    "early_level_2: .skip 16384",
    ".globl boot_stack, boot_stack_end",
    "boot_stack: .skip 65536",
    "boot_stack_end:",
    ".popsection",
    code = const START_CODE,
    data = const START_DATA,
);
