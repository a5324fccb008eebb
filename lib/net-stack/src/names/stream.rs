//! One DNS query over TCP (RFC 7766), after a truncated response over UDP.

use alloc::vec::Vec;
use core::task::{Poll, Waker};

use smoltcp::wire::IpAddress;

use crate::ends::End;
use crate::output::{Buffer, Output};
use crate::tcp::{ConnectionId, Tcp};

/// Timeout, in nanoseconds.
const TIMEOUT_NS: u64 = 5_000_000_000;
/// Maximum size of a response, in bytes.
const MAX_RESPONSE_BYTES: usize = 16 << 10;
/// Bytes per read.
const READ_BYTES: usize = 1024;

/// A query in flight.
pub(super) struct Stream {
    server: IpAddress,
    connection: Option<ConnectionId>,
    question: Vec<u8>,
    answer: Vec<u8>,
    until_ns: u64,
}

/// Progress of a query.
pub(super) enum Progress {
    Waits,
    Answer(Vec<u8>),
    Failed,
}

impl Stream {
    pub(super) fn new(server: IpAddress, question: Vec<u8>, now_ns: u64) -> Stream {
        let mut with_length = (question.len() as u16).to_be_bytes().to_vec();
        with_length.extend(question);
        Stream { server, connection: None, question: with_length, answer: Vec::new(), until_ns: now_ns + TIMEOUT_NS }
    }

    pub(super) fn server(&self) -> IpAddress {
        self.server
    }

    pub(super) fn until_ns(&self) -> u64 {
        self.until_ns
    }

    /// Releases the connection.
    pub(super) fn close(self, tcp: &mut Tcp, now_ns: u64) {
        if let Some(id) = self.connection {
            tcp.release(id, now_ns);
        }
    }

    pub(super) fn serve<B: Buffer>(&mut self, tcp: &mut Tcp, output: &mut Output<B>) -> Progress {
        if output.now_ns >= self.until_ns {
            return Progress::Failed;
        }
        let id = match self.connection {
            Some(id) => id,
            None => match tcp.connect(output, End::new(self.server, super::PORT)) {
                Ok(id) => *self.connection.insert(id),
                Err(_) => return Progress::Failed,
            },
        };
        // No waker is needed: progress comes with a packet or a timer, and this is called after either.
        match tcp.poll_connected(id, Waker::noop()) {
            Poll::Pending => return Progress::Waits,
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(_)) => return Progress::Failed,
        }
        while !self.question.is_empty() {
            match tcp.poll_write(id, &self.question, Waker::noop()) {
                Poll::Ready(Ok(count)) => drop(self.question.drain(..count)),
                Poll::Ready(Err(_)) => return Progress::Failed,
                Poll::Pending => return Progress::Waits,
            }
        }
        let mut into = [0; READ_BYTES];
        loop {
            match tcp.poll_read(id, &mut into, Waker::noop()) {
                Poll::Ready(Ok(count)) if count > 0 => self.answer.extend_from_slice(&into[..count]),
                Poll::Ready(_) => return Progress::Failed,
                Poll::Pending => return Progress::Waits,
            }
            let Some((length, rest)) = self.answer.split_first_chunk() else { continue };
            let length = usize::from(u16::from_be_bytes(*length));
            if length > MAX_RESPONSE_BYTES {
                return Progress::Failed;
            }
            if let Some(message) = rest.get(..length) {
                return Progress::Answer(message.to_vec());
            }
        }
    }
}
