//! Sets of registers, and the registers that a function may have.

use alloc::vec::Vec;

use regalloc2::{Function, MachineEnv, PReg, PRegSet, RegClass};

use crate::Malformed;
use crate::words::{Reader, Writer};

/// Classes of registers, by number.
pub const CLASSES: [RegClass; 3] = [RegClass::Int, RegClass::Float, RegClass::Vector];
/// Words of a set.
const SET_WORDS: usize = PReg::NUM_INDEX / 32;
/// Stands for no register.
const NONE: u32 = u32::MAX;

pub fn put_set(out: &mut Writer, set: PRegSet) {
    let mut words = [0u32; SET_WORDS];
    for register in set {
        words[register.index() / 32] |= 1 << (register.index() % 32);
    }
    words.iter().for_each(|word| out.put(*word));
}

pub fn set(input: &mut Reader<'_>) -> Result<PRegSet, Malformed> {
    let mut set = PRegSet::empty();
    for (place, word) in input.list(SET_WORDS, Ok)?.into_iter().enumerate() {
        for bit in (0..32).filter(|bit| word & (1 << bit) != 0) {
            set.add(register((place * 32 + bit) as u32)?);
        }
    }
    Ok(set)
}

/// The register with this index.
pub fn register(index: u32) -> Result<PReg, Malformed> {
    let index = index as usize;
    if index >= CLASSES.len() << PReg::MAX_BITS {
        return Err(Malformed("it names a register that there is not"));
    }
    Ok(PReg::from_index(index))
}

pub fn put_environment(out: &mut Writer, env: &MachineEnv) -> Result<(), Malformed> {
    if !env.fixed_stack_slots.is_empty() {
        return Err(Malformed("its machine has stack slots among the registers"));
    }
    for set in env.preferred_regs_by_class.iter().chain(&env.non_preferred_regs_by_class) {
        put_set(out, *set);
    }
    for scratch in env.scratch_by_class {
        out.put(scratch.map_or(NONE, |register| register.index() as u32));
    }
    Ok(())
}

pub fn environment(input: &mut Reader<'_>) -> Result<MachineEnv, Malformed> {
    let mut sets = [PRegSet::empty(); 6];
    for place in &mut sets {
        *place = set(input)?;
    }
    let mut scratch_by_class = [None; 3];
    for (place, class) in scratch_by_class.iter_mut().zip(CLASSES) {
        *place = match input.word()? {
            NONE => None,
            index => Some(register(index).and_then(|register| {
                if register.class() == class {
                    Ok(register)
                } else {
                    Err(Malformed("a scratch register of another class"))
                }
            })?),
        };
    }
    let [first, second, third, fourth, fifth, sixth] = sets;
    Ok(MachineEnv {
        preferred_regs_by_class: [first, second, third],
        non_preferred_regs_by_class: [fourth, fifth, sixth],
        scratch_by_class,
        fixed_stack_slots: Vec::new(),
    })
}

/// All registers that code may be given.
pub fn usable(env: &MachineEnv) -> PRegSet {
    let mut all = PRegSet::from(env);
    for scratch in env.scratch_by_class.into_iter().flatten() {
        all.add(scratch);
    }
    all
}

/// How many slots a spilled value of a class takes. Of a class without registers there is none, and a code generator
/// need not have a number for it.
pub fn spill_slots(function: &dyn Function, usable: PRegSet, class: RegClass) -> Option<usize> {
    (!usable.is_empty(class)).then(|| function.spillslot_size(class))
}
