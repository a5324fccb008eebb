//! Secret-key files: written atomically, readable by their owner only, never replaced.
//!
//! Such a file is a line `secret` with 64 digits. The word is there because a public key has 64 digits too, and a
//! mix-up would publish the secret; files with the digits alone are accepted all the same. Deliberately not here: the
//! set of keys, and handling of an unusable one; see `store` and the development key.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Outcome};

/// Bytes of the seed that an Ed25519 key is derived from.
pub const SEED_BYTES: usize = 32;
/// Prefix of a secret-key file.
const MARK: &str = "secret";

/// Advice for an unusable key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// Delete it: it is regenerated automatically.
    Delete,
    /// Restore it: systems trust this key, and no other can replace it.
    Restore,
}

impl Remedy {
    fn of_mode(self, path: &Path) -> String {
        let path = path.display();
        match self {
            Remedy::Delete => format!("run chmod 600 {path}, or delete it to get a new one"),
            Remedy::Restore => format!("run chmod 600 {path}, and revoke the key if it may have been read"),
        }
    }

    fn of_content(self) -> &'static str {
        match self {
            Remedy::Delete => "delete it to get a new one",
            Remedy::Restore => "restore your backup; a newly created key would differ",
        }
    }
}

/// Reads the seed from a file; `None` if there is no such file.
///
/// # Errors
/// The file cannot be read, is readable by others, or is not a key.
pub fn read(path: &Path, remedy: Remedy) -> Outcome<Option<[u8; SEED_BYTES]>> {
    let failed = |error: std::io::Error| Failure::file("read the key", path, &error);
    let mut file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        file => file.map_err(failed)?,
    };
    if file.metadata().map_err(failed)?.mode() & 0o077 != 0 {
        return Err(Failure::new(format!("other users can read the signing key {}", path.display()))
            .remedy(remedy.of_mode(path)));
    }
    let mut text = Vec::new();
    file.read_to_end(&mut text).map_err(failed)?;
    let seed = std::str::from_utf8(&text).ok().and_then(seed_of);
    seed.map(Some).ok_or_else(|| {
        Failure::new(format!("{} is not a signing key of {SEED_BYTES} bytes in hexadecimal", path.display()))
            .remedy(remedy.of_content())
    })
}

/// Returns whether a text is that of a secret-key file with the prefix.
pub fn is_marked(text: &str) -> bool {
    digits_of(text).is_some()
}

/// Parses the seed from the text of a secret-key file.
pub fn seed_of(text: &str) -> Option<[u8; SEED_BYTES]> {
    super::bytes(digits_of(text).unwrap_or(text.trim()))?.try_into().ok()
}

fn digits_of(text: &str) -> Option<&str> {
    text.trim().strip_prefix(MARK)?.strip_prefix(' ').map(str::trim)
}

/// Creates a file with a new secret in a private folder; the name must be free.
///
/// # Errors
/// It exists, or cannot be created; the name is then as before.
pub fn create(path: &Path) -> std::io::Result<()> {
    let line = format!("{MARK} {}\n", super::hexadecimal(&random::<SEED_BYTES>()?));
    create_with(path, |file| file.write_all(line.as_bytes()))
}

/// The file is renamed after its content is on disk, so that readers never see an empty or partial key.
fn create_with(path: &Path, write: impl FnOnce(&mut File) -> std::io::Result<()>) -> std::io::Result<()> {
    let beside = written_beside(path, write)?;
    // Unlike rename, this fails if the name is taken.
    let made = std::fs::hard_link(&beside, path);
    // A second link to the key in a private folder is harmless.
    let _ = std::fs::remove_file(&beside);
    made.and_then(|()| sync_folder_of(path))
}

/// Atomically replaces a file of a private folder by these bytes, readable by its owner alone.
///
/// # Errors
/// It cannot be written; it is unchanged.
pub fn replace(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let beside = written_beside(path, |file| file.write_all(content))?;
    if let Err(error) = std::fs::rename(&beside, path) {
        // The first error is the one to report.
        let _ = std::fs::remove_file(&beside);
        return Err(error);
    }
    sync_folder_of(path)
}

/// Writes a temporary file beside the path, to be renamed when complete; returns its path.
fn written_beside(path: &Path, write: impl FnOnce(&mut File) -> std::io::Result<()>) -> std::io::Result<PathBuf> {
    private_folder(folder_of(path))?;
    let beside = name_beside(path)?;
    // `create_new` together with the mode: the file is never readable by others.
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    if let Err(error) = write(&mut file).and_then(|()| file.sync_all()) {
        let _ = std::fs::remove_file(&beside);
        return Err(error);
    }
    Ok(beside)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn sync_folder_of(path: &Path) -> std::io::Result<()> {
    File::open(folder_of(path))?.sync_all()
}

/// Returns a temporary name in the same folder, unique among runs of the tool and never a key's.
fn name_beside(path: &Path) -> std::io::Result<PathBuf> {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.new", super::hexadecimal(&random::<8>()?)));
    Ok(path.with_file_name(name))
}

/// Creates a folder that only its owner may access, unless it exists. Parents get the usual permissions.
///
/// # Errors
/// It cannot be created.
pub fn private_folder(folder: &Path) -> std::io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    if let Some(above) = folder.parent().filter(|above| !above.as_os_str().is_empty()) {
        std::fs::create_dir_all(above)?;
    }
    match DirBuilder::new().mode(0o700).create(folder) {
        // Another run of the tool was faster.
        Err(error) if error.kind() == ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        made => made,
    }
}

/// Returns random bytes from the host, suitable for secrets.
///
/// # Errors
/// The host has none.
pub fn random<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0u8; N];
    File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn set_mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a mode");
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).expect("a folder");
        let name = |entry: std::io::Result<std::fs::DirEntry>| entry.expect("an entry").file_name();
        entries.map(|entry| name(entry).to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn a_key_is_made_private_and_read_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("keys/development.key");
        assert_eq!(read(&path, Remedy::Delete), Ok(None));
        create(&path).expect("a key");
        assert_eq!(std::fs::metadata(&path).expect("metadata").mode() & 0o777, 0o600);
        assert_eq!(names(&folder.path().join("keys")), ["development.key"]);
        let seed = read(&path, Remedy::Delete).expect("it can be read").expect("the key");
        assert_ne!(seed, [0; SEED_BYTES]);

        set_mode(&path, 0o644);
        assert!(read(&path, Remedy::Delete).expect_err("others may read it").to_string().contains("chmod 600"));
        set_mode(&path, 0o600);
        for bad in ["not a key", "", "secret", "secret 00ff", "\u{fc}"] {
            std::fs::write(&path, bad).expect("a file");
            let refused = read(&path, Remedy::Delete).expect_err("no key").to_string();
            assert!(refused.contains("is not a signing key"), "{refused}");
        }
    }

    #[test]
    fn a_secret_says_that_it_is_one_and_digits_alone_are_read_too() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("mine.key");
        create(&path).expect("a key");
        let text = std::fs::read_to_string(&path).expect("the file");
        assert!(is_marked(&text) && manifest_model::PublicKey::parse(text.trim()).is_none(), "{text}");
        let seed = read(&path, Remedy::Restore).expect("it can be read");
        let digits = text.trim().strip_prefix("secret ").expect("the word is there");
        std::fs::write(&path, format!("{digits}\n")).expect("a file");
        assert_eq!(read(&path, Remedy::Restore), Ok(seed));
        assert!(!is_marked(digits));
    }

    #[test]
    fn nobody_is_told_to_delete_a_key_of_their_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("mine.key");
        create(&path).expect("a key");
        set_mode(&path, 0o640);
        let mut refused = vec![read(&path, Remedy::Restore).expect_err("others may read it")];
        set_mode(&path, 0o600);
        std::fs::write(&path, "damaged").expect("a file");
        refused.push(read(&path, Remedy::Restore).expect_err("no key"));
        let texts: Vec<String> = refused.iter().map(Failure::to_string).collect();
        assert!(texts.iter().all(|text| !text.contains("delete")), "{texts:?}");
        assert!(texts[0].contains("chmod 600") && texts[0].contains("revoke"), "{}", texts[0]);
        assert!(texts[1].contains("your backup"), "{}", texts[1]);
    }

    #[test]
    fn a_key_has_its_name_only_when_it_is_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("mine.key");
        let failed = create_with(&path, |file| {
            file.write_all(b"secret 00")?;
            assert!(!path.exists(), "half a key has the name of a key");
            Err(ErrorKind::StorageFull.into())
        });
        assert_eq!(failed.expect_err("the disk is full").kind(), ErrorKind::StorageFull);
        assert_eq!(names(folder.path()), Vec::<String>::new());
        create(&path).expect("the name is free");
    }

    #[test]
    fn a_key_is_never_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("mine.key");
        create(&path).expect("a key");
        let before = read(&path, Remedy::Restore);
        assert_eq!(create(&path).expect_err("there is one").kind(), ErrorKind::AlreadyExists);
        assert_eq!(read(&path, Remedy::Restore), before);
        assert_eq!(names(folder.path()), ["mine.key"]);
    }

    #[test]
    fn whoever_makes_the_folder_makes_it_private() {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, make) in [("by-key/keys", true), ("by-list/keys", false)] {
            let keys = folder.path().join(name);
            let made = if make { create(&keys.join("mine.key")) } else { replace(&keys.join("trusted"), b"# none\n") };
            made.expect("it can be made");
            assert_eq!(std::fs::metadata(&keys).expect("metadata").mode() & 0o777, 0o700, "{name}");
        }
        let list = folder.path().join("by-list/keys/trusted");
        assert_eq!(std::fs::metadata(&list).expect("metadata").mode() & 0o777, 0o600);
        replace(&list, b"# some\n").expect("it can be written");
        assert_eq!(std::fs::read(&list).expect("a file"), b"# some\n");
        assert_eq!(names(&folder.path().join("by-list/keys")), ["trusted"]);
    }
}
