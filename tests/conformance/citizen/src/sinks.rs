//! Acts of debug sinks: whose text arrives, in which order, losses, and the destination without a sink.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sip::abi::limits::DEBUG_SINK_BYTES;
use sip::debug::{Sink, SinkText};
use sip::process::{Child, create};
use sip::select::wait_any;
use sip::{Deadline, Status};

use crate::{Stage, sleep_forever};

const SELF: &str = "conformance-citizen";
const ACT: usize = 0;
const NUMBER: usize = 1;

/// Bytes of each line of [`log`].
const LINE_BYTES: usize = 12;

/// Writes this many lines.
pub(crate) fn log(stage: Stage) -> i32 {
    for number in 0..stage.number {
        sip::log!("line {number:06}");
    }
    0
}

/// Has a child that does so, and writes a line itself after the child's end.
pub(crate) fn log_below(stage: Stage) -> i32 {
    let child = made("log", stage.number).and_then(Child::start).expect("a child");
    child.wait().expect("it ends");
    sip::log!("and its parent");
    0
}

/// Writes a line on request, and sleeps.
pub(crate) fn log_when_asked(mut stage: Stage) -> i32 {
    let conformance_contract::errand::ExpReady::Call { value, next } = stage.server().receive() else { return 1 };
    sip::log!("a line after its sink was closed");
    let _client = next.answer(value);
    sleep_forever()
}

fn made(act: &str, number: u64) -> Result<Child, Status> {
    let child = create(SELF).map_err(|error| error.status)?;
    child.parameter(ACT, act)?.parameter(NUMBER, &format!("{number}"))
}

fn started(act: &str, number: u64, sink: &Sink) -> Child {
    made(act, number).and_then(|child| child.debug_sink(sink)).and_then(Child::start).expect("a child")
}

/// Returns all text until the child has ended, and the number of lost bytes.
fn all_of(sink: &Sink, child: &Child) -> (Vec<(u64, String)>, u64) {
    let (mut texts, mut all_lost) = (Vec::<(u64, String)>::new(), 0);
    loop {
        let has_ended = wait_any(&[sink, child], Deadline::after_ms(60_000)).expect("text or an end") == 1;
        while let Some(text) = sink.read() {
            match text {
                SinkText::Lost { bytes } => all_lost += bytes,
                SinkText::Text { process_id, program, bytes } => {
                    assert_eq!(program, SELF, "the name of the writer");
                    let text = String::from_utf8_lossy(&bytes).into_owned();
                    match texts.last_mut() {
                        Some((last, so_far)) if *last == process_id => so_far.push_str(&text),
                        _ => texts.push((process_id, text)),
                    }
                }
            }
        }
        if has_ended {
            return (texts, all_lost);
        }
    }
}

/// Text of a child and of its child arrives with the names of both, as does a panic's message; a reader that keeps up
/// loses nothing, and one that does not gets the amount lost.
pub(crate) fn debug_sink(_: Stage) -> i32 {
    let sink = Sink::new().expect("a sink");
    assert_eq!(sink.read(), None, "nothing was written");
    assert_eq!(wait_any(&[&sink], Deadline::after_ms(1)), None, "nothing to wait for");
    let child = started("log-below", 2, &sink);
    let (texts, lost) = all_of(&sink, &child);
    let id = child.id().expect("its id");
    let [(below, first), (own, second)] = &texts[..] else { panic!("{texts:?}") };
    assert_eq!((first.as_str(), second.as_str()), ("line 000000\nline 000001\n", "and its parent\n"));
    assert!(*own == id && *below != id && lost == 0, "{texts:?} of process {id}, {lost} lost");

    let child = started("panic", 4711, &sink);
    let (texts, _) = all_of(&sink, &child);
    assert!(matches!(&texts[..], [(_, text)] if text.ends_with("the reason is 4711\n")), "{texts:?}");

    flooded(&sink);
    let refused = made("exit", 0).and_then(Child::start).expect("a child").debug_sink(&sink);
    assert!(matches!(refused, Err(Status::WrongState)), "a child that was started was given a sink");
    closed();
    0
}

/// A child writes more than fits without a reader.
fn flooded(sink: &Sink) {
    const LINES: usize = 3 * DEBUG_SINK_BYTES / LINE_BYTES;
    let child = started("log", LINES as u64, sink);
    assert!(child.wait().expect("an end").is_success(), "a writer waits for nobody");
    let (texts, lost) = all_of(sink, &child);
    let text: String = texts.into_iter().map(|(_, text)| text).collect();
    assert_eq!(text.len() as u64 + lost, (LINES * LINE_BYTES) as u64, "what came and what was lost");
    assert!(text.len() > DEBUG_SINK_BYTES - LINE_BYTES && lost > 0, "{} bytes came, {lost} were lost", text.len());
    let is_in_order = |(number, line): (usize, &str)| line == format!("line {number:06}");
    assert!(text.lines().enumerate().all(is_in_order), "what fits in is what was written first");
    // Afterwards it works as before.
    let child = started("log", 1, sink);
    let (texts, lost) = all_of(sink, &child);
    assert!(matches!(&texts[..], [(_, text)] if text == "line 000000\n") && lost == 0, "{texts:?}, {lost} lost");
}

/// Output of a child whose sink is closed goes to the machine, and to no other sink.
fn closed() {
    let sink = Sink::new().expect("a sink");
    let (importer, exporter) = conformance_contract::errand::new_channel().expect("a channel");
    let child = made("log-when-asked", 0).and_then(|child| child.debug_sink(&sink)?.endpoint(1, exporter));
    let child = child.and_then(Child::start).expect("a child");
    drop(sink);
    let next = Sink::new().expect("a sink");
    let answer = importer.call(1).receive();
    assert!(matches!(answer, conformance_contract::errand::ImpReadyAfterCall::Answer { value: 1, .. }), "it goes on");
    assert_eq!(next.read(), None, "text came to a sink that was never given");
    child.stop(sip::process::StopReason::Requested).expect("it is stopped");
    child.wait().expect("it ends");
}
