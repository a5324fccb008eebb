//! Host requirements of tests: a [`needs!`] line beside them, from which `cargo sing test` installs programs, or skips
//! the tests and reports the missing ones.
//!
//! Deliberately not here: how each need is provided; `xtask` has the packages and rights.
#![no_std]
#![forbid(unsafe_code)]

/// Declares host requirements of tests, as variants of [`Need`].
///
/// At the beginning of a line it applies to all tests of its file; indented, as the first line of a test, to that
/// test. `cargo sing test` reads it as text, so it stays on one line.
#[macro_export]
macro_rules! needs {
    ($($need:ident),+) => {
        const _: &[$crate::Need] = &[$($crate::Need::$need),+];
    };
}

macro_rules! define {
    ($($(#[$doc:meta])* $need:ident,)*) => {
        /// A program of the host, or a right, required by a test.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Need {
            $($(#[$doc])* $need,)*
        }

        impl Need {
            /// Returns the need with the name of its variant.
            pub fn named(name: &str) -> Option<Need> {
                match name {
                    $(stringify!($need) => Some(Need::$need),)*
                    _ => None,
                }
            }
        }
    };
}

define! {
    /// The built test suite of WASI, beside the repository.
    WasiTestsuite,
    /// `mke2fs`, `e2fsck`, `debugfs`.
    E2fsprogs,
    /// `mkfs.fat` and `fsck.fat`, and mtools.
    Dosfstools,
    /// Writes partition tables.
    Sfdisk,
    /// Starts bare machines.
    Qemu,
    /// HTTP client.
    Curl,
    /// HTTP client.
    Wget,
    /// HTTP load generator.
    Wrk,
    /// Python 3, with its HTTP server.
    Python,
    /// Python 3 with `requests`.
    Requests,
    /// A browser.
    Chromium,
    /// Checker of metrics.
    Promtool,
    /// Packet analyser.
    Tshark,
    /// DHCP and DNS server.
    Dnsmasq,
    /// Model checker.
    Spin,
    /// The right to create network namespaces and TAP interfaces.
    Namespaces,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_need_is_found_by_its_name() {
        assert_eq!(Need::named("Qemu"), Some(Need::Qemu));
        assert_eq!(Need::named("qemu"), None);
    }
}
