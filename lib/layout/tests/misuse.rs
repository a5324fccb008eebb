//! Mistakes in declarations and misuse of what they declare are compile errors at their place.
//!
//! rustc's messages change with its versions: `TRYBUILD=overwrite cargo test -p layout` rewrites the expected ones.

#[test]
fn each_misuse_is_refused() {
    trybuild::TestCases::new().compile_fail("tests/misuse/*.rs");
}
