//! Files of recordings: one that is begun, and one that is replayed.

use std::convert::Infallible;
use std::error::Error;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use hal_hosted::{Arena, Configuration, Layout};
use recording::{Header, Reader};

use crate::arguments::Arguments;
use crate::started;

/// Creates the file of a recording.
pub fn create(path: &Path) -> Result<Arc<File>, String> {
    File::create(path)
        .map(Arc::new)
        .map_err(|error| format!("recording {}: it cannot be created ({error}); check the path", path.display()))
}

/// Replays a recording to its end, which ends the process too; returns only if it cannot.
pub fn run(arguments: &Arguments, path: &Path) -> Result<Infallible, Box<dyn Error>> {
    let shown = path.display();
    let file = std::fs::read(path)
        .map_err(|error| format!("recording {shown}: it cannot be read ({error}); check the path"))?;
    let reader = Reader::new(&file).map_err(|error| format!("recording {shown} {error}"))?;
    drop(file);
    let configuration = Configuration {
        confinement: arguments.confinement(),
        processors: Some(1),
        recording: arguments.complete.as_deref().map(create).transpose()?,
        replayed: Some(layout(&reader.header)),
        ..Configuration::default()
    };
    let machine = started(&configuration).map_err(|error| format!("recording {shown}: {error}"))?;
    // Leaked: the kernel reads it as long as the process lives.
    let system_image = reader.system().leak();
    let of = match (&arguments.complete, arguments.process) {
        (Some(_), _) => kernel::Part::Completed,
        (None, Some(id)) => kernel::Part::Process(id),
        (None, None) => kernel::Part::All,
    };
    let replay = kernel::Replay { system_image, events: reader.into_events(), of };
    Err(format!("recording {shown}: {}", kernel::replay(machine, replay)).into())
}

fn layout(header: &Header) -> Layout {
    let [images, stacks, memory, windows] =
        header.arenas.map(|(base, bytes)| Arena { base: base as usize, bytes: bytes as usize });
    Layout { images, stacks, memory, memory_is_clear: true, windows }
}
