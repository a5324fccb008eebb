//! One request and its response.

use alloc::vec::Vec;
use core::fmt;
use core::future::Future;

use contracts::http_exchange::{self, Imp, states};
use sip::exheap::ExVec;
use web_message::{AnswerHead, HeadError, RequestHead};

use crate::reply::{Body, Reply};

/// Bytes of a request's body requested at a time.
const PIECE_BYTES: u32 = 64 * 1024;

/// A request that awaits a response. Dropped without one, the client gets a 502.
#[must_use = "dropped without a reply, the client gets a 502"]
pub struct Exchange {
    head: RequestHead,
    /// The head as received.
    head_block: ExVec<u8>,
    /// `None` once the server has closed it.
    channel: Option<Imp<states::Ready>>,
}

/// Proof that a request was answered. Only answering creates one.
#[derive(Debug)]
pub struct Answered(());

/// The response was not delivered, or not completely: the client or the server is gone, the server refused the head
/// of the response, or the application cut it off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone(());

/// Why the body of a request is not available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// It is longer than the application accepts.
    TooLong,
    /// The client is gone or too slow, sent more than the server accepts, or sent a malformed body.
    Failed,
}

impl fmt::Display for BodyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            BodyError::TooLong => "the body exceeds the application's limit",
            BodyError::Failed => "the body is incomplete",
        })
    }
}

impl BodyError {
    /// Converts to the error response.
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

    /// The head of the request.
    pub fn head(&self) -> &RequestHead {
        &self.head
    }

    /// Reads the whole body of the request, if it has at most `most` bytes.
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

    /// Reads the next piece of the request's body: a block, and its valid length. `None` at the end.
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

    /// Sends a complete response.
    pub async fn reply(self, reply: Reply) -> Result<Answered, Gone> {
        use http_exchange::ImpReadyAfterReply::{ChannelClosed, Done, Failed};
        let head = block(reply.head.as_bytes())?;
        let (body, count) = match reply.body {
            Body::Bytes(bytes) => (block(&bytes)?, bytes.len()),
            Body::Block(body, count) => {
                let count = count.min(body.len());
                (body, count)
            }
        };
        let count = u32::try_from(count).map_err(|_| Gone(()))?;
        match self.channel.ok_or(Gone(()))?.reply(reply.status, head, body, count).receive_async().await {
            Done { .. } => Ok(Answered(())),
            Failed { .. } | ChannelClosed(_) => Err(Gone(())),
        }
    }

    /// Starts a response of unknown length.
    pub async fn begin(self, status: u16, head: &AnswerHead) -> Result<Answer, Gone> {
        use http_exchange::ImpReadyAfterBegin::{ChannelClosed, Done, Failed};
        let head = block(head.as_bytes())?;
        match self.channel.ok_or(Gone(()))?.begin(status, head).receive_async().await {
            Done { next } => Ok(Answer { channel: next }),
            Failed { .. } | ChannelClosed(_) => Err(Gone(())),
        }
    }

    /// Passes the request as received, and its channel, to `work`, which may do everything that the contract
    /// `HttpExchange` allows, or delegate it to another program.
    pub async fn with_channel<F: Future<Output = ()>>(
        self,
        work: impl FnOnce(ExVec<u8>, Imp<states::Ready>) -> F,
    ) -> Result<Answered, Gone> {
        work(self.head_block, self.channel.ok_or(Gone(()))?).await;
        Ok(Answered(()))
    }
}

/// A response in progress. Dropped without [`end`](Answer::end), it is cut off visibly for the client.
#[must_use = "dropped without `end`, the answer is cut off"]
pub struct Answer {
    channel: Imp<states::Answering>,
}

impl Answer {
    /// Sends the next bytes. Completes when the server has accepted them, which depends on the speed of the client.
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

    /// Cuts the response off visibly for the client.
    pub fn cut_off(self) -> Gone {
        Gone(())
    }

    /// Ends the complete response.
    pub async fn end(self) -> Result<Answered, Gone> {
        use http_exchange::ImpAnsweringAfterEnd::{ChannelClosed, Done, Failed};
        match self.channel.end().receive_async().await {
            Done { .. } => Ok(Answered(())),
            Failed { .. } | ChannelClosed(_) => Err(Gone(())),
        }
    }
}

/// Copies bytes to a block. Without memory for one the request is abandoned, which the server reports to the client.
fn block(bytes: &[u8]) -> Result<ExVec<u8>, Gone> {
    ExVec::from_slice(bytes).map_err(|status| {
        stdio::report::error(format_args!("a request cannot be answered: {}", status.text()));
        Gone(())
    })
}
