//! Reading and changing the files of another program.

use alloc::format;

use contracts::directory::CreateMode;

use crate::names::is_refused;
use crate::{Attack, Intruder, Outcome, check};

pub(crate) const ATTACKS: &[(&str, Attack)] =
    &[("read-a-file", read_a_file), ("change-a-file", change_a_file), ("open-the-list", open_the_list)];

fn read_a_file(intruder: &mut Intruder) -> Outcome {
    let target = intruder.target.clone();
    let namespace = intruder.namespace()?;
    is_refused("reading", namespace.open_file(&target).map(drop))?;
    let (folder, _) = target.rsplit_once('/').unwrap_or_default();
    is_refused("the names beside it", namespace.names(folder).map(drop))?;
    is_refused("its attributes", namespace.attributes(&target).map(drop))
}

fn change_a_file(intruder: &mut Intruder) -> Outcome {
    let target = intruder.target.clone();
    let namespace = intruder.namespace()?;
    is_refused("writing over it", namespace.create_file(&target, 0o644, CreateMode::OpenExisting).map(drop))?;
    is_refused("a name for it elsewhere", namespace.hard_link(&target, "/fs/vault/open/stolen"))?;
    is_refused("moving it", namespace.rename(&target, "/fs/vault/open/stolen"))?;
    is_refused("removing it", namespace.remove_file(&target))?;
    check!(namespace.open_file("/fs/vault/open/stolen").is_err(), "it has another name now");
    Ok(())
}

/// Sets a list that grants itself access.
fn open_the_list(intruder: &mut Intruder) -> Outcome {
    let target = intruder.target.clone();
    let namespace = intruder.namespace()?;
    is_refused("a list for the file", namespace.set_acl(&target, "allow all **\n"))?;
    let (folder, _) = target.rsplit_once('/').unwrap_or_default();
    is_refused("a list for its folder", namespace.set_acl(folder, "allow all **\n"))?;
    is_refused(&format!("{target} after that"), namespace.open_file(&target).map(drop))
}
