//! URLs for a client (RFC 3986, RFC 9110 section 4.2): server to connect to, and request target.
//!
//! Key type: [`Url`]. Deliberately not here: validation of host names, which is the resolver's.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

/// Maximum length of a URL, in bytes.
pub const MAX_BYTES: usize = 8192;

/// Why text is no usable URL. `Display` continues a sentence that begins with the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UrlError {
    /// The scheme is `https`.
    Encrypted,
    /// The scheme is neither `http` nor `https`.
    OtherScheme,
    /// It has no host.
    NoHost,
    /// A user name or password precedes the host.
    Credentials,
    /// It is longer than [`MAX_BYTES`].
    TooLong,
}

impl fmt::Display for UrlError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            UrlError::Encrypted => "https needs encryption, which this system does not have; ask for it with http://",
            UrlError::OtherScheme => "only http:// is spoken here",
            UrlError::NoHost => "there is no host in it; write http://HOST/PATH",
            UrlError::Credentials => "a name or password in an address is not sent; leave out what is before the `@`",
            UrlError::TooLong => "it is longer than 8192 bytes",
        })
    }
}

/// An `http` URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// Host and, if given, port: `example.org:8080`, `[2001:db8::1]`.
    pub authority: String,
    /// Path and query as sent; begins with `/`.
    pub target: String,
}

impl Url {
    /// Parses user input: `http://` may be omitted.
    ///
    /// # Errors
    ///
    /// It is no usable URL.
    pub fn parse(text: &str) -> Result<Url, UrlError> {
        let text = text.trim();
        if text.len() > MAX_BYTES {
            return Err(UrlError::TooLong);
        }
        match scheme(text).filter(|(_, rest)| rest.starts_with("//")) {
            Some((scheme, rest)) => with_scheme(scheme, rest),
            None => after_slashes(text),
        }
    }

    /// Resolves `reference` (RFC 3986, section 4.1), such as a `Location` field, against this URL.
    ///
    /// # Errors
    /// It is no usable URL.
    pub fn join(&self, reference: &str) -> Result<Url, UrlError> {
        let reference = reference.trim();
        if reference.len() > MAX_BYTES {
            return Err(UrlError::TooLong);
        }
        if let Some((scheme, rest)) = scheme(reference) {
            return with_scheme(scheme, rest);
        }
        if let Some(rest) = reference.strip_prefix("//") {
            return after_slashes(rest);
        }
        let reference = reference.split('#').next().unwrap_or_default();
        let path = self.target.split('?').next().unwrap_or_default();
        let target = match reference.as_bytes().first() {
            // The same page, with its query.
            None => self.target.clone(),
            Some(b'?') => format!("{path}{reference}"),
            Some(b'/') => reference.to_string(),
            Some(_) => {
                let folder = &path[..path.rfind('/').map_or(0, |slash| slash + 1)];
                format!("{folder}{reference}")
            }
        };
        Ok(Url { authority: self.authority.clone(), target: clean_target(&target) })
    }
}

impl fmt::Display for Url {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "http://{}{}", self.authority, self.target)
    }
}

/// Splits off the scheme of a URL.
fn scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let is_scheme = scheme.as_bytes().first().is_some_and(u8::is_ascii_alphabetic) && scheme.bytes().all(is_letter);
    is_scheme.then_some((scheme, rest))
}

fn with_scheme(scheme: &str, rest: &str) -> Result<Url, UrlError> {
    if scheme.eq_ignore_ascii_case("https") {
        return Err(UrlError::Encrypted);
    }
    if !scheme.eq_ignore_ascii_case("http") {
        return Err(UrlError::OtherScheme);
    }
    after_slashes(rest.strip_prefix("//").ok_or(UrlError::NoHost)?)
}

fn after_slashes(rest: &str) -> Result<Url, UrlError> {
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, target) = rest.split_at(end);
    // A colon without a port means the default port (RFC 3986, section 3.2.3).
    let authority = authority.strip_suffix(':').unwrap_or(authority);
    if authority.contains('@') {
        return Err(UrlError::Credentials);
    }
    if authority.is_empty() || authority.bytes().any(|byte| byte.is_ascii_control()) {
        return Err(UrlError::NoHost);
    }
    let target = target.split('#').next().unwrap_or_default();
    let target = if target.starts_with('/') { target.to_string() } else { format!("/{target}") };
    Ok(Url { authority: authority.to_string(), target: clean_target(&target) })
}

/// Returns a target without `.` and `..` in its path, and with only bytes that may occur in a request line.
fn clean_target(target: &str) -> String {
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    let mut cleaned = String::new();
    push_visible(&mut cleaned, &without_dots(path));
    if let Some(query) = query {
        cleaned.push('?');
        push_visible(&mut cleaned, query);
    }
    cleaned
}

/// RFC 3986, section 5.2.4.
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut parts = path.split('/').skip(1).peekable();
    while let Some(part) = parts.next() {
        let is_last = parts.peek().is_none();
        match part {
            "." | ".." => {
                if part == ".." {
                    kept.pop();
                }
                if is_last {
                    kept.push("");
                }
            }
            part => kept.push(part),
        }
    }
    format!("/{}", kept.join("/"))
}

fn push_visible(into: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_graphic() && !matches!(byte, b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}') {
            into.push(char::from(byte));
        } else {
            crate::text::push_percent_encoded(into, &[byte]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(String, String), UrlError> {
        Url::parse(text).map(|url| (url.authority, url.target))
    }

    #[test]
    fn addresses_are_read() {
        for (text, authority, target) in [
            ("http://example.org", "example.org", "/"),
            ("HTTP://example.org:8080/a/b?c=d#e", "example.org:8080", "/a/b?c=d"),
            ("example.org/a", "example.org", "/a"),
            ("localhost:8080", "localhost:8080", "/"),
            ("localhost:8080/x", "localhost:8080", "/x"),
            ("http://[::1]:80?q", "[::1]:80", "/?q"),
            ("http://a:/", "a", "/"),
            ("http://a/./b/../c/.", "a", "/c/"),
            ("http://a/../..", "a", "/"),
            ("http://a/b c\u{e9}\r\nX: y", "a", "/b%20c%C3%A9%0D%0AX:%20y"),
            ("http://a/%2e?x=/../y", "a", "/%2e?x=/../y"),
            (" http://a ", "a", "/"),
        ] {
            assert_eq!(read(text), Ok((authority.to_string(), target.to_string())), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_asked_for_is_refused_with_its_reason() {
        for (text, error) in [
            ("https://example.org", UrlError::Encrypted),
            ("HTTPS://example.org", UrlError::Encrypted),
            ("ftp://example.org", UrlError::OtherScheme),
            ("file:///etc", UrlError::OtherScheme),
            ("", UrlError::NoHost),
            ("http://", UrlError::NoHost),
            ("http:///a", UrlError::NoHost),
            ("http://me:secret@example.org", UrlError::Credentials),
            ("http://a\nb", UrlError::NoHost),
        ] {
            assert_eq!(read(text), Err(error), "{text}");
        }
        assert_eq!(read(&"a".repeat(MAX_BYTES + 1)), Err(UrlError::TooLong));
    }

    #[test]
    fn references_are_joined() {
        let base = Url::parse("http://a:1/b/c?d").expect("an address");
        let joined = |reference: &str| base.join(reference).map(|url| url.to_string());
        for (reference, whole) in [
            ("", "http://a:1/b/c?d"),
            ("#e", "http://a:1/b/c?d"),
            ("?x", "http://a:1/b/c?x"),
            ("x", "http://a:1/b/x"),
            ("x/", "http://a:1/b/x/"),
            ("../x?y#z", "http://a:1/x?y"),
            ("./", "http://a:1/b/"),
            ("/x", "http://a:1/x"),
            ("//z/x", "http://z/x"),
            ("http://z", "http://z/"),
            ("x:y", "only http"),
        ] {
            match joined(reference) {
                Ok(found) => assert_eq!(found, whole, "{reference}"),
                Err(error) => assert!(error.to_string().starts_with(whole), "{reference}: {error}"),
            }
        }
        assert_eq!(joined("https://z/"), Err(UrlError::Encrypted));
        assert_eq!(joined("http:x"), Err(UrlError::NoHost));
    }
}
