//! Names in `/dev` of disks, and of their partitions.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Name prefixes of disks, each followed by a number.
pub struct Prefixes {
    prefixes: Vec<String>,
}

impl Prefixes {
    /// Parses prefixes separated by blanks.
    pub fn new(text: &str) -> Prefixes {
        Prefixes { prefixes: text.split_whitespace().map(String::from).collect() }
    }

    /// Returns whether this is the name of a disk.
    pub fn is_disk(&self, name: &str) -> bool {
        self.prefixes.iter().any(|prefix| name.strip_prefix(prefix.as_str()).is_some_and(is_number))
    }

    /// Returns disk and number, if this is the name of a partition.
    pub fn partition<'a>(&self, name: &'a str) -> Option<(&'a str, u32)> {
        let (disk, number) = name.rsplit_once('p')?;
        let number = number.parse().ok().filter(|_| is_number(number))?;
        self.is_disk(disk).then_some((disk, number))
    }
}

/// Returns the name of a partition.
pub fn of_partition(disk: &str, number: u32) -> String {
    format!("{disk}p{number}")
}

/// Returns the path of a name in `/dev`.
pub fn device_path(name: &str) -> String {
    format!("/dev/{name}")
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_end_in_a_number_and_partitions_in_another() {
        let prefixes = Prefixes::new("disk ram");
        for disk in ["disk0", "disk17", "ram0"] {
            assert!(prefixes.is_disk(disk));
            assert_eq!(prefixes.partition(disk), None);
        }
        for other in ["disk", "disk0p1", "diskette0", "ramp", "console", "ext2", "p1", ""] {
            assert!(!prefixes.is_disk(other), "{other}");
        }
        assert_eq!(prefixes.partition("disk0p12"), Some(("disk0", 12)));
        assert_eq!(prefixes.partition(&of_partition("ram3", 1)), Some(("ram3", 1)));
        for other in ["disk0p", "disk0p-1", "disk0p+1", "ramp1", "p1", "disk0p99999999999", "net0p1"] {
            assert_eq!(prefixes.partition(other), None, "{other}");
        }
    }
}
