//! The message loops: one task for each client.

use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;

use contracts::directory::{self, NameError, NodeAttributes, NodeKind, states};
use contracts::directory_page;
use contracts::namespace_events::Change;
use contracts::service_provider::{self, ConnectError};
use principal::{Right, Rights};
use sip::channel::{AnyEndpoint, TypedEndpoint};
use sip::exheap::{ExVec, Lent};

use crate::link::ProviderLink;
use crate::shared::{Shared, Target, text};
use crate::tree::{Listed, NodeId, Tree};

type Client = directory::Exp<states::Ready>;

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
                match shared.change(root, &path, &who, Right::Register, Change::Registered, make) {
                    Ok(()) => next.done(),
                    Err(error) => next.failed(error),
                }
            }
            ExpReady::Deregister { path, next } => {
                let make = |tree: &mut Tree<ProviderLink>, path: &str| tree.remove(root, path);
                match shared.change(root, &path, &principal(&next), Right::Write, Change::Removed, make) {
                    Ok(()) => next.done(),
                    Err(error) => next.failed(error),
                }
            }
            ExpReady::Link { path, target, next } => {
                let make = |tree: &mut Tree<ProviderLink>, path: &str| {
                    text(&target).and_then(|target| tree.link(root, path, target)).map(|_| None)
                };
                match shared.change(root, &path, &principal(&next), Right::Write, Change::Linked, make) {
                    Ok(()) => next.done(),
                    Err(error) => next.failed(error),
                }
            }
            ExpReady::CreateDirectory { path, next } => {
                let make = |tree: &mut Tree<ProviderLink>, path: &str| tree.create_folder(root, path).map(|_| None);
                match shared.change(root, &path, &principal(&next), Right::Write, Change::DirectoryCreated, make) {
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
            ExpReady::GetAttributes { path, next } => match shared.look(root, &path, &principal(&next)) {
                Ok(found) => next.attributes(found.kind, attributes(&found)),
                Err(error) => next.failed(error),
            },
            ExpReady::ReadLink { path, next } => match link_target(&shared, root, &path, &principal(&next)) {
                Ok(target) => next.target(target),
                Err(error) => next.failed(error),
            },
            ExpReady::SetAcl { path, acl, next } => match shared.set_list(root, &path, &principal(&next), &acl) {
                Ok(()) => next.done(),
                Err(error) => next.failed(error),
            },
            ExpReady::GetAcl { path, next } => match list(&shared, root, &path, &principal(&next)) {
                Ok((acl, from)) => next.acl(acl, from),
                Err(error) => next.failed(error),
            },
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
        Ok(Target::Provider { link, node, path, rest, rights }) => {
            let path = match path {
                None => asked,
                Some(text) => match contracts::namespace::block(&text) {
                    Ok(block) => block,
                    Err(_) => return client.not_bound(NameError::Exhausted, endpoint),
                },
            };
            connect(shared, link, node, (path, rest), rights, endpoint, client).await
        }
    }
}

async fn connect(
    shared: &Rc<Shared>,
    link: ProviderLink,
    node: NodeId,
    (path, rest): (ExVec<u8>, usize),
    rights: Option<Rights>,
    endpoint: AnyEndpoint,
    client: directory::Exp<states::ReadyAfterBind>,
) -> Client {
    let Some(provider) = link.acquire().await else {
        return client.not_bound(NameError::Unavailable, endpoint);
    };
    let rights = rights.map_or(Rights::UNDECIDED, Rights::bits);
    // A path has at most 4,096 bytes.
    match provider.connect(path, rest as u32, rights, endpoint).receive_async().await {
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
            shared.tell(Change::Unavailable, node);
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
    sip::executor::spawn(shared.subscribe(root, path, principal(client), events)?);
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
    match fill_page(shared, root, path, cursor, &principal(&client), &mut page) {
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
    principal: &str,
    page: &mut [u8],
) -> Result<(usize, u64, bool), NameError> {
    let tree = shared.tree();
    let folder = shared.folder_to_read(&tree, root, path, principal)?;
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

fn link_target(shared: &Shared, root: NodeId, path: &[u8], principal: &str) -> Result<ExVec<u8>, NameError> {
    let link = shared.look(root, path, principal)?.node;
    contracts::namespace::block(shared.tree().link_target(link)?).map_err(|_| NameError::Exhausted)
}

/// The list that decides about a name, and whose it is; both are empty where none does.
fn list(shared: &Shared, root: NodeId, path: &[u8], principal: &str) -> Result<(ExVec<u8>, ExVec<u8>), NameError> {
    let node = shared.look(root, path, principal)?.node;
    let tree = shared.tree();
    let (acl, from) = match tree.list_of(node) {
        None => Default::default(),
        Some((own, list)) if own == node => (list.text(), String::from_utf8_lossy(path).into_owned()),
        Some((above, list)) => (list.text(), tree.path_of(above)),
    };
    let block = |text: &str| contracts::namespace::block(text).map_err(|_| NameError::Exhausted);
    Ok((block(&acl)?, block(&from)?))
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
