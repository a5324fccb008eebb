//! A function in the allocator's process: read, checked, and given to regalloc2.

use alloc::vec::Vec;
use core::ops::Range;

use regalloc2::{
    Algorithm, Block, Function, Inst, InstRange, MachineEnv, Operand, OperandConstraint, OperandKind, OperandPos,
    Output, PReg, PRegSet, RegAllocError, RegClass, RegallocOptions, VReg, checker::Checker, seam,
};

use crate::registers::{self, CLASSES};
use crate::words::Reader;
use crate::written::{
    BRANCHES, CLOBBERS, MAGIC, MULTIPLE_DEFINITIONS, NAMED_BY_LAST_SLOT, OPERANDS, RETURNS, SINGLE_PASS,
};
use crate::{Malformed, answer};

/// A function that was sent.
pub struct Request {
    env: MachineEnv,
    facts: u32,
    spill_slots: [usize; 3],
    registers: usize,
    /// A word for each.
    instructions: Vec<u32>,
    /// Where the operands of each begin, and where those of the last end.
    starts: Vec<u32>,
    operands: Vec<Operand>,
    /// The registers that instructions clobber, by the index of the instruction.
    clobbers: Vec<(u32, PRegSet)>,
    blocks: Vec<BlockFacts>,
    entry: Block,
}

struct BlockFacts {
    instructions: Range<usize>,
    successors: Vec<Block>,
    predecessors: Vec<Block>,
    parameters: Vec<VReg>,
    /// What its last instruction passes to each successor.
    passed: Vec<Vec<VReg>>,
}

impl Request {
    /// Reads a function.
    ///
    /// # Errors
    /// The bytes are none: what they name does not exist, or their blocks do not fit together.
    pub fn decode(bytes: &[u8]) -> Result<Request, Malformed> {
        let mut input = Reader::new(bytes);
        if input.word()? != MAGIC {
            return Err(Malformed("it is no function"));
        }
        let facts = input.word()?;
        let env = registers::environment(&mut input)?;
        let mut spill_slots = [0; 3];
        for size in &mut spill_slots {
            *size = input.word()? as usize;
        }
        if !spill_slots.iter().all(|size| (1..=8).contains(size)) {
            return Err(Malformed("a spilled register of it has no size that there is"));
        }
        let registers = input.word()? as usize;
        let count = input.count()?;
        let instructions = input.list(count, Ok)?;
        let mut starts = Vec::with_capacity(count + 1);
        let mut operands = 0u32;
        for word in &instructions {
            starts.push(operands);
            operands = operands.checked_add(word & OPERANDS).ok_or(Malformed("it has too many operands"))?;
        }
        starts.push(operands);
        let operands = input.list(operands as usize, |bits| operand(bits, registers))?;
        let clobbers = clobbers(&mut input, &instructions)?;
        let mut request = Request {
            env,
            facts,
            spill_slots,
            registers,
            instructions,
            starts,
            operands,
            clobbers,
            blocks: Vec::new(),
            entry: Block::new(0),
        };
        request.read_blocks(&mut input)?;
        input.end()?;
        request.check_blocks()?;
        Ok(request)
    }

    fn read_blocks(&mut self, input: &mut Reader<'_>) -> Result<(), Malformed> {
        let count = input.count()?;
        let block = |number: u32| {
            if (number as usize) < count {
                Ok(Block::new(number as usize))
            } else {
                Err(Malformed("it names a block that there is not"))
            }
        };
        self.entry = block(input.word()?)?;
        let mut start = 0usize;
        for _ in 0..count {
            let end = start.saturating_add(input.word()? as usize);
            if end == start || end > self.instructions.len() {
                return Err(Malformed("a block of it has no instructions"));
            }
            let successors = input.count()?;
            let successors = input.list(successors, block)?;
            let predecessors = input.count()?;
            let predecessors = input.list(predecessors, block)?;
            let parameters = self.read_registers(input)?;
            let branches = self.instructions[end - 1] & BRANCHES != 0;
            let passed = successors.iter().filter(|_| branches).map(|_| self.read_registers(input));
            let passed = passed.collect::<Result<Vec<_>, _>>()?;
            self.blocks.push(BlockFacts { instructions: start..end, successors, predecessors, parameters, passed });
            start = end;
        }
        if start != self.instructions.len() {
            return Err(Malformed("an instruction of it is in no block"));
        }
        Ok(())
    }

    fn read_registers(&self, input: &mut Reader<'_>) -> Result<Vec<VReg>, Malformed> {
        let count = input.count()?;
        input.list(count, |bits| virtual_register(bits, self.registers))
    }

    /// Edges are known at both ends, and pass as much as is taken; only the last instruction of a block leaves it.
    fn check_blocks(&self) -> Result<(), Malformed> {
        let (mut leaving, mut entering) = (Vec::new(), Vec::new());
        for (number, block) in self.blocks.iter().enumerate() {
            let number = number as u32;
            leaving.extend(block.successors.iter().map(|to| (number, to.raw_u32())));
            entering.extend(block.predecessors.iter().map(|from| (from.raw_u32(), number)));
            for (to, passed) in block.successors.iter().zip(&block.passed) {
                if self.blocks[to.index()].parameters.len() != passed.len() {
                    return Err(Malformed("a branch of it passes other values than its target takes"));
                }
            }
            let leaves = |word: &u32| word & (BRANCHES | RETURNS) != 0;
            let (last, before) = self.instructions[block.instructions.clone()].split_last().unwrap_or((&0, &[]));
            if !leaves(last) || before.iter().any(leaves) || block.passed.len() != block.successors.len() {
                return Err(Malformed("a block of it does not end with a branch"));
            }
        }
        leaving.sort_unstable();
        entering.sort_unstable();
        if leaving != entering || !self.blocks[self.entry.index()].parameters.is_empty() {
            return Err(Malformed("its blocks do not fit together"));
        }
        Ok(())
    }

    /// Allocates its registers.
    ///
    /// # Errors
    /// The function is not in the form that regalloc2 takes, or has more live values at once than registers.
    pub fn allocate(&self) -> Result<Output, RegAllocError> {
        let algorithm = if self.facts & SINGLE_PASS != 0 { Algorithm::Fastalloc } else { Algorithm::Ion };
        let options = RegallocOptions { algorithm, ..RegallocOptions::default() };
        seam::run_original(self, &self.env, &options)
    }

    /// Reads an allocation of this function, and checks that it fits.
    ///
    /// # Errors
    /// It does not.
    pub fn answer(&self, bytes: &[u8]) -> Result<Output, Malformed> {
        answer::decode(bytes, self, &self.env)
    }

    /// Proves, with regalloc2's checker, that with this allocation each use gets the value that it names.
    ///
    /// # Errors
    /// A use that does not, in the checker's words.
    pub fn prove(&self, output: &Output) -> Result<(), alloc::string::String> {
        let mut checker = Checker::new(self, &self.env);
        checker.prepare(output);
        checker.run().map_err(|errors| alloc::format!("{errors:?}"))
    }
}

/// Takes an operand's bits apart, as regalloc2 lays them out: constraint (7), kind, position, class (2), value (21).
fn operand(bits: u32, registers: usize) -> Result<Operand, Malformed> {
    let strange = Malformed("an operand of it is of no kind that there is");
    let class = *CLASSES.get((bits >> 21 & 3) as usize).ok_or(strange)?;
    let constraint = match bits >> 25 {
        fixed @ 64.. => OperandConstraint::FixedReg(PReg::new(fixed as usize - 64, class)),
        reuse @ 32.. => OperandConstraint::Reuse(reuse as usize - 32),
        limit @ 16..=22 => OperandConstraint::Limit(1 << (limit - 16)),
        0 => OperandConstraint::Any,
        1 => OperandConstraint::Reg,
        2 => OperandConstraint::Stack,
        _ => return Err(strange),
    };
    let kind = if bits >> 24 & 1 == 0 { OperandKind::Def } else { OperandKind::Use };
    let position = if bits >> 23 & 1 == 0 { OperandPos::Early } else { OperandPos::Late };
    let value = VReg::new(bits as usize & VReg::MAX, class);
    let operand = Operand::new(value, constraint, kind, position);
    if value.vreg() >= registers && operand.as_fixed_nonallocatable().is_none() {
        return Err(Malformed("it names a value that there is not"));
    }
    Ok(operand)
}

fn virtual_register(bits: u32, registers: usize) -> Result<VReg, Malformed> {
    if bits & 3 == 3 || (bits >> 2) as usize >= registers {
        return Err(Malformed("it names a value that there is not"));
    }
    Ok(VReg::from_bits(bits))
}

fn clobbers(input: &mut Reader<'_>, instructions: &[u32]) -> Result<Vec<(u32, PRegSet)>, Malformed> {
    let count = input.count()?;
    let sets = (0..count).map(|_| registers::set(input)).collect::<Result<Vec<_>, _>>()?;
    let clobbering = (0u32..).zip(instructions).filter(|(_, word)| *word & CLOBBERS != 0).map(|(index, _)| index);
    let set = |index: u32| {
        let set = sets.get(input.word()? as usize).ok_or(Malformed("it names a set that there is not"))?;
        Ok((index, *set))
    };
    clobbering.map(set).collect()
}

impl Function for Request {
    fn num_insts(&self) -> usize {
        self.instructions.len()
    }

    fn num_blocks(&self) -> usize {
        self.blocks.len()
    }

    fn entry_block(&self) -> Block {
        self.entry
    }

    fn block_insns(&self, block: Block) -> InstRange {
        let range = &self.blocks[block.index()].instructions;
        InstRange::new(Inst::new(range.start), Inst::new(range.end))
    }

    fn block_succs(&self, block: Block) -> &[Block] {
        &self.blocks[block.index()].successors
    }

    fn block_preds(&self, block: Block) -> &[Block] {
        &self.blocks[block.index()].predecessors
    }

    fn block_params(&self, block: Block) -> &[VReg] {
        &self.blocks[block.index()].parameters
    }

    fn is_ret(&self, insn: Inst) -> bool {
        self.instructions[insn.index()] & RETURNS != 0
    }

    fn is_branch(&self, insn: Inst) -> bool {
        self.instructions[insn.index()] & BRANCHES != 0
    }

    fn branch_blockparams(&self, block: Block, _: Inst, succ_idx: usize) -> &[VReg] {
        &self.blocks[block.index()].passed[succ_idx]
    }

    fn inst_operands(&self, insn: Inst) -> &[Operand] {
        let (start, end) = (self.starts[insn.index()], self.starts[insn.index() + 1]);
        &self.operands[start as usize..end as usize]
    }

    fn inst_clobbers(&self, insn: Inst) -> PRegSet {
        if self.instructions[insn.index()] & CLOBBERS == 0 {
            return PRegSet::empty();
        }
        let found = self.clobbers.binary_search_by_key(&insn.raw_u32(), |(index, _)| *index);
        found.map_or(PRegSet::empty(), |place| self.clobbers[place].1)
    }

    fn num_vregs(&self) -> usize {
        self.registers
    }

    fn spillslot_size(&self, regclass: RegClass) -> usize {
        self.spill_slots[regclass as usize]
    }

    fn multi_spillslot_named_by_last_slot(&self) -> bool {
        self.facts & NAMED_BY_LAST_SLOT != 0
    }

    fn allow_multiple_vreg_defs(&self) -> bool {
        self.facts & MULTIPLE_DEFINITIONS != 0
    }
}
