//! Conditional requests (RFC 9110, section 13): whether a client's copy is still current.

use crate::date;
use crate::request::{Method, Request};
use crate::text::list_members;

/// Validators of the current representation.
#[derive(Clone, Copy, Debug)]
pub struct Validators<'a> {
    /// Entity tag with its quotes, and `W/` in front if it is weak.
    pub etag: &'a [u8],
    /// Last modification, in seconds since 1970-01-01 00:00 UTC.
    pub modified_s: i64,
}

/// The result of evaluating the preconditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Respond as if there were no condition.
    Serve,
    /// 304 Not Modified.
    NotModified,
    /// 412 Precondition Failed.
    Failed,
}

/// Evaluates the preconditions of a request for an existing resource. `now` is in seconds since 1970-01-01 00:00 UTC.
pub fn judge(request: &Request<'_, '_>, there: Validators<'_>, now: i64) -> Verdict {
    let mut conditions = Conditions::default();
    for (name, value) in request.headers() {
        match name.len() {
            8 if name.eq_ignore_ascii_case(IF_MATCH) => conditions.matches = true,
            13 if name.eq_ignore_ascii_case(IF_NONE_MATCH) => conditions.none_match = true,
            17 if name.eq_ignore_ascii_case("if-modified-since") => conditions.modified_since.take(value),
            19 if name.eq_ignore_ascii_case("if-unmodified-since") => conditions.unmodified_since.take(value),
            _ => {}
        }
    }
    conditions.judge(request, there, now)
}

const IF_MATCH: &str = "if-match";
const IF_NONE_MATCH: &str = "if-none-match";

/// The conditions of a request.
#[derive(Default)]
struct Conditions<'b> {
    matches: bool,
    none_match: bool,
    modified_since: Since<'b>,
    unmodified_since: Since<'b>,
}

/// The date of a condition.
#[derive(Default)]
enum Since<'b> {
    #[default]
    None,
    One(&'b [u8]),
    /// Several dates are no valid date (sections 13.1.3 and 13.1.4).
    Several,
}

impl<'b> Since<'b> {
    fn take(&mut self, value: &'b [u8]) {
        *self = if matches!(self, Since::None) { Since::One(value) } else { Since::Several };
    }

    fn moment(&self, now: i64) -> Option<i64> {
        if let Since::One(value) = self { moment(value, now) } else { None }
    }
}

impl Conditions<'_> {
    /// Evaluates in the order of section 13.2.2.
    fn judge(&self, request: &Request<'_, '_>, there: Validators<'_>, now: i64) -> Verdict {
        if self.matches {
            if !any_tag(request, IF_MATCH, |tag| strong_equal(tag, there.etag)) {
                return Verdict::Failed;
            }
        } else if self.unmodified_since.moment(now).is_some_and(|since| there.modified_s > since) {
            return Verdict::Failed;
        }
        let only_reads = matches!(request.method, Method::Get | Method::Head);
        if self.none_match {
            if any_tag(request, IF_NONE_MATCH, |tag| opaque(tag) == opaque(there.etag)) {
                return if only_reads { Verdict::NotModified } else { Verdict::Failed };
            }
        } else if only_reads && self.modified_since.moment(now).is_some_and(|since| there.modified_s <= since) {
            return Verdict::NotModified;
        }
        Verdict::Serve
    }
}

/// Returns whether to honour `Range`: there is no `If-Range`, or it matches the current representation (section
/// 13.1.5).
pub fn range_applies(request: &Request<'_, '_>, there: Validators<'_>, now: i64) -> bool {
    let Some(condition) = request.header("if-range") else { return true };
    if condition.contains(&b'"') {
        return strong_equal(condition, there.etag);
    }
    // A date is a strong validator if the last change is some time ago (section 8.8.2.2).
    moment(condition, now) == Some(there.modified_s) && now > there.modified_s + 60
}

/// Returns whether any tag in the fields with this name, which together form one list (section 5.3), matches.
fn any_tag(request: &Request<'_, '_>, name: &str, equals: impl Fn(&[u8]) -> bool) -> bool {
    let mut values = request.headers().filter(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value);
    // No tag generated here contains a comma.
    values.any(|value| value == b"*" || list_members(value).any(&equals))
}

fn strong_equal(left: &[u8], right: &[u8]) -> bool {
    left == right && !left.starts_with(b"W/")
}

fn opaque(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"W/").unwrap_or(tag)
}

fn moment(value: &[u8], now: i64) -> Option<i64> {
    date::parse(core::str::from_utf8(value).ok()?, now)
}
