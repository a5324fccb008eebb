//! What all clients share, and each request's way past those who decide about access.
//!
//! Each method asks the mandatory rules, then the lists on the way and of the name itself, and does what was asked
//! only then. What is refused is noted in the audit ring. Deliberately not here: channels of clients.

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

/// The endpoint of one provider, which takes one client at a time; closed once the provider is known to have ended.
pub type ProviderLink = Rc<Pool<service_provider::Imp<states::Ready>>>;

type Names = Tree<ProviderLink>;

/// What all clients share.
pub struct Shared {
    tree: RefCell<Names>,
    watchers: Watchers,
    access: Access,
}

/// Where a bind leads.
pub enum Target {
    /// To a folder of the tree.
    Folder(NodeId),
    /// To a provider.
    Provider {
        /// The way to it.
        link: ProviderLink,
        /// Where it is registered.
        node: NodeId,
        /// The path that leads there, if a link was followed and it is not the one that was asked for.
        path: Option<String>,
        /// Where in the path its part begins.
        rest: usize,
        /// What the list that decides about the name lets the client do, if there is one: it counts below as far as
        /// the provider has none.
        rights: Option<Rights>,
    },
}

impl Shared {
    /// An empty tree under these rules, whose names have these lists from when they are made on.
    pub fn new(access: Access, first_lists: Vec<(String, Rc<List>)>) -> Shared {
        let tree = Tree::new().with_first_lists(first_lists);
        Shared { tree: RefCell::new(tree), watchers: Watchers::default(), access }
    }

    /// The tree, to look at.
    pub fn tree(&self) -> Ref<'_, Names> {
        self.tree.borrow()
    }

    /// Makes a folder at start.
    pub fn make_folder(&self, path: &str) {
        // An empty tree has room for it.
        let _ = self.tree.borrow_mut().create_folder(Names::ROOT, path);
    }

    /// Resolves a path that the principal may bind to.
    pub fn find(&self, root: NodeId, asked: &[u8], principal: &str) -> Result<Target, NameError> {
        let tree = self.tree.borrow();
        match tree.resolve_past(root, text(asked)?, &mut self.pass(&tree, principal))? {
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
                // What lies below a provider is its own to decide about; the way there was asked for.
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

    /// Makes a change of names that the principal may make, and notifies watchers.
    pub fn change(
        &self,
        root: NodeId,
        asked: &[u8],
        principal: &str,
        right: Right,
        change: Change,
        make: impl FnOnce(&mut Names, &str) -> Result<Option<ProviderLink>, NameError>,
    ) -> Result<(), NameError> {
        let asked = text(asked)?;
        let place = {
            let tree = self.tree.borrow();
            let place = tree.place_of(root, asked, &mut self.pass(&tree, principal))?;
            self.allow_change(&tree, &place, principal, right)?;
            place
        };
        // The name of what is taken out is told to those who could hear of it before.
        let removed = self.tree.borrow().list_of(place.nearest).map(|(_, list)| Rc::clone(list));
        let replaced = make(&mut self.tree.borrow_mut(), asked)?;
        if let Some(link) = replaced {
            link.close();
        }
        let tree = self.tree.borrow();
        match tree.place_of(root, asked, &mut |_| Ok(())) {
            Ok(now) if change != Change::Removed => {
                self.watchers.changed(change, &place.path, |who| self.may_observe(&tree, now.nearest, who));
            }
            _ => self.watchers.changed(change, &place.path, |who| {
                let list = removed.as_deref().map(|list| (list, String::new));
                self.access.ask(who, list, &[Right::Notify]).is_ok()
            }),
        }
        Ok(())
    }

    /// What stands at a name; a link at the end is not followed. Who may look at a folder may look at its names.
    pub fn look(&self, root: NodeId, asked: &[u8], principal: &str) -> Result<Listed<ProviderLink>, NameError> {
        let tree = self.tree.borrow();
        let found = tree.look_past(root, text(asked)?, &mut self.pass(&tree, principal))?;
        let full = tree.path_of(found.node);
        let folder = path::split_last(&full).map_or("/", |(folder, _)| if folder.is_empty() { "/" } else { folder });
        if !self.access.rules().may_bind(principal, folder) {
            self.allow_bind(principal, &full, Right::Read)?;
        }
        self.allow(&tree, found.node, principal, &[Right::Read])?;
        Ok(found)
    }

    /// The list that a name will have once it is made, for who may look at it then.
    pub fn list_before(&self, root: NodeId, asked: &[u8], principal: &str) -> Result<String, NameError> {
        let tree = self.tree.borrow();
        let place = tree.place_of(root, text(asked)?, &mut self.pass(&tree, principal))?;
        let list = tree.list_before(&place).ok_or(NameError::NotFound)?;
        self.allow_bind(principal, &tree.path_of(place.nearest), Right::Read)?;
        let allowed = self.ask_at(&tree, &place, principal, &[Right::Read]);
        allowed.map_err(|refusal| refused(principal, &place.path, &refusal))?;
        Ok(list.text())
    }

    /// The folder at a path, if the principal may see its names.
    pub fn folder_to_read(
        &self,
        tree: &Names,
        root: NodeId,
        asked: &[u8],
        principal: &str,
    ) -> Result<NodeId, NameError> {
        let Resolved::Folder(node) = tree.resolve_past(root, text(asked)?, &mut self.pass(tree, principal))? else {
            return Err(NameError::NotSupported);
        };
        self.allow_bind(principal, &tree.path_of(node), Right::Read)?;
        self.allow(tree, node, principal, &[Right::Read])?;
        Ok(node)
    }

    /// Gives a name a list of its own, or none where the text has no entry.
    pub fn set_list(&self, root: NodeId, asked: &[u8], principal: &str, acl: &[u8]) -> Result<(), NameError> {
        let node = {
            let tree = self.tree.borrow();
            let node = tree.look_past(root, text(asked)?, &mut self.pass(&tree, principal))?.node;
            let place = Place { path: tree.path_of(node), nearest: node };
            self.allow_change(&tree, &place, principal, Right::SetAcl)?;
            node
        };
        let acl = Acl::from_bytes(acl).map_err(|_| NameError::BadAcl)?;
        let list = (!acl.is_empty()).then(|| self.access.list(acl));
        if let Some(old) = self.tree.borrow_mut().set_list(node, list)? {
            self.access.forget(&old);
        }
        self.tell(Change::AclChanged, node);
        Ok(())
    }

    /// Subscribes the principal to changes at or below a path. The returned future serves the subscription.
    pub fn subscribe(
        &self,
        root: NodeId,
        asked: &[u8],
        principal: String,
        events: namespace_events::Exp<namespace_events::states::Ready>,
    ) -> Result<impl Future<Output = ()> + use<>, NameError> {
        let tree = self.tree.borrow();
        let asked = text(asked)?;
        let mut pass = self.pass(&tree, &principal);
        let place = match path::parts(asked).next() {
            None => Place { path: tree.path_of(root), nearest: root },
            Some(_) => tree.place_of(root, asked, &mut pass)?,
        };
        drop(pass);
        self.allow_bind(&principal, &place.path, Right::Notify)?;
        let allowed = self.ask_at(&tree, &place, &principal, &[Right::Notify]);
        allowed.map_err(|refusal| refused(&principal, &place.path, &refusal))?;
        self.watchers.add(principal, tree.path_of(root), place.path, events).map_err(|_| NameError::Exhausted)
    }

    /// Notifies all watchers that may observe the node.
    pub fn tell(&self, change: Change, node: NodeId) {
        let tree = self.tree.borrow();
        self.watchers.changed(change, &tree.path_of(node), |who| self.may_observe(&tree, node, who));
    }

    fn may_observe(&self, tree: &Names, node: NodeId, principal: &str) -> bool {
        self.ask(tree, node, principal, &[Right::Notify]).is_ok()
    }

    /// Who is asked at each folder on the way: its list.
    fn pass<'s>(&'s self, tree: &'s Names, principal: &'s str) -> impl FnMut(NodeId) -> Result<(), NameError> + 's {
        move |node| self.allow(tree, node, principal, &[Right::Traverse])
    }

    fn allow_bind(&self, principal: &str, path: &str, right: Right) -> Result<(), NameError> {
        self.access.bind_rule(principal, path, right).map_err(|refusal| refused(principal, path, &refusal))
    }

    fn allow_change(&self, tree: &Names, place: &Place, principal: &str, right: Right) -> Result<(), NameError> {
        let by_rules = self.access.change_rule(principal, &place.path, right);
        let allowed = by_rules.and_then(|()| self.ask_at(tree, place, principal, &[right]));
        allowed.map_err(|refusal| refused(principal, &place.path, &refusal))
    }

    /// Checks that the list governing a node grants the principal one of these rights.
    fn allow(&self, tree: &Names, node: NodeId, principal: &str, rights: &[Right]) -> Result<(), NameError> {
        let asked = self.ask(tree, node, principal, rights);
        asked.map_err(|refusal| refused(principal, &tree.path_of(node), &refusal))
    }

    /// Checks a name that may not exist yet, by the list that it will have.
    fn ask_at(&self, tree: &Names, place: &Place, principal: &str, rights: &[Right]) -> Result<(), Refusal> {
        match tree.list_before(place) {
            Some(_) if is_of_provider(rights) && tree.registrar_before(place) == Some(principal) => Ok(()),
            Some(list) => self.access.ask(principal, Some((&**list, || place.path.clone())), rights),
            None => self.ask(tree, place.nearest, principal, rights),
        }
    }

    fn ask(&self, tree: &Names, node: NodeId, principal: &str, rights: &[Right]) -> Result<(), Refusal> {
        if is_of_provider(rights) && tree.registrar_of(node) == Some(principal) {
            return Ok(());
        }
        let list = tree.list_of(node).map(|(owner, list)| (&**list, move || tree.path_of(owner)));
        self.access.ask(principal, list, rights)
    }
}

/// The server of a name may always see its list and watch it, to apply it itself, and may deregister and register the
/// name: otherwise a list could keep a volume from being unmounted.
fn is_of_provider(rights: &[Right]) -> bool {
    rights.iter().all(|right| matches!(right, Right::Read | Right::Notify | Right::Write | Right::Register))
}

/// Notes what is refused.
#[cold]
fn refused(principal: &str, path: &str, refusal: &Refusal) -> NameError {
    sip::audit::refused(principal, refusal.right.word(), path, &refusal.rule);
    NameError::NotPermitted
}

/// A path as text.
pub fn text(bytes: &[u8]) -> Result<&str, NameError> {
    core::str::from_utf8(bytes).map_err(|_| NameError::BadPath)
}
