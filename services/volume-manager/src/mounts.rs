//! Mounted volumes: a file-system process for each, from mount to unmount.
//!
//! `begin` starts one; `supervise` is a task per volume that waits for its file system to end and restarts it.
//! Deliberately not here: clients, and which disks are mounted at boot.

use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::future::Future;
use core::time::Duration;

use client::answer::{BULK_LIMIT, REQUEST_LIMIT, within};
use client::namespace::TIMEOUT_MS;
use contracts::directory::{NodeKind, ProviderScope};
use contracts::file_system::{self, VolumeStatistics};
use contracts::service_provider::{self, StartError};
use contracts::volume_manager::{MountAccess, VolumeError};
use sip::process::{Epitaph, EpitaphKind};
use sip::{Deadline, Status, executor};
use stdio::report;
use supervision::{Backoff, End, Next};
use task_sync::{Notify, Pool};

use crate::Manager;
use crate::child::{self, Builder, Process};
use crate::error::{self, Error};
use crate::places;
use crate::waiting::{before, unless};

/// Timeout for a file system to start serving, in milliseconds; it may have to recover the volume.
const READY_MS: u64 = 60_000;
/// Timeout for a file system to exit after unmounting, in milliseconds.
const ENDING_MS: u64 = 10_000;
const STATISTICS_LIMIT: Duration = Duration::from_secs(REQUEST_LIMIT.as_secs() / 2);
/// Timeout for a flush, shorter than the clients' [`BULK_LIMIT`].
const WRITING_LIMIT: Duration = Duration::from_secs(BULK_LIMIT.as_secs() / 2);

type Control = file_system::Imp<file_system::states::Ready>;
type Provider = service_provider::Imp<service_provider::states::Ready>;

/// State of a mounted volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Its file system is being started.
    Starting,
    /// Its file system serves.
    Serving,
    /// Its file system ended and will be restarted.
    BackingOff(String),
    /// Its file system ended and is not restarted.
    Failed(String),
    /// Unmounted.
    Gone,
}

/// A mounted volume.
pub(crate) struct Mount {
    /// Path of the disk.
    pub(crate) disk: String,
    /// Mount point.
    pub(crate) point: String,
    access: MountAccess,
    state: RefCell<State>,
    process: Cell<u64>,
    restarts: Cell<u64>,
    /// Whether an unmount is pending.
    leaving: Cell<bool>,
    /// Once the unmount is decided: when a file system that has not exited is stopped.
    unmount_deadline: Cell<Option<Deadline>>,
    changed: Notify,
    /// Control channel of its file system; closed while none runs.
    control: Pool<Control>,
    /// Whether its file system has a control channel.
    controlled: Cell<bool>,
    writable: Cell<bool>,
    /// Whether a file system has served it, so that the disk holds a volume of this kind, or did.
    has_served: Cell<bool>,
}

/// What follows when the file system of a new mount ends before it is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FirstFailure {
    /// The mount fails: whoever asked for it is told.
    Fails,
    /// It is started again, as after a later end: nobody asks again for what is mounted at start.
    StartsAgain,
}

/// A failed start.
struct NotStarted {
    end: End,
    error: Error,
}

impl Mount {
    fn new(disk: &str, point: &str, access: MountAccess) -> Rc<Mount> {
        Rc::new(Mount {
            disk: disk.into(),
            point: point.into(),
            access,
            state: RefCell::new(State::Starting),
            process: Cell::new(0),
            restarts: Cell::new(0),
            leaving: Cell::new(false),
            unmount_deadline: Cell::new(None),
            changed: Notify::new(),
            control: Pool::closed(),
            controlled: Cell::new(false),
            writable: Cell::new(false),
            has_served: Cell::new(false),
        })
    }

    /// Why it cannot be used at present; empty if it can.
    pub(crate) fn error(&self) -> String {
        match &*self.state.borrow() {
            State::Serving if self.leaving.get() => String::from("it is being unmounted"),
            State::Serving => String::new(),
            State::Starting => String::from("its file system is being started"),
            State::BackingOff(reason) => format!("its file system is about to be restarted: {reason}"),
            State::Failed(reason) => reason.clone(),
            State::Gone => String::from("it is unmounted"),
        }
    }

    /// Process id of its file system; 0 if none runs.
    pub(crate) fn process(&self) -> u64 {
        self.process.get()
    }

    /// Number of restarts of its file system.
    pub(crate) fn restarts(&self) -> u64 {
        self.restarts.get()
    }

    /// Whether it was mounted read-only.
    pub(crate) fn is_read_only(&self) -> bool {
        self.access == MountAccess::ReadOnly
    }

    /// Whether it is writable, as its file system reported when it became ready.
    pub(crate) fn is_writable(&self) -> bool {
        self.writable.get()
    }

    fn enter(&self, state: State) {
        *self.state.borrow_mut() = state;
        self.changed.notify_all();
    }

    fn is_gone(&self) -> bool {
        *self.state.borrow() == State::Gone
    }

    /// Waits for exclusive use of the control channel, also across a restart in progress.
    async fn control(&self) -> Result<Control, Error> {
        let is_settled = || matches!(&*self.state.borrow(), State::Serving | State::Failed(_) | State::Gone);
        let _late = before(Deadline::after_ms(TIMEOUT_MS), self.changed.until(is_settled)).await;
        let not_serving = || Error::new(VolumeError::DeviceError, format!("{}: {}", self.point, self.error()));
        self.control.take().await.ok_or_else(not_serving)
    }

    /// Queries the volume's statistics.
    pub(crate) async fn statistics(self: &Rc<Mount>) -> Result<VolumeStatistics, Error> {
        self.in_time(STATISTICS_LIMIT, Rc::clone(self).query_statistics()).await
    }

    async fn query_statistics(self: Rc<Mount>) -> Result<VolumeStatistics, Error> {
        match self.control().await?.get_statistics().receive_async().await {
            file_system::ImpReadyAfterGetStatistics::Statistics { statistics, next } => {
                self.control.put(next);
                Ok(statistics)
            }
            file_system::ImpReadyAfterGetStatistics::ChannelClosed(_) => Err(self.ended_meanwhile()),
        }
    }

    /// Flushes all writes to the medium.
    pub(crate) async fn sync(self: &Rc<Mount>) -> Result<(), Error> {
        self.in_time(WRITING_LIMIT, Rc::clone(self).request_sync()).await
    }

    async fn request_sync(self: Rc<Mount>) -> Result<(), Error> {
        match self.control().await?.sync().receive_async().await {
            file_system::ImpReadyAfterSync::Done { next } => {
                self.control.put(next);
                Ok(())
            }
            file_system::ImpReadyAfterSync::Failed { error, next } => {
                self.control.put(next);
                Err(error::of_file_system(&self.point, error))
            }
            file_system::ImpReadyAfterSync::ChannelClosed(_) => Err(self.ended_meanwhile()),
        }
    }

    /// Makes the file system flush and exit.
    async fn leave(self: &Rc<Mount>) -> Result<(), Error> {
        self.in_time(WRITING_LIMIT, Rc::clone(self).request_unmount()).await
    }

    async fn request_unmount(self: Rc<Mount>) -> Result<(), Error> {
        let control = loop {
            // Whether there is anything to flush is unknown before the file system has started.
            self.changed.until(|| *self.state.borrow() != State::Starting).await;
            if let Some(control) = self.control.take().await {
                break control;
            }
            if !self.controlled.get() || *self.state.borrow() != State::Serving {
                // There is nothing to flush.
                self.expect_exit(Deadline::PASSED);
                return Ok(());
            }
            // It has exited, but the supervisor has not noticed yet.
            self.changed.until(|| *self.state.borrow() != State::Serving).await;
        };
        self.leaving.set(true);
        let done = match control.unmount().receive_async().await {
            file_system::ImpReadyAfterUnmount::Done { .. } => {
                self.expect_exit(Deadline::after_ms(ENDING_MS));
                self.control.close();
                Ok(())
            }
            file_system::ImpReadyAfterUnmount::Failed { error, next } => {
                self.control.put(next);
                Err(error::of_file_system(&self.point, error))
            }
            file_system::ImpReadyAfterUnmount::ChannelClosed(_) => Err(self.ended_meanwhile()),
        };
        self.leaving.set(false);
        self.changed.notify_all();
        done
    }

    /// Awaits a request to the file system up to the limit. After a timeout the request continues in the background and
    /// its effects are recorded: data that a slow disk has not written yet is not dropped.
    async fn in_time<T: 'static>(
        &self,
        limit: Duration,
        request: impl Future<Output = Result<T, Error>> + 'static,
    ) -> Result<T, Error> {
        within(limit, executor::spawn(request)).await.unwrap_or_else(|| {
            let explanation = format!(
                "{}: its file system has not answered for {} s; `ps` and `log` show what it waits for",
                self.point,
                limit.as_secs()
            );
            Err(Error::new(VolumeError::DeviceError, explanation))
        })
    }

    /// From here on the exit of its file system is expected.
    fn expect_exit(&self, deadline: Deadline) {
        if self.unmount_deadline.get().is_none() {
            self.unmount_deadline.set(Some(deadline));
        }
        self.changed.notify_all();
    }

    fn ended_meanwhile(&self) -> Error {
        self.control.close();
        let explanation =
            format!("{}: its file system ended during the request; try again, it is being restarted", self.point);
        Error::new(VolumeError::DeviceError, explanation)
    }
}

impl Manager {
    /// Mounts a disk. Returns the mounted volume.
    pub(crate) async fn mount(
        self: &Rc<Manager>,
        disk: &str,
        point: &str,
        access: MountAccess,
        first_failure: FirstFailure,
    ) -> Result<Rc<Mount>, Error> {
        self.claims.point(point, disk, access)?;
        if let Err(error) = self.check_name_free(point).and_then(|()| self.claims.disk(disk, Some(point))) {
            self.claims.release(point);
            return Err(error);
        }
        self.mount_claimed(disk, point, access, first_failure).await
    }

    /// Mounts a disk that is claimed together with its mount point; on failure, releases both claims.
    pub(crate) async fn mount_claimed(
        self: &Rc<Manager>,
        disk: &str,
        point: &str,
        access: MountAccess,
        first_failure: FirstFailure,
    ) -> Result<Rc<Mount>, Error> {
        let mount = Mount::new(disk, point, access);
        self.mounts.borrow_mut().push(Rc::clone(&mount));
        match begin(self, &mount).await {
            Err(failed) if failed.end == End::Hopeless || first_failure == FirstFailure::Fails => {
                // Remove a name left by the previous process of this manager.
                self.forget(&mount);
                Err(failed.error)
            }
            first => {
                sip::executor::spawn(supervise(Rc::clone(self), Rc::clone(&mount), first));
                Ok(mount)
            }
        }
    }

    /// Unmounts a volume.
    pub(crate) async fn unmount(&self, mount: &Rc<Mount>) -> Result<(), Error> {
        mount.leave().await?;
        mount.changed.until(|| mount.is_gone()).await;
        Ok(())
    }

    /// Unmounts everything as far as possible by the deadline. Claims are kept, so that the next manager process mounts
    /// the volumes again.
    pub(crate) async fn unmount_all(&self, deadline: Deadline) {
        self.ending.set(true);
        let mounts = self.mounts.borrow().clone();
        let leaving: Vec<_> = mounts
            .into_iter()
            .map(|mount| {
                sip::executor::spawn(async move {
                    match mount.leave().await {
                        Ok(()) => mount.changed.until(|| mount.is_gone()).await,
                        Err(error) => report::error(format_args!("{}", error.explanation)),
                    }
                })
            })
            .collect();
        for one in leaving {
            let _late = before(deadline, one).await;
        }
    }

    /// The volume mounted at this path.
    pub(crate) fn mount_at(&self, point: &[u8]) -> Result<Rc<Mount>, Error> {
        let found = places::canonical(point)
            .and_then(|point| self.mounts.borrow().iter().find(|mount| mount.point == point).cloned());
        found.ok_or_else(|| {
            let point = text::printable(point);
            let explanation =
                format!("{point}: no {} volume is mounted there; `mount` lists what is mounted", self.kind);
            Error::new(VolumeError::NotMounted, explanation)
        })
    }

    /// Canonical path of an existing disk.
    pub(crate) fn disk(&self, requested: &[u8]) -> Result<String, Error> {
        let shown = text::printable(requested);
        let Some(disk) = places::canonical(requested) else {
            let explanation = format!("{shown}: not a disk; `ls /dev` lists disks");
            return Err(Error::new(VolumeError::BadRequest, explanation));
        };
        match self.namespace.borrow_mut().own_attributes(&disk) {
            Ok((NodeKind::Service, _)) => Ok(disk),
            Ok(_) => {
                let explanation = format!("{shown}: it is no disk; `ls /dev` shows what disks there are");
                Err(Error::new(VolumeError::BadRequest, explanation))
            }
            Err(_) => {
                let explanation = format!("{shown}: no such disk; `ls /dev` lists disks");
                Err(Error::new(VolumeError::NotFound, explanation))
            }
        }
    }

    /// Checks that the name of a mount point is free.
    fn check_name_free(&self, point: &str) -> Result<(), Error> {
        match self.namespace.borrow_mut().own_attributes(point) {
            // A name left by a previous process is taken over; for others, registration fails.
            Err(_) | Ok((NodeKind::Mount, _)) => Ok(()),
            Ok(_) => {
                let explanation = format!("{point}: the name is taken; choose another one");
                Err(Error::new(VolumeError::PointBusy, explanation))
            }
        }
    }

    /// Deregisters a mount point and removes the folders that were created for it.
    pub(crate) fn deregister(&self, point: &str) {
        let mut namespace = self.namespace.borrow_mut();
        // It may never have been registered.
        let _ = namespace.deregister(point);
        let mut folder = point;
        while let Some((above, _)) = path::split_last(folder)
            && places::may_be_point(above)
            // A folder that is not empty stays.
            && namespace.deregister(above).is_ok()
        {
            folder = above;
        }
    }

    /// Removes an unmounted volume from the list and releases its claims.
    fn forget(&self, mount: &Rc<Mount>) {
        self.deregister(&mount.point);
        self.mounts.borrow_mut().retain(|other| !Rc::ptr_eq(other, mount));
        if !self.ending.get() {
            self.claims.release(&mount.disk);
            self.claims.release(&mount.point);
        }
        mount.enter(State::Gone);
    }

    fn register(&self, mount: &Mount, provider: Provider) -> Result<(), Error> {
        let registered = self.namespace.borrow_mut().register(&mount.point, ProviderScope::Subtree, provider);
        registered.map_err(|error| error::of_point(&mount.point, error))
    }
}

/// Canonical path of a valid mount point.
pub(crate) fn point_path(requested: &[u8]) -> Result<String, Error> {
    places::canonical(requested).filter(|point| places::may_be_point(point)).ok_or_else(|| {
        let shown = text::printable(requested);
        let explanation = format!("{shown}: it cannot be a mount point; choose a name below {}", places::POINTS);
        Error::new(VolumeError::BadRequest, explanation)
    })
}

/// Starts a volume's file system; completes once it serves and is registered.
async fn begin(manager: &Manager, mount: &Mount) -> Result<Process, NotStarted> {
    let failure = |error| NotStarted { end: End::Failure, error };
    let (process, provider, control) = start(manager, mount).map_err(failure)?;
    mount.process.set(process.id());
    match await_ready(manager, mount, provider, control).await {
        Ok(()) => {
            mount.has_served.set(true);
            mount.enter(State::Serving);
            Ok(process)
        }
        Err(mut failed) => {
            process.stop();
            let end = process.ended().await;
            mount.process.set(0);
            if failed.end == End::Failure {
                failed.error.explanation =
                    format!("{}: {}", failed.error.explanation, child::words(&manager.file_system, &end));
            }
            Err(failed)
        }
    }
}

type Started = (
    Process,
    service_provider::Imp<service_provider::states::Start>,
    Option<file_system::Imp<file_system::states::Start>>,
);

fn start(manager: &Manager, mount: &Mount) -> Result<Started, Error> {
    let no_channel = |status: Status| Error::exhausted(&mount.disk, status);
    let mut making = Builder::new(&manager.file_system, &mut manager.namespace.borrow_mut())?;
    making = making.parameter("disk", &mount.disk)?;
    if making.takes("access") {
        let word = if mount.is_read_only() { "read" } else { "write" };
        making = making.parameter("access", word)?;
    }
    let (provider, clients) = service_provider::new_channel().map_err(no_channel)?;
    making = making.endpoint("clients", clients)?;
    let mut control = None;
    if making.has_endpoint("control") {
        let (importer, exporter) = file_system::new_channel().map_err(no_channel)?;
        making = making.endpoint("control", exporter)?;
        control = Some(importer);
    }
    Ok((making.start()?, provider, control))
}

/// Waits until the file system is ready, and registers it.
async fn await_ready(
    manager: &Manager,
    mount: &Mount,
    provider: service_provider::Imp<service_provider::states::Start>,
    control: Option<file_system::Imp<file_system::states::Start>>,
) -> Result<(), NotStarted> {
    let deadline = Deadline::after_ms(READY_MS);
    let disk = &mount.disk;
    let failure = |error, explanation: String| NotStarted { end: End::Failure, error: Error::new(error, explanation) };
    let too_late =
        || failure(VolumeError::DeviceError, format!("{disk}: it was not ready within {} s", READY_MS / 1000));
    let ended = || failure(VolumeError::DeviceError, format!("{disk}: its file system ended before it was ready"));
    let provider = match before(deadline, provider.receive_async()).await.ok_or_else(too_late)? {
        service_provider::ImpStart::Ready { next } => next,
        service_provider::ImpStart::NotReady { error, explanation, .. } => {
            let end = if error == StartError::Exhausted { End::Failure } else { End::Hopeless };
            let error = Error::new(error::of_start(error), explanation.to_text());
            return Err(NotStarted { end, error });
        }
        service_provider::ImpStart::ChannelClosed(_) => return Err(ended()),
    };
    let control = match control {
        None => None,
        Some(control) => match before(deadline, control.receive_async()).await.ok_or_else(too_late)? {
            file_system::ImpStart::Success { next } => Some(next),
            file_system::ImpStart::Refused { .. } | file_system::ImpStart::ChannelClosed(_) => return Err(ended()),
        },
    };
    let mut writable = false;
    let control = match control {
        None => None,
        Some(control) => {
            match before(deadline, control.get_statistics().receive_async()).await.ok_or_else(too_late)? {
                file_system::ImpReadyAfterGetStatistics::Statistics { statistics, next } => {
                    writable = statistics.read_only == 0;
                    Some(next)
                }
                file_system::ImpReadyAfterGetStatistics::ChannelClosed(_) => return Err(ended()),
            }
        }
    };
    manager.register(mount, provider).map_err(|error| NotStarted { end: End::Hopeless, error })?;
    if let Some(control) = control {
        mount.controlled.set(true);
        mount.writable.set(writable);
        mount.control.put(control);
    }
    Ok(())
}

/// Action after a file system has ended.
enum Verdict {
    StartAgain,
    Leave,
}

/// Supervises a mounted volume from its first start until it is unmounted.
async fn supervise(manager: Rc<Manager>, mount: Rc<Mount>, first: Result<Process, NotStarted>) {
    let mut backoff = Backoff::new(manager.file_system.supervision);
    let mut start = first;
    let mut begun = sip::time::monotonic();
    loop {
        let failed = match start {
            Ok(process) => {
                let end = ended(&mount, &process).await;
                mount.control.close();
                mount.process.set(0);
                (kind(&end), child::words(&manager.file_system, &end))
            }
            Err(NotStarted { error, .. }) if error.error == VolumeError::NotRecognised && !mount.has_served.get() => {
                // Another manager may mount it.
                report::error(format_args!("{}: not mounted: {}", mount.point, error.explanation));
                break;
            }
            Err(not_started) => (not_started.end, not_started.error.explanation),
        };
        let ran_ns = sip::time::monotonic().saturating_sub(begun);
        match pause(&manager, &mount, &mut backoff, failed, ran_ns).await {
            Verdict::Leave => break,
            Verdict::StartAgain => {}
        }
        mount.enter(State::Starting);
        mount.restarts.set(mount.restarts.get() + 1);
        begun = sip::time::monotonic();
        start = begin(&manager, &mount).await;
    }
    manager.forget(&mount);
}

/// Waits for a file system to end; stops it at the deadline of an unmount.
async fn ended(mount: &Mount, process: &Process) -> Result<Epitaph, Status> {
    let unmounting = mount.changed.until(|| mount.unmount_deadline.get().is_some());
    let end = match unless(unmounting, process.ended()).await {
        Some(end) => end,
        None => {
            let deadline = mount.unmount_deadline.get().unwrap_or(Deadline::PASSED);
            match before(deadline, process.ended()).await {
                Some(end) => end,
                None => {
                    process.stop();
                    process.ended().await
                }
            }
        }
    };
    // Let a pending unmount receive its reply first.
    mount.changed.until(|| !mount.leaving.get()).await;
    end
}

fn kind(end: &Result<Epitaph, Status>) -> End {
    match end {
        Ok(epitaph) if epitaph.kind == EpitaphKind::Stopped => End::Stopped,
        Ok(epitaph) if epitaph.is_success() => End::Success,
        _ => End::Failure,
    }
}

/// Waits out the back-off before a restart, or until the volume is unmounted.
async fn pause(
    manager: &Manager,
    mount: &Mount,
    backoff: &mut Backoff,
    (end, reason): (End, String),
    ran_ns: u64,
) -> Verdict {
    let unmounting = || mount.unmount_deadline.get().is_some();
    if unmounting() {
        return Verdict::Leave;
    }
    match backoff.after(end, ran_ns) {
        Next::Restart { after_ms } => {
            mount.enter(State::BackingOff(reason));
            let _late = before(Deadline::after_ms(after_ms), mount.changed.until(unmounting)).await;
        }
        Next::Rest | Next::GiveUp => {
            let often = if end == End::Hopeless { "" } else { "; it failed too often and is not restarted" };
            let remedy = format!("unmount it (`umount {}`) and check the disk (`check {}`)", mount.point, mount.disk);
            report::error(format_args!("{}: {reason}{often}; {remedy}", mount.point));
            manager.deregister(&mount.point);
            mount.enter(State::Failed(format!("{reason}{often}")));
            mount.changed.until(unmounting).await;
        }
    }
    if unmounting() { Verdict::Leave } else { Verdict::StartAgain }
}
