//! Sets the access control lists of names.
//!
//! Deliberately not here: authorization; the server of the name checks its rules and lists.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use client::namespace::{NameAcl, Namespace};
use principal::{Acl, AclError, Entry, Right};
use stdio::report;

sip::startup!("setacl/manifest.toml");

/// Exit status: invalid arguments.
const MISUSE: i32 = 2;

/// Change to a list.
enum Change<'a> {
    Replace(&'a [String]),
    PutBefore(&'a [String]),
    Remove(usize),
    TakeAway,
}

/// Sets the list of a name.
pub fn main(startup: Startup) -> i32 {
    let chosen = choose(&startup.entries, startup.add, startup.remove, startup.none);
    let change = match chosen {
        Ok(change) => change,
        Err(error) => {
            report::error(format_args!("{error}"));
            return MISUSE;
        }
    };
    let mut namespace = Namespace::new(startup.namespace);
    let mut full = path::absolute(&startup.working_folder, &startup.path);
    if path::is_from_inside(&startup.path) {
        namespace = match namespace.open_directory(&full) {
            Ok(inside) => inside,
            Err(error) => return report::path_error(&startup.path, &error),
        };
        full.clear();
    }
    let current = match change {
        Change::Replace(_) | Change::TakeAway => None,
        Change::PutBefore(_) | Change::Remove(_) => match namespace.acl(&full) {
            Ok(found) => found,
            Err(error) => return report::path_error(&startup.path, &error),
        },
    };
    let list = match changed(current.as_ref(), &change) {
        Ok(list) => list,
        Err(error) => return report::path_error(&startup.path, &error),
    };
    let own = sip::principal::own();
    if let Some(list) = &list
        && !startup.force
        && !list.decide(&own, Right::SetAcl).allowed
    {
        let why = format!("this would lock {own} out of the list; allow it set-acl, or use --force");
        return report::path_error(&startup.path, &why);
    }
    let text = list.map(|list| list.text()).unwrap_or_default();
    match namespace.set_acl(&full, &text) {
        Ok(()) => 0,
        Err(error) => report::path_error(&startup.path, &error),
    }
}

fn choose(entries: &[String], add: bool, remove: i64, none: bool) -> Result<Change<'_>, &'static str> {
    match (entries.is_empty(), add, remove, none) {
        (false, false, 0, false) => Ok(Change::Replace(entries)),
        (false, true, 0, false) => Ok(Change::PutBefore(entries)),
        (true, false, 0, true) => Ok(Change::TakeAway),
        (true, false, number @ 1.., false) => {
            usize::try_from(number).map(Change::Remove).map_err(|_| "entries are numbered from 1, as `acl` shows them")
        }
        (true, false, ..=-1, false) => Err("entries are numbered from 1, as `acl` shows them"),
        (true, false, 0, false) => Err("give entries in quotes, such as 'allow read **', or -r NUMBER, or --none"),
        (true, true, ..) => Err("-a needs entries to add, in quotes, such as 'deny write **'"),
        _ => Err("choose one: entries, -a with entries, -r NUMBER, or --none"),
    }
}

/// Returns the changed list; `None` removes it.
fn changed(current: Option<&NameAcl>, change: &Change<'_>) -> Result<Option<Acl>, String> {
    let list_of = |entries: &[String]| Acl::parse(&entries.join("\n")).map_err(|error| told(&error));
    let now = || Acl::parse(current.map_or("", |acl| &acl.text)).map_err(|error| told(&error));
    match change {
        Change::TakeAway => Ok(None),
        Change::Replace(entries) => Ok(Some(list_of(entries)?)),
        Change::PutBefore(entries) => {
            let mut list = list_of(entries)?;
            let mut rest: Vec<Entry> = now()?.entries().to_vec();
            if current.is_none() {
                // Without a list everything was allowed; with one, only explicitly allowed access is.
                rest.push(Entry::parse("allow all **", 1).map_err(|error| told(&error))?);
            }
            rest.into_iter().try_for_each(|entry| list.push(entry)).map_err(|error| told(&error))?;
            Ok(Some(list))
        }
        Change::Remove(number) => {
            let mut list = now()?;
            if number.checked_sub(1).and_then(|index| list.remove(index)).is_none() {
                let count = list.entries().len();
                return Err(format!("no entry {number}; `acl` shows the {count} entries"));
            }
            if list.is_empty() {
                return Err("an empty list; use --none to remove it".to_string());
            }
            Ok(Some(list))
        }
    }
}

fn told(error: &AclError) -> String {
    format!("{error}; {}", error.remedy())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(entries: &[&str]) -> Vec<String> {
        entries.iter().map(|entry| entry.to_string()).collect()
    }

    fn list(current: Option<&str>, change: &Change<'_>) -> Result<Option<String>, String> {
        let current = current.map(|text| NameAcl { text: text.into(), inherited_from: Some("/".into()) });
        changed(current.as_ref(), change).map(|list| list.map(|list| list.text()))
    }

    #[test]
    fn each_change_gives_the_list_that_is_meant() {
        let new = entries(&["deny write ..a.b", "allow read **"]);
        let replaced = list(Some("allow all **"), &Change::Replace(&new)).unwrap();
        assert_eq!(replaced.as_deref(), Some("deny write ..a.b\nallow read **\n"));
        let one = entries(&["deny write ..a.b"]);
        let narrowed = list(Some("allow read **"), &Change::PutBefore(&one)).unwrap();
        assert_eq!(narrowed.as_deref(), Some("deny write ..a.b\nallow read **\n"));
        let first = list(None, &Change::PutBefore(&one)).unwrap();
        assert_eq!(first.as_deref(), Some("deny write ..a.b\nallow all **\n"));
        let fewer = list(Some("deny write ..a.b\nallow read **"), &Change::Remove(1)).unwrap();
        assert_eq!(fewer.as_deref(), Some("allow read **\n"));
        assert_eq!(list(Some("allow all **"), &Change::TakeAway).unwrap(), None);
    }

    #[test]
    fn what_cannot_be_done_is_told_with_what_can() {
        assert!(list(Some("allow all **"), &Change::Remove(2)).unwrap_err().contains("no entry 2"));
        assert!(list(Some("allow all **"), &Change::Remove(1)).unwrap_err().contains("--none"));
        assert!(list(None, &Change::Replace(&entries(&["allow fly **"]))).unwrap_err().contains("unknown right `fly`"));
        let one = entries(&["allow all **"]);
        for (entries, add, remove, none, words) in [
            (&one[..0], false, 0, false, "give entries"),
            (&one[..0], true, 0, false, "-a needs entries"),
            (&one[..0], false, -1, false, "numbered from 1"),
            (&one[..], false, 1, false, "choose one"),
            (&one[..], false, 0, true, "choose one"),
            (&one[..0], false, 1, true, "choose one"),
        ] {
            let told = choose(entries, add, remove, none).err().unwrap();
            assert!(told.contains(words), "{told}");
        }
    }
}
