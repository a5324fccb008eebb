//! Frames of more than a page, whose stack pointer may move by no more than a page at once.
//!
//! Cranelift's prologue of a large frame moves the stack pointer page by page, writes to each, moves it back by all of them,
//! and then down by the frame's size in one step, which an image may not contain. The last two are made one, of the
//! difference. Deliberately not here: smaller frames, which are left as they are.

use alloc::format;
use core::ops::Range;

use iced_x86::{Instruction, Mnemonic, OpKind, Register};

use crate::Error;

/// What an image may move the stack pointer by at once.
const MAX_STEP_BYTES: i64 = 4096;
/// `add rsp` and `sub rsp` of a number of 32 bits, without it.
const ADD: [u8; 3] = [0x48, 0x81, 0xC4];
const SUBTRACT: [u8; 3] = [0x48, 0x81, 0xEC];
/// No operations of seven bytes and of four.
const NOP_7: [u8; 7] = [0x0F, 0x1F, 0x80, 0, 0, 0, 0];
const NOP_4: [u8; 4] = [0x0F, 0x1F, 0x40, 0];

/// What is known of a function's frame.
#[derive(Debug, Default)]
pub struct Frame {
    /// The end of an addition to the stack pointer, where it is, and its number.
    raised: Option<(u32, u32, i64)>,
    /// Instructions to be made one, and what they add to the stack pointer.
    merged: Option<(Range<u32>, i64)>,
    /// A step that is too large.
    too_large: Option<i64>,
}

impl Frame {
    /// Looks at an instruction.
    pub fn see(&mut self, instruction: &Instruction, start: u32, end: u32) {
        let raised = self.raised.take().filter(|(before, ..)| *before == start);
        match step(instruction) {
            Some(step) if step > 0 => self.raised = Some((end, start, step)),
            Some(step) if -step > MAX_STEP_BYTES => match raised {
                Some((_, first, raised)) if self.merged.is_none() => self.merged = Some((first..end, raised + step)),
                _ => self.too_large = Some(-step),
            },
            _ => {}
        }
    }

    /// Makes the steps one.
    pub fn rewrite(&self, text: &mut [u8]) -> Result<(), Error> {
        let merged = self.merged.as_ref().filter(|(_, by)| by.abs() <= MAX_STEP_BYTES);
        match (merged, self.too_large) {
            (None, None) if self.merged.is_none() => Ok(()),
            (Some((range, by)), None) => {
                let place = text.get_mut(range.start as usize..range.end as usize);
                place.and_then(|place| replace(place, *by)).ok_or_else(|| Error::Backend("a damaged prologue".into()))
            }
            (_, size) => Err(Error::Backend(format!(
                "a frame of {} bytes, which is entered in another way than in steps of a page",
                size.unwrap_or_default()
            ))),
        }
    }
}

/// What an instruction adds to the stack pointer.
fn step(instruction: &Instruction) -> Option<i64> {
    let is_step = instruction.op0_kind() == OpKind::Register
        && instruction.op0_register() == Register::RSP
        && matches!(instruction.op1_kind(), OpKind::Immediate8to64 | OpKind::Immediate32to64);
    match instruction.mnemonic() {
        Mnemonic::Add if is_step => Some(instruction.immediate(1) as i64),
        Mnemonic::Sub if is_step => (instruction.immediate(1) as i64).checked_neg(),
        _ => None,
    }
}

/// Writes one step in the place of two; `None` if there is no room for it.
fn replace(place: &mut [u8], by: i64) -> Option<()> {
    let (first, rest) = place.split_first_chunk_mut::<7>()?;
    if by == 0 {
        *first = NOP_7;
    } else {
        let number = i32::try_from(by.abs()).ok()?;
        first[..3].copy_from_slice(if by > 0 { &ADD } else { &SUBTRACT });
        first[3..].copy_from_slice(&number.to_le_bytes());
    }
    match rest.len() {
        7 => rest.copy_from_slice(&NOP_7),
        4 => rest.copy_from_slice(&NOP_4),
        _ => return None,
    }
    Some(())
}
