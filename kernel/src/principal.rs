//! Principals: the names under which SIPs and endpoints act.
//!
//! A principal is immutable text made by the kernel: links joined by ` + `, the oldest invoker first; a link is
//! `name.publisher`, or `name.publisher@role`. A SIP has one from its creation on. An endpoint has its owner's, or, if
//! it was delegated, one that names the delegator too. Deliberately not here: a principal's rights. Services decide
//! that, by patterns over the text.

use abi::limits::{PRINCIPAL_BYTES, PRINCIPAL_LINKS, ROLE_BYTES};
use alloc::string::String;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::lock::SpinLock;
use crate::program::Program;

/// Separator of two links.
const JOINT: &str = " + ";
/// Separator of a link and its role.
const IN_ROLE: char = '@';

/// Number of live texts of several links.
static TEXTS: AtomicU64 = AtomicU64::new(0);

/// Returns the number of live texts of several links.
pub fn kept() -> u64 {
    TEXTS.load(Ordering::Relaxed)
}

/// A counted text of several links.
pub struct Text {
    text: String,
    links: usize,
}

impl Text {
    fn new(text: String, links: usize) -> Arc<Text> {
        TEXTS.fetch_add(1, Ordering::Relaxed);
        Arc::new(Text { text, links })
    }

    /// Bytes kept of it: the text, and this record with its counts.
    fn bytes(&self) -> usize {
        self.text.capacity() + size_of::<Text>() + 2 * size_of::<usize>()
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        TEXTS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A principal. Copies share the text.
#[derive(Clone)]
pub enum Principal {
    /// The program alone, without an invoker.
    Plain(&'static Program),
    /// Several links, or one with a role.
    Compound(Arc<Text>),
}

/// The principal would exceed the maximum of links or bytes.
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

    /// Bytes kept of it, if it is not shared.
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

    /// Checks that the principal of the program, invoked by this one without a role, would not be too long.
    pub fn may_invoke(&self, program: &Program) -> Result<(), TooLong> {
        self.links().may_be_joined(None, Links { text: &program.principal, count: 1 })
    }

    /// The principal of a program that this one invokes, in the role if one is given.
    pub fn invoking(&self, role: Option<&str>, program: &Program) -> Result<Principal, TooLong> {
        self.joined(role, Links { text: &program.principal, count: 1 })
    }

    /// The principal of an endpoint that acts for this one and is delegated to a SIP with the other.
    pub fn delegating(&self, to: &Principal) -> Result<Principal, TooLong> {
        self.joined(None, to.links())
    }

    fn joined(&self, role: Option<&str>, then: Links<'_>) -> Result<Principal, TooLong> {
        let first = self.links();
        first.may_be_joined(role, then)?;
        Ok(Principal::Compound(Text::new(first.joined(role, then), first.count + then.count)))
    }
}

/// A text and its number of links.
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

/// Whether the text is a valid role: `[a-z][a-z0-9-]*`, not too long.
pub fn is_role(text: &str) -> bool {
    text.len() <= ROLE_BYTES
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// Principal of a SIP: almost always that of its program, so reading it takes no lock.
#[derive(Default)]
pub struct Own {
    is_compound: AtomicBool,
    compound: SpinLock<Compound>,
}

/// A principal beyond that of the program.
#[derive(Default)]
enum Compound {
    #[default]
    Not,
    /// That of the program, invoked without a role by this one, already checked. The text is made on first use: most
    /// processes end before anyone reads it.
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

    /// Bytes kept of it, beyond that of its program.
    pub fn bytes(&self) -> usize {
        if !self.is_compound() {
            return 0;
        }
        match &*self.compound.lock() {
            Compound::Made(text) => text.bytes(),
            Compound::Not | Compound::InvokedBy(_) => 0,
        }
    }

    /// Whether it is more than that of its program.
    pub fn is_compound(&self) -> bool {
        self.is_compound.load(Ordering::Acquire)
    }

    /// Sets it until the SIP ends.
    pub fn set(&self, principal: Principal) {
        if let Principal::Compound(text) = principal {
            *self.compound.lock() = Compound::Made(text);
            self.is_compound.store(true, Ordering::Release);
        }
    }

    /// Sets it to that of its program invoked without a role by this one, which [`Principal::may_invoke`] allows.
    pub fn set_invoker(&self, invoker: Principal) {
        *self.compound.lock() = Compound::InvokedBy(invoker);
        self.is_compound.store(true, Ordering::Release);
    }

    /// Resets it to that of the program for the slot's next SIP, and frees its memory.
    pub fn clear(&self) {
        // Rare: making and ending a process should cost no more than this test.
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
