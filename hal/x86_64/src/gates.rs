//! The gates: what a SIP in a domain calls instead of the kernel's functions.
//!
//! A gate has the calling convention of a function (System V ABI 3.2), and enters the kernel by SYSCALL with its number
//! in EAX. The fourth argument moves to R10, as on Linux, because SYSCALL overwrites RCX. The page of the gates is
//! mapped in every domain, for reading and executing; code that uses SYSCALL by itself gets no further.

use core::arch::global_asm;

use hal_api::MAX_GATES;

use crate::frames::FRAME_BYTES;

/// Bytes from one gate to the next.
const GATE_BYTES: usize = 16;

const _: () = assert!(MAX_GATES * GATE_BYTES <= FRAME_BYTES);

global_asm!(
    ".pushsection .text.gates, \"ax\"",
    ".p2align 12",
    ".globl domain_gates",
    "domain_gates:",
    ".set gate, 0",
    ".rept {count}",
    ".p2align 4, 0xcc",
    "    mov r10, rcx",
    "    mov eax, gate",
    "    syscall",
    "    ret",
    ".set gate, gate + 1",
    ".endr",
    // Nothing else is in their page.
    ".p2align 12, 0xcc",
    ".popsection",
    count = const MAX_GATES,
);

unsafe extern "C" {
    static domain_gates: u8;
}

/// Returns the page of the gates.
pub(crate) fn page() -> usize {
    (&raw const domain_gates).addr()
}

/// Returns the address of a gate.
pub(crate) fn address(number: usize) -> usize {
    page() + number.min(MAX_GATES - 1) * GATE_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_gate_says_its_number_and_nothing_else_is_in_the_page() {
        // SAFETY: the section has a whole page for the gates.
        let code = unsafe { core::slice::from_raw_parts(&raw const domain_gates, FRAME_BYTES) };
        assert!(page().is_multiple_of(FRAME_BYTES));
        for number in 0..MAX_GATES {
            let start = address(number) - page();
            let [low, high] = (number as u16).to_le_bytes();
            let expected = [0x49, 0x89, 0xca, 0xb8, low, high, 0, 0, 0x0f, 0x05, 0xc3];
            assert_eq!(code[start..start + expected.len()], expected, "gate {number}");
            assert!(code[start + expected.len()..start + GATE_BYTES].iter().all(|&byte| byte == 0xcc));
        }
        assert!(code[MAX_GATES * GATE_BYTES..].iter().all(|&byte| byte == 0xcc));
        assert_eq!(address(usize::MAX), address(MAX_GATES - 1));
    }
}
