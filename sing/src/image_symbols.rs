//! Checks the symbols and sections of an image before it is packed.
//!
//! An image is one codegen unit of the entry crate and all its dependencies, beside a few functions that come with the
//! compiler. A unit has no duplicate definitions, so a symbol of the runtime that occurs once is the runtime's own. All
//! other symbols are mangled functions of Rust crates: an unmangled name, a file of another compiler or a section of
//! another name came in by a way that the builder's rules missed. Deliberately not here: the image's bytes, which
//! `image-check` checks.

use elf::ElfBytes;
use elf::abi::{SHN_UNDEF, STB_LOCAL, STT_FILE, STT_SECTION};
use elf::endian::LittleEndian;

/// Symbols defined by the entry crate (`sip::entry!`), and by the linker.
const OF_THE_RUNTIME: [&str; 10] = [
    "_start",
    "memcpy",
    "memmove",
    "memset",
    "memcmp",
    "bcmp",
    "rust_eh_personality",
    "_Unwind_Resume",
    "_DYNAMIC",
    "__sing_module",
];
/// Sections of the link script, and those for symbols.
const SECTIONS: [&str; 15] = [
    "",
    ".gnu.hash",
    ".hash",
    ".dynsym",
    ".dynstr",
    ".rela.dyn",
    ".rodata",
    ".sing.contracts",
    ".text",
    ".data.rel.ro",
    ".got",
    ".dynamic",
    ".symtab",
    ".strtab",
    ".shstrtab",
];
/// Crate of functions that come with the compiler.
const OF_THE_COMPILER: &str = "compiler_builtins";
/// Prefixes of mangled Rust symbols.
const MANGLED: [&str; 2] = ["_ZN", "_R"];

/// A symbol of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Symbol {
    name: String,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Name of a codegen unit, to which the local symbols after it belong.
    File,
    Local,
    Global,
    Undefined,
}

/// Returns the complaint about the symbols and sections of a program's image.
pub fn complaint(image: &[u8], program: &str) -> Option<String> {
    let Ok(file) = ElfBytes::<LittleEndian>::minimal_parse(image) else {
        return Some("not an ELF file".into());
    };
    let Some(sections) = section_names(&file) else { return Some("section names are missing".into()) };
    if let Some(section) = sections.iter().find(|section| !SECTIONS.contains(&section.as_str())) {
        return Some(format!("unexpected section `{section}`, not in the link script"));
    }
    match symbols(&file) {
        Some(symbols) => symbol_complaint(&symbols, program),
        None => Some("no symbol table".into()),
    }
}

fn section_names(file: &ElfBytes<'_, LittleEndian>) -> Option<Vec<String>> {
    let (headers, names) = file.section_headers_with_strtab().ok()?;
    let (headers, names) = (headers?, names?);
    headers.iter().map(|header| names.get(header.sh_name as usize).ok().map(String::from)).collect()
}

fn symbols(file: &ElfBytes<'_, LittleEndian>) -> Option<Vec<Symbol>> {
    let (table, names) = file.symbol_table().ok()??;
    let named = table.iter().skip(1).filter(|symbol| symbol.st_symtype() != STT_SECTION);
    named
        .map(|symbol| {
            let kind = match (symbol.st_symtype(), symbol.st_bind()) {
                (STT_FILE, _) => Kind::File,
                _ if symbol.st_shndx == SHN_UNDEF => Kind::Undefined,
                (_, STB_LOCAL) => Kind::Local,
                _ => Kind::Global,
            };
            Some(Symbol { name: names.get(symbol.st_name as usize).ok()?.into(), kind })
        })
        .collect()
}

fn symbol_complaint(symbols: &[Symbol], program: &str) -> Option<String> {
    let own = program.replace('-', "_");
    // Symbols before the first unit are the linker's.
    let mut unit = own.as_str();
    let mut defined = Vec::new();
    for Symbol { name, kind } in symbols {
        let is_of_runtime = OF_THE_RUNTIME.contains(&name.as_str());
        match kind {
            // The linker's own symbols follow a file symbol without a name.
            Kind::File if name.is_empty() => unit = &own,
            Kind::File => {
                unit = name.split('.').next().unwrap_or_default();
                if unit != own && unit != OF_THE_COMPILER {
                    return Some(format!("code of `{name}`, which is not a unit of the program"));
                }
                if unit == own && defined.contains(&unit) {
                    return Some(format!("duplicate code unit `{unit}`"));
                }
                defined.push(unit);
            }
            Kind::Undefined => return Some(format!("undefined symbol `{name}`")),
            Kind::Local if unit == OF_THE_COMPILER || MANGLED.iter().any(|begin| name.starts_with(begin)) => {}
            _ if is_of_runtime && !defined.contains(&name.as_str()) => defined.push(name),
            _ if is_of_runtime => return Some(format!("duplicate symbol `{name}`")),
            _ => {
                return Some(format!("symbol `{name}` comes from neither the runtime nor the compiler"));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn symbols_of(list: &[(Kind, &str)]) -> Vec<Symbol> {
        list.iter().map(|&(kind, name)| Symbol { name: name.into(), kind }).collect()
    }

    const USUAL: [(Kind, &str); 9] = [
        (Kind::File, "a_b.0123-cgu.0"),
        (Kind::Local, "_ZN3a_b4main17h0123456789abcdefE"),
        (Kind::Local, "_RNvC3a_b4main"),
        (Kind::File, "compiler_builtins.4567-cgu.132"),
        (Kind::Local, "__udivti3"),
        (Kind::File, ""),
        (Kind::Local, "_DYNAMIC"),
        (Kind::Global, "memcpy"),
        (Kind::Global, "_start"),
    ];

    #[test]
    fn what_the_compiler_and_the_runtime_make_is_accepted() {
        assert_eq!(symbol_complaint(&symbols_of(&USUAL), "a-b"), None);
    }

    #[test]
    fn other_symbols_and_units_are_refused() {
        for (kind, name, part) in [
            (Kind::Global, "memcpy", "duplicate symbol `memcpy`"),
            (Kind::Global, "getpid", "neither the runtime nor the compiler"),
            (Kind::Local, "hidden", "neither the runtime nor the compiler"),
            (Kind::Undefined, "getpid", "undefined symbol"),
            (Kind::File, "words.c", "not a unit of the program"),
            (Kind::File, "a_b.89ab-cgu.1", "duplicate code unit"),
        ] {
            let symbols = symbols_of(&[&USUAL[..], &[(kind, name)]].concat());
            let complaint = symbol_complaint(&symbols, "a-b").unwrap_or_else(|| panic!("{name} is accepted"));
            assert!(complaint.contains(part), "{name}: {complaint}");
        }
    }

    #[test]
    fn symbols_are_those_that_a_compiler_writes() {
        let folder = tempfile::tempdir().expect("a folder");
        let (source, object) = (folder.path().join("words.rs"), folder.path().join("words.o"));
        let text = "#![no_std]\n#[unsafe(no_mangle)]\npub extern \"C\" fn getpid() -> i32 { 0 }\n";
        std::fs::write(&source, text).expect("a file");
        let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
        rustc.args(["--crate-type=lib", "--emit=obj", "-Ccodegen-units=1", "-o"]).arg(&object).arg(&source);
        assert!(rustc.status().expect("rustc starts").success());
        let image = std::fs::read(&object).expect("an object");
        let file = ElfBytes::<LittleEndian>::minimal_parse(&image).expect("an ELF file");
        let found = symbols(&file).expect("a table");
        assert!(found.iter().any(|symbol| symbol.kind == Kind::File && symbol.name.starts_with("words.")), "{found:?}");
        let complaint = symbol_complaint(&found, "words").expect("it is another's");
        assert!(complaint.contains("symbol `getpid` comes from neither"), "{complaint}");
        // It was not linked by the script.
        assert!(complaint_of_sections(&image).contains(".getpid"));
    }

    fn complaint_of_sections(image: &[u8]) -> String {
        complaint(image, "words").expect("it has sections of an object")
    }
}
