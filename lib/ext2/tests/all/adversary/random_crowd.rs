//! Concurrent clients, each in its own folder, on a disk with late and reordered completions.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use ext2::CacheLimits;

use crate::adversary::disk::TestDisk;
use crate::adversary::generator::{Generator, Life};
use crate::adversary::model::Model;
use crate::adversary::operation::{Operation, Path};
use crate::adversary::player::follow;
use crate::adversary::tools::{self, FORMATS, Format};
use crate::adversary::volume::{Mounted, small_caches};

const CLIENTS: usize = 5;

/// A client with its own files and its own expected content.
async fn live(
    mounted: &Mounted,
    model: &RefCell<Model>,
    seed: u64,
    base: Path,
    operations: usize,
) -> Result<(), String> {
    let life = Life { content_bytes: 800 << 10, syncs: 25, remounts: 0, large_bytes: 200 << 10, ..Life::default() };
    let life = Life { largest_file: 1 << 30, ..life };
    let mut generator = Generator::new(seed, life);
    for number in 0..operations {
        let operation = generator.next(&model.borrow(), &base);
        // Moving or removing the client's own base folder is excluded.
        let moves_home = match &operation {
            Operation::Rename { from, to } => *from == base || *to == base,
            Operation::RemoveFolder { path } => *path == base,
            _ => false,
        };
        if moves_home {
            continue;
        }
        let outcome = mounted.apply_async(&operation).await;
        follow(&mut model.borrow_mut(), &operation, outcome)
            .map_err(|error| format!("client {seed}, operation {number}: {error}"))?;
    }
    Ok(())
}

/// Runs all concurrently.
async fn together<T>(futures: Vec<Pin<Box<dyn Future<Output = T> + '_>>>) -> Vec<T> {
    let mut futures = futures;
    let mut results: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (future, result) in futures.iter_mut().zip(&mut results).filter(|(_, result)| result.is_none()) {
            if let Poll::Ready(value) = future.as_mut().poll(context) {
                *result = Some(value);
            }
        }
        if results.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    results.into_iter().flatten().collect()
}

fn play(format: &Format, seed: u64, operations: usize) -> Result<(), String> {
    let disk = TestDisk::new(format.make());
    let limits = if seed.is_multiple_of(2) { CacheLimits::default() } else { small_caches() };
    disk.answer_late(seed);
    let first = Mounted::mount(disk.clone(), limits).map_err(|error| format!("{error:?}"))?;
    let mut model = Model::fresh(format.largest_file());
    let homes: Vec<Path> = (0..CLIENTS).map(|client| vec![format!("client-{client}").into_bytes()]).collect();
    for home in &homes {
        let operation = Operation::MakeFolder { path: home.clone(), permissions: 0o755 };
        let outcome = first.apply(&operation);
        if model.apply(&operation) != outcome {
            return Err(format!("{operation:?}: {outcome:?}"));
        }
    }
    // Each client has its own open files, but all share one volume.
    let mounts: Vec<Mounted> = homes.iter().map(|_| first.another_client()).collect();
    let models: Vec<RefCell<Model>> = homes.iter().map(|_| RefCell::new(model.clone())).collect();
    let lives = mounts.iter().zip(&models).zip(&homes).enumerate().map(|(client, ((mounted, model), home))| {
        let life = live(mounted, model, seed * 100 + client as u64, home.clone(), operations);
        Box::pin(life) as Pin<Box<dyn Future<Output = Result<(), String>> + '_>>
    });
    let results = disk.run(together(lives.collect()));
    results.into_iter().collect::<Result<(), String>>()?;
    for ((mounted, model), home) in mounts.iter().zip(&models).zip(&homes) {
        mounted.compare_below(&model.borrow(), home)?;
    }
    for mounted in mounts {
        mounted.leave();
    }
    let disk = first.unmount().map_err(|error| format!("unmounting: {error:?}"))?;
    tools::check_clean(&disk.image())?;
    let again = Mounted::mount(TestDisk::new(disk.image()), limits).map_err(|error| format!("{error:?}"))?;
    for (model, home) in models.iter().zip(&homes) {
        model.borrow_mut().apply(&Operation::Remount);
        again.compare_below(&model.borrow(), home).map_err(|error| format!("mounted anew: {error}"))?;
    }
    Ok(())
}

fn play_all(formats: &[Format], seeds: std::ops::Range<u64>, operations: usize) {
    if !tools::are_there() {
        return;
    }
    for format in formats {
        for seed in seeds.clone() {
            if let Err(error) = play(format, seed, operations) {
                panic!("{format:?}, seed {seed}: {error}");
            }
        }
    }
}

#[test]
fn clients_do_not_hinder_each_other() {
    play_all(&[FORMATS[0], FORMATS[3], FORMATS[4]], 0..2, 400);
}

#[test]
#[ignore = "takes minutes"]
fn clients_do_not_hinder_each_other_for_long() {
    play_all(&FORMATS, 100..110, 10_000);
}
