//! Source lines of code addresses, from an image with line tables.

use addr2line::Context;
use addr2line::gimli::{Dwarf, EndianSlice, LittleEndian as Little, SectionId};
use elf::ElfBytes;
use elf::endian::LittleEndian;

type Reader<'a> = EndianSlice<'a, Little>;

/// The line table of an image.
pub struct LineTable<'a>(Context<Reader<'a>>);

impl<'a> LineTable<'a> {
    /// Reads an image with line tables; `None` if it has none.
    pub fn read(bytes: &'a [u8]) -> Option<LineTable<'a>> {
        let file = ElfBytes::<LittleEndian>::minimal_parse(bytes).ok()?;
        let section = |id: SectionId| -> Result<Reader<'a>, addr2line::gimli::Error> {
            let header = file.section_header_by_name(id.name()).ok().flatten();
            let data = header.and_then(|header| file.section_data(&header).ok()).map_or(&[][..], |(data, _)| data);
            Ok(Reader::new(data, Little))
        };
        Some(LineTable(Context::from_dwarf(Dwarf::load(section).ok()?).ok()?))
    }

    /// Returns functions and locations at an address: those inlined there first, then the one that contains it.
    pub fn frames_at(&self, address: u64) -> Vec<(String, String)> {
        let mut found = Vec::new();
        // The crate adds 1 to it.
        if address == u64::MAX {
            return found;
        }
        let Ok(mut frames) = self.0.find_frames(address).skip_all_loads() else { return found };
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.as_ref().and_then(|function| function.raw_name().ok());
            let name = name.map_or_else(|| "?".into(), |name| format!("{:#}", rustc_demangle::demangle(name.as_ref())));
            let location =
                frame.location.and_then(|location| Some(format!("{}:{}", shown(location.file?), location.line?)));
            found.push((name, location.unwrap_or_else(|| "?".into())));
        }
        found
    }
}

/// Returns a path of a source as the sources' own folder has it: those of an image are relative to it, and a reader puts
/// the folder of the entry crates before them.
fn shown(file: &str) -> &str {
    file.split_once("sing/stubs/").map_or(file, |(_, path)| path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_of_this_program_is_found_with_its_file() {
        let bytes = std::fs::read(std::env::current_exe().expect("this program has a path")).expect("and can be read");
        let table = LineTable::read(&bytes).expect("tests have line tables");
        let functions = crate::bare::symbols::functions(&bytes).expect("a program with symbols");
        let name = "lines::tests::a_function_of_this_program_is_found_with_its_file";
        let (address, _) = functions.iter().find(|(_, found)| found.ends_with(name)).expect("this function");
        let frames = table.frames_at(*address);
        assert!(frames.iter().any(|(_, place)| place.contains("autopsy/lines.rs:")), "{frames:?}");
        assert_eq!(table.frames_at(u64::MAX), []);
    }

    #[test]
    fn other_files_have_none() {
        assert!(LineTable::read(b"#!/bin/sh").is_none());
    }
}
