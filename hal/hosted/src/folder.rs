//! Host folders as devices: a write submits a 9P2000.L request, whose reply overwrites it in the block; a read
//! returns the folder's name.
//!
//! Key types: [`FolderSpecification`] (a folder to offer), [`Folder`] (an open folder), [`FolderError`]. Host calls can
//! block, so a thread pool runs the requests, but for those that find all they need in the host's caches. Neighbours:
//! `folder_server` (executes requests), `confinement` (the host calls still allowed). Deliberately not here: mounting the
//! folders in the system's namespace.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use hal_api::{DeviceFailure, DeviceKind, DeviceOperation, DeviceResult, Submitted};
use nine_p::HEADER_BYTES;
use rustix::io::Errno;

use crate::folder_node::LinkPolicy;
use crate::folder_server::{self, Answered, Content, FolderAccess, MAX_MESSAGE_BYTES, Server};
use crate::transfer::{self, Blocking, Memory};
use crate::{entries, pool};

/// Offset of the content in ReadDone.
const CONTENT_AT: usize = HEADER_BYTES + size_of::<u32>();
const READ_DONE: u8 = 117;
/// Maximum size of a request that is answered at once, in bytes: a walk to a name of usual length, and less.
const QUICK_BYTES: usize = 512;
/// Offset of the type in a message, behind its size.
const TYPE_AT: usize = size_of::<u32>();

/// A folder to offer.
#[derive(Clone, Debug)]
pub struct FolderSpecification {
    /// Its name inside the system.
    pub name: String,
    /// Its path on the host.
    pub path: PathBuf,
    /// Whether it is writable.
    pub access: FolderAccess,
    /// Handling of symbolic links.
    pub links: LinkPolicy,
}

/// Reason why a folder cannot be offered.
#[derive(Debug)]
pub struct FolderError {
    path: PathBuf,
    reason: io::Error,
}

impl fmt::Display for FolderError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.reason.kind() {
            io::ErrorKind::NotFound => write!(formatter, "folder {path}: there is no such folder; check the path"),
            io::ErrorKind::NotADirectory => write!(formatter, "folder {path}: this is no folder; give the path of one"),
            io::ErrorKind::PermissionDenied => {
                write!(formatter, "folder {path}: permission denied; make it readable for this user")
            }
            _ => write!(formatter, "folder {path}: it cannot be opened ({}); check the path", self.reason),
        }
    }
}

impl std::error::Error for FolderError {}

/// An open folder.
#[derive(Debug)]
pub(crate) struct Folder {
    name: String,
    access: FolderAccess,
    links: LinkPolicy,
    /// For the rules of Landlock.
    handle: OwnedFd,
    server: Arc<Server>,
}

impl Folder {
    /// Opens the folder once: later changes of its path have no effect.
    pub(crate) fn open(specification: &FolderSpecification) -> Result<Self, FolderError> {
        let fail = |reason| FolderError { path: specification.path.clone(), reason };
        let flags = libc::O_PATH | libc::O_DIRECTORY;
        let handle = File::options().read(true).custom_flags(flags).open(&specification.path).map_err(fail)?;
        let (access, links) = (specification.access, specification.links);
        let served = handle.try_clone().map_err(fail)?.into();
        let server = Server::new(served, access, links).map_err(|error| fail(error.into()))?;
        Ok(Self { name: specification.name.clone(), access, links, handle: handle.into(), server: Arc::new(server) })
    }

    /// Returns its kind and properties for the kernel.
    pub(crate) fn kind(&self) -> DeviceKind {
        DeviceKind::Folder { read_only: self.access == FolderAccess::ReadOnly }
    }

    /// Returns the host access needed to serve it.
    pub(crate) fn needs(&self) -> FolderNeeds<'_> {
        FolderNeeds { folder: self.handle.as_fd(), access: self.access, links: self.links }
    }

    /// Starts a request.
    pub(crate) fn submit(&self, token: u64, operation: DeviceOperation, memory: Memory) -> Submitted {
        match operation {
            DeviceOperation::Read => Submitted::Complete(Ok(memory.fill(self.name.as_bytes()))),
            DeviceOperation::Write => self.start(token, memory),
            DeviceOperation::Flush => Submitted::Complete(Ok(0)),
        }
    }

    /// Drops the client's state.
    pub(crate) fn close(&self) {
        self.server.reset();
    }

    /// Answers a request at once if the host has all it takes in its caches, or queues it.
    fn start(&self, token: u64, memory: Memory) -> Submitted {
        let content = match self.answer_at_once(memory) {
            Some(Answered::Content(content)) => content,
            Some(Answered::Message(message)) => return Submitted::Complete(Ok(memory.fill(&message))),
            None => {
                let server = Arc::clone(&self.server);
                return queue(token, move || perform(&server, memory));
            }
        };
        match content.read(memory, Blocking::Never) {
            Ok(bytes) => Submitted::Complete(Ok(bytes)),
            // It is not in the cache, or the file system cannot say. What was read has overwritten the request.
            Err(_) => queue(token, move || content.answer(memory)),
        }
    }

    /// The answer to a request that needs no thread; `None` of others, and of those that are cut.
    fn answer_at_once(&self, memory: Memory) -> Option<Answered> {
        let mut request = [0; QUICK_BYTES];
        let read = memory.copy_out(0, &mut request);
        let request = request.get(..nine_p::message_bytes(request.get(..read)?)?)?;
        if request.len() > read { None } else { self.server.answer_at_once(request, memory.bytes()) }
    }
}

/// Has a thread of the pool perform a request.
fn queue(token: u64, perform: impl FnOnce() -> DeviceResult + Send + 'static) -> Submitted {
    let Some(entries) = entries::get() else { return Submitted::Complete(Err(DeviceFailure)) };
    let queued = pool::FOLDERS.submit(Box::new(move || {
        let result = perform();
        (entries.device_complete)(token, result.unwrap_or(0) as u64, result.is_err());
    }));
    if queued { Submitted::Queued } else { Submitted::Complete(Err(DeviceFailure)) }
}

/// Host access that a folder needs after confinement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FolderNeeds<'a> {
    pub(crate) folder: BorrowedFd<'a>,
    pub(crate) access: FolderAccess,
    pub(crate) links: LinkPolicy,
}

/// Executes the request in the memory, overwrites it with the reply, and returns the reply's length in bytes.
fn perform(server: &Server, memory: Memory) -> DeviceResult {
    let mut start = [0; HEADER_BYTES];
    if memory.copy_out(0, &mut start) < start.len() {
        return Err(DeviceFailure);
    }
    let bytes = nine_p::message_bytes(&start).filter(|&bytes| bytes <= memory.bytes().min(MAX_MESSAGE_BYTES));
    let mut request = vec![0; bytes.ok_or(DeviceFailure)?];
    memory.copy_out(0, &mut request);
    match server.answer(&request, memory.bytes()).ok_or(DeviceFailure)? {
        Answered::Message(message) => Ok(memory.fill(&message)),
        Answered::Content(content) => content.answer(memory),
    }
}

impl Content {
    /// Reads directly into the memory, and puts the head of the answer before it; returns the answer's length in bytes.
    ///
    /// # Errors
    /// The host's; then the memory has no answer.
    fn read(&self, memory: Memory, blocking: Blocking) -> Result<usize, Errno> {
        let content = memory.after(CONTENT_AT).first(self.count);
        let bytes = read_whole(self.file.file().ok_or(Errno::BADF)?, self.offset, content, blocking)?;
        let mut head = [0; CONTENT_AT];
        // Fits: it is no more than an exchange-heap block holds.
        head[..TYPE_AT].copy_from_slice(&((CONTENT_AT + bytes) as u32).to_le_bytes());
        head[TYPE_AT] = READ_DONE;
        head[TYPE_AT + 1..HEADER_BYTES].copy_from_slice(&self.tag.to_le_bytes());
        head[HEADER_BYTES..].copy_from_slice(&(bytes as u32).to_le_bytes());
        Ok(memory.fill(&head) + bytes)
    }

    /// The same, blocking, with an answer also if it fails.
    fn answer(&self, memory: Memory) -> DeviceResult {
        self.read(memory, Blocking::Wait).or_else(|error| {
            match folder_server::failed(self.tag, error, memory.bytes()) {
                Some(Answered::Message(message)) => Ok(memory.fill(&message)),
                _ => Err(DeviceFailure),
            }
        })
    }
}

/// Reads until the buffer is full or the file ends.
fn read_whole(file: &OwnedFd, offset: u64, content: Memory, blocking: Blocking) -> Result<usize, Errno> {
    let mut done = 0;
    while done < content.bytes() {
        let at = offset.saturating_add(done as u64);
        match transfer::read_at(file.as_raw_fd(), at, content.after(done), blocking) {
            Ok(0) => break,
            Ok(bytes) => done += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Errno::from_io_error(&error).unwrap_or(Errno::INVAL)),
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use nine_p::{NO_FID, Reply, Request, Text, open_flags};

    use super::*;
    use crate::arena::test_memory;

    const TEXT: &[u8] = b"what the file has";

    /// A folder with one file, which fid 1 has open.
    struct Fixture {
        place: PathBuf,
        folder: Folder,
        memory: Memory,
    }

    impl Fixture {
        fn new() -> Self {
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let place = std::env::temp_dir().join(format!("hal-hosted-device-{}-{number}", std::process::id()));
            std::fs::create_dir_all(&place).expect("a folder");
            std::fs::write(place.join("file"), TEXT).expect("a file");
            let specification = FolderSpecification {
                name: "given".into(),
                path: place.clone(),
                access: FolderAccess::ReadOnly,
                links: LinkPolicy::StayInside,
            };
            let folder = Folder::open(&specification).expect("it is there");
            let fixture = Self { place, folder, memory: test_memory(1 << 16) };
            let nobody = Text(b"");
            let attach =
                Request::Attach { fid: 0, authentication: NO_FID, user: nobody, folder: nobody, user_number: 0 };
            let names = [Text(b"file")].into_iter().collect();
            for request in
                [attach, Request::Walk { fid: 0, new_fid: 1, names }, Request::Open { fid: 1, flags: open_flags::READ }]
            {
                fixture.ask(&request);
                let bytes = perform(&fixture.folder.server, fixture.memory).expect("an answer");
                assert!(!matches!(fixture.answer(bytes).1, Answer::Failed(_)), "{request:?}");
            }
            fixture
        }

        fn ask(&self, request: &Request<'_>) {
            let mut bytes = [0; 1024];
            let length = request.encode(7, &mut bytes).expect("room");
            self.memory.fill(&bytes[..length]);
        }

        fn answer(&self, bytes: usize) -> (u16, Answer) {
            let mut message = vec![0; bytes];
            self.memory.copy_out(0, &mut message);
            let (tag, reply) = Reply::decode(&message).expect("a message");
            match reply {
                Reply::ReadDone { data } => (tag, Answer::Read(data.0.to_vec())),
                Reply::Failed { error } => (tag, Answer::Failed(error)),
                _ => (tag, Answer::Other),
            }
        }

        /// What a request to read gets at once, if it is answered at once.
        fn read(&self, fid: u32, offset: u64, count: u32) -> Option<(u16, Answer)> {
            self.at_once(&Request::Read { fid, offset, count })
        }

        fn at_once(&self, request: &Request<'_>) -> Option<(u16, Answer)> {
            self.ask(request);
            match self.folder.submit(0, DeviceOperation::Write, self.memory) {
                Submitted::Complete(Ok(bytes)) => Some(self.answer(bytes)),
                // Without a kernel nothing is queued.
                Submitted::Complete(Err(_)) | Submitted::Queued => None,
            }
        }
    }

    impl Drop for Fixture {
        fn drop(&mut self) {
            // A folder that stays is no failure of the test.
            let _ = std::fs::remove_dir_all(&self.place);
        }
    }

    #[derive(Debug, PartialEq, Eq)]
    enum Answer {
        Read(Vec<u8>),
        Failed(u32),
        Other,
    }

    #[test]
    fn content_in_the_page_cache_is_read_at_once() {
        let fixture = Fixture::new();
        let file = File::open(fixture.place.join("file")).expect("it is there");
        // Not every file system of the host can say what is in the cache.
        let can_say = transfer::read_at(file.as_raw_fd(), 0, fixture.memory, Blocking::Never).is_ok();
        for (offset, count, expected) in [
            (0, 4, &TEXT[..4]),
            (5, 100, &TEXT[5..]),
            (5, u32::MAX, &TEXT[5..]),
            (17, 9, b""),
            (900, 9, b""),
            (0, 0, b""),
        ] {
            let expected = can_say.then(|| (7, Answer::Read(expected.into())));
            assert_eq!(fixture.read(1, offset, count), expected, "{offset}");
        }
    }

    #[test]
    fn what_is_cached_is_answered_at_once() {
        let fixture = Fixture::new();
        assert_eq!(fixture.read(9, 0, 4), Some((7, Answer::Failed(nine_p::errno::EBADF))), "no such fid");
        assert_eq!(fixture.read(0, 0, 4), Some((7, Answer::Failed(nine_p::errno::EISDIR))));
        if !fixture.folder.server.is_local() {
            return eprintln!("skipped: the host's folder for temporary files is on no local file system");
        }
        let name = |name: &'static [u8]| [Text(name)].into_iter().collect();
        let expected = [
            (Request::Walk { fid: 0, new_fid: 5, names: name(b"file") }, Answer::Other),
            (Request::Walk { fid: 0, new_fid: 5, names: name(b"file") }, Answer::Failed(nine_p::errno::EBADF)),
            (Request::GetAttributes { fid: 5, wanted: 0 }, Answer::Other),
            (Request::Open { fid: 5, flags: open_flags::READ }, Answer::Other),
            (Request::GetAttributes { fid: 5, wanted: 0 }, Answer::Other),
            (Request::Open { fid: 1, flags: open_flags::READ }, Answer::Failed(nine_p::errno::EBADF)),
            (Request::Forget { fid: 5 }, Answer::Other),
        ];
        for (request, expected) in expected {
            // A change of mounts on the host at that moment makes it look again.
            let answer = (0..100).find_map(|_| fixture.at_once(&request));
            assert_eq!(answer, Some((7, expected)), "{request:?}");
        }
    }

    /// Clients follow a link in the middle of a path from where the walk has ended.
    #[test]
    fn regression_a_walk_at_once_goes_as_far_as_any_other() {
        let fixture = Fixture::new();
        std::fs::create_dir(fixture.place.join("sub")).expect("a folder");
        std::os::unix::fs::symlink("sub", fixture.place.join("link")).expect("a link");
        for (first, second) in [(&b"sub"[..], &b"none"[..]), (b"link", b"file"), (b"sub", b"..")] {
            let names = [Text(first), Text(second)].into_iter().collect();
            let walk = Request::Walk { fid: 0, new_fid: 5, names };
            fixture.ask(&walk);
            let bytes = perform(&fixture.folder.server, fixture.memory).expect("an answer");
            let mut by_thread = vec![0; bytes];
            fixture.memory.copy_out(0, &mut by_thread);
            assert!(matches!(Reply::decode(&by_thread), Some((7, Reply::Walked { qids })) if qids.len() == 1));
            if !fixture.folder.server.is_local() {
                return eprintln!("skipped: the host's folder for temporary files is on no local file system");
            }
            fixture.ask(&walk);
            let at_once = (0..100).find_map(|_| fixture.folder.answer_at_once(fixture.memory));
            // A name that no lookup takes is left to a thread.
            let is_same = |answered: &Answered| matches!(answered, Answered::Message(message) if *message == by_thread);
            assert!(at_once.as_ref().map_or(second == b"..", is_same), "{walk:?}");
        }
    }

    #[test]
    fn what_may_block_is_left_to_a_thread() {
        let fixture = Fixture::new();
        for request in [
            Request::Open { fid: 1, flags: open_flags::WRITE },
            Request::Sync { fid: 1, data_only: 0 },
            Request::ReadEntries { fid: 0, offset: 0, count: 512 },
        ] {
            assert_eq!(fixture.at_once(&request), None, "{request:?}");
        }
        // It goes with its last handle, and with it all its space.
        std::fs::remove_file(fixture.place.join("file")).expect("it was made");
        assert_eq!(fixture.at_once(&Request::Forget { fid: 1 }), None);
        fixture.ask(&Request::Read { fid: 1, offset: 0, count: 4 });
        assert!(fixture.folder.answer_at_once(fixture.memory.first(22)).is_none(), "a request that is cut");
        assert!(fixture.folder.answer_at_once(fixture.memory.first(3)).is_none());
        let names = [Text(&[b'n'; 255]), Text(&[b'n'; 255])].into_iter().collect();
        assert_eq!(fixture.at_once(&Request::Walk { fid: 0, new_fid: 5, names }), None, "a long one");
    }

    /// A read that was begun in the page cache, and goes on in a thread.
    #[test]
    fn an_answer_does_not_need_the_request_again() {
        let fixture = Fixture::new();
        fixture.ask(&Request::Read { fid: 1, offset: 2, count: 5 });
        let Some(Answered::Content(content)) = fixture.folder.answer_at_once(fixture.memory) else {
            panic!("a request to read");
        };
        fixture.memory.fill(&[0xff; 64]);
        let bytes = content.answer(fixture.memory).expect("an answer");
        assert_eq!(fixture.answer(bytes), (7, Answer::Read(TEXT[2..7].into())));
    }
}
