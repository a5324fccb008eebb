//! A served folder, with wget as the client.

use std::fs;
use std::path::Path;
use std::time::Duration;

use end_to_end::{Site, client};

test_needs::needs!(Wget);

const LIMIT: Duration = Duration::from_secs(40);

fn fill(root: &Path) -> std::io::Result<()> {
    for folder in ["", "a", "a/b", "with blank"] {
        fs::create_dir_all(root.join(folder))?;
        fs::write(root.join(folder).join("empty"), "")?;
        fs::write(root.join(folder).join("text.txt"), format!("in {folder}\n").repeat(3000))?;
    }
    fs::write(root.join("a/index.html"), "<a href=\"b/\">b</a> <a href=\"text.txt\">text</a> <a href=\"empty\">e</a>")?;
    fs::write(root.join("f\u{fc}nf"), "5")
}

/// wget follows the listings of folders, and the links of pages.
#[test]
fn a_whole_site_is_mirrored() {
    let folder = tempfile::tempdir().expect("a folder");
    fill(folder.path()).expect("files can be written");
    let site = Site::serve(folder.path());
    let copy = tempfile::tempdir().expect("a folder");
    let url = site.url("/");
    // Listings are generated pages, which wget removes.
    let arguments =
        ["--quiet", "--mirror", "--no-parent", "--no-host-directories", "--tries=1", "--reject=index.html*"];
    let run = client(
        "wget",
        arguments.iter().chain(&["--directory-prefix", &copy.path().display().to_string(), &url]),
        LIMIT,
    );
    assert_eq!(run.status, Some(0), "{run}");
    fs::remove_file(folder.path().join("a/index.html")).expect("it is there");
    let compared = client(
        "diff",
        ["-r".as_ref(), "-x".as_ref(), "lost+found".as_ref(), folder.path().as_os_str(), copy.path().as_os_str()],
        LIMIT,
    );
    compared.succeeded();
    site.end();
}

/// A partial file is resumed, and a complete one not fetched again.
#[test]
fn a_file_is_fetched_on_from_where_it_ended() {
    let folder = tempfile::tempdir().expect("a folder");
    let content: Vec<u8> = (0..3_000_000u32).map(|at| (at.wrapping_mul(0x9e37_79b1) >> 23) as u8).collect();
    fs::write(folder.path().join("large"), &content).expect("a file can be written");
    let site = Site::serve(folder.path());
    let copy = tempfile::tempdir().expect("a folder");
    let file = copy.path().join("large");
    fs::write(&file, &content[..1_234_567]).expect("a file can be written");
    let url = site.url("/large");
    let continued = |expected: &str| {
        let prefix = copy.path().display().to_string();
        let run = client("wget", ["--continue", "--tries=1", "--server-response", "-P", &prefix, &url], LIMIT);
        assert!(run.errors.contains(expected), "{run}");
        assert!(fs::read(&file).unwrap_or_default() == content, "the file is not what it was");
    };
    continued("206 Partial Content");
    continued("416 ");
    site.end();
}
