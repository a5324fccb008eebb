//! One request and its answer.

use alloc::vec::Vec;
use core::fmt;
use core::future::Future;

use contracts::http_exchange::{self, Imp, states};
use sip::exheap::ExVec;
use web_message::{AnswerHead, HeadError, RequestHead};

use crate::reply::{Body, Reply};

/// Bytes of a piece of a request's body that are asked for at a time.
const PIECE_BYTES: u32 = 64 * 1024;

/// A request that wants an answer. Dropped without one, it costs the client a 502.
#[must_use = "dropped without an answer, the client is told that the application failed"]
pub struct Exchange {
    head: RequestHead,
    /// The head as it came.
    head_block: ExVec<u8>,
    /// None when the server has closed it.
    channel: Option<Imp<states::Ready>>,
}

/// Tells that a request was answered. Nothing but answering gives one.
#[derive(Debug)]
pub struct Answered(());

/// Nobody hears the answer, or not all of it: the client or the server is gone, the server refused the answer's head,
/// or the application cut it off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone(());

/// Why the body of a request cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// It is longer than the application takes.
    TooLong,
    /// The client is gone or too slow, or sent more than the server takes, or nonsense.
    Failed,
}

impl fmt::Display for BodyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            BodyError::TooLong => "the body is longer than this application takes",
            BodyError::Failed => "the body did not come whole",
        })
    }
}

impl BodyError {
    /// The answer for it.
    pub fn reply(self) -> Reply {
        let status = match self {
            BodyError::TooLong => 413,
            BodyError::Failed => 400,
        };
        Reply::error(status, self)
    }
}

impl Exchange {
    pub(crate) fn new(head: ExVec<u8>, channel: Imp<states::Ready>) -> Result<Exchange, HeadError> {
        Ok(Exchange { head: RequestHead::parse(&head)?, head_block: head, channel: Some(channel) })
    }

    /// What is asked for.
    pub fn head(&self) -> &RequestHead {
        &self.head
    }

    /// The whole body of the request, if it has at most `most` bytes.
    pub async fn body(&mut self, most: usize) -> Result<Vec<u8>, BodyError> {
        if self.head.content_length().is_some_and(|length| length > most as u64) {
            return Err(BodyError::TooLong);
        }
        let mut body = Vec::new();
        while let Some((piece, count)) = self.piece().await? {
            if body.len() + count > most {
                return Err(BodyError::TooLong);
            }
            body.extend_from_slice(&piece[..count]);
        }
        Ok(body)
    }

    /// The next piece of the request's body: a block, and how many of its bytes are the body's. None at its end.
    pub async fn piece(&mut self) -> Result<Option<(ExVec<u8>, usize)>, BodyError> {
        use http_exchange::ImpReadyAfterReadBody::{Body, BodyFailed, ChannelClosed, EndOfBody};
        let channel = self.channel.take().ok_or(BodyError::Failed)?;
        let (piece, next) = match channel.read_body(PIECE_BYTES).receive_async().await {
            Body { data, count, next } => {
                let count = (count as usize).min(data.len());
                (Ok(Some((data, count))), next)
            }
            EndOfBody { next } => (Ok(None), next),
            BodyFailed { next } => (Err(BodyError::Failed), next),
            ChannelClosed(_) => return Err(BodyError::Failed),
        };
        self.channel = Some(next);
        piece
    }

    /// Answers, all at once.
    pub async fn reply(self, reply: Reply) -> Result<Answered, Gone> {
        use http_exchange::ImpReadyAfterReply::{ChannelClosed, Done, Failed};
        let head = block(reply.head.as_bytes())?;
        let (body, count) = match reply.body {
            Body::Bytes(bytes) => (block(&bytes)?, bytes.len()),
            Body::Block(body, count) => (body, count),
        };
        let count = u32::try_from(count).map_err(|_| Gone(()))?;
        match self.channel.ok_or(Gone(()))?.reply(reply.status, head, body, count).receive_async().await {
            Done { .. } => Ok(Answered(())),
            Failed { .. } | ChannelClosed(_) => Err(Gone(())),
        }
    }

    /// Begins an answer whose length is not known yet.
    pub async fn begin(self, status: u16, head: &AnswerHead) -> Result<Answer, Gone> {
        use http_exchange::ImpReadyAfterBegin::{ChannelClosed, Done, Failed};
        let head = block(head.as_bytes())?;
        match self.channel.ok_or(Gone(()))?.begin(status, head).receive_async().await {
            Done { next } => Ok(Answer { channel: next }),
            Failed { .. } | ChannelClosed(_) => Err(Gone(())),
        }
    }

    /// Hands the request as it came and its channel to `work`, which may do all that the contract `HttpExchange`
    /// allows, or let another program do it.
    pub async fn by_hand<F: Future<Output = ()>>(
        self,
        work: impl FnOnce(ExVec<u8>, Imp<states::Ready>) -> F,
    ) -> Result<Answered, Gone> {
        work(self.head_block, self.channel.ok_or(Gone(()))?).await;
        Ok(Answered(()))
    }
}

/// An answer that was begun. Dropped without [`end`](Answer::end), it is cut off for the client to see.
#[must_use = "dropped without `end`, the answer is cut off"]
pub struct Answer {
    channel: Imp<states::Answering>,
}

impl Answer {
    /// Sends the next bytes. Comes back when the server has taken them, which it does as fast as the client does.
    pub async fn write(self, bytes: &[u8]) -> Result<Answer, Gone> {
        self.write_block(block(bytes)?, bytes.len()).await
    }

    /// Sends the first `count` bytes of a block, without a copy.
    pub async fn write_block(self, data: ExVec<u8>, count: usize) -> Result<Answer, Gone> {
        use http_exchange::ImpAnsweringAfterWrite::{ChannelClosed, Done, Failed};
        let count = u32::try_from(count).map_err(|_| Gone(()))?;
        match self.channel.write(data, count).receive_async().await {
            Done { next } => Ok(Answer { channel: next }),
            Failed { .. } | ChannelClosed(_) => Err(Gone(())),
        }
    }

    /// Ends the answer before it is whole, for the client to see.
    pub fn cut_off(self) -> Gone {
        Gone(())
    }

    /// The answer is whole.
    pub async fn end(self) -> Result<Answered, Gone> {
        use http_exchange::ImpAnsweringAfterEnd::{ChannelClosed, Done, Failed};
        match self.channel.end().receive_async().await {
            Done { .. } => Ok(Answered(())),
            Failed { .. } | ChannelClosed(_) => Err(Gone(())),
        }
    }
}

/// Bytes as a block to send. Without room for one the request is given up, which the client hears from the server.
fn block(bytes: &[u8]) -> Result<ExVec<u8>, Gone> {
    ExVec::from_slice(bytes).map_err(|status| {
        stdio::report::error(format_args!("a request cannot be answered: {}", status.text()));
        Gone(())
    })
}
