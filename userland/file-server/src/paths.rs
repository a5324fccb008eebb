//! Validation of client paths.

use contracts::directory::NameError;

/// Returns a path as text, if it is valid.
pub(crate) fn text(path: &[u8]) -> Option<&str> {
    core::str::from_utf8(path).ok().filter(|path| path::is_valid(path))
}

/// Checks that the path of a node to create, rename or remove ends with a name. For the directory of the request
/// itself, the error is `itself`.
pub(crate) fn check_name(path: &str, itself: NameError) -> Result<(), NameError> {
    if path::parts(path).next().is_none() {
        return Err(itself);
    }
    match path::split_last(path) {
        Some((_, name)) if name != "." => Ok(()),
        // It may exist, but is not a name in its parent.
        _ => Err(NameError::BadPath),
    }
}

/// Returns the path of the directory that has the last part of a path; `None` if that is the request's directory.
pub(crate) fn parent(path: &str) -> Option<&str> {
    path::split_last(path).map(|(parent, _)| parent).filter(|parent| path::parts(parent).next().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_text_without_parents() {
        assert_eq!(text(b"/a/./b/"), Some("/a/./b/"));
        assert_eq!(text(b""), Some(""));
        assert_eq!(text(b"a/../b"), None);
        assert_eq!(text(b"\xff"), None);
        assert_eq!(text(b"a\0"), None);
    }

    #[test]
    fn what_is_created_ends_with_a_name() {
        for path in ["a", "/a/", "./a", "a/./b", "..."] {
            assert_eq!(check_name(path, NameError::NotPermitted), Ok(()), "{path}");
        }
        for path in ["", "/", ".", "./", "/./."] {
            assert_eq!(check_name(path, NameError::NotPermitted), Err(NameError::NotPermitted), "{path}");
        }
        // Host folders took the first one for `a/a`.
        for path in ["a/.", "a/b/./"] {
            assert_eq!(check_name(path, NameError::NotPermitted), Err(NameError::BadPath), "{path}");
        }
    }

    #[test]
    fn the_parent_of_a_name_in_the_directory_is_none() {
        assert_eq!(parent("a/b/"), Some("a"));
        assert_eq!(parent("/a/b"), Some("/a"));
        for path in ["a", "/a", "./a", "", "/"] {
            assert_eq!(parent(path), None, "{path}");
        }
    }
}
