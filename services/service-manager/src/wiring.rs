//! Builds a child from an instance of the system manifest: its parameters, devices and endpoints.
//!
//! Deliberately not here: restarts, and registration of provided paths.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use client::access::AccessError;
use client::answer::{CONNECT_LIMIT, wait};
use client::namespace::Namespace;
use contracts::{console, directory, disk, pipe, service_manager, service_provider};
use manifest_model::{Instance, Manifest, Setting, Side, Source};
use sip::process::Child;

use crate::machine::Machine;

/// Path of the console, for standard output of services.
const CONSOLE: &str = "/dev/console";

/// The parent's ends of the provider channels, one per path that a child provides.
pub type Provided = Vec<service_provider::Imp<service_provider::states::Start>>;

/// A child with all its endpoints, not started.
pub struct Wired {
    /// The process to start.
    pub child: Child,
    /// Provider channels on which it reports readiness, in the order of its manifest's provided paths.
    pub provided: Provided,
    /// For the directory service: the first client's endpoint.
    pub root: Option<directory::Imp<directory::states::Start>>,
}

/// Why an endpoint cannot be passed.
enum Error {
    /// The target of a bind cannot be reached; the child is unchanged.
    Unreachable(Box<Wired>, String),
    /// The child cannot be built.
    Fatal(String),
}

/// Builds the child. Without a namespace (before the directory runs) nothing can be bound.
pub fn wire(
    machine: &Machine,
    instance: &Instance,
    manifest: &Manifest,
    mut namespace: Option<&mut Namespace>,
) -> Result<Wired, String> {
    let child = sip::process::create(&instance.program).map_err(|error| error.reason)?;
    let child = give_parameters(machine, child, instance, manifest)?;
    let child = give_devices(child, instance)?;
    let mut wired = Wired { child, provided: Vec::new(), root: None };
    for (slot, wanted) in manifest.endpoints.iter().enumerate() {
        let contract = manifest.contracts.get(wanted.contract as usize).map_or("", |contract| &contract.name);
        let given = match boot_order::bound_path(instance, manifest, slot) {
            Some(path) => bind(wired, slot, contract, path, namespace.as_deref_mut()),
            None => match (&wanted.source, contract, wanted.side) {
                (Source::Parent, "ServiceProvider", Side::Exporter) => provide(wired, slot).map_err(Error::Fatal),
                (Source::Parent, "Directory", Side::Exporter) => root(wired, slot).map_err(Error::Fatal),
                (Source::StandardOutput, ..) if !wanted.optional => {
                    bind(wired, slot, contract, CONSOLE, namespace.as_deref_mut())
                }
                _ if wanted.optional => Ok(wired),
                (source, ..) => Err(Error::Fatal(format!("unsupported source {source}"))),
            },
        };
        wired = match given {
            Ok(wired) => wired,
            Err(Error::Unreachable(wired, _)) if wanted.optional => *wired,
            Err(Error::Unreachable(_, reason) | Error::Fatal(reason)) => {
                return Err(format!("endpoint `{}`: {reason}", wanted.name));
            }
        };
    }
    Ok(wired)
}

fn give_parameters(
    machine: &Machine,
    mut child: Child,
    instance: &Instance,
    manifest: &Manifest,
) -> Result<Child, String> {
    for setting in &instance.parameters {
        let index = setting.index as usize;
        let repeated = manifest.parameters.get(index).is_some_and(|parameter| parameter.repeated);
        let values: Vec<String> = match &setting.setting {
            Setting::Values(values) => values.iter().map(ToString::to_string).collect(),
            Setting::FromRoot(name) => machine.own_parameter(name),
        };
        for value in values {
            child = if repeated { child.repeated_parameter(index, &value) } else { child.parameter(index, &value) }
                .map_err(|status| format!("parameter {index}: {}", status.text()))?;
        }
    }
    Ok(child)
}

fn give_devices(mut child: Child, instance: &Instance) -> Result<Child, String> {
    for (index, name) in instance.devices.iter().enumerate() {
        child = child.device(index, name).map_err(|status| format!("device `{name}`: {}", status.text()))?;
    }
    Ok(child)
}

fn provide(mut wired: Wired, slot: usize) -> Result<Wired, String> {
    let (importer, exporter) = service_provider::new_channel().map_err(status_text)?;
    wired.child = wired.child.endpoint(slot, exporter).map_err(status_text)?;
    wired.provided.push(importer);
    Ok(wired)
}

fn root(mut wired: Wired, slot: usize) -> Result<Wired, String> {
    let (importer, exporter) = directory::new_channel().map_err(status_text)?;
    wired.child = wired.child.endpoint(slot, exporter).map_err(status_text)?;
    wired.root = Some(importer);
    Ok(wired)
}

/// Binds a new channel of one contract to `$path` and passes its importing end to the child once the provider has
/// acknowledged it.
macro_rules! open {
    ($contract:ident, $wired:ident, $slot:ident, $path:ident, $namespace:ident) => {{
        let opened =
            $namespace.open($path, $contract::new_channel, |importer: $contract::Imp<$contract::states::Start>| {
                match wait(importer, CONNECT_LIMIT)? {
                    $contract::ImpStart::Success { next } => Ok(next),
                    $contract::ImpStart::Refused { .. } => Err(AccessError::Name(directory::NameError::NotPermitted)),
                    $contract::ImpStart::ChannelClosed(_) => Err(AccessError::ServerEnded),
                }
            });
        match opened {
            Ok(next) => {
                $wired.child =
                    $wired.child.endpoint($slot, next).map_err(|status| Error::Fatal(status_text(status)))?;
                Ok($wired)
            }
            Err(error) => Err(Error::Unreachable(Box::new($wired), format!("{}: {error}", $path))),
        }
    }};
}

fn bind(
    mut wired: Wired,
    slot: usize,
    contract: &str,
    path: &str,
    namespace: Option<&mut Namespace>,
) -> Result<Wired, Error> {
    let Some(namespace) = namespace else {
        let reason = format!("{path}: the directory service is not running");
        return Err(Error::Unreachable(Box::new(wired), reason));
    };
    match contract {
        "Directory" => open!(directory, wired, slot, path, namespace),
        "Disk" => open!(disk, wired, slot, path, namespace),
        "Console" => open!(console, wired, slot, path, namespace),
        "Pipe" => open!(pipe, wired, slot, path, namespace),
        "ServiceManager" => open!(service_manager, wired, slot, path, namespace),
        other => Err(Error::Fatal(format!(
            "{path}: the service manager cannot bind {other} for a program; give it the namespace instead"
        ))),
    }
}

fn status_text(status: sip::Status) -> String {
    String::from(status.text())
}
