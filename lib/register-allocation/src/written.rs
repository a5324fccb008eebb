//! What an allocator has to know of a function, as words: its blocks, and the operands of its instructions.

use alloc::vec::Vec;

use regalloc2::{Algorithm, Block, Function, Inst, MachineEnv, PRegSet, RegallocOptions, VReg};

use crate::Malformed;
use crate::registers::{self, CLASSES};
use crate::words::Writer;

/// First word of a function.
pub const MAGIC: u32 = u32::from_le_bytes(*b"RFN1");

/// Facts about a function, as bits.
pub const MULTIPLE_DEFINITIONS: u32 = 1;
pub const NAMED_BY_LAST_SLOT: u32 = 2;
pub const SINGLE_PASS: u32 = 4;

/// An instruction's word: the number of its operands, and facts about it.
pub const OPERANDS: u32 = 0xFFFF;
pub const RETURNS: u32 = 1 << 16;
pub const BRANCHES: u32 = 1 << 17;
pub const CLOBBERS: u32 = 1 << 18;

/// Writes a function.
///
/// # Errors
/// It has what cannot be written: labels for a debugger, stack slots among its registers, more than 65,535 operands of an
/// instruction.
pub fn encode(function: &dyn Function, env: &MachineEnv, options: &RegallocOptions) -> Result<Vec<u8>, Malformed> {
    if !function.debug_value_labels().is_empty() {
        return Err(Malformed("it has labels for a debugger"));
    }
    let mut out = Writer(Vec::with_capacity(1024 + 16 * function.num_insts()));
    out.put(MAGIC);
    let fact = |holds: bool, bit: u32| if holds { bit } else { 0 };
    out.put(
        fact(function.allow_multiple_vreg_defs(), MULTIPLE_DEFINITIONS)
            | fact(function.multi_spillslot_named_by_last_slot(), NAMED_BY_LAST_SLOT)
            | fact(matches!(options.algorithm, Algorithm::Fastalloc), SINGLE_PASS),
    );
    registers::put_environment(&mut out, env)?;
    let usable = registers::usable(env);
    CLASSES.iter().for_each(|class| out.count(registers::spill_slots(function, usable, *class).unwrap_or(1)));
    out.count(function.num_vregs());
    put_instructions(&mut out, function)?;
    out.count(function.num_blocks());
    out.put(function.entry_block().raw_u32());
    for block in (0..function.num_blocks()).map(Block::new) {
        put_block(&mut out, function, block);
    }
    Ok(out.0)
}

fn put_instructions(out: &mut Writer, function: &dyn Function) -> Result<(), Malformed> {
    let all = || (0..function.num_insts()).map(Inst::new);
    // Most instructions that clobber registers, calls, clobber the same ones.
    let mut sets: Vec<PRegSet> = Vec::new();
    let mut clobbering = Vec::new();
    out.count(function.num_insts());
    for instruction in all() {
        let operands = function.inst_operands(instruction).len() as u32;
        if operands > OPERANDS {
            return Err(Malformed("an instruction of it has too many operands"));
        }
        let mut word = operands;
        if function.is_ret(instruction) {
            word |= RETURNS;
        }
        if function.is_branch(instruction) {
            word |= BRANCHES;
        }
        let clobbers = function.inst_clobbers(instruction);
        if clobbers != PRegSet::empty() {
            word |= CLOBBERS;
            let known = sets.iter().position(|set| *set == clobbers);
            clobbering.push(known.unwrap_or(sets.len()));
            if known.is_none() {
                sets.push(clobbers);
            }
        }
        out.put(word);
    }
    for instruction in all() {
        function.inst_operands(instruction).iter().for_each(|operand| out.put(operand.bits()));
    }
    out.count(sets.len());
    sets.iter().for_each(|set| registers::put_set(out, *set));
    clobbering.iter().for_each(|set| out.count(*set));
    Ok(())
}

fn put_block(out: &mut Writer, function: &dyn Function, block: Block) {
    out.count(function.block_insns(block).len());
    let (successors, predecessors) = (function.block_succs(block), function.block_preds(block));
    out.count(successors.len());
    successors.iter().for_each(|one| out.put(one.raw_u32()));
    out.count(predecessors.len());
    predecessors.iter().for_each(|one| out.put(one.raw_u32()));
    put_registers(out, function.block_params(block));
    let last = function.block_insns(block).last();
    if function.is_branch(last) {
        (0..successors.len()).for_each(|place| put_registers(out, function.branch_blockparams(block, last, place)));
    }
}

fn put_registers(out: &mut Writer, registers: &[VReg]) {
    out.count(registers.len());
    registers.iter().for_each(|register| out.count(register.bits()));
}
