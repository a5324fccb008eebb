//! The console: standard input and output.
//!
//! Key type: [`Console`]. One host thread reads standard input, and only while a read is pending; another writes the
//! output that would block, so that a slow reader never blocks a processor. Deliberately not here: lines, echo,
//! colours.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use hal_api::{DeviceFailure, DeviceOperation, DeviceResult, Submitted};

use crate::transfer::{self, Memory};
use crate::{entries, output, terminal};

const INPUT: i32 = libc::STDIN_FILENO;
const READ_AHEAD_BYTES: usize = 4096;
const THREAD_STACK_BYTES: usize = 256 * 1024;

#[derive(Clone, Copy, Debug)]
struct Request {
    token: u64,
    memory: Memory,
}

#[derive(Debug, Default)]
struct Input {
    /// The pending read. A console has one reader: a later read replaces an earlier one,
    /// which fails, so that a restarted driver does not lose bytes to its predecessor.
    waiting: Option<Request>,
    /// Bytes left over from a read that was larger than the request that replaced it.
    kept: VecDeque<u8>,
    thread_started: bool,
}

#[derive(Debug)]
enum Output {
    /// The rest of a write of `whole` bytes.
    Write {
        rest: Request,
        whole: usize,
    },
    Flush {
        token: u64,
    },
}

#[derive(Debug, Default)]
struct OutputQueue {
    waiting: VecDeque<Output>,
    writing: bool,
    thread_started: bool,
}

/// Standard input and output as a device.
#[derive(Debug, Default)]
pub(crate) struct Console {
    input: Mutex<Input>,
    wanted: Condvar,
    output: Mutex<OutputQueue>,
    filled: Condvar,
    drained: Condvar,
}

impl Console {
    /// Starts a request.
    pub(crate) fn submit(self: &Arc<Self>, token: u64, operation: DeviceOperation, memory: Memory) -> Submitted {
        match operation {
            DeviceOperation::Read | DeviceOperation::Write if memory.bytes() == 0 => Submitted::Complete(Ok(0)),
            DeviceOperation::Read => self.submit_read(Request { token, memory }),
            DeviceOperation::Write => self.submit_write(Request { token, memory }),
            DeviceOperation::Flush => {
                let queue = lock(&self.output);
                if queue.writing || !queue.waiting.is_empty() {
                    self.queue_output(queue, Output::Flush { token })
                } else {
                    Submitted::Complete(Ok(0))
                }
            }
        }
    }

    /// Blocks until all output has been written: without a limit, however slowly it is read, or at most for the limit.
    pub(crate) fn drain(&self, limit: Option<Duration>) {
        let queue = lock(&self.output);
        let busy = |queue: &mut OutputQueue| queue.writing || !queue.waiting.is_empty();
        match limit {
            Some(limit) => drop(self.drained.wait_timeout_while(queue, limit, busy)),
            None => drop(self.drained.wait_while(queue, busy)),
        }
    }

    fn submit_read(self: &Arc<Self>, request: Request) -> Submitted {
        let mut input = lock(&self.input);
        if !input.kept.is_empty() {
            return Submitted::Complete(Ok(take_kept(&mut input.kept, request.memory)));
        }
        if !input.thread_started {
            terminal::make_raw();
            let console = Arc::clone(self);
            if spawn("console input", move || console.read()).is_err() {
                return Submitted::Complete(Err(DeviceFailure));
            }
            input.thread_started = true;
        }
        let replaced = input.waiting.replace(request);
        drop(input);
        self.wanted.notify_one();
        if let Some(replaced) = replaced {
            complete(replaced.token, Err(DeviceFailure));
        }
        Submitted::Queued
    }

    /// Runs the input thread.
    fn read(&self) {
        let mut buffer = [0; READ_AHEAD_BYTES];
        loop {
            let wanted_bytes = self.wait_for_read();
            let room = buffer.len().min(wanted_bytes);
            let bytes = match transfer::read_stream(INPUT, &mut buffer[..room]) {
                Ok(bytes) => Ok(bytes),
                // The terminal is gone, or standard input was never open: end of input.
                Err(error) if matches!(error.raw_os_error(), Some(libc::EIO | libc::EBADF)) => Ok(0),
                Err(_) => Err(DeviceFailure),
            };
            self.deliver(bytes.map(|bytes| &buffer[..bytes]));
        }
    }

    /// Blocks until a read is pending and returns its size in bytes.
    fn wait_for_read(&self) -> usize {
        let mut input = lock(&self.input);
        loop {
            if let Some(request) = input.waiting {
                return request.memory.bytes();
            }
            input = self.wanted.wait(input).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn deliver(&self, bytes: Result<&[u8], DeviceFailure>) {
        let mut input = lock(&self.input);
        let Some(request) = input.waiting.take() else { return };
        let result = bytes.map(|bytes| {
            let taken = request.memory.fill(bytes);
            input.kept.extend(&bytes[taken..]);
            taken
        });
        drop(input);
        complete(request.token, result);
    }

    fn submit_write(self: &Arc<Self>, mut request: Request) -> Submitted {
        let whole = request.memory.bytes();
        let queue = lock(&self.output);
        if queue.writing || !queue.waiting.is_empty() {
            return self.queue_output(queue, Output::Write { rest: request, whole });
        }
        while request.memory.bytes() > 0 {
            match output::standard_output().write_now(request.memory) {
                Ok(bytes) => request.memory = request.memory.after(bytes),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => return Submitted::Complete(Err(DeviceFailure)),
            }
        }
        if request.memory.bytes() == 0 {
            return Submitted::Complete(Ok(whole));
        }
        self.queue_output(queue, Output::Write { rest: request, whole })
    }

    fn queue_output(self: &Arc<Self>, mut queue: MutexGuard<'_, OutputQueue>, output: Output) -> Submitted {
        if !queue.thread_started {
            let console = Arc::clone(self);
            if spawn("console output", move || console.write()).is_err() {
                return Submitted::Complete(Err(DeviceFailure));
            }
            queue.thread_started = true;
        }
        queue.waiting.push_back(output);
        drop(queue);
        self.filled.notify_one();
        Submitted::Queued
    }

    /// Runs the output thread.
    fn write(&self) {
        let mut queue = lock(&self.output);
        loop {
            let Some(output) = queue.waiting.pop_front() else {
                queue.writing = false;
                self.drained.notify_all();
                queue = self.filled.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            queue.writing = true;
            drop(queue);
            match output {
                Output::Write { rest, whole } => complete(rest.token, write_all(rest.memory).map(|()| whole)),
                Output::Flush { token } => complete(token, Ok(0)),
            }
            queue = lock(&self.output);
        }
    }
}

fn write_all(mut rest: Memory) -> Result<(), DeviceFailure> {
    while rest.bytes() > 0 {
        let bytes = output::standard_output().write(rest).map_err(|_| DeviceFailure)?;
        rest = rest.after(bytes);
    }
    Ok(())
}

fn take_kept(kept: &mut VecDeque<u8>, memory: Memory) -> usize {
    let taken = memory.fill(kept.make_contiguous());
    kept.drain(..taken);
    taken
}

fn complete(token: u64, result: DeviceResult) {
    if let Some(entries) = entries::get() {
        (entries.device_complete)(token, result.unwrap_or(0) as u64, result.is_err());
    }
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.into()).stack_size(THREAD_STACK_BYTES).spawn(body).map(|_| ())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
