//! The text form of principals.

use core::fmt;

/// Maximum links of a principal.
pub const LINK_LIMIT: usize = 8;
/// Maximum length of a principal in bytes.
pub const PRINCIPAL_BYTES: usize = 512;
/// Maximum length of a role in bytes.
pub const ROLE_BYTES: usize = 32;
/// Maximum length of a program's or publisher's name in bytes.
const NAME_BYTES: usize = 63;
/// Separator: the left link invoked the right one.
const JOINT: &str = " + ";

/// Principal of a process: the chain of programs that invoked each other, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Principal<'a> {
    text: &'a str,
}

/// A program of a principal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link<'a> {
    /// Program name.
    pub name: &'a str,
    /// Publisher.
    pub publisher: &'a str,
    /// Role in which it invoked the next.
    pub role: Option<&'a str>,
}

/// Why a text is not a principal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrincipalError {
    /// More than [`PRINCIPAL_BYTES`].
    TooLong,
    /// More than [`LINK_LIMIT`] links.
    TooManyLinks,
    /// The link with this number, from 0 on, is not `name.publisher` or `name.publisher@role`.
    BadLink(usize),
}

impl<'a> Principal<'a> {
    /// Parses the text of a principal.
    ///
    /// # Errors
    /// The kernel would not generate this text.
    pub fn parse(text: &'a str) -> Result<Principal<'a>, PrincipalError> {
        if text.len() > PRINCIPAL_BYTES {
            return Err(PrincipalError::TooLong);
        }
        for (index, link) in text.split(JOINT).enumerate() {
            if index == LINK_LIMIT {
                return Err(PrincipalError::TooManyLinks);
            }
            Link::parse(link).ok_or(PrincipalError::BadLink(index))?;
        }
        Ok(Principal { text })
    }

    /// The text, as the kernel generated it.
    pub fn text(self) -> &'a str {
        self.text
    }

    /// The links, oldest invoker first; at least one.
    pub fn links(self) -> impl Iterator<Item = Link<'a>> {
        self.text.split(JOINT).filter_map(Link::parse)
    }

    /// The program itself: the last link.
    pub fn program(self) -> Option<Link<'a>> {
        self.links().last()
    }

    /// Whether the program was started without an invoker.
    pub fn is_plain(self) -> bool {
        !self.text.contains(JOINT)
    }
}

impl fmt::Display for Principal<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.text)
    }
}

impl<'a> Link<'a> {
    /// Parses a link.
    pub fn parse(text: &'a str) -> Option<Link<'a>> {
        let (program, role) = match text.split_once('@') {
            Some((program, role)) => (program, Some(role)),
            None => (text, None),
        };
        let (name, publisher) = program.split_once('.')?;
        let is_sound = is_word(name, NAME_BYTES)
            && is_word(publisher, NAME_BYTES)
            && role.is_none_or(|role| is_word(role, ROLE_BYTES));
        is_sound.then_some(Link { name, publisher, role })
    }
}

/// A lower-case letter, then lower-case letters, digits and hyphens.
fn is_word(text: &str, max_bytes: usize) -> bool {
    let starts = text.bytes().next().is_some_and(|first| first.is_ascii_lowercase());
    starts
        && text.len() <= max_bytes
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

impl fmt::Display for PrincipalError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PrincipalError::TooLong => write!(formatter, "a principal is limited to {PRINCIPAL_BYTES} bytes"),
            PrincipalError::TooManyLinks => write!(formatter, "a principal is limited to {LINK_LIMIT} links"),
            PrincipalError::BadLink(index) => write!(
                formatter,
                "link {} is not `name.publisher` or `name.publisher@role`; use lowercase letters, digits and hyphens, \
                 and separate links with ` + `",
                index + 1
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::{String, ToString};
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn a_principal_is_its_links() {
        let principal = Principal::parse("login.singularity@alice + shell.singularity + cat.singularity").unwrap();
        let links: Vec<Link<'_>> = principal.links().collect();
        assert_eq!(links.len(), 3);
        assert_eq!(links[0], Link { name: "login", publisher: "singularity", role: Some("alice") });
        assert_eq!(principal.program().unwrap().name, "cat");
        assert!(!principal.is_plain());
        assert!(Principal::parse("cat.singularity").unwrap().is_plain());
    }

    #[test]
    fn what_the_kernel_would_not_make_is_refused() {
        for (text, error) in [
            ("", PrincipalError::BadLink(0)),
            ("cat", PrincipalError::BadLink(0)),
            ("Cat.singularity", PrincipalError::BadLink(0)),
            ("cat.singularity+sh.singularity", PrincipalError::BadLink(0)),
            ("cat.singularity + ", PrincipalError::BadLink(1)),
            ("cat.singularity@", PrincipalError::BadLink(0)),
            ("cat.singularity@a@b", PrincipalError::BadLink(0)),
            ("cat.singularity.other", PrincipalError::BadLink(0)),
            ("1cat.singularity", PrincipalError::BadLink(0)),
        ] {
            assert_eq!(Principal::parse(text), Err(error), "{text}");
            assert!(error.to_string().contains("name.publisher"));
        }
        let nine = ["a.b"; 9].join(" + ");
        assert_eq!(Principal::parse(&nine), Err(PrincipalError::TooManyLinks));
        let long: String = core::iter::repeat_n('a', 600).collect();
        assert_eq!(Principal::parse(&long), Err(PrincipalError::TooLong));
    }
}
