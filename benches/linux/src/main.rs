//! Measures Linux's counterparts of the system's own operations, in cycles of the time-stamp counter, and prints a
//! line `bench NAME CYCLES` for each: the median over batches.
//!
//! If Linux has several ways, the cheapest is measured: a bare system call, both ends on one processor, the smallest
//! possible program. As the init process of a virtual machine it measures the same there, and powers the machine off
//! at the end. With the argument `disk` it runs the tasks of `bench-disk` instead; with `forget` it drops a file from
//! the page cache. With `web` it is the dynamic backend of nginx, and with `guest` it starts nginx in a virtual
//! machine. Deliberately not here: the system's own figures, which come from SIPs.

extern crate alloc;

mod disk;
mod guest;
mod interface;
mod linux;
mod smallest_program;
mod web;

use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use linux::{Socket, cycles};

/// Number of batches of which the median is taken. Many short ones: a batch longer than a time slice is always
/// interrupted on a busy host, and Linux would look slower than it is.
const BATCHES: usize = 301;
/// Number of batches in a virtual machine that counts instructions, where nothing else runs.
const BATCHES_IN_GUEST: usize = 61;
/// Iterations of the loop that calibrates the counter.
const COUNTED_ROUNDS: u64 = 100_000;
/// Number of live processes while `message_1_crowded` is measured.
const CROWD: usize = 10_000;

/// A measurement; `None` if this host cannot make it.
type Bench = fn() -> Option<u64>;

fn main() {
    let arguments: Vec<std::ffi::OsString> = std::env::args_os().skip(1).collect();
    match arguments.split_first() {
        Some((what, rest)) if what == "disk" => std::process::exit(disk::run(rest)),
        Some((what, [file])) if what == "forget" => std::process::exit(disk::forget(file)),
        Some((what, [socket, files])) if what == "web" => std::process::exit(web::serve(socket, files)),
        Some((what, [files])) if what == "web-once" => std::process::exit(web::answer_once(files)),
        Some((what, [address])) if what == "guest" => match address.to_str().and_then(|text| text.parse().ok()) {
            Some(address) => std::process::exit(guest::serve(address)),
            None => eprintln!("bench-linux: {} is no address", address.display()),
        },
        _ => {}
    }
    let is_first_program = std::process::id() == 1;
    if is_first_program && !linux::mount_proc() {
        eprintln!("bench-linux: /proc cannot be mounted");
    }
    measure();
    if is_first_program {
        linux::power_off();
    }
}

fn measure() {
    let benches: [(&str, Bench); 13] = [
        ("counter_per_1000_instructions", counter_per_1000_instructions),
        ("abi_call", || Some(median(1_000, linux::getppid))),
        ("thread_yield", thread_yield),
        ("message_1", || round_trip(1, 20)),
        ("message_64k", || round_trip(64 << 10, 10)),
        ("message_1m", || round_trip(1 << 20, 1)),
        ("select_extra", select_extra),
        ("channel_create", || Some(median(50, || drop(Socket::pair())))),
        ("name_bind", || Some(median(100, || drop(std::fs::File::open("/proc/self/exe"))))),
        ("name_connect", name_connect),
        ("thread_create", || Some(median(10, linux::create_and_join_thread))),
        ("process_create", process_create),
        ("message_1_crowded", message_in_a_crowd),
    ];
    for (name, bench) in benches {
        match bench() {
            Some(cycles) => println!("bench {name} {cycles}"),
            None => eprintln!("bench-linux: {name} cannot be measured on this host"),
        }
    }
}

/// Measures the cycles of one operation: the median over batches of `count`.
fn median(count: u64, mut operation: impl FnMut()) -> u64 {
    let batches = if std::process::id() == 1 { BATCHES_IN_GUEST } else { BATCHES };
    // The first batch warms the caches and is discarded.
    let mut figures: Vec<u64> = (0..=batches)
        .map(|_| {
            let start = cycles();
            for _ in 0..count {
                operation();
            }
            (cycles() - start) / count
        })
        .skip(1)
        .collect();
    figures.sort_unstable();
    figures[figures.len() / 2]
}

/// Counter increment while a thousand instructions run.
fn counter_per_1000_instructions() -> Option<u64> {
    let whole = median(1, || linux::loop_of_two_instructions(COUNTED_ROUNDS));
    Some(whole * 1_000 / (2 * COUNTED_ROUNDS))
}

/// A yield between two threads of the same process on the same processor.
fn thread_yield() -> Option<u64> {
    linux::pin_to_one_processor()?;
    let over = Arc::new(AtomicBool::new(false));
    let partner = {
        let over = Arc::clone(&over);
        // Inherits the pinning to one processor.
        std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                linux::yield_processor();
            }
        })
    };
    // A yield here returns only after a yield there: two switches.
    let both = median(200, linux::yield_processor);
    over.store(true, Ordering::Relaxed);
    partner.join().ok()?;
    Some(both / 2)
}

/// A message of this size to another process and back.
fn round_trip(bytes: usize, count: u64) -> Option<u64> {
    linux::pin_to_one_processor()?;
    let (here, there) = Socket::pair()?;
    let echo = linux::fork(move || {
        let mut buffer = vec![0; bytes];
        while there.receive_whole(&mut buffer) && there.send_whole(&buffer) {}
    })?;
    let mut buffer = vec![0; bytes];
    let mut whole = true;
    let cycles = median(count, || whole &= here.send_whole(&buffer) && here.receive_whole(&mut buffer));
    // The child holds a copy of this end too, so it would never see it close.
    echo.kill();
    echo.wait();
    whole.then_some(cycles)
}

/// Additional cost of waiting on an epoll set with one socket over a plain receive.
fn select_extra() -> Option<u64> {
    let (here, there) = Socket::pair()?;
    let set = linux::WaitSet::of(&there)?;
    let mut buffer = [0];
    let plain = median(100, || {
        let _ = here.send_whole(&[1]) && there.receive_whole(&mut buffer);
    });
    let through_set = median(100, || {
        let _ = here.send_whole(&[1]) && set.wait() && there.receive_whole(&mut buffer);
    });
    Some(through_set.saturating_sub(plain))
}

/// Connects to a service of another process by path, until it has accepted and answered.
fn name_connect() -> Option<u64> {
    linux::pin_to_one_processor()?;
    let path = std::env::temp_dir().join(format!("bench-linux-name-{}", std::process::id()));
    let name = std::ffi::CString::new(path.as_os_str().as_bytes()).ok()?;
    let listener = linux::Listener::bind(&name)?;
    let service = linux::fork(move || {
        while let Some(client) = listener.accept() {
            client.send_whole(&[1]);
        }
    })?;
    let mut worked = true;
    let cycles = median(20, || {
        worked &= linux::connect(&name).is_some_and(|service| service.receive_whole(&mut [0]));
    });
    service.kill();
    service.wait();
    // The path is in the folder for temporary files, where a leftover does no harm.
    let _ = std::fs::remove_file(path);
    worked.then_some(cycles)
}

/// Lifetime of a process of the smallest program, from its creation to its status.
fn process_create() -> Option<u64> {
    let program = smallest_program::write()?;
    let mut worked = true;
    let cycles = median(2, || worked &= linux::spawn_and_wait(&program));
    // The path is in the folder for temporary files, where a leftover does no harm.
    let _ = std::fs::remove_file(program.to_string_lossy().as_ref());
    worked.then_some(cycles)
}

/// A round trip of one byte while ten thousand other processes are alive.
fn message_in_a_crowd() -> Option<u64> {
    let crowd: Vec<linux::Child> = (0..CROWD).map_while(|_| linux::fork(linux::wait_for_a_signal)).collect();
    let figure = if crowd.len() == CROWD { round_trip(1, 20) } else { None };
    for member in &crowd {
        member.kill();
    }
    crowd.iter().for_each(linux::Child::wait);
    figure
}
