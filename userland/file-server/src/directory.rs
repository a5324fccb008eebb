//! Serving one client of one directory.

use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;

use contracts::directory::{self, CreateMode, ExpReady, NameError, NodeAttributes, NodeChanges, NodeKind, states};
use principal::Right;
use sip::executor;
use sip::exheap::ExVec;

use crate::client::Client;
use crate::file;
use crate::page::Page;
use crate::paths::{check_name, parent, text};
use crate::volume::{Opened, Request, Volume};

/// Opens the directory that the path leads to, and serves it until the client closes.
pub(crate) async fn serve<V: Volume>(
    volume: Rc<V>,
    base: Rc<V::Directory>,
    path: Vec<u8>,
    client: directory::Exp<states::Start>,
) {
    let opened = Caller::new(&*volume, &*base, &client).open_directory(&path).await;
    drop(base);
    let directory = match opened {
        Ok(directory) => Rc::new(directory),
        Err(error) => {
            drop(client.refused(error));
            return;
        }
    };
    let mut client = client.success();
    while let Some(next) = answer(&volume, &directory, client).await {
        client = next;
    }
}

/// Answers one request; `None` when the client has closed.
async fn answer<V: Volume>(
    volume: &Rc<V>,
    directory: &Rc<V::Directory>,
    client: directory::Exp<states::Ready>,
) -> Option<directory::Exp<states::Ready>> {
    Some(match client.receive_async().await {
        ExpReady::Bind { path, endpoint, next } => match crate::open(volume, directory, &path, endpoint) {
            Ok(()) => next.bound(),
            Err(endpoint) => next.not_bound(NameError::WrongContract, endpoint),
        },
        ExpReady::Enumerate { path, cursor, mut page, next } => {
            match Caller::new(&**volume, &**directory, &next).enumerate(&path, cursor, &mut page).await {
                Ok((bytes, cursor, more)) => next.page(page, bytes, cursor, more),
                Err(error) => next.not_enumerated(page, error),
            }
        }
        ExpReady::GetAttributes { path, next } => {
            match Caller::new(&**volume, &**directory, &next).attributes(&path).await {
                Ok((kind, attributes)) => next.attributes(kind, attributes),
                Err(error) => next.failed(error),
            }
        }
        ExpReady::ReadLink { path, next } => {
            let target = Caller::new(&**volume, &**directory, &next).link_target(&path).await;
            match target.and_then(|target| block(&target)) {
                Ok(target) => next.target(target),
                Err(error) => next.failed(error),
            }
        }
        ExpReady::GetAcl { path, next } => {
            let acl = Caller::new(&**volume, &**directory, &next).acl(&path).await;
            match acl.and_then(|(acl, from)| Ok((block(&acl)?, block(&from)?))) {
                Ok((acl, from)) => next.acl(acl, from),
                Err(error) => next.failed(error),
            }
        }
        ExpReady::CreateFile { path, permissions, mode, file, next } => {
            let caller = Caller::new(&**volume, &**directory, &next);
            match caller.create_file(&path, permissions, mode, &file).await {
                Ok(opened) => {
                    drop(executor::spawn(file::serve_opened(Rc::clone(volume), opened, file)));
                    next.done()
                }
                Err(error) => next.failed(error),
            }
        }
        ExpReady::Notify { path, events, next } => {
            let path = Caller::new(&**volume, &**directory, &next).path(&path, &[Right::Notify]);
            let done = match path {
                Ok(path) => volume.notify(directory, path, events).await.map_err(|error| volume.name_error(error)),
                Err(error) => Err(error),
            };
            match done {
                Ok(()) => next.done(),
                Err(error) => next.failed(error),
            }
        }
        ExpReady::ChannelClosed(_) => return None,
        change => answer_change(&**volume, &**directory, change).await?,
    })
}

/// Answers a request that only succeeds or fails.
async fn answer_change<V: Volume>(
    volume: &V,
    directory: &V::Directory,
    change: ExpReady,
) -> Option<directory::Exp<states::Ready>> {
    macro_rules! answer {
        ($next:ident, $caller:ident => $done:expr) => {{
            let $caller = Caller::new(volume, directory, &$next);
            match $done {
                Ok(()) => $next.done(),
                Err(error) => $next.failed(error),
            }
        }};
    }
    Some(match change {
        ExpReady::Link { path, target, next } => answer!(next, caller => caller.create_link(&path, &target).await),
        ExpReady::CreateDirectory { path, next } => answer!(next, caller => caller.create_directories(&path).await),
        ExpReady::HardLink { existing, path, next } => {
            answer!(next, caller => caller.create_hard_link(&existing, &path).await)
        }
        ExpReady::Rename { from, to, next } => answer!(next, caller => caller.rename(&from, &to).await),
        ExpReady::RemoveFile { path, next } => answer!(next, caller => caller.remove_file(&path).await),
        ExpReady::RemoveDirectory { path, next } => answer!(next, caller => caller.remove_directory(&path).await),
        ExpReady::SetAttributes { path, changes, next } => {
            answer!(next, caller => caller.set_attributes(&path, changes).await)
        }
        ExpReady::SetAcl { path, acl, next } => answer!(next, caller => caller.set_acl(&path, &acl).await),
        ExpReady::Sync { next } => answer!(next, caller => caller.result(volume.sync().await)),
        // The directory service has the names of services.
        ExpReady::Register { next, .. } => next.failed(NameError::NotSupported),
        ExpReady::Deregister { next, .. } => next.failed(NameError::NotSupported),
        _ => return None,
    })
}

fn block(text: &str) -> Result<ExVec<u8>, NameError> {
    ExVec::from_slice(text.as_bytes()).map_err(|_| NameError::Exhausted)
}

/// A request to a volume.
pub(crate) struct Caller<'a, V: Volume> {
    volume: &'a V,
    request: Request<'a, V::Directory>,
}

impl<'a, V: Volume> Caller<'a, V> {
    pub(crate) fn new(volume: &'a V, directory: &'a V::Directory, client: &'a dyn Client) -> Caller<'a, V> {
        Caller { volume, request: Request { directory, client } }
    }

    fn result<T>(&self, result: Result<T, V::Error>) -> Result<T, NameError> {
        result.map_err(|error| self.volume.name_error(error))
    }

    /// Checks that the client has one of the rights.
    pub(crate) fn check(&self, path: &str, rights: &[Right]) -> Result<(), NameError> {
        if self.volume.permits(self.request, path, rights) { Ok(()) } else { Err(NameError::NotPermitted) }
    }

    /// Checks a path, and that the client has one of the rights.
    fn path<'p>(&self, path: &'p [u8], rights: &[Right]) -> Result<&'p str, NameError> {
        let path = text(path).ok_or(NameError::BadPath)?;
        self.check(path, rights)?;
        Ok(path)
    }

    /// Checks the path of a name that is created, renamed or removed, as [`check_name`] does.
    fn name<'p>(&self, path: &'p [u8], itself: NameError) -> Result<&'p str, NameError> {
        let path = self.path(path, &[Right::Write])?;
        check_name(path, itself)?;
        Ok(path)
    }

    async fn open_directory(&self, path: &[u8]) -> Result<V::Directory, NameError> {
        let path = self.path(path, &[Right::Traverse, Right::Read])?;
        self.result(self.volume.open_directory(self.request, path).await)
    }

    async fn enumerate(&self, path: &[u8], cursor: u64, page: &mut [u8]) -> Result<(u32, u64, bool), NameError> {
        let path = self.path(path, &[Right::Read])?;
        let mut page = Page::new(page);
        let listed = self.volume.enumerate(self.request, path, cursor, &mut page).await;
        page.finish(self.result(listed)?)
    }

    async fn attributes(&self, path: &[u8]) -> Result<(NodeKind, NodeAttributes), NameError> {
        let path = self.path(path, &[Right::Read])?;
        self.result(self.volume.attributes(self.request, path).await)
    }

    async fn link_target(&self, path: &[u8]) -> Result<String, NameError> {
        let path = self.path(path, &[Right::Read])?;
        self.result(self.volume.link_target(self.request, path).await)
    }

    async fn acl(&self, path: &[u8]) -> Result<(String, String), NameError> {
        let path = self.path(path, &[Right::Read])?;
        self.result(self.volume.acl(self.request, path).await)
    }

    /// Opens a file for `opener`, and creates it first if it does not exist or the mode wants a new one.
    pub(crate) async fn create_file(
        &self,
        path: &[u8],
        permissions: u32,
        mode: CreateMode,
        opener: &dyn Client,
    ) -> Result<Opened<V::File>, NameError> {
        let path = text(path).ok_or(NameError::BadPath)?;
        if mode == CreateMode::OpenExisting {
            // A client that may not create files opens those that exist.
            self.check(path, &[Right::Read, Right::Write])?;
            match self.result(self.volume.open_file(self.request, path, opener).await) {
                Err(NameError::NotFound) => {}
                opened => return opened,
            }
        }
        self.check(path, &[Right::Write])?;
        check_name(path, NameError::AlreadyExists)?;
        match self.result(self.volume.create_file(self.request, path, permissions, opener).await) {
            // Another client was faster, or a link leads to nothing.
            Err(NameError::AlreadyExists) if mode == CreateMode::OpenExisting => {
                self.result(self.volume.open_file(self.request, path, opener).await)
            }
            created => created,
        }
    }

    /// Creates a directory and its missing ancestors.
    pub(crate) async fn create_directories(&self, path: &[u8]) -> Result<(), NameError> {
        let path = self.name(path, NameError::AlreadyExists)?;
        // The paths that have no parent yet, the longest first.
        let mut missing = Vec::new();
        let mut next = path;
        loop {
            let created = self.result(self.volume.create_directory(self.request, next).await);
            match (created, parent(next)) {
                (Err(NameError::NotFound), Some(parent)) => {
                    missing.push(next);
                    next = parent;
                }
                (Ok(()), _) => break,
                // Another client was faster.
                (Err(NameError::AlreadyExists), _) if !missing.is_empty() => break,
                (Err(error), _) => return Err(error),
            }
        }
        while let Some(next) = missing.pop() {
            match self.result(self.volume.create_directory(self.request, next).await) {
                Err(NameError::AlreadyExists) if !missing.is_empty() => {}
                created => created?,
            }
        }
        Ok(())
    }

    async fn create_link(&self, path: &[u8], target: &[u8]) -> Result<(), NameError> {
        let path = self.name(path, NameError::AlreadyExists)?;
        let target = core::str::from_utf8(target).map_err(|_| NameError::BadPath)?;
        self.result(self.volume.create_link(self.request, path, target).await)
    }

    async fn create_hard_link(&self, existing: &[u8], path: &[u8]) -> Result<(), NameError> {
        let existing = self.path(existing, &[Right::Write])?;
        let path = self.name(path, NameError::AlreadyExists)?;
        self.result(self.volume.create_hard_link(self.request, existing, path).await)
    }

    async fn rename(&self, from: &[u8], to: &[u8]) -> Result<(), NameError> {
        let from = self.name(from, NameError::NotPermitted)?;
        let to = self.name(to, NameError::NotPermitted)?;
        self.result(self.volume.rename(self.request, from, to).await)
    }

    pub(crate) async fn remove_file(&self, path: &[u8]) -> Result<(), NameError> {
        let path = self.name(path, NameError::NotPermitted)?;
        self.result(self.volume.remove_file(self.request, path).await)
    }

    async fn remove_directory(&self, path: &[u8]) -> Result<(), NameError> {
        let path = self.name(path, NameError::NotPermitted)?;
        self.result(self.volume.remove_directory(self.request, path).await)
    }

    async fn set_attributes(&self, path: &[u8], changes: NodeChanges) -> Result<(), NameError> {
        let path = self.path(path, &[Right::Write])?;
        self.result(self.volume.set_attributes(self.request, path, changes.into()).await)
    }

    async fn set_acl(&self, path: &[u8], acl: &[u8]) -> Result<(), NameError> {
        // Only volumes with lists set one, and these check the right themselves.
        let path = text(path).ok_or(NameError::BadPath)?;
        self.result(self.volume.set_acl(self.request, path, acl).await)
    }
}
