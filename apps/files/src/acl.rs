//! Shows the access control lists that govern names.

use alloc::format;
use alloc::string::String;

use client::access::AccessError;
use client::namespace::{NameAcl, Namespace};
use principal::{Acl, AclError, Principal, Right, Rights};
use stdio::{Output, report};
use text::printable;

sip::startup!("acl/manifest.toml");

/// Output format of a list.
enum Show<'a> {
    Everything,
    Entries,
    RightsOf(&'a str),
}

/// Prints the governing list of each name.
pub fn main(startup: Startup) -> i32 {
    let mut output = Output::new(startup.output);
    let mut namespace = Namespace::new(startup.namespace);
    let show = match (&startup.who, startup.entries) {
        (Some(who), _) => {
            if let Err(error) = Principal::parse(who) {
                report::error(format_args!("`{who}` is not a principal: {error}; `ps` shows the running ones"));
                return 2;
            }
            Show::RightsOf(who)
        }
        (None, true) => Show::Entries,
        (None, false) => Show::Everything,
    };
    let here = [String::from(".")];
    let paths = if startup.paths.is_empty() { &here[..] } else { &startup.paths };
    let mut status = 0;
    for asked in paths {
        let full = path::absolute(&startup.working_folder, asked);
        match deciding(&mut namespace, asked, &full) {
            Ok(found) => match text(&full, found.as_ref(), &show) {
                Ok(text) if output.write(text.as_bytes()).is_ok() => {}
                Ok(_) => return 1,
                Err(error) => status = report::path_error(asked, &error),
            },
            Err(error) => status = report::path_error(asked, &error),
        }
    }
    output.finish_with(status)
}

/// Returns the ACL that governs the name: for the root of a volume without one, the mount point's.
fn deciding(namespace: &mut Namespace, asked: &str, full: &str) -> Result<Option<NameAcl>, AccessError> {
    if path::is_from_inside(asked)
        && let Some(found) = namespace.open_directory(full)?.acl("")?
    {
        return Ok(Some(found));
    }
    namespace.acl(full)
}

fn text(full: &str, found: Option<&NameAcl>, show: &Show<'_>) -> Result<String, AclError> {
    let name = printable(full.as_bytes());
    let Some(NameAcl { text, inherited_from }) = found else {
        return Ok(match show {
            Show::Entries => String::new(),
            Show::RightsOf(_) => format!("{name}: no list; the system rules apply\n"),
            Show::Everything => format!("{name}: no list; only the system rules apply\n"),
        });
    };
    let acl = Acl::parse(text)?;
    let source = match inherited_from {
        None => String::from("its own list"),
        Some(folder) => format!("the list of {}", printable(folder.as_bytes())),
    };
    Ok(match show {
        Show::Entries => acl.text(),
        Show::RightsOf(who) => rights_of(&name, &source, &acl, who),
        Show::Everything => {
            let numbered = acl.entries().iter().enumerate().map(|(index, entry)| format!("{:4}  {entry}\n", index + 1));
            format!("{name}: {source}\n{}", numbered.collect::<String>())
        }
    })
}

fn rights_of(name: &str, source: &str, acl: &Acl, who: &str) -> String {
    let given = acl.rights_of(who);
    let mut text = match given.is_empty() {
        true => format!("{name}: {source} gives {who} nothing\n"),
        false => format!("{name}: {source} gives {who} {given}\n"),
    };
    for right in Rights::ALL.without(given).each() {
        text += &format!("  not {right}: {}\n", acl.decide(who, right).rule);
    }
    for right in Right::ALL.iter().filter(|&&right| given.has(right)) {
        text += &format!("      {right}: {}\n", acl.decide(who, *right).rule);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(text: &str) -> NameAcl {
        NameAcl { text: text.into(), inherited_from: None }
    }

    #[test]
    fn a_list_is_shown_with_numbers_and_where_it_comes_from() {
        let list = own("deny write ..guest.a\nallow all **\n");
        let shown = text("/x", Some(&list), &Show::Everything).unwrap();
        assert_eq!(shown, "/x: its own list\n   1  deny write ..guest.a\n   2  allow all **\n");
        let inherited = NameAcl { inherited_from: Some("/".into()), ..list };
        assert!(text("/x", Some(&inherited), &Show::Everything).unwrap().starts_with("/x: the list of /\n"));
        assert_eq!(text("/x", Some(&inherited), &Show::Entries).unwrap(), "deny write ..guest.a\nallow all **\n");
        assert_eq!(text("/x", None, &Show::Entries).unwrap(), "");
    }

    #[test]
    fn the_rights_of_a_principal_are_shown_with_what_decided() {
        let list = own("deny write ..guest.a\nallow read,write **\n");
        let shown = text("/x", Some(&list), &Show::RightsOf("b.c + guest.a")).unwrap();
        assert!(shown.starts_with("/x: its own list gives b.c + guest.a read\n"), "{shown}");
        assert!(shown.contains("  not write: entry 1\n") && shown.contains("  not connect: no entry\n"), "{shown}");
        assert!(shown.contains("      read: entry 2\n"), "{shown}");
        let nothing = text("/x", Some(&own("deny all **")), &Show::RightsOf("a.b")).unwrap();
        assert!(nothing.starts_with("/x: its own list gives a.b nothing\n"));
    }
}
