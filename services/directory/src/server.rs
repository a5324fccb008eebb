//! Message loops, one task per client.

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::string::String;
use core::future::Future;

use client::answer::{CONNECT_LIMIT, within};
use client::directory_page;
use contracts::directory::{self, NameError, NodeAttributes, NodeKind, states};
use contracts::namespace_events::Change;
use contracts::service_provider::{self, ConnectError};
use principal::{Right, Rights};
use sip::Status;
use sip::channel::{AnyEndpoint, TypedEndpoint};
use sip::exheap::{ExVec, Lent};
use stdio::report;

use crate::shared::{ProviderLink, Shared, Target, text};
use crate::tree::{Listed, NodeId, Tree};

type Client = directory::Exp<states::Ready>;

/// Serves one client of the folder `root` until it closes its end.
pub async fn serve(shared: Rc<Shared>, root: NodeId, mut client: Client) {
    use directory::ExpReady;
    loop {
        client = match client.receive_async().await {
            ExpReady::Bind { path, endpoint, next } => bind(&shared, root, path, endpoint, next).await,
            ExpReady::Notify { path, events, next } => match subscribe(&shared, root, &path, events, &next) {
                Ok(()) => next.done(),
                Err(error) => next.failed(error),
            },
            ExpReady::Enumerate { path, cursor, page, next } => enumerate(&shared, root, &path, cursor, page, next),
            ExpReady::GetAttributes { path, next } => match look(&shared, root, &path, &next) {
                Ok(found) => next.attributes(found.kind, attributes(&found)),
                Err(error) => next.failed(error),
            },
            ExpReady::ReadLink { path, next } => match link_target(&shared, root, &path, &next) {
                Ok(target) => next.target(target),
                Err(error) => next.failed(error),
            },
            ExpReady::GetAcl { path, next } => match list(&shared, root, &path, &next) {
                Ok((acl, from)) => next.acl(acl, from),
                Err(error) => next.failed(error),
            },
            ExpReady::ChannelClosed(_) => return,
            change => match answer_change(&shared, root, change) {
                Some(next) => next,
                None => return,
            },
        };
    }
}

/// Handles requests that change names and reply only with success or an error.
fn answer_change(shared: &Shared, root: NodeId, change: directory::ExpReady) -> Option<Client> {
    use directory::ExpReady;
    /// Runs `$make` on behalf of the client and replies with its result.
    macro_rules! change {
        ($next:ident, $path:ident, $right:ident, $change:ident, |$tree:ident, $at:ident, $who:ident| $make:expr) => {{
            let done = peer(&$next).and_then(|$who| {
                let make = |$tree: &mut Tree<ProviderLink>, $at: &str| $make;
                shared.change(root, &$path, &$who, Right::$right, Change::$change, make)
            });
            match done {
                Ok(()) => $next.done(),
                Err(error) => $next.failed(error),
            }
        }};
    }
    Some(match change {
        ExpReady::Register { path, scope, provider, next } => {
            let link = ProviderLink::default();
            link.put(provider);
            change!(next, path, Register, Registered, |tree, at, who| {
                tree.register(root, at, scope, &who, link).map(|(_, replaced)| replaced)
            })
        }
        ExpReady::Deregister { path, next } => {
            change!(next, path, Write, Removed, |tree, at, who| tree.remove(root, at))
        }
        ExpReady::Link { path, target, next } => change!(next, path, Write, Linked, |tree, at, who| {
            text(&target).and_then(|target| tree.link(root, at, target)).map(|_| None)
        }),
        ExpReady::CreateDirectory { path, next } => {
            change!(next, path, Write, DirectoryCreated, |tree, at, who| tree.create_folder(root, at).map(|_| None))
        }
        ExpReady::SetAcl { path, acl, next } => {
            match peer(&next).and_then(|who| shared.set_list(root, &path, &who, &acl)) {
                Ok(()) => next.done(),
                Err(error) => next.failed(error),
            }
        }
        // Names live in memory only.
        ExpReady::Sync { next } => next.done(),
        // Files exist only in file systems.
        ExpReady::CreateFile { next, .. } => next.failed(NameError::NotSupported),
        ExpReady::HardLink { next, .. } => next.failed(NameError::NotSupported),
        ExpReady::Rename { next, .. } => next.failed(NameError::NotSupported),
        ExpReady::RemoveFile { next, .. } => next.failed(NameError::NotSupported),
        ExpReady::RemoveDirectory { next, .. } => next.failed(NameError::NotSupported),
        ExpReady::SetAttributes { next, .. } => next.failed(NameError::NotSupported),
        _ => return None,
    })
}

async fn bind(
    shared: &Rc<Shared>,
    root: NodeId,
    requested: ExVec<u8>,
    endpoint: AnyEndpoint,
    client: directory::Exp<states::ReadyAfterBind>,
) -> Client {
    match peer(&client).and_then(|who| shared.find(root, &requested, &who)) {
        Err(error) => client.not_bound(error, endpoint),
        Ok(Target::Folder(node)) => match endpoint.downcast::<directory::Exp<states::Start>>() {
            Ok(endpoint) => {
                sip::executor::spawn(serve(shared.clone(), node, endpoint.success()));
                client.bound()
            }
            // Folders support only the Directory contract.
            Err(endpoint) => client.not_bound(NameError::IsADirectory, endpoint),
        },
        Ok(Target::Provider { link, node, path, rest, rights }) => {
            let path = match path {
                None => requested,
                Some(text) => match client::namespace::block(&text) {
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
    // Callers queued behind a connect to an unresponsive provider time out as well.
    let Some(Some(provider)) = within(CONNECT_LIMIT, link.take()).await else {
        return client.not_bound(NameError::Unavailable, endpoint);
    };
    let rights = rights.map_or(Rights::UNDECIDED, Rights::bits);
    // Fits: a path has at most 4,096 bytes.
    let mut answer = Box::pin(provider.connect(path, rest as u32, rights, endpoint).receive_async());
    let Some(answered) = within(CONNECT_LIMIT, &mut answer).await else {
        let provided = shared.tree().path_of(node);
        report::error(format_args!(
            "{provided}: its provider has not accepted a client for {} s",
            CONNECT_LIMIT.as_secs()
        ));
        sip::executor::spawn(reclaim_late(shared.clone(), link, node, answer));
        return client.failed(NameError::Unavailable);
    };
    match settle(shared, &link, node, answered) {
        Ok(()) => client.bound(),
        Err((error, Some(endpoint))) => client.not_bound(error, endpoint),
        Err((error, None)) => client.failed(error),
    }
}

/// Waits for the provider's late reply after its client timed out, and then makes the provider available again.
async fn reclaim_late(
    shared: Rc<Shared>,
    link: ProviderLink,
    node: NodeId,
    answer: impl Future<Output = service_provider::ImpReadyAfterConnect>,
) {
    let answered = answer.await;
    drop(settle(&shared, &link, node, answered));
}

/// Releases the link after the provider's reply. On refusal, returns the error and the client's endpoint.
fn settle(
    shared: &Rc<Shared>,
    link: &ProviderLink,
    node: NodeId,
    answered: service_provider::ImpReadyAfterConnect,
) -> Result<(), (NameError, Option<AnyEndpoint>)> {
    match answered {
        service_provider::ImpReadyAfterConnect::Ack { next } => {
            link.put(next);
            Ok(())
        }
        service_provider::ImpReadyAfterConnect::Nack { error, endpoint, next } => {
            link.put(next);
            Err((name_error(error), Some(endpoint)))
        }
        service_provider::ImpReadyAfterConnect::ChannelClosed(_) => {
            link.close();
            shared.notify(Change::Unavailable, node);
            Err((NameError::Unavailable, None))
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
    sip::executor::spawn(shared.subscribe(root, path, peer(client)?, events)?);
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
    let filled = peer(&client).and_then(|who| fill_page(shared, root, path, cursor, &who, &mut page));
    match filled {
        Ok((bytes, cursor, more)) => client.page(page, bytes as u32, cursor, more),
        Err(error) => client.not_enumerated(page, error),
    }
}

/// Fills a page with the names after the node numbered `cursor`. Returns the bytes used, the next cursor and
/// whether more names follow.
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
            // An empty page would make the client retry forever.
            return if writer.used() == 0 { Err(NameError::Exhausted) } else { Ok((writer.used(), last, true)) };
        }
        last = number;
    }
    Ok((writer.used(), last, false))
}

fn attributes(found: &Listed<ProviderLink>) -> NodeAttributes {
    let permissions = match found.kind {
        NodeKind::Directory | NodeKind::Mount => 0o555,
        _ if found.provider.as_ref().is_some_and(|link| link.is_closed()) => 0,
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

fn look(
    shared: &Shared,
    root: NodeId,
    path: &[u8],
    client: &impl TypedEndpoint,
) -> Result<Listed<ProviderLink>, NameError> {
    shared.look(root, path, &peer(client)?)
}

fn link_target(
    shared: &Shared,
    root: NodeId,
    path: &[u8],
    client: &impl TypedEndpoint,
) -> Result<ExVec<u8>, NameError> {
    let link = look(shared, root, path, client)?.node;
    client::namespace::block(shared.tree().link_target(link)?).map_err(|_| NameError::Exhausted)
}

/// The ACL governing a name and the path that it is set on, both empty if there is none. For a name that does not
/// exist, the ACL that it would be created with.
fn list(
    shared: &Shared,
    root: NodeId,
    path: &[u8],
    client: &impl TypedEndpoint,
) -> Result<(ExVec<u8>, ExVec<u8>), NameError> {
    let requested = || String::from_utf8_lossy(path).into_owned();
    let (acl, from) = match look(shared, root, path, client) {
        Err(NameError::NotFound) => (shared.list_on_creation(root, path, &peer(client)?)?, requested()),
        Err(error) => return Err(error),
        Ok(Listed { node, .. }) => {
            let tree = shared.tree();
            match tree.list_of(node) {
                None => Default::default(),
                Some((own, list)) if own == node => (list.text(), requested()),
                Some((above, list)) => (list.text(), tree.path_of(above)),
            }
        }
    };
    let block = |text: &str| client::namespace::block(text).map_err(|_| NameError::Exhausted);
    Ok((block(&acl)?, block(&from)?))
}

/// The principal at the other end of the channel.
fn peer(client: &impl TypedEndpoint) -> Result<String, NameError> {
    known(sip::principal::of_peer(client))
}

/// An unknown principal is refused: a placeholder text would match patterns such as `**`.
fn known(principal: Result<String, Status>) -> Result<String, NameError> {
    principal.map_err(|_| NameError::NotPermitted)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_principal_is_refused_even_by_allow_all() {
        assert_eq!(known(Ok("cat.singularity".into())).as_deref(), Ok("cat.singularity"));
        assert_eq!(known(Err(Status::Closed)), Err(NameError::NotPermitted));
    }
}
