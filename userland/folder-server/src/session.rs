//! The session with the folder's server: requests in flight, and fids.
//!
//! A request takes one of [`REQUESTS`] blocks, and waits if none is free; the reply comes in the same block. Key types:
//! [`Session`], [`Fid`], which is clunked when it is dropped, [`Error`]. Replies are untrusted: one of the wrong type
//! is an error. Deliberately not here: paths.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::fmt;
use core::future::Future;
use core::ops::Range;
use core::pin::Pin;

use nine_p::{Attributes, Changes, DATA_HEADER_BYTES, NO_FID, Qid, Reply, Request, Text, errno, open_flags};
use sip::executor;
use sip::exheap::ExVec;
use task_sync::{Mutex, Pool};

/// Maximum number of requests in flight.
pub const REQUESTS: usize = 16;
/// Maximum length of a message in bytes: content and header.
pub const MESSAGE_BYTES: usize = (128 << 10) + DATA_HEADER_BYTES;
/// Bytes of a block: a message, and room after a request for the header of its reply.
const BLOCK_BYTES: usize = MESSAGE_BYTES + (8 << 10);
/// Minimum `msize` of a server, in bytes: the longest path has to fit.
const MIN_MESSAGE_BYTES: u32 = 8192;
/// Maximum number of written files that are kept open until they are synced.
const MAX_WRITTEN: usize = 64;

/// The result of a request.
#[derive(Debug)]
pub struct Exchanged {
    /// The block; `None` if the device has kept it.
    pub block: Option<ExVec<u8>>,
    /// The bytes of the reply in the block; `None` if there is no reply.
    pub answer: Option<Range<usize>>,
}

/// The transport to a server.
pub trait Transport {
    /// Sends the request in the first bytes of the block and waits for the reply. Other requests may be in flight.
    fn exchange(&self, block: ExVec<u8>, request_bytes: usize) -> Pin<Box<dyn Future<Output = Exchanged> + '_>>;
}

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Error {
    /// The host's error, an [`errno`].
    Host(u32),
    /// The server's message is malformed.
    Broken,
    /// The path, or a part of it, is not a valid name.
    BadPath,
    /// A symbolic link leads out of the folder.
    LeadsOut,
    /// Too many links were followed.
    TooManyLinks,
    /// A directory cannot be moved into itself.
    IntoItself,
    /// It is neither a file nor a directory.
    NotAFile,
    /// This node or the host does not support it.
    NotSupported,
    /// Out of memory.
    Exhausted,
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Host(number) => write!(formatter, "the host refused (error {number} of errno(3))"),
            Error::Broken => formatter.write_str("its server does not speak 9P2000.L"),
            Error::BadPath => formatter.write_str("the path is invalid"),
            Error::LeadsOut => formatter.write_str("a link points outside the folder"),
            Error::TooManyLinks => formatter.write_str("too many links"),
            Error::IntoItself => formatter.write_str("a folder cannot be moved into itself"),
            Error::NotAFile => formatter.write_str("it is neither a file nor a folder"),
            Error::NotSupported => formatter.write_str("not supported"),
            Error::Exhausted => formatter.write_str("out of memory"),
        }
    }
}

/// The session with one server.
pub(crate) struct Session {
    transport: Rc<dyn Transport>,
    /// The free tags, each with its block once it was used. Used as a stack, so that the number of blocks is the
    /// maximum number of requests that were ever in flight.
    blocks: Pool<(u16, Option<ExVec<u8>>)>,
    /// The negotiated maximum length of a message.
    message_bytes: Cell<usize>,
    next_fid: Cell<u32>,
    free_fids: RefCell<Vec<u32>>,
    /// Open files that were written since the last sync.
    written: RefCell<BTreeMap<u32, Rc<Fid>>>,
    /// Held while a task appends, so that the append and finding its offset are one step.
    appending: Mutex<()>,
}

/// A fid of the server.
pub(crate) struct Fid {
    session: Rc<Session>,
    number: u32,
}

impl fmt::Debug for Fid {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "fid {}", self.number)
    }
}

impl Drop for Fid {
    fn drop(&mut self) {
        let (session, fid) = (Rc::clone(&self.session), self.number);
        drop(executor::spawn(async move {
            // If the server may still have the fid, its number is not reused.
            if session.call(&Request::Forget { fid }, |reply| matches!(reply, Reply::Forgotten {}).then_some(())).await
                == Ok(())
            {
                session.free_fids.borrow_mut().push(fid);
            }
        }));
    }
}

impl Session {
    /// Negotiates with the server and attaches to the folder. Returns the fid of the folder.
    pub(crate) async fn start(transport: Rc<dyn Transport>) -> Result<Fid, Error> {
        let blocks = Pool::new();
        // `REQUESTS` is less than 2^16.
        (0..REQUESTS).rev().for_each(|tag| blocks.put((tag as u16, None)));
        let session = Rc::new(Session {
            transport,
            blocks,
            message_bytes: Cell::new(MESSAGE_BYTES),
            next_fid: Cell::new(0),
            free_fids: RefCell::default(),
            written: RefCell::default(),
            appending: Mutex::default(),
        });
        let version = Request::Version { max_bytes: MESSAGE_BYTES as u32, version: Text(nine_p::VERSION) };
        let agreed = session.call(&version, |reply| match reply {
            Reply::Version { max_bytes, version: Text(nine_p::VERSION) } => Some(max_bytes),
            _ => None,
        });
        let agreed = agreed.await?;
        if agreed < MIN_MESSAGE_BYTES {
            return Err(Error::Broken);
        }
        session.message_bytes.set(MESSAGE_BYTES.min(agreed as usize));
        let root = session.new_fid();
        let attach = Request::Attach {
            fid: root.number,
            authentication: NO_FID,
            user: Text(b"singularity"),
            folder: Text(b""),
            user_number: u32::MAX,
        };
        session.call(&attach, |reply| matches!(reply, Reply::Attached { .. }).then_some(())).await?;
        Ok(root)
    }

    /// Sends a request and takes the result out of the reply.
    async fn call<R>(&self, request: &Request<'_>, take: impl FnOnce(Reply<'_>) -> Option<R>) -> Result<R, Error> {
        let (tag, mut block) = self.take_block().await?;
        let sent_tag = if matches!(request, Request::Version { .. }) { nine_p::NO_TAG } else { tag };
        let Some(bytes) = request.encode(sent_tag, &mut block[..self.message_bytes.get()]) else {
            self.give_block(tag, Some(block));
            return Err(Error::BadPath);
        };
        let Exchanged { block, answer } = self.transport.exchange(block, bytes).await;
        let message = block.as_ref().zip(answer).and_then(|(block, answer)| block.get(answer));
        let result = match message.and_then(Reply::decode) {
            Some((tag, Reply::Failed { error })) if tag == sent_tag => Err(Error::Host(error)),
            Some((tag, reply)) if tag == sent_tag => take(reply).ok_or(Error::Broken),
            _ => Err(Error::Broken),
        };
        self.give_block(tag, block);
        result
    }

    /// Waits for a free tag.
    async fn take_block(&self) -> Result<(u16, ExVec<u8>), Error> {
        // The pool is never closed.
        let (tag, block) = self.blocks.take().await.ok_or(Error::Exhausted)?;
        match block.map_or_else(|| ExVec::new(BLOCK_BYTES), Ok) {
            Ok(block) => Ok((tag, block)),
            Err(_) => {
                self.give_block(tag, None);
                Err(Error::Exhausted)
            }
        }
    }

    /// Frees a tag; its block is `None` if the device has kept it.
    fn give_block(&self, tag: u16, block: Option<ExVec<u8>>) {
        self.blocks.put((tag, block));
    }

    /// Allocates the number of a fid that the server is about to create.
    fn new_fid(self: &Rc<Self>) -> Fid {
        let number = self.free_fids.borrow_mut().pop().unwrap_or_else(|| {
            let number = self.next_fid.get();
            self.next_fid.set(number.wrapping_add(1));
            number
        });
        Fid { session: Rc::clone(self), number }
    }

    /// Returns the maximum number of bytes of content in one request.
    fn content_bytes(&self) -> usize {
        self.message_bytes.get() - DATA_HEADER_BYTES
    }

    /// Syncs all files that were written.
    pub(crate) async fn sync_files(&self) -> Result<(), Error> {
        let written = core::mem::take(&mut *self.written.borrow_mut());
        let mut result = Ok(());
        for fid in written.into_values() {
            result = result.and(fid.sync().await);
        }
        result
    }

    /// Adds an open file to those that were written.
    async fn note_written(&self, fid: &Rc<Fid>) -> Result<(), Error> {
        let has_room = {
            let written = self.written.borrow();
            written.len() < MAX_WRITTEN || written.contains_key(&fid.number)
        };
        if !has_room {
            self.sync_files().await?;
        }
        self.written.borrow_mut().insert(fid.number, Rc::clone(fid));
        Ok(())
    }
}

impl Fid {
    pub(crate) fn session(&self) -> &Rc<Session> {
        &self.session
    }

    async fn call<R>(&self, request: &Request<'_>, take: impl FnOnce(Reply<'_>) -> Option<R>) -> Result<R, Error> {
        self.session.call(request, take).await
    }

    /// Walks at most [`nine_p::MAX_NAMES`] names. The fid exists only if all of them were found.
    pub(crate) async fn walk(&self, names: &[Vec<u8>]) -> Result<(Vec<Qid>, Option<Fid>), Error> {
        let new = self.session.new_fid();
        let texts = names.iter().map(|name| Text(name)).collect();
        let request = Request::Walk { fid: self.number, new_fid: new.number, names: texts };
        let walked = self.call(&request, |reply| match reply {
            Reply::Walked { qids } if qids.len() <= names.len() => Some(qids),
            _ => None,
        });
        match walked.await {
            Ok(qids) if qids.len() == names.len() => Ok((qids, Some(new))),
            Ok(qids) => Ok((qids, new.into_unopened())),
            Err(error) => {
                new.into_unopened();
                Err(error)
            }
        }
    }

    /// Frees the number of a fid that the server did not create.
    fn into_unopened(self) -> Option<Fid> {
        self.session.free_fids.borrow_mut().push(self.number);
        // Dropping it would send a clunk.
        core::mem::forget(self);
        None
    }

    /// Returns another fid for the same node.
    pub(crate) async fn duplicate(&self) -> Result<Fid, Error> {
        let (_, fid) = self.walk(&[]).await?;
        fid.ok_or(Error::Broken)
    }

    /// Opens the file or directory.
    pub(crate) async fn open(&self, flags: u32) -> Result<(), Error> {
        let request = Request::Open { fid: self.number, flags };
        self.call(&request, |reply| matches!(reply, Reply::Opened { .. }).then_some(())).await
    }

    /// Creates a file in this directory. The fid then refers to the file, open for reading and writing.
    pub(crate) async fn create(&self, name: &[u8], mode: u32) -> Result<Qid, Error> {
        let flags = open_flags::READ_WRITE | open_flags::EXCLUSIVE;
        let request = Request::Create { fid: self.number, name: Text(name), flags, mode, group: 0 };
        let created = self.call(&request, |reply| match reply {
            Reply::Created { qid, .. } => Some(qid),
            _ => None,
        });
        created.await
    }

    /// Returns the attributes.
    pub(crate) async fn attributes(&self) -> Result<Attributes, Error> {
        let request = Request::GetAttributes { fid: self.number, wanted: Attributes::BASIC };
        let attributes = self.call(&request, |reply| match reply {
            Reply::Attributes { attributes } => Some(attributes),
            _ => None,
        });
        attributes.await
    }

    /// Changes attributes.
    pub(crate) async fn set_attributes(&self, changes: Changes) -> Result<(), Error> {
        let request = Request::SetAttributes { fid: self.number, changes };
        self.call(&request, |reply| matches!(reply, Reply::AttributesSet {}).then_some(())).await
    }

    /// Returns the target of a link.
    pub(crate) async fn target(&self) -> Result<Vec<u8>, Error> {
        let request = Request::ReadLink { fid: self.number };
        let target = self.call(&request, |reply| match reply {
            Reply::Target { target } => Some(target.0.to_vec()),
            _ => None,
        });
        target.await
    }

    /// Reads from the open file. Returns less than the buffer's length only at the end of the file.
    pub(crate) async fn read(&self, offset: u64, out: &mut [u8]) -> Result<usize, Error> {
        let mut done = 0;
        while done < out.len() {
            let rest = &mut out[done..];
            let count = rest.len().min(self.session.content_bytes());
            let Some(offset) = offset.checked_add(done as u64).filter(|&offset| offset <= i64::MAX as u64) else {
                break;
            };
            let request = Request::Read { fid: self.number, offset, count: count as u32 };
            let read = self.call(&request, |reply| match reply {
                Reply::ReadDone { data } => {
                    rest.get_mut(..data.0.len())?.copy_from_slice(data.0);
                    Some(data.0.len())
                }
                _ => None,
            });
            match read.await? {
                0 => break,
                bytes => done += bytes,
            }
        }
        Ok(done)
    }

    /// Writes to the open file. The error carries the number of bytes already written.
    pub(crate) async fn write(self: &Rc<Self>, offset: u64, data: &[u8]) -> Result<(), (Error, usize)> {
        self.session.note_written(self).await.map_err(|error| (error, 0))?;
        let mut done = 0;
        while done < data.len() {
            let rest = &data[done..];
            let part = &rest[..rest.len().min(self.session.content_bytes())];
            let offset = offset.checked_add(done as u64).filter(|&offset| offset <= i64::MAX as u64);
            let offset = offset.ok_or((Error::Host(errno::EFBIG), done))?;
            let request = Request::Write { fid: self.number, offset, data: nine_p::Data(part) };
            let written = self.call(&request, |reply| match reply {
                Reply::Written { count } => usize::try_from(count).ok().filter(|&count| count <= part.len()),
                _ => None,
            });
            match written.await.map_err(|error| (error, done))? {
                0 => return Err((Error::Host(errno::ENOSPC), done)),
                bytes => done += bytes,
            }
        }
        Ok(())
    }

    /// Appends to a file opened for appending. Returns the offset.
    pub(crate) async fn append(self: &Rc<Self>, data: &[u8]) -> Result<u64, (Error, usize)> {
        let _appending = self.session.appending.lock().await;
        self.write(0, data).await?;
        let size = self.attributes().await.map_err(|error| (error, data.len()))?.size;
        Ok(size.saturating_sub(data.len() as u64))
    }

    /// Syncs the open file or directory.
    pub(crate) async fn sync(&self) -> Result<(), Error> {
        let request = Request::Sync { fid: self.number, data_only: 0 };
        self.call(&request, |reply| matches!(reply, Reply::Synced {}).then_some(())).await
    }

    /// Reads at most `count` bytes of entries of the open directory at an offset; none at the end.
    pub(crate) async fn read_entries<R>(
        &self,
        offset: u64,
        count: usize,
        take: impl FnOnce(&[u8]) -> R,
    ) -> Result<R, Error> {
        // Less than a block.
        let count = count.min(self.session.content_bytes()) as u32;
        let request = Request::ReadEntries { fid: self.number, offset, count };
        let read = self.call(&request, |reply| match reply {
            Reply::EntriesRead { data } => Some(take(data.0)),
            _ => None,
        });
        read.await
    }

    /// Creates a directory in this one.
    pub(crate) async fn make_folder(&self, name: &[u8], mode: u32) -> Result<(), Error> {
        let request = Request::MakeDirectory { fid: self.number, name: Text(name), mode, group: 0 };
        self.call(&request, |reply| matches!(reply, Reply::DirectoryMade { .. }).then_some(())).await
    }

    /// Creates a symbolic link in this directory.
    pub(crate) async fn make_link(&self, name: &[u8], target: &[u8]) -> Result<(), Error> {
        let request = Request::MakeLink { fid: self.number, name: Text(name), target: Text(target), group: 0 };
        self.call(&request, |reply| matches!(reply, Reply::LinkMade { .. }).then_some(())).await
    }

    /// Creates a hard link in this directory.
    pub(crate) async fn hard_link(&self, file: &Fid, name: &[u8]) -> Result<(), Error> {
        let request = Request::HardLink { directory: self.number, fid: file.number, name: Text(name) };
        self.call(&request, |reply| matches!(reply, Reply::Linked {}).then_some(())).await
    }

    /// Renames an entry of this directory.
    pub(crate) async fn rename(&self, old_name: &[u8], to: &Fid, new_name: &[u8]) -> Result<(), Error> {
        let request =
            Request::Rename { from: self.number, old_name: Text(old_name), to: to.number, new_name: Text(new_name) };
        self.call(&request, |reply| matches!(reply, Reply::Renamed {}).then_some(())).await
    }

    /// Removes a name from this directory; `flags` as in [`Request::Unlink`].
    pub(crate) async fn unlink(&self, name: &[u8], flags: u32) -> Result<(), Error> {
        let request = Request::Unlink { fid: self.number, name: Text(name), flags };
        self.call(&request, |reply| matches!(reply, Reply::Unlinked {}).then_some(())).await
    }
}
