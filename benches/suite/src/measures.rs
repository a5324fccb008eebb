//! The individual measurements.

use alloc::vec::Vec;

use bench_contract::measured::{self, ExpReady, ImpReadyAfterBlock, ImpReadyAfterNumber, states::Ready};
use client::namespace::Namespace;
use contracts::service_manager;
use core::fmt;
use core::hint::black_box;
use principal::{Acl, DecisionCache, Right};
use sha2::{Digest, Sha256};
use sip::exheap::ExVec;
use sip::select::WaitSet;
use sip::{Deadline, process, thread};

use crate::median::Rounds;

/// Why a measurement failed.
#[derive(Clone, Copy, Debug)]
pub struct Failure(pub &'static str);

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0)
    }
}

/// Number of threads that a yield is measured with, in sequence.
const YIELD_PARTNERS: usize = 9;

/// Size of the data whose digest is computed.
const DIGEST_BYTES: usize = 1 << 20;
/// Pages of one allocation.
const PAGES: usize = 16;
const PAGE_BYTES: usize = 4096;

const HUNG_UP: Failure = Failure("the other end hung up");

/// A kernel call that returns immediately, including the loop around it.
pub fn abi_call(rounds: Rounds) -> u64 {
    rounds.median(100_000, |count| {
        for _ in 0..count {
            black_box(thread::stack_left());
        }
    })
}

/// A yield between two otherwise idle threads of this SIP: one switch. The cost depends on how the two stacks map to
/// the caches, so it is the median over several other threads.
pub fn thread_yield(rounds: Rounds) -> Result<u64, Failure> {
    let mut others = Vec::new();
    let mut costs = Vec::new();
    for _ in 0..YIELD_PARTNERS {
        let (client, server) = measured::new_channel().map_err(|_| Failure("no channel"))?;
        let other = thread::spawn(move || yield_until_asked(server)).map_err(|_| Failure("no thread"))?;
        // Each of our yields makes the other thread run once: two switches for two yields.
        let pair = rounds.median(1_000, |count| {
            for _ in 0..count {
                thread::yield_now();
            }
        });
        costs.push(pair / 2);
        // From here on it waits, and keeps its stack, so that the next thread gets another one.
        others.push((other, client.number(0)));
    }
    for (other, client) in others {
        drop(client);
        other.join().map_err(|_| Failure("a thread could not be joined"))?;
    }
    costs.sort_unstable();
    Ok(costs[costs.len() / 2])
}

/// Yields until a request arrives, then waits until the channel is closed.
fn yield_until_asked(server: measured::Exp<Ready>) {
    let mut server = server;
    loop {
        server = match server.try_receive() {
            Err(server) => server,
            Ok(ExpReady::Number { value, next }) => {
                // Only the close notification can arrive.
                let _ = next.number_back(value).receive();
                return;
            }
            Ok(_) => return,
        };
        for _ in 0..100 {
            thread::yield_now();
        }
    }
}

/// Who is at the other end of a channel.
#[derive(Clone, Copy)]
pub enum Other {
    /// Another thread of this SIP.
    Thread,
    /// Another SIP.
    Sip,
}

/// What runs a server.
enum Runner {
    Thread(thread::JoinHandle<()>),
    Sip(process::Child),
}

/// A server of the benchmark, with a channel to it.
pub struct Server {
    runner: Runner,
    /// The client's end.
    pub client: measured::Imp<Ready>,
}

impl Server {
    /// Starts a server.
    pub fn start(other: Other) -> Result<Server, Failure> {
        let (client, end) = measured::new_channel().map_err(|_| Failure("no channel for a server"))?;
        let runner = match other {
            Other::Thread => {
                Runner::Thread(thread::spawn(move || serve(end)).map_err(|_| Failure("no thread for a server"))?)
            }
            Other::Sip => Runner::Sip(
                process::create("bench-server")
                    .map_err(|_| Failure("bench-server could not be created"))?
                    .endpoint(0, end)
                    .and_then(process::Child::start)
                    .map_err(|_| Failure("bench-server could not be started"))?,
            ),
        };
        Ok(Server { runner, client })
    }

    /// Sends a request and waits for the answer.
    pub fn ask(self) -> Result<Server, Failure> {
        match self.client.number(0).receive() {
            ImpReadyAfterNumber::NumberBack { next, .. } => Ok(Server { runner: self.runner, client: next }),
            ImpReadyAfterNumber::ChannelClosed(_) => Err(HUNG_UP),
        }
    }

    /// Closes the channel and waits for the server to end.
    pub fn end(self) -> Result<(), Failure> {
        drop(self.client);
        match self.runner {
            Runner::Thread(thread) => thread.join().map_err(|_| Failure("a server's thread could not be joined")),
            Runner::Sip(child) => child.wait().map(drop).map_err(|_| Failure("bench-server did not end")),
        }
    }
}

/// Answers requests until the channel closes, as `bench-server` does.
fn serve(client: measured::Exp<Ready>) {
    let mut client = client;
    loop {
        client = match client.receive() {
            ExpReady::Number { value, next } => next.number_back(value),
            ExpReady::Block { data, next } => next.block_back(data),
            ExpReady::ChannelClosed(_) => return,
        };
    }
}

/// A block of this size to the other end and back.
pub fn message(rounds: Rounds, other: Other, bytes: usize) -> Result<u64, Failure> {
    let server = Server::start(other)?;
    let block = ExVec::<u8>::new(bytes).map_err(|_| Failure("no block"))?;
    let mut held = Some((server.client, block));
    let cycles = rounds.try_median(2_000, |count| {
        let (mut client, mut block) = held.take().ok_or(HUNG_UP)?;
        for _ in 0..count {
            (client, block) = match client.block(block).receive() {
                ImpReadyAfterBlock::BlockBack { data, next } => (next, data),
                ImpReadyAfterBlock::ChannelClosed(_) => return Err(HUNG_UP),
            };
        }
        held = Some((client, block));
        Ok(())
    })?;
    let (client, _block) = held.ok_or(HUNG_UP)?;
    Server { runner: server.runner, client }.end()?;
    Ok(cycles)
}

/// A number to another SIP and back.
pub fn number(rounds: Rounds) -> Result<u64, Failure> {
    let server = Server::start(Other::Sip)?;
    let mut held = Some(server.client);
    let cycles = rounds.try_median(2_000, |count| {
        let mut client = held.take().ok_or(HUNG_UP)?;
        for value in 0..count {
            client = match client.number(value).receive() {
                ImpReadyAfterNumber::NumberBack { next, .. } => next,
                ImpReadyAfterNumber::ChannelClosed(_) => return Err(HUNG_UP),
            };
        }
        held = Some(client);
        Ok(())
    })?;
    let client = held.ok_or(HUNG_UP)?;
    Server { runner: server.runner, client }.end()?;
    Ok(cycles)
}

/// Additional cost of receiving through a wait set over a plain receive, with 16 endpoints in the set.
pub fn select_extra(rounds: Rounds) -> Result<u64, Failure> {
    let plain = number(rounds)?;
    let server = Server::start(Other::Sip)?;
    let (selected, client) = number_selected(rounds, server.client, 15)?;
    Server { runner: server.runner, client }.end()?;
    Ok(selected.saturating_sub(plain))
}

/// A number to another thread of this SIP and back, where both receive through a wait set.
pub fn threads_select(rounds: Rounds) -> Result<u64, Failure> {
    let (client, server) = measured::new_channel().map_err(|_| Failure("no channel"))?;
    let other = thread::spawn(move || serve_selected(server)).map_err(|_| Failure("no thread"))?;
    let (cycles, client) = number_selected(rounds, client, 0)?;
    drop(client);
    other.join().map_err(|_| Failure("a thread could not be joined"))?;
    Ok(cycles)
}

/// A number to the other end and back, received through a wait set that holds so many quiet endpoints beside.
fn number_selected(
    rounds: Rounds,
    client: measured::Imp<Ready>,
    others: usize,
) -> Result<(u64, measured::Imp<Ready>), Failure> {
    let mut set = WaitSet::new().map_err(|_| Failure("no wait set"))?;
    let mut quiet = Vec::new();
    for _ in 0..others {
        let (client, end) = measured::new_channel().map_err(|_| Failure("no channel"))?;
        set.insert(client.number(0));
        quiet.push(end);
    }
    let mut held = Some(client);
    let cycles = rounds.try_median(2_000, |count| {
        let mut client = held.take().ok_or(HUNG_UP)?;
        for value in 0..count {
            set.insert(client.number(value));
            client = match set.wait(Deadline::NEVER) {
                Some((_, ImpReadyAfterNumber::NumberBack { next, .. })) => next,
                Some((_, ImpReadyAfterNumber::ChannelClosed(_))) | None => return Err(HUNG_UP),
            };
        }
        held = Some(client);
        Ok(())
    })?;
    Ok((cycles, held.ok_or(HUNG_UP)?))
}

/// Answers numbers that arrive through a wait set, until the channel closes.
fn serve_selected(client: measured::Exp<Ready>) {
    let Ok(mut set) = WaitSet::new() else { return };
    set.insert(client);
    while let Some((_, ExpReady::Number { value, next })) = set.wait(Deadline::NEVER) {
        set.insert(next.number_back(value));
    }
}

/// Allocates 16 pages of memory from the kernel in one call, and frees them: the cost of each.
pub fn page_alloc(rounds: Rounds) -> Result<u64, Failure> {
    let pages = rounds.try_median(500, |count| {
        for _ in 0..count {
            let mut block = Vec::<u8>::new();
            block.try_reserve_exact(PAGES * PAGE_BYTES).map_err(|_| Failure("no memory"))?;
            black_box(&mut block);
        }
        Ok(())
    })?;
    Ok(pages / PAGES as u64)
}

/// Computes a SHA-256 of 1 MiB, as of a package that is verified: one process, which calls nobody.
pub fn compute(rounds: Rounds) -> Result<u64, Failure> {
    let mut data = Vec::<u8>::new();
    data.try_reserve_exact(DIGEST_BYTES).map_err(|_| Failure("no memory"))?;
    data.extend((0..DIGEST_BYTES).map(|index| ((index * index) >> 7) as u8));
    Ok(rounds.median(1, |count| {
        for _ in 0..count {
            black_box(Sha256::digest(black_box(&data)));
        }
    }))
}

/// Creates a channel, with its ends connected, and closes it.
pub fn channel_create(rounds: Rounds) -> Result<u64, Failure> {
    rounds.try_median(1_000, |count| {
        for _ in 0..count {
            drop(measured::new_channel().map_err(|_| Failure("no channel"))?);
        }
        Ok(())
    })
}

/// Binds the name of a service: through the directory to the service's own SIP and back.
pub fn name_bind(rounds: Rounds, namespace: &mut Namespace) -> Result<u64, Failure> {
    rounds.try_median(200, |count| {
        for _ in 0..count {
            let (client, server) = service_manager::new_channel().map_err(|_| Failure("no channel"))?;
            namespace.bind("/service/manager", server).map_err(|_| Failure("/service/manager could not be bound"))?;
            drop(client);
        }
        Ok(())
    })
}

/// A cached access decision for a principal.
pub fn access_cached(rounds: Rounds) -> Result<u64, Failure> {
    const WHO: &str = "login.singularity@alice + shell.singularity + cat.singularity";
    let list = Acl::parse("deny write ..guest.singularity\nallow all **").map_err(|_| Failure("no list"))?;
    let mut cache = DecisionCache::new();
    Ok(rounds.median(10_000, |count| {
        for _ in 0..count {
            black_box(cache.get(black_box(1), black_box(WHO), || list.rights_of(WHO)).has(Right::Read));
        }
    }))
}

/// An access decision that is not cached: two patterns over three links.
pub fn access_decided(rounds: Rounds) -> Result<u64, Failure> {
    const WHO: &str = "login.singularity@alice + shell.singularity + cat.singularity";
    let list = Acl::parse("deny write ..guest.singularity\nallow all **").map_err(|_| Failure("no list"))?;
    Ok(rounds.median(1_000, |count| {
        for _ in 0..count {
            black_box(list.rights_of(black_box(WHO)).has(Right::Read));
        }
    }))
}

/// Creates a thread, which ends, and joins it.
pub fn thread_create(rounds: Rounds) -> Result<u64, Failure> {
    rounds.try_median(500, |count| {
        for _ in 0..count {
            thread::spawn(|| ())
                .and_then(thread::JoinHandle::join)
                .map_err(|_| Failure("a thread could not be created"))?;
        }
        Ok(())
    })
}

/// Creates a SIP, starts it, waits for its end and closes its handle.
pub fn process_create(rounds: Rounds) -> Result<u64, Failure> {
    rounds.try_median(100, |count| {
        for _ in 0..count {
            let child = process::create("bench-nothing").map_err(|_| Failure("bench-nothing could not be created"))?;
            let child = child.start().map_err(|_| Failure("bench-nothing could not be started"))?;
            let epitaph = child.wait().map_err(|_| Failure("bench-nothing did not end"))?;
            // A SIP that died early would look cheaper than one that ran.
            if !epitaph.is_success() {
                return Err(Failure("bench-nothing did not run to its end"));
            }
        }
        Ok(())
    })
}
