//! Runs a machine in QEMU: carries its console and its debug text, and takes its exit status.
//!
//! Console and debug text each have a socket, and so has the control channel, over which a machine is asked to end. The last byte on the debug socket is the exit status, if the
//! machine has ended QEMU by the device that is there for it; else it has failed. Deliberately not here: the
//! machine's parts (`qemu`), and how a stream goes over a serial line (`terminal`).

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
use crate::bare::qemu::{self, Hardware};
use crate::bare::terminal::RawTerminal;
use crate::failure::{Failure, Outcome};
use crate::service::{self, Service};

/// Added to a signal's number it is the exit status of what the signal ended.
const ENDED_BY_SIGNAL: i32 = 128;

/// Exit status when nobody reads what the machine writes, as of a program that is ended for that.
const ENDED_BY_CLOSED_PIPE: u8 = 141;
/// A machine gets this long to shut down after a signal, as a hosted one does.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(25);
/// How often it is asked meanwhile.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// A signal that follows the first one within this time is the same request, as from timeout(1).
const SAME_REQUEST: Duration = Duration::from_millis(200);
/// How often the start of QEMU is looked at.
const LOOK: Duration = Duration::from_millis(1);
/// On the debug channel: the machine takes input from now on.
const TAKES_INPUT: u8 = 1;

/// On the debug channel, last of all: the machine starts anew.
const STARTS_ANEW: u8 = 2;

/// How a machine's run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// With an exit status.
    Status(u8),
    /// It wants to be started anew.
    Restart,
}

/// What happened while a machine ran.
#[derive(Debug)]
enum Event {
    /// QEMU has closed the debug channel, on which this was the last byte.
    Ended(Option<u8>),
    /// Nobody reads what the machine writes any more.
    OutputGone,
    /// The host wants this program to end.
    Signal(i32),
}

/// Runs a machine to its end, on this program's standard streams.
///
/// # Errors
/// It cannot be started, or stops without an exit status.
pub fn run(hardware: &Hardware, service: Option<&Service>) -> Outcome<End> {
    let guest = Guest::start(hardware)?;
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
    outcome
}

/// What is sent to a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Input {
    /// Keys of a person's terminal.
    Keys,
    /// A stream of any bytes, with an end.
    Stream,
}

/// A machine that runs.
pub struct Guest {
    qemu: Child,
    /// The sockets and what QEMU says lie in it.
    folder: TempDir,
    console: UnixStream,
    debug: UnixStream,
    control: Control,
}

impl Guest {
    /// Starts a machine. Nothing is taken from its console before [`Guest::show`].
    ///
    /// # Errors
    /// QEMU is not there or does not start.
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
            // Keys that signal are for this program alone, which then ends the machine.
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
                .remedy("see whether the disks are in use by another machine, or give it less memory")),
            Err(error) => {
                end(&mut qemu);
                Err(cannot_start(error))
            }
        }
    }

    /// Shows what the machine writes on standard output, and its debug text on standard error. It gets no
    /// input.
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

    /// Ends the machine.
    pub fn end(mut self) {
        end(&mut self.qemu);
    }

    /// Carries bytes between the machine and this program's streams until it ends.
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
                // Who would hear of it has ended with the machine.
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
            // All that can be shown is shown before the end is told.
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
                    // All that the machine wrote is shown before its exit status counts.
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

    /// What happens next. A machine that was asked to end is asked again, as it may not have been there to hear it; if it
    /// has not done so in time, the signal comes once more.
    fn next_event(&mut self, events: &Receiver<Event>, asked: Option<Asked>) -> Event {
        let Some(asked) = asked else { return events.recv().unwrap_or(Event::Ended(None)) };
        loop {
            let left = SHUTDOWN_LIMIT.saturating_sub(asked.at.elapsed());
            match events.recv_timeout(left.min(ASK_AGAIN)) {
                Ok(event) => return event,
                Err(RecvTimeoutError::Disconnected) => return Event::Ended(None),
                Err(RecvTimeoutError::Timeout) if left.is_zero() => {
                    eprintln!("sing: the machine did not shut down within {SHUTDOWN_LIMIT:?}; it is ended as it is");
                    return Event::Signal(asked.signal);
                }
                // One that has ended has no button.
                Err(RecvTimeoutError::Timeout) => drop(self.control.press_power_button()),
            }
        }
    }

    /// The end of a machine that has closed its debug channel.
    fn ended(&mut self, last: Option<u8>) -> Outcome<End> {
        let ended = self.qemu.wait().map_err(cannot_start)?;
        if last == Some(STARTS_ANEW) && ended.success() {
            return Ok(End::Restart);
        }
        let status = last.filter(|_| is_orderly(ended));
        status.map(End::Status).ok_or_else(|| died(ended, last, &last_words(self.folder.path())))
    }
}

/// A machine was asked to end.
#[derive(Debug, Clone, Copy)]
struct Asked {
    signal: i32,
    at: Instant,
}

fn status_of(signal: i32) -> u8 {
    u8::try_from(ENDED_BY_SIGNAL + signal).unwrap_or(u8::MAX)
}

/// The end of a machine that may have been asked to end: of a service it is its own.
fn with_signal(end: End, asked: Option<Asked>, service: Option<&Service>) -> End {
    match (asked, service) {
        (Some(asked), None) => End::Status(status_of(asked.signal)),
        // It ends although it wanted to start anew.
        (Some(_), Some(_)) if end == End::Restart => End::Status(0),
        _ => end,
    }
}

/// What a machine writes while it is being shown.
pub struct Shown([JoinHandle<()>; 2]);

impl Shown {
    /// Waits until all of it was shown.
    pub fn finish(self) {
        for thread in self.0 {
            // One that failed has nothing more to show.
            let _ = thread.join();
        }
    }
}

fn copy(stream: &UnixStream) -> Outcome<UnixStream> {
    stream.try_clone().map_err(cannot_start)
}

/// Ends QEMU. That it has ended by itself is as good.
fn end(qemu: &mut Child) {
    let _ = qemu.kill();
    let _ = qemu.wait();
}

fn cannot_start(error: std::io::Error) -> Failure {
    Failure::new(format!("the machine cannot be started: {error}"))
}

/// The last line that QEMU said, without its own name.
fn last_words(folder: &Path) -> String {
    let errors = std::fs::read_to_string(folder.join("errors")).unwrap_or_default();
    let line = errors.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it says nothing");
    line.split_once("qemu-system-x86_64: ").map_or(line, |(_, words)| words).to_string()
}

/// Whether the machine itself has ended QEMU: the device for that makes an odd number of what is written
/// to it, and QEMU's own failures are 1.
fn is_orderly(ended: ExitStatus) -> bool {
    ended.code().is_some_and(|code| code > 1 && code % 2 == 1)
}

fn died(ended: ExitStatus, last: Option<u8>, words: &str) -> Failure {
    let how = match (ended.signal(), last) {
        (Some(signal), _) => format!("QEMU was ended by signal {signal}"),
        (None, None) if ended.success() => {
            "it was reset before the kernel said anything, as when its memory is too small for it".to_string()
        }
        (None, Some(_)) if ended.success() => "its processor was reset, as by a fault that nothing handles".to_string(),
        (None, _) => format!("QEMU ended by itself: {words}"),
    };
    Failure::new(format!("the machine stopped without an exit status; {how}"))
        .remedy("see what it said last, or run it under `cargo sing debug`")
}

/// Waits until QEMU has come to each listener; nothing when it ends before.
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

/// Nobody reads what the machine writes.
#[derive(Debug, PartialEq, Eq)]
struct OutputClosed;

/// Shows what the machine writes, until it ends.
fn show_console(mut from: impl Read, to: &mut impl Write, takes_input: &Sender<()>) -> Result<(), OutputClosed> {
    let mut buffer = [0; 16384];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        // A console that writes is set up. Nobody listens after the first time.
        let _ = takes_input.send(());
        to.write_all(&buffer[..count]).and_then(|()| to.flush()).map_err(|_| OutputClosed)?;
    }
    Ok(())
}

/// Shows debug text until the machine ends; gives the last byte, which is not shown as it may be the exit
/// status.
fn show_debug(mut from: impl Read, to: &mut impl Write, takes_input: &Sender<()>) -> Option<u8> {
    let mut buffer = [0; 4096];
    let mut text = DebugText { held: None, last: None, at_line_start: true };
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let mut shown = Vec::with_capacity(count + 1);
        for &byte in &buffer[..count] {
            if byte == TAKES_INPUT {
                // Nobody listens after the first time.
                let _ = takes_input.send(());
            }
            text.feed(byte, &mut shown);
        }
        // Debug text that cannot be shown is no reason to stop the machine.
        let _ = to.write_all(&shown).and_then(|()| to.flush());
    }
    text.last
}

/// Tells text from an exit status behind it: a byte is held until another one comes. Only the end of a
/// line is not, so that a person sees lines when they are whole.
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

/// Sends input to the machine, a stream in the form that has an end.
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
            // A machine that has ended takes nothing.
            return;
        }
    }
    if kind == Input::Stream {
        let _ = to.write_all(&[serial::END]);
    }
}

/// Has the signals that end programs end the machine first.
fn watch_signals(sender: Sender<Event>) -> Outcome<()> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM]).map_err(cannot_start)?;
    thread::spawn(move || signals.forever().try_for_each(|signal| sender.send(Event::Signal(signal))));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is shown of the pieces, the status, and whether input was asked for.
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
