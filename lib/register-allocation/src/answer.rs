//! The allocation of a function's registers: a place for each operand, and the moves between instructions.
//!
//! The code generator trusts an allocation's numbers, so an answer becomes one only if each place is of the kind that its
//! operand takes, and each move is one that there is an instruction for. Whether it is *right*, so that each use gets its
//! value, is what [`Request::prove`](crate::Request::prove) decides; a wrong one makes wrong code, not unsafe code.

use alloc::vec::Vec;

use regalloc2::{
    Allocation, AllocationKind, Edit, Function, Inst, InstPosition, MachineEnv, Operand, OperandConstraint,
    OperandKind, OperandPos, Output, PRegSet, ProgPoint, RegClass, SpillSlot,
};

use crate::Malformed;
use crate::registers::{self, register};
use crate::words::{Reader, Writer};

/// First word of an answer.
const MAGIC: u32 = u32::from_le_bytes(*b"RAL1");
/// Spill slots beyond two for each value: those in which moves pass.
const PASSING_SLOTS: usize = 64;

/// Kinds of places, above the 28 bits of their index.
const KIND_SHIFT: u32 = 29;
const INDEX: u32 = (1 << 28) - 1;

/// Writes an allocation.
pub fn encode(output: &Output) -> Vec<u8> {
    let mut out = Writer(Vec::with_capacity(16 + 12 * output.edits.len() + 4 * output.allocs.len()));
    out.put(MAGIC);
    out.count(output.num_spillslots);
    out.count(output.edits.len());
    for (point, Edit::Move { from, to }) in &output.edits {
        out.put(point.to_index());
        out.put(from.bits());
        out.put(to.bits());
    }
    output.allocs.iter().for_each(|place| out.put(place.bits()));
    out.0
}

/// Reads an allocation of a function.
///
/// # Errors
/// It does not fit the function: it ends too early or too late, names what there is not, or has an operand where its
/// instruction cannot take it.
pub fn decode(bytes: &[u8], function: &dyn Function, env: &MachineEnv) -> Result<Output, Malformed> {
    let mut input = Reader::new(bytes);
    if input.word()? != MAGIC {
        return Err(Malformed("it is no allocation"));
    }
    let slots = input.word()? as usize;
    if slots > 2 * function.num_vregs() + PASSING_SLOTS {
        return Err(Malformed("it has more stack slots than the function has values"));
    }
    let rules = Rules { function, usable: registers::usable(env), slots };
    let mut output = Output { num_spillslots: slots, ..Output::default() };
    let count = input.count()?;
    let mut latest = 0;
    for _ in 0..count {
        let point = input.word()?;
        if point < latest || (point >> 1) as usize >= function.num_insts() {
            return Err(Malformed("a move of it is nowhere in the function"));
        }
        latest = point;
        let (from, to) = (rules.place(input.word()?)?, rules.place(input.word()?)?);
        rules.check_move(from, to)?;
        output.edits.push((at(point), Edit::Move { from, to }));
    }
    output.inst_alloc_offsets.reserve(function.num_insts());
    for instruction in (0..function.num_insts()).map(Inst::new) {
        let start = output.allocs.len();
        output.inst_alloc_offsets.push(start as u32);
        let operands = function.inst_operands(instruction);
        for _ in operands {
            output.allocs.push(rules.place(input.word()?)?);
        }
        let places = &output.allocs[start..];
        operands.iter().zip(places).try_for_each(|(operand, place)| rules.check_operand(*operand, *place, places))?;
        check_apart(operands, places)?;
    }
    input.end()?;
    Ok(output)
}

fn at(point: u32) -> ProgPoint {
    let position = if point & 1 == 0 { InstPosition::Before } else { InstPosition::After };
    ProgPoint::new(Inst::new((point >> 1) as usize), position)
}

/// What an instruction writes has a register of its own among what it writes, and among what it reads then or later: code
/// of several instructions, for which there are temporary registers, relies on that.
fn check_apart(operands: &[Operand], places: &[Allocation]) -> Result<(), Malformed> {
    let (mut written, mut written_early) = (PRegSet::empty(), PRegSet::empty());
    let (mut read, mut read_late) = (PRegSet::empty(), PRegSet::empty());
    for (operand, place) in operands.iter().zip(places) {
        let Some(register) = place.as_reg().filter(|_| operand.as_fixed_nonallocatable().is_none()) else { continue };
        let is_early = operand.pos() == OperandPos::Early;
        match operand.kind() {
            OperandKind::Def if written.contains(register) => return Err(SHARED),
            OperandKind::Def => {
                written.add(register);
                if is_early {
                    written_early.add(register);
                }
            }
            OperandKind::Use => {
                read.add(register);
                if !is_early {
                    read_late.add(register);
                }
            }
        }
    }
    let is_shared = (written_early & read) != PRegSet::empty() || (written & read_late) != PRegSet::empty();
    if is_shared { Err(SHARED) } else { Ok(()) }
}

const SHARED: Malformed =
    Malformed("an instruction writes two values to one register, or one over another that it reads");

struct Rules<'a> {
    function: &'a dyn Function,
    usable: PRegSet,
    slots: usize,
}

impl Rules<'_> {
    fn place(&self, bits: u32) -> Result<Allocation, Malformed> {
        let index = bits & INDEX;
        match bits >> KIND_SHIFT {
            kind if kind == AllocationKind::Reg as u32 && bits & (INDEX + 1) == 0 => {
                Ok(Allocation::reg(register(index)?))
            }
            kind if kind == AllocationKind::Stack as u32
                && (index as usize) < self.slots
                && bits & (INDEX + 1) == 0 =>
            {
                Ok(Allocation::stack(SpillSlot::new(index as usize)))
            }
            _ => Err(Malformed("it names a place that there is not")),
        }
    }

    /// Whether a value of the class has room in the place: a register that code may be given, or all slots that it takes.
    fn has_room(&self, class: RegClass, place: Allocation) -> bool {
        let Some(size) = registers::spill_slots(self.function, self.usable, class) else { return false };
        match (place.as_reg(), place.as_stack()) {
            (Some(register), _) => register.class() == class && self.usable.contains(register),
            (_, Some(slot)) if self.function.multi_spillslot_named_by_last_slot() => slot.index() + 1 >= size,
            (_, Some(slot)) => slot.index() + size <= self.slots,
            _ => false,
        }
    }

    fn check_move(&self, from: Allocation, to: Allocation) -> Result<(), Malformed> {
        let class = from.as_reg().or(to.as_reg()).map(|register| register.class());
        let class = class.ok_or(Malformed("a move of it is from the stack to the stack"))?;
        if self.has_room(class, from) && self.has_room(class, to) {
            Ok(())
        } else {
            Err(Malformed("a move of it is between places that do not match"))
        }
    }

    fn check_operand(&self, operand: Operand, place: Allocation, all: &[Allocation]) -> Result<(), Malformed> {
        let in_usable = self.has_room(operand.class(), place);
        let fits = match operand.constraint() {
            OperandConstraint::Any => in_usable,
            OperandConstraint::Reg => in_usable && place.is_reg(),
            OperandConstraint::Stack => in_usable && place.is_stack(),
            OperandConstraint::FixedReg(register) => place.as_reg() == Some(register),
            OperandConstraint::Reuse(index) => in_usable && all.get(index) == Some(&place),
            OperandConstraint::Limit(limit) => {
                in_usable && place.as_reg().is_some_and(|register| register.hw_enc() < limit)
            }
        };
        if fits { Ok(()) } else { Err(Malformed("an operand of it is where its instruction cannot take it")) }
    }
}
