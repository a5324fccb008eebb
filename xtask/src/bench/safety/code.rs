//! Decoded machine code: its instructions by address, and where control goes from one to the next.
//!
//! Deliberately not here: which of it is a check (`checks`).

use std::collections::BTreeSet;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, OpKind};

/// The instructions of a section.
pub struct Code {
    instructions: Vec<Instruction>,
}

impl Code {
    /// Decodes the bytes of a section that begins at this address.
    pub fn decode(bytes: &[u8], address: u64) -> Code {
        let decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
        Code { instructions: decoder.into_iter().collect() }
    }

    /// Returns the instruction with this index.
    pub fn get(&self, index: usize) -> Option<&Instruction> {
        self.instructions.get(index)
    }

    /// Returns the index of the instruction that begins at the address.
    pub fn index(&self, address: u64) -> Option<usize> {
        self.instructions.binary_search_by_key(&address, Instruction::ip).ok()
    }

    /// Returns the instructions with their indices.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &Instruction)> {
        self.instructions.iter().enumerate()
    }

    /// Returns the targets of all direct jumps and calls.
    pub fn targets(&self) -> BTreeSet<u64> {
        self.instructions.iter().filter_map(target).collect()
    }
}

/// Returns the target of a direct jump or call.
pub fn target(instruction: &Instruction) -> Option<u64> {
    (instruction.op0_kind() == OpKind::NearBranch64).then(|| instruction.near_branch64())
}

/// Whether the instruction jumps by the flags; not `loop` and `jrcxz`, which count.
pub fn is_conditional_jump(instruction: &Instruction) -> bool {
    instruction.flow_control() == FlowControl::ConditionalBranch && instruction.is_jcc_short_or_near()
}
