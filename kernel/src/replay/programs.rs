//! The programs of a recording, mapped where they were.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

use recording::{Event, EventKind};

use crate::installed;
use crate::program::{self, Program};

/// Maps the images of all programs that start in a recording, at their addresses, after all checks.
///
/// # Errors
/// A program is missing or another.
pub fn load(events: &[Event]) -> Result<(), String> {
    for event in events.iter().filter(|event| event.kind == EventKind::Installed) {
        // What was refused then is refused again.
        let _ = installed::install(event.bytes());
    }
    let mut images = BTreeMap::new();
    for started in events.iter().filter_map(Event::started).filter(|started| !started.has_own_data) {
        images.entry(started.image).or_insert(started);
    }
    for (base, started) in images {
        let name = &started.program;
        let is_same =
            |program: &&'static Program| program.identity == started.identity && program.manifest.name == *name;
        let program = installed::ever().find(is_same).ok_or_else(|| {
            format!("program {name} is not the one that was recorded: the system image of the recording has no package with its digest")
        })?;
        program::place_next_at(base as usize)
            .map_err(|()| format!("the recording has program {name} at {base:#x}, where there are no images"))?;
        let loaded = match program.loaded.get() {
            Some(loaded) => loaded,
            None => installed::load(program)?,
        };
        if loaded.base as u64 != base {
            return Err(format!("program {name} was at two addresses; its recording is damaged"));
        }
    }
    Ok(())
}
