//! Checks that a build for `cargo sing bench safety` leaves out. Such a kernel starts only with the boot parameter
//! `measure-without-checks`, which others refuse.
//!
//! Deliberately not here: anything that could be switched while a system runs.

use alloc::string::String;

/// Name of the boot parameter. It is not passed on to the root program.
pub const PARAMETER: &str = "measure-without-checks";
/// Whether each message is held to its contract.
pub const MONITORED: bool = !cfg!(feature = "bench-without-monitor");

/// Whether any check is left out.
pub const fn is_any() -> bool {
    !MONITORED || cfg!(feature = "bench-unchecked-images")
}

/// Why the kernel does not start; `is_wanted` if the boot parameter is given.
pub fn refusal(is_wanted: bool) -> Option<String> {
    (is_any() && !is_wanted)
        .then(|| String::from("this kernel was built without safety checks, for `cargo sing bench safety` alone"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_kernel_without_checks_wants_the_parameter() {
        assert_eq!(refusal(false).is_some(), is_any());
        assert_eq!(refusal(true), None);
    }
}
