//! Listings of names and folders.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use client::access::AccessError;
use client::namespace::{Name, Namespace};
use contracts::directory::{NodeAttributes, NodeKind};
use file_tools::kind_text::{mark, mode};
use stdio::report;
use text::{Align, Moment, Table, bytes, printable};

/// Format of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Long format: attributes, one name per line.
    pub long: bool,
    /// Includes names that begin with a dot.
    pub all: bool,
    /// Sizes with units, as `1.5 KiB`, instead of bytes.
    pub units: bool,
}

/// Listing of one path.
enum Listed {
    /// A non-folder: its kind, its attributes and the target of a link.
    Single(NodeKind, NodeAttributes, Option<String>),
    /// The lines of a folder.
    Folder(String),
}

/// Lists `paths`, resolved from `working_folder`: first everything that is not a folder, then each folder. Returns
/// the text and the exit status; failures are reported and the rest is listed.
pub fn list(namespace: &mut Namespace, working_folder: &str, paths: &[String], style: Style) -> (String, i32) {
    let here = [String::from(".")];
    let paths = if paths.is_empty() { &here[..] } else { paths };
    let (mut singles, mut folders) = (Vec::new(), Vec::new());
    let mut status = 0;
    for asked in paths {
        match list_one(namespace, &path::absolute(working_folder, asked), style) {
            Ok(Listed::Single(kind, attributes, target)) => {
                singles.push((printable(asked.as_bytes()), kind, attributes, target));
            }
            Ok(Listed::Folder(lines)) => folders.push((asked, lines)),
            Err(error) => status = report::path_error(asked, &error),
        }
    }
    let mut out = listed_singles(singles, style);
    for (asked, lines) in folders {
        if paths.len() > 1 {
            out += &format!("{}{}:\n", if out.is_empty() { "" } else { "\n" }, printable(asked.as_bytes()));
        }
        out += &lines;
    }
    (out, status)
}

fn listed_singles(singles: Vec<(String, NodeKind, NodeAttributes, Option<String>)>, style: Style) -> String {
    if !style.long {
        return singles.into_iter().map(|(name, ..)| name + "\n").collect();
    }
    let mut table = long_table();
    for (name, kind, attributes, target) in singles {
        table.row(long_row(&name, kind, attributes, target, style));
    }
    table.body()
}

fn list_one(namespace: &mut Namespace, full: &str, style: Style) -> Result<Listed, AccessError> {
    let (kind, attributes) = namespace.attributes(full)?;
    let mut folder = match kind {
        NodeKind::Directory | NodeKind::Mount => namespace.open_directory(full)?,
        // A link to a folder is listed as that folder, any other link as itself.
        NodeKind::Link => match namespace.open_directory(full) {
            Ok(folder) => folder,
            Err(_) => return Ok(Listed::Single(kind, attributes, namespace.read_link(full).ok())),
        },
        _ => return Ok(Listed::Single(kind, attributes, None)),
    };
    let mut names: Vec<Name> = Vec::new();
    folder.for_each_name(|name| names.push(name))?;
    names.retain(|name| style.all || !name.name.starts_with(b"."));
    names.sort_by(|left, right| left.name.cmp(&right.name));
    if !style.long {
        let line = |name: &Name| format!("{}{}\n", printable(&name.name), mark(name.kind));
        return Ok(Listed::Folder(names.iter().map(line).collect()));
    }
    let mut table = long_table();
    for name in &names {
        let text = name.text();
        match folder.own_attributes(&text) {
            Ok((kind, attributes)) => {
                let target = if kind == NodeKind::Link { folder.read_link(&text).ok() } else { None };
                table.row(long_row(&printable(&name.name), kind, attributes, target, style));
            }
            // A name removed in the meantime is no longer part of the folder.
            Err(AccessError::Name(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Listed::Folder(table.body()))
}

/// A long listing has no headings: its columns are those of every Unix.
fn long_table() -> Table {
    Table::new(&[("", Align::Left), ("", Align::Right), ("", Align::Right), ("", Align::Left), ("", Align::Left)])
}

fn long_row(
    name: &str,
    kind: NodeKind,
    attributes: NodeAttributes,
    target: Option<String>,
    style: Style,
) -> [String; 5] {
    let modified = match attributes.modified_s {
        0 => String::from("-"),
        seconds => Moment::from_unix(seconds).to_string(),
    };
    let arrow = target.map_or(String::new(), |target| format!(" -> {}", printable(target.as_bytes())));
    [
        mode(kind, attributes.permissions),
        attributes.links.to_string(),
        if style.units { bytes(attributes.size_bytes) } else { attributes.size_bytes.to_string() },
        modified,
        format!("{name}{}{arrow}", mark(kind)),
    ]
}
