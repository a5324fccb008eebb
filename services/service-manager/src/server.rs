//! The `ServiceManager` contract: a task per client.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use contracts::service_manager::{self, ServiceError, ServiceRecord, states};
use contracts::{service_events, service_provider};
use sip::channel::TypedEndpoint;
use sip::process::{Child, StopReason};
use text::pad;

use crate::Manager;
use crate::registry::{Change, Registry, Service};

type Client = service_manager::Exp<states::Ready>;
type Events = service_events::Exp<service_events::states::Ready>;

/// A principal that may bind to this path, which is not served, may start and stop all services, power off and reboot.
/// One that may bind to `CONTROL/NAME` may start and stop that service.
const CONTROL: &str = "/service/manager/control";
/// Name of the right in the audit log.
const RIGHT: &str = "control";
const RULE: &str = "no [[bind]] rule allows it";

/// Interval at which changes are polled while someone is subscribed, in milliseconds.
const POLL_MS: u64 = 50;

/// Timeout for a start or stop request to take effect, in milliseconds.
const SETTLE_MS: u64 = 5_000;

/// Maximum number of subscribers.
const MAX_SUBSCRIBERS: usize = 64;

/// Maximum number of changes queued per subscriber; the oldest are dropped.
const MAX_QUEUED: usize = 256;

/// A subscriber to state changes, with a queue of its own, so that a slow one delays no other.
struct Subscriber {
    /// Absent while events are being sent.
    events: RefCell<Option<Events>>,
    waiting: RefCell<VecDeque<Change>>,
    ended: Cell<bool>,
}

/// State shared by all clients.
pub struct Server {
    manager: Arc<Manager>,
    subscribers: RefCell<Vec<Rc<Subscriber>>>,
    announcing: Cell<bool>,
}

impl Server {
    /// A server without clients.
    pub fn new(manager: Arc<Manager>) -> Rc<Server> {
        Rc::new(Server { manager, subscribers: RefCell::new(Vec::new()), announcing: Cell::new(false) })
    }

    fn position(&self, name: &[u8]) -> Result<usize, ServiceError> {
        let services = self.manager.registry.list();
        let named = |service: &Service| {
            !service.absent && self.manager.machine.instance(service.instance).name.as_bytes() == name
        };
        services.iter().position(named).ok_or(ServiceError::NotFound)
    }

    /// Checks that the client may control the whole machine.
    fn allow_control(&self, client: &impl TypedEndpoint) -> Result<(), ServiceError> {
        self.allow(client, &[CONTROL])
    }

    /// Position of the named service, if the client may start and stop it.
    fn controlled(&self, client: &impl TypedEndpoint, name: &[u8]) -> Result<usize, ServiceError> {
        let position = self.position(name)?;
        let instance = self.manager.machine.instance(self.manager.registry.service(position).instance);
        self.allow(client, &[&format!("{CONTROL}/{}", instance.name), CONTROL]).map(|()| position)
    }

    /// Checks that the client may bind to one of the paths. A refusal is audited with the first.
    fn allow(&self, client: &impl TypedEndpoint, paths: &[&str]) -> Result<(), ServiceError> {
        let principal = sip::principal::of_peer(client).map_err(|_| ServiceError::NotPermitted)?;
        let system = self.manager.machine.system();
        if paths.iter().any(|path| system.may_bind(&principal, path)) {
            return Ok(());
        }
        sip::audit::refused(&principal, RIGHT, paths.first().unwrap_or(&CONTROL), RULE);
        Err(ServiceError::NotPermitted)
    }
}

/// Accepts clients from the directory service.
pub async fn accept(server: Rc<Server>, provider: service_provider::Exp<service_provider::states::Ready>) {
    let serve = |client: service_manager::Exp<states::Start>| serve(server.clone(), client.success());
    provider::accept(provider, serve).await;
}

async fn serve(server: Rc<Server>, mut client: Client) {
    use service_manager::ExpReady;
    let registry = &server.manager.registry;
    loop {
        client = match client.receive_async().await {
            ExpReady::List { mut records, next } => {
                let services: Vec<Service> = registry.list().into_iter().filter(|service| !service.absent).collect();
                for (record, service) in records.iter_mut().zip(&services) {
                    *record = self::record(&server, service);
                }
                // Fits: a system manifest is far smaller than 2^32 instances.
                next.listed(records, services.len() as u32)
            }
            ExpReady::Start { name, next } => {
                let done = server.controlled(&next, &name);
                match done.and_then(|position| registry.start(position).map(|()| position)) {
                    Ok(position) => {
                        settle(registry, position).await;
                        next.done()
                    }
                    Err(error) => next.failed(error),
                }
            }
            ExpReady::Stop { name, next } => {
                let done = server.controlled(&next, &name);
                match done.and_then(|position| registry.stop(position).map(|child| (position, child))) {
                    Ok((position, child)) => {
                        if let Some(child) = child {
                            end(&server.manager, position, child);
                        }
                        settle(registry, position).await;
                        next.done()
                    }
                    Err(error) => next.failed(error),
                }
            }
            ExpReady::GetStatus { name, next } => match server.position(&name) {
                Ok(position) => {
                    let service = registry.service(position);
                    next.status(service.state, service.process, service.restarts)
                }
                Err(error) => next.failed(error),
            },
            ExpReady::Subscribe { events, next } => {
                if subscribe(&server, events) {
                    next.done()
                } else {
                    next.failed(ServiceError::Exhausted)
                }
            }
            ExpReady::PowerOff { exit_status, next } => match server.allow_control(&next) {
                Ok(()) => {
                    server.manager.power_off(exit_status as i32);
                    next.done()
                }
                Err(error) => next.failed(error),
            },
            ExpReady::Restart { next } => match server.allow_control(&next) {
                Ok(()) => {
                    server.manager.restart();
                    next.done()
                }
                Err(error) => next.failed(error),
            },
            ExpReady::AskControl { next } => match server.allow_control(&next) {
                Ok(()) => next.done(),
                Err(error) => next.failed(error),
            },
            ExpReady::AwaitStart { next } => {
                registry.await_start().await;
                next.started()
            }
            ExpReady::ChannelClosed(_) => return,
        };
    }
}

/// Ends a service whose stop was requested, on a thread if it takes time to exit by itself.
fn end(manager: &Arc<Manager>, position: usize, child: Arc<Child>) {
    if manager.ending_ms(position) > 0 {
        let (waiting, ending) = (Arc::clone(manager), Arc::clone(&child));
        if sip::thread::spawn(move || waiting.end(position, &ending, StopReason::Requested)).is_ok() {
            return;
        }
    }
    // It may have ended already.
    let _ = child.stop(StopReason::Requested);
}

/// Waits up to [`SETTLE_MS`] for a start or stop to take effect, so that the client sees it after the reply.
async fn settle(registry: &Registry, position: usize) {
    let deadline = sip::Deadline::after_ms(SETTLE_MS);
    while !registry.is_settled(position) && !deadline.has_passed() {
        sip::executor::sleep_until(sip::Deadline::after_ms(1)).await;
    }
}

/// Adds a subscriber; false at the limit. The first one starts the polling task.
fn subscribe(server: &Rc<Server>, events: Events) -> bool {
    let mut subscribers = server.subscribers.borrow_mut();
    if subscribers.len() >= MAX_SUBSCRIBERS {
        return false;
    }
    subscribers.push(Rc::new(Subscriber {
        events: RefCell::new(Some(events)),
        waiting: RefCell::new(VecDeque::new()),
        ended: Cell::new(false),
    }));
    if !server.announcing.replace(true) {
        server.manager.registry.listen(true);
        sip::executor::spawn(distribute(server.clone()));
    }
    true
}

/// Distributes changes in order while there are subscribers.
async fn distribute(server: Rc<Server>) {
    while !server.subscribers.borrow().is_empty() {
        sip::executor::sleep_until(sip::Deadline::after_ms(POLL_MS)).await;
        let changes = server.manager.registry.take_changes();
        let mut subscribers = server.subscribers.borrow_mut();
        subscribers.retain(|subscriber| !subscriber.ended.get());
        for subscriber in subscribers.iter().filter(|_| !changes.is_empty()) {
            let mut waiting = subscriber.waiting.borrow_mut();
            waiting.extend(&changes);
            let surplus = waiting.len().saturating_sub(MAX_QUEUED);
            waiting.drain(..surplus);
            if let Some(events) = subscriber.events.take() {
                sip::executor::spawn(deliver(server.clone(), subscriber.clone(), events));
            }
        }
    }
    server.manager.registry.listen(false);
    server.announcing.set(false);
}

/// Sends one subscriber its queued changes.
async fn deliver(server: Rc<Server>, subscriber: Rc<Subscriber>, mut events: Events) {
    loop {
        let Some(change) = subscriber.waiting.borrow_mut().pop_front() else {
            subscriber.events.replace(Some(events));
            return;
        };
        let name = pad(&instance_name(&server, change));
        let pending = events.changed(name, change.state as u32, change.process);
        events = match pending.receive_async().await {
            service_events::ExpReadyAfterChanged::Next { next } => next,
            service_events::ExpReadyAfterChanged::ChannelClosed(_) => {
                subscriber.ended.set(true);
                return;
            }
        };
    }
}

fn instance_name(server: &Server, change: Change) -> String {
    let service = server.manager.registry.service(change.service);
    server.manager.machine.instance(service.instance).name.clone()
}

fn record(server: &Server, service: &Service) -> ServiceRecord {
    let instance = server.manager.machine.instance(service.instance);
    let path = instance.provides.first().map_or("", String::as_str);
    ServiceRecord {
        name: pad(&instance.name),
        program: pad(&instance.program),
        path: pad(path),
        reason: pad(&service.reason),
        process: service.process,
        restarts: service.restarts,
        started_ns: service.started_ns,
        state: service.state as u32,
        reserved: 0,
    }
}

/// The message when the server cannot be registered.
pub fn not_registered(error: &client::access::AccessError) -> String {
    format!("/service/manager could not be registered: {error}; `start` and `stop` will not work")
}
