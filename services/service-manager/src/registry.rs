//! Where each service is, and what it is asked to do. Shared by the threads that watch services and the one that
//! serves clients.
//!
//! One lock for everything: it is held for a few instructions and never while waiting.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use core::future::poll_fn;
use core::task::{Poll, Waker};

use contracts::service_manager::{ServiceError, ServiceState};
use sip::process::Child;
use sip::sync::{Event, Mutex};

/// A service as it is now.
#[derive(Clone)]
pub struct Service {
    /// Index into the instances of the system manifest.
    pub instance: usize,
    /// Where it is in its life.
    pub state: ServiceState,
    /// Why, for people.
    pub reason: String,
    /// Process id, 0 if it does not run.
    pub process: u64,
    /// How often it was started again.
    pub restarts: u64,
    /// Nanoseconds of the monotonic clock when it was last started.
    pub started_ns: u64,
    /// Whether the machine cannot run it, so that the system goes without it.
    pub absent: bool,
    /// Whether it is to run.
    wanted: bool,
    child: Option<Arc<Child>>,
}

/// A change that subscribers are told.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// Position of the service.
    pub service: usize,
    /// Its new state.
    pub state: ServiceState,
    /// Its process id then.
    pub process: u64,
}

const CHANGES_KEPT: usize = 256;

struct Inner {
    services: Vec<Service>,
    changes: Vec<Change>,
    listening: bool,
    closing: bool,
    /// Who waits for the end of the system's start; `None` once it is over.
    start_awaited: Option<Vec<Waker>>,
}

/// All services.
pub struct Registry {
    inner: Mutex<Inner>,
    /// One for each service: set when what is wanted of it changes.
    commands: Vec<Event>,
    /// One for each service: set when it is ready or will not be.
    settled: Vec<Event>,
}

impl Registry {
    /// Services for these instances, in boot order, none started yet.
    pub fn new(instances: &[usize]) -> Result<Registry, sip::Status> {
        let service = |&instance: &usize| Service {
            instance,
            state: ServiceState::Stopped,
            reason: String::new(),
            process: 0,
            restarts: 0,
            started_ns: 0,
            absent: false,
            wanted: true,
            child: None,
        };
        let events = || instances.iter().map(|_| Event::manual()).collect::<Result<Vec<_>, _>>();
        let commands = instances.iter().map(|_| Event::auto()).collect::<Result<Vec<_>, _>>()?;
        let services = instances.iter().map(service).collect();
        let inner =
            Inner { services, changes: Vec::new(), listening: false, closing: false, start_awaited: Some(Vec::new()) };
        Ok(Registry { inner: Mutex::new(inner), commands, settled: events()? })
    }

    /// How many services there are.
    pub fn service_count(&self) -> usize {
        self.commands.len()
    }

    /// The machine cannot run this service.
    pub fn leave_out(&self, index: usize) {
        let mut inner = self.inner.lock();
        inner.services[index].absent = true;
        inner.services[index].wanted = false;
        drop(inner);
        self.settled[index].set();
    }

    /// Copies of all services, those that the machine cannot run among them.
    pub fn list(&self) -> Vec<Service> {
        self.inner.lock().services.clone()
    }

    /// A copy of one.
    pub fn service(&self, index: usize) -> Service {
        self.inner.lock().services[index].clone()
    }

    /// The service is being started as this child.
    pub fn starting(&self, index: usize, child: Arc<Child>) {
        let process = child.id().unwrap_or(0);
        let mut inner = self.inner.lock();
        let service = &mut inner.services[index];
        service.process = process;
        service.started_ns = sip::time::monotonic();
        service.child = Some(child);
        drop(inner);
        self.enter(index, ServiceState::Starting, String::new());
    }

    /// The service's run ended.
    pub fn ended(&self, index: usize) {
        let mut inner = self.inner.lock();
        let service = &mut inner.services[index];
        service.child = None;
        service.process = 0;
    }

    /// Counts a restart.
    pub fn count_restart(&self, index: usize) {
        self.inner.lock().services[index].restarts += 1;
    }

    /// The service is in this state now.
    pub fn enter(&self, index: usize, state: ServiceState, reason: String) {
        let mut inner = self.inner.lock();
        let service = &mut inner.services[index];
        service.state = state;
        service.reason = reason;
        let process = service.process;
        if inner.listening {
            // A subscriber that takes nothing costs no more than this.
            if inner.changes.len() == CHANGES_KEPT {
                inner.changes.remove(0);
            }
            inner.changes.push(Change { service: index, state, process });
        }
        drop(inner);
        if !matches!(state, ServiceState::Starting) {
            self.settled[index].set();
        }
    }

    /// The service rests in this state until it is asked for again, for a reason of its own.
    pub fn rest(&self, index: usize, state: ServiceState, reason: String) {
        self.inner.lock().services[index].wanted = false;
        self.enter(index, state, reason);
    }

    /// Enables or disables recording of changes.
    pub fn listen(&self, listening: bool) {
        let mut inner = self.inner.lock();
        inner.listening = listening;
        inner.changes = Vec::new();
    }

    /// Takes the changes recorded since the last call.
    pub fn take_changes(&self) -> Vec<Change> {
        core::mem::take(&mut self.inner.lock().changes)
    }

    /// Waits until the service is ready or has failed.
    pub fn wait_settled(&self, index: usize) {
        self.settled[index].wait();
    }

    /// Whether the service is to run.
    pub fn is_wanted(&self, index: usize) -> bool {
        let inner = self.inner.lock();
        inner.services[index].wanted && !inner.closing
    }

    /// Waits until the service's wanted state changes, or until the deadline.
    pub fn wait_command(&self, index: usize, deadline: sip::Deadline) {
        // Whether it was the command or the deadline, the caller looks at what is wanted.
        let _ = self.commands[index].wait_until(deadline);
    }

    /// Asks for a stopped service to run.
    pub fn start(&self, index: usize) -> Result<(), ServiceError> {
        let mut inner = self.inner.lock();
        let service = &mut inner.services[index];
        // One that was asked to stop may not have ended yet: it is started again when it has.
        if service.wanted && matches!(service.state, ServiceState::Starting | ServiceState::Running) {
            return Err(ServiceError::AlreadyRunning);
        }
        service.wanted = true;
        service.state = ServiceState::Starting;
        drop(inner);
        self.settled[index].reset();
        self.commands[index].set();
        Ok(())
    }

    /// Asks for a service not to run. Gives the child to be ended, if it runs.
    pub fn stop(&self, index: usize) -> Result<Option<Arc<Child>>, ServiceError> {
        let mut inner = self.inner.lock();
        let service = &mut inner.services[index];
        if !service.wanted || matches!(service.state, ServiceState::Stopped | ServiceState::Failed) {
            return Err(ServiceError::NotRunning);
        }
        service.wanted = false;
        let child = service.child.clone();
        drop(inner);
        self.commands[index].set();
        Ok(child)
    }

    /// Whether what `start` or `stop` asked for has come about, or something else was asked for since.
    pub fn is_settled(&self, index: usize) -> bool {
        let inner = self.inner.lock();
        let service = &inner.services[index];
        match service.state {
            ServiceState::Starting => false,
            ServiceState::Running | ServiceState::BackingOff => service.wanted,
            ServiceState::Stopped => !service.wanted,
            ServiceState::Failed => true,
        }
    }

    /// The system's start is over: each service runs, or is known not to.
    pub fn start_is_over(&self) {
        let waiting = self.inner.lock().start_awaited.take();
        waiting.into_iter().flatten().for_each(Waker::wake);
    }

    /// Waits for the end of the system's start.
    pub async fn await_start(&self) {
        poll_fn(|context| match &mut self.inner.lock().start_awaited {
            Some(waiting) => {
                waiting.push(context.waker().clone());
                Poll::Pending
            }
            None => Poll::Ready(()),
        })
        .await;
    }

    /// Whether all that is to run does.
    pub fn is_healthy(&self) -> bool {
        let rests = |service: &Service| service.absent || service.state == ServiceState::Stopped;
        self.inner.lock().services.iter().all(|service| rests(service) || service.state == ServiceState::Running)
    }

    /// Whether nothing is started any more.
    pub fn is_closing(&self) -> bool {
        self.inner.lock().closing
    }

    /// From now on nothing is started any more; true the first time.
    pub fn begin_closing(&self) -> bool {
        !core::mem::replace(&mut self.inner.lock().closing, true)
    }

    /// The child as which a service runs.
    pub fn child(&self, index: usize) -> Option<Arc<Child>> {
        self.inner.lock().services[index].child.clone()
    }
}
