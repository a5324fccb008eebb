//! The message loops: one task for each client.

use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use core::cell::RefCell;

use contracts::directory::{self, NameError, NodeAttributes, NodeKind, states};
use contracts::namespace_events::Change;
use contracts::service_provider::{self, ConnectError};
use contracts::{directory_page, path};
use principal::Rights;
use sip::channel::{AnyEndpoint, TypedEndpoint};
use sip::exheap::{ExVec, Lent};

use crate::link::ProviderLink;
use crate::rules::Rules;
use crate::tree::{Listed, NodeId, Resolved, Tree};
use crate::watchers::Watchers;

type Client = directory::Exp<states::Ready>;

/// What all clients share.
pub struct Shared {
    tree: RefCell<Tree<ProviderLink>>,
    watchers: Watchers,
    rules: Rules,
}

/// Where a bind goes.
enum Target {
    Folder(NodeId),
    Provider { link: ProviderLink, node: NodeId, path: Option<String>, rest: usize },
}

impl Shared {
    /// An empty tree under these rules.
    pub fn new(rules: Rules) -> Shared {
        Shared { tree: RefCell::new(Tree::new()), watchers: Watchers::default(), rules }
    }

    /// Makes a folder at start.
    pub fn make_folder(&self, path: &str) {
        // An empty tree has room for it.
        let _ = self.tree.borrow_mut().create_folder(Tree::<ProviderLink>::ROOT, path);
    }

    /// Where the path leads, if the principal may bind to what is there.
    fn find(&self, root: NodeId, asked: &[u8], principal: &str) -> Result<Target, NameError> {
        let tree = self.tree.borrow();
        match tree.resolve(root, text(asked)?)? {
            Resolved::Folder(node) => {
                self.allow_bind(principal, &tree.path_of(node))?;
                Ok(Target::Folder(node))
            }
            Resolved::Provider { provider, node, path, rest } => {
                let mut full = tree.path_of(node);
                if rest < path.len() {
                    full = path::join(&full, &path[rest..]);
                }
                self.allow_bind(principal, &full)?;
                let path = match path {
                    alloc::borrow::Cow::Borrowed(_) => None,
                    alloc::borrow::Cow::Owned(path) => Some(path),
                };
                Ok(Target::Provider { link: provider, node, path, rest })
            }
        }
    }

    fn allow_bind(&self, principal: &str, path: &str) -> Result<(), NameError> {
        if self.rules.may_bind(principal, path) { Ok(()) } else { Err(NameError::NotPermitted) }
    }

    /// Does a change of names that the principal may make, and tells of it.
    fn change(
        &self,
        root: NodeId,
        asked: &[u8],
        principal: &str,
        change: Change,
        make: impl FnOnce(&mut Tree<ProviderLink>, &str) -> Result<Option<ProviderLink>, NameError>,
    ) -> Result<(), NameError> {
        let asked = text(asked)?;
        let full = self.tree.borrow().place_of(root, asked)?;
        if !self.rules.may_change(principal, &full) {
            return Err(NameError::NotPermitted);
        }
        let replaced = make(&mut self.tree.borrow_mut(), asked)?;
        if let Some(link) = replaced {
            link.gone();
        }
        self.watchers.changed(change, &full);
        Ok(())
    }
}

/// Serves one client of the folder `root` until it closes its end.
pub async fn serve(shared: Rc<Shared>, root: NodeId, mut client: Client) {
    use directory::ExpReady;
    loop {
        client = match client.receive_async().await {
            ExpReady::Bind { path, endpoint, next } => bind(&shared, root, path, endpoint, next).await,
            ExpReady::Register { path, scope, provider, next } => {
                let link = ProviderLink::new(provider);
                let who = principal(&next);
                let make = |tree: &mut Tree<ProviderLink>, path: &str| {
                    tree.register(root, path, scope, &who, link).map(|(_, replaced)| replaced)
                };
                match shared.change(root, &path, &who, Change::Registered, make) {
                    Ok(()) => next.done(),
                    Err(error) => next.failed(error),
                }
            }
            ExpReady::Deregister { path, next } => {
                let make = |tree: &mut Tree<ProviderLink>, path: &str| tree.remove(root, path);
                match shared.change(root, &path, &principal(&next), Change::Removed, make) {
                    Ok(()) => next.done(),
                    Err(error) => next.failed(error),
                }
            }
            ExpReady::Link { path, target, next } => {
                let make = |tree: &mut Tree<ProviderLink>, path: &str| {
                    text(&target).and_then(|target| tree.link(root, path, target)).map(|_| None)
                };
                match shared.change(root, &path, &principal(&next), Change::Linked, make) {
                    Ok(()) => next.done(),
                    Err(error) => next.failed(error),
                }
            }
            ExpReady::CreateDirectory { path, next } => {
                let make = |tree: &mut Tree<ProviderLink>, path: &str| tree.create_folder(root, path).map(|_| None);
                match shared.change(root, &path, &principal(&next), Change::DirectoryCreated, make) {
                    Ok(()) => next.done(),
                    Err(error) => next.failed(error),
                }
            }
            // What has a content is made and changed in the folders of file systems.
            ExpReady::CreateFile { next, .. } => next.failed(NameError::NotSupported),
            ExpReady::HardLink { next, .. } => next.failed(NameError::NotSupported),
            ExpReady::Rename { next, .. } => next.failed(NameError::NotSupported),
            ExpReady::RemoveFile { next, .. } => next.failed(NameError::NotSupported),
            ExpReady::RemoveDirectory { next, .. } => next.failed(NameError::NotSupported),
            ExpReady::SetAttributes { next, .. } => next.failed(NameError::NotSupported),
            // Names are kept in memory alone.
            ExpReady::Sync { next } => next.done(),
            ExpReady::Notify { path, events, next } => match subscribe(&shared, root, &path, events, &next) {
                Ok(()) => next.done(),
                Err(error) => next.failed(error),
            },
            ExpReady::Enumerate { path, cursor, page, next } => enumerate(&shared, root, &path, cursor, page, next),
            ExpReady::GetAttributes { path, next } => {
                match text(&path).and_then(|path| shared.tree.borrow().look(root, path)) {
                    Ok(found) => next.attributes(found.kind, attributes(&found)),
                    Err(error) => next.failed(error),
                }
            }
            ExpReady::ReadLink { path, next } => match link_target(&shared, root, &path) {
                Ok(target) => next.target(target),
                Err(error) => next.failed(error),
            },
            ExpReady::SetAcl { next, .. } => next.failed(NameError::NotSupported),
            ExpReady::GetAcl { next, .. } => next.failed(NameError::NotSupported),
            ExpReady::ChannelClosed(_) => return,
        };
    }
}

async fn bind(
    shared: &Rc<Shared>,
    root: NodeId,
    asked: ExVec<u8>,
    endpoint: AnyEndpoint,
    client: directory::Exp<states::ReadyAfterBind>,
) -> Client {
    let target = shared.find(root, &asked, &principal(&client));
    match target {
        Err(error) => client.not_bound(error, endpoint),
        Ok(Target::Folder(node)) => match endpoint.downcast::<directory::Exp<states::Start>>() {
            Ok(endpoint) => {
                sip::executor::spawn(serve(shared.clone(), node, endpoint.success()));
                client.bound()
            }
            // A folder is opened under the Directory contract alone.
            Err(endpoint) => client.not_bound(NameError::IsADirectory, endpoint),
        },
        Ok(Target::Provider { link, node, path, rest }) => {
            let path = match path {
                None => asked,
                Some(text) => match contracts::namespace::block(&text) {
                    Ok(block) => block,
                    Err(_) => return client.not_bound(NameError::Exhausted, endpoint),
                },
            };
            connect(shared, link, node, (path, rest), endpoint, client).await
        }
    }
}

async fn connect(
    shared: &Rc<Shared>,
    link: ProviderLink,
    node: NodeId,
    (path, rest): (ExVec<u8>, usize),
    endpoint: AnyEndpoint,
    client: directory::Exp<states::ReadyAfterBind>,
) -> Client {
    let Some(provider) = link.acquire().await else {
        return client.not_bound(NameError::Unavailable, endpoint);
    };
    // A path has at most 4,096 bytes.
    match provider.connect(path, rest as u32, Rights::UNDECIDED, endpoint).receive_async().await {
        service_provider::ImpReadyAfterConnect::Ack { next } => {
            link.release(next);
            client.bound()
        }
        service_provider::ImpReadyAfterConnect::Nack { error, endpoint, next } => {
            link.release(next);
            client.not_bound(name_error(error), endpoint)
        }
        service_provider::ImpReadyAfterConnect::ChannelClosed(_) => {
            link.gone();
            let full = shared.tree.borrow().path_of(node);
            shared.watchers.changed(Change::Unavailable, &full);
            client.failed(NameError::Unavailable)
        }
    }
}

fn subscribe(
    shared: &Rc<Shared>,
    root: NodeId,
    path: &[u8],
    events: contracts::namespace_events::Exp<contracts::namespace_events::states::Ready>,
    client: &directory::Exp<states::ReadyAfterNotify>,
) -> Result<(), NameError> {
    let view = shared.tree.borrow().path_of(root);
    let prefix = path::join(&view, text(path)?);
    shared.allow_bind(&principal(client), &prefix)?;
    let task = shared.watchers.add(view, prefix, events).map_err(|_| NameError::Exhausted)?;
    sip::executor::spawn(task);
    Ok(())
}

fn enumerate(
    shared: &Shared,
    root: NodeId,
    path: &[u8],
    cursor: u64,
    mut page: Lent<ExVec<u8>>,
    client: directory::Exp<states::ReadyAfterEnumerate>,
) -> Client {
    match fill_page(shared, root, path, cursor, &mut page) {
        Ok((bytes, cursor, more)) => client.page(page, bytes as u32, cursor, more),
        Err(error) => client.not_enumerated(page, error),
    }
}

/// Fills a page with names that come after the one whose node number is `cursor`. Gives the bytes used,
/// the next cursor and whether there are more.
fn fill_page(
    shared: &Shared,
    root: NodeId,
    path: &[u8],
    cursor: u64,
    page: &mut [u8],
) -> Result<(usize, u64, bool), NameError> {
    let tree = shared.tree.borrow();
    let folder = match tree.resolve(root, text(path)?)? {
        Resolved::Folder(node) => node,
        Resolved::Provider { .. } => return Err(NameError::NotSupported),
    };
    let after = match cursor {
        0 => None,
        number => Some(tree.name_numbered(number).ok_or(NameError::NotFound)?),
    };
    let mut writer = directory_page::PageWriter::new(page);
    let mut last = cursor;
    for found in tree.list_after(folder, after)? {
        let number = found.node.number();
        if writer.push(found.kind, number, found.name.as_bytes()).is_err() {
            // A page that has no room for one name would make its client ask for ever.
            return if writer.used() == 0 { Err(NameError::Exhausted) } else { Ok((writer.used(), last, true)) };
        }
        last = number;
    }
    Ok((writer.used(), last, false))
}

fn attributes(found: &Listed<ProviderLink>) -> NodeAttributes {
    let permissions = match found.kind {
        NodeKind::Directory | NodeKind::Mount => 0o555,
        _ if found.provider.as_ref().is_some_and(ProviderLink::is_gone) => 0,
        _ => 0o444,
    };
    NodeAttributes {
        size_bytes: 0,
        allocated_bytes: 0,
        node: found.node.number(),
        modified_s: 0,
        accessed_s: 0,
        changed_s: 0,
        permissions,
        links: 1,
        owner: 0,
        group: 0,
    }
}

fn link_target(shared: &Shared, root: NodeId, path: &[u8]) -> Result<ExVec<u8>, NameError> {
    let tree = shared.tree.borrow();
    let target = tree.link_target(root, text(path)?)?;
    contracts::namespace::block(target).map_err(|_| NameError::Exhausted)
}

fn text(bytes: &[u8]) -> Result<&str, NameError> {
    core::str::from_utf8(bytes).map_err(|_| NameError::BadPath)
}

/// Who speaks at the other end; where the kernel cannot say, somebody whom no rule knows.
fn principal(client: &impl TypedEndpoint) -> String {
    sip::principal::of_peer(client).unwrap_or_else(|status| format!("unknown: {}", status.text()))
}

fn name_error(error: ConnectError) -> NameError {
    match error {
        ConnectError::NotFound => NameError::NotFound,
        ConnectError::NotPermitted => NameError::NotPermitted,
        ConnectError::WrongContract => NameError::WrongContract,
        ConnectError::NotADirectory => NameError::NotADirectory,
        ConnectError::Busy | ConnectError::Exhausted => NameError::Exhausted,
    }
}
