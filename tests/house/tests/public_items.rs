//! The public items of the trusted crates are a committed list, each with the reason why it is harmless.

use std::collections::BTreeMap;

use house::public_items::public_items;
use house::{Workspace, expect_none};

const LIST: &str = "docs/soundness/public-items.txt";

/// Source folders of the sections of the list.
const SOURCES: [(&str, &str); 7] = [
    ("sip", "sip/src"),
    ("sip-virtio", "sip/virtio/src"),
    ("sip-wasm", "sip/wasm/src"),
    ("sip-macros", "sip/macros/src"),
    ("memory-functions", "lib/memory-functions/src"),
    ("layout", "lib/layout/src"),
    ("contracts", "contracts/src"),
];

/// A section: a reason for all its items, if any, and its lines with their own reasons.
#[derive(Default)]
struct Section {
    all: Option<String>,
    lines: Vec<(String, String)>,
}

/// Reasons by keyword, and sections by crate name.
fn read(text: &str) -> (BTreeMap<String, String>, BTreeMap<String, Section>) {
    let (mut reasons, mut sections) = (BTreeMap::new(), BTreeMap::<String, Section>::new());
    let mut current = String::new();
    for line in text.lines().map(str::trim_end).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some((name, all)) = line.strip_prefix('[').and_then(|line| line.split_once(']')) {
            current = name.into();
            let all = all.trim();
            sections.entry(current.clone()).or_default().all = (!all.is_empty()).then(|| all.into());
        } else if current.is_empty() {
            let (word, sentence) = line.split_once(": ").unwrap_or((line, ""));
            reasons.insert(word.into(), sentence.into());
        } else {
            let (item, why) = line.rsplit_once(" -- ").unwrap_or((line, ""));
            sections.entry(current.clone()).or_default().lines.push((item.into(), why.into()));
        }
    }
    (reasons, sections)
}

#[test]
fn the_list_of_public_items_is_that_of_the_code() {
    let workspace = Workspace::read();
    let (_, sections) = read(&workspace.text(LIST));
    let mut complaints = Vec::new();
    for (name, folder) in SOURCES {
        let listed: Vec<&str> = sections
            .get(name)
            .map_or(Vec::new(), |section| section.lines.iter().map(|(item, _)| item.as_str()).collect());
        let found = public_items(&workspace.root, folder);
        for item in &found {
            let (there, here) = (count(&found, item), count(&listed, item));
            if there != here {
                complaints.push(format!("[{name}] add: {item}"));
            }
        }
        for item in listed.iter().filter(|item| count(&found, item) == 0) {
            complaints.push(format!("[{name}] remove: {item}"));
        }
    }
    let title =
        format!("{LIST} differs from the code. Say of each new item why a hostile caller can do no harm with it:");
    expect_none(&title, &complaints);
}

fn count(items: &[impl AsRef<str>], wanted: &str) -> usize {
    items.iter().filter(|item| item.as_ref() == wanted).count()
}

#[test]
fn each_public_item_has_a_reason_that_the_list_defines() {
    let workspace = Workspace::read();
    let (reasons, sections) = read(&workspace.text(LIST));
    let mut complaints = Vec::new();
    for (name, section) in &sections {
        for (item, why) in &section.lines {
            let word = why.split([' ', ':']).next().unwrap_or_default();
            if section.all.is_none() && !reasons.contains_key(word) {
                complaints.push(format!("[{name}] {item} -- {why}"));
            }
        }
    }
    let used = |word: &str| {
        sections.values().flat_map(|section| &section.lines).any(|(_, why)| why.split([' ', ':']).next() == Some(word))
    };
    complaints.extend(reasons.keys().filter(|word| !used(word)).map(|word| format!("nothing has the reason {word}")));
    expect_none(&format!("{LIST} has items without one of its reasons:"), &complaints);
}

/// A crate whose items need no reasons must not have more power than its caller.
#[test]
fn a_section_with_one_reason_is_of_a_crate_that_forbids_unsafe_code() {
    let workspace = Workspace::read();
    let (_, sections) = read(&workspace.text(LIST));
    let mut complaints = Vec::new();
    for (name, folder) in SOURCES {
        let has_one = sections.get(name).is_some_and(|section| section.all.is_some());
        if has_one && !workspace.text(&format!("{folder}/lib.rs")).contains("\n#![forbid(unsafe_code)]\n") {
            complaints.push(name.to_string());
        }
    }
    expect_none("These do not forbid unsafe code:", &complaints);
}

#[test]
fn a_new_public_function_field_or_derive_is_seen() {
    let folder = std::env::temp_dir().join(format!("public-items-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("src")).expect("a folder");
    let source = "
        #[derive(Clone, Debug)]
        pub struct Owner { handle: u64, pub bytes: usize }
        impl Owner { pub fn take(mut self, other: &mut Owner) -> Vec<u8> { Vec::new() } fn own(&self) {} }
        impl Drop for Owner { fn drop(&mut self) {} }
        mod inner { pub(crate) fn hidden() {} pub unsafe fn seen<T: Copy>() where T: Send {} }
        #[cfg(test)] mod tests { pub fn test() {} }
        macro_rules! made { ($name:ident) => { impl Owner { pub fn $name(&self) {} } } }
    ";
    std::fs::write(folder.join("src/lib.rs"), source).expect("a file");
    let found = public_items(&folder, "src");
    std::fs::remove_dir_all(&folder).expect("the folder goes");
    let expected = [
        "struct Owner { bytes }",
        "impl Clone for Owner",
        "Owner::fn take(self, other: &mut Owner) -> Vec<u8>",
        "impl Drop for Owner",
        "inner::unsafe fn seen<T: Copy>() where T: Send",
        "made! makes impl Owner",
        "made! makes fn $name",
    ];
    assert_eq!(found, expected);
}
