//! What the tests share: modules that are translated and laid out at an address.
#![allow(dead_code)]

use compose::Linked;
use native_verifier::{Module, Report, Violation};
use wasm_record::Imports;

pub const HOST: u64 = 0x1000;
pub const BUILTIN: u64 = 0x2000;
pub const BASE: u64 = 0x10_0000;

/// A module in the text format, or binary, laid out.
pub fn compile(module: &[u8], imports: &Imports) -> Result<Linked, String> {
    let module = wat::parse_bytes(module).map_err(|error| error.to_string())?;
    let translated =
        wasm_translate::translate(&module, imports, &[], &mut |_, _| {}).map_err(|error| error.to_string())?;
    compose::link(&translated, BASE, 0, [HOST, BUILTIN]).map_err(|error| error.to_string())
}

pub fn module(linked: &Linked) -> Module<'_> {
    Module {
        data_address: linked.data_address,
        data: &linked.data,
        text_address: linked.text_address,
        text: &linked.text,
        relocations: &linked.relocations,
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
