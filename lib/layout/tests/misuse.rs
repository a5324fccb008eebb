//! Each mistake in a declaration, and each misuse of what it declares, is an error of rustc at its place.
//!
//! Messages of rustc change with its versions: `TRYBUILD=overwrite cargo test -p layout` writes those beside the cases
//! anew.

#[test]
fn each_misuse_is_refused() {
    trybuild::TestCases::new().compile_fail("tests/misuse/*.rs");
}
