//! A served folder, with Python's `requests` as the client.

use std::fs;
use std::path::Path;
use std::time::Duration;

use end_to_end::{Site, client, repository};

test_needs::needs!(Requests);

#[test]
fn a_script_uses_the_site() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("dir00001")).expect("a folder");
    fs::write(folder.path().join("dir00001/class0_1"), "wrapped").expect("a file can be written");
    fs::write(folder.path().join("empty"), "").expect("a file can be written");
    let large: Vec<u8> = (0..5_000_000u32).map(|at| (at.wrapping_mul(0x9e37_79b1) >> 23) as u8).collect();
    fs::write(folder.path().join("large"), large).expect("a file can be written");
    let mut site = Site::serve_with(folder.path(), &["--demo"]);
    let paths = ["/spec/", "/hello", "/status/", "/empty"];
    // Allocate everything that stays open or cached.
    script(&site, folder.path());
    let before = site.in_use(&paths);
    script(&site, folder.path());
    site.is_as_before(&before, &paths, 20);
    site.end();
}

#[track_caller]
fn script(site: &Site, folder: &Path) {
    let script = repository().join("tests/end-to-end/tests/people/web_python.py");
    let arguments = [script.as_os_str(), site.url("").as_ref(), folder.as_os_str()].map(ToOwned::to_owned);
    assert_eq!(client("python3", arguments, Duration::from_secs(50)).succeeded(), "all is so\n");
}
