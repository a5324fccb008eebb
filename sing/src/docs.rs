//! `sing docs`: builds the documentation, prints its location, and serves it: the pages as a book, and the crates
//! that programs use, with a link to the authors' guide on each page.
//!
//! Deliberately not here: the texts.

mod book;

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cargo;
use crate::failure::{Failure, Outcome};
use crate::host_tools;
use crate::repository::{Repository, read_text, write_if_changed};
use crate::spelling;

/// Crates for programs.
const CRATES: [&str; 13] = [
    "abi",
    "client",
    "contracts",
    "file-tools",
    "layout",
    "network",
    "path",
    "provider",
    "sip",
    "sip-virtio",
    "stdio",
    "text",
    "web-application",
];
/// The guide for program authors.
const GUIDE: &str = "authors";
/// Folder of the book, beside those of the crates.
const BOOK: &str = "book";
/// Program that opens a page in a browser.
const OPENER: &str = "xdg-open";

/// What `sing docs` is asked.
#[derive(Debug, clap::Args)]
pub struct DocsArguments {
    /// Print this page, such as `authors`
    #[arg(value_name = "PAGE")]
    pub page: Option<String>,
    /// Build the pages alone, without the documentation of the crates
    #[arg(long, conflicts_with_all = ["page", "serve"])]
    pub book: bool,
    /// Open the book in a browser
    #[arg(long, conflicts_with = "page")]
    pub open: bool,
    /// Serve the documentation over HTTP at this host, by the system itself
    #[arg(long, conflicts_with_all = ["page", "open"])]
    pub serve: bool,
    /// Port to serve at
    #[arg(long, value_name = "N", requires = "serve")]
    pub port: Option<u16>,
}

/// `sing docs`.
///
/// # Errors
/// There is no such page, or the documentation does not build.
pub fn docs(repository: &Repository, arguments: &DocsArguments) -> Outcome<u8> {
    if let Some(page) = &arguments.page {
        print!("{}", read_text(&page_named(repository, page)?)?);
        return Ok(0);
    }
    let folder = repository.cargo_target().join("doc");
    let book = book::build(repository, &folder.join(BOOK))?;
    if let Some(book) = &book {
        println!("book    {}", book.display());
    }
    if !arguments.book {
        build_crates(repository, &folder, arguments.serve)?;
        for name in CRATES {
            println!("crate   {}", folder.join(crate_page(name)).display());
        }
    }
    println!("pages   `cargo sing docs NAME` prints one of: {}", pages(repository).join(", "));
    if arguments.serve {
        return Err(serve(&folder, book.is_some(), arguments.port));
    }
    if arguments.open {
        open(&book.unwrap_or_else(|| folder.join(crate_page("sip"))))?;
    }
    Ok(0)
}

fn crate_page(name: &str) -> PathBuf {
    Path::new(&name.replace('-', "_")).join("index.html")
}

/// Execs the system's own web server; returns the failure if that fails.
fn serve(folder: &Path, has_book: bool, port: Option<u16>) -> Failure {
    let links: String = CRATES.iter().map(|name| item(&crate_page(name).to_string_lossy(), name)).collect();
    let book = if has_book { item("book/index.html", "The book") } else { String::new() };
    let page = format!("<title>Singularity in Rust</title>\n<ul>\n{book}{links}</ul>\n");
    if let Err(failure) = write_if_changed(&folder.join("index.html"), page.as_bytes()) {
        return failure;
    }
    match crate::tool::path() {
        Ok(tool) => {
            let mut command = Command::new(&tool);
            command.args(["run", "--web"]).arg(folder);
            if let Some(port) = port {
                command.arg("--port").arg(port.to_string());
            }
            Failure::file("start", &tool, &command.exec())
        }
        Err(error) => Failure::new(format!("cannot find this executable to restart it: {error}")),
    }
}

fn item(link: &str, text: &str) -> String {
    format!("<li><a href=\"{link}\">{text}</a></li>\n")
}

/// Returns the names of the pages, sorted.
fn pages(repository: &Repository) -> Vec<String> {
    let files = std::fs::read_dir(repository.base().join("docs")).into_iter().flatten().flatten();
    let pages = files.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "md"));
    let mut names: Vec<String> =
        pages.filter_map(|path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned())).collect();
    names.retain(|name| name != "SUMMARY");
    names.sort();
    names
}

fn page_named(repository: &Repository, name: &str) -> Outcome<PathBuf> {
    let known = pages(repository);
    let stem = name.strip_suffix(".md").unwrap_or(name);
    if known.iter().any(|known| known == stem) {
        return Ok(repository.base().join("docs").join(stem).with_extension("md"));
    }
    Err(Failure::new(format!("no page `{name}`")).remedy(spelling::meant(
        stem,
        known.iter().map(String::as_str),
        format!("name one of: {}", known.join(", ")),
    )))
}

/// Builds the documentation of the crates in `folder`. Its pages link to the guide on the server if they are served,
/// else to the guide's file.
fn build_crates(repository: &Repository, folder: &Path, is_served: bool) -> Outcome<()> {
    let header = repository.output("docs/header.html");
    let guide = Path::new(BOOK).join("docs").join(GUIDE).with_extension("html");
    let link =
        if is_served { format!("/{}", guide.display()) } else { format!("file://{}", folder.join(guide).display()) };
    let text = format!("<p><a href=\"{link}\">Writing programs: the guide for authors</a></p>\n");
    write_if_changed(&header, text.as_bytes())?;
    let mut command = cargo::command(repository);
    command.args(["doc", "--no-deps", "--manifest-path"]).arg(repository.base().join("Cargo.toml"));
    for name in CRATES {
        command.args(["--package", name]);
    }
    command.env_remove("RUSTDOCFLAGS");
    command.env("CARGO_ENCODED_RUSTDOCFLAGS", format!("--html-before-content\x1f{}", header.display()));
    run(command, "cargo doc")
}

/// Runs a command that shows its own progress.
fn run(mut command: Command, what: &str) -> Outcome<()> {
    let status = command.stdin(Stdio::null()).status();
    let status = status.map_err(|error| {
        Failure::new(format!("cannot start {what}: {error}")).remedy("install a stable Rust toolchain")
    })?;
    match status.success() {
        true => Ok(()),
        false => Err(Failure::new(format!("{what} ended with {status}")).remedy("see its output above")),
    }
}

fn open(page: &Path) -> Outcome<()> {
    let opener = host_tools::find(OPENER).ok_or_else(|| {
        Failure::new(format!("{OPENER} is not installed")).remedy(format!("open {} in a browser", page.display()))
    })?;
    let mut command = Command::new(opener);
    command.arg(page);
    run(command, OPENER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_found_by_name_and_the_guide_is_one() {
        let repository = Repository::find().expect("tests run inside the repository");
        assert!(pages(&repository).contains(&GUIDE.to_string()));
        for name in [GUIDE, "authors.md"] {
            assert!(page_named(&repository, name).expect("there is one").is_file(), "{name}");
        }
        let refused = page_named(&repository, "author").expect_err("there is none").to_string();
        assert_eq!(refused, "no page `author`; did you mean `authors`?");
        assert!(page_named(&repository, "../README").is_err());
    }

    #[test]
    fn what_the_guide_shows_is_code_of_the_templates_or_builds_with_them() {
        let repository = Repository::find().expect("tests run inside the repository");
        let guide = read_text(&repository.base().join("docs/authors.md")).expect("a page");
        let service = include_str!("../templates/service/lib.rs.txt");
        let code = guide.split("```rust\n").nth(2).and_then(|rest| rest.split("```").next()).expect("a server");
        assert!(service.contains(code), "the guide's server is not the template's:\n{code}");
    }
}
