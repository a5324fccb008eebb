//! Compiled kernel entries: pushes on a caller's stack before the stack check.

use std::path::Path;

use elf::ElfBytes;
use elf::endian::LittleEndian;
use end_to_end::{bare_system, machine_program, target};
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, Register};

/// A fault on the guard page within this many bytes of an entry is the caller's (`MAX_PROLOGUE_BYTES`).
const PROLOGUE_BYTES: u64 = 48;
/// Maximum bytes decoded of an entry; the check is far earlier.
const DECODED_BYTES: usize = 256;
/// Offset of the stack limit in the kernel's block of a processor (`CPU_STACK_LIMIT`).
const STACK_LIMIT: u64 = 24;

#[test]
fn hosted_entries_check_the_stack_first() {
    check_entries(&machine_program());
}

#[test]
fn bare_entries_check_the_stack_first() {
    bare_system();
    check_entries(&target().join("x86_64-unknown-linux-gnu/release/singularity-x86_64"));
}

/// Checks each function of the ABI, and its measuring variant.
#[track_caller]
fn check_entries(program: &Path) {
    let file = std::fs::read(program).expect("the built program");
    let elf = ElfBytes::<LittleEndian>::minimal_parse(&file).expect("an ELF file");
    let (symbols, names) = elf.symbol_table().expect("a symbol table").expect("a program with symbols");
    let mut entries = 0;
    for symbol in symbols.iter() {
        let name = names.get(symbol.st_name as usize).expect("a name");
        let Some(function) = entry_of(name) else { continue };
        let segments = elf.segments().expect("segments");
        let holds = |segment: &elf::segment::ProgramHeader| {
            (segment.p_vaddr..segment.p_vaddr + segment.p_filesz).contains(&symbol.st_value)
        };
        let segment = segments.iter().find(holds).expect("code in a segment");
        let start = (symbol.st_value - segment.p_vaddr + segment.p_offset) as usize;
        let bytes = &file[start..file.len().min(start + DECODED_BYTES)];
        if let Err(why) = check_entry(bytes) {
            panic!("{}: `{function}` ({name}) {why}", program.display());
        }
        entries += 1;
    }
    // Identical functions may share code.
    assert!(entries >= abi::FUNCTIONS.len(), "{entries} entries, {} functions", abi::FUNCTIONS.len());
}

/// The ABI function of a kernel symbol that is its entry.
fn entry_of(symbol: &str) -> Option<&'static str> {
    let path = symbol.strip_prefix("_ZN6kernel5entry")?;
    let path = path.strip_prefix("8measured").unwrap_or(path);
    let is_entry = |name: &&str| path.strip_prefix(&format!("{}{name}17h", name.len())).is_some();
    abi::FUNCTIONS.iter().map(|function| function.name).find(is_entry)
}

/// Whether the code pushes only within its first bytes before the first branch, compares with the stack limit right before
/// that branch, and makes no call until then.
fn check_entry(code: &[u8]) -> Result<(), String> {
    let mut compared = false;
    for instruction in Decoder::with_ip(64, code, 0, DecoderOptions::NONE) {
        match instruction.flow_control() {
            FlowControl::Next => {}
            FlowControl::ConditionalBranch if compared => return Ok(()),
            other => return Err(format!("goes on by {other:?} at +{:#x} without a check", instruction.ip())),
        }
        compared = compares_with_limit(&instruction);
        if uses_stack(&instruction) && instruction.next_ip() > PROLOGUE_BYTES {
            return Err(format!("uses the stack at +{:#x} before its check", instruction.ip()));
        }
    }
    Err("has no check".into())
}

/// Whether it compares with the running thread's stack limit, in the processor's block.
fn compares_with_limit(instruction: &Instruction) -> bool {
    instruction.code() == Code::Cmp_r64_rm64
        && instruction.segment_prefix() == Register::GS
        && (instruction.memory_base(), instruction.memory_index()) == (Register::None, Register::None)
        && instruction.memory_displacement64() == STACK_LIMIT
}

fn uses_stack(instruction: &Instruction) -> bool {
    let reaches = instruction.mnemonic() != Mnemonic::Lea;
    instruction.is_stack_instruction() || reaches && matches!(instruction.memory_base(), Register::RSP | Register::RBP)
}

#[test]
fn an_entry_without_a_check_is_found() {
    let checked = [0x55, 0x65, 0x48, 0x3B, 0x24, 0x25, 24, 0, 0, 0, 0x72, 0x00];
    assert_eq!(check_entry(&checked), Ok(()));
    let mut elsewhere = checked;
    elsewhere[6] = 16;
    assert!(check_entry(&elsewhere).is_err_and(|why| why.contains("without a check")));
    let late = [&[0x90; 48][..], &checked].concat();
    assert!(check_entry(&late).is_err_and(|why| why.contains("uses the stack at +0x30")));
    assert!(check_entry(&[0x85, 0xC0, 0x74, 0x00]).is_err_and(|why| why.contains("without a check")));
    assert!(check_entry(&[0xE8, 0, 0, 0, 0]).is_err_and(|why| why.contains("Call")));
    assert!(check_entry(&[0x90]).is_err_and(|why| why.contains("no check")));
}
