//! Where a pager's text comes from: a thread reads, so that keys count while there is nothing to read.

use alloc::sync::Arc;
use alloc::vec::Vec;

use file_tools::feed::{Error, Reader};
use sip::Status;
use sip::sync::Mutex;

/// The most that is held of a text.
pub const MAX_BYTES: usize = 64 << 20;

/// How reading goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// More may come.
    Reading,
    /// That was all.
    Ended,
    /// There is more than can be held.
    CutOff,
    /// The source failed.
    Failed(Error),
}

struct Shared {
    bytes: Vec<u8>,
    state: State,
}

/// A text that is read.
pub struct Source {
    shared: Arc<Mutex<Shared>>,
}

impl Source {
    /// Begins to read.
    ///
    /// # Errors
    /// That there is no thread left.
    pub fn read(reader: Reader) -> Result<Source, Status> {
        let shared = Arc::new(Mutex::new(Shared { bytes: Vec::new(), state: State::Reading }));
        let filled = Arc::clone(&shared);
        // The thread ends with the source or with the program.
        drop(sip::thread::spawn(move || fill(reader, &filled))?);
        Ok(Source { shared })
    }

    /// What was read since this was asked last, and how it goes on.
    pub fn take(&self) -> (Vec<u8>, State) {
        let mut shared = self.shared.lock();
        (core::mem::take(&mut shared.bytes), shared.state.clone())
    }
}

fn fill(mut reader: Reader, shared: &Mutex<Shared>) {
    let mut total = 0;
    loop {
        let read = reader.block();
        let mut shared = shared.lock();
        match read {
            Ok(Some((block, bytes))) if total + bytes <= MAX_BYTES => {
                total += bytes;
                shared.bytes.extend_from_slice(&block[..bytes]);
                reader.recycle(block);
            }
            Ok(Some(_)) => {
                shared.state = State::CutOff;
                return;
            }
            Ok(None) => {
                shared.state = State::Ended;
                return;
            }
            Err(error) => {
                shared.state = State::Failed(error);
                return;
            }
        }
    }
}
