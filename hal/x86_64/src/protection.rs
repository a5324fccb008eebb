//! What keeps code in domains from the kernel, beside the page tables: control registers and the set-up of SYSCALL.

use core::sync::atomic::{AtomicU64, Ordering};

use alloc::vec::Vec;
use x86_64::registers::control::{Cr4, Cr4Flags};

/// Control register bits that each processor sets if it has them, with what is weaker without.
const WANTED: [(Cr4Flags, &str); 4] = [
    (Cr4Flags::PCID, "address translations are forgotten at each entry and exit (no PCID)"),
    (
        Cr4Flags::SUPERVISOR_MODE_EXECUTION_PROTECTION,
        "the page tables alone keep the kernel from running code of domains (no SMEP)",
    ),
    (
        Cr4Flags::SUPERVISOR_MODE_ACCESS_PREVENTION,
        "the page tables alone keep the kernel from reading memory of domains by mistake (no SMAP)",
    ),
    (Cr4Flags::USER_MODE_INSTRUCTION_PREVENTION, "domains can read where the processor's tables are (no UMIP)"),
];

/// Bits set on the boot processor.
static SET: AtomicU64 = AtomicU64::new(0);

/// Returns the bits that the calling processor has.
fn supported() -> Cr4Flags {
    let basic = core::arch::x86_64::__cpuid(1);
    let has_extended = core::arch::x86_64::__cpuid(0).eax >= 7;
    let [ebx, ecx] = if has_extended {
        let extended = core::arch::x86_64::__cpuid_count(7, 0);
        [extended.ebx, extended.ecx]
    } else {
        [0, 0]
    };
    let mut flags = Cr4Flags::empty();
    flags.set(Cr4Flags::PCID, basic.ecx >> 17 & 1 == 1);
    flags.set(Cr4Flags::SUPERVISOR_MODE_EXECUTION_PROTECTION, ebx >> 7 & 1 == 1);
    flags.set(Cr4Flags::SUPERVISOR_MODE_ACCESS_PREVENTION, ebx >> 20 & 1 == 1);
    flags.set(Cr4Flags::USER_MODE_INSTRUCTION_PREVENTION, ecx >> 2 & 1 == 1);
    flags
}

/// Sets the bits on the calling processor; the boot processor comes first.
///
/// # Safety
/// The kernel's page tables are active, and no page in them is one of user mode. CR3 has no PCID.
pub(crate) unsafe fn enable() {
    let own = supported();
    let flags = match SET.load(Ordering::Acquire) {
        0 => own,
        // Of a set of unlike processors the boot processor's word is taken, and nothing is set that another lacks.
        set => own & Cr4Flags::from_bits_truncate(set),
    };
    SET.store(flags.bits(), Ordering::Release);
    // SAFETY: the processor has them. SMEP and SMAP concern pages of user mode, of which the tables have none; PCID may
    // be set in long mode while CR3 has none.
    unsafe { Cr4::update(|now| now.insert(flags)) };
}

/// Whether page tables have identifiers (PCID).
pub(crate) fn has_identifiers() -> bool {
    SET.load(Ordering::Relaxed) & Cr4Flags::PCID.bits() != 0
}

/// Returns what is weaker on these processors.
pub(crate) fn weaknesses() -> Vec<&'static str> {
    let set = Cr4Flags::from_bits_truncate(SET.load(Ordering::Relaxed));
    WANTED.iter().filter(|(flag, _)| !set.contains(*flag)).map(|&(_, weaker)| weaker).collect()
}
