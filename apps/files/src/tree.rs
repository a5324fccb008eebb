//! Draws folder trees.

use alloc::format;
use alloc::string::String;
use alloc::vec::{IntoIter, Vec};

use client::access::AccessError;
use client::namespace::{Name, Namespace};
use contracts::directory::NodeKind;
use file_tools::kind_text::mark;
use stdio::{Output, PipeBroken, report};
use text::{count, printable};

sip::startup!("tree/manifest.toml");

/// A folder being drawn.
struct Level {
    path: String,
    names: IntoIter<Name>,
    /// Prefix of its lines.
    indent: String,
}

struct Tree {
    namespace: Namespace,
    output: Output,
    depth: usize,
    all: bool,
    folders: u64,
    others: u64,
    status: i32,
}

/// Draws each path; without any, the working folder.
pub fn main(startup: Startup) -> i32 {
    let depth = startup.depth.map_or(usize::MAX, |depth| usize::try_from(depth).unwrap_or(0));
    let mut tree = Tree {
        namespace: Namespace::new(startup.namespace),
        output: Output::new(startup.output),
        depth,
        all: startup.all,
        folders: 0,
        others: 0,
        status: 0,
    };
    let mut paths = startup.paths;
    if paths.is_empty() {
        paths.push(String::from("."));
    }
    for asked in &paths {
        let full = path::absolute(&startup.working_folder, asked);
        if tree.draw(asked, full).is_err() {
            // The reader has ended.
            return 1;
        }
    }
    let total = format!("\n{} folders, {} other names\n", count(tree.folders), count(tree.others));
    match tree.output.write(total.as_bytes()) {
        Ok(()) => tree.output.finish_with(tree.status),
        Err(_) => 1,
    }
}

impl Tree {
    fn draw(&mut self, asked: &str, full: String) -> Result<(), PipeBroken> {
        let first = match self.names(&full) {
            Ok(names) => Level { path: full, names, indent: String::new() },
            Err(error) => {
                self.status = report::path_error(asked, &error);
                return Ok(());
            }
        };
        self.output.write(format!("{asked}\n").as_bytes())?;
        let mut levels = Vec::from([first]);
        while let Some(level) = levels.last_mut() {
            let Some(name) = level.names.next() else {
                levels.pop();
                continue;
            };
            let last = level.names.as_slice().is_empty();
            let line = format!(
                "{}{}{}{}\n",
                level.indent,
                if last { "└── " } else { "├── " },
                printable(&name.name),
                mark(name.kind)
            );
            let indent = format!("{}{}", level.indent, if last { "    " } else { "│   " });
            let below = path::join(&level.path, &name.text());
            self.output.write(line.as_bytes())?;
            if !matches!(name.kind, NodeKind::Directory | NodeKind::Mount) {
                self.others += 1;
                continue;
            }
            self.folders += 1;
            if levels.len() >= self.depth {
                continue;
            }
            match self.names(&below) {
                Ok(names) => levels.push(Level { path: below, names, indent }),
                Err(error) => self.status = report::path_error(&below, &error),
            }
        }
        Ok(())
    }

    fn names(&mut self, full: &str) -> Result<IntoIter<Name>, AccessError> {
        let mut names = self.namespace.names(full)?;
        names.retain(|name| self.all || !name.name.starts_with(b"."));
        Ok(names.into_iter())
    }
}
