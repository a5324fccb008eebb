//! Cookies (RFC 6265).

use alloc::string::String;
use core::fmt::Write;

use crate::{RequestHead, is_token};

/// The cookies of a request, in order. Malformed pairs are skipped: browsers and proxies send many, and an application
/// looks only for its own.
pub fn cookies(head: &RequestHead) -> impl Iterator<Item = (&str, &str)> {
    let all = head.headers_named("cookie").flat_map(|line| line.split(';'));
    all.filter_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        let (name, value) = (name.trim_matches([' ', '\t']), value.trim_matches([' ', '\t']));
        let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value);
        is_token(name).then_some((name, value))
    })
}

/// A cookie to set: for this site only, and inaccessible to scripts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetCookie {
    text: String,
}

impl SetCookie {
    /// Creates a cookie. `None` if the name is not a token, or the value is not ASCII or has blanks, quotes, commas,
    /// semicolons or backslashes; [`encode`](crate::encode) makes such a value valid.
    pub fn new(name: &str, value: &str) -> Option<SetCookie> {
        let may_stand = |byte: u8| byte.is_ascii_graphic() && !b"\",;\\".contains(&byte);
        if !is_token(name) || !value.bytes().all(may_stand) {
            return None;
        }
        let mut text = String::from(name);
        text.push('=');
        text.push_str(value);
        text.push_str("; Path=/; HttpOnly; SameSite=Lax");
        Some(SetCookie { text })
    }

    /// Sets Max-Age in seconds, so that it survives the browser session; 0 deletes it.
    pub fn for_seconds(mut self, seconds: u32) -> SetCookie {
        // Writing to a string cannot fail.
        let _ = write!(self.text, "; Max-Age={seconds}");
        self
    }

    /// The value of the `set-cookie` field.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn read(lines: &str) -> Vec<(String, String)> {
        let head = std::format!("GET\n/\n\n::1\n{lines}");
        let head = RequestHead::parse(head.as_bytes()).expect("a head");
        cookies(&head).map(|(name, value)| (String::from(name), String::from(value))).collect()
    }

    #[test]
    fn cookies_are_found_among_what_is_sent() {
        let found = read("cookie: a=1; b=\"two\" ;c=x=y; ; nothing; =v; d d=1\ncookie: e=\n");
        let found: Vec<(&str, &str)> = found.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(found, [("a", "1"), ("b", "two"), ("c", "x=y"), ("e", "")]);
    }

    #[test]
    fn only_what_cannot_be_misread_is_set() {
        let cookie = SetCookie::new("my_cookie", "user_id=1&last_ad=2").expect("a cookie").for_seconds(60);
        assert_eq!(cookie.as_str(), "my_cookie=user_id=1&last_ad=2; Path=/; HttpOnly; SameSite=Lax; Max-Age=60");
        for (name, value) in
            [("", "x"), ("a b", "x"), ("a", "x; Path=/y"), ("a", "x\r\nset-cookie: b=1"), ("a", "\u{e4}")]
        {
            assert_eq!(SetCookie::new(name, value), None, "{name} {value}");
        }
    }
}
