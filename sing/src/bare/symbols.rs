//! Functions of a program file by address and name, and a symbol file of them for a debugger.
//!
//! Names are demangled. Mangled ones show a hash in a debugger, which is then needed to find them.

use elf::ElfBytes;
use elf::abi::{
    EM_X86_64, ET_EXEC, PT_LOAD, SHF_ALLOC, SHF_EXECINSTR, SHT_NOBITS, SHT_STRTAB, SHT_SYMTAB, STT_FUNC, STT_NOTYPE,
};
use elf::endian::LittleEndian;

const HEADER_BYTES: usize = 64;
const SECTION_BYTES: usize = 64;
const SYMBOL_BYTES: usize = 24;
/// Section names, and the offset of each.
const SECTION_NAMES: &[u8] = b"\0.text\0.symtab\0.strtab\0";
const TEXT_NAME: u32 = 1;
const SYMTAB_NAME: u32 = 7;
const STRTAB_NAME: u32 = 15;

/// Returns addresses and names of a program's functions; an empty name ends the function before it. `None` if it is not
/// a program with symbols.
pub fn functions(bytes: &[u8]) -> Option<Vec<(u64, String)>> {
    let file = ElfBytes::<LittleEndian>::minimal_parse(bytes).ok()?;
    let code: Vec<_> =
        file.segments()?.iter().filter(|segment| segment.p_type == PT_LOAD && segment.p_flags & 1 != 0).collect();
    let is_code = |address: u64| {
        code.iter().any(|segment| (segment.p_vaddr..segment.p_vaddr + segment.p_memsz).contains(&address))
    };
    let (table, names) = file.symbol_table().ok()??;
    let mut functions = Vec::new();
    for symbol in table.iter() {
        let is_function = matches!(symbol.st_symtype(), STT_FUNC | STT_NOTYPE) && is_code(symbol.st_value);
        let name = names.get(symbol.st_name as usize).unwrap_or_default();
        if !is_function || symbol.is_undefined() || name.is_empty() || name.starts_with(".L") {
            continue;
        }
        functions.push((symbol.st_value, format!("{:#}", rustc_demangle::demangle(name))));
        if symbol.st_size > 0 {
            // Code after a function without a symbol is not part of that function.
            functions.push((symbol.st_value + symbol.st_size, String::new()));
        }
    }
    Some(functions)
}

/// Returns the address of the symbol of this name; `None` if there is none.
pub fn address_of(bytes: &[u8], name: &str) -> Option<u64> {
    let file = ElfBytes::<LittleEndian>::minimal_parse(bytes).ok()?;
    let (table, names) = file.symbol_table().ok()??;
    let found = table
        .iter()
        .find(|symbol| !symbol.is_undefined() && names.get(symbol.st_name as usize).is_ok_and(|found| found == name))?;
    Some(found.st_value)
}

/// Returns an ELF file with these functions alone, to be loaded by a debugger of the machine.
pub fn file(functions: &[(u64, String)]) -> Vec<u8> {
    let named: Vec<_> = functions.iter().filter(|(_, name)| !name.is_empty()).collect();
    let start = functions.iter().map(|(address, _)| *address).min().unwrap_or(0);
    let end = functions.iter().map(|(address, _)| *address + 1).max().unwrap_or(0);
    let mut names = vec![0];
    let mut table = vec![0; SYMBOL_BYTES];
    for (address, name) in &named {
        table.extend_from_slice(&(names.len() as u32).to_le_bytes());
        // Global functions, in the first section.
        table.extend_from_slice(&[1 << 4 | STT_FUNC, 0, 1, 0]);
        table.extend_from_slice(&address.to_le_bytes());
        table.extend_from_slice(&0u64.to_le_bytes());
        names.extend_from_slice(name.as_bytes());
        names.push(0);
    }
    let table_at = HEADER_BYTES;
    let names_at = table_at + table.len();
    let section_names_at = names_at + names.len();
    let sections_at = (section_names_at + SECTION_NAMES.len()).next_multiple_of(8);
    let mut out = header(sections_at);
    for part in [&table, &names, SECTION_NAMES] {
        out.extend_from_slice(part);
    }
    out.resize(sections_at, 0);
    let code = u64::from(SHF_ALLOC | SHF_EXECINSTR);
    out.extend_from_slice(&[0; SECTION_BYTES]);
    section(&mut out, TEXT_NAME, SHT_NOBITS, code, start, HEADER_BYTES, end - start, [0, 0], 0);
    section(&mut out, SYMTAB_NAME, SHT_SYMTAB, 0, 0, table_at, table.len() as u64, [3, 1], SYMBOL_BYTES);
    section(&mut out, STRTAB_NAME, SHT_STRTAB, 0, 0, names_at, names.len() as u64, [0, 0], 0);
    section(&mut out, STRTAB_NAME, SHT_STRTAB, 0, 0, section_names_at, SECTION_NAMES.len() as u64, [0, 0], 0);
    out
}

fn header(sections_at: usize) -> Vec<u8> {
    let mut out = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    out.extend_from_slice(&ET_EXEC.to_le_bytes());
    out.extend_from_slice(&EM_X86_64.to_le_bytes());
    out.extend_from_slice(&1u32.to_le_bytes());
    // No entry, no segments.
    out.extend_from_slice(&[0; 16]);
    out.extend_from_slice(&(sections_at as u64).to_le_bytes());
    out.extend_from_slice(&0u32.to_le_bytes());
    for number in [HEADER_BYTES, 0, 0, SECTION_BYTES, 5, 4] {
        out.extend_from_slice(&(number as u16).to_le_bytes());
    }
    out
}

#[expect(clippy::too_many_arguments, reason = "the fields of the format, in its order")]
fn section(
    out: &mut Vec<u8>,
    name: u32,
    kind: u32,
    flags: u64,
    address: u64,
    offset: usize,
    bytes: u64,
    link: [u32; 2],
    entry: usize,
) {
    out.extend_from_slice(&name.to_le_bytes());
    out.extend_from_slice(&kind.to_le_bytes());
    for number in [flags, address, offset as u64, bytes] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.extend_from_slice(&link[0].to_le_bytes());
    out.extend_from_slice(&link[1].to_le_bytes());
    out.extend_from_slice(&1u64.to_le_bytes());
    out.extend_from_slice(&(entry as u64).to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This test program is an ELF file with symbols.
    fn sample() -> Vec<u8> {
        std::fs::read(std::env::current_exe().expect("this program has a path")).expect("and can be read")
    }

    #[test]
    fn functions_are_found_by_their_names() {
        let functions = functions(&sample()).expect("an ELF program with symbols");
        let name = "bare::symbols::tests::functions_are_found_by_their_names";
        assert!(functions.iter().any(|(_, found)| found.contains(name)), "of {} functions", functions.len());
    }

    #[test]
    fn other_files_have_none() {
        assert_eq!((functions(b""), functions(b"#!/bin/sh\n")), (None, None));
    }

    #[test]
    fn a_file_of_functions_is_read_back() {
        let functions = [(0x1000, "a::b".to_string()), (0x1010, String::new()), (0x1020, "<T as C<D>>::e".to_string())];
        let bytes = file(&functions);
        let read = ElfBytes::<LittleEndian>::minimal_parse(&bytes).expect("an ELF file");
        let (table, names) = read.symbol_table().expect("sound sections").expect("a table of symbols");
        let found: Vec<_> =
            table.iter().skip(1).map(|symbol| (symbol.st_value, names.get(symbol.st_name as usize))).collect();
        assert_eq!(found.len(), 2);
        assert!(matches!(found[0], (0x1000, Ok("a::b"))) && matches!(found[1], (0x1020, Ok("<T as C<D>>::e"))));
        let sections = read.section_headers().expect("sections");
        let text = sections.get(1).expect("the first section");
        assert_eq!((text.sh_addr, text.sh_size), (0x1000, 0x21));
    }
}
