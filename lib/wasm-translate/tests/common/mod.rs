//! A template in an image of a few bytes, and images composed with it.

#[path = "../../../image-check/tests/common/elf.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod elf;

use compose::Template;
use elf::{
    CODE, DATA, DYNAMIC, EXECUTE, Elf, READ, RELA_ADDRESS, RELRO, Symbol, WRITE, alias, dynamic, load, relocation,
};
use image_check::{Image, ImageError};
use wasm_record::layout::TEMPLATE_MAGIC;
use wasm_translate::Translated;

/// Where the list of imports is.
const IMPORTS: u64 = 0x900;
/// Where the added module goes.
const END: u64 = 0x3000;
/// Type of a function in a table of symbols.
const FUNCTION: u8 = 2;

/// The fingerprint of a contract, of which a template here has none.
fn fingerprint(_name: &str) -> [u8; 32] {
    [0; 32]
}

/// The image file of a template with this list of imports.
pub fn template(imports: &str) -> Vec<u8> {
    let pointers = [(16, IMPORTS), (32, CODE + 12), (40, CODE + 13)];
    let table: Vec<u8> = pointers.iter().flat_map(|(at, address)| relocation(DATA + at, 8, *address as i64)).collect();
    let mut head = vec![0; RELA_ADDRESS as usize];
    head.extend_from_slice(&table);
    head.resize(IMPORTS as usize, 0);
    head.extend_from_slice(imports.as_bytes());
    let mut data = TEMPLATE_MAGIC.to_vec();
    for word in [IMPORTS, imports.len() as u64, CODE + 12, CODE + 13] {
        data.extend_from_slice(&word.to_le_bytes());
    }
    let entries = dynamic(&[(7, RELA_ADDRESS), (8, table.len() as u64), (9, 24)]);
    let place = DATA + data.len() as u64;
    data.extend_from_slice(&entries);
    let bytes = data.len() as u64;
    let mut elf = Elf::good();
    elf.segments = vec![
        load(READ, 0, head),
        load(READ | EXECUTE, CODE, elf::GOOD_CODE.to_vec()),
        load(READ | WRITE, DATA, data),
        alias(DYNAMIC, place, entries.len() as u64),
        alias(RELRO, DATA, bytes),
    ];
    elf.sections.truncate(1);
    elf.symbols = vec![Symbol { name: "__sing_module", address: END, size: 0, kind: FUNCTION }];
    elf.write()
}

/// Composes a module with a template, and checks the image as every machine does.
pub fn check(template: &Template<'_>, translated: &Translated) -> Result<(), ImageError> {
    let image = compose::compose(template, translated).expect("its references can be resolved");
    Image::check(&image).map(drop)
}
