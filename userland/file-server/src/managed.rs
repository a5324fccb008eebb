//! Serving the volume manager: statistics, sync, unmount.

use alloc::rc::Rc;

use contracts::file_system::{self, ExpReady, FileSystemError, VolumeStatistics, states};
use sip::{Deadline, executor};

use crate::volume::Volume;

/// A volume that a volume manager has mounted.
#[expect(async_fn_in_trait, reason = "all tasks of a file server run on one thread")]
pub trait Managed: Volume {
    /// Maps an error to its code for `FileSystem`, and logs it if the user should know.
    fn file_system_error(&self, error: Self::Error) -> FileSystemError;
    /// Returns the volume's statistics; 0 for numbers that cannot be read.
    async fn statistics(&self) -> VolumeStatistics;
    /// Returns whether there are changes that are not on the disk.
    fn has_changes(&self) -> bool;
    /// Writes all changes and unmounts the volume.
    async fn unmount(&self) -> Result<(), Self::Error>;
}

/// Serves the manager until it closes its end or the volume is unmounted. Returns whether it is.
pub async fn serve_manager<V: Managed>(volume: &V, manager: file_system::Exp<states::Start>) -> bool {
    let mut manager = manager.success();
    loop {
        manager = match manager.receive_async().await {
            ExpReady::GetStatistics { next } => {
                let statistics = volume.statistics().await;
                next.statistics(statistics)
            }
            ExpReady::Sync { next } => match volume.sync().await {
                Ok(()) => next.done(),
                Err(error) => next.failed(volume.file_system_error(error)),
            },
            ExpReady::Unmount { next } => match volume.unmount().await {
                Ok(()) => {
                    drop(next.done());
                    return true;
                }
                Err(error) => next.failed(volume.file_system_error(error)),
            },
            ExpReady::ChannelClosed(_) => return false,
        };
    }
}

/// Writes changes back at most twice `after_ms` milliseconds after they were made, for the life of the process.
pub async fn sync_regularly<V: Managed>(volume: Rc<V>, after_ms: u64) {
    loop {
        executor::sleep_until(Deadline::after_ms(after_ms)).await;
        if volume.has_changes()
            && let Err(error) = volume.sync().await
        {
            // Already reported; the next interval retries.
            let _ = volume.file_system_error(error);
        }
    }
}

/// Returns a text of statistics, cut before a character that does not fit, and padded with zeros.
pub fn padded<const BYTES: usize>(text: &[u8]) -> [u8; BYTES] {
    let is_within_character = |end: usize| text.get(end).is_some_and(|byte| byte & 0xc0 == 0x80);
    let mut end = text.len().min(BYTES);
    while end > 0 && is_within_character(end) {
        end -= 1;
    }
    let mut padded = [0; BYTES];
    padded[..end].copy_from_slice(&text[..end]);
    padded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_padded_and_cut_between_characters() {
        assert_eq!(padded(b"ab"), *b"ab\0\0");
        assert_eq!(padded(b"abcd"), *b"abcd");
        assert_eq!(padded(b"abcde"), *b"abcd");
        assert_eq!(padded("abcä".as_bytes()), *b"abc\0");
        assert_eq!(padded("abä".as_bytes()), *b"ab\xc3\xa4");
        assert_eq!(padded("😀".as_bytes()), [0; 2]);
    }
}
