//! Omits repeated adjacent lines.

mod key;

use alloc::format;
use alloc::vec::Vec;

use client::namespace::Namespace;
use file_tools::feed::{Error, Feed};
use stdio::{Output, report};
use tool_kit::lines::{More, Outcome, Waits, for_each_line};

use crate::uniq::key::{Case, is_same, key_of};

sip::startup!("uniq/manifest.toml");

/// Adjacent equal lines.
#[derive(Default)]
struct Run {
    first: Vec<u8>,
    count: u64,
}

/// Output for a run of equal lines.
struct Shown {
    counts: bool,
    repeated: bool,
    unique: bool,
}

/// Prints the first line of each run.
pub fn main(startup: Startup) -> i32 {
    let Ok(skip_fields) = usize::try_from(startup.skip_fields) else {
        report::error(format_args!("`-f {}` is not a number of fields; use 0 or more", startup.skip_fields));
        return 2;
    };
    if startup.paths.len() > 1 {
        report::error(format_args!("uniq reads one file; join several with `sort` or `cat`"));
        return 2;
    }
    let case = if startup.ignore_case { Case::Folded } else { Case::Distinct };
    let shown = Shown { counts: startup.count, repeated: startup.repeated, unique: startup.unique };
    let mut output = Output::new(startup.output);
    let feed = Feed {
        namespace: Namespace::new(startup.namespace),
        working_folder: startup.working_folder,
        paths: startup.paths,
        input: startup.input,
        usage: "uniq [PATH]",
    };
    let mut failed = false;
    let outcome = feed.for_each(|name, reader| {
        let mut run = Run::default();
        let outcome = for_each_line(name, reader, |line, waits| {
            if run.count > 0 && is_same(key_of(&run.first, skip_fields), key_of(line, skip_fields), case) {
                run.count += 1;
                return Ok(More::Wanted);
            }
            shown.print(&run, &mut output)?;
            run = Run { first: line.to_vec(), count: 1 };
            if waits == Waits::Perhaps {
                output.flush()?;
            }
            Ok(More::Wanted)
        })?;
        failed |= outcome == Outcome::Failed;
        shown.print(&run, &mut output)
    });
    outcome.map_or(1, |status| output.finish_with(status.max(i32::from(failed))))
}

impl Shown {
    fn print(&self, run: &Run, output: &mut Output) -> Result<(), Error> {
        let is_wanted = match run.count {
            0 => false,
            1 => !self.repeated,
            _ => !self.unique,
        };
        if !is_wanted {
            return Ok(());
        }
        if self.counts {
            output.write(format!("{:7} ", run.count).as_bytes())?;
        }
        output.write(&run.first)?;
        Ok(output.write(b"\n")?)
    }
}
