//! Expansion of file name patterns.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use client::access::AccessError;
use client::namespace::Namespace;
use command_language::Pattern;
use contracts::directory::{NameError, NodeKind};

/// Returns the matching paths, sorted; absolute or relative as the pattern is.
pub fn matching(namespace: &mut Namespace, folder: &str, pattern: &Pattern) -> Result<Vec<String>, AccessError> {
    let mut found: Vec<String> = Vec::from([String::new()]);
    for (index, component) in pattern.components().iter().enumerate() {
        let mut next = Vec::new();
        for prefix in &found {
            match component.as_text() {
                // An empty component is the leading slash, or one of two in a row.
                Some(text) if text.is_empty() && index > 0 => next.push(prefix.clone()),
                Some(text) if text.is_empty() => next.push(String::from("/")),
                Some(text) => {
                    let candidate = path::join(prefix, &text);
                    if exists(namespace, &path::absolute(folder, &candidate)) {
                        next.push(candidate);
                    }
                }
                None => {
                    for name in names(namespace, &path::absolute(folder, prefix))? {
                        if component.matches(&name) {
                            next.push(path::join(prefix, &name));
                        }
                    }
                }
            }
        }
        found = next;
    }
    Ok(found)
}

fn exists(namespace: &mut Namespace, full: &str) -> bool {
    namespace.attributes(full).is_ok()
}

/// Returns the names in a folder; none if it is not a folder.
fn names(namespace: &mut Namespace, full: &str) -> Result<Vec<String>, AccessError> {
    match namespace.names(full) {
        Ok(names) => Ok(names.iter().map(|name| name.text()).collect()),
        Err(AccessError::Name(
            NameError::NotADirectory | NameError::NotFound | NameError::WrongContract | NameError::NotSupported,
        )) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Returns the completions of `word`: paths as typed, with a slash after folders.
pub fn beginning(namespace: &mut Namespace, folder: &str, word: &str) -> Vec<String> {
    let (typed_folder, start) = word.rfind('/').map_or(("", word), |slash| word.split_at(slash + 1));
    let full = path::absolute(folder, typed_folder);
    let Ok(names) = namespace.names(&full) else { return Vec::new() };
    let mut found = Vec::new();
    for name in names {
        let text = name.text();
        if !text.starts_with(start) || (start.is_empty() && text.starts_with('.')) {
            continue;
        }
        let is_folder = match name.kind {
            NodeKind::Directory | NodeKind::Mount => true,
            NodeKind::Link => namespace.open_directory(&path::join(&full, &text)).is_ok(),
            NodeKind::File | NodeKind::Service | NodeKind::Other => false,
        };
        let end = if is_folder { "/" } else { "" };
        found.push([typed_folder, &text, end].concat().to_string());
    }
    found
}
