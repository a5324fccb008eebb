//! A fast path for the instructions that compilers emit most.
//!
//! For nine in ten instructions only length and branch target matter. [`common`] recognizes those by opcode, without
//! prefixes but REX, in allowed forms only; the rest goes to the full decoder, which alone rejects. A test over all
//! opcodes checks that both agree. It halves the boot time of a bare machine.

/// A decoded common instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Common {
    /// Length in bytes.
    pub(crate) bytes: usize,
    /// Of a branch: its displacement from the end of the instruction.
    pub(crate) branch: Option<i32>,
}

/// Operands after an opcode.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Not common.
    Other,
    /// None.
    Plain,
    /// An 8-bit immediate.
    Byte,
    /// A 32-bit immediate.
    Double,
    /// A 32-bit immediate, or 64-bit with REX.W.
    Full,
    /// ModRM.
    Operands,
    /// ModRM with a memory operand.
    Memory,
    /// ModRM and an 8-bit immediate.
    OperandsByte,
    /// ModRM and a 32-bit immediate.
    OperandsDouble,
    /// An 8-bit branch displacement, without REX.
    Near,
    /// A 32-bit branch displacement, without REX.
    Far,
    /// A second opcode byte.
    Escape,
    /// ModRM whose reg field selects the operation; a bit per allowed one.
    Group(u8),
    /// The same, with an 8-bit immediate.
    GroupByte(u8),
    /// The same, with a 32-bit immediate.
    GroupDouble(u8),
    /// F6 and F7: only `test` has an immediate, of this many bytes.
    Test(u8),
}

const fn first_shapes() -> [Shape; 256] {
    let mut shapes = [Shape::Other; 256];
    let mut operation = 0;
    // add, or, adc, sbb, and, sub, xor, cmp: each in six forms.
    while operation < 8 {
        let base = operation * 8;
        let mut form = 0;
        while form < 4 {
            shapes[base + form] = Shape::Operands;
            form += 1;
        }
        shapes[base + 4] = Shape::Byte;
        shapes[base + 5] = Shape::Double;
        operation += 1;
    }
    let mut register = 0;
    while register < 8 {
        shapes[0x50 + register] = Shape::Plain;
        shapes[0x58 + register] = Shape::Plain;
        shapes[0xb0 + register] = Shape::Byte;
        shapes[0xb8 + register] = Shape::Full;
        register += 1;
    }
    let mut condition = 0;
    while condition < 16 {
        shapes[0x70 + condition] = Shape::Near;
        condition += 1;
    }
    shapes[0x0f] = Shape::Escape;
    shapes[0x63] = Shape::Operands;
    shapes[0x68] = Shape::Double;
    shapes[0x69] = Shape::OperandsDouble;
    shapes[0x6a] = Shape::Byte;
    shapes[0x6b] = Shape::OperandsByte;
    shapes[0x80] = Shape::OperandsByte;
    shapes[0x81] = Shape::OperandsDouble;
    shapes[0x83] = Shape::OperandsByte;
    shapes[0x84] = Shape::Operands;
    shapes[0x85] = Shape::Operands;
    shapes[0x86] = Shape::Operands;
    shapes[0x87] = Shape::Operands;
    shapes[0x88] = Shape::Operands;
    shapes[0x89] = Shape::Operands;
    shapes[0x8a] = Shape::Operands;
    shapes[0x8b] = Shape::Operands;
    shapes[0x8d] = Shape::Memory;
    shapes[0x98] = Shape::Plain;
    shapes[0x99] = Shape::Plain;
    shapes[0xa8] = Shape::Byte;
    shapes[0xa9] = Shape::Double;
    // Rotations and shifts, except the alias of the left shift.
    shapes[0xc0] = Shape::GroupByte(0b1011_1111);
    shapes[0xc1] = Shape::GroupByte(0b1011_1111);
    shapes[0xd0] = Shape::Group(0b1011_1111);
    shapes[0xd1] = Shape::Group(0b1011_1111);
    shapes[0xd2] = Shape::Group(0b1011_1111);
    shapes[0xd3] = Shape::Group(0b1011_1111);
    shapes[0xc3] = Shape::Plain;
    shapes[0xc6] = Shape::GroupByte(1);
    shapes[0xc7] = Shape::GroupDouble(1);
    shapes[0xcc] = Shape::Plain;
    shapes[0xe8] = Shape::Far;
    shapes[0xe9] = Shape::Far;
    shapes[0xeb] = Shape::Near;
    shapes[0xf6] = Shape::Test(1);
    shapes[0xf7] = Shape::Test(4);
    shapes[0xfe] = Shape::Group(0b0000_0011);
    // inc, dec, call, jmp and push, except the far forms.
    shapes[0xff] = Shape::Group(0b0101_0111);
    shapes
}

const fn second_shapes() -> [Shape; 256] {
    let mut shapes = [Shape::Other; 256];
    let mut condition = 0;
    while condition < 16 {
        shapes[0x40 + condition] = Shape::Operands;
        shapes[0x80 + condition] = Shape::Far;
        shapes[0x90 + condition] = Shape::Operands;
        condition += 1;
    }
    shapes[0x0b] = Shape::Plain;
    // movups, movaps, xorps.
    shapes[0x10] = Shape::Operands;
    shapes[0x11] = Shape::Operands;
    shapes[0x28] = Shape::Operands;
    shapes[0x29] = Shape::Operands;
    shapes[0x57] = Shape::Operands;
    shapes[0x1f] = Shape::Group(1);
    // bt, imul, movzx, movsx.
    shapes[0xa3] = Shape::Operands;
    shapes[0xaf] = Shape::Operands;
    shapes[0xb6] = Shape::Operands;
    shapes[0xb7] = Shape::Operands;
    shapes[0xbe] = Shape::Operands;
    shapes[0xbf] = Shape::Operands;
    shapes[0xba] = Shape::GroupByte(0b1111_0000);
    shapes
}

static FIRST: [Shape; 256] = first_shapes();
static SECOND: [Shape; 256] = second_shapes();

/// Decodes the instruction at the start of the bytes, if it is common and complete.
#[inline]
pub(crate) fn common(bytes: &[u8]) -> Option<Common> {
    let mut at = 0;
    let mut opcode = *bytes.first()?;
    let rex = if opcode & 0xf0 == 0x40 { opcode } else { 0 };
    if rex != 0 {
        at = 1;
        opcode = *bytes.get(1)?;
    }
    at += 1;
    let mut shape = FIRST[usize::from(opcode)];
    if shape == Shape::Escape {
        shape = SECOND[usize::from(*bytes.get(at)?)];
        at += 1;
    }
    let (end, branch_bytes) = match shape {
        Shape::Other | Shape::Escape => return None,
        Shape::Plain => (at, 0),
        Shape::Byte => (at + 1, 0),
        Shape::Double => (at + 4, 0),
        Shape::Full => (at + if rex & 8 != 0 { 8 } else { 4 }, 0),
        Shape::Near | Shape::Far if rex != 0 => return None,
        Shape::Near => (at + 1, 1),
        Shape::Far => (at + 4, 4),
        Shape::Operands => (operands_end(bytes, at)?, 0),
        Shape::Memory if *bytes.get(at)? >= 0xc0 || to_stack_pointer(*bytes.get(at)? >> 3) => return None,
        Shape::Memory => (operands_end(bytes, at)?, 0),
        Shape::OperandsByte => (operands_end(bytes, at)? + 1, 0),
        Shape::OperandsDouble if *bytes.get(at)? >= 0xc0 && to_stack_pointer(*bytes.get(at)?) => return None,
        Shape::OperandsDouble => (operands_end(bytes, at)? + 4, 0),
        Shape::Group(allowed) if in_group(allowed, *bytes.get(at)?) => (operands_end(bytes, at)?, 0),
        Shape::GroupByte(allowed) if in_group(allowed, *bytes.get(at)?) => (operands_end(bytes, at)? + 1, 0),
        Shape::GroupDouble(allowed) if in_group(allowed, *bytes.get(at)?) => (operands_end(bytes, at)? + 4, 0),
        Shape::Group(_) | Shape::GroupByte(_) | Shape::GroupDouble(_) => return None,
        Shape::Test(immediate) => match *bytes.get(at)? >> 3 & 7 {
            0 => (operands_end(bytes, at)? + usize::from(immediate), 0),
            1 => return None,
            _ => (operands_end(bytes, at)?, 0),
        },
    };
    if end > bytes.len() {
        return None;
    }
    let branch = match branch_bytes {
        1 => Some(i32::from(bytes[end - 1] as i8)),
        4 => Some(i32::from_le_bytes(*bytes[end - 4..].first_chunk()?)),
        _ => None,
    };
    Some(Common { bytes: end, branch })
}

/// Whether the low three bits select the stack pointer, or, with REX, R12. Changes of the stack pointer are limited.
fn to_stack_pointer(register: u8) -> bool {
    register & 7 == 4
}

fn in_group(allowed: u8, operands: u8) -> bool {
    allowed >> (operands >> 3 & 7) & 1 != 0
}

/// End of the operands that begin with the ModRM byte at `at` (Intel SDM volume 2, tables 2-2 and 2-3).
#[inline]
fn operands_end(bytes: &[u8], at: usize) -> Option<usize> {
    let operands = *bytes.get(at)?;
    let (mode, register) = (operands >> 6, operands & 7);
    if mode == 3 {
        return Some(at + 1);
    }
    let mut end = at + 1;
    let mut base = register;
    if register == 4 {
        base = *bytes.get(end)? & 7;
        end += 1;
    }
    Some(
        end + match mode {
            0 if base == 5 => 4,
            0 => 0,
            1 => 1,
            _ => 4,
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instructions;
    use iced_x86::{Decoder, DecoderOptions, OpKind};

    /// The full decoder's result, if it allows the instruction.
    fn full(bytes: &[u8]) -> Option<Common> {
        let mut decoder = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE);
        let instruction = decoder.decode();
        let own = bytes.get(..instruction.len())?;
        instructions::judge(&instruction, own, &|_| None).ok()?;
        let near = instruction.op0_kind() == OpKind::NearBranch64;
        let branch = near.then(|| instruction.near_branch64().wrapping_sub(instruction.len() as u64) as i32);
        Some(Common { bytes: instruction.len(), branch })
    }

    #[test]
    fn the_full_decoder_agrees_on_every_opcode_and_form_of_operands() {
        let mut known = 0u32;
        let prefixes = (0x40..=0x4fu8).map(Some).chain([None]);
        for rex in prefixes {
            for escape in [false, true] {
                for opcode in 0..=255u8 {
                    for operands in 0..=255u8 {
                        for scale in [0x00, 0x25, 0x65, 0xe4] {
                            let mut bytes = alloc::vec::Vec::from_iter(rex);
                            bytes.extend(escape.then_some(0x0f));
                            bytes.extend([opcode, operands, scale, 0x81, 2, 3, 0x84, 5, 6, 7, 8, 9, 10]);
                            if let Some(found) = common(&bytes) {
                                assert_eq!(Some(found), full(&bytes), "{bytes:02x?}");
                                known += 1;
                            }
                        }
                    }
                }
            }
        }
        assert!(known > 1_000_000, "{known} forms are common");
    }

    #[test]
    fn an_instruction_that_is_cut_short_is_not_known() {
        let whole = [0x48, 0x81, 0x84, 0x24, 1, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!(common(&whole), Some(Common { bytes: 12, branch: None }));
        for end in 0..whole.len() {
            assert_eq!(common(&whole[..end]), None);
        }
        assert_eq!(common(&[0xe8, 0, 0, 0]), None);
        assert_eq!(common(&[0xeb, 0xfe]), Some(Common { bytes: 2, branch: Some(-2) }));
    }

    proptest::proptest! {
        #[test]
        fn the_full_decoder_agrees_on_any_bytes(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..20)) {
            if let Some(found) = common(&bytes) {
                proptest::prop_assert_eq!(Some(found), full(&bytes));
            }
        }
    }
}
