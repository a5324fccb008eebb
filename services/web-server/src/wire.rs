//! A client's TCP connection, over its channel to the network stack.

use alloc::boxed::Box;
use alloc::rc::Rc;

use contracts::tcp_connection::{self, Imp, states};
use sip::exheap::ExVec;

use crate::Server;

/// Bytes requested per read.
const READ_BYTES: u32 = 64 << 10;
/// Maximum length of a response that is sent with a read, in bytes: there is likely room for all of it.
const MAX_SENT_BYTES: usize = 64 << 10;

/// The connection has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gone;

/// Result of a read.
pub(crate) enum Read {
    /// A block and the number of bytes at its start.
    Data(ExVec<u8>, usize),
    /// Timed out.
    Nothing,
    /// The client has shut down its write half.
    End,
}

/// State of the channel.
enum State {
    Ready(Imp<states::Ready>),
    /// A response of this many bytes was sent, and the next request is being read.
    Reading(Imp<states::ReadyAfterSendAndRead>, usize),
    /// The same, of two pieces.
    ReadingTwo(Imp<states::ReadyAfterSendTwoAndRead>, usize, usize),
    Gone,
}

/// A connection to one client.
pub(crate) struct Wire {
    state: State,
    sends_at_once: bool,
    server: Rc<Server>,
    /// If the request being answered is the last of the input: the timeout with which the next one is read.
    next_read_ms: Option<u32>,
    was_cut: bool,
}

impl Wire {
    /// Wraps an accepted connection.
    pub(crate) fn new(endpoint: Imp<states::Ready>, server: Rc<Server>) -> Wire {
        let state = State::Ready(endpoint);
        Wire { state, server, sends_at_once: false, next_read_ms: None, was_cut: false }
    }

    fn take(&mut self) -> Result<Imp<states::Ready>, Gone> {
        match core::mem::replace(&mut self.state, State::Gone) {
            State::Ready(endpoint) => Ok(endpoint),
            State::Reading(..) | State::ReadingTwo(..) | State::Gone => Err(Gone),
        }
    }

    /// Reads what the client sends next, at most [`READ_BYTES`]. `timeout_ms` is that of [`Wire::expect_request`], if
    /// the last response was sent with it.
    pub(crate) async fn read(&mut self, timeout_ms: u32) -> Result<Read, Gone> {
        use tcp_connection::{
            ImpReadyAfterRead as Answer, ImpReadyAfterSendAndRead as AfterSend, ImpReadyAfterSendTwoAndRead as AfterTwo,
        };
        let state = core::mem::replace(&mut self.state, State::Gone);
        let (read, next) = match state {
            State::Ready(endpoint) => match endpoint.read(READ_BYTES, timeout_ms).receive_async().await {
                Answer::Data { data, count, next } => (data_read(data, count), next),
                Answer::NoData { next } => (Read::Nothing, next),
                Answer::EndOfData { next } => (Read::End, next),
                Answer::Failed { .. } | Answer::ChannelClosed(_) => return Err(Gone),
            },
            State::Reading(endpoint, count) => match endpoint.receive_async().await {
                AfterSend::Data { data, count, next } => (data_read(data, count), next),
                AfterSend::NoData { next } => (Read::Nothing, next),
                AfterSend::EndOfData { next } => (Read::End, next),
                AfterSend::Unsent { data, sent, next } => {
                    self.state = State::Ready(next);
                    let rest = [Some((data, sent as usize, count)), None];
                    return Box::pin(self.write_rest_and_read(rest, timeout_ms)).await;
                }
                AfterSend::Failed { .. } | AfterSend::ChannelClosed(_) => return Err(Gone),
            },
            State::ReadingTwo(endpoint, head_count, count) => match endpoint.receive_async().await {
                AfterTwo::Data { data, count, next } => (data_read(data, count), next),
                AfterTwo::NoData { next } => (Read::Nothing, next),
                AfterTwo::EndOfData { next } => (Read::End, next),
                AfterTwo::UnsentTwo { head, data, sent, next } => {
                    self.state = State::Ready(next);
                    let sent = sent as usize;
                    let rest = [Some((head, sent, head_count)), Some((data, sent.saturating_sub(head_count), count))];
                    return Box::pin(self.write_rest_and_read(rest, timeout_ms)).await;
                }
                AfterTwo::Failed { .. } | AfterTwo::ChannelClosed(_) => return Err(Gone),
            },
            State::Gone => return Err(Gone),
        };
        self.state = State::Ready(next);
        Ok(read)
    }

    /// Writes the rest of a response for which there was no room, of each block from one byte to another, and reads.
    async fn write_rest_and_read(
        &mut self,
        rest: [Option<(ExVec<u8>, usize, usize)>; 2],
        timeout_ms: u32,
    ) -> Result<Read, Gone> {
        let server = Rc::clone(&self.server);
        let pending = server.ending.enter();
        for (block, from, to) in rest.into_iter().flatten().filter(|(_, from, to)| from < to) {
            let written = self.write(block, from, to - from).await;
            self.was_cut = written.is_err();
            drop(written?);
        }
        if server.ending.has_begun() {
            self.finish().await?;
            return Ok(Read::End);
        }
        drop(pending);
        Box::pin(self.read(timeout_ms)).await
    }

    /// Takes the timeout with which the next request is read, if a response of this size is to be sent so.
    fn take_next_read(&mut self, bytes: usize, goes_on: bool) -> Option<u32> {
        self.next_read_ms.take().filter(|_| goes_on && bytes <= MAX_SENT_BYTES)
    }

    /// States whether the request being answered is the last of the input, so that the last piece of its response can be
    /// sent with a read of the next one, which has this timeout.
    pub(crate) fn expect_request(&mut self, timeout_ms: Option<u32>) {
        self.next_read_ms = timeout_ms;
    }

    /// Whether a response that was passed on was not sent as a whole, as far as is known.
    pub(crate) fn was_cut(&self) -> bool {
        self.was_cut
    }

    /// Sends the start of a block, the last of a response, after which the connection `goes_on`; returns the block if it
    /// was not given away.
    pub(crate) async fn send(
        &mut self,
        block: ExVec<u8>,
        count: usize,
        goes_on: bool,
    ) -> Result<Option<ExVec<u8>>, Gone> {
        let Some(timeout_ms) = self.take_next_read(count, goes_on) else {
            return self.write(block, 0, count).await.map(Some);
        };
        let endpoint = self.take()?;
        // Fits: blocks are shorter than 4 GiB.
        let reading = endpoint.send_and_read(block, count as u32, READ_BYTES, timeout_ms);
        self.state = State::Reading(reading, count);
        Ok(None)
    }

    /// Sends the starts of two blocks as one write, the last of a response; returns the first block if it was not given
    /// away.
    pub(crate) async fn send_two(
        &mut self,
        head: (ExVec<u8>, usize),
        data: (ExVec<u8>, usize),
        goes_on: bool,
    ) -> Result<Option<ExVec<u8>>, Gone> {
        let Some(timeout_ms) = self.take_next_read(head.1 + data.1, goes_on) else {
            return self.write_two(head, (data.0, 0, data.1)).await.map(|(head, _)| Some(head));
        };
        let endpoint = self.take()?;
        let ((head, head_count), (data, count)) = (head, data);
        let reading = endpoint.send_two_and_read(head, head_count as u32, data, count as u32, READ_BYTES, timeout_ms);
        self.state = State::ReadingTwo(reading, head_count, count);
        Ok(None)
    }

    /// Sends a range of a block and returns the block.
    pub(crate) async fn write(&mut self, block: ExVec<u8>, from: usize, count: usize) -> Result<ExVec<u8>, Gone> {
        use tcp_connection::ImpReadyAfterWrite as Answer;
        let endpoint = self.take()?;
        // Fits: blocks are shorter than 4 GiB.
        let pending = endpoint.write(block, from as u32, count as u32, self.server.limits.write_time_ms);
        match pending.receive_async().await {
            Answer::Written { data, next } => {
                self.state = State::Ready(next);
                Ok(data)
            }
            Answer::WriteFailed { .. } | Answer::ChannelClosed(_) => Err(Gone),
        }
    }

    /// Sends the start of one block and a range of another as one write, and returns both.
    pub(crate) async fn write_two(
        &mut self,
        head: (ExVec<u8>, usize),
        data: (ExVec<u8>, usize, usize),
    ) -> Result<(ExVec<u8>, ExVec<u8>), Gone> {
        use tcp_connection::ImpReadyAfterWriteTwo as Answer;
        let endpoint = self.take()?;
        let (head, head_count) = head;
        let (data, from, count) = data;
        let pending = endpoint.write_two(
            head,
            head_count as u32,
            data,
            from as u32,
            count as u32,
            self.server.limits.write_time_ms,
        );
        match pending.receive_async().await {
            Answer::WrittenTwo { head, data, next } => {
                self.state = State::Ready(next);
                Ok((head, data))
            }
            Answer::WriteTwoFailed { .. } | Answer::ChannelClosed(_) => Err(Gone),
        }
    }

    /// Sets `TCP_NODELAY`: a response is sent in several writes.
    pub(crate) async fn set_no_delay(&mut self) -> Result<(), Gone> {
        use tcp_connection::ImpReadyAfterSetOptions as Answer;
        if self.sends_at_once {
            return Ok(());
        }
        let endpoint = self.take()?;
        match endpoint.set_options(true, 0).receive_async().await {
            // Without it, pieces are only delayed.
            Answer::Done { next } | Answer::Failed { next, .. } => self.state = State::Ready(next),
            Answer::ChannelClosed(_) => return Err(Gone),
        }
        self.sends_at_once = true;
        Ok(())
    }

    /// Shuts down the write half.
    pub(crate) async fn finish(&mut self) -> Result<(), Gone> {
        use tcp_connection::ImpReadyAfterFinish as Answer;
        let endpoint = self.take()?;
        match endpoint.finish().receive_async().await {
            Answer::Done { next } => {
                self.state = State::Ready(next);
                Ok(())
            }
            Answer::Failed { .. } | Answer::ChannelClosed(_) => Err(Gone),
        }
    }

    /// Resets the connection, so that the client sees a truncated response.
    pub(crate) async fn abort(&mut self) {
        if let Ok(endpoint) = self.take() {
            drop(endpoint.abort().receive_async().await);
        }
    }
}

fn data_read(block: ExVec<u8>, count: u32) -> Read {
    let count = (count as usize).min(block.len());
    Read::Data(block, count)
}
