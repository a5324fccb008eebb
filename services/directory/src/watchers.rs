//! Subscriptions to changes of names.
//!
//! Changes that come faster than a subscriber takes them wait in a short queue; when that is full, the
//! subscriber gets one `Overflow` in place of those left out. Deliberately not here: which principal may observe which
//! change; the caller of [`Watchers::changed`] decides.

use alloc::collections::VecDeque;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::RefCell;

use contracts::namespace_events::{self, Change};
use task_sync::Notify;

/// Changes that wait for one subscriber.
const QUEUE_LIMIT: usize = 64;

/// Subscribers at a time.
const WATCHER_LIMIT: usize = 1024;

struct Queue {
    changes: VecDeque<(Change, String)>,
    ended: bool,
}

struct Watcher {
    /// The subscriber.
    principal: String,
    /// Path of the folder that the subscriber's endpoint is bound to: paths it receives are relative to it.
    view: String,
    /// Path at or below which changes are reported.
    prefix: String,
    queue: RefCell<Queue>,
    /// Notified when the queue is no longer empty.
    queued: Notify,
}

/// All subscribers.
#[derive(Default)]
pub struct Watchers {
    watchers: RefCell<Vec<Rc<Watcher>>>,
}

/// There are too many subscribers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany;

impl Watchers {
    /// Adds a subscriber. The returned future serves it and ends with it.
    pub fn add(
        &self,
        principal: String,
        view: String,
        prefix: String,
        events: namespace_events::Exp<namespace_events::states::Ready>,
    ) -> Result<impl Future<Output = ()> + use<>, TooMany> {
        let mut watchers = self.watchers.borrow_mut();
        watchers.retain(|watcher| !watcher.queue.borrow().ended);
        if watchers.len() >= WATCHER_LIMIT {
            return Err(TooMany);
        }
        let queue = RefCell::new(Queue { changes: VecDeque::new(), ended: false });
        let watcher = Rc::new(Watcher { principal, view, prefix, queue, queued: Notify::new() });
        watchers.push(watcher.clone());
        Ok(announce(watcher, events))
    }

    /// Reports a change of the name at this absolute path to each subscriber whose principal `may_observe` it.
    pub fn changed(&self, change: Change, path: &str, may_observe: impl Fn(&str) -> bool) {
        for watcher in self.watchers.borrow().iter() {
            let told = match is_below(path, &watcher.prefix) {
                true => path,
                // What a list says of a folder it says of what is below.
                false if change == Change::AclChanged && is_below(&watcher.prefix, path) => &watcher.prefix,
                false => continue,
            };
            if !watcher.queue.borrow().ended && may_observe(&watcher.principal) {
                watcher.tell(change, relative(told, &watcher.view));
            }
        }
    }
}

impl Watcher {
    fn tell(&self, change: Change, path: String) {
        let changes = &mut self.queue.borrow_mut().changes;
        if changes.len() < QUEUE_LIMIT {
            changes.push_back((change, path));
        } else if let Some(last) = changes.back_mut() {
            *last = (Change::Overflow, String::new());
        }
        self.queued.notify_all();
    }
}

async fn announce(watcher: Rc<Watcher>, mut events: namespace_events::Exp<namespace_events::states::Ready>) {
    loop {
        watcher.queued.until(|| !watcher.queue.borrow().changes.is_empty()).await;
        let Some((change, path)) = watcher.queue.borrow_mut().changes.pop_front() else { continue };
        // Without room for the path, the subscriber is let go: it sees a closed channel and subscribes again.
        let Ok(path) = client::namespace::block(&path) else { break };
        match events.changed(change, path).receive_async().await {
            namespace_events::ExpReadyAfterChanged::Next { next } => events = next,
            namespace_events::ExpReadyAfterChanged::ChannelClosed(_) => break,
        }
    }
    watcher.queue.borrow_mut().ended = true;
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
    fn only_what_is_below_is_told() {
        assert!(is_below("/dev/disk0", "/dev"));
        assert!(is_below("/dev", "/dev/"));
        assert!(is_below("/dev/disk0", "/"));
        assert!(!is_below("/device", "/dev"));
    }

    #[test]
    fn paths_are_told_as_the_subscriber_sees_them() {
        assert_eq!(relative("/dev/disk0", "/dev"), "disk0");
        assert_eq!(relative("/dev/disk0", "/"), "dev/disk0");
    }
}
