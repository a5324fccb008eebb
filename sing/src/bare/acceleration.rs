//! Hardware virtualization of the host.

use std::fs::OpenOptions;

use crate::command_line::Acceleration;
use crate::failure::{Failure, Outcome};

/// Returns whether to use KVM, resolving `Auto`.
///
/// # Errors
/// KVM is requested, and does not work here.
pub fn uses_kvm(asked: Acceleration) -> Outcome<bool> {
    let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let device = OpenOptions::new().read(true).write(true).open("/dev/kvm").map(drop);
    decide(asked, &flags, device)
}

fn decide(asked: Acceleration, processor: &str, device: std::io::Result<()>) -> Outcome<bool> {
    let missing = match device {
        Err(error) => Some(format!("/dev/kvm cannot be opened ({})", crate::failure::plain_reason(&error))),
        // The device may exist without the processor's support; a guest would hang then.
        Ok(()) if !has_virtualization(processor) => Some("/proc/cpuinfo shows neither vmx nor svm".to_string()),
        Ok(()) => None,
    };
    match (asked, missing) {
        (Acceleration::Tcg, _) | (Acceleration::Auto, Some(_)) => Ok(false),
        (Acceleration::Auto | Acceleration::Kvm, None) => Ok(true),
        (Acceleration::Kvm, Some(missing)) => {
            Err(Failure::new(format!("KVM is not available on this host: {missing}")).remedy("use --accel tcg"))
        }
    }
}

fn has_virtualization(processor: &str) -> bool {
    let flags = processor.lines().filter(|line| line.starts_with("flags"));
    flags.flat_map(str::split_whitespace).any(|flag| flag == "vmx" || flag == "svm")
}

#[cfg(test)]
mod tests {
    use super::*;

    const WITH: &str = "processor\t: 0\nflags\t\t: fpu vme svm sse2\n";
    const WITHOUT: &str = "processor\t: 0\nflags\t\t: fpu vme hypervisor sse2\nbugs\t\t: svm\n";

    #[test]
    fn kvm_is_used_only_where_device_and_processor_have_it() {
        assert_eq!(decide(Acceleration::Auto, WITH, Ok(())), Ok(true));
        assert_eq!(decide(Acceleration::Auto, WITHOUT, Ok(())), Ok(false));
        assert_eq!(decide(Acceleration::Tcg, WITH, Ok(())), Ok(false));
        let denied = || Err(std::io::Error::from_raw_os_error(13));
        assert_eq!(decide(Acceleration::Auto, WITH, denied()), Ok(false));
    }

    #[test]
    fn kvm_elsewhere_is_refused_by_a_sentence() {
        let refused = decide(Acceleration::Kvm, WITHOUT, Ok(())).expect_err("no flag").to_string();
        assert_eq!(
            refused,
            "KVM is not available on this host: /proc/cpuinfo shows neither vmx nor svm; use --accel tcg."
        );
        let denied = decide(Acceleration::Kvm, WITH, Err(std::io::Error::from_raw_os_error(13)));
        assert!(denied.expect_err("no access").to_string().contains("(permission denied)"));
    }
}
