//! The fuzz target `principal` without a fuzzer.

mod body;
#[path = "../../../../fuzz/replay.rs"]
mod replay;

use std::path::Path;

#[test]
fn damaged_lists_and_principals_break_nothing() {
    let inputs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzzed/inputs");
    replay::replay(&inputs, 400, body::run);
}
