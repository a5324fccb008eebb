//! Operations of a parent on a child.
//!
//! A handle names a slot and its generation. At any moment another thread of the parent may close the handle, and the
//! slot may be reused for another SIP. So every operation locks the child's life, checks there that it is still the
//! child that the handle names ([`ChildRef::lock`]), and reads nothing of it before.

use alloc::string::String;
use core::sync::atomic::Ordering;

use abi::{ProcessState, Status, StopReason, TraceKind};

use super::end;
use crate::handle::{self, Kind};
use crate::lock::SpinGuard;
use crate::machine::machine;
use crate::principal::TooLong;
use crate::process::{Epitaph, Life, ProcessRef, SinkRef};
use crate::thread::{self, Argument, ThreadRef};
use crate::wait::Ticket;
use crate::{channel, sched};

/// A child as named by a handle of its parent; the slot may hold another SIP by now, or none.
#[derive(Clone, Copy)]
pub struct ChildRef {
    process: ProcessRef,
    generation: u32,
}

impl ChildRef {
    /// References the slot's SIP of this generation.
    pub fn new(process: ProcessRef, generation: u32) -> ChildRef {
        ChildRef { process, generation }
    }

    /// The slot.
    #[cfg(test)]
    pub(crate) fn process(self) -> ProcessRef {
        self.process
    }

    /// Returns its handle for its parent.
    pub fn handle(self) -> u64 {
        handle::encode(Kind::Process, self.process.index(), self.generation)
    }

    /// Locks the child's life if it is this parent's child of this handle; it stays so while locked. Without a parent:
    /// if it is the first SIP.
    fn lock(self, parent: Option<ProcessRef>) -> Result<SpinGuard<'static, Life>, Status> {
        let life = self.process.life.lock();
        let is_own = life.is_held_by(parent) && self.process.generation() == self.generation;
        if is_own { Ok(life) } else { Err(Status::BadHandle) }
    }

    /// Like [`lock`](Self::lock), for operations allowed only before it starts.
    fn lock_created(self, parent: Option<ProcessRef>) -> Result<SpinGuard<'static, Life>, Status> {
        let life = self.lock(parent)?;
        let is_created = self.process.state() == ProcessState::Created && !self.process.is_dying();
        if is_created { Ok(life) } else { Err(Status::WrongState) }
    }

    /// Returns its process id.
    pub fn id(self, parent: ProcessRef) -> Result<u64, Status> {
        let _life = self.lock(Some(parent))?;
        Ok(self.process.id.load(Ordering::Relaxed))
    }

    /// Returns the name of its program, for messages about a refusal.
    pub fn name(self, parent: ProcessRef) -> &'static str {
        match self.lock(Some(parent)) {
            Ok(_life) => self.process.name(),
            Err(_) => "?",
        }
    }

    /// Gives it the principal of a program invoked by its parent.
    pub fn invoke(self, parent: ProcessRef, role: Option<&str>) -> Result<(), Status> {
        // Locked throughout, as giving endpoints is: an endpoint's principal is fixed when it is given.
        let mut life = self.lock_created(Some(parent))?;
        if life.is_invoked || life.slots.iter().any(Option::is_some) {
            return Err(Status::WrongState);
        }
        let program = self.process.program.get().ok_or(Status::WrongState)?;
        let invoker = parent.principal().ok_or(Status::WrongState)?;
        let own = &self.process.own_principal;
        let settled = match role {
            None => invoker.may_invoke(program).map(|()| own.set_invoker(invoker)),
            Some(_) => invoker.invoking(role, program).map(|principal| own.set(principal)),
        };
        settled.map_err(|TooLong| Status::TooLarge)?;
        life.is_invoked = true;
        Ok(())
    }

    /// Appends to the value of a parameter. Only before it starts.
    pub fn give_parameter(self, parent: Option<ProcessRef>, index: usize, bytes: &[u8]) -> Result<(), Status> {
        parent.map_or(Ok(()), |parent| parent.may_grow())?;
        self.lock_created(parent)?.parameters.add(index, bytes)
    }

    /// Assigns a device of the machine to a device of its manifest. Only before it starts.
    pub fn give_device(self, parent: ProcessRef, index: usize, name: String) -> Result<(), Status> {
        let mut life = self.lock_created(Some(parent))?;
        *life.devices.get_mut(index).ok_or(Status::NotFound)? = Some(name);
        Ok(())
    }

    /// Redirects its debug text to a sink of the parent. Only before it starts.
    pub fn give_debug_sink(self, parent: ProcessRef, sink: SinkRef) -> Result<(), Status> {
        let _life = self.lock_created(Some(parent))?;
        self.process.debug_text.set(Some(sink));
        Ok(())
    }

    /// Moves an endpoint of the parent into one of its slots. Only before it starts.
    pub fn give_endpoint(self, parent: ProcessRef, slot: usize, handle: u64) -> Result<(), Status> {
        // Locked throughout: a child that is stopped meanwhile returns all that it has been given.
        let mut life = self.lock_created(Some(parent))?;
        let child = self.process;
        let manifest = &child.program.get().ok_or(Status::WrongState)?.manifest;
        let declared = manifest.endpoints.get(slot).ok_or(Status::NotFound)?;
        let contracts = &child.loaded.get().ok_or(Status::WrongState)?.contracts;
        let contract = contracts.get(declared.contract as usize).ok_or(Status::NotFound)?;
        let shape = abi::EndpointShape {
            contract: contract.tag,
            importer: declared.side == manifest_model::Side::Importer,
            state: declared.state,
        };
        let place = life.slots.get_mut(slot).ok_or(Status::NotFound)?;
        if place.is_some() {
            return Err(Status::Busy);
        }
        let endpoint = channel::endpoint(handle)?;
        channel::take_givable(parent, endpoint, &shape)?;
        channel::adopt_endpoint(child, endpoint);
        *place = Some(endpoint.handle());
        Ok(())
    }

    /// Starts it.
    pub fn start(self, parent: Option<ProcessRef>) -> Result<(), Status> {
        let process = self.process;
        let thread = {
            // Under the lock, so that stopping it finds it either not started or with a thread to end.
            let _life = self.lock_created(parent)?;
            let entry = process.loaded.get().ok_or(Status::WrongState)?.entry;
            let thread = thread::create(process, entry, Argument::ThreadBlock)?;
            process.state.store(ProcessState::Running as u64, Ordering::Release);
            thread
        };
        thread.end.lock().released = true;
        process.started_ns.store(machine().monotonic_ns(), Ordering::Relaxed);
        process.trace.add(TraceKind::Started, 0, 0);
        sched::make_runnable(thread);
        Ok(())
    }

    /// Stops it without waiting for its end.
    pub fn stop(self, parent: ProcessRef, reason: StopReason) -> Result<(), Status> {
        end::stop(parent, self.process, self.id(parent)?, reason);
        Ok(())
    }

    /// Returns its epitaph if it has ended; otherwise leaves a ticket for its end.
    pub fn wait_at(self, parent: ProcessRef, ticket: Ticket) -> Result<Option<Epitaph>, Status> {
        let mut life = self.lock(Some(parent))?;
        if self.process.state() == ProcessState::Ended {
            return Ok(Some(life.epitaph.clone().unwrap_or_else(|| Epitaph::exited(0))));
        }
        life.waiters.add(ticket);
        Ok(None)
    }

    /// Withdraws a ticket.
    pub fn stop_waiting_at(self, thread: ThreadRef) {
        self.process.life.lock().waiters.remove(thread);
    }

    /// Closes the parent's handle.
    pub fn release(self, parent: ProcessRef) -> Result<(), Status> {
        let life = self.lock(Some(parent))?;
        end::release(parent, self.process, life);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use crate::lifecycle::create;
    use crate::program::Program;
    use crate::test_machine::{alone, loaded, parent};
    use manifest_model::{Category, Code, Manifest, Parameter, ParameterKind};

    const PARAMETER: usize = 0;

    fn kid() -> &'static Program {
        let mut manifest = Manifest::plain("kid", "test", Category::Test, Code::Script { text: String::new() });
        manifest.parameters.push(Parameter::plain("value", ParameterKind::Text));
        manifest.devices.push(manifest_model::DeviceNeed::named("disk"));
        loaded(manifest)
    }

    fn made(program: &'static Program, parent: ProcessRef) -> ChildRef {
        match create(program, Some(parent)) {
            Ok(child) => child,
            Err(_) => panic!("no child can be made"),
        }
    }

    fn value(child: ChildRef) -> Option<alloc::vec::Vec<u8>> {
        child.process.with_parameter(PARAMETER, <[u8]>::to_vec)
    }

    /// Every operation allowed only before the start must be refused to `parent`: it does not hold the handle.
    fn expect_refused(child: ChildRef, parent: ProcessRef) {
        let bad = Err(Status::BadHandle);
        assert_eq!(child.invoke(parent, None), bad);
        assert_eq!(child.invoke(parent, Some("admin")), bad);
        assert_eq!(child.give_parameter(Some(parent), PARAMETER, b"stolen"), bad);
        assert_eq!(child.give_device(parent, 0, "stolen".into()), bad);
        assert_eq!(child.give_endpoint(parent, 0, 0), bad);
        assert_eq!(child.start(Some(parent)), bad);
        assert_eq!(child.start(None), bad);
        assert_eq!(child.stop(parent, StopReason::Requested), bad);
        assert_eq!(child.release(parent), bad);
        assert_eq!(child.id(parent).err(), Some(Status::BadHandle));
        assert_eq!(child.name(parent), "?");
    }

    #[test]
    fn a_handle_that_was_given_up_reaches_no_child_that_has_its_slot() {
        let _alone = alone();
        let (own, other) = (parent(8), parent(8));
        for next_parent in [other, own] {
            let old = made(kid(), own);
            assert_eq!(old.release(own), Ok(()));
            let next = made(kid(), next_parent);
            assert!(core::ptr::eq(old.process, next.process), "the slot was not used again");
            expect_refused(old, own);
            assert_eq!(value(next), None);
            assert_eq!(next.process.principal().map(|principal| principal.text().len()), Some("kid.test".len()));
            assert_eq!(next.process.device_name(0).as_deref(), Some("disk"));
            assert_eq!(next.process.state(), ProcessState::Created);
            assert_eq!(next.give_parameter(Some(next_parent), PARAMETER, b"good"), Ok(()));
            assert_eq!(value(next).as_deref(), Some(&b"good"[..]));
            assert_eq!(next.release(next_parent), Ok(()));
        }
    }

    #[test]
    fn a_handle_that_another_guesses_is_worth_nothing() {
        let _alone = alone();
        let (own, other) = (parent(8), parent(8));
        let child = made(kid(), own);
        expect_refused(child, other);
        assert_eq!(child.release(own), Ok(()));
    }

    /// One thread of a parent releases a child and another SIP creates one, while a second thread of the parent writes
    /// to the child through the same handle.
    #[test]
    fn giving_a_child_up_while_it_is_given_something_changes_no_other() {
        let _alone = alone();
        let (own, other) = (parent(8), parent(8));
        for _ in 0..20_000 {
            let old = made(kid_once(), own);
            let go = std::sync::Barrier::new(2);
            let next = std::thread::scope(|scope| {
                scope.spawn(|| {
                    go.wait();
                    for _ in 0..8 {
                        // Refused from some moment on.
                        let _ = old.give_parameter(Some(own), PARAMETER, b"stolen");
                        let _ = old.give_device(own, 0, "stolen".into());
                        let _ = old.invoke(own, Some("admin"));
                    }
                });
                go.wait();
                assert_eq!(old.release(own), Ok(()));
                made(kid_once(), other)
            });
            assert!(core::ptr::eq(old.process, next.process), "the slot was not used again");
            assert_eq!(value(next), None, "another's child was given a parameter");
            assert_eq!(next.process.device_name(0).as_deref(), Some("disk"));
            assert!(!next.process.own_principal.is_compound(), "another's child was invoked");
            assert_eq!(next.release(other), Ok(()));
        }
    }

    #[test]
    fn parameters_of_a_child_that_never_starts_count_as_what_it_holds_and_end_with_it() {
        let _alone = alone();
        let own = parent(8);
        let child = made(kid(), own);
        let before = child.process.held_bytes();
        while child.give_parameter(Some(own), PARAMETER, &[7; 512]) == Ok(()) {}
        assert_eq!(child.process.held_bytes(), before + abi::limits::PARAMETER_BYTES);
        assert_eq!(child.stop(own, StopReason::Requested), Ok(()));
        assert_eq!(child.process.state(), ProcessState::Ended);
        assert_eq!(child.process.held_bytes(), before, "what it was given outlives it");
        assert_eq!(child.release(own), Ok(()));
    }

    #[test]
    fn a_child_that_has_started_is_given_nothing_more() {
        let _alone = alone();
        let own = parent(8);
        let child = made(kid(), own);
        child.process.state.store(ProcessState::Running as u64, Ordering::Release);
        let wrong = Err(Status::WrongState);
        assert_eq!(child.invoke(own, None), wrong);
        assert_eq!(child.give_parameter(Some(own), PARAMETER, b"late"), wrong);
        assert_eq!(child.give_device(own, 0, "late".into()), wrong);
        assert_eq!(child.give_endpoint(own, 0, 0), wrong);
        assert_eq!(child.start(Some(own)), wrong);
        child.process.state.store(ProcessState::Created as u64, Ordering::Release);
        assert_eq!(child.release(own), Ok(()));
    }

    /// One thread of a parent stops a child and another releases it, while another SIP takes whatever slot is free.
    #[test]
    fn a_child_that_ends_while_it_is_given_up_leaves_no_list_in_disorder() {
        let _alone = alone();
        let (own, other) = (parent(8), parent(8));
        for _ in 0..5_000 {
            let child = made(kid_once(), own);
            let go = std::sync::Barrier::new(3);
            let next = std::thread::scope(|scope| {
                scope.spawn(|| {
                    go.wait();
                    // Refused if the other thread was faster.
                    let _ = child.stop(own, StopReason::Requested);
                });
                scope.spawn(|| {
                    go.wait();
                    assert_eq!(child.release(own), Ok(()));
                });
                go.wait();
                [made(kid_once(), other), made(kid_once(), other)]
            });
            assert_eq!((own.child_count(), other.child_count()), (0, 2));
            for child in next {
                assert_eq!(child.release(other), Ok(()));
            }
            assert_eq!(other.child_count(), 0);
        }
    }

    #[test]
    fn threads_that_create_at_once_stay_within_the_quota_together() {
        const QUOTA: u32 = 5;
        let _alone = alone();
        let own = parent(QUOTA);
        for _ in 0..2_000 {
            let go = std::sync::Barrier::new(2);
            let create_some = || {
                go.wait();
                (0..QUOTA).filter_map(|_| create(kid_once(), Some(own)).ok()).collect::<alloc::vec::Vec<_>>()
            };
            let children = std::thread::scope(|scope| {
                let threads = [scope.spawn(create_some), scope.spawn(create_some)];
                threads.map(|thread| thread.join().expect("no child can be made")).concat()
            });
            assert_eq!(children.len() as u32, QUOTA);
            for (number, child) in children.into_iter().enumerate() {
                // Whether it has ended before its handle is closed makes no difference.
                if number % 2 == 0 {
                    assert_eq!(child.stop(own, StopReason::Requested), Ok(()));
                }
                assert_eq!(child.release(own), Ok(()));
            }
        }
    }

    #[test]
    fn a_child_counts_before_it_is_made() {
        let _alone = alone();
        let own = parent(2);
        let id = own.id.load(Ordering::Relaxed);
        let first = made(kid_once(), own);
        assert_eq!(own.charge_child(), Ok(()));
        assert!(create(kid_once(), Some(own)).is_err(), "two threads would have made a child too many");
        own.refund_child(id);
        let second = made(kid_once(), own);
        assert!(create(kid_once(), Some(own)).is_err());
        assert_eq!((first.release(own), second.release(own)), (Ok(()), Ok(())));
    }

    #[test]
    fn what_is_not_created_is_not_counted_and_handles_are() {
        let _alone = alone();
        let own = parent(500);
        let refused = Manifest::plain("script", "test", Category::Console, Code::Script { text: String::new() });
        let refused = alloc::boxed::Box::leak(alloc::boxed::Box::new(crate::test_machine::unloaded(refused)));
        for _ in 0..600 {
            assert!(create(refused, Some(own)).is_err());
        }
        let handles = own.handle_quota();
        let children: alloc::vec::Vec<_> = (0..handles).map(|_| made(kid_once(), own)).collect();
        assert!(matches!(
            create(kid_once(), Some(own)),
            Err(crate::lifecycle::CreateError::Status(Status::QuotaExceeded))
        ));
        for child in children {
            assert_eq!(child.release(own), Ok(()));
        }
        assert_eq!(made(kid_once(), own).release(own), Ok(()));
    }

    /// The same program each time: programs made by tests are never freed.
    fn kid_once() -> &'static Program {
        static KID: std::sync::OnceLock<&'static Program> = std::sync::OnceLock::new();
        KID.get_or_init(kid)
    }
}
