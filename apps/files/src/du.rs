//! Shows the disk usage of files and folders.

mod sums;

use alloc::format;
use alloc::string::{String, ToString};

use client::access::AccessError;
use client::namespace::Namespace;
use contracts::directory::NodeKind;
use file_tools::volume::volume_of;
use file_tools::walk::{Step, Walk, is_folder};
use stdio::{Output, PipeBroken, report};
use text::{bytes, printable};

use crate::du::sums::Sums;

sip::startup!("du/manifest.toml");

struct Usage {
    /// Maximum depth of folders that get a line of their own.
    depth: usize,
    exact: bool,
    sums: Sums,
    output: Output,
    status: i32,
}

/// Prints a line for each folder, after its subfolders.
pub fn main(mut startup: Startup) -> i32 {
    let mut namespace = Namespace::new(startup.namespace);
    let asked_depth = startup.depth.map_or(usize::MAX, |depth| usize::try_from(depth).unwrap_or(0));
    let mut usage = Usage {
        depth: if startup.sum { 0 } else { asked_depth },
        exact: startup.bytes,
        sums: Sums::default(),
        output: Output::new(startup.output),
        status: 0,
    };
    if startup.paths.is_empty() {
        startup.paths.push(String::from("."));
    }
    for asked in &startup.paths {
        let full = path::absolute(&startup.working_folder, asked);
        match usage.measure(&mut namespace, asked, &full) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => usage.status = report::path_error(asked, &error),
            // The reader has ended.
            Err(_) => return 1,
        }
    }
    usage.output.finish_with(usage.status)
}

impl Usage {
    fn measure(
        &mut self,
        namespace: &mut Namespace,
        asked: &str,
        full: &str,
    ) -> Result<Result<(), AccessError>, PipeBroken> {
        let mut begin = || {
            let (kind, attributes) = namespace.attributes(full)?;
            let volume = volume_of(namespace, full)?;
            if !is_folder(kind) {
                self.sums.begin(&volume, &attributes);
                return Ok(None);
            }
            let mut folder = namespace.open_directory(full)?;
            // The mounted folder's own attributes are more complete than those of its mount point.
            let (_, attributes) = folder.own_attributes("")?;
            let walk = Walk::new(folder, String::from(asked), &volume)?;
            self.sums.begin(&volume, &attributes);
            Ok(Some(walk))
        };
        match begin() {
            Ok(Some(walk)) => self.go_through(walk)?,
            Ok(None) => {}
            Err(error) => return Ok(Err(error)),
        }
        self.line(asked).map(Ok)
    }

    fn go_through(&mut self, mut walk: Walk) -> Result<(), PipeBroken> {
        while let Some(step) = walk.step() {
            match step {
                Step::Name(name) => {
                    let mut look = || {
                        let part = name.part()?;
                        let (kind, mut attributes) = walk.here().folder()?.own_attributes(part)?;
                        if !is_folder(kind) {
                            self.sums.add(&walk.volume(), &attributes);
                            return Ok(());
                        }
                        walk.enter(part, kind)?;
                        if kind == NodeKind::Mount {
                            // As in `measure`; if the query fails, the listed attributes suffice.
                            let itself = walk.here().folder().and_then(|folder| folder.own_attributes(""));
                            attributes = itself.map_or(attributes, |(_, itself)| itself);
                        }
                        self.sums.begin(&walk.volume(), &attributes);
                        Ok::<(), AccessError>(())
                    };
                    if let Err(error) = look() {
                        self.status = report::path_error(&walk.here().path_of(&name.text()), &error);
                    }
                }
                Step::Left(name) => {
                    let depth = walk.here().depth() + 1;
                    let shown = walk.here().path_of(&name);
                    if depth <= self.depth {
                        self.line(&shown)?;
                    } else {
                        self.sums.end();
                    }
                }
            }
        }
        Ok(())
    }

    /// Prints the line of the innermost open folder.
    fn line(&mut self, shown: &str) -> Result<(), PipeBroken> {
        let sum = self.sums.end();
        let amount = if self.exact { sum.to_string() } else { bytes(sum) };
        self.output.write(format!("{amount:>10}  {}\n", printable(shown.as_bytes())).as_bytes())
    }
}
