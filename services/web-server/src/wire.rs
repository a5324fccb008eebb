//! A client's TCP connection, over its channel to the network stack.

use contracts::tcp_connection::{self, Imp, states};
use sip::exheap::ExVec;

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

/// A connection to one client.
pub(crate) struct Wire {
    endpoint: Option<Imp<states::Ready>>,
    write_time_ms: u32,
    sends_at_once: bool,
}

impl Wire {
    /// Wraps an accepted connection. Writes fail after `write_time_ms` without progress.
    pub(crate) fn new(endpoint: Imp<states::Ready>, write_time_ms: u32) -> Wire {
        Wire { endpoint: Some(endpoint), write_time_ms, sends_at_once: false }
    }

    /// Reads at most `most` bytes.
    pub(crate) async fn read(&mut self, most: u32, timeout_ms: u32) -> Result<Read, Gone> {
        use tcp_connection::ImpReadyAfterRead as Answer;
        let endpoint = self.endpoint.take().ok_or(Gone)?;
        let (read, next) = match endpoint.read(most, timeout_ms).receive_async().await {
            Answer::Data { data, count, next } => {
                let count = (count as usize).min(data.len());
                (Read::Data(data, count), next)
            }
            Answer::NoData { next } => (Read::Nothing, next),
            Answer::EndOfData { next } => (Read::End, next),
            Answer::Failed { .. } | Answer::ChannelClosed(_) => return Err(Gone),
        };
        self.endpoint = Some(next);
        Ok(read)
    }

    /// Sends a range of a block and returns the block.
    pub(crate) async fn write(&mut self, block: ExVec<u8>, from: usize, count: usize) -> Result<ExVec<u8>, Gone> {
        use tcp_connection::ImpReadyAfterWrite as Answer;
        let endpoint = self.endpoint.take().ok_or(Gone)?;
        // Fits: blocks are shorter than 4 GiB.
        let pending = endpoint.write(block, from as u32, count as u32, self.write_time_ms);
        match pending.receive_async().await {
            Answer::Written { data, next } => {
                self.endpoint = Some(next);
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
        let endpoint = self.endpoint.take().ok_or(Gone)?;
        let (head, head_count) = head;
        let (data, from, count) = data;
        let pending = endpoint.write_two(head, head_count as u32, data, from as u32, count as u32, self.write_time_ms);
        match pending.receive_async().await {
            Answer::WrittenTwo { head, data, next } => {
                self.endpoint = Some(next);
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
        let endpoint = self.endpoint.take().ok_or(Gone)?;
        match endpoint.set_options(true, 0).receive_async().await {
            // Without it, pieces are only delayed.
            Answer::Done { next } | Answer::Failed { next, .. } => self.endpoint = Some(next),
            Answer::ChannelClosed(_) => return Err(Gone),
        }
        self.sends_at_once = true;
        Ok(())
    }

    /// Shuts down the write half.
    pub(crate) async fn finish(&mut self) -> Result<(), Gone> {
        use tcp_connection::ImpReadyAfterFinish as Answer;
        let endpoint = self.endpoint.take().ok_or(Gone)?;
        match endpoint.finish().receive_async().await {
            Answer::Done { next } => {
                self.endpoint = Some(next);
                Ok(())
            }
            Answer::Failed { .. } | Answer::ChannelClosed(_) => Err(Gone),
        }
    }

    /// Resets the connection, so that the client sees a truncated response.
    pub(crate) async fn abort(&mut self) {
        if let Some(endpoint) = self.endpoint.take() {
            drop(endpoint.abort().receive_async().await);
        }
    }
}
