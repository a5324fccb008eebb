//! The suite's malformed and invalid modules are refused.

use std::collections::BTreeSet;

use wasm_record::Imports;
use wasm_record::layout::Bounds;
use wasm_spec::{refusals, sources};
use wasm_translate::translate;

/// Accepted, since WebAssembly 3.0 reads limits as numbers of 64 bits: these have more bytes than one of 32 bits can.
const ACCEPTED: [(&str, u32); 2] = [("core/binary-leb128", 217), ("core/binary-leb128", 225)];

#[test]
fn malformed_and_invalid_modules_are_refused() {
    let refusals = refusals(&sources());
    assert!(refusals.len() > 2000, "there are {}", refusals.len());
    let accepted: BTreeSet<(&str, u32)> = refusals
        .iter()
        .filter(|refusal| translate(&refusal.bytes, &Imports::default(), Bounds::Checked, &mut |_, _| ()).is_ok())
        .map(|refusal| (refusal.file.as_str(), refusal.line))
        .collect();
    assert_eq!(accepted, BTreeSet::from(ACCEPTED));
}
