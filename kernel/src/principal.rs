//! Principals: the names that SIPs and endpoints speak for.
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
pub struct Text {
    text: String,
    links: usize,
}

impl Text {
    fn new(text: String, links: usize) -> Arc<Text> {
        TEXTS.fetch_add(1, Ordering::Relaxed);
        Arc::new(Text { text, links })
    }

    /// What is kept of it: the text, and this with its counts.
    fn bytes(&self) -> usize {
        self.text.capacity() + size_of::<Text>() + 2 * size_of::<usize>()
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
            Principal::Compound(text) => &text.text,
        }
    }

    /// What is kept of it, if nobody shares it.
    pub fn bytes(&self) -> usize {
        match self {
            Principal::Plain(_) => 0,
            Principal::Compound(text) => text.bytes(),
        }
    }

    fn links(&self) -> Links<'_> {
        match self {
            Principal::Plain(program) => Links { text: &program.principal, count: 1 },
            Principal::Compound(text) => Links { text: &text.text, count: text.links },
        }
    }

    /// Whether it may invoke the program, without a role: whether the principal would not be too long.
    pub fn may_invoke(&self, program: &Program) -> Result<(), TooLong> {
        self.links().may_be_joined(None, Links { text: &program.principal, count: 1 })
    }

    /// That of a program which this one invokes, in the role if one is given.
    pub fn invoking(&self, role: Option<&str>, program: &Program) -> Result<Principal, TooLong> {
        self.joined(role, Links { text: &program.principal, count: 1 })
    }

    /// That of an endpoint which speaks for this one and is delegated to a SIP with the other.
    pub fn delegating(&self, to: &Principal) -> Result<Principal, TooLong> {
        self.joined(None, to.links())
    }

    fn joined(&self, role: Option<&str>, then: Links<'_>) -> Result<Principal, TooLong> {
        let first = self.links();
        first.may_be_joined(role, then)?;
        Ok(Principal::Compound(Text::new(first.joined(role, then), first.count + then.count)))
    }
}

/// Text with its number of links.
#[derive(Clone, Copy)]
struct Links<'a> {
    text: &'a str,
    count: usize,
}

impl Links<'_> {
    fn joined_bytes(self, role: Option<&str>, then: Links<'_>) -> usize {
        self.text.len() + role.map_or(0, |role| role.len() + 1) + JOINT.len() + then.text.len()
    }

    fn may_be_joined(self, role: Option<&str>, then: Links<'_>) -> Result<(), TooLong> {
        let fits = self.joined_bytes(role, then) <= PRINCIPAL_BYTES && self.count + then.count <= PRINCIPAL_LINKS;
        if fits { Ok(()) } else { Err(TooLong) }
    }

    fn joined(self, role: Option<&str>, then: Links<'_>) -> String {
        let mut text = String::with_capacity(self.joined_bytes(role, then));
        text.push_str(self.text);
        if let Some(role) = role {
            text.push(IN_ROLE);
            text.push_str(role);
        }
        text.push_str(JOINT);
        text.push_str(then.text);
        text
    }
}

/// Whether the text can be a role: `[a-z][a-z0-9-]*`, not too long.
pub fn is_role(text: &str) -> bool {
    text.len() <= ROLE_BYTES
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// A SIP's principal: almost always its program's, so asking for that takes no lock.
#[derive(Default)]
pub struct Own {
    is_compound: AtomicBool,
    compound: SpinLock<Compound>,
}

/// A principal that is more than its program's.
#[derive(Default)]
enum Compound {
    #[default]
    Not,
    /// That of the program, invoked without a role by this one, which may do that. The text is made on first use:
    /// most processes end before anybody reads it.
    InvokedBy(Principal),
    Made(Arc<Text>),
}

impl Own {
    /// The principal of a SIP that runs the program.
    #[inline(always)]
    pub fn of(&self, program: &'static Program) -> Principal {
        if self.is_compound.load(Ordering::Acquire) { self.look(program) } else { Principal::Plain(program) }
    }

    #[cold]
    fn look(&self, program: &'static Program) -> Principal {
        let mut compound = self.compound.lock();
        if let Compound::InvokedBy(invoker) = &*compound {
            let (first, then) = (invoker.links(), Links { text: &program.principal, count: 1 });
            let made = Text::new(first.joined(None, then), first.count + then.count);
            *compound = Compound::Made(made);
        }
        match &*compound {
            Compound::Made(text) => Principal::Compound(text.clone()),
            Compound::Not | Compound::InvokedBy(_) => Principal::Plain(program),
        }
    }

    /// What is kept of it, beside its program's.
    pub fn bytes(&self) -> usize {
        if !self.is_compound() {
            return 0;
        }
        match &*self.compound.lock() {
            Compound::Made(text) => text.bytes(),
            Compound::Not | Compound::InvokedBy(_) => 0,
        }
    }

    /// Whether it is more than its program's.
    pub fn is_compound(&self) -> bool {
        self.is_compound.load(Ordering::Acquire)
    }

    /// Makes it what it is until the SIP ends.
    pub fn set(&self, principal: Principal) {
        if let Principal::Compound(text) = principal {
            *self.compound.lock() = Compound::Made(text);
            self.is_compound.store(true, Ordering::Release);
        }
    }

    /// Makes it that of its program invoked by this one without a role, which [`Principal::may_invoke`] allows.
    pub fn set_invoker(&self, invoker: Principal) {
        *self.compound.lock() = Compound::InvokedBy(invoker);
        self.is_compound.store(true, Ordering::Release);
    }

    /// Makes it the program's again, for the slot's next SIP, and gives its memory back.
    pub fn clear(&self) {
        // Rarely: making and ending a process is to cost no more than this test.
        if self.is_compound() {
            self.is_compound.store(false, Ordering::Release);
            *self.compound.lock() = Compound::Not;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    fn program(principal: &str) -> &'static Program {
        let program = crate::test_machine::program(principal);
        assert_eq!(program.principal, principal);
        program
    }

    fn plain(principal: &str) -> Principal {
        Principal::Plain(program(principal))
    }

    #[test]
    fn links_are_joined_oldest_first_and_the_role_is_the_invokers() {
        let cat = program("cat.singularity");
        let shell = plain("shell.singularity").invoking(None, cat).unwrap();
        assert_eq!(shell.text(), "shell.singularity + cat.singularity");
        let login = plain("login.a").invoking(Some("alice"), program("shell.a")).unwrap();
        assert_eq!(login.text(), "login.a@alice + shell.a");
        let cat = login.invoking(None, program("cat.a")).unwrap();
        assert_eq!(cat.text(), "login.a@alice + shell.a + cat.a");
        assert_eq!(cat.delegating(&login).unwrap().text(), "login.a@alice + shell.a + cat.a + login.a@alice + shell.a");
    }

    #[test]
    fn a_principal_has_at_most_so_many_links() {
        let a = program("a.a");
        let mut longest = Principal::Plain(a);
        for _ in 1..PRINCIPAL_LINKS {
            assert_eq!(longest.may_invoke(a), Ok(()));
            longest = longest.invoking(None, a).unwrap();
        }
        assert_eq!(longest.text().matches(JOINT).count() + 1, PRINCIPAL_LINKS);
        assert_eq!(longest.may_invoke(a), Err(TooLong));
        assert!(longest.invoking(None, a).is_err());
        assert!(plain("b.b").delegating(&longest).is_err());
    }

    #[test]
    fn a_principal_has_at_most_so_many_bytes() {
        let then = program("b.b");
        let room = PRINCIPAL_BYTES - JOINT.len() - then.principal.len();
        let fits = plain(&format!("a.{}", "a".repeat(room - 2)));
        assert_eq!(fits.may_invoke(then), Ok(()));
        assert_eq!(fits.invoking(None, then).unwrap().text().len(), PRINCIPAL_BYTES);
        assert!(fits.invoking(Some("r"), then).is_err());
        let longer = plain(&format!("a.{}", "a".repeat(room - 1)));
        assert_eq!(longer.may_invoke(then), Err(TooLong));
        assert!(longer.invoking(None, then).is_err());
    }

    #[test]
    fn a_text_is_made_when_somebody_asks_and_kept_until_it_is_cleared() {
        let (shell, cat) = (program("lazy-shell.a"), program("lazy-cat.a"));
        let own = Own::default();
        assert_eq!(own.of(cat).text(), "lazy-cat.a");
        own.set_invoker(Principal::Plain(shell));
        assert!(own.is_compound());
        let Principal::Compound(first) = own.of(cat) else { panic!("the invoker is shed") };
        assert_eq!(first.text, "lazy-shell.a + lazy-cat.a");
        assert_eq!(first.links, 2);
        let Principal::Compound(second) = own.of(cat) else { panic!("the invoker is shed") };
        assert!(Arc::ptr_eq(&first, &second), "the text was made twice");
        own.clear();
        assert_eq!(own.of(cat).text(), "lazy-cat.a");
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
