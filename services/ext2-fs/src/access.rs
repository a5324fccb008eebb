//! Who may do what on the volume: access control lists, kept with folders and files as the extended attribute
//! `user.singularity.acl`.
//!
//! What decides about a node is its own list, or else that of the nearest folder above it that has one, or else what the
//! directory service said of the mount point when the client came through it; where there is none, everything is allowed
//! here, because the rules of the system have decided before. A file with several names is below each of the folders
//! that it is reached through. As long as nothing with an extended attribute was seen, all this costs one test for who
//! came through a mount point without a list.
//!
//! Key types: [`Access`] (what is remembered of lists), [`Caller`] (a request and on whose behalf it is done). Not here:
//! the rules of the system, which the directory service asks; what lists mean, which is in the library `principal`.

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use ext2::wire::attributes::namespace;
use ext2::{Error, ExtendedAttribute, Inode, Kind, LastLink, ROOT_INODE};
use name_text as text;
use name_text::NoName;
use principal::{Acl, DecisionCache, Right, Rights};
use sip::channel::TypedEndpoint;
use stdio::report;

use crate::Shared;

/// The name of the attribute, in the namespace `user`.
const ATTRIBUTE: &[u8] = b"singularity.acl";
/// Nodes whose lists are remembered.
const MAX_REMEMBERED: usize = 4096;
/// Folders that lie in each other at most; more are a circle on a damaged volume.
const DEEPEST: usize = 4096;

/// A list in use.
pub(crate) struct List {
    /// Unlike that of any other list of this process, so that no decision of one is taken for another's.
    number: u64,
    acl: Acl,
    /// The node that has it.
    home: u32,
}

/// The list that decides about a node; without one, the mount point's does.
type Decider = Option<Rc<List>>;

/// Lists that were read, and what they decided.
pub(crate) struct Access {
    known: RefCell<Known>,
    decisions: RefCell<DecisionCache<Rights>>,
    next_number: Cell<u64>,
}

#[derive(Default)]
struct Known {
    /// Changes with everything that can make what is remembered wrong, so that what was read before is not remembered.
    generation: u64,
    /// Lists of nodes' own.
    own: BTreeMap<u32, Decider>,
    /// What decides about folders.
    folders: BTreeMap<u32, Decider>,
}

impl Known {
    fn forget(&mut self) {
        self.generation += 1;
        self.own.clear();
        self.folders.clear();
    }
}

/// Why a request was not done.
pub(crate) enum RequestError {
    /// The volume says no.
    Volume(Error),
    /// A list does; it is noted.
    Refused,
    /// The path is none.
    BadPath,
    /// What a client sent as a list is none.
    BadList,
    /// The request is about a link, and this is none.
    NotALink,
    /// A page has no room for a single name.
    NoRoomForOne,
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

/// A folder that requests begin at, and how clients reached it.
#[derive(Clone)]
pub(crate) struct Base {
    pub(crate) number: u32,
    /// Its path from the namespace's root on, as it was asked for.
    pub(crate) path: String,
    /// What the list of the mount point lets who came through it do; `None` where none decides.
    pub(crate) mount: Option<Pass>,
}

/// What the list of the mount point lets somebody do.
#[derive(Clone)]
pub(crate) struct Pass {
    pub(crate) rights: Rights,
    /// Who that is; `None` until who came through has opened something. An open folder that is passed on gives its next
    /// owner nothing of this: what the list says of them, the directory service knows.
    pub(crate) holder: Option<Rc<str>>,
}

impl Pass {
    fn rights_of(&self, principal: &str) -> Rights {
        let is_holder = self.holder.as_deref().is_none_or(|holder| holder == principal);
        if is_holder { self.rights } else { Rights::NONE }
    }
}

/// What a path led to.
pub(crate) struct Found {
    pub(crate) inode: Inode,
    /// The folder whose lists it inherits.
    folder: u32,
}

/// Somebody who asks.
pub(crate) trait Speaks {
    /// The principal that is spoken for at this moment.
    fn principal(&self) -> Option<String>;
}

/// A client asks through its end of a channel. One that has closed it asks for nothing any more.
impl<E: TypedEndpoint> Speaks for E {
    fn principal(&self) -> Option<String> {
        sip::principal::of_peer(self).ok()
    }
}

/// A request below a folder, and who asks.
#[derive(Clone, Copy)]
pub(crate) struct Caller<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) base: &'a Base,
    pub(crate) who: &'a dyn Speaks,
}

impl Access {
    pub(crate) fn new() -> Access {
        Access { known: RefCell::default(), decisions: RefCell::default(), next_number: Cell::new(1) }
    }

    /// A list in use from now on.
    fn list(&self, acl: Acl, home: u32) -> Rc<List> {
        let number = self.next_number.get();
        self.next_number.set(number + 1);
        Rc::new(List { number, acl, home })
    }

    /// Forgets what was remembered: names, or lists, are not what they were.
    pub(crate) fn forget(&self) {
        self.known.borrow_mut().forget();
    }

    /// Forgets what was remembered of a number that another node has now.
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

impl Shared {
    /// The list that a node has of its own.
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
                // A list that cannot be read denies everything: it was meant to keep somebody out.
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

    /// What decides about a folder.
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
            if at == ROOT_INODE || passed.len() >= DEEPEST {
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

    /// The path of a folder from the volume's root on, as the volume has it.
    async fn path_of(&self, folder: u32) -> Result<String, Error> {
        let mut names: Vec<String> = Vec::new();
        let mut at = folder;
        while at != ROOT_INODE && names.len() < DEEPEST {
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
    /// What a path leads to. Who asks has to be let through every folder on the way.
    pub(crate) async fn find(&self, path: &[u8], last: LastLink) -> Result<Found, RequestError> {
        let on_volume = path_on_volume(path)?;
        let mut passed = Vec::new();
        let found = self.shared.volume.resolve_noting(self.base.number, &on_volume, last, &mut passed).await;
        self.pass(&passed, path).await?;
        Ok(Found { inode: found?, folder: passed.last().copied().unwrap_or(self.base.number) })
    }

    /// What a change of names needs: the folder it is in, which has to let through who asks, and the name there as the
    /// volume has it.
    pub(crate) async fn place(&self, path: &[u8]) -> Result<(Found, Vec<u8>), RequestError> {
        let on_volume = path_on_volume(path)?;
        let mut passed = Vec::new();
        let found = self.shared.volume.resolve_parent_noting(self.base.number, &on_volume, &mut passed).await;
        if let Ok((folder, _)) = &found {
            passed.push(*folder);
        }
        self.pass(&passed, path).await?;
        let (folder, name) = found?;
        Ok((Found { inode: self.shared.volume.inode(folder).await?, folder }, name))
    }

    /// What a name in a folder leads to, which is not followed further.
    pub(crate) async fn child(&self, folder: &Found, name: &[u8]) -> Result<Found, RequestError> {
        let (volume, folder) = (&self.shared.volume, folder.inode.number);
        Ok(Found { inode: volume.inode(volume.find(folder, name).await?).await?, folder })
    }

    /// Refuses what is beyond a folder that does not let through who asks.
    async fn pass(&self, folders: &[u32], path: &[u8]) -> Result<(), RequestError> {
        if !self.has_lists() {
            return Ok(());
        }
        for &folder in folders {
            let list = self.shared.folder_list(folder).await?;
            self.check(list.as_ref(), &[Right::Traverse], path)?;
        }
        Ok(())
    }

    /// Refuses what needs one of these rights to a node, if who asks has none of them.
    pub(crate) async fn need(&self, found: &Found, rights: &[Right], path: &[u8]) -> Result<(), RequestError> {
        if !self.has_lists() {
            return Ok(());
        }
        self.check(self.shared.decider(found).await?.as_ref(), rights, path)
    }

    /// Refuses to take a name out, or to put another node in its place, to who could not change what it stands for: if
    /// that has a list of its own, it is asked for `write` or `set-acl`. Of others the folder alone decides.
    pub(crate) async fn need_to_take(&self, folder: &Found, name: &[u8], path: &[u8]) -> Result<(), RequestError> {
        // It may be the first that is seen with a list.
        let node = match self.child(folder, name).await {
            Ok(node) => node,
            // Whoever is to take it out will find that nothing is there.
            Err(RequestError::Volume(Error::NotFound)) => return Ok(()),
            Err(error) => return Err(error),
        };
        if !node.inode.has_extended_attributes() {
            return Ok(());
        }
        let own = self.shared.own_list(node.inode.number).await?;
        if own.is_none() || self.may_mend_lists() {
            return Ok(());
        }
        self.check(own.as_ref(), &[Right::Write, Right::SetAcl], path)
    }

    /// Which rights there are to a node; all, if nothing decides.
    pub(crate) async fn rights(&self, found: &Found) -> Result<Rights, RequestError> {
        if !self.has_lists() {
            return Ok(Rights::ALL);
        }
        let list = self.shared.decider(found).await?;
        let principal = self.who.principal().ok_or(RequestError::Refused)?;
        Ok(self.rights_by(list.as_ref(), &principal))
    }

    /// Refuses to put what has a name below another folder where another list would decide about it, to who may not
    /// change lists: that is what it comes to.
    pub(crate) async fn need_to_move(&self, node: &Found, to: &Found, path: &[u8]) -> Result<(), RequestError> {
        if !self.has_lists() {
            return Ok(());
        }
        let (now, then) = (self.shared.decider(node).await?, self.shared.folder_list(to.inode.number).await?);
        let number = |list: &Decider| list.as_ref().map(|list| list.number);
        let has_its_own = now.as_ref().is_some_and(|list| list.home == node.inode.number);
        if has_its_own || number(&now) == number(&then) {
            return Ok(());
        }
        self.check(now.as_ref(), &[Right::SetAcl], path)
    }

    /// Whether there may be a list that decides about anything.
    fn has_lists(&self) -> bool {
        self.shared.volume.has_seen_extended_attributes() || self.base.mount.is_some()
    }

    /// Whether who asks has the right to change lists by that of the mount point, and so keeps it whatever lists below
    /// say: somebody has to be able to mend them.
    pub(crate) fn may_mend_lists(&self) -> bool {
        let Some(mount) = &self.base.mount else { return false };
        self.who.principal().is_some_and(|principal| mount.rights_of(&principal).has(Right::SetAcl))
    }

    /// Where a folder is opened: its requests have what this one has of the mount point, for who has it now.
    pub(crate) fn base_of(&self, number: u32, path: &[u8]) -> Base {
        let mut mount = self.base.mount.clone();
        if let Some(pass) = &mut mount
            && pass.holder.is_none()
        {
            // One that has gone already holds nothing.
            pass.holder = Some(self.who.principal().unwrap_or_default().into());
        }
        Base { number, path: join(&self.base.path, path), mount }
    }

    fn rights_by(&self, list: Option<&Rc<List>>, principal: &str) -> Rights {
        match list {
            Some(list) => self.shared.access.rights(list, principal),
            None => self.base.mount.as_ref().map_or(Rights::ALL, |mount| mount.rights_of(principal)),
        }
    }

    fn check(&self, list: Option<&Rc<List>>, rights: &[Right], path: &[u8]) -> Result<(), RequestError> {
        let principal = self.who.principal().ok_or(RequestError::Refused)?;
        let has = self.rights_by(list, &principal);
        if rights.iter().any(|&right| has.has(right)) {
            return Ok(());
        }
        let Some(&right) = rights.first() else { return Err(RequestError::Refused) };
        let place = join(&self.base.path, path);
        note_refusal(&principal, right, &place, list);
        Err(RequestError::Refused)
    }

    /// Gives a node a list of its own, or takes that away where the text is empty.
    pub(crate) async fn set_list(&self, path: &[u8], text: &[u8]) -> Result<(), RequestError> {
        let acl = match text {
            [] => None,
            text => Some(Acl::from_bytes(text).map_err(|_| RequestError::BadList)?),
        };
        let found = self.find(path, LastLink::Keep).await?;
        if !self.may_mend_lists() {
            self.need(&found, &[Right::SetAcl], path).await?;
        }
        let (volume, number) = (&self.shared.volume, found.inode.number);
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
        self.shared.access.forget();
        Ok(changed?)
    }

    /// The list that decides about a node, and the path of what has it.
    pub(crate) async fn list(&self, path: &[u8]) -> Result<(String, String), RequestError> {
        let found = self.find(path, LastLink::Keep).await?;
        if !self.may_mend_lists() {
            self.need(&found, &[Right::Read, Right::SetAcl], path).await?;
        }
        let Some(list) = self.shared.decider(&found).await? else {
            let from = if self.base.mount.is_some() { path::ABOVE_THE_ROOT } else { "" };
            return Ok((String::new(), String::from(from)));
        };
        let from = if list.home == found.inode.number {
            String::from_utf8_lossy(path).into_owned()
        } else {
            self.shared.path_of(list.home).await?
        };
        Ok((list.acl.text(), from))
    }
}

/// Notes a refusal for people to read.
fn note_refusal(principal: &str, right: Right, place: &str, list: Option<&Rc<List>>) {
    let rule = match list.map(|list| list.acl.decide(principal, right).rule) {
        Some(rule) => format!("{rule} of the list that decides there"),
        None => String::from("the list of the mount point"),
    };
    sip::audit::refused(principal, right.word(), place, &rule);
}

/// A client's path as the volume has it. The check comes first: an escape stands for nothing that it looks for.
fn path_on_volume(path: &[u8]) -> Result<Cow<'_, [u8]>, RequestError> {
    let path = core::str::from_utf8(path).ok().filter(|path| path::is_valid(path)).ok_or(RequestError::BadPath)?;
    Ok(text::from_text(path)?)
}

/// The path of what a path leads to from a folder.
pub(crate) fn join(base: &str, path: &[u8]) -> String {
    let path = String::from_utf8_lossy(path);
    match path.trim_matches('/') {
        "" => String::from(base),
        path => format!("{base}/{path}"),
    }
}
