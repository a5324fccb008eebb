//! Many concurrent clients of one volume, on a slow disk.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fs;
use std::future::Future;
use std::pin::Pin;
use std::process::Command;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::support::{self, AnyDisk, has_tool, noise, run};
use ext2::{
    BlockSource, CacheLimits, DiskError, Error, LastLink, MemoryDisk, MountOptions, NewKind, NewNode, ROOT_INODE,
    Volume,
};

type Task = Pin<Box<dyn Future<Output = ()>>>;

/// An in-memory disk that completes requests after some polls, out of order.
struct SlowDisk {
    disk: MemoryDisk,
    random: Cell<u32>,
    spawned: Rc<RefCell<Vec<Task>>>,
}

impl SlowDisk {
    async fn pause(&self) {
        self.random.set(self.random.get().wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
        let mut polls = (self.random.get() >> 20) % 6;
        std::future::poll_fn(|_| {
            polls = polls.saturating_sub(1);
            if polls == 0 { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

impl BlockSource for SlowDisk {
    type Buffer = Vec<u8>;

    fn size_bytes(&self) -> u64 {
        self.disk.size_bytes()
    }

    fn is_read_only(&self) -> bool {
        false
    }

    fn allocate(&self, bytes: usize) -> Result<Vec<u8>, DiskError> {
        Ok(vec![0x5a; bytes])
    }

    async fn read(&self, offset: u64, buffer: Vec<u8>, bytes: usize) -> (Option<Vec<u8>>, Result<(), DiskError>) {
        self.pause().await;
        self.disk.read(offset, buffer, bytes).await
    }

    async fn write(&self, offset: u64, buffer: Vec<u8>, bytes: usize) -> (Option<Vec<u8>>, Result<(), DiskError>) {
        self.pause().await;
        self.disk.write(offset, buffer, bytes).await
    }

    async fn flush(&self) -> Result<(), DiskError> {
        self.pause().await;
        Ok(())
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.spawned.borrow_mut().push(Box::pin(task));
    }

    fn now_s(&self) -> u32 {
        1_700_000_000
    }
}

/// Polls tasks round-robin until all have completed.
fn drive(spawned: &Rc<RefCell<Vec<Task>>>, tasks: Vec<Task>) {
    let mut context = Context::from_waker(Waker::noop());
    let mut running = VecDeque::from(tasks);
    let mut rounds = 0;
    loop {
        running.extend(spawned.borrow_mut().drain(..));
        if running.is_empty() {
            return;
        }
        running.retain_mut(|task| task.as_mut().poll(&mut context).is_pending());
        rounds += 1;
        assert!(rounds < 300_000, "{} tasks wait for each other", running.len());
    }
}

/// Drives one operation to completion, including its background tasks.
fn alone<T: 'static>(spawned: &Rc<RefCell<Vec<Task>>>, operation: impl Future<Output = T> + 'static) -> T {
    let result = Rc::new(Cell::new(None));
    let place = Rc::clone(&result);
    drive(spawned, vec![Box::pin(async move { place.set(Some(operation.await)) })]);
    result.take().unwrap()
}

const FILE: NewNode<'_> = NewNode { kind: NewKind::File, permissions: 0o644, owner: 0, group: 0 };
const FOLDER: NewNode<'_> = NewNode { kind: NewKind::Directory, ..FILE };

/// A client: creates files in a folder shared with others, reads them back, moves and removes them.
async fn client(volume: Volume<AnyDisk>, seed: u64) {
    let shared = volume.resolve(ROOT_INODE, b"shared", LastLink::Keep).await.unwrap().number;
    let own = volume.create(ROOT_INODE, format!("own-{seed}").as_bytes(), FOLDER).await.unwrap().number;
    for round in 0..12u64 {
        let name = format!("{seed}-{round}-{}", "n".repeat((seed * round) as usize % 50));
        let bytes = noise(seed * 100 + round, (1 + round as usize) * 3001);
        let file = volume.create_open(shared, name.as_bytes(), FILE).await.unwrap();
        for (index, piece) in bytes.chunks(1777).enumerate() {
            file.write(index as u64 * 1777, piece).await.unwrap();
        }
        match round % 4 {
            0 => volume.rename(shared, name.as_bytes(), own, name.as_bytes()).await.unwrap(),
            1 => volume.unlink(shared, name.as_bytes()).await.unwrap(),
            2 => volume.link(own, name.as_bytes(), file.number()).await.unwrap(),
            _ => file.set_size(bytes.len() as u64 / 2).await.unwrap(),
        }
        if round == 5 {
            volume.sync().await.unwrap();
        }
        let expected = if round % 4 == 3 { &bytes[..bytes.len() / 2] } else { &bytes[..] };
        let mut read = vec![0; bytes.len()];
        assert_eq!(file.read(0, &mut read).await.unwrap(), expected.len());
        assert!(read[..expected.len()] == *expected);
        let mut position = 0;
        while let Some(next) = volume.list(shared, position, 7).await.unwrap().next {
            position = next;
        }
    }
    // Only one of the racing creations succeeds.
    match volume.create(shared, b"one of all", FOLDER).await {
        Ok(_) | Err(Error::AlreadyExists) => {}
        Err(error) => panic!("{error}"),
    }
    match volume.remove_directory(shared, b"one of all").await {
        Ok(()) | Err(Error::NotFound) => {}
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn clients_do_not_get_in_each_others_way() {
    if !has_tool("mke2fs") || !has_tool("e2fsck") {
        return;
    }
    let place = support::folder();
    let image = place.path().join("image");
    let name = image.to_str().unwrap();
    for (seed, options) in ["dir_index", "^dir_index"].into_iter().enumerate() {
        run("mke2fs", &["-q", "-F", "-t", "ext2", "-b", "1024", "-O", options, name, "8M"]);
        let disk = MemoryDisk::new(fs::read(&image).unwrap());
        let spawned = Rc::default();
        let source = SlowDisk { disk: disk.clone(), random: Cell::new(seed as u32), spawned: Rc::clone(&spawned) };
        // Little memory, so that there is much waiting.
        let limits = CacheLimits {
            inode_bytes: 2000,
            number_bytes: 4000,
            data_bytes: 256 << 10,
            page_bytes: 4096,
            ..CacheLimits::default()
        };
        let options = MountOptions { limits, ..MountOptions::default() };
        let volume = alone(&spawned, Volume::mount(AnyDisk::new(source), options)).unwrap();
        let handle = volume.clone();
        alone(&spawned, async move { handle.create(ROOT_INODE, b"shared", FOLDER).await }).unwrap();
        let tasks = (0..16).map(|seed| Box::pin(client(volume.clone(), seed)) as Task).collect();
        drive(&spawned, tasks);
        assert_eq!(volume.statistics().open, 0);
        let handle = volume.clone();
        let names = alone(&spawned, async move {
            let shared = handle.resolve(ROOT_INODE, b"shared", LastLink::Keep).await.unwrap().number;
            handle.list(shared, 0, 1000).await.unwrap().entries.len()
        });
        // Of each client's twelve files, three were moved and three removed.
        assert_eq!(names, 16 * 6);
        alone(&spawned, async move { volume.unmount().await }).unwrap();
        support::save(&image, &disk.bytes());
        let output = Command::new("e2fsck").args(["-fn", name]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}
