//! Boundaries of multipart responses with several ranges (RFC 2046, section 5.1.1).
//!
//! An attacker who writes a served file and predicts the boundary can forge parts, so each response has its own of
//! [`RANDOM_BYTES`] random bytes. Without a random source there are no multipart responses. Deliberately not here: how
//! parts are sent.

use alloc::string::String;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::fmt::Write as _;

use client::random;
use contracts::entropy;
use sip::exheap::ExVec;

use crate::store::{Store, StoreError};

/// Random bytes in a boundary.
const RANDOM_BYTES: usize = 16;
/// Boundaries drawn at once.
const DRAWN: usize = 64;

/// Random bytes drawn but not yet used.
#[derive(Default)]
pub(crate) struct Boundaries {
    drawn: RefCell<Vec<u8>>,
}

impl Boundaries {
    /// Returns a unique boundary; `None` if there are no random bytes.
    pub(crate) async fn next(&self, store: &Store) -> Option<String> {
        if let Some(boundary) = self.take() {
            return Some(boundary);
        }
        let bytes = draw(store).await.ok()?;
        self.drawn.borrow_mut().extend_from_slice(&bytes);
        self.take()
    }

    fn take(&self) -> Option<String> {
        let mut drawn = self.drawn.borrow_mut();
        let left = drawn.len().checked_sub(RANDOM_BYTES)?;
        let mut text = String::with_capacity(2 * RANDOM_BYTES);
        for byte in drawn.drain(left..) {
            // Writing into a string does not fail.
            let _ = write!(text, "{byte:02x}");
        }
        Some(text)
    }
}

/// Draws random bytes for several boundaries.
async fn draw(store: &Store) -> Result<ExVec<u8>, StoreError> {
    let unavailable = StoreError::Unavailable;
    let (importer, exporter) = entropy::new_channel().map_err(|_| unavailable)?;
    store.bind_in_namespace(random::SOURCE.trim_start_matches('/'), exporter).await?;
    let entropy::ImpStart::Success { next: source } = importer.receive_async().await else { return Err(unavailable) };
    let block = ExVec::new(DRAWN * RANDOM_BYTES).map_err(|_| unavailable)?;
    match source.fill(block).receive_async().await {
        entropy::ImpReadyAfterFill::Filled { data, .. } => Ok(data),
        entropy::ImpReadyAfterFill::NotFilled { .. } | entropy::ImpReadyAfterFill::ChannelClosed(_) => Err(unavailable),
    }
}
