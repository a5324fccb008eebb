//! Mistakes in declarations and their misuse are compile errors with the right location.
//!
//! rustc's messages vary between versions: `TRYBUILD=overwrite cargo test -p layout` regenerates the expected ones.

#[test]
fn each_misuse_is_refused() {
    trybuild::TestCases::new().compile_fail("tests/misuse/*.rs");
}
