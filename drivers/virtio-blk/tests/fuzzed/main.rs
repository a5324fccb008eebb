//! The fuzz target `virtio_blk`, without a fuzzer.

mod body;
#[path = "../../../../sip/virtio/tests/fuzzed/life.rs"]
mod life;
#[path = "../../../../fuzz/replay.rs"]
mod replay;

use std::path::Path;

#[test]
fn the_driver_survives_any_answer() {
    let inputs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzzed/inputs");
    replay::replay(&inputs, 200, body::run);
}
