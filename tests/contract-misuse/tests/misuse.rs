//! Each misuse of a contract is an error of rustc that says what is wrong.
//!
//! Messages of rustc change with its versions: `TRYBUILD=overwrite cargo test -p contract-misuse` writes
//! those beside the cases anew.

#[test]
fn each_misuse_is_refused() {
    trybuild::TestCases::new().compile_fail("tests/misuse/*.rs");
}

#[test]
fn what_a_program_renames_changes_no_unsafe_code() {
    trybuild::TestCases::new().pass("tests/harmless/*.rs");
}
