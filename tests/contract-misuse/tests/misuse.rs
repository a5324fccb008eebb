//! Each misuse of a contract is a rustc error with a clear message.
//!
//! rustc's messages vary between versions: `TRYBUILD=overwrite cargo test -p contract-misuse` regenerates the expected
//! ones.

#[test]
fn each_misuse_is_refused() {
    trybuild::TestCases::new().compile_fail("tests/misuse/*.rs");
}

#[test]
fn what_a_program_renames_changes_no_unsafe_code() {
    trybuild::TestCases::new().pass("tests/harmless/*.rs");
}
