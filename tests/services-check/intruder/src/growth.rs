//! Exceeding its manifest after its start.

use alloc::format;

use sip::diagnostics;
use sip::process::{StopReason, create, stop_any};
use sip::{Status, audit, programs};

use crate::{Attack, Intruder, OWN, Outcome, check, comrade};

pub(crate) const ATTACKS: &[(&str, Attack)] = &[
    ("use-permissions", use_permissions),
    ("grow-endpoints", grow_endpoints),
    ("open-devices", open_devices),
    ("end-another", end_another),
    ("write-its-own-line", write_its_own_line),
    ("install", install),
];

/// Uses each permission that its manifest does not request.
fn use_permissions(_: &mut Intruder) -> Outcome {
    let status = |result: Result<(), Status>| result.err();
    for (what, result) in [
        ("diagnostics", status(diagnostics::processes().map(drop))),
        ("diagnostics: audit ring", status(audit::read(0).map(drop))),
        (
            "system-manifest",
            status(create(OWN).map_err(|error| error.status).and_then(|child| child.device(0, "disk0")).map(drop)),
        ),
        ("power", Some(sip::device::power_off(3))),
        ("power: restart", Some(sip::device::restart())),
    ] {
        check!(result == Some(Status::NotPermitted), "{what}: {result:?}");
    }
    Ok(())
}

/// Slots and parameters missing in the manifest, of itself and of a child.
fn grow_endpoints(_: &mut Intruder) -> Outcome {
    for slot in [2, 3, 64, usize::MAX] {
        let (importer, _exporter) =
            contracts::directory::new_channel().map_err(|status| format!("a channel: {}", status.text()))?;
        let result = comrade("is-invoked-by", "")?.endpoint(slot, importer).map(drop);
        check!(result.is_err(), "a comrade with an endpoint at slot {slot}");
        let result = comrade("is-invoked-by", "")?.parameter(slot, "more").map(drop);
        check!(result.is_err(), "a comrade with a parameter at {slot}");
        let own = sip::config::parameter_bytes(slot);
        check!(!matches!(own, Ok(Some(_))), "a parameter of its own at {slot}: {own:?}");
    }
    // A contract of another kind in an existing slot.
    let (importer, _exporter) =
        contracts::udp::new_channel().map_err(|status| format!("a channel: {}", status.text()))?;
    let result = comrade("is-invoked-by", "")?.endpoint(crate::TCP_SLOT, importer).map(drop);
    check!(result.is_err(), "a comrade with an endpoint of another contract");
    Ok(())
}

/// Devices, none of which its manifest names.
fn open_devices(_: &mut Intruder) -> Outcome {
    for index in [0, 1, 7, usize::MAX] {
        let result = sip::device::Device::open(index).map(drop);
        check!(result.is_err(), "the device at {index}");
    }
    Ok(())
}

/// Acts on a process by its number, which can be guessed.
fn end_another(intruder: &mut Intruder) -> Outcome {
    let id = intruder.target.parse().map_err(|_| format!("`{}` is no process", intruder.target))?;
    let result = stop_any(id, StopReason::Requested);
    check!(result == Err(Status::NotPermitted), "ending process {id}: {result:?}");
    Ok(())
}

/// An audit line that blames another principal.
fn write_its_own_line(_: &mut Intruder) -> Outcome {
    let result = audit::note("somebody.else refused read on /everything (its own rule)");
    check!(result == Err(Status::NotPermitted), "a line of its own: {result:?}");
    audit::refused("somebody.else", "read", "/everything", "its own rule");
    Ok(())
}

/// Installs and uninstalls programs in the running system.
fn install(intruder: &mut Intruder) -> Outcome {
    let package = sip::exheap::ExVec::from_slice(b"no package, but who may install is asked first");
    let package = package.map_err(|status| format!("a block: {}", status.text()))?;
    let installed = programs::install(&package).map_err(|error| error.status);
    check!(installed == Err(Status::NotPermitted), "installing: {installed:?}");
    let result = programs::uninstall(&intruder.target);
    check!(result == Err(Status::NotPermitted), "taking out {}: {result:?}", intruder.target);
    check!(create(&intruder.target).is_ok(), "{} is gone", intruder.target);
    Ok(())
}
