//! Tests of the request loops over an in-memory volume.

use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use core::cell::{Cell, RefCell};
use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};

use contracts::directory::{CreateMode, NameError, NodeAttributes, NodeChanges, NodeKind, NodeParts};
use contracts::file::FileError;
use contracts::namespace_events;
use principal::{Right, Rights};

use crate::directory::Caller;
use crate::{AttributeChanges, Client, Listed, Locks, OpenRights, Opened, Page, Partial, Permit, Request, Volume};

/// Directories, files and links that lead nowhere, by path.
struct Memory {
    nodes: RefCell<BTreeMap<String, NodeKind>>,
    rights: Rights,
    locks: Locks,
    /// A file that another client creates after it was not found.
    race: Cell<Option<&'static str>>,
}

struct Anyone;

impl Client for Anyone {
    fn principal(&self) -> Option<String> {
        None
    }
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("the volume in memory never waits"),
    }
}

fn memory(nodes: &[(&str, NodeKind)]) -> Memory {
    let nodes = nodes.iter().map(|(path, kind)| (path.to_string(), *kind)).collect();
    Memory { nodes: RefCell::new(nodes), rights: Rights::ALL, locks: Locks::default(), race: Cell::new(None) }
}

impl Memory {
    fn kind(&self, path: &str) -> Result<NodeKind, NameError> {
        let path = path.trim_matches('/');
        if path.is_empty() {
            return Ok(NodeKind::Directory);
        }
        self.place(path)?;
        self.nodes.borrow().get(path).copied().ok_or(NameError::NotFound)
    }

    fn place(&self, path: &str) -> Result<(), NameError> {
        let parent = path.trim_matches('/').rsplit_once('/').map_or("", |(parent, _)| parent);
        match self.kind(parent)? {
            NodeKind::Directory => Ok(()),
            NodeKind::Link => Err(NameError::NotFound),
            _ => Err(NameError::NotADirectory),
        }
    }

    fn create(&self, path: &str, kind: NodeKind) -> Result<(), NameError> {
        self.place(path)?;
        if self.kind(path).is_ok() {
            return Err(NameError::AlreadyExists);
        }
        self.nodes.borrow_mut().insert(path.trim_matches('/').into(), kind);
        Ok(())
    }

    fn opened(&self, path: &str) -> Opened<String> {
        let rights = OpenRights { rights: self.rights, path: String::new(), rule: "" };
        Opened { file: path.into(), rights }
    }

    fn create_file(&self, path: &str, mode: CreateMode) -> Result<String, NameError> {
        let asked = Caller::new(self, &(), &Anyone);
        wait(asked.create_file(path.as_bytes(), 0o644, mode, &Anyone)).map(|opened| opened.file)
    }

    fn create_directories(&self, path: &str) -> Result<(), NameError> {
        wait(Caller::new(self, &(), &Anyone).create_directories(path.as_bytes()))
    }
}

impl Volume for Memory {
    type Directory = ();
    type File = String;
    type Error = NameError;

    fn name_error(&self, error: NameError) -> NameError {
        error
    }
    fn file_error(&self, _: NameError) -> FileError {
        FileError::NotFound
    }
    fn root(&self, _: Permit) {}
    fn permits(&self, _: Request<'_, ()>, _: &str, rights: &[Right]) -> bool {
        rights.iter().any(|&right| self.rights.has(right))
    }
    async fn open_directory(&self, _: Request<'_, ()>, _: &str) -> Result<(), NameError> {
        Err(NameError::NotSupported)
    }
    async fn open_file(&self, _: Request<'_, ()>, path: &str, _: &dyn Client) -> Result<Opened<String>, NameError> {
        match self.kind(path) {
            Ok(NodeKind::File) => Ok(self.opened(path)),
            Ok(NodeKind::Directory) => Err(NameError::IsADirectory),
            found => {
                if let Some(raced) = self.race.take() {
                    self.create(raced, NodeKind::File)?;
                }
                Err(found.err().unwrap_or(NameError::NotFound))
            }
        }
    }
    async fn create_file(
        &self,
        _: Request<'_, ()>,
        path: &str,
        _: u32,
        _: &dyn Client,
    ) -> Result<Opened<String>, NameError> {
        self.create(path, NodeKind::File)?;
        Ok(self.opened(path))
    }
    async fn enumerate(&self, _: Request<'_, ()>, _: &str, _: u64, _: &mut Page<'_>) -> Result<Listed, NameError> {
        Err(NameError::NotSupported)
    }
    async fn attributes(&self, _: Request<'_, ()>, _: &str) -> Result<(NodeKind, NodeAttributes), NameError> {
        Err(NameError::NotSupported)
    }
    async fn link_target(&self, _: Request<'_, ()>, _: &str) -> Result<String, NameError> {
        Err(NameError::NotSupported)
    }
    async fn acl(&self, _: Request<'_, ()>, _: &str) -> Result<(String, String), NameError> {
        Err(NameError::NotSupported)
    }
    async fn create_directory(&self, _: Request<'_, ()>, path: &str) -> Result<(), NameError> {
        self.create(path, NodeKind::Directory)
    }
    async fn create_link(&self, _: Request<'_, ()>, _: &str, _: &str) -> Result<(), NameError> {
        Err(NameError::NotSupported)
    }
    async fn create_hard_link(&self, _: Request<'_, ()>, _: &str, _: &str) -> Result<(), NameError> {
        Err(NameError::NotSupported)
    }
    async fn rename(&self, _: Request<'_, ()>, _: &str, _: &str) -> Result<(), NameError> {
        Err(NameError::NotSupported)
    }
    async fn remove_file(&self, _: Request<'_, ()>, path: &str) -> Result<(), NameError> {
        self.nodes.borrow_mut().remove(path).map(drop).ok_or(NameError::NotFound)
    }
    async fn remove_directory(&self, _: Request<'_, ()>, _: &str) -> Result<(), NameError> {
        Err(NameError::NotSupported)
    }
    async fn set_attributes(&self, _: Request<'_, ()>, _: &str, _: AttributeChanges) -> Result<(), NameError> {
        Err(NameError::NotSupported)
    }
    async fn set_acl(&self, _: Request<'_, ()>, _: &str, _: &[u8]) -> Result<(), NameError> {
        Err(NameError::NotSupported)
    }
    async fn notify(
        self: &Rc<Self>,
        _: &Rc<()>,
        _: &str,
        _: namespace_events::Exp<namespace_events::states::Ready>,
    ) -> Result<(), NameError> {
        Err(NameError::NotSupported)
    }
    async fn sync(&self) -> Result<(), NameError> {
        Ok(())
    }
    fn locks(&self) -> &Locks {
        &self.locks
    }
    fn file_number(&self, _: &String) -> u64 {
        0
    }
    async fn file_attributes(&self, _: &String) -> Result<NodeAttributes, NameError> {
        Err(NameError::NotSupported)
    }
    async fn read(&self, _: &mut String, _: u64, _: &mut [u8]) -> Result<usize, NameError> {
        Ok(0)
    }
    async fn write(&self, _: &mut String, _: u64, _: &[u8]) -> Result<(), Partial<NameError>> {
        Ok(())
    }
    async fn append(&self, _: &mut String, _: &[u8]) -> Result<u64, Partial<NameError>> {
        Ok(0)
    }
    async fn set_size(&self, _: &mut String, _: u64) -> Result<(), NameError> {
        Ok(())
    }
    async fn close(&self, _: String) {}
}

#[test]
fn missing_parents_are_created() {
    let volume = memory(&[("d", NodeKind::Directory), ("f", NodeKind::File)]);
    assert_eq!(volume.create_directories("d/a/b/c/"), Ok(()));
    assert_eq!(volume.kind("d/a/b/c"), Ok(NodeKind::Directory));
    assert_eq!(volume.create_directories("d/a/b"), Err(NameError::AlreadyExists));
    assert_eq!(volume.create_directories("f"), Err(NameError::AlreadyExists));
    assert_eq!(volume.create_directories("f/x"), Err(NameError::NotADirectory));
    assert_eq!(volume.create_directories("f/x/y"), Err(NameError::NotADirectory));
    for itself in ["", "/", "."] {
        assert_eq!(volume.create_directories(itself), Err(NameError::AlreadyExists), "{itself}");
    }
    assert_eq!(volume.create_directories("../x"), Err(NameError::BadPath));
}

#[test]
fn a_dangling_link_ends_the_search() {
    let volume = memory(&[("l", NodeKind::Link)]);
    assert_eq!(volume.create_directories("l/a/b"), Err(NameError::NotFound));
}

#[test]
fn a_dot_at_the_end_is_no_name() {
    let volume = memory(&[("d", NodeKind::Directory), ("d/d", NodeKind::File)]);
    assert_eq!(volume.create_directories("d/."), Err(NameError::BadPath));
    assert_eq!(volume.create_file("d/.", CreateMode::New), Err(NameError::BadPath));
    assert_eq!(wait(Caller::new(&volume, &(), &Anyone).remove_file(b"d/.")), Err(NameError::BadPath));
    assert_eq!(volume.kind("d/d"), Ok(NodeKind::File));
}

#[test]
fn a_file_that_exists_is_opened_only_if_the_mode_allows_it() {
    let volume = memory(&[("f", NodeKind::File), ("d", NodeKind::Directory)]);
    assert_eq!(volume.create_file("f", CreateMode::New), Err(NameError::AlreadyExists));
    assert_eq!(volume.create_file("f", CreateMode::OpenExisting), Ok("f".into()));
    assert_eq!(volume.create_file("d", CreateMode::OpenExisting), Err(NameError::IsADirectory));
    assert_eq!(volume.create_file("", CreateMode::OpenExisting), Err(NameError::IsADirectory));
    assert_eq!(volume.create_file("", CreateMode::New), Err(NameError::AlreadyExists));
    assert_eq!(volume.create_file("d/new", CreateMode::OpenExisting), Ok("d/new".into()));
    assert_eq!(volume.create_file("none/new", CreateMode::OpenExisting), Err(NameError::NotFound));
}

#[test]
fn readers_open_files_that_exist_and_create_none() {
    let volume = Memory { rights: Rights::of(&[Right::Read]), ..memory(&[("f", NodeKind::File)]) };
    assert_eq!(volume.create_file("f", CreateMode::OpenExisting), Ok("f".into()));
    assert_eq!(volume.create_file("f", CreateMode::New), Err(NameError::NotPermitted));
    assert_eq!(volume.create_file("new", CreateMode::OpenExisting), Err(NameError::NotPermitted));
    assert_eq!(volume.create_directories("new"), Err(NameError::NotPermitted));
    let nobody = Memory { rights: Rights::NONE, ..volume };
    assert_eq!(nobody.create_file("f", CreateMode::OpenExisting), Err(NameError::NotPermitted));
}

#[test]
fn of_two_clients_that_create_a_file_one_opens_it() {
    let volume = memory(&[]);
    volume.race.set(Some("f"));
    assert_eq!(volume.create_file("f", CreateMode::OpenExisting), Ok("f".into()));
}

#[test]
fn only_requested_attributes_change() {
    let which = NodeParts::PERMISSIONS | NodeParts::GROUP | NodeParts::ACCESSED;
    let changes = NodeChanges { modified_s: 1, accessed_s: 2, permissions: 0o170_644, owner: 3, group: 4, which };
    let wanted = AttributeChanges {
        permissions: Some(0o644),
        group: Some(4),
        accessed_s: Some(2),
        ..AttributeChanges::default()
    };
    assert_eq!(AttributeChanges::from(changes), wanted);
    let none = AttributeChanges::from(NodeChanges { which: NodeParts::empty(), ..changes });
    assert_eq!(none, AttributeChanges::default());
}
