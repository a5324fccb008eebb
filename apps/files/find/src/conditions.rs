//! Conditions on found names.

use alloc::format;
use alloc::string::String;

use command_language::Pattern;
use contracts::directory::{NodeAttributes, NodeKind};
use file_tools::walk::is_folder;
use text::amount::{not_an_amount, parse_bytes};

/// Conditions that must all hold.
pub struct Conditions {
    name: Option<Pattern>,
    kind: Option<Kind>,
    size: Option<Size>,
    newer_than: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    File,
    Folder,
    Link,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Size {
    More(u64),
    Less(u64),
    Exactly(u64),
}

impl Conditions {
    /// Parses the conditions; `newer_than` is in seconds since 1970. An error is a sentence.
    pub fn new(
        name: Option<&str>,
        kind: Option<&str>,
        size: Option<&str>,
        newer_than: Option<i64>,
    ) -> Result<Conditions, String> {
        let kind = match kind {
            None => None,
            Some("f") => Some(Kind::File),
            Some("d") => Some(Kind::Folder),
            Some("l") => Some(Kind::Link),
            Some(other) => {
                return Err(format!("unknown kind `{other}`; use f for files, d for folders, l for links"));
            }
        };
        let size = size.map(parse_size).transpose()?;
        Ok(Conditions { name: name.map(Pattern::of_text), kind, size, newer_than })
    }

    /// Whether name and kind match.
    pub fn fits_name(&self, name: &str, kind: NodeKind) -> bool {
        let of_kind = match self.kind {
            None => true,
            Some(Kind::File) => kind == NodeKind::File,
            Some(Kind::Folder) => is_folder(kind),
            Some(Kind::Link) => kind == NodeKind::Link,
        };
        of_kind && self.name.as_ref().is_none_or(|pattern| pattern.fits(name))
    }

    /// Whether any condition needs attributes.
    pub fn needs_attributes(&self) -> bool {
        self.size.is_some() || self.newer_than.is_some()
    }

    /// Whether the attributes match. Only files have a meaningful size.
    pub fn fits_attributes(&self, kind: NodeKind, attributes: &NodeAttributes) -> bool {
        let fits_size = self.size.is_none_or(|size| {
            kind == NodeKind::File
                && match size {
                    Size::More(bytes) => attributes.size_bytes > bytes,
                    Size::Less(bytes) => attributes.size_bytes < bytes,
                    Size::Exactly(bytes) => attributes.size_bytes == bytes,
                }
        });
        fits_size && self.newer_than.is_none_or(|seconds| attributes.modified_s > seconds)
    }
}

fn parse_size(text: &str) -> Result<Size, String> {
    let (kind, amount): (fn(u64) -> Size, &str) = match (text.strip_prefix('+'), text.strip_prefix('-')) {
        (Some(amount), _) => (Size::More, amount),
        (_, Some(amount)) => (Size::Less, amount),
        _ => (Size::Exactly, text),
    };
    parse_bytes(amount).map(kind).ok_or_else(|| not_an_amount(amount))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attributes(size_bytes: u64, modified_s: i64) -> NodeAttributes {
        NodeAttributes {
            size_bytes,
            allocated_bytes: 0,
            node: 0,
            modified_s,
            accessed_s: 0,
            changed_s: 0,
            permissions: 0,
            links: 1,
            owner: 0,
            group: 0,
        }
    }

    #[test]
    fn names_and_kinds() {
        let conditions =
            Conditions::new(Some("*.txt"), Some("f"), None, None).unwrap_or_else(|error| panic!("{error}"));
        assert!(conditions.fits_name(".hidden.txt", NodeKind::File));
        assert!(!conditions.fits_name("a.txt", NodeKind::Directory));
        assert!(!conditions.fits_name("a.tx", NodeKind::File));
        assert!(!conditions.needs_attributes());
        assert!(Conditions::new(None, Some("x"), None, None).is_err());
    }

    #[test]
    fn sizes_and_times() {
        for (size, fits) in [("+1k", [false, false, true]), ("-1k", [true, false, false]), ("1k", [false, true, false])]
        {
            let conditions = Conditions::new(None, None, Some(size), None).unwrap_or_else(|error| panic!("{error}"));
            let found =
                [1023, 1024, 1025].map(|bytes| conditions.fits_attributes(NodeKind::File, &attributes(bytes, 0)));
            assert_eq!(found, fits, "{size}");
            assert!(!conditions.fits_attributes(NodeKind::Directory, &attributes(1024, 0)));
        }
        let newer = Conditions::new(None, None, None, Some(5)).unwrap_or_else(|error| panic!("{error}"));
        assert!(newer.fits_attributes(NodeKind::Directory, &attributes(0, 6)));
        assert!(!newer.fits_attributes(NodeKind::Directory, &attributes(0, 5)));
        assert!(Conditions::new(None, None, Some("+x"), None).is_err());
    }
}
