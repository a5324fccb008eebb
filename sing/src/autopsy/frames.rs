//! A back trace from the code addresses on a stack.
//!
//! Images have no unwind tables, and their functions no frame pointers, so the kernel notes every word on the stack that
//! is an address of the image's code. Of those, return addresses follow a call instruction. A direct call names its
//! function, which for a frame must be the one of the frame inside it; an address left by an earlier call mostly names
//! another. Deliberately not here: source lines.

use std::ops::Range;

use elf::ElfBytes;
use elf::abi::{PF_X, PT_LOAD};
use elf::endian::LittleEndian;

use super::report::Code;
use crate::bare::symbols;

/// Lengths of indirect calls (`FF /2`), with and without a prefix, displacement and index byte.
const INDIRECT_BYTES: Range<usize> = 2..9;
/// Length of a direct call.
const DIRECT_BYTES: u64 = 5;

/// A function that a thread was in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Name of the function.
    pub name: String,
    /// Offset in the function.
    pub offset: u64,
    /// Offset in the image of the instruction: the one that faulted, or the last byte of the call.
    pub instruction: u64,
    /// Whether nothing suggests that the address is left from an earlier call.
    pub is_certain: bool,
}

/// Code and functions of an image.
pub struct Image<'a> {
    code: Vec<(u64, &'a [u8])>,
    /// By address; without a name what lies between functions.
    functions: Vec<(u64, String)>,
}

/// What is called before a return address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Direct(u64),
    Indirect,
}

impl<'a> Image<'a> {
    /// Reads an image; `None` if it has no code or no symbols.
    pub fn parse(bytes: &'a [u8]) -> Option<Image<'a>> {
        let file = ElfBytes::<LittleEndian>::minimal_parse(bytes).ok()?;
        let segments = file.segments()?;
        let code = segments.iter().filter(|segment| segment.p_type == PT_LOAD && segment.p_flags & PF_X != 0);
        let code = code.filter_map(|segment| Some((segment.p_vaddr, file.segment_data(&segment).ok()?))).collect();
        let mut functions = symbols::functions(bytes)?;
        // At the same address, a function comes after the end of the one before.
        functions
            .sort_by(|(one, name), (other, other_name)| (one, !name.is_empty()).cmp(&(other, !other_name.is_empty())));
        Some(Image { code, functions })
    }

    /// Returns the frames, the innermost first; with `all` also those that are not certain.
    pub fn back_trace(&self, codes: &[Code], all: bool) -> Vec<Frame> {
        let possible: Vec<(Code, Option<Call>)> = codes
            .iter()
            .map(|&code| (code, if code.is_fault { None } else { self.call_before(code.offset) }))
            .filter(|(code, call)| code.is_fault || call.is_some())
            .collect();
        let mut frames = Vec::new();
        let mut inner: Option<u64> = None;
        for (index, &(code, call)) in possible.iter().enumerate() {
            let instruction = if code.is_fault { code.offset } else { code.offset - 1 };
            let Some((start, name)) = self.function_at(instruction) else { continue };
            let calls_inner = |call: Option<Call>| match (call, inner) {
                (Some(Call::Direct(target)), Some(inner)) => target == inner,
                _ => false,
            };
            // A later address that names the inner function is more probable than one that names none or another.
            let is_certain = inner.is_none()
                || calls_inner(call)
                || !possible[index + 1..].iter().any(|&(_, later)| calls_inner(later));
            if is_certain {
                inner = Some(start);
            }
            if is_certain || all {
                frames.push(Frame { name: name.into(), offset: instruction - start, instruction, is_certain });
            }
        }
        frames
    }

    /// Returns the function at an address, with its start.
    fn function_at(&self, address: u64) -> Option<(u64, &str)> {
        let after = self.functions.partition_point(|(start, _)| *start <= address);
        let (start, name) = self.functions.get(after.checked_sub(1)?)?;
        (!name.is_empty()).then_some((*start, name))
    }

    /// Returns the call instruction that ends at an address, if there is one.
    fn call_before(&self, address: u64) -> Option<Call> {
        let bytes = |length: u64| {
            let first = address.checked_sub(length)?;
            let (start, code) = self
                .code
                .iter()
                .find(|(start, code)| first >= *start && address <= start.saturating_add(code.len() as u64))?;
            code.get((first - start) as usize..(address - start) as usize)
        };
        if let Some([0xe8, offset @ ..]) = bytes(DIRECT_BYTES)
            && let Ok(offset) = <[u8; 4]>::try_from(offset)
        {
            let target = address.wrapping_add_signed(i32::from_le_bytes(offset).into());
            if self.functions.iter().any(|(start, name)| *start == target && !name.is_empty()) {
                return Some(Call::Direct(target));
            }
        }
        INDIRECT_BYTES.filter_map(|length| bytes(length as u64)).any(is_indirect_call).then_some(Call::Indirect)
    }
}

/// Whether the bytes are exactly a `CALL r/m64` (Intel SDM volume 2, tables 2-2 and 2-3).
fn is_indirect_call(bytes: &[u8]) -> bool {
    let rest = match bytes {
        [0x40..=0x4f, rest @ ..] => rest,
        rest => rest,
    };
    let [0xff, modes, rest @ ..] = rest else { return false };
    if modes >> 3 & 7 != 2 {
        return false;
    }
    let (mode, register) = (modes >> 6, modes & 7);
    let has_index = mode != 3 && register == 4;
    let base = if has_index { rest.first().map_or(0, |index| index & 7) } else { register };
    let displacement = match mode {
        0 if base == 5 => 4,
        0 | 3 => 0,
        1 => 1,
        _ => 4,
    };
    rest.len() == usize::from(has_index) + displacement
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Functions of 16 bytes each, from 0x1000 on; each calls the one before it at its byte 4, and one by a register
    /// at its byte 12.
    fn image(code: &mut Vec<u8>) -> Image<'_> {
        let names = ["last", "middle", "first", "other"];
        for index in 0..names.len() as i32 {
            let mut function = vec![0x90; 16];
            function[4] = 0xe8;
            let target = (index - 1) * 16 - (index * 16 + 9);
            function[5..9].copy_from_slice(&target.to_le_bytes());
            function[12..14].copy_from_slice(&[0xff, 0xd0]);
            code.extend(function);
        }
        let functions = names.iter().enumerate().map(|(index, name)| (0x1000 + 16 * index as u64, name.to_string()));
        let end = (0x1000 + code.len() as u64, String::new());
        Image { functions: functions.chain([end]).collect(), code: vec![(0x1000, code)] }
    }

    fn names(image: &Image<'_>, codes: &[(u64, bool)], all: bool) -> Vec<String> {
        let codes: Vec<Code> = codes.iter().map(|&(offset, is_fault)| Code { offset, is_fault }).collect();
        let frames = image.back_trace(&codes, all);
        frames.into_iter().map(|frame| format!("{}{}", frame.name, if frame.is_certain { "" } else { "?" })).collect()
    }

    #[test]
    fn a_chain_of_direct_calls_is_told_from_what_earlier_calls_left() {
        let mut code = Vec::new();
        let image = image(&mut code);
        // `last` faults; an address in the middle of a function, and one after a call of `first`, are left over.
        let codes = [(0x1003, true), (0x1017, false), (0x1039, false), (0x1019, false), (0x1029, false)];
        assert_eq!(names(&image, &codes, false), ["last", "middle", "first"]);
        assert_eq!(names(&image, &codes, true), ["last", "other?", "middle", "first"]);
    }

    #[test]
    fn calls_by_a_register_are_taken_where_no_direct_call_follows() {
        let mut code = Vec::new();
        let image = image(&mut code);
        assert_eq!(
            names(&image, &[(0x1003, true), (0x103e, false), (0x102e, false)], false),
            ["last", "other", "first"]
        );
        assert_eq!(names(&image, &[(0x1003, true), (0x103e, false), (0x1019, false)], false), ["last", "middle"]);
        assert_eq!(names(&image, &[(0x0, true), (0xffff_ffff_ffff_ffff, false), (0x0, false)], true), [""; 0]);
    }

    #[test]
    fn indirect_calls_of_all_forms_are_recognized() {
        let calls: [&[u8]; 8] = [
            &[0xff, 0xd0],
            &[0x41, 0xff, 0xd3],
            &[0xff, 0x10],
            &[0xff, 0x50, 0x18],
            &[0x41, 0xff, 0x54, 0x24, 0x18],
            &[0xff, 0x15, 1, 2, 3, 4],
            &[0xff, 0x90, 1, 2, 3, 4],
            &[0x42, 0xff, 0x94, 0xc8, 1, 2, 3, 4],
        ];
        for call in calls {
            assert!(is_indirect_call(call), "{call:x?}");
        }
        for other in [&[0xff_u8, 0xe0][..], &[0xff, 0x10, 0], &[0xff, 0x50], &[0xff], &[], &[0x90, 0xff, 0xd0]] {
            assert!(!is_indirect_call(other), "{other:x?}");
        }
    }
}
