//! Text source of the pager: a thread reads, so that keys work while no input is available.

use alloc::sync::Arc;
use alloc::vec::Vec;

use file_tools::feed::{Error, Reader};
use sip::Status;
use sip::sync::Mutex;

/// Maximum size of text held in memory, in bytes.
pub const MAX_BYTES: usize = 64 << 20;

/// State of reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// More text may follow.
    Reading,
    /// The end was reached.
    Ended,
    /// The text exceeds [`MAX_BYTES`].
    CutOff,
    /// Reading failed.
    Failed(Error),
}

struct Shared {
    bytes: Vec<u8>,
    state: State,
}

/// A text read in the background.
pub struct Source {
    shared: Arc<Mutex<Shared>>,
}

impl Source {
    /// Starts reading.
    ///
    /// # Errors
    ///
    /// If no thread can be created.
    pub fn read(reader: Reader) -> Result<Source, Status> {
        let shared = Arc::new(Mutex::new(Shared { bytes: Vec::new(), state: State::Reading }));
        let filled = Arc::clone(&shared);
        // The thread ends with the source or with the program.
        drop(sip::thread::spawn(move || fill(reader, &filled))?);
        Ok(Source { shared })
    }

    /// Takes the text read since the last call, and the state of reading.
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
