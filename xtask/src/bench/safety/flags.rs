//! Liveness of the processor's flags, for comparisons whose jump is gone.
//!
//! Deliberately not here: anything but straight-line code; what is beyond it counts as a use.

use std::collections::BTreeMap;

use iced_x86::{FlowControl, Instruction, Mnemonic, RflagsBits};

use super::checks::Edit;
use super::code::{Code, target};

/// Flags that a comparison sets.
const COMPARED: u32 =
    RflagsBits::OF | RflagsBits::SF | RflagsBits::ZF | RflagsBits::AF | RflagsBits::CF | RflagsBits::PF;
/// Maximum instructions followed.
const STEPS: usize = 64;

/// Returns the index of the comparison whose flags the jump at `jump` uses, if it does nothing else.
pub fn comparison_before(code: &Code, jump: usize) -> Option<usize> {
    for index in (jump.saturating_sub(STEPS)..jump).rev() {
        let instruction = code.get(index)?;
        if instruction.flow_control() != FlowControl::Next {
            return None;
        }
        if instruction.rflags_modified() & COMPARED != 0 {
            return matches!(instruction.mnemonic(), Mnemonic::Cmp | Mnemonic::Test).then_some(index);
        }
    }
    None
}

/// Whether nothing reads the flags that the instruction before `start` sets, once the edits are made.
pub fn are_dead(code: &Code, start: usize, edits: &BTreeMap<usize, Edit>) -> bool {
    let mut live = COMPARED;
    let mut index = start;
    for _ in 0..STEPS {
        let Some(instruction) = code.get(index) else { return false };
        let follow = match edits.get(&index) {
            Some(Edit::Nothing) => {
                index += 1;
                continue;
            }
            Some(Edit::Always) => true,
            None => instruction.flow_control() == FlowControl::UnconditionalBranch,
        };
        if follow {
            let Some(next) = target(instruction).and_then(|target| code.index(target)) else { return false };
            index = next;
            continue;
        }
        if instruction.rflags_read() & live != 0 {
            return false;
        }
        match instruction.flow_control() {
            FlowControl::Next => {}
            // Neither a caller nor a function called expects flags, by the calling convention.
            FlowControl::Call | FlowControl::IndirectCall | FlowControl::Return | FlowControl::Exception => {
                return true;
            }
            _ => return false,
        }
        if always_sets(instruction) {
            live &= !instruction.rflags_modified();
        }
        if live == 0 {
            return true;
        }
        index += 1;
    }
    false
}

/// Whether an instruction sets the flags that it modifies whatever its operands: not shifts and rotations, which set
/// none if their count is 0, nor repeated string instructions.
fn always_sets(instruction: &Instruction) -> bool {
    let shifts = matches!(
        instruction.mnemonic(),
        Mnemonic::Shl
            | Mnemonic::Sal
            | Mnemonic::Shr
            | Mnemonic::Sar
            | Mnemonic::Shld
            | Mnemonic::Shrd
            | Mnemonic::Rol
            | Mnemonic::Ror
            | Mnemonic::Rcl
            | Mnemonic::Rcr
    );
    !shifts && !instruction.has_rep_prefix() && !instruction.has_repne_prefix()
}
