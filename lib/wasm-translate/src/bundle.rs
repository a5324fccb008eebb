//! Puts compiled modules together, so that one image has several.
//!
//! Their code stays apart: each refers to its own part of the arrays beside the code, and has its own record. What they
//! exchange goes through the host.

use alloc::vec::Vec;

use wasm_record::layout::Bounds;
use wasm_record::{Function, Malformed, Part, Record};

use crate::translated::{ALIGNMENT, CONSTANT_ALIGNMENT, Relocation, TRAP, TableEntry, Target, Translated, Trap};

/// Size of an address in the array of the functions' addresses.
const FUNCTION_BYTES: usize = 8;
/// Size of a number in the array of the functions' signatures.
const SIGNATURE_BYTES: usize = 4;

/// Makes one of several modules, all compiled with the same bounds. Its record names all of their functions, and has
/// theirs as its parts; `attachment` is put into it for the template.
///
/// # Errors
/// A record is malformed, which one that [`translate`](crate::translate) wrote is not.
pub fn bundle(modules: &[Translated], attachment: &[u8]) -> Result<Translated, Malformed> {
    let bounds = modules.first().map_or(Bounds::default(), |module| module.bounds);
    let mut out = Translated { bounds, ..Translated::default() };
    let mut record = Record { attachment, ..Record::default() };
    for module in modules {
        let own = Record::parse(&module.record)?;
        let (functions, entries) = (out.functions.len() as u32, out.entries.len() as u32);
        let signature = |function: &Function<'_>| entries + function.signature;
        record.functions.extend(own.functions.iter().map(|one| Function { signature: signature(one), name: one.name }));
        record.signatures.extend(own.signatures);
        record.parts.push(Part { functions, entries, record: &module.record });
        append(&mut out, module);
    }
    out.record = record.encode();
    Ok(out)
}

fn append(out: &mut Translated, module: &Translated) {
    out.text.resize(out.text.len().next_multiple_of(ALIGNMENT), TRAP);
    out.constants.resize(out.constants.len().next_multiple_of(CONSTANT_ALIGNMENT), 0);
    let (text, constants) = (out.text.len() as u32, out.constants.len() as u32);
    let addend = |target: Target| match target {
        Target::FunctionTable => out.functions.len() * FUNCTION_BYTES,
        Target::SignatureTable => out.signatures.len() * SIGNATURE_BYTES,
        Target::Constants | Target::SealedTables => out.constants.len(),
        Target::Host | Target::Builtin => 0,
    };
    let relocations: Vec<Relocation> = module
        .relocations
        .iter()
        .map(|one| Relocation {
            offset: text + one.offset,
            target: one.target,
            addend: one.addend + addend(one.target) as i64,
        })
        .collect();
    out.relocations.extend(relocations);
    out.text.extend_from_slice(&module.text);
    out.constants.extend_from_slice(&module.constants);
    out.table_entries.extend(module.table_entries.iter().map(|entry| TableEntry {
        offset: constants + entry.offset,
        table: constants + entry.table,
        target: text + entry.target,
    }));
    out.functions.extend(module.functions.iter().map(|start| text + start));
    out.entries.extend(module.entries.iter().map(|start| text + start));
    out.signatures.extend_from_slice(&module.signatures);
    out.traps.extend(module.traps.iter().map(|trap| Trap { offset: text + trap.offset, kind: trap.kind }));
}
