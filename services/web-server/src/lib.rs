//! A web server: the files of a folder, and what applications answer, over HTTP/1.1.
//!
//! All that is known of HTTP is in the library `http`; here are the channels. Every connection is a task on one
//! thread. [`listener`] takes connections, [`connection`] serves one, [`plan`] judges a request, [`answers`] sends;
//! [`store`] is the way to the file system, [`cache`] the files that are open, [`coded`] what of them is kept in a
//! shorter form, [`wire`] and [`input`] the two directions of a connection, [`blocks`] what is used again;
//! [`applications`] are child processes that answer for a path, [`exchange`] is one request to one. [`status`] tells
//! what was done. The content of a file is read into a block, and that block is lent to the network stack: no byte of
//! it is copied here, unless it is sent coded. Deliberately not here: TLS.
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

/// How often what is due now and then is done.
const HOUSEKEEPING_MS: u64 = 1000;

/// Bounds of what a client may use.
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

/// What all connections share.
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
    /// The path of the request that is looked at.
    scratch: RefCell<String>,
    connections: Cell<usize>,
    counters: Counters,
    /// Bytes of heads whose ends have not come.
    held_bytes: Cell<usize>,
    started_ns: u64,
    /// What the time of day is ahead of the monotonic clock, as of the last housekeeping.
    wall_ahead_ns: Cell<u64>,
    /// The monotonic clock when a request was looked at last.
    looked_ns: Cell<u64>,
    date: Cell<(i64, [u8; http::date::HEADER_BYTES])>,
}

/// Serves until it is asked to end.
pub fn main(startup: Startup) -> i32 {
    let port = u16::try_from(startup.port).ok();
    let Some(address) = port.and_then(|port| address::parse(&startup.address, port)) else {
        report::error(format_args!("`{}` and {} are no address and port", startup.address, startup.port));
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
    cache.keep_at_most(usize::try_from(startup.kept_bytes).unwrap_or(0));
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
        looked_ns: Cell::new(time::monotonic()),
        date: Cell::new((-1, http::date::header(0))),
    });
    let served = executor::block_on(async {
        executor::spawn(keep_house(server.clone()));
        let log = executor::spawn(log::write_regularly(server.clone()));
        for index in 0..server.applications.len() {
            executor::spawn(applications::run(server.clone(), index));
        }
        // The server is ready when it takes connections.
        let shown = server.clone();
        let provider = startup.status;
        let ready = move || {
            executor::spawn(async move {
                let server = shown.clone();
                provider::accept(provider.ready(), move |client| status::serve(shown.clone(), client)).await;
                server.ending.begin();
            });
        };
        executor::spawn(listener::run(server, address, ready));
        // The log is the only thing that outlives the server.
        log.await;
    });
    match served {
        Ok(()) => 0,
        Err(status) => {
            report::error(format_args!("cannot wait for clients: {}", status.text()));
            1
        }
    }
}

/// A time limit as the contracts have it. The greatest number would be for ever.
fn milliseconds(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(FOR_EVER).clamp(1, FOR_EVER - 1)
}

async fn keep_house(server: Rc<Server>) {
    loop {
        executor::sleep_until(Deadline::after_ms(HOUSEKEEPING_MS)).await;
        server.wall_ahead_ns.set(wall_ahead_ns());
        server.cache.sweep(server.look_at_clock());
    }
}

fn wall_ahead_ns() -> u64 {
    time::wall().saturating_sub(time::monotonic())
}

impl Server {
    /// Looks at the clock, of which all that follows until somebody waits is told then.
    fn look_at_clock(&self) -> u64 {
        self.looked_ns.set(time::monotonic());
        self.looked_ns.get()
    }

    /// The monotonic clock when it was looked at last.
    fn now_ns(&self) -> u64 {
        self.looked_ns.get()
    }

    /// Seconds since 1970-01-01 00:00 UTC at that time.
    fn wall_s(&self) -> i64 {
        ((self.looked_ns.get() + self.wall_ahead_ns.get()) / 1_000_000_000) as i64
    }

    /// The date as a header field has it.
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

    /// Whether most of the connections that there may be are there: then none is kept that is not asked on.
    fn is_crowded(&self) -> bool {
        self.connections.get() >= self.limits.connections - self.limits.connections / 8
    }

    /// Waits until one more connection may be taken.
    async fn has_room(&self) {
        while self.connections.get() >= self.limits.connections {
            executor::sleep_until(Deadline::after_ms(1)).await;
        }
    }

    /// Counts a connection until the guard ends.
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
