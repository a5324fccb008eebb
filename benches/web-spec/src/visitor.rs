//! The visitor's cookie.

use alloc::format;
use core::fmt;

use web_application::message::{RequestHead, SetCookie, cookies, pairs};

use crate::ads::Choice;

/// Name of the cookie.
const COOKIE: &str = "my_cookie";

/// A visitor as identified by the cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visitor {
    /// Number of the visitor.
    pub number: u32,
    /// Last advertisement shown.
    pub last_ad: u32,
}

/// Why a visitor is not identified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VisitorError {
    /// There is no cookie.
    None,
    /// The cookie is malformed.
    Bad,
}

impl fmt::Display for VisitorError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            VisitorError::None => "The cookie `my_cookie` is missing.",
            VisitorError::Bad => "The cookie `my_cookie` is not of the form `user_id=NUMBER&last_ad=NUMBER`.",
        })
    }
}

/// Returns the value of the visitor's cookie.
fn cookie(head: &RequestHead) -> Result<&str, VisitorError> {
    cookies(head).find(|(name, _)| *name == COOKIE).map(|(_, value)| value).ok_or(VisitorError::None)
}

impl Visitor {
    /// Parses the cookie `user_id=NUMBER&last_ad=NUMBER`. The form set by the last response, with `Ad_id` instead of
    /// `last_ad`, is accepted as well.
    pub fn parse(head: &RequestHead) -> Result<Visitor, VisitorError> {
        let form = pairs(cookie(head)?.as_bytes()).map_err(|_| VisitorError::Bad)?;
        let field = |name| match form.number(name, u32::MAX.into()) {
            Ok(Some(number)) => u32::try_from(number).map_err(|_| VisitorError::Bad),
            Ok(None) | Err(_) => Err(VisitorError::Bad),
        };
        let last_ad = if form.value("last_ad").is_some() { "last_ad" } else { "Ad_id" };
        Ok(Visitor { number: field("user_id")?, last_ad: field(last_ad)? })
    }

    /// Returns the cookie to set after this choice.
    pub fn remembers(&self, choice: &Choice) -> Option<SetCookie> {
        let Choice { ad, points, expired } = choice;
        let value = format!(
            "found_cookie&user_id={}&Ad_id={ad}&Ad_weight={points}&Expired={}",
            self.number,
            u32::from(*expired)
        );
        SetCookie::new(COOKIE, &value)
    }
}

/// Returns the number in the cookie of a posting client; 0 without one.
pub fn posting(head: &RequestHead) -> Result<u32, VisitorError> {
    match cookie(head) {
        Ok(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().map_err(|_| VisitorError::Bad),
        // A client that was shown advertisements has a visitor's cookie.
        Ok(_) => Visitor::parse(head).map(|visitor| visitor.number),
        Err(_) => Ok(0),
    }
}

/// Returns the cookie to set for a posting client.
pub fn posted(number: u32) -> Option<SetCookie> {
    SetCookie::new(COOKIE, &format!("{number}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(cookie: &str) -> RequestHead {
        RequestHead::parse(format!("GET\n/ad\n\n::1\ncookie: {cookie}\n").as_bytes()).expect("a head")
    }

    #[test]
    fn a_visitor_comes_back() {
        let visitor = Visitor::parse(&head("x=1; my_cookie=user_id=17&last_ad=4")).expect("a visitor");
        assert_eq!(visitor, Visitor { number: 17, last_ad: 4 });
        let cookie = visitor.remembers(&Choice { ad: 9, points: 12, expired: false }).expect("a cookie");
        let (sent, _) = cookie.as_str().split_once(';').expect("attributes");
        assert_eq!(sent, "my_cookie=found_cookie&user_id=17&Ad_id=9&Ad_weight=12&Expired=0");
        assert_eq!(Visitor::parse(&head(sent)), Ok(Visitor { number: 17, last_ad: 9 }));
        assert_eq!(posting(&head(sent)), Ok(17));
    }

    #[test]
    fn bad_cookies_are_refused() {
        assert_eq!(Visitor::parse(&head("other=1")), Err(VisitorError::None));
        for cookie in [
            "my_cookie=",
            "my_cookie=user_id=1",
            "my_cookie=user_id=x&last_ad=1",
            "my_cookie=user_id=-1&last_ad=1",
            "my_cookie=user_id=4294967296&last_ad=1",
            "my_cookie=%",
        ] {
            assert_eq!(Visitor::parse(&head(cookie)), Err(VisitorError::Bad), "{cookie}");
        }
    }

    #[test]
    fn who_posts_needs_no_cookie() {
        assert_eq!(posting(&head("my_cookie=4711")), Ok(4711));
        assert_eq!(posting(&head("other=1")), Ok(0));
        assert_eq!(posting(&head("my_cookie=x")), Err(VisitorError::Bad));
        assert_eq!(posting(&head("my_cookie=99999999999")), Err(VisitorError::Bad));
    }
}
