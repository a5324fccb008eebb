//! All disks, and queries about them.

use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use core::cell::RefCell;

use client::access::AccessError;
use client::namespace::{Namespace, block};
use contracts::directory::NameError;
use contracts::namespace_events::{self, Change};
use contracts::partition_manager::{self, ExpReady, PartitionError, states};
use sip::exheap::ExVec;
use sip::{Deadline, executor};
use stdio::report;
use text::{Align, Table, bytes, printable};

use crate::base::BaseDisk;
use crate::names::{Prefixes, device_path};

const DEVICES: &str = "/dev";
/// Interval at which a lost subscription for changes is renewed, in milliseconds.
const SUBSCRIBE_AGAIN_MS: u64 = 100;

type Events = namespace_events::Imp<namespace_events::states::Ready>;

/// The set of all disks.
pub struct Manager {
    namespace: Rc<RefCell<Namespace>>,
    prefixes: Prefixes,
    requests: usize,
    disks: RefCell<BTreeMap<String, Rc<BaseDisk>>>,
}

impl Manager {
    /// Creates an empty set.
    pub fn new(namespace: Namespace, prefixes: Prefixes, requests: usize) -> Rc<Manager> {
        Rc::new(Manager {
            namespace: Rc::new(RefCell::new(namespace)),
            prefixes,
            requests,
            disks: RefCell::new(BTreeMap::new()),
        })
    }

    /// Starts a task that scans each disk whose driver is registered, for the first time or again.
    pub fn watch(self: &Rc<Manager>) {
        let manager = Rc::clone(self);
        let mut subscribed = self.namespace.borrow_mut().notify(DEVICES);
        executor::spawn(async move {
            loop {
                match subscribed {
                    Ok(events) => manager.follow(events).await,
                    Err(error) => {
                        report::error(format_args!("{DEVICES}: cannot watch for changes: {error}"));
                        return;
                    }
                }
                executor::sleep_until(Deadline::after_ms(SUBSCRIBE_AGAIN_MS)).await;
                subscribed = manager.namespace.borrow_mut().notify(DEVICES);
                manager.scan_all().await;
            }
        });
    }

    async fn follow(self: &Rc<Manager>, mut events: Events) {
        while let namespace_events::ImpReady::Changed { change, path, next } = events.receive_async().await {
            match change {
                Change::Registered => {
                    // The path is relative to the root, to which this program's view is bound.
                    let path = path.to_text();
                    let name = path.rsplit_once('/').map_or(&*path, |(_, name)| name);
                    if self.prefixes.is_disk(name) && path.trim_start_matches('/') == &device_path(name)[1..] {
                        self.scan(name).await;
                    }
                }
                Change::Overflow => self.scan_all().await,
                _ => {}
            }
            events = next.next();
        }
    }

    /// Scans all present disks.
    pub async fn scan_all(&self) {
        let names = self.namespace.borrow_mut().names(DEVICES);
        match names {
            Ok(names) => {
                for name in names.iter().map(|name| name.text()).filter(|name| self.prefixes.is_disk(name)) {
                    self.scan(&name).await;
                }
            }
            Err(error) => report::error(format_args!("{DEVICES}: {error}")),
        }
    }

    /// Scans one disk; logs an error.
    async fn scan(&self, name: &str) {
        let disk = self.disk(name);
        match disk.scan().await {
            // Deregistered in the meantime.
            Ok(()) | Err(AccessError::Name(NameError::NotFound)) => {}
            Err(error) => disk.report_unreadable(error),
        }
    }

    fn disk(&self, name: &str) -> Rc<BaseDisk> {
        let mut disks = self.disks.borrow_mut();
        let make = || Rc::new(BaseDisk::new(name, Rc::clone(&self.namespace), self.requests));
        Rc::clone(disks.entry(name.into()).or_insert_with(make))
    }

    /// Deregisters names left by an earlier run of this program, of partitions that no longer exist. Those of
    /// disks that could not be scanned stay.
    pub fn remove_leftovers(&self) {
        let names = self.namespace.borrow_mut().names(DEVICES).unwrap_or_default();
        for name in names.iter().map(|name| name.text()) {
            let Some((disk, number)) = self.prefixes.partition(&name) else { continue };
            let is_there = self.disks.borrow().get(disk).map(|disk| disk.has_partition(number));
            if matches!(is_there, None | Some(Some(false))) {
                // Fails for names of other programs, as intended.
                let _ = self.namespace.borrow_mut().deregister(&device_path(&name));
            }
        }
    }

    /// Answers a client's queries until it closes its end.
    pub async fn serve(self: Rc<Manager>, client: partition_manager::Exp<states::Start>) {
        let mut client = client.success();
        loop {
            client = match client.receive_async().await {
                ExpReady::Scan { disk, next } => match self.rescan(&disk).await.and_then(|()| self.report(&disk)) {
                    Ok((partitions, text)) => next.report(partitions, text),
                    Err(error) => next.failed(error),
                },
                ExpReady::Describe { disk, next } => match self.report(&disk) {
                    Ok((partitions, text)) => next.report(partitions, text),
                    Err(error) => next.failed(error),
                },
                ExpReady::ChannelClosed(_) => return,
            };
        }
    }

    async fn rescan(&self, requested: &[u8]) -> Result<(), PartitionError> {
        if requested.is_empty() {
            self.scan_all().await;
            return Ok(());
        }
        let name = disk_name(requested).filter(|name| self.prefixes.is_disk(name)).ok_or(PartitionError::NotFound)?;
        self.disk(name).scan().await.map_err(|error| match error {
            AccessError::Name(NameError::NotFound) => PartitionError::NotFound,
            AccessError::Name(NameError::Exhausted) | AccessError::System(_) => PartitionError::Exhausted,
            _ => PartitionError::DeviceError,
        })
    }

    /// Returns the report on one disk, or on all.
    fn report(&self, requested: &[u8]) -> Result<(u32, ExVec<u8>), PartitionError> {
        let wanted =
            if requested.is_empty() { None } else { Some(disk_name(requested).ok_or(PartitionError::NotFound)?) };
        let disks = self.disks.borrow();
        if wanted.is_some_and(|name| !disks.contains_key(name)) {
            return Err(PartitionError::NotFound);
        }
        let mut table = Table::new(&[
            ("PARTITION", Align::Left),
            ("SIZE", Align::Right),
            ("BEGINS AT", Align::Right),
            ("KIND", Align::Left),
            ("NAME", Align::Left),
        ]);
        let (mut count, mut faults) = (0, String::new());
        for (_, disk) in disks.iter().filter(|(name, _)| wanted.is_none_or(|wanted| wanted == name.as_str())) {
            disk.describe(
                |name, partition| {
                    count += 1;
                    let named = printable(partition.name.as_bytes());
                    let place = bytes(partition.first_byte);
                    table.row([name, bytes(partition.bytes), place, partition.kind.to_string(), named]);
                },
                |name, fault| faults += &alloc::format!("{name}: {fault}\n"),
            );
        }
        let mut text = if count == 0 { String::from("no partitions\n") } else { table.render() };
        text += &faults;
        Ok((count, block(&text).map_err(|_| PartitionError::Exhausted)?))
    }
}

/// Returns the name of a disk that may be given as its path.
fn disk_name(requested: &[u8]) -> Option<&str> {
    let text = core::str::from_utf8(requested).ok()?.trim_start_matches('/');
    Some(text.strip_prefix("dev/").unwrap_or(text))
}
