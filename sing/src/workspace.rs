//! A user's own workspace, outside the system's sources: programs in `programs/`, systems in `systems/`, and a
//! Cargo.toml that refers to the crates of the tool's version.
//!
//! `sing new` creates one if there is none. Deliberately not here: its contents; `new` creates programs, and `programs`
//! and `repository` find them.

use std::path::Path;

use crate::failure::Outcome;
use crate::repository::{read_text, write_whole};

/// The folder of programs.
pub const PROGRAMS: &str = "programs";
/// Header of the table that identifies a workspace.
const TABLE: &str = "[workspace.metadata.singularity]";
/// Start of the line with the folder of the sources.
const KEY: &str = "sources = ";
/// Crates that programs use, by name and folder.
const CRATES: [(&str, &str); 13] = [
    ("client", "userland/client"),
    ("contracts", "contracts"),
    ("file-tools", "userland/file-tools"),
    ("layout", "lib/layout"),
    ("network", "userland/network"),
    ("path", "lib/path"),
    ("provider", "userland/provider"),
    ("sing-guest-web", "sip/guest-web"),
    ("sip", "sip"),
    ("sip-virtio", "sip/virtio"),
    ("stdio", "userland/stdio"),
    ("text", "lib/text"),
    ("web-application", "userland/web-application"),
];

/// Returns whether the folder is the root of a workspace.
pub fn is_one(folder: &Path) -> bool {
    std::fs::read_to_string(folder.join("Cargo.toml")).is_ok_and(|text| text.lines().any(|line| line == TABLE))
}

/// Returns the files of a new workspace: path and text. `target` is the folder of what is built, `name` the first program.
pub fn files(base: &Path, target: &Path, lock: String, name: &str) -> Vec<(&'static str, String)> {
    let dependencies: String =
        CRATES.iter().map(|(name, folder)| format!("{name} = {{ path = {} }}\n", quoted(&base.join(folder)))).collect();
    let manifest = include_str!("../templates/workspace/Cargo.toml.txt");
    let manifest = manifest.replace("{{sources}}", &quoted(base)).replace("{{dependencies}}", &dependencies);
    let target = quoted(target);
    let for_editor = |text: &str| text.replace("{{target}}", target.trim_matches('"')).replace("{{name}}", name);
    vec![
        ("Cargo.toml", manifest),
        ("Cargo.lock", lock),
        (".gitignore", "/target\n".into()),
        (".vscode/tasks.json", for_editor(include_str!("../templates/workspace/vscode/tasks.json.txt"))),
        (".vscode/launch.json", for_editor(include_str!("../templates/workspace/vscode/launch.json.txt"))),
    ]
}

/// Lets the workspace refer to the sources in `base`, which may lie elsewhere than when it was made: on another
/// machine, or with another version of the tool.
///
/// # Errors
/// Its Cargo.toml cannot be read or written.
pub fn refer_to(root: &Path, base: &Path) -> Outcome<()> {
    let path = root.join("Cargo.toml");
    let text = read_text(&path)?;
    let Some(changed) = referring_to(&text, base) else { return Ok(()) };
    eprintln!("sing: {} now refers to the sources in {}", path.display(), base.display());
    write_whole(&path, changed.as_bytes())
}

/// Returns the text with all paths to the sources replaced; `None` if they are correct.
fn referring_to(text: &str, base: &Path) -> Option<String> {
    let (_, table) = text.split_once(TABLE)?;
    let old = table.lines().find_map(|line| line.strip_prefix(KEY))?.trim().trim_matches('"');
    let new = quoted(base);
    let new = new.trim_matches('"');
    (old != new).then(|| text.replace(&format!("\"{old}"), &format!("\"{new}")))
}

/// Quotes a path as a TOML string, with the escapes of JSON.
fn quoted(path: &Path) -> String {
    serde_json::Value::from(path.to_string_lossy()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_workspace_is_known_and_follows_the_sources() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(!is_one(folder.path()));
        for (path, text) in files(Path::new("/home/ada/sources"), Path::new("/t"), "lock".into(), "tea") {
            if path.ends_with(".json") {
                serde_json::from_str::<serde_json::Value>(&text).expect("JSON");
                assert!(!text.contains("{{") && (text.contains("\"tea\"") || text.contains("\"/t/release/")), "{text}");
            }
            write_whole(&folder.path().join(path), text.as_bytes()).expect("a file");
        }
        assert!(is_one(folder.path()));
        let text = || std::fs::read_to_string(folder.path().join("Cargo.toml")).expect("a file");
        let table: toml::Table = toml::from_str(&text()).expect("TOML");
        assert_eq!(
            table["workspace"]["dependencies"]["sip"]["path"].as_str(),
            Some("/home/ada/sources/sip"),
            "{table:?}"
        );
        assert!(!text().contains("{{"));
        let before = text();
        refer_to(folder.path(), Path::new("/home/ada/sources")).expect("nothing to do");
        assert_eq!(text(), before);
        refer_to(folder.path(), Path::new("/srv/s")).expect("it is written");
        assert_eq!(text(), before.replace("/home/ada/sources", "/srv/s"));
    }
}
