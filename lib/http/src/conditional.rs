//! Conditional requests (RFC 9110, section 13): whether what a client has is still what there is.

use crate::date;
use crate::request::{Method, Request};
use crate::text::list_members;

/// What there is.
#[derive(Clone, Copy, Debug)]
pub struct Validators<'a> {
    /// The entity tag, with its quotes, and `W/` in front if it is weak.
    pub etag: &'a [u8],
    /// Seconds since 1970-01-01 00:00 UTC of the last change.
    pub modified_s: i64,
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is answered as if there were no condition.
    Serve,
    /// 304.
    NotModified,
    /// 412.
    Failed,
}

/// Judges a request for something that is there. `now` is in seconds since 1970-01-01 00:00 UTC.
pub fn judge(request: &Request<'_, '_>, there: Validators<'_>, now: i64) -> Verdict {
    let mut conditions = Conditions::default();
    for (name, value) in request.headers() {
        let wanted = match name.len() {
            8 if name.eq_ignore_ascii_case("if-match") => &mut conditions.matches,
            13 if name.eq_ignore_ascii_case("if-none-match") => &mut conditions.none_match,
            17 if name.eq_ignore_ascii_case("if-modified-since") => &mut conditions.modified_since,
            19 if name.eq_ignore_ascii_case("if-unmodified-since") => &mut conditions.unmodified_since,
            _ => continue,
        };
        match wanted {
            None => *wanted = Some(value),
            // Several fields are one list (section 5.3); this one is read as not matching whatever is asked.
            Some(_) => conditions.repeated = true,
        }
    }
    if conditions.repeated { Verdict::Serve } else { conditions.judge(request.method, there, now) }
}

#[derive(Default)]
struct Conditions<'b> {
    matches: Option<&'b [u8]>,
    none_match: Option<&'b [u8]>,
    modified_since: Option<&'b [u8]>,
    unmodified_since: Option<&'b [u8]>,
    repeated: bool,
}

impl Conditions<'_> {
    /// The order of section 13.2.2.
    fn judge(&self, method: Method, there: Validators<'_>, now: i64) -> Verdict {
        if let Some(tags) = self.matches {
            if !any_tag(tags, |tag| strong_equal(tag, there.etag)) {
                return Verdict::Failed;
            }
        } else if let Some(since) = self.unmodified_since
            && moment(since, now).is_some_and(|since| there.modified_s > since)
        {
            return Verdict::Failed;
        }
        let only_reads = matches!(method, Method::Get | Method::Head);
        if let Some(tags) = self.none_match {
            if any_tag(tags, |tag| opaque(tag) == opaque(there.etag)) {
                return if only_reads { Verdict::NotModified } else { Verdict::Failed };
            }
        } else if let Some(since) = self.modified_since
            && only_reads
            && moment(since, now).is_some_and(|since| there.modified_s <= since)
        {
            return Verdict::NotModified;
        }
        Verdict::Serve
    }
}

/// Whether ranges are to be served of what there is: without `If-Range`, or where it names this very state (section
/// 13.1.5).
pub fn range_applies(request: &Request<'_, '_>, there: Validators<'_>, now: i64) -> bool {
    let Some(condition) = request.header("if-range") else { return true };
    if condition.contains(&b'"') {
        return strong_equal(condition, there.etag);
    }
    // A date is a strong validator when the last change is a while ago (section 8.8.2.2).
    moment(condition, now) == Some(there.modified_s) && now > there.modified_s + 60
}

fn any_tag(tags: &[u8], equals: impl Fn(&[u8]) -> bool) -> bool {
    // No tag made here has a comma in it.
    tags == b"*" || list_members(tags).any(equals)
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
