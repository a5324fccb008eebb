//! The way to the folder's server: requests under way, and fids.
//!
//! A request takes one of [`REQUESTS`] blocks and waits where none is free; its answer comes in the same block. Key types:
//! [`Session`], [`Fid`], which gives itself up when it is dropped, [`Error`]. What the server answers is a claim: an answer
//! of the wrong kind is an error. Deliberately not here: paths.

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

/// Requests under way at most.
pub const REQUESTS: usize = 16;
/// Bytes of the longest message: content, and what stands before it.
pub const MESSAGE_BYTES: usize = (128 << 10) + DATA_HEADER_BYTES;
/// Bytes of a block: a message, and room behind one that is sent for what its answer has besides content.
const BLOCK_BYTES: usize = MESSAGE_BYTES + (8 << 10);
/// Servers that take less than this have no room for the longest path.
const MIN_MESSAGE_BYTES: u32 = 8192;
/// Files at most that were written and are kept open until they are synced.
const MAX_WRITTEN: usize = 64;

/// What came of a request.
#[derive(Debug)]
pub struct Exchanged {
    /// The block. Nothing where the device has kept it.
    pub block: Option<ExVec<u8>>,
    /// Where in it the answer lies; nothing where there is none.
    pub answer: Option<Range<usize>>,
}

/// The way to a server.
pub trait Transport {
    /// Sends the request that the first bytes of the block are, and waits for the answer. Others may be under way.
    fn exchange(&self, block: ExVec<u8>, request_bytes: usize) -> Pin<Box<dyn Future<Output = Exchanged> + '_>>;
}

/// Why something was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Error {
    /// The host said no, with a number of [`errno`].
    Host(u32),
    /// The server's answer is none.
    Broken,
    /// The path is none, or a part of it cannot be a name.
    BadPath,
    /// A symbolic link leads out of the folder.
    LeadsOut,
    /// Too many links were followed.
    TooManyLinks,
    /// What is asked for cannot be done to the folder itself.
    Itself,
    /// It is neither a file nor a folder.
    NotAFile,
    /// There is no memory.
    Exhausted,
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Host(number) => write!(formatter, "the host refused (error {number} of errno(3))"),
            Error::Broken => formatter.write_str("its server does not speak 9P2000.L"),
            Error::BadPath => formatter.write_str("a path is none"),
            Error::LeadsOut => formatter.write_str("a link leads out of the folder"),
            Error::TooManyLinks => formatter.write_str("too many links"),
            Error::Itself => formatter.write_str("it is the folder itself"),
            Error::NotAFile => formatter.write_str("it is neither a file nor a folder"),
            Error::Exhausted => formatter.write_str("there is no memory"),
        }
    }
}

/// The way to one server.
pub(crate) struct Session {
    transport: Rc<dyn Transport>,
    /// The tags that no request has, each with its block once it was used. The last returned is taken first, so that a
    /// folder has as many blocks as it ever had requests under way.
    blocks: Pool<(u16, Option<ExVec<u8>>)>,
    /// The longest message, as both sides agreed.
    message_bytes: Cell<usize>,
    next_fid: Cell<u32>,
    free_fids: RefCell<Vec<u32>>,
    /// Open files that were written since they were synced.
    written: RefCell<BTreeMap<u32, Rc<Fid>>>,
    /// Held while a task appends: what is written and where that was are one step.
    appending: Mutex<()>,
}

/// A fid of the server's.
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
            // A number whose fid the server may still have is not used again.
            if session.call(&Request::Forget { fid }, |reply| matches!(reply, Reply::Forgotten {}).then_some(())).await
                == Ok(())
            {
                session.free_fids.borrow_mut().push(fid);
            }
        }));
    }
}

impl Session {
    /// Agrees with the server and gets to the folder itself.
    pub(crate) async fn start(transport: Rc<dyn Transport>) -> Result<Fid, Error> {
        let blocks = Pool::new();
        // There are few of them.
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

    /// Sends a request and takes what is wanted out of the answer.
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

    /// Waits for a tag that no request has.
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

    /// The device may have kept the block.
    fn give_block(&self, tag: u16, block: Option<ExVec<u8>>) {
        self.blocks.put((tag, block));
    }

    /// A number for a fid that is about to be made.
    fn new_fid(self: &Rc<Self>) -> Fid {
        let number = self.free_fids.borrow_mut().pop().unwrap_or_else(|| {
            let number = self.next_fid.get();
            self.next_fid.set(number.wrapping_add(1));
            number
        });
        Fid { session: Rc::clone(self), number }
    }

    /// The longest content of one request.
    fn content_bytes(&self) -> usize {
        self.message_bytes.get() - DATA_HEADER_BYTES
    }

    /// Makes all files durable that were written.
    pub(crate) async fn sync_files(&self) -> Result<(), Error> {
        let written = core::mem::take(&mut *self.written.borrow_mut());
        let mut result = Ok(());
        for fid in written.into_values() {
            result = result.and(fid.sync().await);
        }
        result
    }

    /// Remembers that an open file was written.
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
    /// The way that it is of.
    pub(crate) fn session(&self) -> &Rc<Session> {
        &self.session
    }

    async fn call<R>(&self, request: &Request<'_>, take: impl FnOnce(Reply<'_>) -> Option<R>) -> Result<R, Error> {
        self.session.call(request, take).await
    }

    /// What is found by the names; the fid only if all of them are there. At most as many as one request takes.
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
            Ok(qids) => Ok((qids, new.never_made())),
            Err(error) => {
                new.never_made();
                Err(error)
            }
        }
    }

    /// Gives the number back of a fid that the server did not make.
    fn never_made(self) -> Option<Fid> {
        self.session.free_fids.borrow_mut().push(self.number);
        // Dropping it would have the server give it up.
        core::mem::forget(self);
        None
    }

    /// Another fid for the same.
    pub(crate) async fn duplicate(&self) -> Result<Fid, Error> {
        let (_, fid) = self.walk(&[]).await?;
        fid.ok_or(Error::Broken)
    }

    /// Has the fid name the open file or folder.
    pub(crate) async fn open(&self, flags: u32) -> Result<(), Error> {
        let request = Request::Open { fid: self.number, flags };
        self.call(&request, |reply| matches!(reply, Reply::Opened { .. }).then_some(())).await
    }

    /// Makes a file in this folder; the fid names it, open to be read and written.
    pub(crate) async fn create(&self, name: &[u8], mode: u32) -> Result<Qid, Error> {
        let flags = open_flags::READ_WRITE | open_flags::EXCLUSIVE;
        let request = Request::Create { fid: self.number, name: Text(name), flags, mode, group: 0 };
        let created = self.call(&request, |reply| match reply {
            Reply::Created { qid, .. } => Some(qid),
            _ => None,
        });
        created.await
    }

    /// What is known of it.
    pub(crate) async fn attributes(&self) -> Result<Attributes, Error> {
        let request = Request::GetAttributes { fid: self.number, wanted: Attributes::BASIC };
        let attributes = self.call(&request, |reply| match reply {
            Reply::Attributes { attributes } => Some(attributes),
            _ => None,
        });
        attributes.await
    }

    /// Changes what is known of it.
    pub(crate) async fn set_attributes(&self, changes: Changes) -> Result<(), Error> {
        let request = Request::SetAttributes { fid: self.number, changes };
        self.call(&request, |reply| matches!(reply, Reply::AttributesSet {}).then_some(())).await
    }

    /// Where a link leads.
    pub(crate) async fn target(&self) -> Result<Vec<u8>, Error> {
        let request = Request::ReadLink { fid: self.number };
        let target = self.call(&request, |reply| match reply {
            Reply::Target { target } => Some(target.0.to_vec()),
            _ => None,
        });
        target.await
    }

    /// Reads from the open file; fewer bytes than there is room for only at its end.
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

    /// Writes to the open file; where it fails, how many bytes were written before.
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

    /// Writes to the end of a file that is open to be appended to; where that was.
    pub(crate) async fn append(self: &Rc<Self>, data: &[u8]) -> Result<u64, (Error, usize)> {
        let _appending = self.session.appending.lock().await;
        self.write(0, data).await?;
        let size = self.attributes().await.map_err(|error| (error, data.len()))?.size;
        Ok(size.saturating_sub(data.len() as u64))
    }

    /// Makes durable what was written to the open file, or what was done in the open folder.
    pub(crate) async fn sync(&self) -> Result<(), Error> {
        let request = Request::Sync { fid: self.number, data_only: 0 };
        self.call(&request, |reply| matches!(reply, Reply::Synced {}).then_some(())).await
    }

    /// Names of the open folder from an offset on, as many as fit into `count` bytes of entries; none at the end.
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

    /// Makes a folder in this one.
    pub(crate) async fn make_folder(&self, name: &[u8], mode: u32) -> Result<(), Error> {
        let request = Request::MakeDirectory { fid: self.number, name: Text(name), mode, group: 0 };
        self.call(&request, |reply| matches!(reply, Reply::DirectoryMade { .. }).then_some(())).await
    }

    /// Makes a symbolic link in this folder.
    pub(crate) async fn make_link(&self, name: &[u8], target: &[u8]) -> Result<(), Error> {
        let request = Request::MakeLink { fid: self.number, name: Text(name), target: Text(target), group: 0 };
        self.call(&request, |reply| matches!(reply, Reply::LinkMade { .. }).then_some(())).await
    }

    /// Makes one more name in this folder.
    pub(crate) async fn hard_link(&self, file: &Fid, name: &[u8]) -> Result<(), Error> {
        let request = Request::HardLink { directory: self.number, fid: file.number, name: Text(name) };
        self.call(&request, |reply| matches!(reply, Reply::Linked {}).then_some(())).await
    }

    /// Renames what is in this folder.
    pub(crate) async fn rename(&self, old_name: &[u8], to: &Fid, new_name: &[u8]) -> Result<(), Error> {
        let request =
            Request::Rename { from: self.number, old_name: Text(old_name), to: to.number, new_name: Text(new_name) };
        self.call(&request, |reply| matches!(reply, Reply::Renamed {}).then_some(())).await
    }

    /// Takes a name out of this folder; `flags` as in [`Request::Unlink`].
    pub(crate) async fn unlink(&self, name: &[u8], flags: u32) -> Result<(), Error> {
        let request = Request::Unlink { fid: self.number, name: Text(name), flags };
        self.call(&request, |reply| matches!(reply, Reply::Unlinked {}).then_some(())).await
    }
}
