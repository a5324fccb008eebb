//! Runs a machine in QEMU: carries its console and debug output, and takes its exit status.
//!
//! Console, debug output and the control channel, over which a machine is asked to shut down, have a socket each. The
//! last byte on the debug socket is the exit status if the machine ended QEMU through its exit device; otherwise the
//! machine failed. Deliberately not here: the machine's parts (`qemu`), and the framing of a stream on a serial line
//! (`terminal`).

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use host_service::log::Stamper;
use host_service::notify::State;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tempfile::TempDir;
use terminal::serial;

use crate::bare::control::Control;
use crate::bare::debug_queue::DebugQueue;
use crate::bare::prepared::Prepared;
use crate::bare::qemu::{self, Hardware};
use crate::bare::recording::{Recording, Taking};
use crate::bare::terminal::RawTerminal;
use crate::failure::{Failure, Outcome};
use crate::service::{self, Service};

/// Exit status of a process ended by a signal, less the signal's number.
const ENDED_BY_SIGNAL: i32 = 128;

/// Exit status when the reader of the machine's output is gone: that of a process ended by SIGPIPE.
const ENDED_BY_CLOSED_PIPE: u8 = 141;
/// Time limit for shutdown after a signal, as for a hosted machine.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(25);
/// Interval between shutdown requests.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// A signal within this time of the first one is the same request, as from timeout(1).
const SAME_REQUEST: Duration = Duration::from_millis(200);
/// Polling interval while QEMU starts.
const LOOK: Duration = Duration::from_millis(1);
/// Debug channel: the machine now accepts input.
const TAKES_INPUT: u8 = 1;

/// Debug channel, last byte: the machine restarts.
const STARTS_ANEW: u8 = 2;

/// How a machine's run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It exited with this status.
    Status(u8),
    /// It asks to be restarted.
    Restart,
}

/// An event while a machine runs.
#[derive(Debug)]
enum Event {
    /// QEMU closed the debug channel; this was its last byte.
    Ended(Option<u8>),
    /// The reader of the machine's output has closed it.
    OutputGone,
    /// A termination signal to this program.
    Signal(i32),
}

/// Runs a machine to its end, on this program's standard streams.
///
/// # Errors
/// It cannot be started, or ends without an exit status.
pub fn run(prepared: &Prepared, service: Option<&Service>) -> Outcome<End> {
    let guest = Guest::start(&prepared.hardware)?;
    let taking = prepared.recording.as_ref().map(Recording::take).transpose()?;
    let (sender, events) = channel();
    watch_signals(sender.clone())?;
    let terminal = if service.is_some() { None } else { RawTerminal::enter() };
    let input = match (service, &terminal) {
        (Some(_), _) => None,
        (None, Some(_)) => Some(Input::Keys),
        (None, None) => Some(Input::Stream),
    };
    if let Some(service) = service {
        service.announce_when_it_serves();
    }
    let outcome = guest.carry(input, service, sender, &events);
    drop(terminal);
    taking.into_iter().for_each(Taking::finish);
    outcome
}

/// The kind of input sent to a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Input {
    /// Keystrokes of a terminal.
    Keys,
    /// A byte stream with an end.
    Stream,
}

/// A running machine.
pub struct Guest {
    qemu: Child,
    /// Holds the sockets and QEMU's messages.
    folder: TempDir,
    console: UnixStream,
    debug: UnixStream,
    control: Control,
}

impl Guest {
    /// Starts a machine. Its console is not read before [`Guest::show`].
    ///
    /// # Errors
    /// QEMU is missing or does not start.
    pub fn start(hardware: &Hardware) -> Outcome<Guest> {
        let program = qemu::find()?;
        let folder = tempfile::Builder::new().prefix("sing-").tempdir().map_err(cannot_start)?;
        let paths = ["console", "debug", "control"].map(|name| folder.path().join(name));
        let errors = folder.path().join("errors");
        let listeners =
            paths.iter().map(UnixListener::bind).collect::<std::io::Result<Vec<_>>>().map_err(cannot_start)?;
        let mut qemu = Command::new(crate::tool::path().map_err(cannot_start)?)
            .arg("attached")
            .arg(program)
            .args(hardware.arguments(paths.each_ref().map(AsRef::as_ref))?)
            // Signals from the keyboard go to this program alone, which then shuts the machine down.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&errors).map_err(cannot_start)?)
            .spawn()
            .map_err(cannot_start)?;
        match accept_all(&listeners, &mut qemu) {
            Ok(Some([console, debug, control])) => {
                Ok(Guest { qemu, folder, console, debug, control: Control::of(control)? })
            }
            Ok(None) => Err(Failure::new(format!("QEMU does not start: {}", last_words(folder.path())))
                .remedy("check that no other machine uses the disks, or reduce the memory")),
            Err(error) => {
                end(&mut qemu);
                Err(cannot_start(error))
            }
        }
    }

    /// Copies the machine's console to standard output and its debug output to standard error. It gets no input.
    ///
    /// # Errors
    /// The host has no more threads or descriptors.
    pub fn show(&self) -> Outcome<Shown> {
        let (output, debug) = (copy(&self.console)?, copy(&self.debug)?);
        let (sender, _) = channel();
        let other = sender.clone();
        let console = thread::spawn(move || drop(show_console(output, &mut std::io::stdout(), &sender)));
        let debug = thread::spawn(move || {
            show_debug(debug, &mut DebugQueue::new(std::io::stderr()), &other);
        });
        Ok(Shown([console, debug]))
    }

    /// Kills the machine.
    pub fn end(mut self) {
        end(&mut self.qemu);
    }

    /// Carries bytes between the machine and this program's streams until the machine ends.
    fn carry(
        mut self,
        input_kind: Option<Input>,
        service: Option<&Service>,
        sender: Sender<Event>,
        events: &Receiver<Event>,
    ) -> Outcome<End> {
        let (output, input, debug) = (copy(&self.console)?, copy(&self.console)?, copy(&self.debug)?);
        let (ready, takes_input) = channel();
        let of_output = ready.clone();
        let gone = sender.clone();
        let output = thread::spawn(move || {
            if let Err(OutputClosed) = show_console(output, &mut std::io::stdout(), &of_output) {
                // The receiver is gone if the machine has ended.
                let _ = gone.send(Event::OutputGone);
            }
        });
        let log = service.map(|service| service.log);
        thread::spawn(move || {
            let errors = DebugQueue::new(std::io::stderr());
            let mut errors: Box<dyn Write> = match log {
                Some(format) => Box::new(Stamper::new(errors, format)),
                None => Box::new(errors),
            };
            let last = show_debug(debug, &mut errors, &ready);
            // All output is shown before the end is reported.
            drop(errors);
            sender.send(Event::Ended(last))
        });
        thread::spawn(move || {
            if let (Some(kind), Ok(())) = (input_kind, takes_input.recv()) {
                send_input(&mut std::io::stdin(), input, kind);
            }
        });
        let mut asked = None;
        loop {
            match self.next_event(events, asked) {
                Event::Ended(last) => {
                    let end = self.ended(last);
                    // The console is drained before the exit status counts.
                    let _ = output.join();
                    return end.map(|end| with_signal(end, asked, service));
                }
                Event::OutputGone => {
                    end(&mut self.qemu);
                    return Ok(End::Status(ENDED_BY_CLOSED_PIPE));
                }
                Event::Signal(_) if asked.is_some_and(|asked: Asked| asked.at.elapsed() < SAME_REQUEST) => {}
                Event::Signal(SIGHUP) if service.is_some() => {
                    if asked.is_none() {
                        service::reload();
                    }
                }
                Event::Signal(signal) if asked.is_none() && self.control.press_power_button().is_ok() => {
                    asked = Some(Asked { signal, at: Instant::now() });
                    service::tell(State::Stopping);
                }
                Event::Signal(signal) => {
                    end(&mut self.qemu);
                    return Ok(End::Status(status_of(signal)));
                }
            }
        }
    }

    /// Returns the next event. A shutdown request is repeated, since the machine may not have been ready for the
    /// first; when the time limit expires, the signal is reported once more.
    fn next_event(&mut self, events: &Receiver<Event>, asked: Option<Asked>) -> Event {
        let Some(asked) = asked else { return events.recv().unwrap_or(Event::Ended(None)) };
        loop {
            let left = SHUTDOWN_LIMIT.saturating_sub(asked.at.elapsed());
            match events.recv_timeout(left.min(ASK_AGAIN)) {
                Ok(event) => return event,
                Err(RecvTimeoutError::Disconnected) => return Event::Ended(None),
                Err(RecvTimeoutError::Timeout) if left.is_zero() => {
                    eprintln!("sing: the machine did not shut down within {SHUTDOWN_LIMIT:?}; killed it");
                    return Event::Signal(asked.signal);
                }
                // Fails if the machine has ended meanwhile.
                Err(RecvTimeoutError::Timeout) => drop(self.control.press_power_button()),
            }
        }
    }

    /// Interprets the end of a machine that has closed its debug channel.
    fn ended(&mut self, last: Option<u8>) -> Outcome<End> {
        let ended = self.qemu.wait().map_err(cannot_start)?;
        if last == Some(STARTS_ANEW) && ended.success() {
            return Ok(End::Restart);
        }
        let status = last.filter(|_| is_orderly(ended));
        status.map(End::Status).ok_or_else(|| died(ended, last, &last_words(self.folder.path())))
    }
}

/// A pending shutdown request.
#[derive(Debug, Clone, Copy)]
struct Asked {
    signal: i32,
    at: Instant,
}

fn status_of(signal: i32) -> u8 {
    u8::try_from(ENDED_BY_SIGNAL + signal).unwrap_or(u8::MAX)
}

/// Result of a run that may have been asked to shut down; a service that was asked keeps the machine's own status.
fn with_signal(end: End, asked: Option<Asked>, service: Option<&Service>) -> End {
    match (asked, service) {
        (Some(asked), None) => End::Status(status_of(asked.signal)),
        // It shut down, although it asked to restart.
        (Some(_), Some(_)) if end == End::Restart => End::Status(0),
        _ => end,
    }
}

/// Threads that show a machine's output.
pub struct Shown([JoinHandle<()>; 2]);

impl Shown {
    /// Waits until all output is shown.
    pub fn finish(self) {
        for thread in self.0 {
            // A failed thread has nothing more to show.
            let _ = thread.join();
        }
    }
}

fn copy(stream: &UnixStream) -> Outcome<UnixStream> {
    stream.try_clone().map_err(cannot_start)
}

/// Kills QEMU; it may have exited by itself.
fn end(qemu: &mut Child) {
    let _ = qemu.kill();
    let _ = qemu.wait();
}

fn cannot_start(error: std::io::Error) -> Failure {
    Failure::new(format!("cannot start the machine: {error}"))
}

/// Returns the last line of QEMU's messages, without QEMU's name.
fn last_words(folder: &Path) -> String {
    let errors = std::fs::read_to_string(folder.join("errors")).unwrap_or_default();
    let line = errors.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no message");
    line.split_once("qemu-system-x86_64: ").map_or(line, |(_, words)| words).to_string()
}

/// Returns whether the machine itself ended QEMU: its exit device turns the written value into an odd status, and
/// QEMU's own failures are 1.
fn is_orderly(ended: ExitStatus) -> bool {
    ended.code().is_some_and(|code| code > 1 && code % 2 == 1)
}

fn died(ended: ExitStatus, last: Option<u8>, words: &str) -> Failure {
    let how = match (ended.signal(), last) {
        (Some(signal), _) => format!("QEMU was killed by signal {signal}"),
        (None, None) if ended.success() => {
            "it was reset before the kernel printed anything; its memory may be too small".to_string()
        }
        (None, Some(_)) if ended.success() => "the processor was reset, probably by a triple fault".to_string(),
        (None, _) => format!("QEMU exited: {words}"),
    };
    Failure::new(format!("the machine stopped without an exit status; {how}"))
        .remedy("check its last output, or run it under `cargo sing debug`")
}

/// Waits until QEMU has connected to each listener; `None` if it exits first.
fn accept_all(listeners: &[UnixListener], qemu: &mut Child) -> std::io::Result<Option<[UnixStream; 3]>> {
    let mut came = Vec::new();
    for listener in listeners {
        listener.set_nonblocking(true)?;
        let stream = loop {
            match listener.accept() {
                Ok((stream, _)) => break stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            if qemu.try_wait()?.is_some() {
                return Ok(None);
            }
            thread::sleep(LOOK);
        };
        stream.set_nonblocking(false)?;
        came.push(stream);
    }
    Ok(<[UnixStream; 3]>::try_from(came).ok())
}

/// The reader of the machine's output has closed it.
#[derive(Debug, PartialEq, Eq)]
struct OutputClosed;

/// Copies the machine's console until it ends.
fn show_console(mut from: impl Read, to: &mut impl Write, takes_input: &Sender<()>) -> Result<(), OutputClosed> {
    let mut buffer = [0; 16384];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        // A console that writes is set up. Nobody receives after the first time.
        let _ = takes_input.send(());
        to.write_all(&buffer[..count]).and_then(|()| to.flush()).map_err(|_| OutputClosed)?;
    }
    Ok(())
}

/// Copies debug output until the machine ends; returns the last byte, which is withheld since it may be the exit
/// status.
fn show_debug(mut from: impl Read, to: &mut impl Write, takes_input: &Sender<()>) -> Option<u8> {
    let mut buffer = [0; 4096];
    let mut text = DebugText { held: None, last: None, at_line_start: true };
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let mut shown = Vec::with_capacity(count + 1);
        for &byte in &buffer[..count] {
            if byte == TAKES_INPUT {
                // The receiver takes only the first message.
                let _ = takes_input.send(());
            }
            text.feed(byte, &mut shown);
        }
        // Failing to show debug output is no reason to stop the machine.
        let _ = to.write_all(&shown).and_then(|()| to.flush());
    }
    text.last
}

/// Separates text from a trailing exit status: each byte is held back until another follows, except a newline, so
/// that complete lines show at once.
struct DebugText {
    held: Option<u8>,
    last: Option<u8>,
    at_line_start: bool,
}

impl DebugText {
    fn feed(&mut self, byte: u8, shown: &mut Vec<u8>) {
        if let Some(held) = self.held.take() {
            self.show(held, shown);
        }
        self.last = Some(byte);
        if byte == b'\n' && !self.at_line_start {
            self.show(byte, shown);
        } else {
            self.held = Some(byte);
        }
    }

    fn show(&mut self, byte: u8, shown: &mut Vec<u8>) {
        if byte != TAKES_INPUT {
            self.at_line_start = byte == b'\n';
            shown.push(byte);
        }
    }
}

/// Sends input to the machine; a stream is framed, to mark its end.
fn send_input(from: &mut impl Read, mut to: impl Write, kind: Input) {
    let mut buffer = [0; 4096];
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        let sent = match kind {
            Input::Keys => to.write_all(&buffer[..count]),
            Input::Stream => to.write_all(&serial::quote(&buffer[..count])),
        };
        if sent.is_err() {
            // A machine that has ended takes no input.
            return;
        }
    }
    if kind == Input::Stream {
        let _ = to.write_all(&[serial::END]);
    }
}

/// Turns the signals that end programs into events, so that the machine shuts down first.
fn watch_signals(sender: Sender<Event>) -> Outcome<()> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM]).map_err(cannot_start)?;
    thread::spawn(move || signals.forever().try_for_each(|signal| sender.send(Event::Signal(signal))));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the text shown for the pieces, the status, and whether input was requested.
    fn debug(pieces: &[&[u8]]) -> (String, Option<u8>, bool) {
        struct Pieces<'a>(std::slice::Iter<'a, &'a [u8]>);
        impl Read for Pieces<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
                let piece = self.0.next().copied().unwrap_or_default();
                buffer[..piece.len()].copy_from_slice(piece);
                Ok(piece.len())
            }
        }
        let (sender, receiver) = channel();
        let mut shown = Vec::new();
        let status = show_debug(Pieces(pieces.iter()), &mut shown, &sender);
        (String::from_utf8(shown).expect("text"), status, receiver.try_recv().is_ok())
    }

    #[test]
    fn the_status_is_told_from_the_text_before_it() {
        assert_eq!(debug(&[b"kernel: hello\n", b"\x07"]), ("kernel: hello\n".into(), Some(7), false));
        assert_eq!(debug(&[b"a\x01b\n\0"]), ("ab\n".into(), Some(0), true));
        assert_eq!(debug(&[b"a\n", b"\nb\n\n"]), ("a\n\nb\n".into(), Some(10), false));
        assert_eq!(debug(&[b"\n"]), (String::new(), Some(10), false));
        assert_eq!(debug(&[b"half"]), ("hal".into(), Some(b'f'), false));
        assert_eq!(debug(&[]).1, None);
    }

    #[test]
    fn a_closed_output_is_seen_and_input_ends_with_its_mark() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let (sender, _receiver) = channel();
        assert_eq!(show_console(&b"text"[..], &mut Closed, &sender), Err(OutputClosed));
        let mut sent = Vec::new();
        send_input(&mut &b"ls\n\x04"[..], &mut sent, Input::Stream);
        assert_eq!(sent, b"ls\n\x16\x04\x04");
        sent.clear();
        send_input(&mut &b"\x04"[..], &mut sent, Input::Keys);
        assert_eq!(sent, b"\x04");
    }
}
