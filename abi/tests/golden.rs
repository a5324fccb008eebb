//! The rendered table is committed, so that a change of the ABI shows in review.

#[test]
fn rendered_table_is_the_committed_one() {
    let committed = include_str!("../v1.txt");
    let rendered = abi::render();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/v1.txt"), &rendered).expect("abi/v1.txt can be written");
        return;
    }
    assert_eq!(committed, rendered, "run `UPDATE_GOLDEN=1 cargo test -p abi` and review the difference");
}
