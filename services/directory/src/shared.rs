//! State shared by all clients, and access checks for each request.
//!
//! Each method checks the mandatory rules, then the ACLs along the path and of the name itself, before it acts.
//! Refusals go to the audit ring. Deliberately not here: client channels.

use alloc::borrow::Cow;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::{Ref, RefCell};

use contracts::directory::NameError;
use contracts::namespace_events::{self, Change};
use contracts::service_provider::{self, states};
use principal::{Acl, Right, Rights};
use task_sync::Pool;

use crate::access::{Access, List, Refusal};
use crate::tree::{Listed, NodeId, Place, Resolved, Tree};
use crate::watchers::Watchers;

/// The endpoint of one provider, which accepts one client at a time; closed once the provider is known to have ended.
pub type ProviderLink = Rc<Pool<service_provider::Imp<states::Ready>>>;

type Names = Tree<ProviderLink>;

pub struct Shared {
    tree: RefCell<Names>,
    watchers: Watchers,
    access: Access,
}

/// The target of a bind.
pub enum Target {
    /// A folder of the tree.
    Folder(NodeId),
    /// A provider.
    Provider {
        /// The provider's endpoint.
        link: ProviderLink,
        /// The node at which it is registered.
        node: NodeId,
        /// The resolved path, if a link was followed and it differs from the requested one.
        path: Option<String>,
        /// Byte offset in the path at which the provider's part begins.
        rest: usize,
        /// The rights that the governing ACL grants the client, if there is one; they apply below the name where the
        /// provider has no ACL of its own.
        rights: Option<Rights>,
    },
}

impl Shared {
    /// An empty tree with these access rules, whose names are created with these ACLs.
    pub fn new(access: Access, initial_lists: Vec<(String, Rc<List>)>) -> Shared {
        let tree = Tree::new().with_initial_lists(initial_lists);
        Shared { tree: RefCell::new(tree), watchers: Watchers::default(), access }
    }

    pub fn tree(&self) -> Ref<'_, Names> {
        self.tree.borrow()
    }

    /// Creates a folder during start-up.
    pub fn make_folder(&self, path: &str) {
        // Cannot fail in an empty tree.
        let _ = self.tree.borrow_mut().create_folder(Names::ROOT, path);
    }

    /// Resolves a path for a bind and checks that the principal may bind to it.
    pub fn find(&self, root: NodeId, requested: &[u8], principal: &str) -> Result<Target, NameError> {
        let tree = self.tree.borrow();
        match tree.resolve_past(root, text(requested)?, &mut self.pass(&tree, principal))? {
            Resolved::Folder(node) => {
                self.allow_bind(principal, &tree.path_of(node), Right::Traverse)?;
                self.allow(&tree, node, principal, &[Right::Traverse, Right::Read])?;
                Ok(Target::Folder(node))
            }
            Resolved::Provider { provider, node, path, rest } => {
                let mut full = tree.path_of(node);
                if rest < path.len() {
                    full = path::join(&full, &path[rest..]);
                }
                self.allow_bind(principal, &full, Right::Connect)?;
                // Access below a provider is the provider's decision; the path to it has been checked.
                if rest == path.len() {
                    let rights: &[Right] = match tree.is_mount(node) {
                        true => &[Right::Traverse, Right::Read],
                        false => &[Right::Connect],
                    };
                    self.allow(&tree, node, principal, rights)?;
                }
                let path = match path {
                    Cow::Borrowed(_) => None,
                    Cow::Owned(path) => Some(path),
                };
                let rights = tree.list_of(node).map(|(_, list)| self.access.rights(principal, list));
                Ok(Target::Provider { link: provider, node, path, rest, rights })
            }
        }
    }

    /// Changes a name if the principal may, and notifies watchers.
    pub fn change(
        &self,
        root: NodeId,
        requested: &[u8],
        principal: &str,
        right: Right,
        change: Change,
        make: impl FnOnce(&mut Names, &str) -> Result<Option<ProviderLink>, NameError>,
    ) -> Result<(), NameError> {
        let requested = text(requested)?;
        let place = {
            let tree = self.tree.borrow();
            let place = tree.place_of(root, requested, &mut self.pass(&tree, principal))?;
            self.allow_change(&tree, &place, principal, right)?;
            place
        };
        // A removal is reported to watchers that could observe the name before it.
        let removed = self.tree.borrow().list_of(place.nearest).map(|(_, list)| Rc::clone(list));
        let replaced = make(&mut self.tree.borrow_mut(), requested)?;
        if let Some(link) = replaced {
            link.close();
        }
        let tree = self.tree.borrow();
        match tree.place_of(root, requested, &mut |_| Ok(())) {
            Ok(now) if change != Change::Removed => {
                self.watchers.changed(change, &place.path, |who| self.may_observe(&tree, now.nearest, who));
            }
            _ => self.watchers.changed(change, &place.path, |who| {
                let list = removed.as_deref().map(|list| (list, String::new));
                self.access.check(who, list, &[Right::Notify]).is_ok()
            }),
        }
        Ok(())
    }

    /// Looks a name up without following a link at its end. Needs the right to read the folder.
    pub fn look(&self, root: NodeId, requested: &[u8], principal: &str) -> Result<Listed<ProviderLink>, NameError> {
        let tree = self.tree.borrow();
        let found = tree.look_past(root, text(requested)?, &mut self.pass(&tree, principal))?;
        let full = tree.path_of(found.node);
        let folder = path::split_last(&full).map_or("/", |(folder, _)| if folder.is_empty() { "/" } else { folder });
        if !self.access.rules().may_bind(principal, folder) {
            self.allow_bind(principal, &full, Right::Read)?;
        }
        self.allow(&tree, found.node, principal, &[Right::Read])?;
        Ok(found)
    }

    /// The ACL that a name would be created with, if the principal may read it.
    pub fn list_on_creation(&self, root: NodeId, requested: &[u8], principal: &str) -> Result<String, NameError> {
        let tree = self.tree.borrow();
        let place = tree.place_of(root, text(requested)?, &mut self.pass(&tree, principal))?;
        let list = tree.list_on_creation(&place).ok_or(NameError::NotFound)?;
        self.allow_bind(principal, &tree.path_of(place.nearest), Right::Read)?;
        let allowed = self.check_place(&tree, &place, principal, &[Right::Read]);
        allowed.map_err(|refusal| refused(principal, &place.path, &refusal))?;
        Ok(list.text())
    }

    /// The folder at a path, if the principal may list it.
    pub fn folder_to_read(
        &self,
        tree: &Names,
        root: NodeId,
        requested: &[u8],
        principal: &str,
    ) -> Result<NodeId, NameError> {
        let Resolved::Folder(node) = tree.resolve_past(root, text(requested)?, &mut self.pass(tree, principal))? else {
            return Err(NameError::NotSupported);
        };
        self.allow_bind(principal, &tree.path_of(node), Right::Read)?;
        self.allow(tree, node, principal, &[Right::Read])?;
        Ok(node)
    }

    /// Sets a name's ACL, or removes it if the text has no entry.
    pub fn set_list(&self, root: NodeId, requested: &[u8], principal: &str, acl: &[u8]) -> Result<(), NameError> {
        let node = {
            let tree = self.tree.borrow();
            let node = tree.look_past(root, text(requested)?, &mut self.pass(&tree, principal))?.node;
            let place = Place { path: tree.path_of(node), nearest: node };
            self.allow_change(&tree, &place, principal, Right::SetAcl)?;
            node
        };
        let acl = Acl::from_bytes(acl).map_err(|_| NameError::BadAcl)?;
        let list = (!acl.is_empty()).then(|| self.access.list(acl));
        if let Some(old) = self.tree.borrow_mut().set_list(node, list)? {
            self.access.forget(&old);
        }
        self.notify(Change::AclChanged, node);
        Ok(())
    }

    /// Subscribes the principal to changes at or below a path. The returned future serves the subscription.
    pub fn subscribe(
        &self,
        root: NodeId,
        requested: &[u8],
        principal: String,
        events: namespace_events::Exp<namespace_events::states::Ready>,
    ) -> Result<impl Future<Output = ()> + use<>, NameError> {
        let tree = self.tree.borrow();
        let requested = text(requested)?;
        let mut pass = self.pass(&tree, &principal);
        let place = match path::parts(requested).next() {
            None => Place { path: tree.path_of(root), nearest: root },
            Some(_) => tree.place_of(root, requested, &mut pass)?,
        };
        drop(pass);
        self.allow_bind(&principal, &place.path, Right::Notify)?;
        let allowed = self.check_place(&tree, &place, &principal, &[Right::Notify]);
        allowed.map_err(|refusal| refused(&principal, &place.path, &refusal))?;
        self.watchers.add(principal, tree.path_of(root), place.path, events).map_err(|_| NameError::Exhausted)
    }

    /// Notifies all watchers that may observe the node.
    pub fn notify(&self, change: Change, node: NodeId) {
        let tree = self.tree.borrow();
        self.watchers.changed(change, &tree.path_of(node), |who| self.may_observe(&tree, node, who));
    }

    fn may_observe(&self, tree: &Names, node: NodeId, principal: &str) -> bool {
        self.check(tree, node, principal, &[Right::Notify]).is_ok()
    }

    /// The check at each folder along a path: `traverse` by its ACL.
    fn pass<'s>(&'s self, tree: &'s Names, principal: &'s str) -> impl FnMut(NodeId) -> Result<(), NameError> + 's {
        move |node| self.allow(tree, node, principal, &[Right::Traverse])
    }

    fn allow_bind(&self, principal: &str, path: &str, right: Right) -> Result<(), NameError> {
        self.access.bind_rule(principal, path, right).map_err(|refusal| refused(principal, path, &refusal))
    }

    fn allow_change(&self, tree: &Names, place: &Place, principal: &str, right: Right) -> Result<(), NameError> {
        let by_rules = self.access.change_rule(principal, &place.path, right);
        let allowed = by_rules.and_then(|()| self.check_place(tree, place, principal, &[right]));
        allowed.map_err(|refusal| refused(principal, &place.path, &refusal))
    }

    /// Checks that the ACL governing a node grants the principal one of these rights.
    fn allow(&self, tree: &Names, node: NodeId, principal: &str, rights: &[Right]) -> Result<(), NameError> {
        let requested = self.check(tree, node, principal, rights);
        requested.map_err(|refusal| refused(principal, &tree.path_of(node), &refusal))
    }

    /// Checks a name that may not exist yet, by the ACL that it would be created with.
    fn check_place(&self, tree: &Names, place: &Place, principal: &str, rights: &[Right]) -> Result<(), Refusal> {
        match tree.list_on_creation(place) {
            Some(_) if is_for_registrar(rights) && tree.former_registrar(place) == Some(principal) => Ok(()),
            Some(list) => self.access.check(principal, Some((&**list, || place.path.clone())), rights),
            None => self.check(tree, place.nearest, principal, rights),
        }
    }

    fn check(&self, tree: &Names, node: NodeId, principal: &str, rights: &[Right]) -> Result<(), Refusal> {
        if is_for_registrar(rights) && tree.registrar_of(node) == Some(principal) {
            return Ok(());
        }
        let list = tree.list_of(node).map(|(owner, list)| (&**list, move || tree.path_of(owner)));
        self.access.check(principal, list, rights)
    }
}

/// The registrar of a name may always read and watch its ACL, which it enforces itself, and deregister and register
/// the name: otherwise an ACL could prevent an unmount.
fn is_for_registrar(rights: &[Right]) -> bool {
    rights.iter().all(|right| matches!(right, Right::Read | Right::Notify | Right::Write | Right::Register))
}

/// Records a refusal in the audit ring.
#[cold]
fn refused(principal: &str, path: &str, refusal: &Refusal) -> NameError {
    sip::audit::refused(principal, refusal.right.word(), path, &refusal.rule);
    NameError::NotPermitted
}

pub fn text(bytes: &[u8]) -> Result<&str, NameError> {
    core::str::from_utf8(bytes).map_err(|_| NameError::BadPath)
}
