//! Building the documentation as a book.

use std::process::Command;
use std::time::Duration;

use end_to_end::{finish, repository, sing, target};

/// Timeout that covers installing mdBook.
const LIMIT: Duration = Duration::from_secs(900);

#[test]
fn the_book_builds_without_dead_links() {
    let mut command = Command::new(sing());
    command.args(["docs", "--book"]).current_dir(repository()).env("CARGO_TARGET_DIR", target());
    let run = finish(command, "sing docs --book", LIMIT);
    assert_eq!(run.status, Some(0), "{run}");
    let text = run.text();
    let Some(first) = text.lines().find_map(|line| line.strip_prefix("book    ")) else {
        assert!(run.errors.contains("cargo install mdbook"), "no book, and nothing said of it: {run}");
        return;
    };
    let book = std::path::Path::new(first).parent().expect("a folder");
    for page in ["README.html", "docs/architecture.html", "docs/decisions/0001-pure-images.html", "CONTRIBUTING.html"] {
        assert!(book.join(page).is_file(), "{page} is not in the book");
    }
}
