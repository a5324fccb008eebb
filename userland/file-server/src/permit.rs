//! Rights of clients by the access control list of the mount point, as the directory service sent it with the client.
//!
//! Key types: [`Permit`], for a directory; [`OpenRights`], for an open file. Deliberately not here: the lists, which
//! the directory service reads; `traverse`, without which no client gets to the server.

use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;

use contracts::file::FileError;

use principal::{Right, Rights};

use crate::client::Client;

/// The rule named in audit entries.
const RULE: &str = "the list of the mount point";

/// A client's rights to an open directory and everything below it, by the mount point's list.
#[derive(Clone)]
pub struct Permit {
    /// Absolute path, as the client requested it.
    path: String,
    rights: Rights,
    /// Whether there is a list.
    is_decided: bool,
    /// The principal that holds the rights, once a directory is open. The rights do not pass to the endpoint's next
    /// owner, whose rights only the directory service can determine.
    holder: Option<Rc<str>>,
}

impl Permit {
    /// Makes the permit of a new client from the path of the mount point and the rights in the message `Connect`.
    pub fn new(point: &[u8], rights: u32) -> Permit {
        let path = format!("/{}", String::from_utf8_lossy(point).trim_matches('/'));
        let is_decided = rights != Rights::UNDECIDED;
        let rights = if is_decided { Rights::from_bits(rights) } else { Rights::ALL };
        Permit { path, rights, is_decided, holder: None }
    }

    /// Returns the permit of a directory below, which the client opens.
    pub fn opened_below(&self, path: &str, client: &dyn Client) -> Permit {
        let mut holder = self.holder.clone();
        if self.is_decided && holder.is_none() {
            // A client that has closed its endpoint has no rights.
            holder = Some(client.principal().unwrap_or_default().into());
        }
        Permit { path: self.path_of(path), holder, ..*self }
    }

    /// Returns the rights to a file below for the client that has it open.
    pub fn of_file(&self, path: &str, client: &dyn Client) -> OpenRights {
        let rights = match self.holder {
            None => self.rights,
            Some(_) => client.principal().map_or(Rights::NONE, |principal| self.rights_of(&principal)),
        };
        OpenRights { rights, path: self.path_of(path), rule: RULE }
    }

    /// Returns whether the mount point has a list.
    pub fn is_decided(&self) -> bool {
        self.is_decided
    }

    /// Returns a principal's rights; all if there is no list.
    pub fn rights_of(&self, principal: &str) -> Rights {
        let is_holder = self.holder.as_deref().is_none_or(|holder| holder == principal);
        if is_holder { self.rights } else { Rights::NONE }
    }

    /// Returns the absolute path of a node below.
    pub fn path_of(&self, path: &str) -> String {
        match path.trim_matches('/') {
            "" => self.path.clone(),
            path => format!("{}/{path}", self.path),
        }
    }

    /// Returns the source of the list, in the form of the message `Acl`.
    pub fn list_from(&self) -> &'static str {
        if self.is_decided { path::ABOVE_THE_ROOT } else { "" }
    }

    /// Returns whether the client has one of these rights. If not, the first of them is audited as refused.
    pub fn allows(&self, path: &str, rights: &[Right], client: &dyn Client) -> bool {
        let has_one = |has: Rights| rights.iter().any(|&right| has.has(right));
        if self.holder.is_none() && has_one(self.rights) {
            return true;
        }
        let Some(principal) = client.principal() else { return false };
        if has_one(self.rights_of(&principal)) {
            return true;
        }
        if let Some(right) = rights.first() {
            sip::audit::refused(&principal, right.word(), &self.path_of(path), RULE);
        }
        false
    }
}

/// A client's rights to an open file, by the lists at the time of opening. The rights stay with the channel, even if it
/// changes owners.
pub struct OpenRights {
    /// The rights.
    pub rights: Rights,
    /// Absolute path of the file, as the client requested it.
    pub path: String,
    /// The rule named in audit entries.
    pub rule: &'static str,
}

impl OpenRights {
    /// Checks a right. If the client does not have it, the refusal is audited.
    pub(crate) fn check(&self, right: Right, client: &dyn Client) -> Result<(), FileError> {
        if self.rights.has(right) {
            return Ok(());
        }
        if let Some(principal) = client.principal() {
            sip::audit::refused(&principal, right.word(), &self.path, self.rule);
        }
        Err(FileError::NotPermitted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Named(Option<&'static str>);

    impl Client for Named {
        fn principal(&self) -> Option<String> {
            self.0.map(String::from)
        }
    }

    const ALICE: Named = Named(Some("alice"));
    const BOB: Named = Named(Some("bob"));
    const GONE: Named = Named(None);

    fn read_only() -> Permit {
        Permit::new(b"fs/fat/", Rights::of(&[Right::Read]).bits())
    }

    #[test]
    fn without_a_list_everything_is_allowed() {
        let permit = Permit::new(b"fs/fat", Rights::UNDECIDED).opened_below("a", &ALICE);
        assert!(permit.allows("", &[Right::Write], &BOB));
        assert_eq!(permit.of_file("b", &GONE).rights, Rights::ALL);
        assert_eq!(permit.list_from(), "");
    }

    #[test]
    fn one_of_the_rights_suffices() {
        assert!(read_only().allows("", &[Right::Write, Right::Read], &ALICE));
        assert!(!read_only().allows("", &[Right::Write], &GONE));
        assert_eq!(read_only().list_from(), path::ABOVE_THE_ROOT);
    }

    #[test]
    fn a_passed_on_directory_grants_its_new_owner_nothing() {
        let permit = read_only().opened_below("a", &ALICE);
        assert!(permit.allows("", &[Right::Read], &ALICE));
        assert!(!permit.allows("", &[Right::Read], &GONE));
        assert_eq!(permit.rights_of("bob"), Rights::NONE);
        assert_eq!(permit.of_file("f", &BOB).rights, Rights::NONE);
        assert!(permit.of_file("f", &ALICE).rights.has(Right::Read));
        // Nor do they become those of the first client that opens a node below.
        assert_eq!(permit.opened_below("b", &BOB).rights_of("bob"), Rights::NONE);
    }

    #[test]
    fn paths_are_those_of_the_namespace() {
        assert_eq!(read_only().path_of("/a/b/"), "/fs/fat/a/b");
        assert_eq!(read_only().path_of(""), "/fs/fat");
        assert_eq!(read_only().opened_below("a", &ALICE).of_file("f", &ALICE).path, "/fs/fat/a/f");
    }
}
