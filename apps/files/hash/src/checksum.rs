//! Checksums by algorithm name.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;

use crc32fast::Hasher;
use sha2::{Digest, Sha256};

use crate::blake3::Blake3;

/// An incremental checksum.
pub struct Checksum {
    state: State,
}

enum State {
    Sha256(Box<Sha256>),
    Blake3(Box<Blake3>),
    Crc32(u32),
}

impl Checksum {
    /// Creates a checksum for the algorithm `sha256`, `blake3` or `crc32`; `None` for any other name.
    pub fn named(algorithm: &str) -> Option<Checksum> {
        let state = match algorithm {
            "sha256" => State::Sha256(Box::default()),
            "blake3" => State::Blake3(Box::new(Blake3::new())),
            "crc32" => State::Crc32(0),
            _ => return None,
        };
        Some(Checksum { state })
    }

    /// Absorbs bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.state {
            State::Sha256(state) => state.update(bytes),
            State::Blake3(state) => state.update(bytes),
            State::Crc32(state) => *state = crc32_on(*state, bytes),
        }
    }

    /// Returns the checksum in hexadecimal.
    pub fn finish(self) -> String {
        match self.state {
            State::Sha256(state) => in_digits(&state.finalize()),
            State::Blake3(state) => in_digits(&state.finish()),
            State::Crc32(state) => format!("{state:08x}"),
        }
    }
}

/// Continues the CRC-32 `before` over these bytes. A stored hasher would pull in instructions that a sealed image must
/// not contain: only at its construction can the compiler prove them unused.
fn crc32_on(before: u32, bytes: &[u8]) -> u32 {
    let mut hasher = Hasher::new_with_initial(before);
    hasher.update(bytes);
    hasher.finalize()
}

fn in_digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_that_the_algorithms_papers_print() {
        for (algorithm, of_abc) in [
            ("sha256", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            ("blake3", "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85"),
            ("crc32", "352441c2"),
        ] {
            let mut sum = Checksum::named(algorithm).unwrap();
            sum.update(b"a");
            sum.update(b"bc");
            assert_eq!(sum.finish(), of_abc, "{algorithm}");
        }
        assert!(Checksum::named("md5").is_none());
    }
}
