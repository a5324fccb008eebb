//! Moves constants and jump tables out of a compiled function, so that its text holds instructions alone.
//!
//! Cranelift puts a jump table behind the jump that uses it, and constants behind the function. Both are found by the
//! references to them, which are relative to the instruction pointer. A table's bytes are replaced by `int3`.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use cranelift_codegen::CompiledCode;
use cranelift_codegen::FinalizedRelocTarget;
use cranelift_codegen::binemit::Reloc;
use cranelift_codegen::ir::{ExternalName, Function, TrapCode};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, OpKind};

use crate::backend::{FUNCTIONS, Symbol};
use crate::frame::Frame;
use crate::function::traps;
use crate::translated::{CONSTANT_ALIGNMENT, Relocation, TableEntry, Target, Trap, TrapKind};
use crate::{Error, unsupported};

const TRAP: u8 = 0xCC;

/// A function in parts.
#[derive(Default)]
pub struct Separated {
    pub text: Vec<u8>,
    pub constants: Vec<u8>,
    /// Fields with calls of the module's functions: offset, function, addend.
    pub calls: Vec<(u32, u32, i64)>,
    pub relocations: Vec<Relocation>,
    pub table_entries: Vec<TableEntry>,
    pub traps: Vec<Trap>,
}

/// A reference to data within the function: where its field is, the end of its instruction, what it refers to.
struct Reference {
    field: u32,
    end: u32,
    target: u32,
}

/// Takes a compiled function apart.
pub fn separate(function: &Function, code: &CompiledCode) -> Result<Separated, Error> {
    let bytes = code.buffer.data();
    let mut out = Separated::default();
    let mut blocks: Vec<u32> = code.bb_starts.clone();
    blocks.sort_unstable();
    let mut relocated = Vec::new();
    for relocation in code.buffer.relocs() {
        relocated.push(relocation.offset);
        let FinalizedRelocTarget::ExternalName(ExternalName::User(name)) = &relocation.target else {
            return Err(unsupported(&relocation.target));
        };
        if !matches!(relocation.kind, Reloc::X86PCRel4 | Reloc::X86CallPCRel4) {
            return Err(unsupported(relocation.kind));
        }
        let name = &function.params.user_named_funcs()[*name];
        let (offset, addend) = (relocation.offset, relocation.addend);
        if name.namespace == FUNCTIONS {
            out.calls.push((offset, name.index, addend));
        } else {
            let target = target(name.index).ok_or_else(|| unsupported(name))?;
            out.relocations.push(Relocation { offset, target, addend });
        }
    }
    let scan = scan(bytes, &blocks, &relocated)?;
    out.text = bytes[..scan.end as usize].to_vec();
    scan.frame.rewrite(&mut out.text)?;
    let moved = move_constants(&mut out, bytes, &scan);
    for reference in &scan.references {
        let new = match scan.tables.get(&reference.target) {
            Some(&end) => move_table(&mut out, bytes, reference.target, end),
            None if reference.target >= scan.end => reference.target.wrapping_add(moved),
            None => continue,
        };
        let field = reference.field as usize;
        out.text[field..field + 4].fill(0);
        let addend = i64::from(new) - i64::from(reference.end - reference.field);
        out.relocations.push(Relocation { offset: reference.field, target: Target::Constants, addend });
    }
    for (&start, &end) in &scan.tables {
        out.text[start as usize..end as usize].fill(TRAP);
    }
    for trap in code.buffer.traps() {
        if let Some(kind) = kind(trap.code) {
            out.traps.push(Trap { offset: trap.offset, kind });
        }
    }
    out.traps.sort_by_key(|trap| trap.offset);
    Ok(out)
}

fn target(symbol: u32) -> Option<Target> {
    [
        (Symbol::Host, Target::Host),
        (Symbol::Builtin, Target::Builtin),
        (Symbol::FunctionTable, Target::FunctionTable),
        (Symbol::SignatureTable, Target::SignatureTable),
        (Symbol::SealedTables, Target::SealedTables),
    ]
    .into_iter()
    .find_map(|(one, target)| (one as u32 == symbol).then_some(target))
}

fn kind(code: TrapCode) -> Option<TrapKind> {
    Some(match code {
        TrapCode::HEAP_OUT_OF_BOUNDS => TrapKind::MemoryBounds,
        TrapCode::INTEGER_OVERFLOW => TrapKind::IntegerOverflow,
        TrapCode::INTEGER_DIVISION_BY_ZERO => TrapKind::DivisionByZero,
        TrapCode::BAD_CONVERSION_TO_INTEGER => TrapKind::Conversion,
        traps::UNREACHABLE => TrapKind::Unreachable,
        traps::TABLE_BOUNDS => TrapKind::TableBounds,
        traps::UNDEFINED_ELEMENT => TrapKind::UndefinedElement,
        traps::NULL_CALL => TrapKind::NullCall,
        traps::SIGNATURE => TrapKind::Signature,
        traps::UNCAUGHT => TrapKind::Uncaught,
        _ => return None,
    })
}

struct Scan {
    references: Vec<Reference>,
    /// Start and end of each jump table.
    tables: BTreeMap<u32, u32>,
    /// Where the instructions end.
    end: u32,
    frame: Frame,
}

/// Decodes the function from its start to its constants.
fn scan(bytes: &[u8], blocks: &[u32], relocated: &[u32]) -> Result<Scan, Error> {
    let mut scan =
        Scan { references: Vec::new(), tables: BTreeMap::new(), end: bytes.len() as u32, frame: Frame::default() };
    let mut at = 0u32;
    let mut decoder = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    while at < scan.end {
        if decoder.set_position(at as usize).is_err() {
            break;
        }
        decoder.set_ip(u64::from(at));
        decoder.decode_out(&mut instruction);
        if instruction.is_invalid() {
            return Err(Error::Backend(alloc::format!("bytes that are no instruction, at {at:#x}")));
        }
        let next = at + instruction.len() as u32;
        scan.frame.see(&instruction, at, next);
        if instruction.is_ip_rel_memory_operand() {
            let field = at + decoder.get_constant_offsets(&instruction).displacement_offset() as u32;
            let target = instruction.ip_rel_memory_address() as u32;
            if !relocated.contains(&field) {
                scan.references.push(Reference { field, end: next, target });
            }
        }
        at = next;
        let is_table = |reference: &Reference| reference.target == next;
        if instruction.flow_control() == FlowControl::IndirectBranch
            && instruction.op0_kind() == OpKind::Register
            && scan.references.iter().any(is_table)
        {
            let end = table_end(bytes, next, blocks);
            scan.tables.insert(next, end);
            at = end;
        }
        if ends(&instruction) && is_filler_up_to_constants(bytes, at, &scan) {
            scan.end = at;
        }
    }
    Ok(scan)
}

/// The end of a jump table: at the latest where a block begins, and before the first entry that leads to no block.
fn table_end(bytes: &[u8], start: u32, blocks: &[u32]) -> u32 {
    let latest = blocks.get(blocks.partition_point(|&block| block < start)).copied().unwrap_or(bytes.len() as u32);
    let leads_to_block = |entry: &[u8]| {
        let entry = entry.first_chunk().map_or(0, |entry| i32::from_le_bytes(*entry));
        blocks.binary_search(&start.wrapping_add_signed(entry)).is_ok()
    };
    let entries = bytes.get(start as usize..latest as usize).unwrap_or(&[]).chunks_exact(4);
    start + 4 * entries.take_while(|entry| leads_to_block(entry)).count() as u32
}

fn ends(instruction: &Instruction) -> bool {
    use FlowControl::{Exception, IndirectBranch, Return, UnconditionalBranch};
    matches!(instruction.flow_control(), UnconditionalBranch | IndirectBranch | Return | Exception)
        || instruction.mnemonic() == iced_x86::Mnemonic::Ud2
}

/// Whether only zeros lie between here and the first constant.
fn is_filler_up_to_constants(bytes: &[u8], at: u32, scan: &Scan) -> bool {
    let constants = scan.references.iter().map(|reference| reference.target);
    let first = constants.filter(|&target| target >= at && !scan.tables.contains_key(&target)).min();
    first.is_some_and(|first| first - at < 64 && bytes[at as usize..first as usize].iter().all(|&byte| byte == 0))
}

fn move_table(out: &mut Separated, bytes: &[u8], start: u32, end: u32) -> u32 {
    out.constants.resize(out.constants.len().next_multiple_of(4), 0);
    let table = out.constants.len() as u32;
    for (number, entry) in bytes[start as usize..end as usize].chunks_exact(4).enumerate() {
        let entry = entry.first_chunk().map_or(0, |entry| i32::from_le_bytes(*entry));
        let target = start.wrapping_add_signed(entry);
        out.table_entries.push(TableEntry { offset: table + 4 * number as u32, table, target });
        out.constants.extend_from_slice(&[0; 4]);
    }
    table
}

/// Moves all constants, as they lie: one may be a table that is indexed. Returns what is to be added to their places.
fn move_constants(out: &mut Separated, bytes: &[u8], scan: &Scan) -> u32 {
    let is_constant = |target: &u32| *target >= scan.end && !scan.tables.contains_key(target);
    let targets = scan.references.iter().map(|reference| reference.target);
    let Some(first) = targets.filter(is_constant).min() else { return 0 };
    // They are aligned in the function, which is aligned as these are.
    let start = out.constants.len().next_multiple_of(CONSTANT_ALIGNMENT) + first as usize % CONSTANT_ALIGNMENT;
    out.constants.resize(start, 0);
    out.constants.extend_from_slice(bytes.get(first as usize..).unwrap_or(&[]));
    (start as u32).wrapping_sub(first)
}
