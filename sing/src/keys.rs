//! The development key that packages are signed with. It is made on first use and stays in the
//! output folder, so a key of one clone signs nothing that another trusts.
//!
//! Deliberately not here: signing; the crate `package` does that with the seed.

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
        create(&path)?;
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

fn create(path: &Path) -> Outcome<()> {
    let mut seed = [0u8; SEED_BYTES];
    let random = Path::new("/dev/urandom");
    std::fs::File::open(random)
        .and_then(|mut file| file.read_exact(&mut seed))
        .map_err(|error| Failure::file("read", random, &error))?;
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(|error| Failure::file("make the folder", folder, &error))?;
    // `create_new` and the mode at once: at no moment does the file lie there for others to read.
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    match made.and_then(|mut file| writeln!(file, "{}", hexadecimal(&seed))) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(Failure::file("make the key", path, &error))
        }
        _ => Ok(()),
    }
}

/// `sing key`: prints where the development key lies and its public half.
///
/// # Errors
/// The key file cannot be read or made.
pub fn show(repository: &Repository) -> Outcome<u8> {
    let key = package::SecretKey::from_bytes(&development_seed(repository)?);
    println!("public key  {}", hexadecimal(&key.public().0));
    println!("secret in   {}", path(repository).display());
    Ok(0)
}

/// Bytes as people read them.
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hexadecimal(text: &str) -> Option<[u8; SEED_BYTES]> {
    if text.len() != 2 * SEED_BYTES || !text.is_ascii() {
        return None;
    }
    let mut seed = [0u8; SEED_BYTES];
    for (byte, pair) in seed.iter_mut().zip(text.as_bytes().chunks(2)) {
        let pair = std::str::from_utf8(pair).ok()?;
        *byte = u8::from_str_radix(pair, 16).ok()?;
    }
    Some(seed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_key_is_made_private_and_read_back() {
        let folder = std::env::temp_dir().join(format!("sing-keys-{}", std::process::id()));
        let path = folder.join("development.key");
        create(&path).expect("a key");
        assert_eq!(std::fs::metadata(&path).expect("metadata").mode() & 0o777, 0o600);
        let seed = read(&path).expect("the key");
        assert_ne!(seed, [0; SEED_BYTES]);

        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("a mode");
        assert!(read(&path).expect_err("others may read it").to_string().contains("chmod 600"));

        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("a mode");
        std::fs::write(&path, "not a key").expect("a file");
        assert!(read(&path).expect_err("no key").to_string().contains("is not a signing key"));
        std::fs::remove_dir_all(&folder).expect("cleaning up");
    }

    #[test]
    fn hexadecimal_goes_both_ways() {
        let seed: [u8; SEED_BYTES] = std::array::from_fn(|index| index as u8 * 8);
        assert_eq!(from_hexadecimal(&hexadecimal(&seed)), Some(seed));
        assert_eq!(from_hexadecimal("zz"), None);
    }
}
