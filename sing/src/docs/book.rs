//! The documentation pages as a book: those listed in `docs/SUMMARY.md`, rendered by mdBook.
//!
//! The pages lie in several folders and link to each other and to other files of the repository. So they are copied
//! to one folder with their paths kept, together with every link target; mdBook renders that folder. A dead link
//! fails the build. Deliberately not here: documentation of crates, which is rustdoc's.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

use crate::failure::{Failure, Outcome};
use crate::host_tools;
use crate::repository::{Repository, read_text, write_if_changed};

/// Table of contents, relative to the repository.
const SUMMARY: &str = "docs/SUMMARY.md";
/// The renderer, and the version to install if it is missing.
const MDBOOK: &str = "mdbook";
const VERSION: &str = "0.5.4";
/// Pages keep their repository names: `README.md` does not become `index.html`.
const CONFIGURATION: &str = "\
[book]
title = \"Singularity in Rust\"
src = \"src\"

[build]
use-default-preprocessors = false

[output.html]
default-theme = \"light\"
preferred-dark-theme = \"navy\"
no-section-label = true

[output.html.fold]
enable = true
";
/// Maximum dead links shown.
const MAX_SHOWN: usize = 10;

/// Builds the book in `output`, an otherwise empty folder; returns its first page. `None` if mdBook is missing and
/// may not be installed.
///
/// # Errors
/// A page cannot be read, mdBook fails, or the book has a dead link.
pub fn build(repository: &Repository, output: &Path) -> Outcome<Option<PathBuf>> {
    let Some(mdbook) = mdbook(repository)? else { return Ok(None) };
    let staged = repository.output("book");
    stage(repository.base(), &staged)?;
    let mut command = Command::new(mdbook);
    command.arg("build").arg(&staged).arg("--dest-dir").arg(output).env("MDBOOK_LOG", "warn");
    super::run(command, MDBOOK)?;
    let dead = dead_links(output)?;
    if !dead.is_empty() {
        let more = dead.len().saturating_sub(MAX_SHOWN);
        let end = if more > 0 { format!(" and {more} more") } else { String::new() };
        let shown = dead.into_iter().take(MAX_SHOWN).collect::<Vec<_>>().join("; ");
        return Err(Failure::new(format!("broken links in the book: {shown}{end}"))
            .remedy("fix them, or list the pages in docs/SUMMARY.md"));
    }
    Ok(Some(output.join("index.html")))
}

/// Finds mdBook: the host's, or else one that cargo installs in the output folder.
fn mdbook(repository: &Repository) -> Outcome<Option<PathBuf>> {
    let root = repository.output("tools");
    let own = root.join("bin").join(MDBOOK);
    if let Some(found) = host_tools::find(MDBOOK).or_else(|| own.is_file().then(|| own.clone())) {
        return Ok(Some(found));
    }
    let typed = format!("cargo install {MDBOOK} --version {VERSION} --locked");
    if !host_tools::may_install() {
        eprintln!("sing: the pages are not built: mdBook is not installed; run: {typed}");
        return Ok(None);
    }
    eprintln!("sing: installing mdBook {VERSION} with cargo: the book needs it (--no-install forbids this)");
    // A debug build takes a third of the time, and renders this book in a second.
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["install", MDBOOK, "--version", VERSION, "--locked", "--debug", "--no-default-features"]);
    command.args(["--features", "search", "--root"]).arg(&root);
    command.env("CARGO_TARGET_DIR", root.join("build")).env_remove("RUSTFLAGS").stdin(Stdio::null());
    // Outside the repository, whose cargo configuration is for its programs.
    command.current_dir(std::env::temp_dir());
    super::run(command, "cargo install")?;
    Ok(Some(own))
}

/// Copies the pages and their link targets to `staged`.
fn stage(base: &Path, staged: &Path) -> Outcome<()> {
    let summary = read_text(&base.join(SUMMARY))?;
    let pages: BTreeSet<PathBuf> = links(&summary).filter_map(|link| resolved(Path::new(SUMMARY), link)).collect();
    if staged.exists() {
        std::fs::remove_dir_all(staged).map_err(|error| Failure::file("remove the folder", staged, &error))?;
    }
    let source = staged.join("src");
    write_if_changed(&staged.join("book.toml"), CONFIGURATION.as_bytes())?;
    let list = replaced(&summary, |link| Some(resolved(Path::new(SUMMARY), link)?.to_string_lossy().into_owned()));
    write_if_changed(&source.join("SUMMARY.md"), list.as_bytes())?;
    let mut files = BTreeSet::new();
    for page in &pages {
        let text = read_text(&base.join(page))?;
        files.extend(links(&text).filter_map(|link| resolved(page, link)).filter(|file| !pages.contains(file)));
        write_if_changed(&source.join(page), text.as_bytes())?;
    }
    for file in files.iter().filter(|file| base.join(file).is_file()) {
        let content = std::fs::read(base.join(file)).map_err(|error| Failure::file("read", file, &error))?;
        write_if_changed(&source.join(file), &content)?;
    }
    Ok(())
}

/// Returns the targets of the links `[text](target)` of a page. Apparent links in code do no harm: their targets do
/// not exist.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split([')', '\n']).next())
}

/// Returns a page with some link targets replaced; anchors stay.
fn replaced(text: &str, mut by: impl FnMut(&str) -> Option<String>) -> String {
    let mut parts = text.split("](");
    let mut new = String::from(parts.next().unwrap_or_default());
    for part in parts {
        new.push_str("](");
        let end = part.find([')', '\n']).unwrap_or(part.len());
        let (link, rest) = part.split_at(end);
        match by(link) {
            Some(other) => {
                new.push_str(&other);
                new.push_str(link.find('#').map_or("", |anchor| &link[anchor..]));
            }
            None => new.push_str(link),
        }
        new.push_str(rest);
    }
    new
}

/// Resolves a link on a page, relative to the repository; `None` for the page itself and for the web.
fn resolved(page: &Path, link: &str) -> Option<PathBuf> {
    let path = link.split('#').next().unwrap_or_default();
    if path.is_empty() || path.contains(':') {
        return None;
    }
    let mut file = page.parent().unwrap_or(Path::new("")).to_path_buf();
    for component in Path::new(path).components() {
        match component {
            Component::ParentDir if !file.pop() => return None,
            Component::Normal(name) => file.push(name),
            _ => {}
        }
    }
    Some(file)
}

/// Returns the links of a book whose file or heading does not exist.
fn dead_links(book: &Path) -> Outcome<Vec<String>> {
    let mut texts = BTreeMap::new();
    read_pages(book, &mut texts)?;
    let mut dead = Vec::new();
    for (page, text) in &texts {
        let targets = text.split(" href=\"").skip(1).chain(text.split(" src=\"").skip(1));
        for link in targets.filter_map(|rest| rest.split('"').next()).filter(|link| !link.contains(':')) {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let folder = page.parent().unwrap_or(book);
            let target = if path.is_empty() { page.clone() } else { folder.join(path) };
            let is_there = match target.canonicalize() {
                Ok(target) => anchor.is_empty() || texts.get(&target).is_none_or(|text| has_anchor(text, anchor)),
                Err(_) => false,
            };
            if !is_there {
                dead.push(format!("{} on {}", link, page.strip_prefix(book).unwrap_or(page).display()));
            }
        }
    }
    Ok(dead)
}

fn has_anchor(page: &str, anchor: &str) -> bool {
    page.contains(&format!("id=\"{anchor}\""))
}

/// Reads all pages below a folder, by canonical path, except mdBook's frame version of the contents and its 404 page.
fn read_pages(folder: &Path, texts: &mut BTreeMap<PathBuf, String>) -> Outcome<()> {
    let entries = std::fs::read_dir(folder).map_err(|error| Failure::file("read the folder", folder, &error))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() {
            read_pages(&path, texts)?;
        } else if name.ends_with(".html") && !matches!(name, "toc.html" | "404.html" | "print.html") {
            let text = read_text(&path)?;
            texts.insert(path.canonicalize().unwrap_or(path), text);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_resolved_and_replaced_with_their_anchors() {
        let page = Path::new("docs/decisions/a.md");
        assert_eq!(resolved(page, "../storage.md#tests"), Some(PathBuf::from("docs/storage.md")));
        assert_eq!(resolved(page, "../../README.md"), Some(PathBuf::from("README.md")));
        for elsewhere in ["#here", "https://a.b/c", "../../../out.md"] {
            assert_eq!(resolved(page, elsewhere), None, "{elsewhere}");
        }
        let text = "[a](x.md#y) and [b](z.md)\n";
        assert_eq!(
            replaced(text, |link| link.starts_with("x.md").then(|| "n.md".into())),
            "[a](n.md#y) and [b](z.md)\n"
        );
    }

    #[test]
    fn dead_links_and_anchors_are_found() {
        let book = tempfile::tempdir().expect("a folder");
        let page =
            "<h1 id=\"top\"></h1><a href=\"#top\"></a><a href=\"#no\"></a><a href=\"b.html\"></a><img src=\"c.png\">";
        std::fs::write(book.path().join("a.html"), page).expect("a page");
        std::fs::write(book.path().join("b.html"), "<a href=\"a.html#top\"></a> <a href=\"https://x.y\"></a>")
            .expect("a page");
        let root = book.path().canonicalize().expect("a folder");
        assert_eq!(dead_links(&root).expect("pages"), ["#no on a.html", "c.png on a.html"]);
    }

    #[test]
    fn the_summary_lists_every_page() {
        let repository = Repository::find().expect("tests run inside the repository");
        let summary = read_text(&repository.base().join(SUMMARY)).expect("a list");
        let listed: BTreeSet<PathBuf> = links(&summary).filter_map(|link| resolved(Path::new(SUMMARY), link)).collect();
        for page in &listed {
            assert!(repository.base().join(page).is_file(), "{} is not there", page.display());
        }
        for folder in ["docs", "docs/decisions", "docs/soundness"] {
            let entries = std::fs::read_dir(repository.base().join(folder)).expect("a folder");
            for name in entries.flatten().map(|entry| entry.file_name()) {
                let page = Path::new(folder).join(&name);
                let is_page = page.extension().is_some_and(|end| end == "md") && page != Path::new(SUMMARY);
                assert!(!is_page || listed.contains(&page), "{SUMMARY} does not list {}", page.display());
            }
        }
    }
}
