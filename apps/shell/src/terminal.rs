//! The person at the console, or the stream that stands in for one.

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

/// Where the console is.
pub const PATH: &str = "/dev/console";

/// An open console.
pub type Endpoint = console::Imp<console::states::Ready>;

/// What came of asking for a line.
pub enum Answer {
    /// A line, without its end.
    Line(String),
    /// The person gave it up.
    Interrupted,
    /// There are no more lines.
    EndOfInput,
    /// The console cannot be reached.
    Unreachable(AccessError),
}

/// What a line may be completed with: the byte where the candidates go, and the candidates.
pub type Candidates = (usize, Vec<String>);

/// The console as the shell sees it; it is opened again when its driver was started again.
pub struct Terminal {
    endpoint: Option<Endpoint>,
    listens: bool,
}

impl Terminal {
    /// With the endpoint that the shell was given, if any.
    pub fn new(endpoint: Option<Endpoint>) -> Terminal {
        Terminal { endpoint, listens: false }
    }

    /// Opens the console, if it is not open.
    fn take(&mut self, namespace: &mut Namespace) -> Result<Endpoint, AccessError> {
        match self.endpoint.take() {
            Some(endpoint) => Ok(endpoint),
            None => open(namespace),
        }
    }

    /// Whether a person sits there.
    pub fn is_interactive(&mut self, namespace: &mut Namespace) -> Result<bool, AccessError> {
        match wait(self.take(namespace)?.get_info(), REQUEST_LIMIT)? {
            console::ImpReadyAfterGetInfo::Info { terminal, next, .. } => {
                self.endpoint = Some(next);
                Ok(terminal)
            }
            console::ImpReadyAfterGetInfo::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    }

    /// Receives Ctrl-C and Ctrl-Z from now on, unless it does already.
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

    /// Asks for a line. `complete` is asked for candidates for a line and a cursor.
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

/// Opens the console anew.
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
