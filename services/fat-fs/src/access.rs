//! What clients may do on a volume that has no lists of its own: what the list of its mount point lets them do, as the
//! directory service said when they came through it.
//!
//! Deliberately not here: lists, which the directory service reads; `traverse`, without which nobody comes here.

use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;

use contracts::path;
use disk_source::DiskSource;
use fat::Folder;
use principal::{Right, Rights};
use sip::channel::TypedEndpoint;

/// What the list was when somebody was refused.
const RULE: &str = "the list of the mount point";

/// What a client may do, and with what, for people to read.
#[derive(Clone)]
pub(crate) struct Permit {
    /// How it was asked for.
    path: String,
    rights: Rights,
    /// Whether a list has decided that.
    is_decided: bool,
}

/// A folder as a client has it.
pub(crate) struct Here {
    pub(crate) folder: Rc<Folder<DiskSource>>,
    pub(crate) permit: Permit,
}

/// A folder that requests begin at.
pub(crate) type Base = Rc<Here>;

impl Permit {
    /// What a provider was told of a client: the part of the path that led to it, and the rights as they are sent.
    pub(crate) fn new(point: &[u8], rights: u32) -> Permit {
        let path = format!("/{}", String::from_utf8_lossy(point).trim_matches('/'));
        let is_decided = rights != Rights::UNDECIDED;
        Permit { path, rights: if is_decided { Rights::from_bits(rights) } else { Rights::ALL }, is_decided }
    }

    /// The same for what lies at a path below.
    pub(crate) fn below(&self, path: &[u8]) -> Permit {
        let below = String::from_utf8_lossy(path);
        let path = match below.trim_matches('/') {
            "" => self.path.clone(),
            below => format!("{}/{below}", self.path),
        };
        Permit { path, ..*self }
    }

    /// Where the list is from that decides.
    pub(crate) fn list_from(&self) -> &'static str {
        if self.is_decided { path::ABOVE_THE_ROOT } else { "" }
    }

    /// Whether one of these rights is there; if not, it is noted that the client wanted the first.
    pub(crate) fn allows<E: TypedEndpoint>(&self, rights: &[Right], client: &E) -> bool {
        let allowed = rights.iter().any(|&right| self.rights.has(right));
        if !allowed
            && let Some(right) = rights.first()
            && let Ok(principal) = sip::principal::of_peer(client)
        {
            sip::audit::refused(&principal, right.word(), &self.path, RULE);
        }
        allowed
    }
}
