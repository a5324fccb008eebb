//! What clients may do at a file server that has no lists of its own: what the list of its mount point lets them do, as
//! the directory service said when they came through it.
//!
//! Key type: [`Permit`]. Deliberately not here: lists, which the directory service reads; `traverse`, without which nobody
//! comes to the server.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;

use principal::{Right, Rights};
use sip::channel::TypedEndpoint;

/// What the list was when somebody was refused.
const RULE: &str = "the list of the mount point";

/// What a client may do, and with what, for people to read.
#[derive(Clone)]
pub struct Permit {
    /// How it was asked for.
    path: String,
    rights: Rights,
    /// Whether a list has decided that.
    is_decided: bool,
    /// About whom it has, once a folder is open: one that is passed on gives its next owner nothing. What it says of
    /// them, the directory service knows.
    holder: Option<Rc<str>>,
}

impl Permit {
    /// What a provider was told of a client: the part of the path that led to it, and the rights as they are sent.
    pub fn new(point: &[u8], rights: u32) -> Permit {
        let path = format!("/{}", String::from_utf8_lossy(point).trim_matches('/'));
        let is_decided = rights != Rights::UNDECIDED;
        let rights = if is_decided { Rights::from_bits(rights) } else { Rights::ALL };
        Permit { path, rights, is_decided, holder: None }
    }

    /// The same for what lies at a path below.
    pub fn below(&self, path: &[u8]) -> Permit {
        let below = String::from_utf8_lossy(path);
        let path = match below.trim_matches('/') {
            "" => self.path.clone(),
            below => format!("{}/{below}", self.path),
        };
        Permit { path, holder: self.holder.clone(), ..*self }
    }

    /// The same for a folder that the client has open: nobody else has it.
    pub fn held_by<E: TypedEndpoint>(mut self, client: &E) -> Permit {
        if self.is_decided && self.holder.is_none() {
            // One that has gone already holds nothing.
            self.holder = Some(sip::principal::of_peer(client).unwrap_or_default().into());
        }
        self
    }

    /// The same for a file that is open: it is good for what it was opened for, whoever has it.
    pub fn of_open_file(mut self) -> Permit {
        self.holder = None;
        self
    }

    /// Where the list is from that decides.
    pub fn list_from(&self) -> &'static str {
        if self.is_decided { path::ABOVE_THE_ROOT } else { "" }
    }

    /// Whether the client has one of these rights; if not, it is noted that it wanted the first.
    pub fn allows<E: TypedEndpoint>(&self, rights: &[Right], client: &E) -> bool {
        let has_one = rights.iter().any(|&right| self.rights.has(right));
        if has_one && self.holder.is_none() {
            return true;
        }
        let Ok(principal) = sip::principal::of_peer(client) else { return false };
        let is_holder = self.holder.as_deref().is_none_or(|holder| holder == principal);
        if has_one && is_holder {
            return true;
        }
        if let Some(right) = rights.first() {
            sip::audit::refused(&principal, right.word(), &self.path, RULE);
        }
        false
    }
}
