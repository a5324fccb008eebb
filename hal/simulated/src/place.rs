//! Places of interrupts at an instruction, counted from the end of an ABI call, and the instructions by which processors
//! synchronize.
//!
//! Key types: [`Place`], [`synchronizes`]. What goes wrong between two processors does so between two such instructions:
//! after one lock is released, and before the next is taken, for example. Neighbours: `stepping` counts. Deliberately not
//! here: what an interrupt does.

/// Binary logarithm of the maximum instructions until a `step`. Each costs the host microseconds.
const MAX_STEPS_LOG2: u64 = 9;
/// Maximum instructions of the kernel until a `kernel-step`: most calls take fewer.
const MAX_KERNEL_STEPS: u64 = 600;
/// More instructions than programs have between two calls, unless they compute.
const MAX_PASSED_OVER: u32 = 2_000;
/// One of so many races may be in what all calls end with, the others are in what they do before.
const ENDS_OF_CALLS: u64 = 8;
/// Maximum instructions of programs and kernel on the way to a `race`. Paths that are longer between two locks compute.
const MAX_PASSED_OVER_TO_RACE: u32 = 500;
/// Binary logarithm of the maximum synchronizing instructions until a `race`: most calls make fewer.
const MAX_SYNCHRONIZATIONS_LOG2: u64 = 4;
/// Binary logarithm of the maximum instructions after a synchronizing one.
const MAX_AFTER_LOG2: u64 = 4;

/// Maximum length of an instruction (Intel SDM, volume 2, section 2.3.11).
pub(crate) const MAX_INSTRUCTION_BYTES: usize = 15;

/// Where an interrupt is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Synchronizing instructions until counting begins, with the last one; 0: it begins at once.
    pub(crate) synchronizations: u32,
    /// Instructions from then on: with 1 the interrupt is before the synchronizing one.
    pub(crate) instructions: u32,
    /// Whether only instructions of the kernel count.
    pub(crate) in_kernel: bool,
    /// Whether nothing counts from the end of a call to the next instruction of a program: what each call ends with.
    pub(crate) skips_ends: bool,
    /// Maximum instructions that are not counted, of programs and before counting begins.
    pub(crate) max_passed_over: u32,
}

impl Place {
    /// The place of a `step`.
    pub(crate) fn after_instructions(drawn: u64) -> Place {
        let (synchronizations, instructions) = (0, skewed(drawn, MAX_STEPS_LOG2));
        Place { synchronizations, instructions, in_kernel: false, skips_ends: false, max_passed_over: 0 }
    }

    /// The place of a `kernel-step`.
    pub(crate) fn after_kernel_instructions(drawn: u64) -> Place {
        let instructions = 1 + (drawn % MAX_KERNEL_STEPS) as u32;
        let max_passed_over = MAX_PASSED_OVER;
        Place { synchronizations: 0, instructions, in_kernel: true, skips_ends: false, max_passed_over }
    }

    /// The place of a `race`.
    pub(crate) fn at_synchronization(drawn: u64) -> Place {
        let synchronizations = skewed(drawn, MAX_SYNCHRONIZATIONS_LOG2);
        let instructions = skewed(drawn >> 16, MAX_AFTER_LOG2);
        let skips_ends = !(drawn >> 60).is_multiple_of(ENDS_OF_CALLS);
        let max_passed_over = MAX_PASSED_OVER_TO_RACE;
        Place { synchronizations, instructions, in_kernel: true, skips_ends, max_passed_over }
    }
}

/// Returns a number of instructions from 1 on: small ones are as likely as large ones.
fn skewed(drawn: u64, max_log2: u64) -> u32 {
    let range = 1 << (drawn % (max_log2 + 1));
    1 + ((drawn >> 8) % range) as u32
}

/// Whether processors synchronize by the instruction at the beginning of this code: an atomic one, a fence, or a store of
/// a zero byte, which is how a spin lock is released.
pub(crate) fn synchronizes(code: &[u8]) -> bool {
    let prefixes = code.iter().take_while(|byte| is_prefix(**byte)).count();
    let (prefixes, code) = code.split_at(prefixes);
    if prefixes.contains(&LOCK) {
        return true;
    }
    let code = if matches!(code, [0x40..=0x4f, ..]) { &code[1..] } else { code };
    match code {
        [0x86 | 0x87, operands, ..] => is_memory(*operands),
        [0x0f, 0xae, 0xe8..=0xff, ..] => true,
        [0xc6, operands, rest @ ..] => is_memory(*operands) && immediate(*operands, rest) == Some(0),
        _ => false,
    }
}

const LOCK: u8 = 0xf0;

/// Legacy prefixes: operand and address size, segments, `lock`, `rep` (section 2.1.1).
fn is_prefix(byte: u8) -> bool {
    matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | LOCK | 0xf2 | 0xf3)
}

/// Whether a ModR/M byte names memory.
fn is_memory(operands: u8) -> bool {
    operands < 0xc0
}

/// Returns the immediate byte after the rest of an operand in memory (section 2.1.5, table 2-2).
fn immediate(operands: u8, rest: &[u8]) -> Option<u8> {
    let (mode, register) = (operands >> 6, operands & 7);
    let with_index = usize::from(register == 4);
    let has_no_base = register == 5 || with_index == 1 && rest.first().is_some_and(|index| index & 7 == 5);
    let displacement = match mode {
        0 if has_no_base => 4,
        0 => 0,
        1 => 1,
        _ => 4,
    };
    rest.get(with_index + displacement).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn atomic_instructions_and_releases_are_known() {
        let known: [&[u8]; 9] = [
            &[0x86, 0x07],                                     // xchg [rdi], al
            &[0x41, 0x86, 0x44, 0x24, 0x08],                   // xchg [r12+8], al
            &[0x48, 0x87, 0x05, 1, 2, 3, 4],                   // xchg [rip+...], rax
            &[0xf0, 0x48, 0x0f, 0xb1, 0x0f],                   // lock cmpxchg [rdi], rcx
            &[0x0f, 0xae, 0xf0],                               // mfence
            &[0xc6, 0x00, 0x00],                               // mov byte [rax], 0
            &[0xc6, 0x47, 0x40, 0x00],                         // mov byte [rdi+64], 0
            &[0x43, 0xc6, 0x84, 0x2e, 0, 1, 0, 0, 0x00, 0x90], // mov byte [r14+r13+256], 0
            &[0xc6, 0x05, 9, 9, 9, 9, 0x00],                   // mov byte [rip+...], 0
        ];
        for code in known {
            assert!(synchronizes(code), "{code:02x?}");
        }
        let others: [&[u8]; 8] = [
            &[],
            &[0xc6],
            &[0xc6, 0x00],                         // cut off
            &[0xc6, 0x00, 0x01],                   // mov byte [rax], 1
            &[0xc6, 0xc0, 0x00],                   // mov al, 0
            &[0x48, 0x87, 0xc8],                   // xchg rax, rcx
            &[0xc6, 0x04, 0x25, 0, 0, 0, 0, 0x01], // mov byte [0], 1
            &[0x48, 0x89, 0x07],                   // mov [rdi], rax
        ];
        for code in others {
            assert!(!synchronizes(code), "{code:02x?}");
        }
    }

    #[test]
    fn places_are_within_their_bounds() {
        let places = (0..5_000u64).map(|number| Place::at_synchronization(crate::choices::mixed(number, 0, 0)));
        for Place { synchronizations, instructions, in_kernel, .. } in places {
            assert!((1..=16).contains(&synchronizations) && (1..=16).contains(&instructions) && in_kernel);
        }
    }
}
