//! A request in flight: its body is being received, or its response being sent.

use sing_guest::Status;
use sing_guest::exheap::ExVec;
use sing_guest::select::Waitable;
use web_message::RequestHead;

use crate::Reply;
use crate::contracts::http_exchange::{Imp, ImpReadyAfterReadBody, states};

/// Bytes of a body requested at a time.
const PIECE_BYTES: u32 = 64 * 1024;

/// A request whose server is to say something next. Dropped, its client gets a 502.
pub struct Pending(Step);

enum Step {
    /// The next piece of the body was requested.
    Body { channel: Imp<states::ReadyAfterReadBody>, head: RequestHead, body: Vec<u8> },
    /// The response was sent.
    Reply(Imp<states::ReadyAfterReply>),
}

/// What is left of a request after a step.
pub enum Progress {
    /// It waits for the server.
    Waiting(Pending),
    /// It was answered, or its client or the server is gone.
    Over,
}

/// What answers a request.
type Answer<'a> = &'a mut dyn FnMut(&RequestHead, &[u8]) -> Reply;

impl Pending {
    /// Takes a request: asks for its body, or answers it at once if it has none or too much.
    pub fn begin(head: &[u8], exchange: Imp<states::Ready>, body_bytes: usize, answer: Answer<'_>) -> Progress {
        let head = match RequestHead::parse(head) {
            Ok(head) => head,
            Err(error) => {
                eprintln!("a request of the server cannot be read: {error}");
                return Progress::Over;
            }
        };
        match head.content_length() {
            Some(length) if length > body_bytes as u64 => send(exchange, too_long()),
            None | Some(0) if ["GET", "HEAD"].contains(&head.method.as_str()) => {
                let reply = answer(&head, &[]);
                send(exchange, reply)
            }
            _ => read(exchange, head, Vec::new()),
        }
    }

    /// The channel on which the server speaks next.
    pub fn channel(&self) -> &dyn Waitable {
        match &self.0 {
            Step::Body { channel, .. } => channel,
            Step::Reply(channel) => channel,
        }
    }

    /// Receives what the server said, and goes on with the request.
    pub fn go_on(self, body_bytes: usize, answer: Answer<'_>) -> Progress {
        use ImpReadyAfterReadBody::{Body, BodyFailed, ChannelClosed, EndOfBody};
        let Step::Body { channel, head, mut body } = self.0 else {
            // Whether the response was delivered makes no difference here.
            return Progress::Over;
        };
        match channel.receive() {
            Body { data, count, next } => {
                let count = (count as usize).min(data.len());
                if body.len() + count > body_bytes {
                    return send(next, too_long());
                }
                let old = body.len();
                body.resize(old + count, 0);
                data.read(0, &mut body[old..]);
                read(next, head, body)
            }
            EndOfBody { next } => {
                let reply = answer(&head, &body);
                send(next, reply)
            }
            BodyFailed { next } => send(next, Reply::error(400, "the body is incomplete")),
            ChannelClosed(_) => Progress::Over,
        }
    }
}

fn read(channel: Imp<states::Ready>, head: RequestHead, body: Vec<u8>) -> Progress {
    Progress::Waiting(Pending(Step::Body { channel: channel.read_body(PIECE_BYTES), head, body }))
}

/// Sends a response. Without memory for it the request is abandoned, which the server reports to the client.
fn send(channel: Imp<states::Ready>, reply: Reply) -> Progress {
    let blocks = || Ok((ExVec::from_slice(reply.head.as_bytes())?, ExVec::from_slice(&reply.body)?));
    match (blocks(), u32::try_from(reply.body.len())) {
        (Ok((head, body)), Ok(count)) => {
            Progress::Waiting(Pending(Step::Reply(channel.reply(reply.status, head, body, count))))
        }
        (refused, _) => {
            let status = refused.err().unwrap_or(Status::TooLarge);
            eprintln!("a response of {} bytes cannot be sent: {}", reply.body.len(), status.text());
            Progress::Over
        }
    }
}

fn too_long() -> Reply {
    Reply::error(413, "the body exceeds the application's limit")
}
