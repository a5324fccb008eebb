//! Sends responses: heads, pages and files.

use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;

use http::answer::HeadWriter;
use http::page;
use http::range::ByteRange;
use sip::exheap::ExVec;

use crate::Server;
use crate::blocks::{MAX_BYTES, PIECE_BYTES};
use crate::cache::Entry;
use crate::plan::Content;
use crate::store::{FileChannel, StoreError, of_file};
use crate::wire::{Gone, Wire};

/// Maximum length of a head without an application's fields, in bytes.
pub(crate) const HEAD_BYTES: usize = 1024;
/// Contents up to this size in bytes are read whole, sent with the head, and cached.
const WHOLE_BYTES: u64 = 64 << 10;
/// Contents up to this size in bytes are copied behind their head: one block to send costs less than two.
const COPIED_BYTES: usize = 3 << 10;
/// Number of connections above which pieces are short, and the length of a short piece in bytes.
const CROWD: usize = 2000;
const CROWD_PIECE_BYTES: usize = 16 << 10;

/// Sent with each 503 that has no `Retry-After` of its own.
const RETRY_AFTER: &str = "retry-after: 1\r\n";

/// Response as sent, for the access log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) status: u16,
    pub(crate) content_bytes: u64,
    /// Whether the connection persists.
    pub(crate) goes_on: bool,
}

/// A response was cut off.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    pub(crate) status: u16,
}

/// Why the requested content of a file was not sent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unsent {
    /// The response was cut off.
    Cut(Cut),
    /// Nothing was sent: the file has changed since it was opened, and must be opened again.
    Changed,
}

impl From<Cut> for Unsent {
    fn from(cut: Cut) -> Unsent {
        Unsent::Cut(cut)
    }
}

/// Options for sending a response.
#[derive(Clone, Copy)]
pub(crate) struct Manner {
    pub(crate) is_head: bool,
    pub(crate) keep_alive: bool,
    pub(crate) minor_version: u8,
}

/// Writes the status line and the fields common to all responses.
pub(crate) fn begin_head(server: &Server, head: &mut HeadWriter<'_>, status: u16, manner: Manner) {
    head.status(status);
    head.put(b"server: singularity\r\ndate: ");
    head.put(&server.date());
    if !manner.keep_alive {
        head.put(b"\r\nconnection: close\r\n");
    } else if manner.minor_version == 0 {
        head.put(b"\r\nconnection: keep-alive\r\n");
    } else {
        head.put(b"\r\n");
    }
}

/// Sends a status page. `fields` are additional header fields, each with its CRLF.
pub(crate) async fn send_page(
    server: &Server,
    wire: &mut Wire,
    manner: Manner,
    status: u16,
    explanation: &str,
    fields: &str,
) -> Result<Sent, Cut> {
    let page = page::status(status, explanation);
    // All unavailability here is temporary (RFC 9110, section 10.2.3).
    let fields = if status == 503 && fields.is_empty() { RETRY_AFTER } else { fields };
    send_text(server, wire, manner, status, &page, fields).await
}

/// Sends an HTML page.
pub(crate) async fn send_text(
    server: &Server,
    wire: &mut Wire,
    manner: Manner,
    status: u16,
    page: &str,
    fields: &str,
) -> Result<Sent, Cut> {
    let cut = Cut { status };
    let content: &[u8] = if manner.is_head { b"" } else { page.as_bytes() };
    let small = HEAD_BYTES + fields.len() + content.len();
    let mut block = match server.blocks.take(small) {
        Ok(block) => block,
        Err(_) => ExVec::new(small).map_err(|_| cut)?,
    };
    let mut head = HeadWriter::new(&mut block);
    begin_head(server, &mut head, status, manner);
    head.put(fields.as_bytes());
    head.put(b"content-type: text/html; charset=utf-8\r\n");
    head.number_field("content-length", page.len() as u64);
    head.put(b"\r\n");
    head.put(content);
    let count = head.finish().ok_or(cut)?;
    server.blocks.give(wire.send(block, count, manner.keep_alive).await.map_err(|Gone| cut)?);
    Ok(Sent { status, content_bytes: content.len() as u64, goes_on: manner.keep_alive })
}

/// Sends a response without content.
pub(crate) async fn send_head(
    server: &Server,
    wire: &mut Wire,
    manner: Manner,
    status: u16,
    fields: &[u8],
) -> Result<Sent, Cut> {
    let cut = Cut { status };
    let mut block = server.blocks.take(HEAD_BYTES + fields.len()).map_err(|_| cut)?;
    let mut head = HeadWriter::new(&mut block);
    begin_head(server, &mut head, status, manner);
    head.put(fields);
    head.put(b"\r\n");
    let count = head.finish().ok_or(cut)?;
    server.blocks.give(wire.send(block, count, manner.keep_alive).await.map_err(|Gone| cut)?);
    Ok(Sent { status, content_bytes: 0, goes_on: manner.keep_alive })
}

/// Sends the requested content of an open file.
pub(crate) async fn send_file(
    server: &Server,
    wire: &mut Wire,
    manner: Manner,
    entry: &Rc<Entry>,
    content: Content,
) -> Result<Sent, Unsent> {
    let size = entry.attributes.size_bytes;
    let sent = match content {
        Content::Nothing(304) => send_head(server, wire, manner, 304, &entry.fields).await,
        Content::CodedNotModified => send_head(server, wire, manner, 304, entry.coded_fields()).await,
        Content::Nothing(416) => {
            let field = format!("content-range: bytes */{size}\r\n");
            send_page(server, wire, manner, 416, "", &field).await
        }
        Content::Nothing(status) => send_page(server, wire, manner, status, "", "").await,
        Content::Coded => return send_coded(server, wire, manner, entry).await,
        Content::Whole => return send_part(server, wire, manner, entry, None).await,
        Content::Part(part) => return send_part(server, wire, manner, entry, Some(part)).await,
        Content::Parts(parts) => {
            return match server.boundaries.next(&server.store).await {
                Some(boundary) => send_parts(server, wire, manner, entry, &parts, &boundary).await,
                // A server may ignore `Range` (RFC 9110, section 14.2).
                None => send_part(server, wire, manner, entry, None).await,
            };
        }
    };
    Ok(sent?)
}

/// Sends a whole file with content coding `gzip`, or as it is if that is no shorter.
async fn send_coded(server: &Server, wire: &mut Wire, manner: Manner, entry: &Rc<Entry>) -> Result<Sent, Unsent> {
    let cut = Cut { status: 200 };
    let coded = match server.coded.find(&entry.attributes) {
        Some(coded) => coded,
        None => {
            let block = match whole(server, entry).await {
                Ok(block) => block,
                Err(StoreError::Changed) => return Err(Unsent::Changed),
                Err(error) => return Ok(send_error(server, wire, manner, error).await?),
            };
            let size = entry.attributes.size_bytes as usize;
            let coded = server.coded.make(&entry.attributes, block.get(..size).unwrap_or(&[]));
            if let Some(block) = server.cache.give_warm(entry, block) {
                server.blocks.give(block);
            }
            coded
        }
    };
    if coded.is_empty() {
        entry.note_no_shorter();
        return send_part(server, wire, manner, entry, None).await;
    }
    let content: &[u8] = if manner.is_head { &[] } else { &coded };
    let mut block = server.blocks.take(HEAD_BYTES + content.len()).map_err(|_| cut)?;
    let mut head = HeadWriter::new(&mut block);
    begin_head(server, &mut head, 200, manner);
    head.number_field("content-length", coded.len() as u64);
    head.put(entry.coded_fields());
    head.put(b"\r\n");
    head.put(content);
    let count = head.finish().ok_or(cut)?;
    server.blocks.give(wire.send(block, count, manner.keep_alive).await.map_err(|Gone| cut)?);
    Ok(Sent { status: 200, content_bytes: content.len() as u64, goes_on: manner.keep_alive })
}

/// Writes the head of a response with a whole file, or one part of it, and `content` behind it.
fn file_head(
    server: &Server,
    manner: Manner,
    entry: &Entry,
    part: Option<ByteRange>,
    content: &[u8],
) -> Result<(ExVec<u8>, usize), StoreError> {
    let mut block = server.blocks.take(HEAD_BYTES + content.len()).map_err(|_| StoreError::Unavailable)?;
    let mut head = HeadWriter::new(&mut block);
    let size = entry.attributes.size_bytes;
    match part {
        None => {
            begin_head(server, &mut head, 200, manner);
            head.number_field("content-length", size);
        }
        Some(part) => {
            begin_head(server, &mut head, 206, manner);
            head.number_field("content-length", part.length);
            put_content_range(&mut head, part, size);
        }
    }
    head.put(&entry.fields);
    head.put(b"\r\n");
    head.put(content);
    let count = head.finish().ok_or(StoreError::Failed)?;
    Ok((block, count))
}

fn put_content_range(head: &mut HeadWriter<'_>, part: ByteRange, size: u64) {
    head.put(b"content-range: bytes ");
    head.put_number(part.start);
    head.put(b"-");
    head.put_number(part.start + part.length - 1);
    head.put(b"/");
    head.put_number(size);
    head.put(b"\r\n");
}

async fn send_part(
    server: &Server,
    wire: &mut Wire,
    manner: Manner,
    entry: &Rc<Entry>,
    part: Option<ByteRange>,
) -> Result<Sent, Unsent> {
    let status = if part.is_some() { 206 } else { 200 };
    let cut = Cut { status };
    let range = part.unwrap_or(ByteRange { start: 0, length: entry.attributes.size_bytes });
    if manner.is_head || range.length == 0 {
        let (block, count) = file_head(server, manner, entry, part, b"").map_err(|_| cut)?;
        server.blocks.give(wire.send(block, count, manner.keep_alive).await.map_err(|Gone| cut)?);
        return Ok(Sent { status, content_bytes: 0, goes_on: manner.keep_alive });
    }
    let sent = Sent { status, content_bytes: range.length, goes_on: manner.keep_alive };
    let kept = server.cache.take_warm(entry);
    // A long file is read whole only if it can be cached.
    let is_short = entry.attributes.size_bytes <= WHOLE_BYTES.min(piece_bytes(server) as u64);
    let is_long_whole = !is_short && (kept.is_some() || part.is_none());
    let room = if is_long_whole { server.cache.reserve(entry.attributes.size_bytes) } else { None };
    if is_short || kept.is_some() || room.is_some() {
        let read = match kept {
            Some(block) => Ok(block),
            None => read_whole(server, entry).await,
        };
        let block = match read {
            Ok(block) => block,
            Err(StoreError::Changed) => return Err(Unsent::Changed),
            Err(error) => return Ok(send_error(server, wire, manner, error).await?),
        };
        // The file is no longer than the longest block.
        let (start, length) = (range.start as usize, range.length as usize);
        let small = if length > COPIED_BYTES { None } else { block.get(start..start + length) };
        let (head, block) = match small {
            Some(content) => {
                let (head, count) = file_head(server, manner, entry, part, content).map_err(|_| cut)?;
                (wire.send(head, count, manner.keep_alive).await.map_err(|Gone| cut)?, block)
            }
            None => {
                let head = file_head(server, manner, entry, part, b"").map_err(|_| cut)?;
                let (head, block) = wire.write_two(head, (block, start, length)).await.map_err(|Gone| cut)?;
                (Some(head), block)
            }
        };
        server.blocks.give(head);
        drop(room);
        if let Some(block) = server.cache.give_warm(entry, block) {
            server.blocks.give(block);
        }
        return Ok(sent);
    }
    let mut reader = Reader::new(server, entry, range);
    let first = match reader.first().await {
        Ok(first) => first,
        Err(StoreError::Changed) => return Err(Unsent::Changed),
        Err(error) => return Ok(send_error(server, wire, manner, error).await?),
    };
    let head = file_head(server, manner, entry, part, b"").map_err(|_| cut)?;
    send_pieces(server, wire, Some(head), reader, first).await.map_err(|Gone| cut)?;
    Ok(sent)
}

/// Sends a reader's pieces, the first together with `head`.
async fn send_pieces(
    server: &Server,
    wire: &mut Wire,
    mut head: Option<(ExVec<u8>, usize)>,
    mut reader: Reader<'_>,
    first: (ExVec<u8>, usize),
) -> Result<(), Gone> {
    if !reader.is_done() {
        wire.set_no_delay().await?;
    }
    let (mut block, mut count) = first;
    loop {
        let is_last = reader.is_done();
        if !is_last {
            // The next piece is read while this one is sent.
            reader.request().await.map_err(|_| Gone)?;
        }
        let sent = match head.take() {
            Some(head) => {
                let (head, block) = wire.write_two(head, (block, 0, count)).await?;
                server.blocks.give(head);
                block
            }
            None => wire.write(block, 0, count).await?,
        };
        server.blocks.give(sent);
        if is_last {
            return Ok(());
        }
        (block, count) = reader.next().await.map_err(|_| Gone)?;
    }
}

/// Sends a multipart response with several ranges (RFC 9110, section 14.6).
async fn send_parts(
    server: &Server,
    wire: &mut Wire,
    manner: Manner,
    entry: &Rc<Entry>,
    parts: &[ByteRange],
    boundary: &str,
) -> Result<Sent, Unsent> {
    let cut = Cut { status: 206 };
    let size = entry.attributes.size_bytes;
    let heads: alloc::vec::Vec<String> = parts
        .iter()
        .map(|part| {
            let last = part.start + part.length - 1;
            format!(
                "\r\n--{boundary}\r\ncontent-type: {}\r\ncontent-range: bytes {}-{last}/{size}\r\n\r\n",
                entry.content_type, part.start
            )
        })
        .collect();
    let end = format!("\r\n--{boundary}--\r\n");
    let length = heads.iter().map(|head| head.len() as u64).sum::<u64>()
        + parts.iter().map(|part| part.length).sum::<u64>()
        + end.len() as u64;
    let mut before = server.blocks.take(2 * HEAD_BYTES).map_err(|_| cut)?;
    let mut head = HeadWriter::new(&mut before);
    begin_head(server, &mut head, 206, manner);
    head.number_field("content-length", length);
    head.put(b"content-type: multipart/byteranges; boundary=");
    head.put(boundary.as_bytes());
    head.put(b"\r\n");
    // Each part carries its own content type.
    let rest = entry.fields.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    head.put(&entry.fields[rest..]);
    head.put(b"\r\n");
    let mut used = head.finish().ok_or(cut)?;
    wire.set_no_delay().await.map_err(|Gone| cut)?;
    for (index, (part, text)) in parts.iter().zip(&heads).enumerate() {
        let room = before.get_mut(used..used + text.len()).ok_or(cut)?;
        room.copy_from_slice(text.as_bytes());
        used += text.len();
        let mut reader = Reader::new(server, entry, *part);
        let first = match reader.first().await {
            Err(StoreError::Changed) if index == 0 => return Err(Unsent::Changed),
            first => first.map_err(|_| cut)?,
        };
        send_pieces(server, wire, Some((before, used)), reader, first).await.map_err(|Gone| cut)?;
        before = server.blocks.take(2 * HEAD_BYTES).map_err(|_| cut)?;
        used = 0;
    }
    before[..end.len()].copy_from_slice(end.as_bytes());
    server.blocks.give(wire.send(before, end.len(), manner.keep_alive).await.map_err(|Gone| cut)?);
    Ok(Sent { status: 206, content_bytes: length, goes_on: manner.keep_alive })
}

/// Sends the error for a file that cannot be sent.
pub(crate) async fn send_error(
    server: &Server,
    wire: &mut Wire,
    manner: Manner,
    error: StoreError,
) -> Result<Sent, Cut> {
    match error {
        StoreError::NotFound | StoreError::IsFolder => send_page(server, wire, manner, 404, "", "").await,
        StoreError::NotPermitted => send_page(server, wire, manner, 403, "", "").await,
        StoreError::Unavailable => {
            let explanation = "the files are unavailable at present; try again soon";
            send_page(server, wire, manner, 503, explanation, "").await
        }
        StoreError::Changed | StoreError::Failed => {
            send_page(server, wire, manner, 500, "the file cannot be read", "").await
        }
    }
}

/// Returns a block with the whole content of a file at its start.
async fn whole(server: &Server, entry: &Rc<Entry>) -> Result<ExVec<u8>, StoreError> {
    match server.cache.take_warm(entry) {
        Some(block) => Ok(block),
        None => read_whole(server, entry).await,
    }
}

async fn read_whole(server: &Server, entry: &Rc<Entry>) -> Result<ExVec<u8>, StoreError> {
    let mut reader = Reader::new(server, entry, ByteRange { start: 0, length: entry.attributes.size_bytes });
    reader.piece_bytes = MAX_BYTES;
    Ok(reader.first().await?.0)
}

/// Length of the pieces in which files are sent, in bytes. A connection holds at most two, one being sent and one
/// being read; slow clients must not exhaust the blocks, whatever their number.
fn piece_bytes(server: &Server) -> usize {
    if server.connections.get() > CROWD { CROWD_PIECE_BYTES } else { PIECE_BYTES }
}

/// Reads a range of a file in pieces, one ahead of the piece being sent.
struct Reader<'a> {
    server: &'a Server,
    entry: Rc<Entry>,
    offset: u64,
    end: u64,
    piece_bytes: usize,
    pending: Option<(contracts::file::Imp<contracts::file::states::ReadyAfterRead>, usize)>,
}

impl<'a> Reader<'a> {
    fn new(server: &'a Server, entry: &Rc<Entry>, range: ByteRange) -> Reader<'a> {
        let end = range.start + range.length;
        let piece_bytes = piece_bytes(server);
        Reader { server, entry: entry.clone(), offset: range.start, end, piece_bytes, pending: None }
    }

    /// Whether all pieces were returned.
    fn is_done(&self) -> bool {
        self.offset == self.end
    }

    /// Returns the first piece.
    async fn first(&mut self) -> Result<(ExVec<u8>, usize), StoreError> {
        self.request().await?;
        self.next().await
    }

    /// Requests the next piece without waiting for it.
    async fn request(&mut self) -> Result<(), StoreError> {
        let channel = match self.entry.take_channel() {
            Some(channel) => channel,
            None => self.open().await?,
        };
        self.request_on(channel)
    }

    fn request_on(&mut self, channel: FileChannel) -> Result<(), StoreError> {
        let count = (self.end - self.offset).min(self.piece_bytes as u64) as usize;
        let block = self.server.blocks.take(count).map_err(|_| StoreError::Unavailable)?;
        self.pending = Some((channel.read(block, self.offset, count as u32), count));
        Ok(())
    }

    /// Returns the requested piece: its block and length. If the file system ended meanwhile, the file is opened
    /// again once, and must be unchanged. The last piece is returned only if the file is unchanged, so that a
    /// complete response is a consistent snapshot, as far as size and modification time tell.
    async fn next(&mut self) -> Result<(ExVec<u8>, usize), StoreError> {
        use contracts::file::ImpReadyAfterRead as Answer;
        let mut may_open = true;
        loop {
            let (channel, count) = self.pending.take().ok_or(StoreError::Failed)?;
            match channel.receive_async().await {
                Answer::ReadDone { data, count: read, next } => {
                    if read as usize != count || data.len() < count {
                        self.server.cache.forget(&self.entry);
                        return Err(StoreError::Changed);
                    }
                    self.offset += count as u64;
                    if self.is_done() {
                        self.verify(next).await?;
                    } else {
                        self.entry.give_channel(next);
                    }
                    return Ok((data, count));
                }
                Answer::ReadFailed { error, .. } if of_file(error) != StoreError::Unavailable || !may_open => {
                    return Err(of_file(error));
                }
                Answer::ChannelClosed(_) if !may_open => return Err(StoreError::Unavailable),
                Answer::ReadFailed { .. } | Answer::ChannelClosed(_) => {
                    may_open = false;
                    self.server.cache.forget(&self.entry);
                    let channel = self.open().await?;
                    self.request_on(channel)?;
                }
            }
        }
    }

    /// Verifies that the file is unchanged. A file system that ended meanwhile has answered before.
    async fn verify(&self, channel: FileChannel) -> Result<(), StoreError> {
        use contracts::file::ImpReadyAfterGetAttributes as Answer;
        match channel.get_attributes().receive_async().await {
            Answer::Attributes { attributes, next } if self.entry.is_same(&attributes) => {
                self.entry.give_channel(next);
                Ok(())
            }
            Answer::Attributes { .. } => {
                self.server.cache.forget(&self.entry);
                Err(StoreError::Changed)
            }
            Answer::ChannelClosed(_) => {
                self.server.cache.forget(&self.entry);
                self.open().await.map(drop)
            }
        }
    }

    /// Opens another channel to the file.
    async fn open(&self) -> Result<FileChannel, StoreError> {
        let opened = self.server.store.open_file(&self.entry.path).await?;
        if !self.entry.is_same(&opened.attributes) {
            self.server.cache.forget(&self.entry);
            return Err(StoreError::Changed);
        }
        Ok(opened.channel)
    }
}
