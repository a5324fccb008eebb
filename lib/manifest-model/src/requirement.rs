//! Dependency of a program on another program of a minimum version.

use alloc::string::String;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::Version;

/// A program that must be installed where this one is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requirement {
    /// Name of the program.
    pub program: String,
    /// Minimum version.
    pub least: Version,
}

impl Requirement {
    /// Parses the minimum version: `>=1`, `>=1.2` or `>=1.2.3`; missing components are 0.
    pub fn parse_version(text: &str) -> Option<Version> {
        let numbers = text.strip_prefix(">=")?.trim_start();
        let zeros = match numbers.matches('.').count() {
            0 => ".0.0",
            1 => ".0",
            _ => "",
        };
        let mut whole = String::from(numbers);
        whole.push_str(zeros);
        Version::parse(&whole)
    }

    /// Returns whether this version satisfies the requirement.
    pub fn is_met_by(&self, version: Version) -> bool {
        version >= self.least
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} >={}", self.program, self.least)
    }
}

#[cfg(test)]
mod tests {
    use super::Requirement;
    use crate::Version;

    #[test]
    fn what_is_left_out_of_a_version_is_zero() {
        let version = |major, minor, patch| Some(Version { major, minor, patch });
        assert_eq!(Requirement::parse_version(">=1"), version(1, 0, 0));
        assert_eq!(Requirement::parse_version(">= 1.2"), version(1, 2, 0));
        assert_eq!(Requirement::parse_version(">=0.2.10"), version(0, 2, 10));
        for wrong in ["", "1.2", ">1", ">=", ">=1.", ">=01", ">=1.2.3.4", ">=+1", ">=1..2", "=>1", ">=99999999999"] {
            assert_eq!(Requirement::parse_version(wrong), None, "{wrong}");
        }
    }
}
