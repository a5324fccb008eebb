//! A chain of certificates, in a package that one of them may be for.
#![no_main]

use package::{Certificate, PublicKey, Revoked};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(chain) = Certificate::chain(bytes) {
        let again = Certificate::encode_chain(&chain);
        assert_eq!(again, bytes, "what is read is what was written");
        assert_eq!(Certificate::chain(&again).as_ref(), Ok(&chain));
    }
    let Ok(text) = core::str::from_utf8(bytes) else { return };
    if let Some(key) = PublicKey::parse(text) {
        assert_eq!(PublicKey::parse(&key.to_string()), Some(key));
    }
    if let Some(revoked) = Revoked::parse(text) {
        assert_eq!(Revoked::parse(&revoked.to_string()), Some(revoked));
    }
});
