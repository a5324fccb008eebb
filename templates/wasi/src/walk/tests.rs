//! Paths in a tree of text: a line for each name, `path` or `link -> target`; folders end in `/`.

use super::*;

#[derive(Clone, Debug, PartialEq)]
struct Tree {
    at: String,
}

const TREE: &[&str] = &[
    "a/",
    "a/b/",
    "a/b/file",
    "up -> ..",
    "a/up -> ../..",
    "a/side -> ../a/b/file",
    "a/folder -> b",
    "out -> /etc",
    "self -> self",
    "gone -> nothing",
    "slash -> a/b/file/",
    "deep -> a/folder/../side",
];

fn node(path: &str) -> Option<(NodeKind, &'static str)> {
    TREE.iter().find_map(|line| match line.split_once(" -> ") {
        Some((name, target)) if name == path => Some((NodeKind::Link, target)),
        None if line.strip_suffix('/') == Some(path) => Some((NodeKind::Directory, "")),
        None if *line == path => Some((NodeKind::File, "")),
        _ => None,
    })
}

impl Place for Tree {
    type Attributes = ();

    fn look(&self, name: &str) -> Result<(NodeKind, ()), Errno> {
        if name.is_empty() {
            return Ok((NodeKind::Directory, ()));
        }
        node(&path::join(&self.at, name)).map(|(kind, _)| (kind, ())).ok_or(Errno::NOENT)
    }

    fn target(&self, name: &str) -> Result<String, Errno> {
        node(&path::join(&self.at, name)).map(|(_, target)| target.into()).ok_or(Errno::NOENT)
    }

    fn enter(&self, name: &str, _kind: NodeKind) -> Result<Tree, Errno> {
        Ok(Tree { at: path::join(&self.at, name) })
    }
}

/// Path of what was found and its kind, or the error.
fn found(from: &str, path: &str, last_link: LastLink) -> Result<(String, Option<NodeKind>), Errno> {
    let found = walk(&Tree { at: from.into() }, path, last_link)?;
    Ok((path::join(&found.folder.at, &found.name), found.node.map(|(kind, ())| kind)))
}

#[test]
fn parts_lead_to_names() {
    let file = Ok(("a/b/file".into(), Some(NodeKind::File)));
    for path in ["a/b/file", "./a//b/./file", "a/b/../b/file", "a/../a/b/../../a/b/file", "a/folder/file"] {
        assert_eq!(found("", path, LastLink::Keep), file, "{path}");
    }
    assert_eq!(found("a", "b/new", LastLink::Follow), Ok(("a/b/new".into(), None)));
    for path in [".", "a/..", "a/b/../..", "./"] {
        assert_eq!(found("", path, LastLink::Keep), Ok((String::new(), Some(NodeKind::Directory))), "{path}");
    }
}

#[test]
fn nothing_leads_out() {
    for (from, path) in [
        ("", ".."),
        ("", "a/../.."),
        ("", "/a"),
        ("a", "../a"),
        ("", "up/a"),
        ("a", "up/x"),
        ("a", "side"),
        ("", "out"),
        ("", "out/passwd"),
    ] {
        assert_eq!(found(from, path, LastLink::Follow), Err(Errno::NOTCAPABLE), "{path} from {from:?}");
    }
}

#[test]
fn links_are_followed_or_kept() {
    assert_eq!(found("", "a/side", LastLink::Keep), Ok(("a/side".into(), Some(NodeKind::Link))));
    assert_eq!(found("", "a/side", LastLink::Follow), Ok(("a/b/file".into(), Some(NodeKind::File))));
    assert_eq!(found("", "deep", LastLink::Follow), Ok(("a/b/file".into(), Some(NodeKind::File))));
    assert_eq!(found("", "gone", LastLink::Follow), Ok(("nothing".into(), None)));
    assert_eq!(found("", "self", LastLink::Follow), Err(Errno::LOOP));
    assert_eq!(found("", "self/x", LastLink::Keep), Err(Errno::LOOP));
}

#[test]
fn a_slash_at_the_end_wants_a_folder() {
    let kind = |path: &str| walk(&Tree { at: String::new() }, path, LastLink::Follow)?.kind();
    assert_eq!(kind("a/b/file/"), Err(Errno::NOTDIR));
    assert_eq!(kind("a/b/file/."), Err(Errno::NOTDIR));
    assert_eq!(kind("slash"), Err(Errno::NOTDIR));
    assert_eq!(kind("a/b/"), Ok(NodeKind::Directory));
    assert_eq!(kind("a/b/file"), Ok(NodeKind::File));
    assert_eq!(kind("a/b/file/x"), Err(Errno::NOTDIR));
    assert_eq!(kind("missing/x"), Err(Errno::NOENT));
    assert_eq!(kind(""), Err(Errno::NOENT));
    assert_eq!(kind(&"x".repeat(2000)), Err(Errno::NAMETOOLONG));
}
