//! The events of a replay, one after the other: threads start, calls are compared and answered, processes end.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use abi::limits::{MESSAGE_WORDS, NEVER, TEXT_BYTES};
use abi::{AbiReturn, DeviceOperation, EpitaphKind, Printable, Status};
use alloc::string::ToString;
use recording::effects::{self, Named};
use recording::{ANY_FUNCTION, Content, Digest, Event, EventKind};

use crate::call_words;
use crate::machine::machine;
use crate::process::Epitaph;
use crate::recorder;

use super::checks::{self, Hash};
use super::contexts::{Context, Stop};
use super::serial::{self, Line};
use super::{Part, Replay, memory, output, position};

/// Time of a thread whose process ended by a fault of one of its threads, and that makes no more calls.
const LAST_STRETCH_NS: u64 = 10_000_000_000;

/// A replay that went as the recording.
pub struct Done {
    /// Number of events, without those of processes that were not replayed further.
    pub events: usize,
    /// Number of processes.
    pub processes: usize,
    /// Of all calls that the programs made, and the blocks that they sent.
    pub hash: u64,
    /// Exit status of the process replayed alone, or of the first one.
    pub status: u8,
}

/// A thread's place in the replay.
enum Place {
    /// In a call.
    At { function: usize, arguments: [u64; 6] },
    /// Stopped otherwise, or not let run: it makes no more calls.
    Gone(Option<Epitaph>),
}

struct Thread {
    context: &'static Context,
    place: Place,
    /// Of its calls.
    digest: Digest,
    /// The stretch that it ran last; 0 if none.
    stretch: u64,
}

#[derive(Default)]
struct Process {
    program: String,
    writes_to_machine: bool,
    threads: BTreeMap<u64, Thread>,
    blocks: BTreeMap<u64, Named>,
    consoles: Vec<u64>,
    /// The line of a machine whose console it is, and the handle of its device.
    line: Option<(u64, Line)>,
    /// Whether it is not replayed further.
    is_opaque: bool,
    /// How it ended by what it did itself.
    end: Option<Epitaph>,
    calls: u64,
}

struct State {
    processes: BTreeMap<u64, Process>,
    /// Calls that are still to come, by process and thread.
    calls_left: BTreeMap<(u64, u64), usize>,
    /// Kinds of the ends that are to come.
    ends: BTreeMap<u64, EpitaphKind>,
    hash: Hash,
    shown: Shown,
    status: Option<u8>,
}

/// Replays the events; of one process alone, after all have been replayed once, silently, for the contents of the blocks
/// that it gets from others. Or completes them: replays them silently and fills in the calls.
///
/// # Errors
/// A program does something else than was recorded: where, what was recorded, and what it did.
pub fn replay(replay: &mut Replay) -> Result<Done, String> {
    let events = &mut replay.events;
    let alone = match replay.of {
        Part::All => return run(events, None, Shown::All, FillIn::Nothing),
        Part::Completed => {
            let done = run(events, None, Shown::Nothing, FillIn::Calls);
            recorder::write_file(replay.system_image, events);
            return done.map(|done| Done { status: 0, ..done });
        }
        Part::Process(id) => id,
    };
    if events.iter().any(|event| event.process == alone && has_left(event)) {
        run(events, Some(alone), Shown::Nothing, FillIn::Blocks)?;
    }
    events.retain(|event| event.process == alone);
    run(events, Some(alone), Shown::All, FillIn::Nothing)
}

fn has_left(event: &Event) -> bool {
    event.blocks.iter().any(|block| block.content == Content::Left)
}

/// What a replay shows of what programs write, and of their ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    All,
    Nothing,
}

/// What a replay writes into the events.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FillIn {
    Nothing,
    /// The contents of blocks of the process that is to be replayed alone.
    Blocks,
    /// Arguments of calls, and the words that they read.
    Calls,
}

/// Replays these events.
fn run(events: &mut [Event], alone: Option<u64>, shown: Shown, fill_in: FillIn) -> Result<Done, String> {
    let mut calls_left = BTreeMap::new();
    let mut ends = BTreeMap::new();
    for event in events.iter() {
        match event.kind {
            EventKind::Called => *calls_left.entry((event.process, event.thread)).or_default() += 1,
            EventKind::Ended => drop(ends.insert(event.process, kind_of(event))),
            _ => {}
        }
    }
    if shown == Shown::All {
        position::begin();
    }
    let (processes, hash) = (BTreeMap::new(), Hash::default());
    let mut state = State { processes, calls_left, ends, hash, shown, status: None };
    let mut replayed = 0;
    for event in events.iter_mut() {
        let done = match event.kind {
            _ if state.is_opaque(event) => continue,
            EventKind::Started => state.start(event),
            EventKind::Called => state.called(event, fill_in),
            EventKind::Returned => state.returned(event, alone, fill_in),
            EventKind::Opened => state.opened(event),
            EventKind::Ended => state.ended(event, alone),
            EventKind::Installed => Ok(()),
        };
        done.map_err(|why| state.where_is(event, &why))?;
        replayed += 1;
    }
    if state.processes.is_empty() {
        return Err(match alone {
            Some(id) => format!("the recording has no process {id}; `cargo sing replay FILE --processes` lists them"),
            None => "no program ran in the recording".into(),
        });
    }
    let processes = state.processes.len();
    Ok(Done { events: replayed, processes, hash: state.hash.value(), status: state.status.unwrap_or(0) })
}

fn kind_of(event: &Event) -> EpitaphKind {
    EpitaphKind::from_number(event.function.into()).unwrap_or(EpitaphKind::Stopped)
}

const DAMAGED: &str = "the recording is not one that this kernel has made";

impl State {
    fn where_is(&self, event: &Event, why: &str) -> String {
        let process = self.processes.get(&event.process);
        let (name, calls) = process.map_or(("?", 0), |process| (process.program.as_str(), process.calls));
        format!("process {} ({name}) diverged at its call {calls} (event {}): {why}", event.process, event.number)
    }

    fn process(&mut self, event: &Event) -> Result<&mut Process, String> {
        self.processes.get_mut(&event.process).ok_or_else(|| DAMAGED.into())
    }

    /// Whether an event is of a process that is not replayed further.
    fn is_opaque(&self, event: &Event) -> bool {
        self.processes.get(&event.process).is_some_and(|process| process.is_opaque)
    }

    fn tell_opaque(&self, event: &Event, why: &str) {
        let program = self.processes.get(&event.process).map_or("?", |process| process.program.as_str());
        if self.shown == Shown::All {
            output::line(format_args!("process {} ({program}) {why}", event.process));
        }
    }

    fn start(&mut self, event: &Event) -> Result<(), String> {
        let started = event.started().ok_or(DAMAGED)?;
        if started.has_own_data {
            let process = self.processes.entry(event.process).or_default();
            (process.program, process.is_opaque) = (started.program, true);
            self.tell_opaque(event, "has unsafe code, with memory that the ABI does not see, and is not replayed");
            return Ok(());
        }
        let (block, entry) = (started.thread_block as usize, started.entry as usize);
        let context = Context::start(block, event.thread, entry, started.argument).ok_or(DAMAGED)?;
        let process = self.processes.entry(event.process).or_default();
        process.program = started.program;
        process.writes_to_machine = started.writes_to_machine;
        process
            .threads
            .insert(event.thread, Thread { context, place: Place::Gone(None), digest: Digest::default(), stretch: 0 });
        self.run(event)
    }

    /// Lets a thread run to its next call.
    fn run(&mut self, event: &Event) -> Result<(), String> {
        let key = (event.process, event.thread);
        let has_calls = self.calls_left.get(&key).is_some_and(|left| *left > 0);
        let faults = matches!(self.ends.get(&event.process), Some(EpitaphKind::Faulted | EpitaphKind::StackOverflow));
        let thread = self.process(event)?.threads.get_mut(&event.thread).ok_or(DAMAGED)?;
        if !has_calls && !faults {
            // Its process was ended, or the recording, before it called: nobody has seen what it did.
            thread.place = Place::Gone(None);
            return Ok(());
        }
        let has_time = has_calls || position::is_debugged();
        let limit = if has_time { NEVER } else { machine().monotonic_ns() + LAST_STRETCH_NS };
        thread.stretch = position::enter(event, thread.stretch);
        thread.place = match thread.context.run(limit) {
            Stop::Call { function, arguments } => Place::At { function, arguments },
            Stop::Fault(epitaph) => Place::Gone(Some(epitaph)),
            Stop::Endless => Place::Gone(None),
        };
        Ok(())
    }

    fn called(&mut self, event: &mut Event, fill_in: FillIn) -> Result<(), String> {
        let left = self.calls_left.entry((event.process, event.thread)).or_default();
        *left = left.saturating_sub(1);
        let (shown, mut hash) = (self.shown, core::mem::take(&mut self.hash));
        let process = self.process(event)?;
        process.calls += 1;
        let thread = process.threads.get_mut(&event.thread).ok_or(DAMAGED)?;
        let (function, arguments) = match &thread.place {
            Place::At { function, arguments } => (*function, arguments),
            Place::Gone(Some(epitaph)) => {
                return Err(format!("recorded: {}; replayed: {}", checks::call(event), epitaph.text));
            }
            Place::Gone(None) => return Err(DAMAGED.into()),
        };
        let mut words = [0; MESSAGE_WORDS];
        let read = &mut words[..call_words::words_in(function as u64, arguments)];
        thread.context.buffer().read_words(read);
        let count = abi::FUNCTIONS.get(function).map_or(0, |function| function.arguments.len()).min(arguments.len());
        let own = &arguments[..count];
        thread.digest = thread.digest.with(function, own, read);
        checks::same_call(event, function, (own, read), thread.digest)?;
        if fill_in == FillIn::Calls {
            (event.function, event.check) = (function as u8, None);
            (event.words, event.buffer) = (own.to_vec(), read.to_vec());
        }
        hash.add(&[event.process, event.thread, function as u64]);
        hash.add(own);
        hash.add(read);
        match abi::FUNCTIONS.get(function).map(|function| function.name) {
            Some("channel_send") => {
                for block in effects::sent(arguments[1], read).iter().filter_map(|handle| process.blocks.get(handle)) {
                    hash.add_bytes(memory::bytes(block.address, block.bytes));
                }
            }
            Some("process_exit") => process.end = Some(Epitaph::exited(arguments[0])),
            Some("process_panic") => {
                let length = arguments[0].min(TEXT_BYTES as u64) as usize;
                let bytes = thread.context.buffer().bytes(length).unwrap_or_default();
                let text = abi::audit::beginning(&Printable(&bytes).to_string(), TEXT_BYTES);
                process.end = Some(Epitaph::new(EpitaphKind::Panicked, text));
                if process.writes_to_machine && shown == Shown::All {
                    output::debug(&process.program, &bytes);
                }
            }
            _ => {}
        }
        self.hash = hash;
        Ok(())
    }

    fn returned(&mut self, event: &mut Event, alone: Option<u64>, fill_in: FillIn) -> Result<(), String> {
        let shown = self.shown;
        let process = self.process(event)?;
        let thread = process.threads.get(&event.thread).ok_or(DAMAGED)?;
        let Place::At { function, arguments } = thread.place else { return Err(DAMAGED.into()) };
        let &[mut value] = event.words.as_slice() else { return Err(DAMAGED.into()) };
        let is_own = event.function == ANY_FUNCTION || function == usize::from(event.function);
        if event.function == ANY_FUNCTION {
            (event.status, value) = effects::counted(function).ok_or(DAMAGED)?;
            event.words[0] = value;
        }
        if !is_own || !event.blocks.iter().all(memory::write) {
            return Err(DAMAGED.into());
        }
        if fill_in == FillIn::Calls {
            event.function = function as u8;
        }
        if fill_in == FillIn::Blocks && alone == Some(event.process) {
            event.blocks.iter_mut().for_each(memory::fill_in);
        }
        process.note_blocks(function, &arguments, event, value);
        if event.status == Status::Ok as u64 && shown == Shown::All {
            process.show(event.thread, function, &arguments);
        }
        if effects::shares_memory(function, event.status) {
            process.is_opaque = true;
            self.tell_opaque(event, "shares memory with a device from here on, and is not replayed further");
            return Ok(());
        }
        let thread = process.threads.get(&event.thread).ok_or(DAMAGED)?;
        thread.context.answer(AbiReturn { status: event.status, value }, &event.buffer);
        self.run(event)
    }

    fn opened(&mut self, event: &Event) -> Result<(), String> {
        let &[handle, kind, port] = event.words.as_slice() else { return Err(DAMAGED.into()) };
        let process = self.process(event)?;
        if kind == abi::DeviceKind::Console as u64 {
            process.consoles.push(handle);
        }
        if port == serial::CONSOLE_PORT {
            process.line = Some((handle, Line::default()));
        }
        Ok(())
    }

    fn ended(&mut self, event: &Event, alone: Option<u64>) -> Result<(), String> {
        let shown = self.shown;
        // Of a process that never ran there is nothing to compare.
        let Some(process) = self.processes.get(&event.process) else { return Ok(()) };
        let kind = kind_of(event);
        let status = event.words.first().copied().unwrap_or(0);
        let faulted = process.threads.values().find_map(|thread| match &thread.place {
            Place::Gone(epitaph) => epitaph.clone(),
            Place::At { .. } => None,
        });
        let replayed = process.end.clone().or(faulted);
        checks::same_end(event, kind, status, replayed.or_else(|| process.last_thread_left()))?;
        let is_told = match kind {
            EpitaphKind::Exited => status != 0,
            EpitaphKind::Stopped | EpitaphKind::Orphaned => false,
            _ => true,
        };
        if shown == Shown::All && (is_told || alone.is_some()) {
            output::line(format_args!("process {} ({}) {}", event.process, process.program, event.text()));
        }
        if alone == Some(event.process) || alone.is_none() && event.process == 1 {
            self.status = Some(if kind == EpitaphKind::Exited { status as u8 } else { 1 });
        }
        Ok(())
    }
}

impl Process {
    /// Notes the blocks that a return names, so that their contents are known when they are sent.
    fn note_blocks(&mut self, function: usize, arguments: &[u64; 6], event: &Event, value: u64) {
        for block in effects::named(function, [arguments[0], arguments[1]], (event.status, value), &event.buffer) {
            self.blocks.insert(block.handle, block);
        }
        let is_split = effects::memory(function) == effects::Memory::RestOfBlock && event.status == Status::Ok as u64;
        if let Some(block) = self.blocks.get_mut(&arguments[0]).filter(|_| is_split) {
            block.bytes = block.bytes.min(arguments[1]);
        }
    }

    /// Shows what a call has written to a console or to the debug output.
    fn show(&mut self, thread: u64, function: usize, arguments: &[u64; 6]) {
        match abi::FUNCTIONS.get(function).map(|function| function.name) {
            Some("device_submit") => {
                let [device, operation, _, block, first, bytes] = *arguments;
                let block = self.blocks.get(&block);
                if operation == DeviceOperation::Write as u64
                    && self.consoles.contains(&device)
                    && let Some(block) =
                        block.filter(|block| first.checked_add(bytes).is_some_and(|end| end <= block.bytes))
                {
                    output::console(memory::bytes(block.address + first, bytes));
                }
            }
            Some("register_write") => {
                let [device, range, offset, width, value, _] = *arguments;
                let line = self.line.as_mut().filter(|(handle, _)| *handle == device && (range, width) == (0, 1));
                line.into_iter().for_each(|(_, line)| line.written(offset, value as u8));
            }
            Some("register_read") => {}
            Some("debug_write") if self.writes_to_machine => {
                let buffer = self.threads.get(&thread).map(|thread| thread.context.buffer());
                let bytes = buffer.and_then(|buffer| buffer.bytes(arguments[0] as usize));
                output::debug(&self.program, &bytes.unwrap_or_default());
            }
            _ => self.show_line(),
        }
    }

    /// Shows what the machine's line has sent.
    fn show_line(&mut self) {
        let sent = self.line.as_mut().map(|(_, line)| line.take()).unwrap_or_default();
        sent.chunks(memory::SCRATCH_BYTES).for_each(|bytes| output::console(memory::scratch(bytes)));
    }

    /// How it ends if its last thread has left.
    fn last_thread_left(&self) -> Option<Epitaph> {
        let exit = effects::function("thread_exit");
        let has_left = |thread: &Thread| matches!(thread.place, Place::At { function, .. } if Some(function) == exit);
        self.threads.values().all(has_left).then(|| Epitaph::exited(0))
    }
}
