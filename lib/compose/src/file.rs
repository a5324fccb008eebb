//! Writes the image file: an ELF executable with the template's segments and those of the module.

use alloc::vec::Vec;

use elf::abi as elf_abi;

use crate::template::{Symbol, Template};
use crate::{PAGE, put};

const HEADER_BYTES: usize = 64;
const PROGRAM_HEADER_BYTES: usize = 56;
const SECTION_HEADER_BYTES: usize = 64;
const SYMBOL_BYTES: usize = 24;
const RELOCATION_BYTES: usize = 24;
/// DT_RELA, DT_RELASZ, DT_RELAENT and the end, of two words each.
const DYNAMIC_BYTES: usize = 4 * 16;
/// Sections that every image has beside those of the template: none, code, symbols, their names, faults, names of sections.
const OWN_SECTIONS: usize = 6;

/// What is added to a template.
pub struct Added {
    /// Address of the data.
    pub base: u64,
    /// Data, without the table of relocations.
    pub data: Vec<u8>,
    /// All relocations of the image: place, address.
    pub relocations: Vec<(u64, u64)>,
    /// Address of the code.
    pub text: u64,
    /// Code.
    pub code: Vec<u8>,
    /// The section `.sing.faults`.
    pub faults: Vec<u8>,
    /// Functions: address, size, name.
    pub symbols: Vec<Symbol>,
}

/// Size of the added data with its table of relocations.
pub fn data_bytes(data: usize, relocations: usize) -> usize {
    data.next_multiple_of(8) + relocations * RELOCATION_BYTES + DYNAMIC_BYTES
}

struct Segment<'a> {
    kind: u32,
    flags: u32,
    address: u64,
    memory_bytes: u64,
    /// Where its content lies in the file, and how long it is there.
    offset: u64,
    file_bytes: u64,
    content: &'a [u8],
}

/// Writes the file.
pub fn write(template: &Template<'_>, added: &Added) -> Vec<u8> {
    let data = data_with_relocations(added);
    let dynamic = added.base + (data.len() - DYNAMIC_BYTES) as u64;
    let mut segments: Vec<Segment<'_>> =
        template.loads.iter().map(|load| loaded(load.flags, load.address, load.memory_bytes, load.content)).collect();
    segments.push(loaded(elf_abi::PF_R, added.base, data.len() as u64, &data));
    segments.push(loaded(elf_abi::PF_R | elf_abi::PF_X, added.text, added.code.len() as u64, &added.code));
    let headers = segments.len() + 1 + usize::from(template.sealed.is_some());
    let mut end = (HEADER_BYTES + headers * PROGRAM_HEADER_BYTES) as u64;
    for segment in &mut segments {
        // Congruent to its address, so that a page of the file is a page of memory.
        end = end.next_multiple_of(PAGE) + segment.address % PAGE;
        segment.offset = end;
        end += segment.file_bytes;
    }
    let in_file = |address: u64| {
        let holds = |segment: &&Segment<'_>| address.wrapping_sub(segment.address) < segment.memory_bytes;
        segments.iter().find(holds).map_or(0, |segment| segment.offset + (address - segment.address))
    };
    let extra = |kind: u32, address: u64, bytes: u64| Segment {
        kind,
        flags: elf_abi::PF_R,
        address,
        memory_bytes: bytes,
        offset: in_file(address),
        file_bytes: bytes,
        content: &[],
    };
    let mut extras = alloc::vec![extra(elf_abi::PT_DYNAMIC, dynamic, DYNAMIC_BYTES as u64)];
    extras.extend(template.sealed.map(|(address, bytes)| extra(elf_abi::PT_GNU_RELRO, address, bytes)));
    let mut file = alloc::vec![0u8; end as usize];
    for segment in &segments {
        put(&mut file, segment.offset as usize, segment.content);
    }
    for (number, segment) in segments.iter().chain(&extras).enumerate() {
        put(&mut file, HEADER_BYTES + number * PROGRAM_HEADER_BYTES, &program_header(segment));
    }
    let sections = append_sections(&mut file, template, added, &in_file);
    let header = header(template.image.entry, headers, sections, template.sections.len() + OWN_SECTIONS);
    put(&mut file, 0, &header);
    file
}

fn loaded(flags: u32, address: u64, memory_bytes: u64, content: &[u8]) -> Segment<'_> {
    let file_bytes = content.len() as u64;
    Segment { kind: elf_abi::PT_LOAD, flags, address, memory_bytes, offset: 0, file_bytes, content }
}

fn data_with_relocations(added: &Added) -> Vec<u8> {
    let mut data = added.data.clone();
    data.resize(data.len().next_multiple_of(8), 0);
    let table = added.base + data.len() as u64;
    for (place, address) in &added.relocations {
        words(&mut data, &[*place, u64::from(elf_abi::R_X86_64_RELATIVE), *address]);
    }
    let bytes = (added.relocations.len() * RELOCATION_BYTES) as u64;
    let entries = [
        (elf_abi::DT_RELA, table),
        (elf_abi::DT_RELASZ, bytes),
        (elf_abi::DT_RELAENT, RELOCATION_BYTES as u64),
        (elf_abi::DT_NULL, 0),
    ];
    for (tag, value) in entries {
        words(&mut data, &[tag as u64, value]);
    }
    data
}

fn words(out: &mut Vec<u8>, words: &[u64]) {
    for word in words {
        out.extend_from_slice(&word.to_le_bytes());
    }
}

fn header(entry: u64, segments: usize, sections: u64, section_count: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER_BYTES);
    out.extend_from_slice(&elf_abi::ELFMAGIC);
    out.extend_from_slice(&[elf_abi::ELFCLASS64, elf_abi::ELFDATA2LSB, elf_abi::EV_CURRENT, 0]);
    out.extend_from_slice(&[0; 8]);
    out.extend_from_slice(&elf_abi::ET_DYN.to_le_bytes());
    out.extend_from_slice(&elf_abi::EM_X86_64.to_le_bytes());
    out.extend_from_slice(&1u32.to_le_bytes());
    words(&mut out, &[entry, HEADER_BYTES as u64, sections]);
    out.extend_from_slice(&0u32.to_le_bytes());
    let counts = [
        HEADER_BYTES as u16,
        PROGRAM_HEADER_BYTES as u16,
        segments as u16,
        SECTION_HEADER_BYTES as u16,
        section_count as u16,
        section_count as u16 - 1,
    ];
    for count in counts {
        out.extend_from_slice(&count.to_le_bytes());
    }
    out
}

fn program_header(segment: &Segment<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(PROGRAM_HEADER_BYTES);
    out.extend_from_slice(&segment.kind.to_le_bytes());
    out.extend_from_slice(&segment.flags.to_le_bytes());
    let align = if segment.kind == elf_abi::PT_LOAD { PAGE } else { 8 };
    let Segment { offset, address, file_bytes, memory_bytes, .. } = *segment;
    words(&mut out, &[offset, address, address, file_bytes, memory_bytes, align]);
    out
}

/// Appends symbols and section headers; returns where the headers are.
fn append_sections(file: &mut Vec<u8>, template: &Template<'_>, added: &Added, in_file: &dyn Fn(u64) -> u64) -> u64 {
    let mut strings = alloc::vec![0u8];
    let mut symbols = alloc::vec![0u8; SYMBOL_BYTES];
    for (address, bytes, name) in template.symbols.iter().chain(&added.symbols) {
        symbols.extend_from_slice(&(strings.len() as u32).to_le_bytes());
        // A global function, in no section that matters.
        symbols.extend_from_slice(&[elf_abi::STB_GLOBAL << 4 | elf_abi::STT_FUNC, 0]);
        symbols.extend_from_slice(&elf_abi::SHN_ABS.to_le_bytes());
        words(&mut symbols, &[*address, *bytes]);
        strings.extend_from_slice(name);
        strings.push(0);
    }
    let mut names = alloc::vec![0u8];
    let mut headers = alloc::vec![0u8; SECTION_HEADER_BYTES];
    let mut add =
        |name: &[u8], kind: u32, flags: u64, [address, offset, bytes]: [u64; 3], [link, info, entry]: [u64; 3]| {
            headers.extend_from_slice(&(names.len() as u32).to_le_bytes());
            headers.extend_from_slice(&kind.to_le_bytes());
            words(&mut headers, &[flags, address, offset, bytes]);
            headers.extend_from_slice(&(link as u32).to_le_bytes());
            headers.extend_from_slice(&(info as u32).to_le_bytes());
            words(&mut headers, &[1, entry]);
            names.extend_from_slice(name);
            names.push(0);
        };
    for section in &template.sections {
        let place = [section.address, in_file(section.address), section.bytes];
        add(section.name, elf_abi::SHT_PROGBITS, section.flags, place, [0; 3]);
    }
    let code = u64::from(elf_abi::SHF_ALLOC | elf_abi::SHF_EXECINSTR);
    let place = [added.text, in_file(added.text), added.code.len() as u64];
    add(b".text.wasm", elf_abi::SHT_PROGBITS, code, place, [0; 3]);
    let first = file.len().next_multiple_of(8) as u64;
    let second = first + symbols.len() as u64;
    let link = template.sections.len() as u64 + 3;
    add(b".symtab", elf_abi::SHT_SYMTAB, 0, [0, first, symbols.len() as u64], [link, 1, SYMBOL_BYTES as u64]);
    add(b".strtab", elf_abi::SHT_STRTAB, 0, [0, second, strings.len() as u64], [0; 3]);
    let third = second + strings.len() as u64;
    add(b".sing.faults", elf_abi::SHT_PROGBITS, 0, [0, third, added.faults.len() as u64], [0; 3]);
    let fourth = third + added.faults.len() as u64;
    let name_bytes = names_bytes(template);
    add(b".shstrtab", elf_abi::SHT_STRTAB, 0, [0, fourth, name_bytes], [0; 3]);
    file.resize(first as usize, 0);
    for part in [&symbols, &strings, &added.faults, &names] {
        file.extend_from_slice(part);
    }
    file.resize(file.len().next_multiple_of(8), 0);
    let at = file.len() as u64;
    file.extend_from_slice(&headers);
    at
}

/// Size of the names of all sections.
fn names_bytes(template: &Template<'_>) -> u64 {
    let own = [&b".text.wasm"[..], b".symtab", b".strtab", b".sing.faults", b".shstrtab"];
    let all = template.sections.iter().map(|section| section.name).chain(own);
    1 + all.map(|name| name.len() as u64 + 1).sum::<u64>()
}
