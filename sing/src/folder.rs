//! Host folders for a system: `--folder [NAME=]PATH[:ro][:follow]`.
//!
//! Deliberately not here: serving them, which the hosted machine and QEMU do.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use crate::failure::{Failure, Outcome};

/// Folders that the systems of this repository have drivers for: `count` of `host-folder` and `virtio-9p` in
/// `systems/`.
pub const MAX_FOLDERS: usize = 64;
/// Maximum length of a name in bytes, from virtio-9p.
const NAME_BYTES: usize = 31;

/// A folder given on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// Name below `/fs`.
    pub name: String,
    /// Its path.
    pub path: PathBuf,
    /// Whether it is read-only.
    pub is_read_only: bool,
    /// Links are followed, also outside the folder.
    pub follows_links: bool,
}

impl Folder {
    /// Argument for the hosted machine.
    pub fn specification(&self) -> OsString {
        let mut text = OsString::from(format!("{}=", self.name));
        text.push(&self.path);
        if self.is_read_only {
            text.push(":ro");
        }
        if self.follows_links {
            text.push(":follow");
        }
        text
    }
}

/// Parses the values of `--folder`, and checks that the folders exist.
///
/// # Errors
/// One is not a folder, has no valid name, or has the name of another; there are too many.
pub fn read_all(given: &[OsString]) -> Outcome<Vec<Folder>> {
    if given.len() > MAX_FOLDERS {
        return Err(Failure::new(format!(
            "too many --folder options: {}; a system has at most {MAX_FOLDERS} folders",
            given.len()
        ))
        .remedy("serve a common parent folder instead"));
    }
    let mut folders: Vec<Folder> = Vec::new();
    for text in given {
        let folder = read(text)?;
        if folders.iter().any(|other| other.name == folder.name) {
            return Err(Failure::new(format!("duplicate folder name {}", folder.name))
                .remedy("rename one of them with --folder NAME=PATH"));
        }
        folders.push(folder);
    }
    Ok(folders)
}

fn read(text: &OsStr) -> Outcome<Folder> {
    let bytes = text.as_bytes();
    let (mut rest, mut is_read_only, mut follows_links) = (bytes, false, false);
    loop {
        if let Some(shorter) = rest.strip_suffix(b":ro") {
            (rest, is_read_only) = (shorter, true);
        } else if let Some(shorter) = rest.strip_suffix(b":follow") {
            (rest, follows_links) = (shorter, true);
        } else {
            break;
        }
    }
    // A path that contains an equals sign is taken as a path if it exists.
    let equals = rest.iter().position(|&byte| byte == b'=').filter(|_| !to_path(rest).exists());
    let (name, path) = match equals {
        Some(equals) => (Some(&rest[..equals]), to_path(&rest[equals + 1..])),
        None => (None, to_path(rest)),
    };
    let path = std::fs::canonicalize(&path).map_err(|error| Failure::file("serve the folder", &path, &error))?;
    if !path.is_dir() {
        return Err(Failure::new(format!("{} is not a folder", path.display()))
            .remedy("give a folder to --folder; --disk takes disk images"));
    }
    let name = match name {
        Some(name) => checked_name(name)?,
        None => checked_name(path.file_name().unwrap_or_default().as_bytes())?,
    };
    Ok(Folder { name, path, is_read_only, follows_links })
}

fn to_path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes.to_vec()))
}

/// Checks a name below `/fs` that no disk may have.
fn checked_name(name: &[u8]) -> Outcome<String> {
    let text = String::from_utf8_lossy(name);
    let fail = |what: &str| {
        let remedy = "rename it with --folder NAME=PATH, using letters, digits, `.`, `-` and `_`";
        Err(Failure::new(format!("invalid mount point /fs/{text}: {what}")).remedy(remedy))
    };
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b".-_".contains(byte);
    let is_of_disk = ["disk", "ram"].iter().any(|prefix| {
        text.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
    });
    match name {
        b"" | b"." | b".." => fail("invalid name"),
        _ if !name.iter().all(is_plain) => fail("unsupported characters"),
        _ if name.len() > NAME_BYTES => fail("longer than 31 bytes"),
        _ if is_of_disk => fail("reserved for disks"),
        _ => Ok(text.into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Outcome<Folder> {
        read(OsStr::new(text))
    }

    #[test]
    fn names_and_options_are_read() {
        let usr = Folder { name: "usr".into(), path: "/usr".into(), is_read_only: false, follows_links: false };
        assert_eq!(one("/usr").expect("it is there"), usr);
        assert_eq!(one("/usr/../usr").expect("it is there"), usr);
        let named = one("n=/usr:ro:follow").expect("it is there");
        assert_eq!((named.name.as_str(), named.is_read_only, named.follows_links), ("n", true, true));
        assert_eq!(named.specification(), "n=/usr:ro:follow");
    }

    #[test]
    fn what_cannot_be_served_is_one_sentence() {
        for (text, expected) in [
            ("/no/such", "cannot serve the folder /no/such"),
            ("/etc/passwd", "/etc/passwd is not a folder"),
            ("/", "invalid mount point /fs/: invalid name"),
            ("disk1=/usr", "invalid mount point /fs/disk1: reserved for disks"),
            ("a b=/usr", "unsupported characters"),
            ("..=/usr", "invalid name"),
        ] {
            let said = one(text).expect_err(text).to_string();
            assert!(said.contains(expected), "{said}");
        }
        let twice = [OsString::from("/usr"), OsString::from("usr=/etc")];
        assert!(read_all(&twice).expect_err("two names").to_string().starts_with("duplicate folder name usr"));
        let too_many = read_all(&vec![OsString::from("/usr"); 65]).expect_err("too many").to_string();
        assert!(too_many.contains("options: 65") && too_many.contains("64 folders"), "{too_many}");
    }
}
