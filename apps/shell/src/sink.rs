//! Where the output of commands goes.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use contracts::access::AccessError;
use contracts::directory::NameError;
use contracts::namespace::Namespace;
use contracts::pipe;
use contracts::pipe_io::{Input, Output, new_pipe};
use sip::sync::Mutex;
use sip::thread::JoinHandle;

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

impl Sink {
    /// A sink that collects.
    pub fn collecting() -> Sink {
        Sink::Collect(Arc::new(Mutex::new(Collected::default())))
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

    /// A writing end for one program.
    pub fn open(&self, namespace: &mut Namespace) -> Result<Opened, AccessError> {
        if matches!(self, Sink::Console) {
            return Ok(Opened { writer: open_console(namespace)?, pump: None });
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
        if self.put(bytes) { Ok(()) } else { Err(AccessError::ServerEnded) }
    }

    fn pump(&self, mut input: Input) {
        while let Ok(Some(block)) = input.block() {
            if !self.put(&block) {
                // The writer hears it at its next block.
                return;
            }
        }
    }

    /// False when nobody takes it any more.
    fn put(&self, bytes: &[u8]) -> bool {
        match self {
            Sink::Console => false,
            Sink::Pipe(output) => {
                let mut output = output.lock();
                output.as_mut().is_some_and(|output| output.write(bytes).and_then(|()| output.flush()).is_ok())
            }
            Sink::Collect(collected) => {
                let mut collected = collected.lock();
                collected.overflowed |= collected.bytes.len() + bytes.len() > COLLECTED_BYTES;
                if !collected.overflowed {
                    collected.bytes.extend_from_slice(bytes);
                }
                !collected.overflowed
            }
        }
    }
}

fn open_console(namespace: &mut Namespace) -> Result<pipe::Imp<pipe::states::Ready>, AccessError> {
    namespace.open(terminal::PATH, pipe::new_channel, |importer| match importer.receive() {
        pipe::ImpStart::Success { next } => Ok(next),
        pipe::ImpStart::Refused { .. } => Err(NameError::NotPermitted.into()),
        pipe::ImpStart::ChannelClosed(_) => Err(AccessError::ServerEnded),
    })
}
