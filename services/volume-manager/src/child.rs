//! Making the programs that a manager starts, and hearing of their end.
//!
//! Parameters and endpoints are found by their names in the installed manifest.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::future::poll_fn;
use core::task::{Poll, Waker};

use client::namespace::Namespace;
use client::programs;
use contracts::volume_manager::VolumeError;
use manifest_model::Manifest;
use sip::channel::TypedEndpoint;
use sip::process::{Child, Epitaph, StopReason};
use sip::sync::Mutex;
use sip::{Status, process};

use crate::error::Error;

/// The manifest of the installed program with this name.
pub(crate) fn manifest(program: &str) -> Option<Manifest> {
    programs::manifests().find_map(|bytes| Manifest::decode(&bytes).ok().filter(|manifest| manifest.name == program))
}

/// A child that does not run yet.
pub(crate) struct Making<'a> {
    manifest: &'a Manifest,
    child: Child,
}

impl<'a> Making<'a> {
    /// A child with a view of the namespace.
    pub(crate) fn new(manifest: &'a Manifest, namespace: &mut Namespace) -> Result<Making<'a>, Error> {
        let name = &manifest.name;
        let child = process::create(name).map_err(|error| {
            Error::new(VolumeError::Exhausted, format!("the program {name} cannot be started: {error}"))
        })?;
        let view = namespace.open_directory("").ok().and_then(Namespace::into_endpoint);
        let view = view.ok_or_else(|| {
            Error::new(VolumeError::Exhausted, format!("the program {name} cannot be given the namespace"))
        })?;
        Making { manifest, child }.endpoint("namespace", view)
    }

    /// Whether its manifest has such a parameter.
    pub(crate) fn takes(&self, name: &str) -> bool {
        self.manifest.parameter(name).is_some()
    }

    /// Whether its manifest has such an endpoint.
    pub(crate) fn has_endpoint(&self, name: &str) -> bool {
        self.manifest.endpoint(name).is_some()
    }

    /// Gives it a value.
    pub(crate) fn parameter(mut self, name: &str, value: &str) -> Result<Making<'a>, Error> {
        let Some((index, _)) = self.manifest.parameter(name) else {
            let explanation = format!("the program {} does not know `{name}`; leave it out", self.manifest.name);
            return Err(Error::new(VolumeError::BadRequest, explanation));
        };
        self.child = self.child.parameter(index, value).map_err(|status| refused(self.manifest, name, status))?;
        Ok(self)
    }

    /// Gives it an endpoint.
    pub(crate) fn endpoint<E: TypedEndpoint>(mut self, name: &str, endpoint: E) -> Result<Making<'a>, Error> {
        let Some((slot, _)) = self.manifest.endpoint(name) else {
            let explanation = format!("the program {} has no endpoint `{name}`", self.manifest.name);
            return Err(Error::new(VolumeError::BadRequest, explanation));
        };
        self.child = self.child.endpoint(slot, endpoint).map_err(|status| refused(self.manifest, name, status))?;
        Ok(self)
    }

    /// Starts it.
    pub(crate) fn start(self) -> Result<Process, Error> {
        let start = || {
            let child = Arc::new(self.child.start()?);
            let end = Arc::new(End { state: Mutex::new((None, None)) });
            let (watched, told) = (Arc::clone(&child), Arc::clone(&end));
            match sip::thread::spawn(move || told.tell(watched.wait())) {
                Ok(_thread) => Ok(Process { child, end }),
                Err(status) => {
                    // A child whose end nobody hears of must not run.
                    let _ = child.stop(StopReason::Requested);
                    Err(status)
                }
            }
        };
        start().map_err(|status| Error::exhausted(&format!("the program {}", self.manifest.name), status))
    }
}

fn refused(manifest: &Manifest, what: &str, status: Status) -> Error {
    Error::exhausted(&format!("the program {} cannot be given `{what}`", manifest.name), status)
}

/// A child that runs, or has ended.
pub(crate) struct Process {
    child: Arc<Child>,
    end: Arc<End>,
}

impl Process {
    /// Its process id.
    pub(crate) fn id(&self) -> u64 {
        self.child.id().unwrap_or(0)
    }

    /// Ends it, soon.
    pub(crate) fn stop(&self) {
        // One that has ended by itself in the meantime is what was wanted.
        let _ = self.child.stop(StopReason::Requested);
    }

    /// Waits for its end.
    pub(crate) async fn ended(&self) -> Result<Epitaph, Status> {
        poll_fn(|context| {
            let mut state = self.end.state.lock();
            match &state.0 {
                Some(end) => Poll::Ready(end.clone()),
                None => {
                    state.1 = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}

/// The end of a process, as the thread that waits for it tells it.
struct End {
    state: Mutex<Told>,
}

/// What was told, and who is to be woken.
type Told = (Option<Result<Epitaph, Status>>, Option<Waker>);

impl End {
    fn tell(&self, end: Result<Epitaph, Status>) {
        let waker = {
            let mut state = self.state.lock();
            state.0 = Some(end);
            state.1.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// How a process ended, in words.
pub(crate) fn words(manifest: &Manifest, end: &Result<Epitaph, Status>) -> String {
    match end {
        Ok(epitaph) => format!("{} {epitaph}", manifest.name),
        Err(status) => format!("the end of {} is not known: {}", manifest.name, status.text()),
    }
}
