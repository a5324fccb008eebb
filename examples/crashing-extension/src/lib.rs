//! An extension that crashes on purpose.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use extension_contract::extension::ExpReady;

sip::startup!();

/// Converts each text to upper case; crashes on one particular word.
pub fn main(startup: Startup) -> i32 {
    let mut host = startup.host;
    loop {
        host = match host.receive() {
            ExpReady::Work { mut text, next } => {
                assert!(&text[..] != b"crash", "an extension that was given a word it cannot stand");
                text.make_ascii_uppercase();
                next.done(text)
            }
            ExpReady::ChannelClosed(_) => return 0,
        };
    }
}
