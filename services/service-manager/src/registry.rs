//! State and requested state of each service, shared by the supervising threads and the one that serves clients.
//!
//! One lock for everything: it is held for a few instructions and never across a wait.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use core::future::poll_fn;
use core::task::{Poll, Waker};

use contracts::service_manager::{ServiceError, ServiceState};
use sip::process::Child;
use sip::sync::{Event, Mutex};
use supervision::FirstStart;

/// A snapshot of a service.
#[derive(Clone)]
pub struct Service {
    /// Index into the instances of the system manifest.
    pub instance: usize,
    /// Its life-cycle state.
    pub state: ServiceState,
    /// Why it is in this state, for the user.
    pub reason: String,
    /// Process id; 0 if it does not run.
    pub process: u64,
    /// Number of restarts.
    pub restarts: u64,
    /// Time of the last start, in nanoseconds of the monotonic clock.
    pub started_ns: u64,
    /// Whether the machine cannot run it, so that it is left out.
    pub absent: bool,
    /// Whether it should run.
    wanted: bool,
    /// Its starts since one was requested, until it is ready.
    first_start: FirstStart,
    child: Option<Arc<Child>>,
}

/// A state change, sent to subscribers.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// Position of the service.
    pub service: usize,
    /// Its new state.
    pub state: ServiceState,
    /// Its process id at that time.
    pub process: u64,
}

const MAX_CHANGES: usize = 256;

struct Inner {
    services: Vec<Service>,
    changes: Vec<Change>,
    listening: bool,
    closing: bool,
    /// Tasks waiting for the end of system start; `None` once it is over.
    start_awaited: Option<Vec<Waker>>,
}

/// All services.
pub struct Registry {
    inner: Mutex<Inner>,
    /// Per service: set when its requested state changes.
    commands: Vec<Event>,
    /// Per service: set when it is ready, rests, or has failed so often that its dependents go on without it.
    settled: Vec<Event>,
}

impl Registry {
    /// Services of these instances, in boot order, none started.
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
            first_start: FirstStart::default(),
            child: None,
        };
        let events = || instances.iter().map(|_| Event::manual()).collect::<Result<Vec<_>, _>>();
        let commands = instances.iter().map(|_| Event::auto()).collect::<Result<Vec<_>, _>>()?;
        let services = instances.iter().map(service).collect();
        let inner =
            Inner { services, changes: Vec::new(), listening: false, closing: false, start_awaited: Some(Vec::new()) };
        Ok(Registry { inner: Mutex::new(inner), commands, settled: events()? })
    }

    /// Number of services.
    pub fn service_count(&self) -> usize {
        self.commands.len()
    }

    /// Marks a service that the machine cannot run.
    pub fn leave_out(&self, index: usize) {
        let mut inner = self.inner.lock();
        inner.services[index].absent = true;
        inner.services[index].wanted = false;
        drop(inner);
        self.settled[index].set();
    }

    /// Snapshots of all services, including absent ones.
    pub fn list(&self) -> Vec<Service> {
        self.inner.lock().services.clone()
    }

    /// Snapshot of one service.
    pub fn service(&self, index: usize) -> Service {
        self.inner.lock().services[index].clone()
    }

    /// Records that the service is being started as this child.
    pub fn starting(&self, index: usize, child: Arc<Child>) {
        let process = child.id().unwrap_or(0);
        let mut inner = self.inner.lock();
        let service = &mut inner.services[index];
        service.process = process;
        service.started_ns = sip::time::monotonic();
        service.first_start.begin(service.started_ns);
        service.child = Some(child);
        drop(inner);
        self.enter(index, ServiceState::Starting, String::new());
    }

    /// Records that the service's process has ended.
    pub fn ended(&self, index: usize) {
        let mut inner = self.inner.lock();
        let service = &mut inner.services[index];
        service.child = None;
        service.process = 0;
    }

    /// Increments the service's restart counter.
    pub fn count_restart(&self, index: usize) {
        self.inner.lock().services[index].restarts += 1;
    }

    /// Changes the service's state and records the change.
    pub fn enter(&self, index: usize, state: ServiceState, reason: String) {
        let mut inner = self.inner.lock();
        let service = &mut inner.services[index];
        service.state = state;
        service.reason = reason;
        let is_settled = match state {
            ServiceState::Starting => false,
            ServiceState::BackingOff => service.first_start.fail(sip::time::monotonic()),
            ServiceState::Running | ServiceState::Stopped | ServiceState::Failed => true,
        };
        let process = service.process;
        if inner.listening {
            // Bounds the memory for a stalled subscriber.
            if inner.changes.len() == MAX_CHANGES {
                inner.changes.remove(0);
            }
            inner.changes.push(Change { service: index, state, process });
        }
        drop(inner);
        if is_settled {
            self.settled[index].set();
        }
    }

    /// Leaves the service in this state until a start is requested.
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

    /// Waits until the service is ready, rests, or has failed so often that its dependents go on without it.
    pub fn wait_settled(&self, index: usize) {
        self.settled[index].wait();
    }

    /// Whether the service should run.
    pub fn is_wanted(&self, index: usize) -> bool {
        let inner = self.inner.lock();
        inner.services[index].wanted && !inner.closing
    }

    /// Waits until the service's wanted state changes, or until the deadline.
    pub fn wait_command(&self, index: usize, deadline: sip::Deadline) {
        // The caller checks the requested state in either case.
        let _ = self.commands[index].wait_until(deadline);
    }

    /// Requests a start.
    pub fn start(&self, index: usize) -> Result<(), ServiceError> {
        let mut inner = self.inner.lock();
        let service = &mut inner.services[index];
        // A stopping service is restarted once it has ended.
        if service.wanted && matches!(service.state, ServiceState::Starting | ServiceState::Running) {
            return Err(ServiceError::AlreadyRunning);
        }
        service.wanted = true;
        service.state = ServiceState::Starting;
        service.first_start = FirstStart::default();
        drop(inner);
        self.settled[index].reset();
        self.commands[index].set();
        Ok(())
    }

    /// Requests a stop. Returns the child to end, if it runs.
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

    /// Whether the last start or stop request has taken effect or been superseded.
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

    /// Marks the end of system start: each service runs or has failed.
    pub fn start_is_over(&self) {
        let waiting = self.inner.lock().start_awaited.take();
        waiting.into_iter().flatten().for_each(Waker::wake);
    }

    /// Waits for the end of system start.
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

    /// Whether every service that should run does.
    pub fn is_healthy(&self) -> bool {
        let rests = |service: &Service| service.absent || service.state == ServiceState::Stopped;
        self.inner.lock().services.iter().all(|service| rests(service) || service.state == ServiceState::Running)
    }

    /// Whether shutdown has begun, after which nothing is started.
    pub fn is_closing(&self) -> bool {
        self.inner.lock().closing
    }

    /// Begins shutdown; true for the first call.
    pub fn begin_closing(&self) -> bool {
        !core::mem::replace(&mut self.inner.lock().closing, true)
    }

    /// The service's process, if it runs.
    pub fn child(&self, index: usize) -> Option<Arc<Child>> {
        self.inner.lock().services[index].child.clone()
    }
}
