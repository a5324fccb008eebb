//! Paths of the namespace: UTF-8, parts separated by `/`. A file system whose names are bytes escapes those that are
//! not.
//!
//! Deliberately not here: `..`. A program reaches only what lies below its endpoints, so the shell
//! resolves `..` lexically with [`absolute`] before it sends a request.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::String;
use alloc::vec::Vec;

/// Maximum bytes of a path.
pub const PATH_BYTES: usize = 4096;
/// Maximum bytes of a part: a name of 255 bytes, as file systems have them, each escaped as `\xHH`.
pub const PART_BYTES: usize = 4 * 255;

/// Origin of an access control list inherited from the server's mount point, whose path only the mounting server
/// knows.
pub const ABOVE_THE_ROOT: &str = "/..";

/// Returns the parts of a path, without empty ones and `.`.
pub fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|part| !part.is_empty() && *part != ".")
}

/// Returns whether a path is valid: short enough, without zero bytes and `..`.
pub fn is_valid(path: &str) -> bool {
    path.len() <= PATH_BYTES
        && !path.contains('\0')
        && path.split('/').all(|part| part.len() <= PART_BYTES && part != "..")
}

/// Splits a path into its folder and its last part; `None` if it has no parts.
pub fn split_last(path: &str) -> Option<(&str, &str)> {
    let trimmed = path.trim_end_matches('/');
    if trimmed.is_empty() {
        return None;
    }
    Some(match trimmed.rfind('/') {
        Some(slash) => (&trimmed[..slash], &trimmed[slash + 1..]),
        None => ("", trimmed),
    })
}

/// Returns whether a path ends in `/.`: at a mount point it names the root of the volume, and not the mount point
/// itself.
pub fn is_from_inside(path: &str) -> bool {
    path.ends_with("/.")
}

/// Joins a folder and a name.
pub fn join(folder: &str, name: &str) -> String {
    let mut path = String::from(folder);
    if !path.is_empty() && !path.ends_with('/') {
        path.push('/');
    }
    path.push_str(name.trim_start_matches('/'));
    path
}

/// Resolves `path` against the folder `base` to an absolute path without `.` and `..`. `..` at the root stays at the
/// root.
pub fn absolute(base: &str, path: &str) -> String {
    let mut found: Vec<&str> = Vec::new();
    let start = if path.starts_with('/') { "" } else { base };
    for part in parts(start).chain(parts(path)) {
        if part == ".." {
            found.pop();
        } else {
            found.push(part);
        }
    }
    let mut out = String::from("/");
    out.push_str(&found.join("/"));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_skip_what_says_nothing() {
        assert_eq!(parts("//a/./b/").collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(parts("/").count(), 0);
    }

    #[test]
    fn a_dot_at_the_end_is_the_inside_of_a_folder() {
        assert!(is_from_inside("/fs/disk0/.") && is_from_inside("./."));
        assert!(
            !is_from_inside(".")
                && !is_from_inside("/fs/disk0")
                && !is_from_inside("/fs/disk0/.x")
                && !is_from_inside("/fs/x.")
        );
    }

    #[test]
    fn the_last_part_is_split_off() {
        assert_eq!(split_last("/fs/disk0/a"), Some(("/fs/disk0", "a")));
        assert_eq!(split_last("a/"), Some(("", "a")));
        assert_eq!(split_last("/a"), Some(("", "a")));
        assert_eq!(split_last("/"), None);
    }

    #[test]
    fn absolute_takes_dots_out() {
        assert_eq!(absolute("/fs/disk0", "../disk1/./x"), "/fs/disk1/x");
        assert_eq!(absolute("/fs", "/dev"), "/dev");
        assert_eq!(absolute("/", "../.."), "/");
        assert_eq!(absolute("/fs/disk0", ""), "/fs/disk0");
    }

    #[test]
    fn what_cannot_be_a_name_is_not_valid() {
        assert!(is_valid("/fs/disk0/a b/ä"));
        assert!(is_valid(&"\\xff".repeat(255)));
        assert!(!is_valid("/fs/../dev"));
        assert!(!is_valid("a\0b"));
        assert!(!is_valid(&"x".repeat(PART_BYTES + 1)));
        assert!(!is_valid(&"x/".repeat(3000)));
    }
}
