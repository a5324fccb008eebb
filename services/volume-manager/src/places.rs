//! Path rules for disks and mount points.
//!
//! Deliberately not here: whether the paths exist.

use alloc::format;
use alloc::string::String;

/// Maximum length of a disk's or mount point's path in bytes, as in `MountRecord`.
pub const MAX_PATH_BYTES: usize = 128;

/// Folder of all mount points.
pub const POINTS: &str = "/fs";

/// The path in canonical form, absolute; `None` if it is invalid or longer than [`MAX_PATH_BYTES`].
pub fn canonical(requested: &[u8]) -> Option<String> {
    let requested = core::str::from_utf8(requested).ok().filter(|requested| path::is_valid(requested))?;
    let full = path::absolute("/", requested);
    (full.len() <= MAX_PATH_BYTES && full != "/" && !full.chars().any(char::is_control)).then_some(full)
}

/// Default mount point of a disk at boot: [`POINTS`] and the last component of its path.
pub fn point_of(disk: &str) -> String {
    let name = path::split_last(disk).map_or(disk, |(_, name)| name);
    format!("{POINTS}/{name}")
}

/// Whether the path lies below [`POINTS`].
pub fn may_be_point(point: &str) -> bool {
    is_below(point, POINTS)
}

/// Whether `path` lies below `folder`.
pub fn is_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

/// The disk of a partition, by name: `/dev/disk0` of `/dev/disk0p1`.
pub fn whole_disk(path: &str) -> Option<&str> {
    let without_number = path.trim_end_matches(|last: char| last.is_ascii_digit());
    let disk = without_number.strip_suffix('p')?;
    let is_partition = without_number.len() < path.len() && disk.ends_with(|last: char| last.is_ascii_digit());
    is_partition.then_some(disk)
}

/// Whether two paths exclude each other: they are equal, a disk and its partition, or one is below the other.
pub fn collide(one: &str, other: &str) -> bool {
    one == other
        || whole_disk(one) == Some(other)
        || whole_disk(other) == Some(one)
        || is_below(one, other)
        || is_below(other, one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_canonicalised() {
        assert_eq!(canonical(b"/fs//a/./b/").as_deref(), Some("/fs/a/b"));
        assert_eq!(canonical(b"dev/disk0").as_deref(), Some("/dev/disk0"));
        for bad in [&b""[..], b"/", b"/fs/../dev", b"/fs/\0", b"/fs/\xff", b"/fs/a\nb", &[b'x'; 128]] {
            assert_eq!(canonical(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn points_are_named_after_disks() {
        assert_eq!(point_of("/dev/disk0p1"), "/fs/disk0p1");
        assert!(may_be_point("/fs/a/b"));
        assert!(!may_be_point("/fs"));
        assert!(!may_be_point("/fsx/a"));
    }

    #[test]
    fn partitions_name_their_disk() {
        assert_eq!(whole_disk("/dev/disk0p12"), Some("/dev/disk0"));
        for whole in ["/dev/disk0", "/dev/disk0p", "/dev/p1", "/dev/mapp1", "/dev/ram10"] {
            assert_eq!(whole_disk(whole), None, "{whole}");
        }
    }

    #[test]
    fn overlapping_paths_collide() {
        for (one, other) in
            [("/dev/disk0", "/dev/disk0"), ("/dev/disk0", "/dev/disk0p1"), ("/fs/a", "/fs/a/b"), ("/fs/a/b", "/fs/a")]
        {
            assert!(collide(one, other), "{one} {other}");
            assert!(collide(other, one), "{other} {one}");
        }
        for (one, other) in [("/dev/disk0p1", "/dev/disk0p2"), ("/dev/disk1", "/dev/disk10p1"), ("/fs/a", "/fs/ab")] {
            assert!(!collide(one, other), "{one} {other}");
            assert!(!collide(other, one), "{other} {one}");
        }
    }
}
