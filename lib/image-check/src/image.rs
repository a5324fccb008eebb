//! The image file: a static position-independent ELF executable without external dependencies.
//!
//! Key type: [`Image`], the result of the check: segments, none of them writable, and their relocations. Neighbours:
//! the instruction check validates the code. Deliberately not here: a general ELF loader.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use abi::limits::PAGE_BYTES;
use elf::abi as elf_abi;
use elf::endian::LittleEndian;
use elf::section::SectionHeader;
use elf::segment::ProgramHeader;
use elf::{ElfBytes, ParseError};

use crate::faults::Faults;
use crate::instructions::{self, Stretch};
use crate::{CONTRACT_MAGIC, CONTRACT_RECORD_BYTES, IMAGE_BYTES_MAX, ImageError};

const PAGE: u64 = PAGE_BYTES as u64;
/// `int3`: padding of executable pages.
const TRAP: u8 = 0xCC;
const WORD: u64 = 8;

/// What becomes of data that code writes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// There is none: instances share the image.
    Refused,
    /// Each instance has its own, at the same address, in a hardware domain.
    Private,
}

/// A checked image. Addresses are offsets from its base.
#[derive(Clone, Debug)]
pub struct Image<'a> {
    /// Segments by ascending address; no two share a page.
    pub segments: Vec<ImageSegment<'a>>,
    /// Size of its address range in bytes; whole pages.
    pub bytes: u64,
    /// Entry point.
    pub entry: u64,
    /// Relocations.
    pub relocations: Vec<Relocation>,
    /// The contracts that its code uses.
    pub contracts: Vec<ContractRecord>,
    /// What it says of its faults.
    pub faults: Faults<'a>,
}

/// A range of an image with one kind of access.
#[derive(Clone, Debug)]
pub struct ImageSegment<'a> {
    /// Address of its first page.
    pub address: u64,
    /// Whether it is code.
    pub executable: bool,
    /// Whether each instance has its own, writable; never without [`Data::Private`].
    pub writable: bool,
    /// Size of its pages in bytes.
    pub memory_bytes: u64,
    /// Offset of `content` in the first page.
    pub lead: u64,
    /// Content from the file; the rest of its pages is zero (data) or `int3` (code).
    pub content: &'a [u8],
}

/// A relocation: a word that holds the address `addend` of the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// Address of the word: eight bytes in a data segment.
    pub offset: u64,
    /// The address that it holds.
    pub addend: u64,
}

/// A contract used by the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContractRecord {
    /// Fingerprint of the contract that the code was generated from.
    pub fingerprint: [u8; 32],
    /// [`abi::name_tag`] of its name.
    pub name_tag: u64,
}

/// A segment to be mapped.
#[derive(Clone, Debug)]
pub struct RelocatedSegment {
    /// Address of its first page.
    pub address: u64,
    /// Whether it is code.
    pub executable: bool,
    /// Whether each instance gets its own, writable, with these bytes.
    pub writable: bool,
    /// Whole pages.
    pub bytes: Vec<u8>,
}

type File<'a> = ElfBytes<'a, LittleEndian>;

impl<'a> Image<'a> {
    /// Checks an image file.
    ///
    /// # Errors
    /// The first violated rule.
    pub fn check(file: &'a [u8]) -> Result<Image<'a>, ImageError> {
        Image::check_in_steps(file, Data::Refused, &|| ())
    }

    /// Like `check`, with a rule for writable data; calls `pause` regularly so that others can run.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn check_in_steps(file: &'a [u8], data: Data, pause: &dyn Fn()) -> Result<Image<'a>, ImageError> {
        if file.len() > IMAGE_BYTES_MAX {
            return Err(ImageError::TooLarge { bytes: file.len() as u64 });
        }
        check_identity(file)?;
        let elf = File::minimal_parse(file)
            .map_err(|_| ImageError::ElfMalformed { what: "a header lies outside the file" })?;
        if elf.ehdr.e_machine != elf_abi::EM_X86_64 {
            return Err(ImageError::WrongMachine);
        }
        if elf.ehdr.e_type != elf_abi::ET_DYN {
            return Err(ImageError::NotPie);
        }
        let headers: Vec<ProgramHeader> = elf.segments().map(|table| table.iter().collect()).unwrap_or_default();
        check_kinds(&headers)?;
        let segments = segments(file, &elf, &headers, data)?;
        let bytes = segments.last().map_or(0, ImageSegment::end);
        let entry = elf.ehdr.e_entry;
        check_code(&elf, &segments, entry, pause)?;
        let relocations = relocations(&headers, &segments, bytes)?;
        let contracts = contracts(&elf)?;
        let faults = faults(&elf)?;
        Ok(Image { segments, bytes, entry, relocations, contracts, faults })
    }

    /// The segments to be mapped at `base`, with relocations applied.
    pub fn relocate(&self, base: u64) -> Vec<RelocatedSegment> {
        let mut out: Vec<RelocatedSegment> = self.segments.iter().map(|segment| segment.pages(base)).collect();
        let mut current = 0;
        for relocation in &self.relocations {
            let address = base.wrapping_add(relocation.offset);
            let holds = |segment: &RelocatedSegment| address.wrapping_sub(segment.address) < segment.bytes.len() as u64;
            if !out.get(current).is_some_and(holds) {
                current = out.iter().position(holds).unwrap_or(current);
            }
            let Some(segment) = out.get_mut(current) else { continue };
            let start = address.wrapping_sub(segment.address) as usize;
            if let Some(word) = segment.bytes.get_mut(start..).and_then(|rest| rest.first_chunk_mut()) {
                *word = base.wrapping_add(relocation.addend).to_le_bytes();
            }
        }
        out
    }
}

impl ImageSegment<'_> {
    fn pages(&self, base: u64) -> RelocatedSegment {
        let filler = if self.executable { TRAP } else { 0 };
        let mut bytes = vec![filler; self.memory_bytes as usize];
        let lead = self.lead as usize;
        if let Some(place) = bytes.get_mut(lead..lead + self.content.len()) {
            place.copy_from_slice(self.content);
        }
        RelocatedSegment {
            address: base.wrapping_add(self.address),
            executable: self.executable,
            writable: self.writable,
            bytes,
        }
    }

    /// End of the image's address range. After code at the end a page stays unmapped, so that execution does not run on
    /// into another image.
    fn end(&self) -> u64 {
        self.address + self.memory_bytes + if self.executable { PAGE } else { 0 }
    }

    /// Addresses with content from the file.
    fn content_range(&self) -> Range<u64> {
        let start = self.address + self.lead;
        start..start + self.content.len() as u64
    }
}

fn check_identity(file: &[u8]) -> Result<(), ImageError> {
    if !file.starts_with(&elf_abi::ELFMAGIC) {
        return Err(ImageError::NotElf);
    }
    let identity = [file.get(elf_abi::EI_CLASS).copied(), file.get(elf_abi::EI_DATA).copied()];
    if identity != [Some(elf_abi::ELFCLASS64), Some(elf_abi::ELFDATA2LSB)] {
        return Err(ImageError::WrongMachine);
    }
    Ok(())
}

fn check_kinds(headers: &[ProgramHeader]) -> Result<(), ImageError> {
    let has = |kind: u32| headers.iter().any(|header| header.p_type == kind);
    if has(elf_abi::PT_INTERP) {
        return Err(ImageError::Interpreter);
    }
    if has(elf_abi::PT_TLS) {
        return Err(ImageError::ThreadLocal);
    }
    Ok(())
}

/// The loadable segments, all of which are read-only or sealed, or private data.
fn segments<'a>(
    file: &'a [u8],
    elf: &File<'a>,
    headers: &[ProgramHeader],
    data: Data,
) -> Result<Vec<ImageSegment<'a>>, ImageError> {
    let mut out: Vec<ImageSegment<'a>> = Vec::new();
    let mut free_from = 0;
    for header in headers.iter().filter(|header| header.p_type == elf_abi::PT_LOAD && header.p_memsz > 0) {
        let address = header.p_vaddr;
        let end = address.checked_add(header.p_memsz).filter(|&end| end <= IMAGE_BYTES_MAX as u64);
        let end = end.ok_or(ImageError::TooLarge { bytes: address.saturating_add(header.p_memsz) })?;
        let executable = header.p_flags & elf_abi::PF_X != 0;
        let written = header.p_flags & elf_abi::PF_W != 0;
        if written && executable {
            return Err(ImageError::WritableCode { address });
        }
        // A segment that is sealed in part is writable as a whole where that is allowed.
        let sealed = if written { check_sealed(elf, header, headers) } else { Ok(()) };
        let writable = match (sealed, data) {
            (Ok(()), _) => false,
            (Err(_), Data::Private) => true,
            (Err(error), Data::Refused) => return Err(error),
        };
        if header.p_filesz > header.p_memsz {
            return Err(ImageError::ElfMalformed { what: "a segment is larger in the file than in memory" });
        }
        let first_page = address / PAGE * PAGE;
        if first_page < free_from {
            return Err(ImageError::SegmentsOverlap { address });
        }
        free_from = end.div_ceil(PAGE) * PAGE;
        let content = usize::try_from(header.p_offset).ok().and_then(|offset| {
            let length = usize::try_from(header.p_filesz).ok()?;
            file.get(offset..offset.checked_add(length)?)
        });
        out.push(ImageSegment {
            address: first_page,
            executable,
            writable,
            memory_bytes: free_from - first_page,
            lead: address - first_page,
            content: content.ok_or(ImageError::SegmentOutsideFile { address })?,
        });
    }
    Ok(out)
}

/// A writable segment is sealed if only relocations write to it: all of it is marked read-only after relocation
/// (RELRO).
fn check_sealed(elf: &File<'_>, header: &ProgramHeader, headers: &[ProgramHeader]) -> Result<(), ImageError> {
    let sealed = headers.iter().find(|other| other.p_type == elf_abi::PT_GNU_RELRO);
    let sealed = sealed.map_or(0..0, |relro| relro.p_vaddr..relro.p_vaddr.saturating_add(relro.p_memsz));
    let content = header.p_vaddr..header.p_vaddr.saturating_add(header.p_filesz);
    let zeroed = content.end..header.p_vaddr.saturating_add(header.p_memsz);
    if let Some(open) = outside(&content, &sealed) {
        let symbol = symbol_at(elf, open.start).or_else(|| object_in(elf, &open));
        return Err(ImageError::WritableData { address: open.start, bytes: open.end - open.start, symbol });
    }
    if let Some(open) = outside(&zeroed, &sealed) {
        let symbol = symbol_at(elf, open.start).or_else(|| object_in(elf, &open));
        return Err(ImageError::ZeroedData { address: open.start, bytes: open.end - open.start, symbol });
    }
    Ok(())
}

/// The first part of `range` outside `cover`.
fn outside(range: &Range<u64>, cover: &Range<u64>) -> Option<Range<u64>> {
    let start = if cover.contains(&range.start) { cover.end } else { range.start };
    let end = if cover.start > start { range.end.min(cover.start) } else { range.end };
    (start < end).then_some(start..end)
}

/// Decodes all code, and checks the entry point.
fn check_code(elf: &File<'_>, segments: &[ImageSegment<'_>], entry: u64, pause: &dyn Fn()) -> Result<(), ImageError> {
    let sections = code_sections(elf)?;
    let mut stretches = Vec::new();
    for segment in segments.iter().filter(|segment| segment.executable) {
        split_code(segment, &sections, &mut stretches)?;
    }
    let first = stretches.first().ok_or(ImageError::NoCode)?;
    let end = stretches.iter().map(|stretch| stretch.address + stretch.bytes.len() as u64).max();
    let span = first.address..end.unwrap_or(first.address);
    let boundaries = instructions::check(&span, &stretches, &|address| symbol_at(elf, address), pause)?;
    if !boundaries.contains(entry) {
        return Err(ImageError::EntryOutsideCode { entry });
    }
    Ok(())
}

/// Addresses of the executable sections, ascending; empty without section headers.
fn code_sections(elf: &File<'_>) -> Result<Vec<Range<u64>>, ImageError> {
    let wanted = u64::from(elf_abi::SHF_ALLOC | elf_abi::SHF_EXECINSTR);
    let mut sections = Vec::new();
    for header in elf.section_headers().into_iter().flat_map(|table| table.iter()) {
        if header.sh_flags & wanted == wanted && header.sh_size > 0 {
            let end = header.sh_addr.checked_add(header.sh_size);
            sections.push(header.sh_addr..end.ok_or(ImageError::ElfMalformed { what: "a section is too large" })?);
        }
    }
    sections.sort_by_key(|section| section.start);
    Ok(sections)
}

/// The sections of a code segment, each of which begins with an instruction. Bytes between sections must be padding.
fn split_code<'a>(
    segment: &ImageSegment<'a>,
    sections: &[Range<u64>],
    out: &mut Vec<Stretch<'a>>,
) -> Result<(), ImageError> {
    let all = segment.content_range();
    let slice =
        |range: Range<u64>| &segment.content[(range.start - all.start) as usize..(range.end - all.start) as usize];
    if sections.is_empty() {
        out.push(Stretch { address: all.start, bytes: segment.content });
        return Ok(());
    }
    let mut covered = all.start;
    for section in sections.iter().filter(|section| section.start < all.end && section.end > all.start) {
        if section.start < covered || section.end > all.end {
            return Err(ImageError::ElfMalformed { what: "a section of code overlaps another or leaves its segment" });
        }
        check_filler(covered, slice(covered..section.start))?;
        out.push(Stretch { address: section.start, bytes: slice(section.clone()) });
        covered = section.end;
    }
    check_filler(covered, slice(covered..all.end))
}

/// Padding must trap: execution that runs through other bytes could come out in the middle of an instruction.
fn check_filler(address: u64, bytes: &[u8]) -> Result<(), ImageError> {
    match bytes.iter().position(|&byte| byte != TRAP) {
        Some(position) => Err(ImageError::StrayCode { address: address + position as u64 }),
        None => Ok(()),
    }
}

/// The relocations of the dynamic section.
fn relocations(
    headers: &[ProgramHeader],
    segments: &[ImageSegment<'_>],
    image_bytes: u64,
) -> Result<Vec<Relocation>, ImageError> {
    let Some(dynamic) = headers.iter().find(|header| header.p_type == elf_abi::PT_DYNAMIC) else {
        return Ok(Vec::new());
    };
    let table = read(segments, dynamic.p_vaddr, dynamic.p_filesz)
        .ok_or(ImageError::ElfMalformed { what: "the dynamic section lies outside the segments" })?;
    let (mut address, mut bytes, mut entry_bytes) = (0, 0, RELA_BYTES);
    for entry in table.chunks_exact(16) {
        let (tag, value) = (word(entry, 0) as i64, word(entry, 8));
        match tag {
            elf_abi::DT_NULL => break,
            elf_abi::DT_RELA => address = value,
            elf_abi::DT_RELASZ => bytes = value,
            elf_abi::DT_RELAENT => entry_bytes = value,
            elf_abi::DT_NEEDED => return Err(ImageError::Import),
            elf_abi::DT_RELACOUNT
            | elf_abi::DT_HASH
            | elf_abi::DT_GNU_HASH
            | elf_abi::DT_STRTAB
            | elf_abi::DT_STRSZ
            | elf_abi::DT_SYMTAB
            | elf_abi::DT_SYMENT
            | elf_abi::DT_FLAGS
            | elf_abi::DT_FLAGS_1
            | elf_abi::DT_DEBUG => {}
            _ => return Err(ImageError::DynamicFeature { tag }),
        }
    }
    if bytes == 0 {
        return Ok(Vec::new());
    }
    let table = read(segments, address, bytes).filter(|_| entry_bytes == RELA_BYTES && bytes % RELA_BYTES == 0);
    let table = table.ok_or(ImageError::ElfMalformed { what: "the table of relocations is damaged" })?;
    table.chunks_exact(RELA_BYTES as usize).map(|entry| relocation(entry, segments, image_bytes)).collect()
}

const RELA_BYTES: u64 = 24;

fn relocation(entry: &[u8], segments: &[ImageSegment<'_>], image_bytes: u64) -> Result<Relocation, ImageError> {
    let (address, information, addend) = (word(entry, 0), word(entry, 8), word(entry, 16) as i64);
    let kind = information as u32;
    if kind != elf_abi::R_X86_64_RELATIVE || information >> 32 != 0 {
        return Err(ImageError::RelocationKind { kind, address });
    }
    let holds = |segment: &&ImageSegment<'_>| {
        let range = segment.content_range();
        !segment.executable && address >= range.start && address.checked_add(WORD).is_some_and(|end| end <= range.end)
    };
    if !segments.iter().any(|segment| holds(&segment)) {
        return Err(ImageError::RelocationTarget { address });
    }
    match u64::try_from(addend) {
        Ok(target) if target <= image_bytes => Ok(Relocation { offset: address, addend: target }),
        _ => Err(ImageError::RelocationAddend { address, addend }),
    }
}

/// The file's content at these addresses.
fn read<'a>(segments: &[ImageSegment<'a>], address: u64, bytes: u64) -> Option<&'a [u8]> {
    let end = address.checked_add(bytes)?;
    let segment = segments.iter().find(|segment| {
        let range = segment.content_range();
        range.start <= address && end <= range.end
    })?;
    let start = segment.content_range().start;
    segment.content.get((address - start) as usize..(end - start) as usize)
}

fn word(bytes: &[u8], offset: usize) -> u64 {
    bytes.get(offset..).and_then(|rest| rest.first_chunk()).map_or(0, |chunk| u64::from_le_bytes(*chunk))
}

/// The contents of the sections of a name.
fn sections<'a>(elf: &File<'a>, wanted: &[u8]) -> Result<Vec<&'a [u8]>, ImageError> {
    let damaged = |_: ParseError| ImageError::ElfMalformed { what: "a section header is damaged" };
    let (headers, names) = elf.section_headers_with_strtab().map_err(damaged)?;
    let (Some(headers), Some(names)) = (headers, names) else { return Ok(Vec::new()) };
    let is_wanted = |header: &SectionHeader| names.get_raw(header.sh_name as usize).is_ok_and(|name| name == wanted);
    headers.iter().filter(is_wanted).map(|header| Ok(elf.section_data(&header).map_err(damaged)?.0)).collect()
}

/// The section `.sing.faults`.
fn faults<'a>(elf: &File<'a>) -> Result<Faults<'a>, ImageError> {
    Ok(sections(elf, b".sing.faults")?.first().copied().map_or(Faults::default(), Faults::new))
}

/// The records of the section `.sing.contracts`.
fn contracts(elf: &File<'_>) -> Result<Vec<ContractRecord>, ImageError> {
    let mut records = Vec::new();
    for bytes in sections(elf, b".sing.contracts")? {
        let mut offset = 0;
        while offset < bytes.len() {
            // The linker may align records, and pads with zeros.
            if bytes[offset] == 0 {
                offset += 1;
                continue;
            }
            records.push(record(bytes, offset)?);
            offset += CONTRACT_RECORD_BYTES;
        }
    }
    Ok(records)
}

fn record(bytes: &[u8], offset: usize) -> Result<ContractRecord, ImageError> {
    let damaged = ImageError::ContractRecords { offset };
    let record = bytes.get(offset..offset + CONTRACT_RECORD_BYTES).ok_or(damaged.clone())?;
    let record = record.strip_prefix(CONTRACT_MAGIC).ok_or(damaged)?;
    let mut fingerprint = [0; 32];
    fingerprint.copy_from_slice(&record[..32]);
    Ok(ContractRecord { fingerprint, name_tag: word(record, 32) })
}

/// The symbol that contains the address, if the file has symbols.
fn symbol_at(elf: &File<'_>, address: u64) -> Option<String> {
    find_symbol(elf, |start, size| start <= address && address - start < size.max(1))
}

/// The first symbol that begins in the range.
fn object_in(elf: &File<'_>, range: &Range<u64>) -> Option<String> {
    find_symbol(elf, |start, size| size > 0 && range.contains(&start))
}

fn find_symbol(elf: &File<'_>, wanted: impl Fn(u64, u64) -> bool) -> Option<String> {
    let (symbols, names) = elf.symbol_table().ok()??;
    let symbol = symbols.iter().find(|symbol| {
        matches!(symbol.st_symtype(), elf_abi::STT_FUNC | elf_abi::STT_OBJECT)
            && wanted(symbol.st_value, symbol.st_size)
    })?;
    let name = core::str::from_utf8(names.get_raw(symbol.st_name as usize).ok()?).ok()?;
    Some(format!("{:#}", rustc_demangle::demangle(name)))
}
