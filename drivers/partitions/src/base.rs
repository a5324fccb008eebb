//! A disk with its partitions: the contents of its table, and the names of the partitions.

use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::RefCell;

use client::access::AccessError;
use client::answer::{CONNECT_LIMIT, wait};
use client::namespace::Namespace;
use contracts::directory::{NameError, ProviderScope};
use contracts::service_provider;
use disk_server::Disk;
use disk_source::{Acquired, Channel, Channels, Info, Open, open_channel, until_open};
use partition_table::{Fault, Partition, Table};
use sip::{Deadline, executor};
use stdio::report;

use crate::names::{self, device_path};
use crate::partition::PartitionMedium;
use crate::table::TableSource;

/// Timeout for a driver that is being restarted, in milliseconds.
const TIMEOUT_MS: u64 = 5_000;

/// A disk, with or without partitions.
pub struct BaseDisk {
    name: String,
    namespace: Rc<RefCell<Namespace>>,
    channels: Channels,
    found: RefCell<Found>,
}

/// Result of the last scan.
#[derive(Default)]
struct Found {
    table: Option<(Info, Table)>,
    served: BTreeMap<u32, Disk<PartitionMedium>>,
}

impl BaseDisk {
    /// Creates the entry of the disk with this name in `/dev`, not scanned yet.
    pub fn new(name: &str, namespace: Rc<RefCell<Namespace>>, requests: usize) -> BaseDisk {
        BaseDisk {
            name: name.into(),
            namespace,
            channels: Channels::new(&device_path(name), requests),
            found: RefCell::default(),
        }
    }

    /// Reads the table, and serves the partitions in it.
    pub async fn scan(self: &Rc<BaseDisk>) -> Result<(), AccessError> {
        let channel = self.open_and_scan().await?;
        let _opening = self.channels.offer(Vec::from([channel]));
        Ok(())
    }

    /// Returns whether it has this partition; `None` before the first scan.
    pub fn has_partition(&self, number: u32) -> Option<bool> {
        let found = self.found.borrow();
        found.table.as_ref().map(|_| found.served.contains_key(&number))
    }

    /// Reports the result of the last scan: the partitions served, and the faults of the table.
    pub fn describe(&self, mut partition: impl FnMut(String, &Partition), mut fault: impl FnMut(&str, &Fault)) {
        let found = self.found.borrow();
        let Some((_, table)) = &found.table else { return };
        for described in table.partitions.iter().filter(|partition| found.served.contains_key(&partition.number)) {
            partition(names::of_partition(&self.name, described.number), described);
        }
        table.faults.iter().for_each(|found| fault(&self.name, found));
    }

    /// Acquires a channel to the driver for exclusive use. `None` if the driver has ended and does not return.
    pub async fn acquire(self: &Rc<BaseDisk>) -> Option<Acquired> {
        self.channels.acquire(&Opener(self)).await
    }

    /// Returns the channels to the driver.
    pub fn channels(&self) -> &Channels {
        &self.channels
    }

    /// Opens a channel and makes sure that the partitions are those of the current disk. Waits for a driver
    /// that is being restarted.
    async fn open_and_scan(self: &Rc<BaseDisk>) -> Result<Channel, AccessError> {
        until_open(Deadline::after_ms(TIMEOUT_MS), || self.try_open_and_scan()).await
    }

    async fn try_open_and_scan(self: &Rc<BaseDisk>) -> Result<Channel, AccessError> {
        let channel = open_channel(&self.namespace, self.channels.path()).await?;
        let source = TableSource::new(channel).await?;
        let read = partition_table::read(&source).await;
        let info = source.info();
        let channel = source.finish()?;
        let table = read.map_err(|_| AccessError::Name(NameError::DeviceError))?;
        self.update(info, table);
        Ok(channel)
    }

    /// Starts to serve new partitions, and ends those that are gone or have changed.
    fn update(self: &Rc<BaseDisk>, info: Info, table: Table) {
        let before = self.found.borrow_mut().table.replace((info, table.clone()));
        let (info_before, table_before) = match &before {
            Some((info, table)) => (Some(info), Some(table)),
            None => (None, None),
        };
        let new_faults =
            table.faults.iter().filter(|fault| table_before.is_none_or(|table| !table.faults.contains(fault)));
        for fault in new_faults {
            report::error(format_args!("{}: {fault}", self.channels.path()));
        }
        let stays = |number: u32| {
            let find = |table: &Table| table.partitions.iter().find(|found| found.number == number).cloned();
            info_before == Some(&info) && table_before.and_then(find).is_some_and(|old| find(&table) == Some(old))
        };
        let numbers: Vec<u32> = self.found.borrow().served.keys().copied().collect();
        for number in numbers.into_iter().filter(|&number| !stays(number)) {
            self.end(number, table.partitions.iter().any(|partition| partition.number == number));
        }
        for partition in &table.partitions {
            if !self.found.borrow().served.contains_key(&partition.number) {
                self.begin(info, partition);
            }
        }
    }

    fn begin(self: &Rc<BaseDisk>, info: Info, partition: &Partition) {
        let path = device_path(&names::of_partition(&self.name, partition.number));
        let disk = Disk::new(PartitionMedium::new(self, info, partition));
        match self.register(&path, &disk) {
            Ok(()) => drop(self.found.borrow_mut().served.insert(partition.number, disk)),
            Err(error) => report::error(format_args!("{path} cannot be registered: {error}")),
        }
    }

    fn register(&self, path: &str, disk: &Disk<PartitionMedium>) -> Result<(), AccessError> {
        let (importer, exporter) = service_provider::new_channel()?;
        let exporter = exporter.ready();
        let service_provider::ImpStart::Ready { next } = wait(importer, CONNECT_LIMIT)? else {
            return Err(AccessError::ServerEnded);
        };
        self.namespace.borrow_mut().register(path, ProviderScope::Name, next)?;
        let disk = disk.clone();
        executor::spawn(provider::accept(exporter, move |client| disk.serve(client)));
        Ok(())
    }

    /// Ends a partition's clients at their next requests, and deregisters its name unless a new partition gets it.
    fn end(&self, number: u32, name_stays: bool) {
        let Some(disk) = self.found.borrow_mut().served.remove(&number) else { return };
        disk.medium().end();
        if !name_stays {
            let path = device_path(&names::of_partition(&self.name, number));
            if let Err(error) = self.namespace.borrow_mut().deregister(&path) {
                report::error(format_args!("{path} cannot be deregistered: {error}"));
            }
        }
    }

    /// Reports that the disk could not be scanned.
    pub fn report_unreadable(&self, error: AccessError) {
        report::error(format_args!("{}: its partition table cannot be read: {error}", self.channels.path()));
    }
}

/// Opens the disk, and scans it first.
struct Opener<'a>(&'a Rc<BaseDisk>);

impl Open for Opener<'_> {
    async fn open(&self, _opening: u64) -> Option<Vec<Channel>> {
        Some(Vec::from([self.0.open_and_scan().await.ok()?]))
    }

    async fn open_one(&self) -> Option<Channel> {
        open_channel(&self.0.namespace, self.0.channels.path()).await.ok()
    }
}
