//! Keys: the development key, which signs what is built from the repository, and a person's own ([`store`]).
//!
//! The development key is made on first use and stays in the output folder, so a key of one clone signs nothing that
//! another trusts. Deliberately not here: signing and certifying; the crate `package` does that.

pub mod commands;
pub mod store;

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Outcome};
use crate::repository::Repository;

/// Bytes of the secret that an Ed25519 key is derived from.
pub const SEED_BYTES: usize = 32;

/// Where the development key lies.
pub fn path(repository: &Repository) -> PathBuf {
    repository.output("keys/development.key")
}

/// The seed of the development key, made now if there is none.
///
/// # Errors
/// The file cannot be read or made, others may read it, or it is not a key.
pub fn development_seed(repository: &Repository) -> Outcome<[u8; SEED_BYTES]> {
    let path = path(repository);
    if !path.exists() {
        match create(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(Failure::file("make the key", &path, &error));
            }
            // Whoever else made it in the meantime made as good a one.
            _ => {}
        }
    }
    read(&path)
}

fn read(path: &Path) -> Outcome<[u8; SEED_BYTES]> {
    let metadata = std::fs::metadata(path).map_err(|error| Failure::file("read the key", path, &error))?;
    if metadata.mode() & 0o077 != 0 {
        return Err(Failure::new(format!("other users may read the signing key {}", path.display()))
            .remedy(format!("run chmod 600 {}, or delete it to get a new one", path.display())));
    }
    let text = std::fs::read_to_string(path).map_err(|error| Failure::file("read the key", path, &error))?;
    from_hexadecimal(text.trim()).ok_or_else(|| {
        Failure::new(format!("{} is not a signing key of {SEED_BYTES} bytes in hexadecimal", path.display()))
            .remedy("delete it to get a new one")
    })
}

/// Makes a key file with a new key, which nobody else can read; there must be no file yet.
fn create(path: &Path) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    // `create_new` and the mode at once: at no moment does the file lie there for others to read.
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    writeln!(file, "{}", hexadecimal(&random::<SEED_BYTES>()?))?;
    file.sync_all()
}

/// Random bytes of the host, fit for secrets.
fn random<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0u8; N];
    std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes))?;
    Ok(bytes)
}

/// Bytes as people read them.
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hexadecimal(text: &str) -> Option<[u8; SEED_BYTES]> {
    bytes(text)?.try_into().ok()
}

/// The bytes that hexadecimal digits stand for.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits = text.len().is_multiple_of(2) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let pair = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    digits.then(|| (0..text.len()).step_by(2).map(pair).collect()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_key_is_made_private_and_read_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("development.key");
        create(&path).expect("a key");
        assert_eq!(std::fs::metadata(&path).expect("metadata").mode() & 0o777, 0o600);
        let seed = read(&path).expect("the key");
        assert_ne!(seed, [0; SEED_BYTES]);

        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("a mode");
        assert!(read(&path).expect_err("others may read it").to_string().contains("chmod 600"));

        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("a mode");
        std::fs::write(&path, "not a key").expect("a file");
        assert!(read(&path).expect_err("no key").to_string().contains("is not a signing key"));
    }

    #[test]
    fn hexadecimal_goes_both_ways() {
        let seed: [u8; SEED_BYTES] = std::array::from_fn(|index| index as u8 * 8);
        assert_eq!(from_hexadecimal(&hexadecimal(&seed)), Some(seed));
        assert_eq!(from_hexadecimal("zz"), None);
    }
}
