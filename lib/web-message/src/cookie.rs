//! Cookies: what a browser was told to remember, and telling it (RFC 6265).

use alloc::string::String;
use core::fmt::Write;

use crate::{RequestHead, is_token};

/// The cookies of a request, in the order in which they came. What is no pair is left out: browsers and what lies
/// between send much, and an application looks for its own alone.
pub fn cookies(head: &RequestHead) -> impl Iterator<Item = (&str, &str)> {
    let all = head.headers_named("cookie").flat_map(|line| line.split(';'));
    all.filter_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        let (name, value) = (name.trim_matches([' ', '\t']), value.trim_matches([' ', '\t']));
        let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value);
        is_token(name).then_some((name, value))
    })
}

/// A cookie that a browser is told to remember: for this site alone, and out of the reach of scripts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetCookie {
    text: String,
}

impl SetCookie {
    /// A cookie. `None` if its name is no token, or its value has blanks, quotes, commas, semicolons or backslashes or
    /// is not ASCII; [`encode`](crate::encode) makes such a value fit.
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

    /// Lets it be remembered for so many seconds, also when the browser is closed. With 0 it is forgotten.
    pub fn for_seconds(mut self, seconds: u32) -> SetCookie {
        // Writing to a string cannot fail.
        let _ = write!(self.text, "; Max-Age={seconds}");
        self
    }

    /// The value of the header `set-cookie`.
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
