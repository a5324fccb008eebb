//! Subscriptions to namespace changes.
//!
//! Each subscriber has a bounded queue; once it is full, dropped events are replaced by one `Overflow`. Deliberately
//! not here: access control; the caller of [`Watchers::changed`] decides which principal may observe a change.

use alloc::collections::VecDeque;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::future::poll_fn;
use core::pin::pin;
use core::task::Poll;

use contracts::namespace_events::{self, Change};
use sip::executor;
use task_sync::Notify;

/// Maximum number of events queued for one subscriber.
const MAX_QUEUED: usize = 64;

/// Maximum number of subscribers.
const MAX_WATCHERS: usize = 1024;

struct Queue {
    changes: VecDeque<(Change, String)>,
    ended: bool,
}

struct Watcher {
    /// The subscriber.
    principal: String,
    /// Path of the folder that the subscriber's endpoint is bound to; reported paths are relative to it.
    view: String,
    /// Path at or below which changes are reported.
    prefix: String,
    queue: RefCell<Queue>,
    /// Notified when the queue is no longer empty.
    queued: Notify,
}

/// All subscribers of the namespace.
#[derive(Default)]
pub struct Watchers {
    watchers: RefCell<Vec<Rc<Watcher>>>,
}

/// The limit of subscribers is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany;

impl Watchers {
    /// Adds a subscriber. The returned future delivers its events, and completes when it closes its end.
    pub fn add(
        &self,
        principal: String,
        view: String,
        prefix: String,
        events: namespace_events::Exp<namespace_events::states::Ready>,
    ) -> Result<impl Future<Output = ()> + use<>, TooMany> {
        let mut watchers = self.watchers.borrow_mut();
        watchers.retain(|watcher| !watcher.queue.borrow().ended);
        if watchers.len() >= MAX_WATCHERS {
            return Err(TooMany);
        }
        let queue = RefCell::new(Queue { changes: VecDeque::new(), ended: false });
        let watcher = Rc::new(Watcher { principal, view, prefix, queue, queued: Notify::new() });
        watchers.push(watcher.clone());
        Ok(deliver(watcher, events))
    }

    /// Reports a change of the name at this absolute path to each subscriber whose principal `may_observe` it.
    pub fn changed(&self, change: Change, path: &str, may_observe: impl Fn(&str) -> bool) {
        for watcher in self.watchers.borrow().iter() {
            let reported = match is_below(path, &watcher.prefix) {
                true => path,
                // A folder's ACL also governs names below it.
                false if change == Change::AclChanged && is_below(&watcher.prefix, path) => &watcher.prefix,
                false => continue,
            };
            if !watcher.queue.borrow().ended && may_observe(&watcher.principal) {
                watcher.enqueue(change, relative(reported, &watcher.view));
            }
        }
    }
}

impl Watcher {
    fn enqueue(&self, change: Change, path: String) {
        let changes = &mut self.queue.borrow_mut().changes;
        if changes.len() < MAX_QUEUED {
            changes.push_back((change, path));
        } else if let Some(last) = changes.back_mut() {
            *last = (Change::Overflow, String::new());
        }
        self.queued.notify_all();
    }
}

async fn deliver(watcher: Rc<Watcher>, mut events: namespace_events::Exp<namespace_events::states::Ready>) {
    while wait(&watcher, &events).await {
        let Some((change, path)) = watcher.queue.borrow_mut().changes.pop_front() else { continue };
        // Out of memory for the path: drop the subscriber, which sees a closed channel and subscribes again.
        let Ok(path) = client::namespace::block(&path) else { break };
        match events.changed(change, path).receive_async().await {
            namespace_events::ExpReadyAfterChanged::Next { next } => events = next,
            namespace_events::ExpReadyAfterChanged::ChannelClosed(_) => break,
        }
    }
    watcher.queue.borrow_mut().ended = true;
}

/// Waits for a change; false if the subscriber is gone, which must not keep its place until something changes.
async fn wait(watcher: &Watcher, events: &namespace_events::Exp<namespace_events::states::Ready>) -> bool {
    let mut queued = pin!(watcher.queued.until(|| !watcher.queue.borrow().changes.is_empty()));
    let mut gone = pin!(executor::gone(events));
    poll_fn(|context| match queued.as_mut().poll(context) {
        Poll::Ready(()) => Poll::Ready(true),
        Poll::Pending => gone.as_mut().poll(context).map(|()| false),
    })
    .await
}

fn is_below(path: &str, prefix: &str) -> bool {
    let prefix = prefix.trim_end_matches('/');
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn relative(path: &str, view: &str) -> String {
    let rest = path.strip_prefix(view.trim_end_matches('/')).unwrap_or(path);
    String::from(rest.trim_start_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changes_below_the_prefix_are_reported() {
        assert!(is_below("/dev/disk0", "/dev"));
        assert!(is_below("/dev", "/dev/"));
        assert!(is_below("/dev/disk0", "/"));
        assert!(!is_below("/device", "/dev"));
    }

    #[test]
    fn reported_paths_are_relative_to_the_view() {
        assert_eq!(relative("/dev/disk0", "/dev"), "disk0");
        assert_eq!(relative("/dev/disk0", "/"), "dev/disk0");
    }
}
