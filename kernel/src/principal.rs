//! Who a SIP and an endpoint speak for.
//!
//! A principal is text that the kernel makes and nobody can change: links joined by ` + `, the oldest invoker
//! first; a link is `name.publisher`, or `name.publisher@role`. A SIP has one from its creation on, an endpoint has
//! its owner's, or, if it was delegated, one that names the delegator too. Deliberately not here: what a
//! principal may do. Services decide that, by patterns over the text.

use abi::limits::{PRINCIPAL_BYTES, PRINCIPAL_LINKS, ROLE_BYTES};
use alloc::string::String;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::lock::SpinLock;
use crate::program::Program;

/// What is between two links.
const JOINT: &str = " + ";
/// What is between a link and its role.
const IN_ROLE: char = '@';

/// Texts of principals of several links that somebody still speaks for.
static TEXTS: AtomicU64 = AtomicU64::new(0);

/// How many texts of several links are kept.
pub fn kept() -> u64 {
    TEXTS.load(Ordering::Relaxed)
}

/// A text of several links, counted.
pub struct Text(String);

impl Text {
    fn new(text: String) -> Arc<Text> {
        TEXTS.fetch_add(1, Ordering::Relaxed);
        Arc::new(Text(text))
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        TEXTS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One principal. Copies share the text.
#[derive(Clone)]
pub enum Principal {
    /// The program alone: nobody is named as its invoker.
    Plain(&'static Program),
    /// Several links, or one in a role.
    Compound(Arc<Text>),
}

/// The principal would have more links or bytes than one may have.
#[derive(Debug, PartialEq, Eq)]
pub struct TooLong;

impl Principal {
    /// Its text.
    pub fn text(&self) -> &str {
        match self {
            Principal::Plain(program) => &program.principal,
            Principal::Compound(text) => &text.0,
        }
    }

    /// That of a program which this one invokes, in the role if one is given.
    pub fn invoking(&self, role: Option<&str>, program: &Program) -> Result<Principal, TooLong> {
        joined(self.text(), role, &program.principal).map(|text| Principal::Compound(Text::new(text)))
    }

    /// That of an endpoint which speaks for this one and is delegated to a SIP with the other.
    pub fn delegating(&self, to: &Principal) -> Result<Principal, TooLong> {
        joined(self.text(), None, to.text()).map(|text| Principal::Compound(Text::new(text)))
    }
}

/// Whether the text can be a role: `[a-z][a-z0-9-]*`, not too long.
pub fn is_role(text: &str) -> bool {
    text.len() <= ROLE_BYTES
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

fn joined(first: &str, role: Option<&str>, then: &str) -> Result<String, TooLong> {
    let bytes = first.len() + role.map_or(0, |role| role.len() + 1) + JOINT.len() + then.len();
    let links = links(first) + links(then);
    if bytes > PRINCIPAL_BYTES || links > PRINCIPAL_LINKS {
        return Err(TooLong);
    }
    let mut text = String::with_capacity(bytes);
    text.push_str(first);
    if let Some(role) = role {
        text.push(IN_ROLE);
        text.push_str(role);
    }
    text.push_str(JOINT);
    text.push_str(then);
    Ok(text)
}

fn links(text: &str) -> usize {
    text.matches(JOINT).count() + 1
}

/// A SIP's principal: almost always its program's, so asking for that takes no lock.
#[derive(Default)]
pub struct Own {
    is_compound: AtomicBool,
    compound: SpinLock<Option<Arc<Text>>>,
}

impl Own {
    /// The principal of a SIP that runs the program.
    #[inline(always)]
    pub fn of(&self, program: &'static Program) -> Principal {
        if self.is_compound.load(Ordering::Acquire) { self.look(program) } else { Principal::Plain(program) }
    }

    #[cold]
    fn look(&self, program: &'static Program) -> Principal {
        match &*self.compound.lock() {
            Some(text) => Principal::Compound(text.clone()),
            None => Principal::Plain(program),
        }
    }

    /// Whether it is more than its program's.
    pub fn is_compound(&self) -> bool {
        self.is_compound.load(Ordering::Acquire)
    }

    /// Makes it what it is until the SIP ends.
    pub fn set(&self, principal: Principal) {
        if let Principal::Compound(text) = principal {
            *self.compound.lock() = Some(text);
            self.is_compound.store(true, Ordering::Release);
        }
    }

    /// Makes it the program's again, for the slot's next SIP, and gives its memory back.
    pub fn clear(&self) {
        // Rarely: making and ending a process is to cost no more than this test.
        if self.is_compound() {
            self.is_compound.store(false, Ordering::Release);
            self.compound.lock().take();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn links_are_joined_oldest_first_and_the_role_is_the_invokers() {
        assert_eq!(
            joined("shell.singularity", None, "cat.singularity").unwrap(),
            "shell.singularity + cat.singularity"
        );
        assert_eq!(joined("login.a", Some("alice"), "shell.a").unwrap(), "login.a@alice + shell.a");
        assert_eq!(joined("login.a@alice + shell.a", None, "cat.a").unwrap(), "login.a@alice + shell.a + cat.a");
    }

    #[test]
    fn a_principal_has_at_most_so_many_links() {
        let mut text = String::from("a.a");
        for _ in 1..PRINCIPAL_LINKS {
            text = joined(&text, None, "a.a").unwrap();
        }
        assert_eq!(joined(&text, None, "a.a"), Err(TooLong));
        assert_eq!(joined("b.b", None, &text), Err(TooLong));
    }

    #[test]
    fn a_principal_has_at_most_so_many_bytes() {
        let then = "b.b";
        let room = PRINCIPAL_BYTES - JOINT.len() - then.len();
        let fits = format!("a.{}", "a".repeat(room - 2));
        assert_eq!(joined(&fits, None, then).unwrap().len(), PRINCIPAL_BYTES);
        assert_eq!(joined(&format!("{fits}a"), None, then), Err(TooLong));
        assert_eq!(joined(&fits, Some("r"), then), Err(TooLong));
    }

    #[test]
    fn roles_are_names() {
        for good in ["a", "alice", "web-admin", "r2d2", &"a".repeat(ROLE_BYTES)] {
            assert!(is_role(good), "{good}");
        }
        for bad in ["", "A", "2a", "-a", "a b", "a+b", "a@b", "a.b", "ä", &"a".repeat(ROLE_BYTES + 1)] {
            assert!(!is_role(bad), "{bad}");
        }
    }
}
