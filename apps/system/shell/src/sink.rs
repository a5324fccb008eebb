//! Targets of commands' output.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use client::access::AccessError;
use client::answer::{REQUEST_LIMIT, wait};
use client::file_writer::{Existing, FileWriter};
use client::namespace::Namespace;
use command_language::OutputMode;
use contracts::directory::NameError;
use contracts::pipe;
use sip::exheap::ExVec;
use sip::sync::Mutex;
use sip::thread::JoinHandle;
use stdio::{Input, Output, new_pipe, report};

use crate::gate::Gate;
use crate::terminal;

/// Maximum output that `$( )` collects, in bytes.
const COLLECTED_BYTES: usize = 8 << 20;

/// Target of output.
#[derive(Clone)]
pub enum Sink {
    /// The console, to which each program writes directly.
    Console,
    /// The shell's own output pipe; programs' output is forwarded to it.
    Pipe(Arc<Mutex<Option<Output>>>),
    /// Collected for `$( )`.
    Collect(Arc<Mutex<Collected>>),
    /// `> path` or `2> path`.
    File(Arc<Mutex<Written>>),
}

/// A file that receives output.
pub struct Written {
    /// Path as typed.
    path: String,
    /// `None` after a failed write, which was reported.
    writer: Option<FileWriter>,
}

/// Collected output.
#[derive(Default)]
pub struct Collected {
    bytes: Vec<u8>,
    overflowed: bool,
}

/// The writing end for a program, and the thread that forwards its bytes.
pub struct Opened {
    /// The program's standard output.
    pub writer: pipe::Imp<pipe::states::Ready>,
    /// Ends when everything was forwarded.
    pub pump: Option<JoinHandle<()>>,
}

/// Returns how a redirection treats existing content.
pub fn existing(mode: OutputMode) -> Existing {
    match mode {
        OutputMode::Replace => Existing::Replace,
        OutputMode::Append => Existing::Append,
    }
}

impl Sink {
    /// Creates a collecting sink.
    pub fn collecting() -> Sink {
        Sink::Collect(Arc::new(Mutex::new(Collected::default())))
    }

    /// Creates a sink that writes to the file `full`, displayed as `path`.
    pub fn file(namespace: &mut Namespace, path: &str, full: &str, existing: Existing) -> Result<Sink, AccessError> {
        let writer = Some(FileWriter::open(namespace, full, existing)?);
        Ok(Sink::File(Arc::new(Mutex::new(Written { path: path.to_string(), writer }))))
    }

    /// Whether all output so far reached its target; failures were reported.
    pub fn is_whole(&self) -> bool {
        match self {
            Sink::File(written) => written.lock().writer.is_some(),
            Sink::Console | Sink::Pipe(_) | Sink::Collect(_) => true,
        }
    }

    /// Returns the collected text; an error if it was too large.
    pub fn into_text(self) -> Result<String, String> {
        let Sink::Collect(collected) = self else { return Ok(String::new()) };
        let collected = collected.lock();
        if collected.overflowed {
            return Err("it is more than 8 MiB".to_string());
        }
        Ok(String::from_utf8_lossy(&collected.bytes).into_owned())
    }

    /// Opens a writing end for one program of a job. A job that may lose the console has a gate.
    pub fn open(&self, namespace: &mut Namespace, gate: Option<&Arc<Gate>>) -> Result<Opened, AccessError> {
        if matches!(self, Sink::Console) {
            let console = open_console(namespace)?;
            let Some(gate) = gate.map(Arc::clone) else { return Ok(Opened { writer: console, pump: None }) };
            let (writer, reader) = new_pipe()?;
            let pump = sip::thread::spawn(move || to_console(Input::new(reader), Output::new(console), &gate))?;
            return Ok(Opened { writer, pump: Some(pump) });
        }
        let (writer, reader) = new_pipe()?;
        let sink = self.clone();
        let pump = sip::thread::spawn(move || sink.pump(Input::new(reader)))?;
        Ok(Opened { writer, pump: Some(pump) })
    }

    /// Writes output of the shell itself.
    pub fn write(&self, namespace: &mut Namespace, bytes: &[u8]) -> Result<(), AccessError> {
        if bytes.is_empty() {
            return Ok(());
        }
        if matches!(self, Sink::Console) {
            let mut output = Output::new(open_console(namespace)?);
            return output.write(bytes).and_then(|()| output.finish()).map_err(|_| AccessError::ServerEnded);
        }
        // A file reports its own write errors.
        let is_taken = self.put(ExVec::from_slice(bytes)?) || matches!(self, Sink::File(_));
        if is_taken { Ok(()) } else { Err(AccessError::ServerEnded) }
    }

    fn pump(&self, mut input: Input) {
        while let Ok(Some(block)) = input.block() {
            if !self.put(block) {
                // The writer gets the error with its next block.
                return;
            }
        }
    }

    /// Returns false once the output is no longer accepted.
    fn put(&self, bytes: ExVec<u8>) -> bool {
        match self {
            Sink::Console => false,
            Sink::Pipe(output) => output.lock().as_mut().is_some_and(|output| output.write_block(bytes).is_ok()),
            Sink::File(written) => written.lock().put(bytes),
            Sink::Collect(collected) => {
                let mut collected = collected.lock();
                collected.overflowed |= collected.bytes.len() + bytes.len() > COLLECTED_BYTES;
                if !collected.overflowed {
                    collected.bytes.extend_from_slice(&bytes);
                }
                !collected.overflowed
            }
        }
    }
}

impl Written {
    fn put(&mut self, block: ExVec<u8>) -> bool {
        let Some(writer) = &mut self.writer else { return false };
        let bytes = block.len();
        match writer.write(block, bytes) {
            Ok(_) => true,
            Err(error) => {
                self.writer = None;
                report::path_error(&self.path, &format!("not all of the output is in it: {error}"));
                false
            }
        }
    }
}

/// Forwards a program's output to the console while its job may write there.
fn to_console(mut input: Input, mut output: Output, gate: &Gate) {
    while let Ok(Some(block)) = input.block() {
        gate.wait_to_write();
        if output.write_block(block).is_err() {
            // The writer gets the error with its next block.
            return;
        }
    }
    // Fails only if the console is gone.
    let _ = output.finish();
}

fn open_console(namespace: &mut Namespace) -> Result<pipe::Imp<pipe::states::Ready>, AccessError> {
    namespace.open(terminal::PATH, pipe::new_channel, |importer| match wait(importer, REQUEST_LIMIT)? {
        pipe::ImpStart::Success { next } => Ok(next),
        pipe::ImpStart::Refused { .. } => Err(NameError::NotPermitted.into()),
        pipe::ImpStart::ChannelClosed(_) => Err(AccessError::ServerEnded),
    })
}
