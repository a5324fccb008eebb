//! The clients: one task each, on one thread, sharing one [`Terminal`].

use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::future::poll_fn;
use core::task::{Poll, Waker};

use contracts::console::{self, ConsoleError, LineKind};
use contracts::{console_events, pipe, service_provider};
use sip::Status;
use sip::channel::AnyEndpoint;
use sip::executor;
use sip::exheap::ExVec;

use terminal::page::{PAGE_START, Page};
use terminal::{LineEvent, Reading, Signal, Terminal};

use crate::Port;

/// Client number.
type Client = u64;

/// State shared by all clients.
struct Console<P> {
    terminal: Terminal,
    port: P,
    next_client: Client,
    /// The client that reads.
    reader: Option<Reader>,
    listeners: Vec<Listener>,
    /// The client that shows a page.
    page_client: Option<Client>,
    /// Wakes the input task.
    input_wanted: Option<Waker>,
}

struct Reader {
    client: Client,
    waker: Option<Waker>,
}

/// A client that gets signals typed while nothing is read. It has priority: when it wants to read,
/// it interrupts the current reader.
struct Listener {
    client: Client,
    /// The pending signal.
    signal: Option<Signal>,
    waker: Option<Waker>,
}

type Shared<P> = Rc<RefCell<Console<P>>>;

/// Serves clients until the directory service is gone.
pub async fn serve<P: Port>(
    terminal: Terminal,
    port: P,
    mut provider: service_provider::Exp<service_provider::states::Ready>,
) {
    let console = Console {
        terminal,
        port,
        next_client: 0,
        reader: None,
        listeners: Vec::new(),
        page_client: None,
        input_wanted: None,
    };
    let shared = Rc::new(RefCell::new(console));
    drop(executor::spawn(take_input(Rc::clone(&shared))));
    loop {
        match provider.receive_async().await {
            service_provider::ExpReady::Connect { endpoint, next, .. } => {
                provider = match connect(&shared, endpoint) {
                    Ok(()) => next.ack(),
                    Err(endpoint) => next.nack(service_provider::ConnectError::WrongContract, endpoint),
                };
            }
            service_provider::ExpReady::ChannelClosed(_) => return,
        }
    }
}

fn connect<P: Port>(shared: &Shared<P>, endpoint: AnyEndpoint) -> Result<(), AnyEndpoint> {
    let endpoint = match endpoint.downcast::<pipe::Exp<pipe::states::Start>>() {
        Ok(writer) => {
            drop(executor::spawn(serve_writer(Rc::clone(shared), writer.success())));
            return Ok(());
        }
        Err(endpoint) => endpoint,
    };
    let client = endpoint.downcast::<console::Exp<console::states::Start>>()?;
    let number = {
        let mut console = shared.borrow_mut();
        console.next_client += 1;
        console.next_client
    };
    drop(executor::spawn(serve_client(Rc::clone(shared), number, client.success())));
    Ok(())
}

/// Moves input from the device to the terminal while there is a reader or a listener.
async fn take_input<P: Port>(shared: Shared<P>) {
    loop {
        let bytes = poll_fn(|context| {
            let mut console = shared.borrow_mut();
            if console.wants_input() && console.port.want_input().is_err() {
                return Poll::Ready(Vec::new());
            }
            console.input_wanted = Some(context.waker().clone());
            console.port.poll_input(context)
        })
        .await;
        let mut console = shared.borrow_mut();
        if let Some(signal) = console.terminal.input(&bytes) {
            let mut out = Vec::new();
            console.terminal.show_signal(signal, &mut out);
            // A terminal that is gone shows nothing; the end of input follows.
            let _ = console.show(&out);
            console.announce(signal);
        }
        console.wake_reader();
    }
}

impl<P: Port> Console<P> {
    fn wants_input(&self) -> bool {
        let wanted = self.reader.is_some() || (self.terminal.is_interactive() && !self.listeners.is_empty());
        wanted && !self.terminal.has_ended() && self.terminal.has_room()
    }

    fn ask_for_input(&mut self) {
        if let Some(waker) = self.input_wanted.take() {
            waker.wake();
        }
    }

    fn wake_reader(&mut self) {
        if let Some(waker) = self.reader.as_mut().and_then(|reader| reader.waker.take()) {
            waker.wake();
        }
    }

    fn announce(&mut self, signal: Signal) {
        // With nested shells, the innermost has priority until it ends.
        if let Some(listener) = self.listeners.last_mut() {
            // The newest signal replaces one that is still pending.
            listener.signal = Some(signal);
            if let Some(waker) = listener.waker.take() {
                waker.wake();
            }
        }
    }

    fn is_listener(&self, client: Client) -> bool {
        self.listeners.iter().any(|listener| listener.client == client)
    }

    /// Makes the client the reader, unless there is one; a listener replaces it.
    fn become_reader(&mut self, client: Client) -> Result<(), ConsoleError> {
        if self.reader.is_some() {
            if !self.is_listener(client) {
                return Err(ConsoleError::Busy);
            }
            let mut out = Vec::new();
            self.terminal.stop_reading(&mut out);
            self.wake_reader();
            self.show(&out)?;
        }
        self.reader = Some(Reader { client, waker: None });
        self.ask_for_input();
        Ok(())
    }

    fn is_reader(&self, client: Client) -> bool {
        self.reader.as_ref().is_some_and(|reader| reader.client == client)
    }

    fn end_reading(&mut self, client: Client) {
        if self.is_reader(client) {
            self.reader = None;
        }
    }

    fn wait_as_reader(&mut self, waker: &Waker) {
        if let Some(reader) = &mut self.reader {
            reader.waker = Some(waker.clone());
        }
        self.ask_for_input();
    }

    fn show(&self, out: &[u8]) -> Result<(), ConsoleError> {
        self.port.write(out).map_err(device_error)
    }

    fn write(&mut self, block: ExVec<u8>) -> Result<(), ConsoleError> {
        if self.terminal.is_stream() {
            return self.port.write_block(block).map_err(device_error);
        }
        let mut out = Vec::new();
        self.terminal.output(&block, &mut out);
        self.show(&out)
    }

    /// Writes for a client of the console contract, which may show a page.
    fn write_for(&mut self, client: Client, block: ExVec<u8>) -> Result<(), ConsoleError> {
        if self.terminal.is_stream() {
            return self.write(block);
        }
        if block.first() == Some(&PAGE_START) {
            return self.show_page(client, &block);
        }
        if block.is_empty() {
            return self.end_page(client);
        }
        self.write(block)
    }

    fn show_page(&mut self, client: Client, bytes: &[u8]) -> Result<(), ConsoleError> {
        if !self.terminal.takes_pages() || self.page_client.is_some_and(|other| other != client) {
            return Err(ConsoleError::Busy);
        }
        self.page_client = Some(client);
        let (columns, rows) = self.port.columns_and_rows();
        let mut out = Vec::new();
        self.terminal.show_page(Page::new(bytes, columns as usize, rows as usize), &mut out);
        self.show(&out)
    }

    fn end_page(&mut self, client: Client) -> Result<(), ConsoleError> {
        if self.page_client != Some(client) {
            return Ok(());
        }
        self.page_client = None;
        let mut out = Vec::new();
        self.terminal.end_page(&mut out);
        self.show(&out)
    }

    fn begin_line(&mut self, client: Client, kind: LineKind, prompt: &[u8]) -> Result<(), ConsoleError> {
        self.become_reader(client)?;
        if let Some(page_client) = self.page_client {
            // The client that reads a line takes over the terminal.
            self.end_page(page_client)?;
        }
        let (columns, _) = self.port.columns_and_rows();
        self.terminal.set_columns(columns as usize);
        let reading = match kind {
            LineKind::Text => Reading::Text,
            LineKind::Command => Reading::Command,
            LineKind::Secret => Reading::Secret,
        };
        let mut out = Vec::new();
        self.terminal.begin_line(reading, &String::from_utf8_lossy(prompt), &mut out);
        self.show(&out).inspect_err(|_| self.reader = None)
    }

    fn end_client(&mut self, client: Client) {
        // A terminal that is gone shows nothing; the next write of a client fails.
        let _ = self.end_page(client);
        self.listeners.retain_mut(|listener| {
            let stays = listener.client != client;
            if !stays && let Some(waker) = listener.waker.take() {
                waker.wake();
            }
            stays
        });
        if self.is_reader(client) {
            let mut out = Vec::new();
            self.terminal.stop_reading(&mut out);
            self.reader = None;
            // A terminal that is gone shows nothing; the next write of a client fails.
            let _ = self.show(&out);
        }
    }
}

fn device_error(status: Status) -> ConsoleError {
    match status {
        Status::QuotaExceeded | Status::Exhausted => ConsoleError::Exhausted,
        _ => ConsoleError::DeviceError,
    }
}

fn pipe_error(error: ConsoleError) -> pipe::PipeError {
    match error {
        ConsoleError::Exhausted => pipe::PipeError::Exhausted,
        ConsoleError::NotPermitted => pipe::PipeError::NotPermitted,
        ConsoleError::Busy | ConsoleError::DeviceError => pipe::PipeError::DeviceError,
    }
}

/// Serves a program's output pipe.
async fn serve_writer<P: Port>(shared: Shared<P>, mut writer: pipe::Exp<pipe::states::Ready>) {
    loop {
        match writer.receive_async().await {
            pipe::ExpReady::Write { data, next } => {
                let outcome = shared.borrow_mut().write(data);
                writer = match outcome {
                    Ok(()) => next.accepted(),
                    Err(error) => {
                        let _ended = next.failed(pipe_error(error));
                        return;
                    }
                };
            }
            pipe::ExpReady::End { next } => {
                let _ended = next.ended();
                return;
            }
            pipe::ExpReady::ChannelClosed(_) => return,
        }
    }
}

async fn serve_client<P: Port>(shared: Shared<P>, client: Client, mut ready: console::Exp<console::states::Ready>) {
    loop {
        let next = match ready.receive_async().await {
            console::ExpReady::GetInfo { next } => {
                let console = shared.borrow();
                let (columns, rows) = console.port.columns_and_rows();
                Some(next.info(console.terminal.is_interactive(), columns, rows))
            }
            console::ExpReady::Write { data, next } => {
                let outcome = shared.borrow_mut().write_for(client, data);
                Some(match outcome {
                    Ok(()) => next.written(),
                    Err(error) => next.failed(error),
                })
            }
            console::ExpReady::ReadLine { kind, prompt, next } => read_line(&shared, client, kind, &prompt, next).await,
            console::ExpReady::Read { data, next } => {
                let outcome = read_bytes(&shared, client, data.len()).await;
                let mut data = data;
                Some(match outcome {
                    Ok(bytes) => {
                        data[..bytes.len()].copy_from_slice(&bytes);
                        next.read_done(data, bytes.len() as u32)
                    }
                    Err(error) => next.read_failed(data, error),
                })
            }
            console::ExpReady::Subscribe { events, next } => {
                shared.borrow_mut().listeners.push(Listener { client, signal: None, waker: None });
                shared.borrow_mut().ask_for_input();
                drop(executor::spawn(announce(Rc::clone(&shared), client, events)));
                Some(next.done())
            }
            console::ExpReady::ChannelClosed(_) => None,
        };
        match next {
            Some(next) => ready = next,
            None => break,
        }
    }
    shared.borrow_mut().end_client(client);
}

/// Reads one line for a client. `None` if the client is gone.
async fn read_line<P: Port>(
    shared: &Shared<P>,
    client: Client,
    kind: LineKind,
    prompt: &[u8],
    mut reading: console::Exp<console::states::Reading>,
) -> Option<console::Exp<console::states::Ready>> {
    let begun = shared.borrow_mut().begin_line(client, kind, prompt);
    if let Err(error) = begun {
        return Some(reading.failed(error));
    }
    loop {
        let event = next_line_event(shared, client).await;
        let (text, cursor) = match event {
            Ok(LineEvent::Line(line)) => {
                return Some(match ExVec::from_slice(&line) {
                    Ok(block) => reading.line(block),
                    Err(_) => reading.failed(ConsoleError::Exhausted),
                });
            }
            Ok(LineEvent::Interrupted) => return Some(reading.interrupted()),
            Ok(LineEvent::EndOfInput) => return Some(reading.end_of_input()),
            Ok(LineEvent::Complete { text, cursor }) => (text, cursor),
            Err(error) => return Some(reading.failed(error)),
        };
        let Ok(block) = ExVec::from_slice(text.as_bytes()) else {
            shared.borrow_mut().end_client(client);
            return Some(reading.failed(ConsoleError::Exhausted));
        };
        match reading.complete(block, cursor as u32).receive_async().await {
            console::ExpReadingAfterComplete::Completions { start, candidates, next } => {
                show_candidates(shared, start as usize, &candidates);
                reading = next;
            }
            console::ExpReadingAfterComplete::ChannelClosed(_) => return None,
        }
    }
}

fn show_candidates<P: Port>(shared: &Shared<P>, start: usize, candidates: &[u8]) {
    let mut console = shared.borrow_mut();
    let mut out = Vec::new();
    let texts = candidates.split(|&byte| byte == 0).filter_map(|text| core::str::from_utf8(text).ok());
    console.terminal.complete(start, texts.filter(|text| !text.is_empty()), &mut out);
    // A terminal that is gone shows nothing; the end of input follows.
    let _ = console.show(&out);
}

/// Waits for the next event of the line that the client reads. If another reader takes over, that is `Interrupted`.
async fn next_line_event<P: Port>(shared: &Shared<P>, client: Client) -> Result<LineEvent, ConsoleError> {
    poll_fn(|context| {
        let mut console = shared.borrow_mut();
        if !console.is_reader(client) {
            return Poll::Ready(Ok(LineEvent::Interrupted));
        }
        let mut out = Vec::new();
        let event = console.terminal.line_event(&mut out);
        if let Err(error) = console.show(&out) {
            console.end_reading(client);
            return Poll::Ready(Err(error));
        }
        match event {
            None => {
                console.wait_as_reader(context.waker());
                Poll::Pending
            }
            Some(event) => {
                if !matches!(event, LineEvent::Complete { .. }) {
                    console.end_reading(client);
                    // Ctrl-C while another program reads is reported to the listener, too.
                    if event == LineEvent::Interrupted && !console.is_listener(client) {
                        console.announce(Signal::Interrupt);
                    }
                }
                Poll::Ready(Ok(event))
            }
        }
    })
    .await
}

async fn read_bytes<P: Port>(shared: &Shared<P>, client: Client, count: usize) -> Result<Vec<u8>, ConsoleError> {
    {
        let mut console = shared.borrow_mut();
        console.become_reader(client)?;
        console.terminal.begin_bytes();
    }
    poll_fn(|context| {
        let mut console = shared.borrow_mut();
        if !console.is_reader(client) {
            return Poll::Ready(Err(ConsoleError::Busy));
        }
        match console.terminal.bytes(count) {
            None => {
                console.wait_as_reader(context.waker());
                Poll::Pending
            }
            Some(bytes) => {
                console.end_reading(client);
                Poll::Ready(Ok(bytes))
            }
        }
    })
    .await
}

/// Sends signals to a listener, one at a time.
async fn announce<P: Port>(
    shared: Shared<P>,
    client: Client,
    mut events: console_events::Exp<console_events::states::Ready>,
) {
    while let Some(signal) = next_signal(&shared, client).await {
        let next = match signal {
            Signal::Interrupt => match events.interrupt().receive_async().await {
                console_events::ExpReadyAfterInterrupt::Next { next } => Some(next),
                console_events::ExpReadyAfterInterrupt::ChannelClosed(_) => None,
            },
            Signal::Stop => match events.stop().receive_async().await {
                console_events::ExpReadyAfterStop::Next { next } => Some(next),
                console_events::ExpReadyAfterStop::ChannelClosed(_) => None,
            },
        };
        let Some(next) = next else {
            shared.borrow_mut().listeners.retain(|listener| listener.client != client);
            return;
        };
        events = next;
    }
}

/// Returns the next signal for a listener; `None` once it is no listener any more.
async fn next_signal<P: Port>(shared: &Shared<P>, client: Client) -> Option<Signal> {
    poll_fn(|context| {
        let mut console = shared.borrow_mut();
        let Some(listener) = console.listeners.iter_mut().find(|listener| listener.client == client) else {
            return Poll::Ready(None);
        };
        let signal = listener.signal.take();
        if signal.is_some() {
            return Poll::Ready(signal);
        }
        listener.waker = Some(context.waker().clone());
        Poll::Pending
    })
    .await
}
