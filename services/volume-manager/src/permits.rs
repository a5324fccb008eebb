//! Access checks for mount, unmount, format and check.
//!
//! A manager may read and write all disks and register all mount points (a confused deputy unless it checks), so it
//! performs the directory service's checks for its client: `register` on the mount point, by the ACL that governs the
//! name or would govern it; `connect` on the disk. Key type: [`Client`]. Deliberately not here: the ACLs, which the
//! directory service stores, and the right to bind to the manager, which is in the system's rules.

use alloc::format;
use alloc::string::String;

use client::access::AccessError;
use client::namespace::{NameAcl, Namespace};
use contracts::directory::{NameError, NodeKind};
use contracts::volume_manager::VolumeError;
use principal::{Acl, Right};
use sip::channel::TypedEndpoint;

use crate::Manager;
use crate::error::Error;

/// The principal at the other end of a channel at the time of the request; `None` if the kernel cannot determine it.
pub(crate) struct Client(Option<String>);

impl Client {
    /// The client at the other end.
    pub(crate) fn of(endpoint: &impl TypedEndpoint) -> Client {
        Client(sip::principal::of_peer(endpoint).ok())
    }
}

impl Manager {
    /// Checks that the client may mount and unmount at this path.
    pub(crate) fn permit_point(&self, client: &Client, point: &str) -> Result<(), Error> {
        self.permit(client, point, Right::Register)
    }

    /// Checks that the client may use this disk.
    pub(crate) fn permit_disk(&self, client: &Client, disk: &str) -> Result<(), Error> {
        self.permit(client, disk, Right::Connect)
    }

    fn permit(&self, client: &Client, path: &str, right: Right) -> Result<(), Error> {
        let refused = || {
            let explanation = format!("{path}: you may not; `acl {path}` says who has the right `{right}` there");
            Error::new(VolumeError::NotPermitted, explanation)
        };
        let Some(principal) = &client.0 else { return Err(refused()) };
        let found = governing_list(&mut self.namespace.borrow_mut(), path).map_err(|error| {
            let explanation = format!("{path}: cannot check your access: {error}");
            Error::new(VolumeError::NotPermitted, explanation)
        })?;
        let Some(found) = found else { return Ok(()) };
        refusal(&found, principal, right).map_or(Ok(()), |rule| {
            sip::audit::refused(principal, right.word(), path, &rule);
            Err(refused())
        })
    }
}

/// The ACL that governs a name, or that would govern it on creation. Stops at the first mount point on the path: file
/// systems are not queried.
fn governing_list(namespace: &mut Namespace, requested: &str) -> Result<Option<NameAcl>, AccessError> {
    let mut found = namespace.acl("")?.map(|acl| NameAcl { inherited_from: Some("/".into()), ..acl });
    let ends = requested.match_indices('/').map(|(end, _)| end).filter(|&end| end > 0).chain([requested.len()]);
    for name in ends.map(|end| &requested[..end]) {
        let kind = match namespace.own_attributes(name) {
            Ok((kind, _)) => Some(kind),
            Err(AccessError::Name(NameError::NotFound)) => None,
            Err(error) => return Err(error),
        };
        let from = |acl: NameAcl| NameAcl { inherited_from: acl.inherited_from.or_else(|| Some(name.into())), ..acl };
        match namespace.acl(name) {
            Ok(acl) => found = acl.map(from),
            // Inherited on creation.
            Err(AccessError::Name(NameError::NotFound)) => {}
            Err(error) => return Err(error),
        }
        if kind != Some(NodeKind::Directory) {
            break;
        }
    }
    Ok(found)
}

/// Why an ACL denies the principal the right; `None` if it grants it. An invalid ACL grants nothing.
fn refusal(found: &NameAcl, principal: &str, right: Right) -> Option<String> {
    let decided = Acl::parse(&found.text).unwrap_or_default().decide(principal, right);
    let from = found.inherited_from.as_deref().unwrap_or_default();
    (!decided.allowed).then(|| format!("{} of the list of {from}", decided.rule))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_its_entry_and_a_damaged_list_grants_nothing() {
        let list = |text: &str| NameAcl { text: text.into(), inherited_from: Some("/fs".into()) };
        let ask = |text: &str, who: &str| refusal(&list(text), who, Right::Register);
        let one = "deny register login.singularity@* + **\nallow all **\n";
        assert_eq!(ask(one, "shell.singularity + mount.singularity"), None);
        let guest = "login.singularity@guest + shell.singularity + mount.singularity";
        assert_eq!(ask(one, guest).as_deref(), Some("entry 1 of the list of /fs"));
        assert_eq!(ask("permit all **", guest).as_deref(), Some("no entry of the list of /fs"));
    }
}
