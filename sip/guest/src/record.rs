//! What a module says of the contracts that it was built for, in a custom section: the tool and the installer compare it
//! with the contracts that its manifest names.

/// Name of the custom section.
pub const SECTION: &str = "sing.contracts";

/// Bytes of a fingerprint.
const FINGERPRINT_BYTES: usize = 32;

/// A record of the section: the length of the name in a byte, the name, the fingerprint.
///
/// # Panics
/// `N` is not the length of these together; in a constant, at compile time.
pub const fn record<const N: usize>(name: &str, fingerprint: [u8; FINGERPRINT_BYTES]) -> [u8; N] {
    let name = name.as_bytes();
    assert!(N == 1 + name.len() + FINGERPRINT_BYTES && name.len() <= u8::MAX as usize);
    let mut bytes = [0; N];
    bytes[0] = name.len() as u8;
    let mut index = 0;
    while index < name.len() {
        bytes[1 + index] = name[index];
        index += 1;
    }
    let mut index = 0;
    while index < FINGERPRINT_BYTES {
        bytes[1 + name.len() + index] = fingerprint[index];
        index += 1;
    }
    bytes
}

/// Declares a contract of generated bindings: its type, name and fingerprint.
#[doc(hidden)]
#[macro_export]
macro_rules! contract {
    ($type:ident, $name:literal, [$($byte:literal),* $(,)?]) => {
        impl $crate::channel::Contract for $type {
            const NAME: &'static str = $name;
            const TAG: u64 = $crate::abi::name_tag($name);
        }

        const _: () = {
            const BYTES: usize = 1 + $name.len() + [$($byte),*].len();
            // SAFETY: plain bytes in a custom section, which is no part of the program's memory.
            #[unsafe(link_section = "sing.contracts")]
            #[used]
            static RECORD: [u8; BYTES] = $crate::record($name, [$($byte),*]);
        };
    };
}
