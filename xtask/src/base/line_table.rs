//! Source lines that have code in a file, from its DWARF line table.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use elf::ElfBytes;
use elf::endian::LittleEndian as ElfLittleEndian;
use gimli::{Dwarf, EndianSlice, LittleEndian};

use sing::cargo::Package;
use sing::failure::{Failure, Outcome};
use sing::repository::Repository;

type Reader<'a> = EndianSlice<'a, LittleEndian>;

/// Lines with code, by source file.
#[derive(Debug, Default)]
pub struct Compiled {
    files: BTreeMap<String, BTreeSet<u64>>,
    images: usize,
}

impl Compiled {
    /// Adds the lines of a machine's program.
    ///
    /// # Errors
    /// The file cannot be read or has no line table.
    pub fn add_machine(&mut self, path: &Path) -> Outcome<()> {
        self.add(path)
    }

    /// Adds the lines of an image.
    ///
    /// # Errors
    /// As for `add_machine`.
    pub fn add_image(&mut self, path: &Path) -> Outcome<()> {
        self.images += 1;
        self.add(path)
    }

    /// Number of images added.
    pub fn images(&self) -> usize {
        self.images
    }

    /// Distinct lines of a crate.
    pub fn lines_of(&self, repository: &Repository, package: &Package) -> usize {
        let folder = package.folder();
        let own = match package.source {
            None => folder.strip_prefix(repository.base()).unwrap_or(folder).to_string_lossy().into_owned() + "/",
            Some(_) => format!("/{}-{}/", package.name, package.version),
        };
        let of_crate = |file: &str| match package.source {
            // Paths of the repository are relative in images and absolute in machines.
            None => {
                let file = file.strip_prefix(&*repository.base().to_string_lossy()).unwrap_or(file);
                file.trim_start_matches('/').starts_with(&own)
            }
            Some(_) => file.contains(&own),
        };
        self.files.iter().filter(|(file, _)| of_crate(file)).map(|(_, lines)| lines.len()).sum()
    }

    /// Distinct lines of `core`, `alloc`, `std` and their dependencies.
    pub fn lines_of_rust(&self) -> usize {
        self.files.iter().filter(|(file, _)| file.starts_with("/rustc/")).map(|(_, lines)| lines.len()).sum()
    }

    fn add(&mut self, path: &Path) -> Outcome<()> {
        let bytes = std::fs::read(path).map_err(|error| Failure::file("read", path, &error))?;
        let unreadable = |what: String| {
            Failure::new(format!("cannot read the line table of {}: {what}", path.display()))
                .remedy("delete it and rebuild")
        };
        let file = ElfBytes::<ElfLittleEndian>::minimal_parse(&bytes).map_err(|error| unreadable(error.to_string()))?;
        let section = |id: gimli::SectionId| -> Result<Reader<'_>, gimli::Error> {
            let header = file.section_header_by_name(id.name()).ok().flatten();
            let data = header.and_then(|header| file.section_data(&header).ok()).map_or(&[][..], |(data, _)| data);
            Ok(EndianSlice::new(data, LittleEndian))
        };
        match Dwarf::load(section).and_then(|dwarf| self.add_units(&dwarf)) {
            Ok(0) => Err(unreadable("it is empty".into())),
            Ok(_) => Ok(()),
            Err(error) => Err(unreadable(error.to_string())),
        }
    }

    /// Number of rows.
    fn add_units(&mut self, dwarf: &Dwarf<Reader<'_>>) -> gimli::Result<usize> {
        let mut count = 0;
        let mut headers = dwarf.units();
        while let Some(header) = headers.next()? {
            let unit = dwarf.unit(header)?;
            let Some(program) = unit.line_program.clone() else { continue };
            let mut rows = program.rows();
            while let Some((header, row)) = rows.next_row()? {
                let (Some(line), Some(file)) = (row.line(), row.file(header)) else { continue };
                if row.end_sequence() {
                    continue;
                }
                let text = |value| dwarf.attr_string(&unit, value).map(|text| text.to_string_lossy().into_owned());
                let mut path = text(file.path_name())?;
                if let Some(folder) = file.directory(header).filter(|_| !path.starts_with('/')) {
                    path = format!("{}/{path}", text(folder)?);
                }
                if !path.starts_with('/')
                    && let Some(folder) = unit.comp_dir
                    && !folder.is_empty()
                {
                    path = format!("{}/{path}", folder.to_string_lossy());
                }
                self.files.entry(path).or_default().insert(line.get());
                count += 1;
            }
        }
        Ok(count)
    }
}
