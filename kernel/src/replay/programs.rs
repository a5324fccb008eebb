//! The programs of a recording, mapped where they were.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

use recording::Event;

use crate::{installed, program};

/// Maps the images of all programs that start in a recording, at their addresses, after all checks.
///
/// # Errors
/// A program is missing or another, or cannot be replayed.
pub fn load(events: &[Event]) -> Result<(), String> {
    let mut images = BTreeMap::new();
    for started in events.iter().filter_map(Event::started) {
        images.entry(started.image).or_insert(started);
    }
    for (base, started) in images {
        let name = &started.program;
        let program = installed::find(name).ok_or_else(|| {
            format!("program {name} is not in the recorded system image: it was installed while the system ran, and cannot be replayed")
        })?;
        if program.identity != started.identity {
            return Err(format!(
                "program {name} is not the one that was recorded: its package has another digest; replay it with the system image that was recorded"
            ));
        }
        program::place_next_at(base as usize)
            .map_err(|()| format!("the recording has program {name} at {base:#x}, where there are no images"))?;
        let loaded = match program.loaded.get() {
            Some(loaded) => loaded,
            None => installed::load(program)?,
        };
        if !loaded.data.is_empty() {
            return Err(format!(
                "program {name} has unsafe code, with memory of its own that the ABI does not see; it cannot be replayed"
            ));
        }
        if loaded.base as u64 != base {
            return Err(format!("program {name} was at two addresses; its recording is damaged"));
        }
    }
    Ok(())
}
