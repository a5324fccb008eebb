//! What the tests share: modules that are translated and laid out at an address.
#![allow(dead_code)]

pub mod machine;

use compose::Linked;
use native_verifier::{Module, Report, Violation};
use wasm_record::Imports;
use wasm_record::layout::{Bounds, HEADER_BOUNDS};

pub const HOST: u64 = 0x1000;
pub const BUILTIN: u64 = 0x2000;
pub const BASE: u64 = 0x10_0000;

/// Both kinds of bounds of linear memory.
pub const BOUNDS: [Bounds; 2] = [Bounds::Checked, Bounds::Guarded];

/// A module in the text format, or binary, laid out.
pub fn compile(module: &[u8], imports: &Imports, bounds: Bounds) -> Result<Linked, String> {
    let module = wat::parse_bytes(module).map_err(|error| error.to_string())?;
    let translated = wasm_translate::translate(&module, imports, bounds, &mut |_, _| {});
    let translated = translated.map_err(|error| error.to_string())?;
    compose::link(&translated, BASE, 0, [HOST, BUILTIN]).map_err(|error| error.to_string())
}

pub fn module(linked: &Linked) -> Module<'_> {
    Module {
        data_address: linked.data_address,
        data: &linked.data,
        text_address: linked.text_address,
        text: &linked.text,
        relocations: linked.relocations.clone(),
        host: HOST,
        builtin: BUILTIN,
    }
}

pub fn verify(linked: &Linked) -> Result<Report, Violation> {
    native_verifier::verify(&module(linked))
}

/// The instructions of a function up to a violation, for messages.
pub fn around(linked: &Linked, address: u64) -> String {
    use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};
    let mut decoder = Decoder::with_ip(64, &linked.text, linked.text_address, DecoderOptions::NONE);
    let mut formatter = IntelFormatter::new();
    let mut lines = Vec::new();
    for instruction in &mut decoder {
        let mut text = format!("{:x} ", instruction.ip());
        formatter.format(&instruction, &mut text);
        lines.push((instruction.ip(), text));
    }
    let at = lines.partition_point(|(ip, _)| *ip < address);
    let count: usize = std::env::var("LINES").ok().and_then(|count| count.parse().ok()).unwrap_or(12);
    let shown = &lines[at.saturating_sub(count)..(at + 2).min(lines.len())];
    shown.iter().map(|(_, text)| format!("    {text}\n")).collect()
}

/// A module of one function, which is replaced by code that is written by hand. It has memory, a table, a global and an
/// `i32` for its parameter.
pub struct Bad {
    linked: Linked,
    entry: usize,
}

impl Bad {
    /// Address of the function.
    pub const CODE: u64 = BASE + 0x1000;
    /// Address of the entry of its signature.
    pub const ENTRY: u64 = Bad::CODE + 0x800;

    /// With checked bounds of memory.
    pub fn new() -> Bad {
        Bad::of("(memory 1)", Bounds::Checked as u64)
    }

    /// With memory in a window.
    pub fn guarded() -> Bad {
        Bad::of("(memory 1)", Bounds::Guarded as u64)
    }

    /// With bounds of this number, for a memory that is not there if `memory` is empty.
    pub fn of(memory: &str, bounds: u64) -> Bad {
        let text = format!("(module {memory} (table 1 funcref) (global (mut i32) (i32.const 0)) (func (param i32)))");
        let mut linked = compile(text.as_bytes(), &Imports::default(), Bounds::Checked).expect("compiles");
        linked.data[HEADER_BOUNDS..HEADER_BOUNDS + 8].copy_from_slice(&bounds.to_le_bytes());
        assert_eq!(linked.text_address, Bad::CODE, "where the text lies");
        let entry = linked.relocations.last().expect("the entry").1;
        // The entry is moved, so that there is room for the code.
        let entry = (entry - linked.text_address) as usize;
        let old = linked.text.split_off(entry);
        linked.text.resize((Bad::ENTRY - Bad::CODE) as usize, 0xCC);
        let entry = linked.text.len();
        linked.text.extend(old);
        linked.relocations.last_mut().expect("the entry").1 = Bad::ENTRY;
        Bad { linked, entry }
    }

    /// Verifies the module with this code.
    pub fn judge(
        mut self,
        write: impl Fn(&mut iced_x86::code_asm::CodeAssembler) -> Result<(), iced_x86::IcedError>,
    ) -> Result<(), Violation> {
        let mut assembler = iced_x86::code_asm::CodeAssembler::new(64).expect("an assembler");
        write(&mut assembler).expect("instructions");
        let code = assembler.assemble(Bad::CODE).expect("assembles");
        assert!(code.len() < self.entry, "the code is too long");
        // What comes behind it is no instruction that ends the function.
        self.linked.text[..self.entry].fill(0x90);
        self.linked.text[..code.len()].copy_from_slice(&code);
        verify(&self.linked).map(|_| ())
    }
}
