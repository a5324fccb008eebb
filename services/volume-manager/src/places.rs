//! What can be a disk and what can be a mount point, as paths.
//!
//! Deliberately not here: whether anything has such a path.

use alloc::format;
use alloc::string::String;

/// The longest path of a disk or mount point, in bytes: what a record of the list has room for.
pub const PATH_BYTES: usize = 128;

/// The folder below which mount points are.
pub const POINTS: &str = "/fs";

/// The path with what says nothing taken out, from the root on; `None` if it is none, or too long for a record.
pub fn normal(asked: &[u8]) -> Option<String> {
    let asked = core::str::from_utf8(asked).ok().filter(|asked| path::is_valid(asked))?;
    let full = path::absolute("/", asked);
    (full.len() <= PATH_BYTES && full != "/" && !full.chars().any(char::is_control)).then_some(full)
}

/// Where a disk's volume is mounted at boot: below the folder of mount points, with the disk's last name.
pub fn point_of(disk: &str) -> String {
    let name = path::split_last(disk).map_or(disk, |(_, name)| name);
    format!("{POINTS}/{name}")
}

/// Whether it lies below the folder of mount points.
pub fn may_be_point(point: &str) -> bool {
    is_below(point, POINTS)
}

/// Whether `path` lies below `folder`.
pub fn is_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

/// The disk whose partition this is, by its name: `/dev/disk0` of `/dev/disk0p1`.
pub fn whole_disk(path: &str) -> Option<&str> {
    let without_number = path.trim_end_matches(|last: char| last.is_ascii_digit());
    let disk = without_number.strip_suffix('p')?;
    let is_partition = without_number.len() < path.len() && disk.ends_with(|last: char| last.is_ascii_digit());
    is_partition.then_some(disk)
}

/// Whether two paths cannot both be in use: they are the same, a disk and its partition, or one is below the other.
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
    fn paths_are_made_normal() {
        assert_eq!(normal(b"/fs//a/./b/").as_deref(), Some("/fs/a/b"));
        assert_eq!(normal(b"dev/disk0").as_deref(), Some("/dev/disk0"));
        for bad in [&b""[..], b"/", b"/fs/../dev", b"/fs/\0", b"/fs/\xff", b"/fs/a\nb", &[b'x'; 128]] {
            assert_eq!(normal(bad), None, "{bad:?}");
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
    fn partitions_tell_their_disk() {
        assert_eq!(whole_disk("/dev/disk0p12"), Some("/dev/disk0"));
        for whole in ["/dev/disk0", "/dev/disk0p", "/dev/p1", "/dev/mapp1", "/dev/ram10"] {
            assert_eq!(whole_disk(whole), None, "{whole}");
        }
    }

    #[test]
    fn what_overlaps_collides() {
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
