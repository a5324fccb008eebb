//! Rules on words: links resolve, and names use the terms of the field.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use house::{Workspace, expect_none};

/// Words that no identifier may contain, with their replacements. `docs/glossary.md` has the project's own words.
const REFUSED: [(&str, &str); 9] = [
    ("trouble", "error"),
    ("troubles", "errors"),
    ("patience", "timeout"),
    ("asker", "caller"),
    ("tidings", "events"),
    ("hops", "hop_limit or ttl"),
    ("heard", "received"),
    ("hears", "receives"),
    ("mended", "repaired"),
];
/// Refused prefixes of constants, with their replacements.
const REFUSED_CONSTANTS: [(&str, &str); 3] = [("MOST_", "MAX_"), ("LEAST_", "MIN_"), ("LONGEST_CUT", "MAX_TSO_BYTES")];

/// The identifiers of a source, without comments but including strings.
fn identifiers(text: &str) -> BTreeSet<&str> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .flat_map(|line| line.split(|letter| !is_part(letter)))
        .filter(|word| word.starts_with(|letter: char| letter.is_alphabetic() || letter == '_'))
        .collect()
}

/// The words of an identifier in lower case: those of `LinkError` and of `link_error` are `link` and `error`.
fn words(identifier: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for letter in identifier.chars() {
        if letter == '_' || (letter.is_uppercase() && was_lower) {
            words.push(String::new());
        }
        was_lower = letter.is_lowercase();
        if let (true, Some(word)) = (letter != '_', words.last_mut()) {
            word.extend(letter.to_lowercase());
        }
    }
    words
}

/// Returns the replacement of an identifier, if it is refused.
fn better(identifier: &str) -> Option<&'static str> {
    let constant = REFUSED_CONSTANTS.iter().find(|(beginning, _)| identifier.starts_with(beginning));
    let is_name = identifier.contains('_') || identifier.contains(|letter: char| letter.is_uppercase());
    let word = || REFUSED.iter().find(|(refused, _)| is_name && words(identifier).iter().any(|word| word == refused));
    constant.or_else(word).map(|(_, better)| *better)
}

#[test]
fn names_are_the_fields_own() {
    let workspace = Workspace::read();
    let mut complaints = Vec::new();
    for path in workspace.files("rs").into_iter().filter(|path| !path.starts_with("tests/house/")) {
        for identifier in identifiers(&workspace.text(&path)) {
            if let Some(better) = better(identifier) {
                complaints.push(format!("{path}: `{identifier}`; write {better}"));
            }
        }
    }
    expect_none("These names have words that a reader from Linux would not look for:", &complaints);
}

#[test]
fn refused_names_are_found() {
    for name in ["MOST_BYTES", "LinkTrouble", "heard_ns", "hops_left", "asker_end"] {
        assert!(better(name).is_some(), "{name}");
    }
    for name in ["MAX_BYTES", "LinkError", "most", "received_ns", "hop_limit", "caller_end"] {
        assert_eq!(better(name), None, "{name}");
    }
    assert_eq!(words("HeaderTrouble"), ["header", "trouble"]);
}

/// The targets of the links `[text](target)` of a page, outside of blocks of code.
fn links(text: &str) -> Vec<&str> {
    let mut is_code = false;
    let mut found = Vec::new();
    for line in text.lines() {
        is_code ^= line.trim_start().starts_with("```");
        if !is_code {
            found.extend(line.split("](").skip(1).filter_map(|rest| rest.split(')').next()));
        }
    }
    found
}

/// The anchors of a page's headings, as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    headings
        .map(|heading| {
            let kept = heading.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
            kept.collect::<String>().to_lowercase().replace(' ', "-")
        })
        .collect()
}

/// Returns the problem of a link on the page `page`, which has the text `text`.
fn dead(root: &Path, page: &str, text: &str, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let file: PathBuf = root.join(page).parent().map(|folder| folder.join(path)).unwrap_or_default();
    if !path.is_empty() && !file.exists() {
        return Some(format!("{page}: {target}: there is no such file"));
    }
    let other = if path.is_empty() { text.to_string() } else { std::fs::read_to_string(&file).unwrap_or_default() };
    let is_page = path.is_empty() || path.ends_with(".md");
    (is_page && !anchor.is_empty() && !anchors(&other).contains(anchor))
        .then(|| format!("{page}: {target}: there is no such heading"))
}

#[test]
fn links_between_pages_lead_somewhere() {
    let workspace = Workspace::read();
    let mut complaints = Vec::new();
    for page in workspace.files("md") {
        let text = workspace.text(&page);
        complaints.extend(links(&text).into_iter().filter_map(|target| dead(&workspace.root, &page, &text, target)));
    }
    expect_none("These links are dead:", &complaints);
}

#[test]
fn dead_links_are_found() {
    let workspace = Workspace::read();
    let text = "# One word\n[a](#one-word) [b](#two) [c](nowhere.md) [d](docs/glossary.md#channels)\n";
    let found: Vec<String> =
        links(text).into_iter().filter_map(|target| dead(&workspace.root, "README.md", text, target)).collect();
    assert_eq!(found, ["README.md: #two: there is no such heading", "README.md: nowhere.md: there is no such file"]);
}

#[test]
fn every_page_can_be_reached_from_the_readme() {
    let workspace = Workspace::read();
    let mut reached = BTreeSet::from([String::from("README.md")]);
    let mut open = vec![String::from("README.md")];
    while let Some(page) = open.pop() {
        let folder = Path::new(&page).parent().unwrap_or(Path::new("")).to_path_buf();
        for target in links(&workspace.text(&page)) {
            let path = workspace.root.join(&folder).join(target.split('#').next().unwrap_or_default());
            let Ok(path) = path.canonicalize() else { continue };
            let Ok(relative) = path.strip_prefix(&workspace.root) else { continue };
            let name = relative.to_string_lossy().into_owned();
            if name.ends_with(".md") && reached.insert(name.clone()) {
                open.push(name);
            }
        }
    }
    // The table of contents of the book is not a page.
    reached.insert(String::from("docs/SUMMARY.md"));
    let complaints: Vec<String> = workspace
        .files("md")
        .into_iter()
        .filter(|page| page.starts_with("docs/") && !page.starts_with("docs/decisions/") && !reached.contains(page))
        .collect();
    expect_none("No page that the README leads to has a link to these:", &complaints);
}
