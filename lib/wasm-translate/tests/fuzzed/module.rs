//! Body of the fuzz target `wasm_module`: its bytes are a module, or what a generator of valid modules makes one of.

use std::sync::OnceLock;

use arbitrary::Unstructured;
use compose::Template;
use image_check::ImageError;
use wasm_record::layout::Bounds;
use wasm_record::{Imports, Record};
use wasm_smith::Config;
use wasm_translate::{Error, translate};

use crate::common;

/// Kind of the input given by the first byte, modulo [`KINDS`].
pub const AS_MODULE: u8 = 0;
pub const AS_CHOICES: u8 = 1;
const KINDS: u8 = AS_CHOICES + 1;

/// One trial; a panic is a finding.
pub fn run(bytes: &[u8]) {
    let Some((kind, rest)) = bytes.split_first() else { return };
    if kind % KINDS == AS_MODULE {
        let _ = module_ends(rest);
        return;
    }
    let Some(module) = generated(rest) else { return };
    if let Err(error) = module_ends(&module) {
        // What is valid compiles, but for limits and what is not supported.
        let is_clean = match &error {
            Error::Limit { .. } | Error::Unsupported { .. } => true,
            Error::Function { why, .. } => !why.contains("code generator failed"),
            Error::Invalid { .. } | Error::Import { .. } | Error::Backend(_) => false,
        };
        assert!(is_clean, "{error}");
    }
}

/// The module that choices make.
pub fn generated(choices: &[u8]) -> Option<Vec<u8>> {
    let module = wasm_smith::Module::new(config(), &mut Unstructured::new(choices));
    module.ok().map(|module| module.to_bytes())
}

/// What is supported, in modules that are small.
fn config() -> Config {
    Config {
        max_imports: 0,
        min_types: 4,
        min_funcs: 4,
        min_globals: 4,
        min_memories: 1,
        min_tables: 2,
        min_data_segments: 1,
        min_element_segments: 1,
        max_funcs: 12,
        max_instructions: 200,
        max_tables: 4,
        max_memories: 1,
        max_memory32_bytes: 1 << 20,
        max_table_elements: 1000,
        max_tags: 0,
        memory64_enabled: false,
        exceptions_enabled: false,
        gc_enabled: false,
        compact_imports_enabled: false,
        relaxed_simd_enabled: false,
        threads_enabled: false,
        wide_arithmetic_enabled: false,
        ..Config::default()
    }
}

fn template() -> &'static Template<'static> {
    static FILE: OnceLock<Vec<u8>> = OnceLock::new();
    static TEMPLATE: OnceLock<Template<'static>> = OnceLock::new();
    TEMPLATE.get_or_init(|| Template::parse(FILE.get_or_init(|| common::template(""))).expect("a template"))
}

/// What is compiled makes an image that is accepted, and has a record.
fn module_ends(bytes: &[u8]) -> Result<(), Error> {
    let translated = translate(bytes, &Imports::default(), Bounds::Checked, &mut |_, _| ())?;
    match common::check(template(), &translated) {
        Ok(()) | Err(ImageError::TooLarge { .. }) => {}
        Err(error) => panic!("the image is refused: {error}"),
    }
    Record::parse(&translated.record).expect("a record");
    Ok(())
}
