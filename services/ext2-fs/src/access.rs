//! Access control lists of files and directories, stored in the extended attribute `user.singularity.acl`.
//!
//! A node is governed by its own list, or that of its nearest ancestor with one, or else by the mount point's, which
//! the directory service passed when the client bound; without any, everything is allowed, since the mandatory rules
//! were checked on bind. A hard-linked file inherits from the directory through which it is reached. As long as no
//! extended attribute was seen and the mount point has no list, a check is a single test.
//!
//! Key types: [`Access`] (the cache of lists), [`Caller`] (a request and its sender). Deliberately not here: the
//! mandatory rules, which the directory service checks; the semantics of lists, which are in the library `principal`.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use ext2::format::attributes::namespace;
use ext2::{Error, ExtendedAttribute, Inode, Kind, LastLink, ROOT_INODE};
use file_server::Client;
use name_text as text;
use name_text::NoName;
use principal::{Acl, DecisionCache, Right, Rights};
use stdio::report;

use crate::volume::{Directory, Ext2Volume};

/// The name of the attribute, in the namespace `user`.
const ATTRIBUTE: &[u8] = b"singularity.acl";
/// Maximum number of nodes in each map of the cache.
const MAX_REMEMBERED: usize = 4096;
/// Maximum depth of directories; more are a cycle on a damaged volume.
const MAX_DEPTH: usize = 4096;

/// A cached list.
pub(crate) struct List {
    /// Unique in this process; the key of cached decisions.
    number: u64,
    acl: Acl,
    /// The inode that it is set on.
    home: u32,
}

/// The governing list of a node; `None` for the mount point's.
type Decider = Option<Rc<List>>;

/// Cache of lists and of their decisions.
pub(crate) struct Access {
    known: RefCell<Known>,
    decisions: RefCell<DecisionCache<Rights>>,
    next_number: Cell<u64>,
}

#[derive(Default)]
struct Known {
    /// Incremented on invalidation, so that results of reads that began before it are not cached.
    generation: u64,
    /// Lists set on nodes.
    own: BTreeMap<u32, Decider>,
    /// Governing lists of directories.
    folders: BTreeMap<u32, Decider>,
}

impl Known {
    fn forget(&mut self) {
        self.generation += 1;
        self.own.clear();
        self.folders.clear();
    }
}

/// Why a request failed.
pub(crate) enum RequestError {
    /// The volume's error.
    Volume(Error),
    /// Denied by a list, and audited.
    Refused,
    /// The path is invalid.
    BadPath,
    /// The text is not a valid list.
    BadList,
    /// Not supported by this node or volume.
    NotSupported,
}

impl From<Error> for RequestError {
    fn from(error: Error) -> RequestError {
        RequestError::Volume(error)
    }
}

impl From<NoName> for RequestError {
    fn from(_: NoName) -> RequestError {
        RequestError::BadPath
    }
}

/// A resolved path.
pub(crate) struct Found {
    pub(crate) inode: Inode,
    /// The directory that it inherits a list from.
    folder: u32,
}

/// A request below a directory, and its sender.
#[derive(Clone, Copy)]
pub(crate) struct Caller<'a> {
    pub(crate) volume: &'a Ext2Volume,
    pub(crate) directory: &'a Directory,
    pub(crate) client: &'a dyn Client,
}

impl Access {
    pub(crate) fn new() -> Access {
        Access { known: RefCell::default(), decisions: RefCell::default(), next_number: Cell::new(1) }
    }

    /// Numbers a list.
    fn list(&self, acl: Acl, home: u32) -> Rc<List> {
        let number = self.next_number.get();
        self.next_number.set(number + 1);
        Rc::new(List { number, acl, home })
    }

    /// Invalidates the cache: names or lists have changed.
    pub(crate) fn forget(&self) {
        self.known.borrow_mut().forget();
    }

    /// Invalidates cached data of an inode number that was reused.
    pub(crate) fn forget_node(&self, number: u32) {
        let mut known = self.known.borrow_mut();
        known.generation += 1;
        known.own.remove(&number);
        known.folders.remove(&number);
    }

    fn rights(&self, list: &List, principal: &str) -> Rights {
        self.decisions.borrow_mut().get(list.number, principal, || list.acl.rights_of(principal))
    }
}

impl Ext2Volume {
    /// Returns a node's own list.
    async fn own_list(&self, number: u32) -> Result<Decider, Error> {
        let generation = {
            let known = self.access.known.borrow();
            if let Some(list) = known.own.get(&number) {
                return Ok(list.clone());
            }
            known.generation
        };
        let text = self.volume.extended_attribute(number, namespace::USER, ATTRIBUTE).await?;
        let list = text.map(|text| {
            let acl = Acl::from_bytes(&text).unwrap_or_else(|error| {
                // A damaged list denies everything: it was set to restrict access.
                report::error(format_args!("inode {number}: its access control list is damaged: {error}"));
                Acl::default()
            });
            self.access.list(acl, number)
        });
        let mut known = self.access.known.borrow_mut();
        if known.generation == generation {
            if known.own.len() >= MAX_REMEMBERED {
                known.own.clear();
            }
            known.own.insert(number, list.clone());
        }
        Ok(list)
    }

    /// Returns the list that governs a directory.
    async fn folder_list(&self, number: u32) -> Result<Decider, Error> {
        let generation = self.access.known.borrow().generation;
        let mut passed = Vec::new();
        let mut at = number;
        let list = loop {
            if let Some(list) = self.access.known.borrow().folders.get(&at) {
                break list.clone();
            }
            if let Some(list) = self.own_list(at).await? {
                passed.push(at);
                break Some(list);
            }
            if at == ROOT_INODE || passed.len() >= MAX_DEPTH {
                passed.push(at);
                break None;
            }
            passed.push(at);
            at = self.volume.find(at, b"..").await?;
        };
        let mut known = self.access.known.borrow_mut();
        if known.generation == generation {
            if known.folders.len() + passed.len() > MAX_REMEMBERED {
                known.folders.clear();
            }
            known.folders.extend(passed.into_iter().map(|folder| (folder, list.clone())));
        }
        Ok(list)
    }

    async fn decider(&self, found: &Found) -> Result<Decider, Error> {
        match found.inode.kind {
            Kind::Directory => self.folder_list(found.inode.number).await,
            _ if found.inode.has_extended_attributes() => match self.own_list(found.inode.number).await? {
                Some(list) => Ok(Some(list)),
                None => self.folder_list(found.folder).await,
            },
            _ => self.folder_list(found.folder).await,
        }
    }

    /// Returns the path of a directory from the volume's root on.
    async fn path_of(&self, folder: u32) -> Result<String, Error> {
        let mut names: Vec<String> = Vec::new();
        let mut at = folder;
        while at != ROOT_INODE && names.len() < MAX_DEPTH {
            let above = self.volume.find(at, b"..").await?;
            let mut position = 0;
            let name = loop {
                let listing = self.volume.list(above, position, 256).await?;
                let found =
                    listing.entries.iter().find(|entry| entry.inode == at && !matches!(&entry.name[..], b"." | b".."));
                if let Some(entry) = found {
                    break text::to_text(&entry.name).into_owned();
                }
                position = listing.next.ok_or(Error::NotFound)?;
            };
            names.push(name);
            at = above;
        }
        names.reverse();
        Ok(format!("/{}", names.join("/")))
    }
}

impl Caller<'_> {
    /// Resolves a path. The client needs `traverse` on every directory along it.
    pub(crate) async fn find(&self, path: &str, last: LastLink) -> Result<Found, RequestError> {
        let on_volume = text::from_text(path)?;
        let mut passed = Vec::new();
        let found = self.volume.volume.resolve_noting(self.directory.number, &on_volume, last, &mut passed).await;
        self.pass(&passed, path).await?;
        Ok(Found { inode: found?, folder: passed.last().copied().unwrap_or(self.directory.number) })
    }

    /// Resolves the parent directory of a path, and returns the last name as stored on the volume. The client needs
    /// `traverse` on the parent, too.
    pub(crate) async fn place(&self, path: &str) -> Result<(Found, Vec<u8>), RequestError> {
        let on_volume = text::from_text(path)?;
        let mut passed = Vec::new();
        let found = self.volume.volume.resolve_parent_noting(self.directory.number, &on_volume, &mut passed).await;
        if let Ok((folder, _)) = &found {
            passed.push(*folder);
        }
        self.pass(&passed, path).await?;
        let (folder, name) = found?;
        Ok((Found { inode: self.volume.volume.inode(folder).await?, folder }, name))
    }

    /// Looks up a name in a directory, without following links.
    pub(crate) async fn child(&self, folder: &Found, name: &[u8]) -> Result<Found, RequestError> {
        let (volume, folder) = (&self.volume.volume, folder.inode.number);
        Ok(Found { inode: volume.inode(volume.find(folder, name).await?).await?, folder })
    }

    /// Checks `traverse` on directories.
    async fn pass(&self, folders: &[u32], path: &str) -> Result<(), RequestError> {
        if !self.has_lists() {
            return Ok(());
        }
        for &folder in folders {
            let list = self.volume.folder_list(folder).await?;
            self.check(list.as_ref(), &[Right::Traverse], path)?;
        }
        Ok(())
    }

    /// Checks that the client has at least one of these rights to a node.
    pub(crate) async fn need(&self, found: &Found, rights: &[Right], path: &str) -> Result<(), RequestError> {
        if !self.has_lists() {
            return Ok(());
        }
        self.check(self.volume.decider(found).await?.as_ref(), rights, path)
    }

    /// Checks `write` or `set-acl` on a node with its own list whose name is removed or replaced. For other nodes the
    /// directory's rights suffice.
    pub(crate) async fn need_to_take(&self, folder: &Found, name: &[u8], path: &str) -> Result<(), RequestError> {
        // Look it up even without known lists: it may have the first one.
        let node = match self.child(folder, name).await {
            Ok(node) => node,
            // The operation itself will report it.
            Err(RequestError::Volume(Error::NotFound)) => return Ok(()),
            Err(error) => return Err(error),
        };
        if !node.inode.has_extended_attributes() {
            return Ok(());
        }
        let own = self.volume.own_list(node.inode.number).await?;
        if own.is_none() || self.may_repair_lists() {
            return Ok(());
        }
        self.check(own.as_ref(), &[Right::Write, Right::SetAcl], path)
    }

    /// Returns the client's rights to a node; all, if no list governs it.
    pub(crate) async fn rights(&self, found: &Found) -> Result<Rights, RequestError> {
        if !self.has_lists() {
            return Ok(Rights::ALL);
        }
        let list = self.volume.decider(found).await?;
        let principal = self.client.principal().ok_or(RequestError::Refused)?;
        Ok(self.rights_by(list.as_ref(), &principal))
    }

    /// Checks `set-acl` for a move that would change the governing list.
    pub(crate) async fn need_to_move(&self, node: &Found, to: &Found, path: &str) -> Result<(), RequestError> {
        if !self.has_lists() {
            return Ok(());
        }
        let (now, then) = (self.volume.decider(node).await?, self.volume.folder_list(to.inode.number).await?);
        let number = |list: &Decider| list.as_ref().map(|list| list.number);
        let has_its_own = now.as_ref().is_some_and(|list| list.home == node.inode.number);
        if has_its_own || number(&now) == number(&then) {
            return Ok(());
        }
        self.check(now.as_ref(), &[Right::SetAcl], path)
    }

    /// Whether any list may exist.
    fn has_lists(&self) -> bool {
        self.volume.volume.has_seen_extended_attributes() || self.directory.permit.is_decided()
    }

    /// Whether the mount point's list grants the client `set-acl`, which overrides lists below, so that they can be
    /// repaired.
    pub(crate) fn may_repair_lists(&self) -> bool {
        let permit = &self.directory.permit;
        permit.is_decided()
            && self.client.principal().is_some_and(|principal| permit.rights_of(&principal).has(Right::SetAcl))
    }

    fn rights_by(&self, list: Option<&Rc<List>>, principal: &str) -> Rights {
        match list {
            Some(list) => self.volume.access.rights(list, principal),
            None => self.directory.permit.rights_of(principal),
        }
    }

    fn check(&self, list: Option<&Rc<List>>, rights: &[Right], path: &str) -> Result<(), RequestError> {
        let principal = self.client.principal().ok_or(RequestError::Refused)?;
        let has = self.rights_by(list, &principal);
        if rights.iter().any(|&right| has.has(right)) {
            return Ok(());
        }
        let Some(&right) = rights.first() else { return Err(RequestError::Refused) };
        note_refusal(&principal, right, &self.directory.permit.path_of(path), list);
        Err(RequestError::Refused)
    }

    /// Sets a node's own list, or removes it if the text is empty.
    pub(crate) async fn set_list(&self, path: &str, text: &[u8]) -> Result<(), RequestError> {
        let acl = match text {
            [] => None,
            text => Some(Acl::from_bytes(text).map_err(|_| RequestError::BadList)?),
        };
        let found = self.find(path, LastLink::Keep).await?;
        if !self.may_repair_lists() {
            self.need(&found, &[Right::SetAcl], path).await?;
        }
        let (volume, number) = (&self.volume.volume, found.inode.number);
        let changed = match acl {
            Some(acl) => {
                let (name, value) = (ATTRIBUTE.to_vec(), acl.text().into_bytes());
                let new = ExtendedAttribute { namespace: namespace::USER, name, value };
                volume.set_extended_attribute(number, new).await
            }
            None => match volume.remove_extended_attribute(number, namespace::USER, ATTRIBUTE).await {
                Err(Error::NotFound) => Ok(()),
                removed => removed,
            },
        };
        self.volume.access.forget();
        Ok(changed?)
    }

    /// Returns the governing list of a node, and the path of the node that it is set on.
    pub(crate) async fn list(&self, path: &str) -> Result<(String, String), RequestError> {
        let found = self.find(path, LastLink::Keep).await?;
        if !self.may_repair_lists() {
            self.need(&found, &[Right::Read, Right::SetAcl], path).await?;
        }
        let Some(list) = self.volume.decider(&found).await? else {
            let from = if self.directory.permit.is_decided() { path::ABOVE_THE_ROOT } else { "" };
            return Ok((String::new(), String::from(from)));
        };
        let from =
            if list.home == found.inode.number { String::from(path) } else { self.volume.path_of(list.home).await? };
        Ok((list.acl.text(), from))
    }
}

/// Audits a refusal.
fn note_refusal(principal: &str, right: Right, place: &str, list: Option<&Rc<List>>) {
    let rule = match list.map(|list| list.acl.decide(principal, right).rule) {
        Some(rule) => format!("{rule} of the list that decides there"),
        None => String::from("the list of the mount point"),
    };
    sip::audit::refused(principal, right.word(), place, &rule);
}
