//! Where the output of commands goes.

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

/// The largest output that `$( )` collects.
const COLLECTED_BYTES: usize = 8 << 20;

/// A place for output.
#[derive(Clone)]
pub enum Sink {
    /// The console: each program talks to it directly.
    Console,
    /// The pipe that the shell itself was given: what programs write is passed on.
    Pipe(Arc<Mutex<Option<Output>>>),
    /// `$( )`.
    Collect(Arc<Mutex<Collected>>),
    /// `> path` or `2> path`.
    File(Arc<Mutex<Written>>),
}

/// A file that output goes to.
pub struct Written {
    /// As the person wrote it.
    path: String,
    /// Gone once it could not be written, which was reported.
    writer: Option<FileWriter>,
}

/// What was collected.
#[derive(Default)]
pub struct Collected {
    bytes: Vec<u8>,
    overflowed: bool,
}

/// The writing end for a program, and what moves the bytes on from it.
pub struct Opened {
    /// The program's standard output.
    pub writer: pipe::Imp<pipe::states::Ready>,
    /// Ends when all was moved on.
    pub pump: Option<JoinHandle<()>>,
}

/// What becomes of what is in a file.
pub fn existing(mode: OutputMode) -> Existing {
    match mode {
        OutputMode::Replace => Existing::Replace,
        OutputMode::Append => Existing::Append,
    }
}

impl Sink {
    /// A sink that collects.
    pub fn collecting() -> Sink {
        Sink::Collect(Arc::new(Mutex::new(Collected::default())))
    }

    /// A sink that writes to the file `full`, which people know by `path`.
    pub fn file(namespace: &mut Namespace, path: &str, full: &str, existing: Existing) -> Result<Sink, AccessError> {
        let writer = Some(FileWriter::open(namespace, full, existing)?);
        Ok(Sink::File(Arc::new(Mutex::new(Written { path: path.to_string(), writer }))))
    }

    /// Whether all that came so far is where it was to go; what is not was reported.
    pub fn is_whole(&self) -> bool {
        match self {
            Sink::File(written) => written.lock().writer.is_some(),
            Sink::Console | Sink::Pipe(_) | Sink::Collect(_) => true,
        }
    }

    /// What a collecting sink has; an error if it was too much.
    pub fn into_text(self) -> Result<String, String> {
        let Sink::Collect(collected) = self else { return Ok(String::new()) };
        let collected = collected.lock();
        if collected.overflowed {
            return Err("it is more than 8 MiB".to_string());
        }
        Ok(String::from_utf8_lossy(&collected.bytes).into_owned())
    }

    /// A writing end for one program of a job, which has this gate if it may lose the console.
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

    /// Writes what the shell itself has to say.
    pub fn write(&self, namespace: &mut Namespace, bytes: &[u8]) -> Result<(), AccessError> {
        if bytes.is_empty() {
            return Ok(());
        }
        if matches!(self, Sink::Console) {
            let mut output = Output::new(open_console(namespace)?);
            return output.write(bytes).and_then(|()| output.finish()).map_err(|_| AccessError::ServerEnded);
        }
        // What a file does not take is reported where that shows.
        let is_taken = self.put(ExVec::from_slice(bytes)?) || matches!(self, Sink::File(_));
        if is_taken { Ok(()) } else { Err(AccessError::ServerEnded) }
    }

    fn pump(&self, mut input: Input) {
        while let Ok(Some(block)) = input.block() {
            if !self.put(block) {
                // The writer hears it at its next block.
                return;
            }
        }
    }

    /// False when nobody takes it any more.
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

/// Moves a program's output to the console, as long as its job may write there.
fn to_console(mut input: Input, mut output: Output, gate: &Gate) {
    while let Ok(Some(block)) = input.block() {
        gate.wait_to_write();
        if output.write_block(block).is_err() {
            // The writer finds out at its next block.
            return;
        }
    }
    // A console that is gone shows nothing.
    let _ = output.finish();
}

fn open_console(namespace: &mut Namespace) -> Result<pipe::Imp<pipe::states::Ready>, AccessError> {
    namespace.open(terminal::PATH, pipe::new_channel, |importer| match wait(importer, REQUEST_LIMIT)? {
        pipe::ImpStart::Success { next } => Ok(next),
        pipe::ImpStart::Refused { .. } => Err(NameError::NotPermitted.into()),
        pipe::ImpStart::ChannelClosed(_) => Err(AccessError::ServerEnded),
    })
}
