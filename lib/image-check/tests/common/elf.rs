//! Generates small ELF files, valid and invalid.

use image_check::CONTRACT_MAGIC;

pub const READ: u32 = 4;
pub const WRITE: u32 = 2;
pub const EXECUTE: u32 = 1;

pub const LOAD: u32 = 1;
pub const DYNAMIC: u32 = 2;
pub const INTERPRETER: u32 = 3;
pub const THREAD_LOCAL: u32 = 7;
pub const RELRO: u32 = 0x6474_e552;

/// Addresses of code, sealed data and dynamic section in the good file.
pub const CODE: u64 = 0x1000;
pub const DATA: u64 = 0x2000;
pub const DYNAMIC_ADDRESS: u64 = DATA + 0x20;
pub const RELA_ADDRESS: u64 = 0x400;

#[derive(Clone)]
pub struct Segment {
    pub kind: u32,
    pub flags: u32,
    pub address: u64,
    pub bytes: Vec<u8>,
    pub memory: u64,
    /// No content of its own: it aliases the loaded segment at its address.
    pub alias: bool,
}

#[derive(Clone)]
pub struct Section {
    pub name: &'static str,
    pub kind: u32,
    pub flags: u64,
    pub address: u64,
    pub bytes: Vec<u8>,
    pub size: u64,
}

#[derive(Clone)]
pub struct Symbol {
    pub name: &'static str,
    pub address: u64,
    pub size: u64,
    pub kind: u8,
}

#[derive(Clone)]
pub struct Elf {
    pub kind: u16,
    pub machine: u16,
    pub class: u8,
    pub entry: u64,
    pub segments: Vec<Segment>,
    pub sections: Vec<Section>,
    pub symbols: Vec<Symbol>,
}

pub fn relocation(address: u64, kind: u64, addend: i64) -> Vec<u8> {
    [address.to_le_bytes(), kind.to_le_bytes(), addend.to_le_bytes()].concat()
}

pub fn dynamic(entries: &[(u64, u64)]) -> Vec<u8> {
    entries.iter().chain(&[(0, 0)]).flat_map(|(tag, value)| [tag.to_le_bytes(), value.to_le_bytes()].concat()).collect()
}

pub fn contract_record(name: &str, fingerprint: [u8; 32]) -> Vec<u8> {
    [CONTRACT_MAGIC.as_slice(), &fingerprint, &abi::name_tag(name).to_le_bytes()].concat()
}

/// `mov eax, 1; call +2; ret; int3; nop; ret`
pub const GOOD_CODE: &[u8] = &[0xB8, 1, 0, 0, 0, 0xE8, 2, 0, 0, 0, 0xC3, 0xCC, 0x90, 0xC3];

impl Elf {
    /// A valid file: read-only head with one relocation, code, sealed data with a dynamic section.
    pub fn good() -> Elf {
        let rela = relocation(DATA + 8, 8, CODE as i64 + 12);
        let mut head = vec![0; 0x400];
        head.extend_from_slice(&rela);
        let table = dynamic(&[
            (7, RELA_ADDRESS),
            (8, rela.len() as u64),
            (9, 24),
            (0x6fff_fff9, 1),
            (0x6fff_fffb, 0x0800_0001),
        ]);
        let mut data = vec![0x11; 0x20];
        data.extend_from_slice(&table);
        let memory = data.len() as u64;
        let segments = vec![
            load(READ, 0, head),
            load(READ | EXECUTE, CODE, GOOD_CODE.to_vec()),
            load(READ | WRITE, DATA, data),
            alias(DYNAMIC, DYNAMIC_ADDRESS, table.len() as u64),
            alias(RELRO, DATA, memory),
        ];
        let records = contract_record("Echo", super::fingerprint("Echo"));
        let sections = vec![
            Section {
                name: ".text",
                kind: 1,
                flags: 6,
                address: CODE,
                bytes: Vec::new(),
                size: GOOD_CODE.len() as u64,
            },
            Section {
                name: ".sing.contracts",
                kind: 1,
                flags: 2,
                address: 0x800,
                size: records.len() as u64,
                bytes: records,
            },
        ];
        Elf { kind: 3, machine: 62, class: 2, entry: CODE, segments, sections, symbols: Vec::new() }
    }

    /// The valid file with other code, entered at its first byte.
    pub fn with_code(code: &[u8]) -> Elf {
        let mut elf = Elf::good();
        elf.set_code(code);
        elf
    }

    pub fn set_code(&mut self, code: &[u8]) {
        self.segments[1] = load(READ | EXECUTE, CODE, code.to_vec());
        self.sections[0].size = code.len() as u64;
    }

    /// The valid file with another relocation table, as bytes.
    pub fn with_relocations(rela: Vec<u8>) -> Elf {
        let mut elf = Elf::good();
        elf.segments[0].bytes.truncate(0x400);
        elf.segments[0].bytes.extend_from_slice(&rela);
        elf.segments[0].memory = elf.segments[0].bytes.len() as u64;
        elf.set_dynamic(&[(7, RELA_ADDRESS), (8, rela.len() as u64), (9, 24)]);
        elf
    }

    pub fn set_dynamic(&mut self, entries: &[(u64, u64)]) {
        let table = dynamic(entries);
        self.segments[2].bytes.truncate(0x20);
        self.segments[2].bytes.extend_from_slice(&table);
        let memory = self.segments[2].bytes.len() as u64;
        self.segments[2].memory = memory;
        self.segments[3].memory = table.len() as u64;
        self.segments[4].memory = memory;
    }

    pub fn write(&self) -> Vec<u8> {
        let mut out = vec![0; 64 + 56 * self.segments.len()];
        let mut offsets = Vec::new();
        for segment in self.segments.iter() {
            offsets.push(out.len() as u64);
            out.extend_from_slice(&segment.bytes);
        }
        for (index, segment) in self.segments.iter().enumerate() {
            let (offset, size) = if segment.alias {
                let home = self.segments.iter().position(|other| {
                    !other.alias
                        && other.kind == LOAD
                        && other.address <= segment.address
                        && segment.address < other.address + other.memory
                });
                let home = home.unwrap_or(0);
                (offsets[home] + (segment.address - self.segments[home].address), segment.memory)
            } else {
                (offsets[index], segment.bytes.len() as u64)
            };
            let words = [offset, segment.address, segment.address, size, segment.memory, 0x1000];
            let mut header = [segment.kind.to_le_bytes(), segment.flags.to_le_bytes()].concat();
            header.extend(words.iter().flat_map(|word| word.to_le_bytes()));
            out[64 + 56 * index..64 + 56 * (index + 1)].copy_from_slice(&header);
        }
        let (section_offset, section_count) = self.write_sections(&mut out, &offsets);
        let mut identity = vec![0x7F, b'E', b'L', b'F', self.class, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        identity.extend_from_slice(&self.kind.to_le_bytes());
        identity.extend_from_slice(&self.machine.to_le_bytes());
        identity.extend_from_slice(&1u32.to_le_bytes());
        for word in [self.entry, 64, section_offset] {
            identity.extend_from_slice(&word.to_le_bytes());
        }
        identity.extend_from_slice(&0u32.to_le_bytes());
        let names_index = if section_count == 0 { 0 } else { section_count - 1 };
        for half in [64, 56, self.segments.len() as u16, 64, section_count, names_index] {
            identity.extend_from_slice(&half.to_le_bytes());
        }
        out[..64].copy_from_slice(&identity);
        out
    }

    /// Appends section contents and headers; returns offset and number of the headers.
    fn write_sections(&self, out: &mut Vec<u8>, offsets: &[u64]) -> (u64, u16) {
        if self.sections.is_empty() {
            return (0, 0);
        }
        let mut names = vec![0];
        let mut headers = vec![[0; 64]];
        let mut add = |out: &mut Vec<u8>, section: &Section, link: u32, entry: u64, offset: Option<u64>| {
            let name = names.len() as u32;
            names.extend_from_slice(section.name.as_bytes());
            names.push(0);
            let place = offset.unwrap_or(out.len() as u64);
            out.extend_from_slice(&section.bytes);
            headers.push(section_header(section, name, place, link, entry));
        };
        for section in &self.sections {
            let home =
                self.segments.iter().position(|segment| segment.kind == LOAD && segment.address == section.address);
            let offset = home.filter(|_| section.bytes.is_empty()).map(|home| offsets[home]);
            add(out, section, 0, 0, offset);
        }
        if !self.symbols.is_empty() {
            let mut strings = vec![0];
            let mut table = vec![0; 24];
            for symbol in &self.symbols {
                table.extend_from_slice(&(strings.len() as u32).to_le_bytes());
                table.extend_from_slice(&[symbol.kind, 0, 1, 0]);
                table.extend_from_slice(&symbol.address.to_le_bytes());
                table.extend_from_slice(&symbol.size.to_le_bytes());
                strings.extend_from_slice(symbol.name.as_bytes());
                strings.push(0);
            }
            let link = self.sections.len() as u32 + 2;
            let section = |name, kind, bytes: Vec<u8>| Section {
                name,
                kind,
                flags: 0,
                address: 0,
                size: bytes.len() as u64,
                bytes,
            };
            add(out, &section(".symtab", 2, table), link, 24, None);
            add(out, &section(".strtab", 3, strings), 0, 0, None);
        }
        let name = names.len() as u32;
        names.extend_from_slice(b".shstrtab\0");
        let section =
            Section { name: ".shstrtab", kind: 3, flags: 0, address: 0, size: names.len() as u64, bytes: Vec::new() };
        headers.push(section_header(&section, name, out.len() as u64, 0, 0));
        out.extend_from_slice(&names);
        let place = out.len() as u64;
        out.extend(headers.concat());
        (place, headers.len() as u16)
    }
}

fn section_header(section: &Section, name: u32, offset: u64, link: u32, entry: u64) -> [u8; 64] {
    let mut header = [name.to_le_bytes(), section.kind.to_le_bytes()].concat();
    for word in [section.flags, section.address, offset, section.size] {
        header.extend_from_slice(&word.to_le_bytes());
    }
    header.extend_from_slice(&link.to_le_bytes());
    header.extend_from_slice(&1u32.to_le_bytes());
    header.extend_from_slice(&1u64.to_le_bytes());
    header.extend_from_slice(&entry.to_le_bytes());
    header.try_into().expect("a section header has 64 bytes")
}

pub fn load(flags: u32, address: u64, bytes: Vec<u8>) -> Segment {
    Segment { kind: LOAD, flags, address, memory: bytes.len() as u64, bytes, alias: false }
}

pub fn alias(kind: u32, address: u64, memory: u64) -> Segment {
    Segment { kind, flags: READ, address, bytes: Vec::new(), memory, alias: true }
}
