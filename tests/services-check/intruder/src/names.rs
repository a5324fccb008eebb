//! Reaching names that it was not given, and taking over foreign ones.

use alloc::format;
use alloc::string::{String, ToString};

use client::access::AccessError;
use client::namespace::Namespace;
use contracts::directory::{NameError, ProviderScope};
use contracts::file::FileError;
use contracts::{directory, service_provider};

use crate::{Attack, Intruder, Outcome, check};

pub(crate) const ATTACKS: &[(&str, Attack)] = &[
    ("reach", reach),
    ("reach-by-detours", reach_by_detours),
    ("look-inside", look_inside),
    ("take-a-name", take_a_name),
    ("control-a-service", control_a_service),
];

/// The service that it may start and stop according to the system manifest.
const ALLOWED: &str = "answer";

/// Binds as a folder; permission is checked before existence.
fn bind(namespace: &mut Namespace, path: &str) -> Result<(), AccessError> {
    let (_importer, exporter) = directory::new_channel()?;
    namespace.bind(path, exporter)
}

/// Checks that the request was refused because of the principal.
pub(crate) fn is_refused(what: &str, result: Result<(), AccessError>) -> Outcome {
    match result {
        Err(AccessError::Name(NameError::NotPermitted) | AccessError::File(FileError::NotPermitted)) => Ok(()),
        Err(error) => Err(format!("{what}: {error}, and not that it may not")),
        Ok(()) => Err(format!("{what}: it may")),
    }
}

fn reach(intruder: &mut Intruder) -> Outcome {
    let target = intruder.target.clone();
    let namespace = intruder.namespace()?;
    is_refused(&target, bind(namespace, &target))?;
    let read = namespace.open_file(&target).map(drop);
    is_refused(&format!("{target} as a file"), read)
}

/// By the parent folder, opened before; by a folder and back; by a link of its own.
fn reach_by_detours(intruder: &mut Intruder) -> Outcome {
    let target = intruder.target.clone();
    let namespace = intruder.namespace()?;
    let (mut folder, name) =
        namespace.open_folder_of(&target).map_err(|error| format!("the folder of {target}: {error}"))?;
    is_refused("from the open folder", bind(&mut folder, name))?;
    let parent = target.strip_suffix(name).unwrap_or_default().to_string();
    for detour in [format!("{parent}./{name}"), format!("{parent}open/../{name}"), format!("{parent}/{name}")] {
        let result = bind(namespace, &detour);
        // An invalid path leads nowhere either.
        check!(result.is_err(), "{detour}: it may");
    }
    let link = format!("{parent}open/link");
    namespace.link(&link, &target).map_err(|error| format!("its own link {link}: {error}"))?;
    let result = is_refused("by a link of its own", bind(namespace, &link));
    namespace.deregister(&link).map_err(|error| format!("its own link {link}: {error}"))?;
    result
}

/// Inspects a folder that it may not bind to: names, attributes, and link targets.
fn look_inside(intruder: &mut Intruder) -> Outcome {
    let target = intruder.target.clone();
    let namespace = intruder.namespace()?;
    is_refused("the names inside", namespace.names(&target).map(drop))?;
    let (mut folder, name) =
        namespace.open_folder_of(&target).map_err(|error| format!("the folder of {target}: {error}"))?;
    is_refused("the names inside, from the open folder", folder.names(name).map(drop))
}

fn take_a_name(intruder: &mut Intruder) -> Outcome {
    let target = intruder.target.clone();
    let namespace = intruder.namespace()?;
    let (importer, exporter) = service_provider::new_channel().map_err(|status| String::from(status.text()))?;
    let _clients = exporter.ready();
    let service_provider::ImpStart::Ready { next } = importer.receive() else {
        return Err(String::from("its own channel says something else than was sent"));
    };
    is_refused("registering", namespace.register(&target, ProviderScope::Name, next))?;
    is_refused("taking it out", namespace.deregister(&target))?;
    is_refused("a link in its place", namespace.link(&target, "/"))
}

fn control_a_service(intruder: &mut Intruder) -> Outcome {
    use client::services::{ServiceManagerError, power_off, restart, start, stop};
    use contracts::service_manager::ServiceError;
    let target = intruder.target.clone();
    let namespace = intruder.namespace()?;
    for (what, result) in [
        ("stopping it", stop(namespace, &target)),
        ("starting it", start(namespace, &target)),
        ("ending the machine", power_off(namespace, 3)),
        ("starting the machine anew", restart(namespace)),
    ] {
        let refused = matches!(result, Err(ServiceManagerError::Service(ServiceError::NotPermitted)));
        check!(refused, "{what} ({target}): {result:?}");
    }
    for (what, result) in [("stopping", stop(namespace, ALLOWED)), ("starting", start(namespace, ALLOWED))] {
        check!(result.is_ok(), "{what} {ALLOWED}, which it may: {result:?}");
    }
    Ok(())
}
