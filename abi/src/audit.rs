//! The format of audit lines about refusals.
//!
//! The kernel and services share it, so that people and tests can search for a principal, a right or an object.
//! Deliberately not here: time and origin, which the kernel adds.

use alloc::format;
use alloc::string::String;

use crate::limits::AUDIT_TEXT_BYTES;

/// Maximum bytes shown of the principal.
const PRINCIPAL_BYTES: usize = 112;
/// Maximum bytes shown of the right, and of the rule.
const WORD_BYTES: usize = 40;
/// Marks omitted text.
const CUT: &str = "...";
/// Separator of a principal's links.
const JOINT: &str = " + ";
/// Separator of principal and right; occurs in no principal.
const REFUSED: &str = " refused ";

/// `PRINCIPAL refused RIGHT on OBJECT (RULE)`, at most [`AUDIT_TEXT_BYTES`] long. A long principal is abbreviated to
/// its first and last link, the initiator and the actor; a long object to its end.
pub fn refusal(principal: &str, right: &str, object: &str, rule: &str) -> String {
    let principal = shorter(principal);
    let (right, rule) = (beginning(right, WORD_BYTES), beginning(rule, WORD_BYTES));
    let frame = format!("{principal}{REFUSED}{right} on  ({rule})").len();
    let object = end(object, AUDIT_TEXT_BYTES.saturating_sub(frame));
    format!("{principal}{REFUSED}{right} on {object} ({rule})")
}

/// The principal of a line in this format, as shown there.
pub fn principal_of(line: &str) -> Option<&str> {
    line.split_once(REFUSED).map(|(principal, _)| principal)
}

fn shorter(principal: &str) -> String {
    if principal.len() <= PRINCIPAL_BYTES {
        return principal.into();
    }
    let (first, rest) = principal.split_once(JOINT).unwrap_or((principal, ""));
    let last = rest.rsplit(JOINT).next().unwrap_or(rest);
    let half = (PRINCIPAL_BYTES - 2 * JOINT.len() - CUT.len()) / 2;
    format!("{}{JOINT}{CUT}{JOINT}{}", beginning(first, half), end(last, half))
}

/// The text, truncated to fit, with a mark.
pub fn beginning(text: &str, bytes: usize) -> String {
    match text.len() <= bytes {
        true => text.into(),
        false => format!("{}{CUT}", &text[..text.floor_char_boundary(bytes.saturating_sub(CUT.len()))]),
    }
}

fn end(text: &str, bytes: usize) -> String {
    match text.len() <= bytes {
        true => text.into(),
        false => {
            let left = (text.len() - bytes.min(text.len())).saturating_add(CUT.len()).min(text.len());
            format!("{CUT}{}", &text[text.ceil_char_boundary(left)..])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_there_whole() {
        let line = refusal("shell.singularity + cat.singularity", "read", "/fs/disk0/secret", "/fs/disk0");
        assert_eq!(line, "shell.singularity + cat.singularity refused read on /fs/disk0/secret (/fs/disk0)");
    }

    #[test]
    fn whatever_is_long_the_line_fits_and_tells_who_began_and_who_acted() {
        let long = "x".repeat(700);
        let links = format!("login.singularity@alice + {long} + cat.singularity");
        for (principal, right, object, rule) in [
            (links.as_str(), "read", "/secret", "rule"),
            ("a.b", long.as_str(), "/secret", "rule"),
            ("a.b", "read", long.as_str(), "rule"),
            ("a.b", "read", "/secret", long.as_str()),
            (links.as_str(), long.as_str(), long.as_str(), long.as_str()),
            (long.as_str(), long.as_str(), "ö", "ä"),
        ] {
            let line = refusal(principal, right, object, rule);
            assert!(line.len() <= AUDIT_TEXT_BYTES, "{} bytes: {line}", line.len());
        }
        let line = refusal(&links, "read", "/secret", "rule");
        assert_eq!(line, "login.singularity@alice + ... + cat.singularity refused read on /secret (rule)");
    }

    #[test]
    fn whom_a_line_is_about_can_be_read_from_it() {
        let line = refusal("a.b + c.d@e", "read", "/x refused write on /y", "rule");
        assert_eq!(principal_of(&line), Some("a.b + c.d@e"));
        assert_eq!(principal_of("something else"), None);
    }

    #[test]
    fn characters_are_never_cut_in_two() {
        let wide = "ö".repeat(400);
        for extra in 0..4 {
            let line = refusal(&wide[extra / 2 * 2..], "read", &format!("{}{wide}", "a".repeat(extra)), &wide);
            assert!(line.len() <= AUDIT_TEXT_BYTES);
        }
    }
}
