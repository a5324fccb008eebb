//! The trace stream: both events of a message, and events without room.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sip::Status;
use sip::diagnostics::{Stream, StreamRecord, TraceKind};

use crate::copies::EXCHANGES_BIT;
use crate::job::{channel, citizen};
use crate::{Outcome, Settings, Test, check, function};

/// What the two programs exchange, and how often.
const BLOCK_BYTES: u64 = 64;
const EXCHANGES: u64 = 8;

/// The tests of this module.
pub(crate) fn tests() -> Vec<Test> {
    alloc::vec![
        function("stream: a message has the same name where it is sent and received", messages_pair),
        function("stream: events without room are counted", lost_are_counted),
    ]
}

fn failed(status: Status) -> String {
    format!("the stream: {}", status.text())
}

/// Runs two programs that exchange messages.
fn talk() -> Outcome {
    let (importer, exporter) = channel()?;
    let number = BLOCK_BYTES | EXCHANGES << EXCHANGES_BIT;
    let server = citizen("copy-back").number(number).server(exporter).start()?;
    citizen("copy-there").number(number).client(importer).succeed()?;
    crate::job::end_of(&server).map(|_| ())
}

fn all(stream: &mut Stream) -> Result<(Vec<StreamRecord>, u64), String> {
    let (mut events, mut lost) = (Vec::new(), 0);
    loop {
        let (more, more_lost) = stream.read().map_err(failed)?;
        lost += more_lost;
        if more.is_empty() {
            return Ok((events, lost));
        }
        events.extend_from_slice(more);
    }
}

fn messages_pair(_: &Settings) -> Outcome {
    let own = sip::process::id();
    let mut stream = Stream::start(16 * 1024).map_err(failed)?;
    talk()?;
    let (events, lost) = all(&mut stream)?;
    check!(lost == 0, "{lost} events are lost of {}", events.len());
    check!(events.iter().all(|event| event.process != own), "the reader's own events are in the stream");
    let of =
        |kind| events.iter().filter(move |event| event.event() == Some(kind)).map(|event| (event.a, event.b, event.c));
    let (sent, received): (Vec<_>, Vec<_>) = (of(TraceKind::Sent).collect(), of(TraceKind::Received).collect());
    let names: BTreeSet<_> = sent.iter().collect();
    check!(names.len() == sent.len(), "two messages of {} have one name", sent.len());
    let paired = received.iter().filter(|message| names.contains(message)).count();
    // Those of the suite to the programs, and of both to it, have one of the two events.
    check!(paired as u64 >= EXCHANGES, "{paired} of {} messages that were received had been sent", received.len());
    for processor in events.iter().map(StreamRecord::processor).collect::<BTreeSet<_>>() {
        let times = events.iter().filter(|event| event.processor() == processor).map(|event| event.time_ns);
        check!(times.is_sorted(), "events of processor {processor} are not in order");
    }
    Ok(())
}

fn lost_are_counted(_: &Settings) -> Outcome {
    let room = sip::thread::processor_count();
    let mut stream = Stream::start(room as u64).map_err(failed)?;
    talk()?;
    let (events, lost) = all(&mut stream)?;
    check!((1..=room).contains(&events.len()), "{} events with room for {room}", events.len());
    check!(lost > 10, "{lost} events are lost");
    let (_, later) = all(&mut stream)?;
    check!(later < lost, "{later} events are lost while nothing runs, and {lost} before");
    Ok(())
}
