//! The tree of names: folders, providers, links, and path resolution.
//!
//! Key types: [`Tree`], [`Resolved`], [`Place`]. `P` is the handle to a provider; the tree stores it, and the ACLs of
//! its names, without interpreting them. Resolution calls a [`Pass`] at each folder along the path.
//! Deliberately not here: channels, principals, and access decisions.

use alloc::borrow::Cow;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;

use contracts::directory::{NameError, NodeKind, ProviderScope};
use manifest_model::pattern;

use crate::access::List;

/// Maximum number of symbolic links followed in one resolution.
pub const LINK_LIMIT: usize = 16;

/// Maximum number of names, so that no registrar can exhaust the service's memory.
pub const NAME_LIMIT: usize = 65_536;

/// Maximum number of kept lists of deregistered providers; the oldest are dropped.
pub const KEPT_LISTS: usize = 256;

/// Generational index of a node. After the node is removed it resolves to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeId {
    index: u32,
    generation: u32,
}

/// The target of a path.
#[derive(Debug)]
pub enum Resolved<'a, P> {
    /// A folder of this tree.
    Folder(NodeId),
    /// A provider, with the resolved path and the offset of the provider's part.
    Provider {
        /// Handle to the provider.
        provider: P,
        /// The node at which it is registered.
        node: NodeId,
        /// The requested path, or its replacement if a link was followed.
        path: Cow<'a, str>,
        /// Byte offset in `path` of the provider's part, without a leading `/`.
        rest: usize,
    },
}

/// A directory entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed<P> {
    /// The name, one path component.
    pub name: String,
    /// Kind of the node.
    pub kind: NodeKind,
    /// The node; its number is the cursor of enumerations.
    pub node: NodeId,
    /// Handle to its provider, if it has one.
    pub provider: Option<P>,
}

enum Body<P> {
    Folder(BTreeMap<String, NodeId>),
    Provider { provider: P, scope: ProviderScope, registrar: String },
    Link { start: NodeId, target: String },
}

struct Node<P> {
    parent: NodeId,
    name: String,
    body: Body<P>,
    /// The ACL set on it, if any.
    list: Option<Rc<List>>,
}

struct Slot<P> {
    generation: u32,
    node: Option<Node<P>>,
    /// Name of the last removed node: an enumeration can continue after it.
    removed: String,
}

/// The tree of names.
pub struct Tree<P> {
    slots: Vec<Slot<P>>,
    /// Free slots, the oldest reused first, so that names of removed nodes stay known for a while.
    free: VecDeque<u32>,
    /// Number of nodes with an ACL of their own.
    lists: usize,
    /// ACLs that names are created with, by patterns of absolute paths.
    initial_lists: Vec<(String, Rc<List>)>,
    /// ACLs of deregistered providers, the oldest first, restored when the name is registered again.
    kept_lists: VecDeque<Kept>,
}

/// The ACL of a deregistered provider.
struct Kept {
    /// Its absolute path.
    path: String,
    list: Rc<List>,
    registrar: String,
}

/// The name that a change applies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Absolute path of the name, with links along the path resolved.
    pub path: String,
    /// The name's node or, if it does not exist, its nearest existing ancestor.
    pub nearest: NodeId,
}

impl NodeId {
    /// The node as one number, unique over the life of the tree.
    pub fn number(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }
}

impl<P: Clone> Tree<P> {
    /// The node of the root folder.
    pub const ROOT: NodeId = NodeId { index: 0, generation: 0 };

    /// A tree with only a root folder.
    pub fn new() -> Tree<P> {
        let root = Node { parent: Self::ROOT, name: String::new(), body: Body::Folder(BTreeMap::new()), list: None };
        Tree {
            slots: Vec::from([Slot { generation: 0, node: Some(root), removed: String::new() }]),
            free: VecDeque::new(),
            lists: 0,
            initial_lists: Vec::new(),
            kept_lists: VecDeque::new(),
        }
    }

    /// Sets the ACLs that names are created with, by absolute path or path pattern; for a tree with only a root. An
    /// exact path takes precedence over patterns, and the first matching pattern over later ones.
    pub fn with_initial_lists(mut self, lists: Vec<(String, Rc<List>)>) -> Tree<P> {
        self.initial_lists = lists;
        self.set_initial_list(Self::ROOT);
        self
    }

    /// Sets a new node's ACL.
    fn set_initial_list(&mut self, node: NodeId) {
        if self.initial_lists.is_empty() && self.kept_lists.is_empty() {
            return;
        }
        let path = self.path_of(node);
        let list = self.initial_list_of(&path).cloned();
        self.kept_lists.retain(|kept| kept.path != path);
        if list.is_some() {
            // Cannot fail: the node was just created.
            let _ = self.set_list(node, list);
        }
    }

    /// The ACL that a name would be created with: the one kept from a deregistered provider, or else the initial one.
    fn initial_list_of(&self, path: &str) -> Option<&Rc<List>> {
        let first = || {
            let exact = self.initial_lists.iter().find(|(of, _)| of == path);
            exact.or_else(|| self.initial_lists.iter().find(|(of, _)| pattern::matches(of, path))).map(|(_, list)| list)
        };
        self.kept(path).map(|kept| &kept.list).or_else(first)
    }

    fn kept(&self, path: &str) -> Option<&Kept> {
        self.kept_lists.iter().find(|kept| kept.path == path)
    }

    /// The registrar of the deregistered provider whose ACL is kept for this name.
    pub fn former_registrar(&self, place: &Place) -> Option<&str> {
        self.kept(&place.path).map(|kept| &*kept.registrar)
    }

    /// The ACL of its own that a name which does not exist would be created with; `None` if its parent's would govern
    /// it.
    pub fn list_on_creation(&self, place: &Place) -> Option<&Rc<List>> {
        if self.initial_lists.is_empty() && self.kept_lists.is_empty() || self.path_of(place.nearest) == place.path {
            return None;
        }
        self.initial_list_of(&place.path)
    }

    /// Resolves a path relative to a folder. Links are followed, including the last one.
    pub fn resolve<'a>(&self, start: NodeId, requested: &'a str) -> Result<Resolved<'a, P>, NameError> {
        self.resolve_past(start, requested, &mut |_| Ok(()))
    }

    /// Like [`resolve`](Tree::resolve), calling `pass` for each folder in which a name is looked up and for a provider
    /// that is left a part of the path; its error ends the resolution.
    pub fn resolve_past<'a>(
        &self,
        start: NodeId,
        requested: &'a str,
        pass: &mut Pass<'_>,
    ) -> Result<Resolved<'a, P>, NameError> {
        if !path::is_valid(requested) {
            return Err(NameError::BadPath);
        }
        let mut path = Cow::Borrowed(requested);
        let mut folder = start;
        for _ in 0..=LINK_LIMIT {
            match self.walk(folder, &path, pass)? {
                Walk::Folder(node) => return Ok(Resolved::Folder(node)),
                Walk::Provider { provider, node, rest } => {
                    return Ok(Resolved::Provider { provider, node, path, rest });
                }
                Walk::Link { start, target, rest } => {
                    let rest = &path[rest..];
                    path = Cow::Owned(if rest.is_empty() { target.into() } else { path::join(target, rest) });
                    if path.len() > path::PATH_BYTES {
                        return Err(NameError::BadPath);
                    }
                    folder = start;
                }
            }
        }
        Err(NameError::TooManyLinks)
    }

    fn walk<'t>(&'t self, start: NodeId, path: &str, pass: &mut Pass<'_>) -> Result<Walk<'t, P>, NameError> {
        let mut node = start;
        let mut rest = skip_slashes(path, 0);
        while rest < path.len() {
            let end = path[rest..].find('/').map_or(path.len(), |slash| rest + slash);
            let part = &path[rest..end];
            rest = skip_slashes(path, end);
            if part == "." {
                continue;
            }
            let names = self.names(node)?;
            pass(node)?;
            node = *names.get(part).ok_or(NameError::NotFound)?;
            match &self.node(node)?.body {
                Body::Folder(_) => {}
                Body::Provider { scope: ProviderScope::Name, .. } if rest < path.len() => {
                    return Err(NameError::NotADirectory);
                }
                Body::Provider { provider, .. } => {
                    if rest < path.len() {
                        pass(node)?;
                    }
                    return Ok(Walk::Provider { provider: provider.clone(), node, rest });
                }
                Body::Link { start, target } => return Ok(Walk::Link { start: *start, target, rest }),
            }
        }
        self.names(node)?;
        Ok(Walk::Folder(node))
    }

    /// Returns the absolute path of a node.
    pub fn path_of(&self, node: NodeId) -> String {
        let mut parts = Vec::new();
        let mut at = node;
        while at != Self::ROOT {
            let Ok(found) = self.node(at) else { break };
            parts.push(found.name.as_str());
            at = found.parent;
        }
        parts.reverse();
        let mut path = String::from("/");
        path.push_str(&parts.join("/"));
        path
    }

    /// Registers a provider, creating missing folders. The principal that registered a name may replace its provider.
    /// Returns the node and the replaced provider.
    pub fn register(
        &mut self,
        start: NodeId,
        path: &str,
        scope: ProviderScope,
        registrar: &str,
        provider: P,
    ) -> Result<(NodeId, Option<P>), NameError> {
        let (folder, name) = self.make_parents(start, path)?;
        if let Some(&node) = self.names(folder)?.get(name) {
            let found = self.node_mut(node)?;
            let Body::Provider { provider: old, scope: old_scope, registrar: owner } = &mut found.body else {
                return Err(NameError::AlreadyExists);
            };
            if owner != registrar {
                return Err(NameError::AlreadyExists);
            }
            *old_scope = scope;
            return Ok((node, Some(core::mem::replace(old, provider))));
        }
        let node = self.insert(folder, name, Body::Provider { provider, scope, registrar: registrar.into() })?;
        Ok((node, None))
    }

    /// Creates a symbolic link. An absolute target is resolved from `start`, a relative one from the link's folder.
    pub fn link(&mut self, start: NodeId, path: &str, target: &str) -> Result<NodeId, NameError> {
        if !path::is_valid(target) || target.is_empty() {
            return Err(NameError::BadPath);
        }
        let (folder, name) = self.make_parents(start, path)?;
        let origin = if target.starts_with('/') { start } else { folder };
        self.insert(folder, name, Body::Link { start: origin, target: target.into() })
    }

    /// Creates a folder and its missing ancestors.
    pub fn create_folder(&mut self, start: NodeId, path: &str) -> Result<NodeId, NameError> {
        let (folder, name) = self.make_parents(start, path)?;
        self.insert(folder, name, Body::Folder(BTreeMap::new()))
    }

    /// Removes a registration, link or empty folder. Returns the provider, if any.
    pub fn remove(&mut self, start: NodeId, path: &str) -> Result<Option<P>, NameError> {
        let (folder, name) = self.parent_of(start, path, &mut |_| Ok(()))?;
        let node = *self.names(folder)?.get(name).ok_or(NameError::NotFound)?;
        if matches!(&self.node(node)?.body, Body::Folder(names) if !names.is_empty()) {
            return Err(NameError::IsADirectory);
        }
        let registrar = self.registrar_of(node).map(String::from);
        let path = self.path_of(node);
        if let Body::Folder(names) = &mut self.node_mut(folder)?.body {
            names.remove(name);
        }
        // The right to deregister does not include the right to change the ACL, so the ACL outlives the registration.
        if let Some(list) = self.set_list(node, None)?
            && let Some(registrar) = registrar
        {
            if self.kept_lists.len() >= KEPT_LISTS {
                self.kept_lists.pop_front();
            }
            self.kept_lists.push_back(Kept { path, list, registrar });
        }
        let slot = &mut self.slots[node.index as usize];
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push_back(node.index);
        Ok(slot.node.take().and_then(|node| {
            slot.removed = node.name;
            match node.body {
                Body::Provider { provider, .. } => Some(provider),
                _ => None,
            }
        }))
    }

    /// Looks a name up without following a link at its end.
    pub fn look(&self, start: NodeId, path: &str) -> Result<Listed<P>, NameError> {
        self.look_past(start, path, &mut |_| Ok(()))
    }

    /// Like [`look`](Tree::look), calling `pass` as [`resolve_past`](Tree::resolve_past) does.
    pub fn look_past(&self, start: NodeId, path: &str, pass: &mut Pass<'_>) -> Result<Listed<P>, NameError> {
        if path::parts(path).next().is_none() {
            let node = self.node(start)?;
            return Ok(self.listed(&node.name, start));
        }
        let (folder, name) = self.parent_of(start, path, pass)?;
        pass(folder)?;
        let node = *self.names(folder)?.get(name).ok_or(NameError::NotFound)?;
        Ok(self.listed(name, node))
    }

    /// The target of a link.
    pub fn link_target(&self, node: NodeId) -> Result<&str, NameError> {
        match &self.node(node)?.body {
            Body::Link { target, .. } => Ok(target),
            _ => Err(NameError::NotSupported),
        }
    }

    /// The entries of a folder after the name `after`, in name order.
    pub fn list_after(
        &self,
        folder: NodeId,
        after: Option<&str>,
    ) -> Result<impl Iterator<Item = Listed<P>>, NameError> {
        use core::ops::Bound;
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let names = self.names(folder)?.range::<str, _>((from, Bound::Unbounded));
        Ok(names.map(|(name, &node)| self.listed(name, node)))
    }

    /// The name of the node with this [`NodeId::number`], also after its removal until its slot is reused.
    pub fn name_numbered(&self, number: u64) -> Option<&str> {
        let slot = self.slots.get(number as u32 as usize)?;
        let generation = (number >> 32) as u32;
        match &slot.node {
            Some(node) if slot.generation == generation => Some(&node.name),
            None if slot.generation == generation.wrapping_add(1) => Some(&slot.removed),
            _ => None,
        }
    }

    /// Resolves the name that a change of `path` applies to, for the access check. Missing folders are assumed to be
    /// created. Calls `pass` as [`resolve_past`](Tree::resolve_past) does.
    pub fn place_of(&self, start: NodeId, path: &str, pass: &mut Pass<'_>) -> Result<Place, NameError> {
        let (folder, name) = path::split_last(path).ok_or(NameError::BadPath)?;
        if !path::is_valid(path) || name == "." {
            return Err(NameError::BadPath);
        }
        let mut place = Place { path: self.path_of(start), nearest: start };
        let mut at = Some(start);
        for part in path::parts(folder) {
            at = match at.map(|node| self.resolve_past(node, part, pass)) {
                Some(Ok(Resolved::Folder(node))) => Some(node),
                Some(Ok(Resolved::Provider { .. })) => return Err(NameError::NotSupported),
                Some(Err(NameError::NotFound)) | None => None,
                Some(Err(error)) => return Err(error),
            };
            match at {
                Some(node) => place = Place { path: self.path_of(node), nearest: node },
                None => place.path = path::join(&place.path, part),
            }
        }
        if let Some(folder) = at {
            pass(folder)?;
            place.nearest = self.names(folder)?.get(name).copied().unwrap_or(folder);
        }
        place.path = path::join(&place.path, name);
        Ok(place)
    }

    /// Whether any name has an ACL.
    pub fn has_lists(&self) -> bool {
        self.lists > 0
    }

    /// The ACL that governs a node, and the node that it is set on: itself or its nearest ancestor with one.
    pub fn list_of(&self, node: NodeId) -> Option<(NodeId, &Rc<List>)> {
        if !self.has_lists() {
            return None;
        }
        let mut at = node;
        loop {
            let found = self.node(at).ok()?;
            match &found.list {
                Some(list) => return Some((at, list)),
                None if at == Self::ROOT => return None,
                None => at = found.parent,
            }
        }
    }

    /// Sets or clears a node's own ACL. Returns the previous one.
    pub fn set_list(&mut self, node: NodeId, list: Option<Rc<List>>) -> Result<Option<Rc<List>>, NameError> {
        let more = usize::from(list.is_some());
        let old = core::mem::replace(&mut self.node_mut(node)?.list, list);
        self.lists = self.lists + more - usize::from(old.is_some());
        Ok(old)
    }

    /// Whether a node is a provider of a whole subtree.
    pub fn is_mount(&self, node: NodeId) -> bool {
        matches!(self.node(node).map(|found| &found.body), Ok(Body::Provider { scope: ProviderScope::Subtree, .. }))
    }

    /// The principal that registered this provider.
    pub fn registrar_of(&self, node: NodeId) -> Option<&str> {
        match &self.node(node).ok()?.body {
            Body::Provider { registrar, .. } => Some(registrar),
            _ => None,
        }
    }

    fn listed(&self, name: &str, node: NodeId) -> Listed<P> {
        let (kind, provider) = match self.node(node).map(|found| &found.body) {
            Ok(Body::Provider { scope: ProviderScope::Name, provider, .. }) => {
                (NodeKind::Service, Some(provider.clone()))
            }
            Ok(Body::Provider { scope: ProviderScope::Subtree, provider, .. }) => {
                (NodeKind::Mount, Some(provider.clone()))
            }
            Ok(Body::Link { .. }) => (NodeKind::Link, None),
            Ok(Body::Folder(_)) | Err(_) => (NodeKind::Directory, None),
        };
        Listed { name: name.into(), kind, node, provider }
    }

    fn node(&self, id: NodeId) -> Result<&Node<P>, NameError> {
        let slot = self.slots.get(id.index as usize).filter(|slot| slot.generation == id.generation);
        slot.and_then(|slot| slot.node.as_ref()).ok_or(NameError::NotFound)
    }

    fn node_mut(&mut self, id: NodeId) -> Result<&mut Node<P>, NameError> {
        let slot = self.slots.get_mut(id.index as usize).filter(|slot| slot.generation == id.generation);
        slot.and_then(|slot| slot.node.as_mut()).ok_or(NameError::NotFound)
    }

    fn names(&self, id: NodeId) -> Result<&BTreeMap<String, NodeId>, NameError> {
        match &self.node(id)?.body {
            Body::Folder(names) => Ok(names),
            _ => Err(NameError::NotADirectory),
        }
    }

    /// The parent folder of a path, with links resolved, and the path's last component.
    fn parent_of<'a>(&self, start: NodeId, path: &'a str, pass: &mut Pass<'_>) -> Result<(NodeId, &'a str), NameError> {
        let (folder, name) = path::split_last(path).ok_or(NameError::BadPath)?;
        if !path::is_valid(path) || name == "." {
            return Err(NameError::BadPath);
        }
        match self.resolve_past(start, folder, pass)? {
            Resolved::Folder(node) => Ok((node, name)),
            Resolved::Provider { .. } => Err(NameError::NotSupported),
        }
    }

    /// Like [`parent_of`](Tree::parent_of), but creates missing folders.
    fn make_parents<'a>(&mut self, start: NodeId, path: &'a str) -> Result<(NodeId, &'a str), NameError> {
        let (folder, name) = path::split_last(path).ok_or(NameError::BadPath)?;
        if !path::is_valid(path) || name == "." {
            return Err(NameError::BadPath);
        }
        let mut at = start;
        for part in path::parts(folder) {
            at = match self.resolve(at, part) {
                Ok(Resolved::Folder(node)) => node,
                Ok(Resolved::Provider { .. }) => return Err(NameError::NotSupported),
                Err(NameError::NotFound) => self.insert(at, part, Body::Folder(BTreeMap::new()))?,
                Err(error) => return Err(error),
            };
        }
        Ok((at, name))
    }

    fn insert(&mut self, folder: NodeId, name: &str, body: Body<P>) -> Result<NodeId, NameError> {
        if self.names(folder)?.contains_key(name) {
            return Err(NameError::AlreadyExists);
        }
        if self.slots.len() - self.free.len() >= NAME_LIMIT {
            return Err(NameError::Exhausted);
        }
        let node = Node { parent: folder, name: name.into(), body, list: None };
        let id = match self.free.pop_front() {
            Some(index) => {
                let slot = &mut self.slots[index as usize];
                slot.node = Some(node);
                NodeId { index, generation: slot.generation }
            }
            None => {
                let index = self.slots.len() as u32;
                self.slots.push(Slot { generation: 0, node: Some(node), removed: String::new() });
                NodeId { index, generation: 0 }
            }
        };
        if let Body::Folder(names) = &mut self.node_mut(folder)?.body {
            names.insert(name.into(), id);
        }
        self.set_initial_list(id);
        Ok(id)
    }
}

impl<P: Clone> Default for Tree<P> {
    fn default() -> Tree<P> {
        Tree::new()
    }
}

/// Access check called for each folder along a path.
pub type Pass<'p> = dyn FnMut(NodeId) -> Result<(), NameError> + 'p;

enum Walk<'t, P> {
    Folder(NodeId),
    Provider { provider: P, node: NodeId, rest: usize },
    Link { start: NodeId, target: &'t str, rest: usize },
}

fn skip_slashes(path: &str, from: usize) -> usize {
    from + path[from..].bytes().take_while(|&byte| byte == b'/').count()
}

#[cfg(test)]
mod tests;
