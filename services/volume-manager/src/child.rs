//! Child processes: building, starting and waiting for them.
//!
//! Parameters and endpoints are looked up by name in the installed manifest.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::future::poll_fn;
use core::task::{Poll, Waker};

use client::namespace::Namespace;
use contracts::volume_manager::VolumeError;
use manifest_model::Manifest;
use sip::channel::TypedEndpoint;
use sip::process::{Child, Epitaph, StopReason};
use sip::sync::Mutex;
use sip::{Status, process};

use crate::error::Error;

/// Builder of a child process.
pub(crate) struct Builder<'a> {
    manifest: &'a Manifest,
    child: Child,
}

impl<'a> Builder<'a> {
    /// A child with its own channel to the namespace.
    pub(crate) fn new(manifest: &'a Manifest, namespace: &mut Namespace) -> Result<Builder<'a>, Error> {
        let name = &manifest.name;
        let child = process::create(name).map_err(|error| {
            Error::new(VolumeError::Exhausted, format!("the program {name} cannot be started: {error}"))
        })?;
        let view = namespace.open_directory("").ok().and_then(Namespace::into_endpoint);
        let view = view.ok_or_else(|| {
            Error::new(VolumeError::Exhausted, format!("the program {name} cannot be given the namespace"))
        })?;
        Builder { manifest, child }.endpoint("namespace", view)
    }

    /// Whether its manifest declares this parameter.
    pub(crate) fn takes(&self, name: &str) -> bool {
        self.manifest.parameter(name).is_some()
    }

    /// Whether its manifest declares this endpoint.
    pub(crate) fn has_endpoint(&self, name: &str) -> bool {
        self.manifest.endpoint(name).is_some()
    }

    /// Sets a parameter.
    pub(crate) fn parameter(mut self, name: &str, value: &str) -> Result<Builder<'a>, Error> {
        let Some((index, _)) = self.manifest.parameter(name) else {
            let explanation = format!("the program {} has no parameter `{name}`; leave it out", self.manifest.name);
            return Err(Error::new(VolumeError::BadRequest, explanation));
        };
        self.child = self.child.parameter(index, value).map_err(|status| refused(self.manifest, name, status))?;
        Ok(self)
    }

    /// Passes an endpoint to it.
    pub(crate) fn endpoint<E: TypedEndpoint>(mut self, name: &str, endpoint: E) -> Result<Builder<'a>, Error> {
        let Some((slot, _)) = self.manifest.endpoint(name) else {
            let explanation = format!("the program {} has no endpoint `{name}`", self.manifest.name);
            return Err(Error::new(VolumeError::BadRequest, explanation));
        };
        self.child = self.child.endpoint(slot, endpoint).map_err(|status| refused(self.manifest, name, status))?;
        Ok(self)
    }

    pub(crate) fn start(self) -> Result<Process, Error> {
        let start = || {
            let child = Arc::new(self.child.start()?);
            let end = Arc::new(End { state: Mutex::new((None, None)) });
            let (watched, ended) = (Arc::clone(&child), Arc::clone(&end));
            match sip::thread::spawn(move || ended.set(watched.wait())) {
                Ok(_thread) => Ok(Process { child, end }),
                Err(status) => {
                    // A child that cannot be waited for must not run.
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

/// A child that runs or has ended.
pub(crate) struct Process {
    child: Arc<Child>,
    end: Arc<End>,
}

impl Process {
    pub(crate) fn id(&self) -> u64 {
        self.child.id().unwrap_or(0)
    }

    /// Requests its termination.
    pub(crate) fn stop(&self) {
        // It may have ended already.
        let _ = self.child.stop(StopReason::Requested);
    }

    /// Waits for it to end.
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

/// The end of a process, sent by the thread that waits for it.
struct End {
    state: Mutex<Outcome>,
}

/// The result, once there, and the waiting task.
type Outcome = (Option<Result<Epitaph, Status>>, Option<Waker>);

impl End {
    fn set(&self, end: Result<Epitaph, Status>) {
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

/// Describes the end of a process for a message.
pub(crate) fn words(manifest: &Manifest, end: &Result<Epitaph, Status>) -> String {
    match end {
        Ok(epitaph) => format!("{} {epitaph}", manifest.name),
        Err(status) => format!("the exit status of {} is unknown: {}", manifest.name, status.text()),
    }
}
