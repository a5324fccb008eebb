//! The console: an interactive terminal, or a byte stream.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use client::access::AccessError;
use client::answer::{REQUEST_LIMIT, wait};
use client::namespace::Namespace;
use contracts::console::{self, LineKind};
use contracts::console_events;
use contracts::directory::NameError;
use sip::exheap::ExVec;

use crate::signals::{self, Signals};

/// Path of the console.
pub const PATH: &str = "/dev/console";

/// An open console.
pub type Endpoint = console::Imp<console::states::Ready>;

/// Result of reading a line.
pub enum Answer {
    /// A line without its terminator.
    Line(String),
    /// The user pressed Ctrl-C.
    Interrupted,
    /// End of input.
    EndOfInput,
    /// The console could not be reached.
    Unreachable(AccessError),
}

/// Completions: the byte where the candidates are inserted, and the candidates.
pub type Candidates = (usize, Vec<String>);

/// The shell's console, which is reopened after its driver was restarted.
pub struct Terminal {
    endpoint: Option<Endpoint>,
    listens: bool,
}

impl Terminal {
    /// Creates a terminal, with the shell's own endpoint if it was given one.
    pub fn new(endpoint: Option<Endpoint>) -> Terminal {
        Terminal { endpoint, listens: false }
    }

    /// Opens the console if necessary.
    fn take(&mut self, namespace: &mut Namespace) -> Result<Endpoint, AccessError> {
        match self.endpoint.take() {
            Some(endpoint) => Ok(endpoint),
            None => open(namespace),
        }
    }

    /// Whether it is an interactive terminal.
    pub fn is_interactive(&mut self, namespace: &mut Namespace) -> Result<bool, AccessError> {
        match wait(self.take(namespace)?.get_info(), REQUEST_LIMIT)? {
            console::ImpReadyAfterGetInfo::Info { terminal, next, .. } => {
                self.endpoint = Some(next);
                Ok(terminal)
            }
            console::ImpReadyAfterGetInfo::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    }

    /// Starts receiving Ctrl-C and Ctrl-Z, unless already started.
    pub fn listen(&mut self, namespace: &mut Namespace, signals: &Arc<Signals>) -> Result<(), AccessError> {
        if self.listens && self.endpoint.is_some() {
            return Ok(());
        }
        let (importer, exporter) = console_events::new_channel()?;
        match wait(self.take(namespace)?.subscribe(exporter), REQUEST_LIMIT)? {
            console::ImpReadyAfterSubscribe::Done { next } => self.endpoint = Some(next),
            console::ImpReadyAfterSubscribe::Failed { next, .. } => {
                self.endpoint = Some(next);
                return Err(NameError::NotPermitted.into());
            }
            console::ImpReadyAfterSubscribe::ChannelClosed(_) => return Err(AccessError::ServerEnded),
        }
        let signals = Arc::clone(signals);
        // The thread ends with the console.
        drop(sip::thread::spawn(move || signals::listen(&signals, importer))?);
        self.listens = true;
        Ok(())
    }

    /// Reads a line. `complete` returns the candidates for a line and a cursor.
    pub fn read_line(
        &mut self,
        namespace: &mut Namespace,
        kind: LineKind,
        prompt: &str,
        mut complete: impl FnMut(&mut Namespace, &str, usize) -> Candidates,
    ) -> Answer {
        let asked = self.take(namespace).and_then(|endpoint| {
            let prompt = ExVec::from_slice(prompt.as_bytes())?;
            Ok(endpoint.read_line(kind, prompt))
        });
        let mut reading = match asked {
            Ok(reading) => reading,
            Err(error) => return Answer::Unreachable(error),
        };
        loop {
            let (answer, next) = match reading.receive() {
                console::ImpReading::Line { text, next } => (Answer::Line(text.to_text()), next),
                console::ImpReading::Interrupted { next } => (Answer::Interrupted, next),
                console::ImpReading::EndOfInput { next } => (Answer::EndOfInput, next),
                console::ImpReading::Failed { next, .. } => (Answer::Unreachable(NameError::Unavailable.into()), next),
                console::ImpReading::Complete { text, cursor, next } => {
                    let (start, candidates) = complete(namespace, &text.to_text(), cursor as usize);
                    match candidate_block(&candidates) {
                        Ok(block) => {
                            reading = next.completions(start as u32, block);
                            continue;
                        }
                        Err(error) => return Answer::Unreachable(error),
                    }
                }
                console::ImpReading::ChannelClosed(_) => {
                    self.listens = false;
                    return Answer::Unreachable(AccessError::ServerEnded);
                }
            };
            self.endpoint = Some(next);
            return answer;
        }
    }
}

/// Opens the console again.
pub fn open(namespace: &mut Namespace) -> Result<Endpoint, AccessError> {
    namespace.open(PATH, console::new_channel, |importer| match wait(importer, REQUEST_LIMIT)? {
        console::ImpStart::Success { next } => Ok(next),
        console::ImpStart::Refused { .. } => Err(NameError::NotPermitted.into()),
        console::ImpStart::ChannelClosed(_) => Err(AccessError::ServerEnded),
    })
}

fn candidate_block(candidates: &[String]) -> Result<ExVec<u8>, AccessError> {
    let mut bytes = Vec::new();
    for candidate in candidates {
        bytes.extend_from_slice(candidate.as_bytes());
        bytes.push(0);
    }
    Ok(ExVec::from_slice(&bytes)?)
}
