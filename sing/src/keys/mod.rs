//! Keys: the development key, which signs packages built from the repository, and the user's own ([`store`]).
//!
//! The development key is created on first use and stays in the output folder, so a key of one clone signs nothing that
//! another trusts. Deliberately not here: signing and certifying; the crate `package-build` does that.

pub mod commands;
pub mod secret;
pub mod store;

use std::path::PathBuf;

use crate::failure::{Failure, Outcome};
use crate::repository::Repository;

use secret::{Remedy, SEED_BYTES};

/// Path of the development key.
pub fn path(repository: &Repository) -> PathBuf {
    repository.output("keys/development.key")
}

/// Returns the seed of the development key, created now if there is none.
///
/// # Errors
/// The file cannot be read or created, others may read it, or it is not a key.
pub fn development_seed(repository: &Repository) -> Outcome<[u8; SEED_BYTES]> {
    let path = path(repository);
    if let Some(seed) = secret::read(&path, Remedy::Delete)? {
        return Ok(seed);
    }
    match secret::create(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            return Err(Failure::file("make the key", &path, &error));
        }
        // A key created concurrently is as good.
        _ => {}
    }
    secret::read(&path, Remedy::Delete)?
        .ok_or_else(|| Failure::new(format!("the new key {} disappeared", path.display())))
}

/// Formats bytes as hexadecimal digits.
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Parses hexadecimal digits.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits = text.len().is_multiple_of(2) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let pair = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    digits.then(|| (0..text.len()).step_by(2).map(pair).collect()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_goes_both_ways() {
        let seed: [u8; SEED_BYTES] = std::array::from_fn(|index| index as u8 * 8);
        assert_eq!(bytes(&hexadecimal(&seed)), Some(seed.to_vec()));
        assert_eq!((bytes("zz"), bytes("123")), (None, None));
    }
}
