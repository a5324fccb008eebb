//! Waits for devices: selects handles for one `wait_any` and the wakers of a ready device.
//!
//! Pure bookkeeping, so that `cargo test` reaches it. Deliberately not here: calls of the kernel.

use alloc::collections::VecDeque;
use core::task::Waker;

/// The waits of one executor, oldest first. Several may be for one device.
#[derive(Default)]
pub(super) struct DeviceWaits {
    waits: VecDeque<Wait>,
    next_number: u64,
}

struct Wait {
    number: u64,
    handle: u64,
    waker: Waker,
}

/// Up to `N` handles for one `wait_any`.
pub(super) struct Handles<const N: usize> {
    handles: [u64; N],
    count: usize,
    /// Whether there was no room for a device that is waited for.
    pub(super) is_partial: bool,
}

impl<const N: usize> Handles<N> {
    pub(super) fn as_slice(&self) -> &[u64] {
        &self.handles[..self.count]
    }
}

impl DeviceWaits {
    pub(super) fn is_empty(&self) -> bool {
        self.waits.is_empty()
    }

    /// Adds a wait; its number identifies it until it ends.
    pub(super) fn insert(&mut self, handle: u64, waker: Waker) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        self.waits.push_back(Wait { number, handle, waker });
        number
    }

    /// Replaces a wait's waker. False if the wait has ended: its device was ready.
    pub(super) fn update(&mut self, number: u64, waker: &Waker) -> bool {
        let found = self.waits.iter_mut().find(|wait| wait.number == number);
        found.map(|wait| wait.waker.clone_from(waker)).is_some()
    }

    /// Cancels a wait, if it has not ended.
    pub(super) fn remove(&mut self, number: u64) {
        self.waits.retain(|wait| wait.number != number);
    }

    /// The handles `first`, then those of the devices in the order of their waits, each once.
    /// Devices that find no room come first in the next call.
    pub(super) fn choose<const N: usize>(&mut self, first: &[u64]) -> Handles<N> {
        let mut chosen = Handles { handles: [0; N], count: first.len(), is_partial: false };
        chosen.handles[..first.len()].copy_from_slice(first);
        let left_out = self.waits.iter().position(|wait| {
            let is_new = !chosen.handles[first.len()..chosen.count].contains(&wait.handle);
            let has_room = chosen.count < N;
            if is_new && has_room {
                chosen.handles[chosen.count] = wait.handle;
                chosen.count += 1;
            }
            is_new && !has_room
        });
        if let Some(left_out) = left_out {
            chosen.is_partial = true;
            self.waits.rotate_left(left_out);
        }
        chosen
    }

    /// Ends the oldest wait for this device, and returns its waker.
    pub(super) fn take(&mut self, handle: u64) -> Option<Waker> {
        let index = self.waits.iter().position(|wait| wait.handle == handle)?;
        self.waits.remove(index).map(|wait| wait.waker)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::sync::Arc;
    use alloc::task::Wake;
    use core::sync::atomic::{AtomicUsize, Ordering};

    #[derive(Default)]
    struct Counter(AtomicUsize);

    impl Wake for Counter {
        fn wake(self: Arc<Counter>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn counted() -> (Arc<Counter>, Waker) {
        let counter = Arc::new(Counter::default());
        (Arc::clone(&counter), Waker::from(counter))
    }

    fn wake_all(waits: &mut DeviceWaits, handle: u64) {
        while let Some(waker) = waits.take(handle) {
            waker.wake();
        }
    }

    fn wakes(counter: &Counter) -> usize {
        counter.0.load(Ordering::Relaxed)
    }

    #[test]
    fn two_tasks_that_wait_for_one_device_are_both_woken() {
        let mut waits = DeviceWaits::default();
        let ((one, one_waker), (two, two_waker)) = (counted(), counted());
        waits.insert(7, one_waker);
        waits.insert(7, two_waker);
        assert_eq!(waits.choose::<4>(&[]).as_slice(), [7]);
        wake_all(&mut waits, 7);
        assert_eq!((wakes(&one), wakes(&two)), (1, 1));
        assert!(waits.is_empty());
    }

    #[test]
    fn cancelling_one_wait_leaves_another_for_the_same_device() {
        let mut waits = DeviceWaits::default();
        let ((one, one_waker), (two, two_waker)) = (counted(), counted());
        let first = waits.insert(7, one_waker);
        let second = waits.insert(7, two_waker.clone());
        waits.remove(first);
        assert!(waits.update(second, &two_waker));
        wake_all(&mut waits, 7);
        assert_eq!((wakes(&one), wakes(&two)), (0, 1));
        // An ended wait must not be taken for another.
        let third = waits.insert(7, two_waker.clone());
        assert!(!waits.update(second, &two_waker));
        waits.remove(second);
        assert!(waits.update(third, &two_waker));
    }

    #[test]
    fn every_device_is_looked_at_when_there_are_more_than_fit() {
        let mut waits = DeviceWaits::default();
        let (_, waker) = counted();
        for handle in 1..=9 {
            waits.insert(handle, waker.clone());
        }
        let mut seen = alloc::vec::Vec::new();
        for _ in 0..3 {
            let chosen = waits.choose::<4>(&[100]);
            assert_eq!(chosen.as_slice()[0], 100);
            assert!(chosen.is_partial);
            seen.extend_from_slice(&chosen.as_slice()[1..]);
        }
        seen.sort_unstable();
        assert_eq!(seen, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert!(!waits.choose::<10>(&[100]).is_partial);
    }
}
