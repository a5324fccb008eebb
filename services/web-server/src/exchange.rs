//! One request that an application answers, over the request's own channel.

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::future::Future;
use core::pin::pin;

use contracts::http_exchange::{Exp, ExpAnswering, ExpReady, states};
use http::answer::{self, HeadWriter};
use http::application;
use http::body::{BodyError, BodyReader};
use sip::Deadline;
use sip::exheap::ExVec;

use crate::Server;
use crate::answers::{self, Cut, Manner, Sent};
use crate::applications::{Application, Progress, Refusal};
use crate::connection::{MALFORMED_CONTENT, MAX_IGNORED_BYTES};
use crate::input::{Input, More};
use crate::limited::limited;
use crate::wire::{Gone, Wire};

/// Maximum number of submissions of a request that no child accepts.
const MAX_TRIES: u32 = 3;
/// Space in front of a chunk: the CRLF of the previous chunk, the size in hexadecimal, a CRLF.
const CHUNK_HEAD_BYTES: usize = 32;
/// Maximum number of bytes passed to an application at once.
const MAX_PIECE_BYTES: usize = 64 << 10;
/// Minimum rate at which a client must send content after the head's timeout, in bytes per millisecond.
const SLOWEST_BYTES_PER_MS: u64 = 1;

/// The content of a request, and its framing.
pub(crate) struct Content<'a> {
    /// Its source.
    pub(crate) input: &'a mut Input,
    /// Decodes the framing.
    pub(crate) reader: BodyReader,
    /// The client sent `Expect: 100-continue` and waits.
    pub(crate) is_awaited: bool,
    /// Why reading stopped.
    error: Option<BodyError>,
    started: Deadline,
    received: u64,
}

impl<'a> Content<'a> {
    /// Content behind a head that was consumed.
    pub(crate) fn new(input: &'a mut Input, reader: BodyReader, is_awaited: bool) -> Content<'a> {
        Content { input, reader, is_awaited, error: None, started: Deadline::coarse_after_ms(0), received: 0 }
    }

    /// Whether the connection can persist after a response sent at this point: the client is not waiting to send the
    /// rest, and it is short enough to be discarded.
    fn allows_keep_alive(&self) -> bool {
        let is_too_long = self.reader.left().is_some_and(|left| left > MAX_IGNORED_BYTES);
        self.reader.has_ended() || !self.is_awaited && !is_too_long
    }

    /// Returns the next piece; empty at the end.
    async fn next(&mut self, server: &Server, wire: &mut Wire, most: u32) -> Result<(ExVec<u8>, usize), ()> {
        loop {
            if self.reader.has_ended() {
                return Ok((ExVec::new(0).map_err(drop)?, 0));
            }
            if self.is_awaited {
                self.is_awaited = false;
                const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
                let mut block = server.blocks.take(CONTINUE.len()).map_err(drop)?;
                block[..CONTINUE.len()].copy_from_slice(CONTINUE);
                server.blocks.give(wire.write(block, 0, CONTINUE.len()).await.map_err(drop)?);
            }
            if self.input.bytes().is_empty() {
                let allowed_ms = u64::from(server.limits.header_time_ms) + self.received / SLOWEST_BYTES_PER_MS;
                let spent_ms = sip::time::monotonic_coarse().saturating_sub(self.started.as_ns()) / 1_000_000;
                let left_ms = allowed_ms.saturating_sub(spent_ms).min(server.limits.header_time_ms.into());
                if left_ms == 0 || self.input.read(wire, left_ms as u32).await != Ok(More::Data) {
                    return Err(());
                }
            }
            let bytes = self.input.bytes();
            let most = bytes.len().min(most as usize).clamp(1, MAX_PIECE_BYTES);
            let looked_at = &bytes[..most.min(bytes.len())];
            let piece = self.reader.next(looked_at).map_err(|error| self.error = Some(error))?;
            let count = piece.data.len();
            let block = if count > 0 { Some(ExVec::from_slice(&looked_at[piece.data]).map_err(drop)?) } else { None };
            server.blocks.give_received(self.input.consume(piece.consumed));
            if let Some(block) = block {
                self.received += count as u64;
                return Ok((block, count));
            }
        }
    }
}

/// Forwards a request to an application and sends its response. `head`: the fields passed to it.
pub(crate) async fn answer(
    server: &Server,
    wire: &mut Wire,
    manner: Manner,
    application: &Application,
    head: &[u8],
    content: &mut Content<'_>,
) -> Result<Sent, Cut> {
    let mut tries = 0;
    loop {
        tries += 1;
        let progress = Rc::new(Progress::default());
        let exchange = match application.submit(head, &progress, server.limits.application_queue) {
            Ok(exchange) => exchange,
            Err(Refusal::Failing(seconds)) => {
                let field = alloc::format!("retry-after: {seconds}\r\n");
                let explanation = "the application keeps failing; try again soon";
                return answers::send_page(server, wire, manner, 503, explanation, &field).await;
            }
            Err(Refusal::Busy) => {
                let explanation = "too many requests are queued for the application; try again soon";
                return answers::send_page(server, wire, manner, 503, explanation, "").await;
            }
        };
        let mut talk = Talk { server, wire: &mut *wire, manner, application, progress, content: &mut *content };
        let answer = talk.until_answer(exchange).await;
        application.note_end(&talk.progress);
        match answer {
            Ok(sent) => {
                application.note_answer();
                return Ok(sent);
            }
            Err(Failure::NotTaken) if tries < MAX_TRIES => {}
            Err(Failure::NotTaken | Failure::Broken) => {
                return answers::send_page(server, wire, manner, 502, "the application failed", "").await;
            }
            Err(Failure::Crowded) => {
                let explanation = "the application is overloaded; try again soon";
                return answers::send_page(server, wire, manner, 503, explanation, "").await;
            }
            Err(Failure::TooSlow) => {
                return answers::send_page(server, wire, manner, 504, "the application timed out", "").await;
            }
            Err(Failure::TooLarge) => {
                let manner = Manner { keep_alive: false, ..manner };
                return answers::send_page(server, wire, manner, 413, "", "").await;
            }
            Err(Failure::Malformed) => {
                let manner = Manner { keep_alive: false, ..manner };
                return answers::send_page(server, wire, manner, 400, MALFORMED_CONTENT, "").await;
            }
            Err(Failure::Cut(cut)) => return Err(cut),
        }
    }
}

/// Why there is no response.
enum Failure {
    /// No child took the request.
    NotTaken,
    /// The child ended, or sent an invalid response.
    Broken,
    /// The request timed out.
    TooSlow,
    /// The request timed out before the application, busy with others, took it.
    Crowded,
    /// The content exceeds the limit.
    TooLarge,
    /// The content's framing is malformed.
    Malformed,
    /// Part of the response was sent and no more will be, or the client is gone.
    Cut(Cut),
}

struct Talk<'t, 'c> {
    server: &'t Server,
    wire: &'t mut Wire,
    manner: Manner,
    application: &'t Application,
    progress: Rc<Progress>,
    content: &'t mut Content<'c>,
}

impl Talk<'_, '_> {
    fn deadline(&self) -> Deadline {
        Deadline::coarse_after_ms(self.server.limits.application_time_ms.into())
    }

    /// Awaits the application within the time limit. For a request that queued, the limit counts from when it was
    /// taken.
    async fn in_time<F: Future>(&self, waiting: F) -> Option<F::Output> {
        let mut waiting = pin!(waiting);
        let mut deadline = self.deadline();
        loop {
            if let Some(event) = limited(deadline, waiting.as_mut()).await {
                return Some(event);
            }
            let time_ns = u64::from(self.server.limits.application_time_ms) * 1_000_000;
            let later = Deadline::at(self.progress.taken_ns.get().saturating_add(time_ns));
            if later <= deadline {
                return None;
            }
            deadline = later;
        }
    }

    async fn until_answer(&mut self, mut exchange: Exp<states::Ready>) -> Result<Sent, Failure> {
        loop {
            let Some(event) = self.in_time(exchange.receive_async()).await else {
                if self.application.is_busy_with_others(&self.progress) {
                    return Err(Failure::Crowded);
                }
                self.application.stop(&self.progress);
                return Err(Failure::TooSlow);
            };
            match event {
                ExpReady::ReadBody { most, next } => {
                    exchange = match self.content.next(self.server, self.wire, most).await {
                        Ok((_, 0)) => next.end_of_body(),
                        Ok((block, count)) => next.body(block, count as u32),
                        Err(()) => {
                            // The start of the next request is unknown.
                            self.manner.keep_alive = false;
                            next.body_failed()
                        }
                    };
                }
                // Malformed content is reported to the client whatever the application answers.
                ExpReady::Reply { next, .. } if self.content.error.is_some() => {
                    drop(next.failed());
                    return Err(self.content_failure());
                }
                ExpReady::Begin { next, .. } if self.content.error.is_some() => {
                    drop(next.failed());
                    return Err(self.content_failure());
                }
                ExpReady::Reply { status, head, body, count, next } => {
                    let Some(fields) = checked(status, &head).filter(|_| count as usize <= body.len()) else {
                        drop(next.failed());
                        return Err(Failure::Broken);
                    };
                    self.keep_alive_if_possible();
                    let sent = self.reply(status, &fields, body, count as usize).await;
                    match &sent {
                        Ok(_) => drop(next.done()),
                        Err(_) => drop(next.failed()),
                    }
                    return sent.map_err(|Gone| Failure::Cut(Cut { status }));
                }
                ExpReady::Begin { status, head, next } => {
                    let Some(fields) = checked(status, &head) else {
                        drop(next.failed());
                        return Err(Failure::Broken);
                    };
                    self.keep_alive_if_possible();
                    if self.begin(status, &fields).await.is_err() {
                        drop(next.failed());
                        return Err(Failure::Cut(Cut { status }));
                    }
                    let content_bytes = self.stream(next.done(), status).await;
                    let content_bytes = content_bytes.map_err(|Gone| Failure::Cut(Cut { status }))?;
                    return Ok(Sent { status, content_bytes, goes_on: self.goes_on_after_stream(status) });
                }
                ExpReady::ChannelClosed(_) if !self.progress.is_taken.get() => return Err(Failure::NotTaken),
                ExpReady::ChannelClosed(_) if self.application.was_stopped(&self.progress) => {
                    return Err(Failure::TooSlow);
                }
                ExpReady::ChannelClosed(_) => return Err(Failure::Broken),
            }
        }
    }

    /// Returns why reading the content failed.
    fn content_failure(&self) -> Failure {
        match self.content.error {
            Some(BodyError::Malformed) => Failure::Malformed,
            Some(BodyError::TooLarge) | None => Failure::TooLarge,
        }
    }

    /// A client that was never sent 100 may or may not send its content, so the start of the next request is unknown.
    fn keep_alive_if_possible(&mut self) {
        self.manner.keep_alive &= self.content.allows_keep_alive();
        let is_last = self.content.reader.has_ended() && self.content.input.bytes().is_empty();
        self.wire.expect_request(is_last.then(|| self.server.idle_time_ms()));
    }

    async fn reply(&mut self, status: u16, fields: &[u8], body: ExVec<u8>, count: usize) -> Result<Sent, Gone> {
        let has_content = answer::has_content(status);
        let mut block = self.head_block(fields)?;
        let mut head = HeadWriter::new(&mut block);
        answers::begin_head(self.server, &mut head, status, self.manner);
        if has_content {
            head.number_field("content-length", count as u64);
        }
        head.put(fields);
        head.put(b"\r\n");
        let head_bytes = head.finish().ok_or(Gone)?;
        let goes_on = self.manner.keep_alive;
        if !has_content || self.manner.is_head || count == 0 {
            self.server.blocks.give(self.wire.send(block, head_bytes, goes_on).await?);
            return Ok(Sent { status, content_bytes: 0, goes_on });
        }
        self.server.blocks.give(self.wire.send_two((block, head_bytes), (body, count), goes_on).await?);
        Ok(Sent { status, content_bytes: count as u64, goes_on })
    }

    fn head_block(&self, fields: &[u8]) -> Result<ExVec<u8>, Gone> {
        self.server.blocks.take(answers::HEAD_BYTES + fields.len()).map_err(|_| Gone)
    }

    fn is_chunked(&self) -> bool {
        self.manner.minor_version > 0
    }

    fn has_body(&self, status: u16) -> bool {
        answer::has_content(status) && !self.manner.is_head
    }

    /// Without chunked coding, the end of the connection delimits the content.
    fn goes_on_after_stream(&self, status: u16) -> bool {
        self.manner.keep_alive && (self.is_chunked() || !self.has_body(status))
    }

    async fn begin(&mut self, status: u16, fields: &[u8]) -> Result<(), Gone> {
        self.manner.keep_alive = self.goes_on_after_stream(status);
        let mut block = self.head_block(fields)?;
        let mut head = HeadWriter::new(&mut block);
        answers::begin_head(self.server, &mut head, status, self.manner);
        if answer::has_content(status) && self.is_chunked() {
            head.put(b"transfer-encoding: chunked\r\n");
        }
        head.put(fields);
        head.put(b"\r\n");
        let head_bytes = head.finish().ok_or(Gone)?;
        self.wire.set_no_delay().await?;
        self.server.blocks.give(self.wire.write(block, 0, head_bytes).await?);
        Ok(())
    }

    /// Streams the pieces of a response to its end.
    async fn stream(&mut self, mut exchange: Exp<states::Answering>, status: u16) -> Result<u64, Gone> {
        let mut content_bytes = 0;
        loop {
            let Some(event) = limited(self.deadline(), exchange.receive_async()).await else {
                self.application.stop(&self.progress);
                return Err(Gone);
            };
            match event {
                ExpAnswering::Write { data, count, next } => {
                    let count = count as usize;
                    if count > data.len() {
                        drop(next.failed());
                        return Err(Gone);
                    }
                    if self.has_body(status) && count > 0 {
                        if self.send_piece(data, count).await.is_err() {
                            drop(next.failed());
                            return Err(Gone);
                        }
                        content_bytes += count as u64;
                    }
                    exchange = next.done();
                }
                ExpAnswering::End { next } => {
                    let ended = self.end_stream(status).await;
                    match ended {
                        Ok(()) => drop(next.done()),
                        Err(Gone) => drop(next.failed()),
                    }
                    return ended.map(|()| content_bytes);
                }
                ExpAnswering::ChannelClosed(_) => return Err(Gone),
            }
        }
    }

    async fn send_piece(&mut self, mut data: ExVec<u8>, count: usize) -> Result<(), Gone> {
        if !self.is_chunked() {
            return self.wire.write(data, 0, count).await.map(drop);
        }
        let mut before = self.server.blocks.take(CHUNK_HEAD_BYTES).map_err(|_| Gone)?;
        let mut head = HeadWriter::new(&mut before);
        head.put_hex(count as u64);
        head.put(b"\r\n");
        let used = head.finish().ok_or(Gone)?;
        // The chunk's CRLF goes into the application's block, which the server owns by now, if there is room;
        // otherwise it is sent by itself.
        let end = data.get_mut(count..count + 2).map(|end| end.copy_from_slice(b"\r\n"));
        let sent = if end.is_some() { count + 2 } else { count };
        let (mut before, _) = self.wire.write_two((before, used), (data, 0, sent)).await?;
        if end.is_none() {
            before[..2].copy_from_slice(b"\r\n");
            before = self.wire.write(before, 0, 2).await?;
        }
        self.server.blocks.give(before);
        Ok(())
    }

    async fn end_stream(&mut self, status: u16) -> Result<(), Gone> {
        if !self.is_chunked() || !self.has_body(status) {
            return Ok(());
        }
        const END: &[u8] = b"0\r\n\r\n";
        let mut block = self.server.blocks.take(END.len()).map_err(|_| Gone)?;
        block[..END.len()].copy_from_slice(END);
        self.server.blocks.give(self.wire.write(block, 0, END.len()).await?);
        Ok(())
    }
}

/// Returns an application's header fields as they are sent; `None` if its head is invalid.
fn checked(status: u16, head: &[u8]) -> Option<Vec<u8>> {
    if !application::is_status(status) {
        return None;
    }
    let mut fields = Vec::with_capacity(head.len() + 32);
    application::answer_head(head, &mut fields).ok()?;
    Some(fields)
}
