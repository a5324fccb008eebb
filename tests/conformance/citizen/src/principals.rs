//! Acts about principals: reporting them, invoking others, passing endpoints on.

use conformance_contract::errand;
use errand::{ExpReady, ImpReadyAfterGive, states};
use sip::exheap::ExVec;
use sip::process::{self, Child};
use sip::{Status, audit, principal};

use crate::{Stage, talk};

const SELF: &str = "conformance-citizen";
const ACT: usize = 0;
const NUMBER: usize = 1;
const CLIENT: usize = 0;

/// Reports its principal over its client endpoint.
pub(crate) fn say(mut stage: Stage) -> i32 {
    let text = ExVec::from_slice(principal::own().as_bytes()).expect("room for its name");
    match stage.client().give(text).receive() {
        ImpReadyAfterGive::GivenBack { .. } | ImpReadyAfterGive::ChannelClosed(_) => stage.end(),
    }
}

/// Tries to invoke another in a role, which its manifest does not permit.
pub(crate) fn speak_in_role(_: Stage) -> i32 {
    let child = process::create(SELF).expect("a child");
    assert_eq!(child.invoke_in_role("admin").err(), Some(Status::NotPermitted));
    0
}

/// Invokes itself, `number` generations deep; the last sends its principal. The exit status is 1 if a generation could
/// not be created because the chain is too long, and 2 on other errors.
pub(crate) fn invoke_chain(mut stage: Stage) -> i32 {
    if stage.number == 0 {
        return say(stage);
    }
    let client = stage.client();
    // An invoked process invokes by creating; an explicit invocation changes nothing.
    let deeper = match process::create(SELF) {
        Ok(child) => child,
        Err(error) if error.status == Status::Refused => return 1,
        Err(_) => return 2,
    };
    let deeper = if stage.number.is_multiple_of(2) { deeper.invoke().expect("it can be invoked") } else { deeper };
    let deeper = deeper
        .parameter(ACT, "invoke-chain")
        .and_then(|child| child.parameter(NUMBER, &alloc::format!("{}", stage.number - 1)))
        .and_then(|child| child.endpoint(CLIENT, client))
        .and_then(Child::start)
        .expect("the child starts");
    deeper.wait().expect("its end").status
}

fn passed(stage: &mut Stage) -> (errand::Imp<states::Ready>, errand::Exp<states::ReadyAfterPass>) {
    let ExpReady::Pass { end, next } = stage.server().receive() else { panic!("no endpoint came") };
    (end, next)
}

/// Forwards a received endpoint unchanged over its client endpoint, and exits on request.
pub(crate) fn pass_on(mut stage: Stage) -> i32 {
    let (end, _from) = passed(&mut stage);
    let _sent = stage.client().pass(end);
    stage.end()
}

/// The same, delegated.
pub(crate) fn delegate_on(mut stage: Stage) -> i32 {
    let (end, _from) = passed(&mut stage);
    principal::delegate(&end).expect("its own endpoint");
    let _sent = stage.client().pass(end);
    stage.end()
}

/// May neither install nor uninstall.
pub(crate) fn install_itself(stage: Stage) -> i32 {
    let block = sip::exheap::ExVec::new(64).expect("a block");
    let error = sip::programs::install(&block).expect_err("it has no permission");
    assert_eq!(error.status, Status::NotPermitted);
    assert_eq!(sip::programs::uninstall("conformance-citizen"), Err(Status::NotPermitted));
    stage.end()
}

/// May neither add to the audit ring nor read it.
pub(crate) fn note_and_read(mut stage: Stage) -> i32 {
    assert_eq!(audit::note("forged"), Err(Status::NotPermitted));
    assert_eq!(audit::read(0).err(), Some(Status::NotPermitted));
    if let Some(server) = stage.server.take() {
        talk::answer_until_closed(server);
    }
    0
}
