//! What a recording says of processes: their programs, and the call that each return belongs to.

use std::collections::BTreeMap;

use recording::{Event, EventKind};

/// Names of processes, and the calls.
pub struct Trace {
    programs: BTreeMap<u64, String>,
    ends: BTreeMap<u64, String>,
    /// Index of the call of each return, by the return's index.
    calls: BTreeMap<usize, usize>,
}

impl Trace {
    /// Reads the events once.
    pub fn new(events: &[Event]) -> Trace {
        let mut trace = Trace { programs: BTreeMap::new(), ends: BTreeMap::new(), calls: BTreeMap::new() };
        let mut open = BTreeMap::new();
        for (index, event) in events.iter().enumerate() {
            match event.kind {
                EventKind::Started => {
                    if let Some(started) = event.started() {
                        trace.programs.entry(event.process).or_insert(started.program);
                    }
                }
                EventKind::Called => drop(open.insert((event.process, event.thread), index)),
                EventKind::Returned => {
                    if let Some(call) = open.remove(&(event.process, event.thread)) {
                        trace.calls.insert(index, call);
                    }
                }
                EventKind::Ended => drop(trace.ends.insert(event.process, event.text())),
                EventKind::Opened | EventKind::Installed => {}
            }
        }
        trace
    }

    /// A process as text: program and id.
    pub fn process(&self, id: u64) -> String {
        let program = self.programs.get(&id).map_or("?", String::as_str);
        format!("{program} ({id})")
    }

    /// The call that a return, by its index, belongs to.
    pub fn call<'a>(&self, events: &'a [Event], returned: usize) -> Option<&'a Event> {
        events.get(*self.calls.get(&returned)?)
    }

    /// A line for each process.
    pub fn processes(&self) -> Vec<String> {
        let end = |id: &u64| self.ends.get(id).map_or("ran to the end of the recording", String::as_str);
        self.programs.iter().map(|(id, program)| format!("{id:>6}  {program}: {}", end(id))).collect()
    }
}

/// The name of an event's function.
pub fn name(event: &Event) -> &'static str {
    abi::FUNCTIONS.get(usize::from(event.function)).map_or("?", |function| function.name)
}
