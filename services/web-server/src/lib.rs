//! An HTTP/1.1 server for the files of a folder and for applications.
//!
//! The protocol is in the library `http`; the channels are here. Every connection is a task on one thread. [`listener`]
//! accepts connections, [`connection`] serves one, [`plan`] chooses the response, [`answers`] sends it; [`store`]
//! accesses the file system, [`cache`] has the open files, [`coded`] their compressed contents, [`wire`] and [`input`]
//! are the two directions of a connection, [`blocks`] the free blocks; [`applications`] are child processes that serve
//! a path, [`exchange`] is one request to one; [`status`] has the counters. A file is read into a block that is lent to
//! the network stack: its content is not copied, unless it is compressed. Deliberately not here: TLS.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod address;
mod answers;
mod applications;
mod blocks;
mod boundary;
mod cache;
mod coded;
mod connection;
mod ending;
mod exchange;
mod input;
mod limited;
mod listener;
mod log;
mod plan;
mod status;
mod store;
mod wire;

use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::time::Duration;

use contracts::FOR_EVER;
use sip::{Deadline, executor, time};
use stdio::report;

use applications::Application;
use blocks::Blocks;
use boundary::Boundaries;
use cache::Cache;
use coded::Coded;
use ending::Ending;
use log::AccessLog;
use status::Counters;
use store::Store;

sip::startup!();

/// Maximum time for which a connection waits for its next request near the connection limit, in milliseconds.
const MAX_CROWDED_IDLE_MS: u32 = 1000;

/// Interval of housekeeping, in milliseconds.
const HOUSEKEEPING_MS: u64 = 1000;

/// Limits on clients.
struct Limits {
    connections: usize,
    header_bytes: usize,
    body_bytes: u64,
    application_time_ms: u32,
    application_queue: usize,
    header_time_ms: u32,
    keep_alive_time_ms: u32,
    write_time_ms: u32,
}

/// State shared by all connections.
struct Server {
    root_path: String,
    tcp_path: String,
    limits: Limits,
    store: Store,
    cache: Cache,
    coded: Coded,
    boundaries: Boundaries,
    blocks: Blocks,
    log: AccessLog,
    ending: Ending,
    applications: Vec<Application>,
    /// Buffer for the decoded path of the request being planned.
    scratch: RefCell<String>,
    connections: Cell<usize>,
    counters: Counters,
    /// Total size of incomplete heads, in bytes.
    held_bytes: Cell<usize>,
    started_ns: u64,
    /// Offset of the wall clock to the monotonic clock, as of the last housekeeping, in nanoseconds.
    wall_ahead_ns: Cell<u64>,
    /// Cached monotonic time, updated with each request, in nanoseconds.
    clock_ns: Cell<u64>,
    date: Cell<(i64, [u8; http::date::HEADER_BYTES])>,
}

/// Serves until the provider channel closes.
pub fn main(startup: Startup) -> i32 {
    let port = u16::try_from(startup.port).ok();
    let Some(address) = port.and_then(|port| address::parse(&startup.address, port)) else {
        report::error(format_args!("`{}` and {} are not a valid address and port", startup.address, startup.port));
        return 2;
    };
    let limits = Limits {
        connections: usize::try_from(startup.connections).unwrap_or(1).max(1),
        header_bytes: usize::try_from(startup.header_bytes).unwrap_or(0).clamp(1024, 1 << 20),
        body_bytes: u64::try_from(startup.body_bytes).unwrap_or(0),
        application_time_ms: milliseconds(startup.application_time),
        application_queue: usize::try_from(startup.application_queue).unwrap_or(0).max(1),
        header_time_ms: milliseconds(startup.header_time),
        keep_alive_time_ms: milliseconds(startup.keep_alive_time),
        write_time_ms: milliseconds(startup.write_time),
    };
    let applications = match applications::parse_all(&startup.applications) {
        Ok(applications) => applications,
        Err(text) => {
            report::error(format_args!("`{text}` is not of the form `/path=program`"));
            return 2;
        }
    };
    let cache = Cache::new();
    cache.set_max_bytes(usize::try_from(startup.cache_bytes).unwrap_or(0));
    let server = Rc::new(Server {
        applications,
        store: Store::new(startup.namespace, &startup.root),
        root_path: startup.root,
        tcp_path: startup.tcp,
        limits,
        cache,
        coded: Coded::default(),
        boundaries: Boundaries::default(),
        blocks: Blocks::default(),
        log: AccessLog::new(&startup.log, u64::try_from(startup.log_bytes).unwrap_or(u64::MAX)),
        ending: Ending::default(),
        scratch: RefCell::new(String::new()),
        connections: Cell::new(0),
        counters: Counters::default(),
        held_bytes: Cell::new(0),
        started_ns: time::monotonic(),
        wall_ahead_ns: Cell::new(wall_ahead_ns()),
        clock_ns: Cell::new(time::monotonic()),
        date: Cell::new((-1, http::date::header(0))),
    });
    let served = executor::block_on(async {
        executor::spawn(housekeeping(server.clone()));
        let log = executor::spawn(log::write_regularly(server.clone()));
        for index in 0..server.applications.len() {
            executor::spawn(applications::run(server.clone(), index));
        }
        // Ready once it accepts connections.
        let shown = server.clone();
        let provider = startup.status;
        let ready = move || {
            executor::spawn(async move {
                let server = shown.clone();
                provider::accept(provider.ready(), move |client| status::serve(shown.clone(), client)).await;
                server.ending.begin();
            });
        };
        executor::spawn(listener::run(server.clone(), address, ready));
        let open = log.await;
        server.ending.drained().await;
        log::write_rest(&server, open).await;
    });
    match served {
        Ok(()) => 0,
        Err(status) => {
            report::error(format_args!("cannot wait for clients: {}", status.text()));
            1
        }
    }
}

/// A timeout in the contracts' unit, clamped below the maximum, which means none.
fn milliseconds(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(FOR_EVER).clamp(1, FOR_EVER - 1)
}

async fn housekeeping(server: Rc<Server>) {
    loop {
        executor::sleep_until(Deadline::after_ms(HOUSEKEEPING_MS)).await;
        server.wall_ahead_ns.set(wall_ahead_ns());
        server.cache.sweep(server.update_clock());
    }
}

fn wall_ahead_ns() -> u64 {
    time::wall().saturating_sub(time::monotonic())
}

impl Server {
    /// Updates the cached time, which is used until the next wait, and returns it.
    fn update_clock(&self) -> u64 {
        self.clock_ns.set(time::monotonic_coarse());
        self.clock_ns.get()
    }

    /// Cached monotonic time, in nanoseconds.
    fn now_ns(&self) -> u64 {
        self.clock_ns.get()
    }

    /// Cached Unix time, in seconds.
    fn wall_s(&self) -> i64 {
        ((self.clock_ns.get() + self.wall_ahead_ns.get()) / 1_000_000_000) as i64
    }

    /// The value of a `Date` field.
    fn date(&self) -> [u8; http::date::HEADER_BYTES] {
        let now = self.wall_s();
        let (second, text) = self.date.get();
        if second == now {
            return text;
        }
        let text = http::date::header(now);
        self.date.set((now, text));
        text
    }

    /// Whether the server is near its connection limit, in which case idle connections are closed.
    fn is_crowded(&self) -> bool {
        self.connections.get() >= self.limits.connections - self.limits.connections / 8
    }

    /// How long a connection waits for its next request, in milliseconds.
    fn idle_time_ms(&self) -> u32 {
        let time_ms = self.limits.keep_alive_time_ms;
        if self.is_crowded() { time_ms.min(MAX_CROWDED_IDLE_MS) } else { time_ms }
    }

    /// Waits until the connection limit allows another one.
    async fn has_room(&self) {
        while self.connections.get() >= self.limits.connections {
            executor::sleep_until(Deadline::after_ms(1)).await;
        }
    }

    /// Counts a connection until the guard is dropped.
    fn enter(self: Rc<Server>) -> Entered {
        self.connections.set(self.connections.get() + 1);
        self.counters.note_connection(self.connections.get());
        Entered(self)
    }
}

struct Entered(Rc<Server>);

impl Drop for Entered {
    fn drop(&mut self) {
        self.0.connections.set(self.0.connections.get() - 1);
    }
}
