//! The runtime against a hostile program: code of its own in every trait that it can implement, and the message buffer
//! overwritten wherever it can be. Attempts end in a panic, not in memory of the program's choice.

mod double;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use double::{blocks_alive, endpoints_alive, run};
use sip::Deadline;
use sip::channel::{Closed, Incoming, Outgoing, RawEndpoint, Receiver, TypedEndpoint};
use sip::exheap::ExVec;

sip::contracts!("tests/exchange.contract");

/// The tests count live objects, so they run one at a time.
static TURN: Mutex<()> = Mutex::new(());

fn alone<T>(body: impl FnOnce() -> T) -> T {
    let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    // Left by tests that end in a panic.
    double::free_lost_blocks();
    let before = (blocks_alive(), endpoints_alive());
    let result = run(body);
    assert_eq!((blocks_alive(), endpoints_alive()), before, "blocks and endpoints alive");
    result
}

/// Forged handle, address and length, written over those of a block.
const FORGED: [u64; 64] = [0x4141_4141_4141_4141; 64];

fn forged_text(bytes: usize) -> String {
    let mut text: String = FORGED.iter().flat_map(|word| word.to_le_bytes()).map(char::from).collect();
    text.push('A');
    text[..bytes].into()
}

/// A program's own endpoint type, whose messages stay in the buffer until the test reads them.
struct Keeps {
    raw: RawEndpoint,
    /// Runs at the start of [`TypedEndpoint::raw`].
    meddle: fn(),
}

impl Keeps {
    fn of(endpoint: impl TypedEndpoint) -> Keeps {
        Keeps { raw: endpoint.into_raw(), meddle: || {} }
    }
}

impl TypedEndpoint for Keeps {
    type Contract = exchange::Exchange;
    const IMPORTER: bool = false;
    const STATE: u16 = 0;
    fn raw(&self) -> &RawEndpoint {
        (self.meddle)();
        &self.raw
    }
    fn into_raw(self) -> RawEndpoint {
        self.raw
    }
    fn from_raw(raw: RawEndpoint) -> Keeps {
        Keeps { raw, meddle: || {} }
    }
}

impl Receiver for Keeps {
    type Event = Result<(Incoming, RawEndpoint), Closed>;
    // The endpoint is kept: closing it would be an ABI call, which ends the use of the buffer.
    fn finish(self, incoming: Incoming) -> Self::Event {
        Ok((incoming, self.raw))
    }
    fn finish_closed(self, closed: Closed) -> Self::Event {
        Err(closed)
    }
}

#[test]
fn no_safe_function_leaves_forged_words_where_a_message_lies() {
    let uses: [(&str, fn()); 12] = [
        ("exists", || _ = sip::device::exists(&forged_text(512))),
        ("exists with too long a name", || _ = sip::device::exists(&forged_text(513))),
        ("create", || _ = sip::process::create(&forged_text(512))),
        ("create with too long a name", || _ = sip::process::create(&forged_text(513))),
        ("uninstall", || _ = sip::programs::uninstall(&forged_text(513))),
        ("note", || _ = sip::audit::note(&forged_text(512))),
        ("write_line", || sip::debug::write_line(format_args!("{}", forged_text(513)))),
        ("write_line of less", || sip::debug::write_line(format_args!("{}", forged_text(511)))),
        ("own", || _ = sip::principal::own()),
        ("parameter_bytes", || _ = sip::config::parameter_bytes(77)),
        ("usage", || _ = sip::memory::usage()),
        ("a message", || _ = FORGED.into_iter().fold(Outgoing::new(), Outgoing::word)),
    ];
    alone(|| {
        double::give_parameter(77, forged_text(512).as_bytes());
        for (name, use_buffer) in uses {
            let (importer, exporter) = exchange::new_channel().unwrap();
            let text = ExVec::from_slice(b"mine").unwrap();
            let address = text.as_ptr();
            let _importer = importer.say(true, 1, [0; 5], text);
            let exporter = Keeps::of(exporter);
            let Ok((mut incoming, _raw)) = sip::channel::receive(exporter) else { panic!("closed") };
            use_buffer();
            let taken = catch_unwind(AssertUnwindSafe(|| incoming.block::<ExVec<u8>>()));
            match taken {
                Ok(block) => assert_eq!((block.as_ptr(), block.len()), (address, 4), "{name}"),
                // A real program has ended; the test continues, and has the double free the contents of the message.
                Err(_) => double::free_lost_blocks(),
            }
        }
    });
}

#[test]
fn a_wait_for_many_writes_no_handles_under_a_message() {
    use std::cell::RefCell;
    thread_local! {
        static KEPT: RefCell<Option<Incoming>> = const { RefCell::new(None) };
        static TAKEN: RefCell<Option<ExVec<u8>>> = const { RefCell::new(None) };
    }
    alone(|| {
        let (_first, exporter) = exchange::new_channel().unwrap();
        let mut hostile = Keeps::of(exporter);
        // Between the handles of the wait, where the kernel described the block.
        hostile.meddle = || TAKEN.set(KEPT.take().map(|mut incoming| incoming.block()));
        let events: Vec<_> = (0..9).map(|_| sip::sync::Event::manual().unwrap()).collect();
        let mut things: Vec<&dyn sip::select::Waitable> = Vec::new();
        things.extend(events.iter().map(|event| event as &dyn sip::select::Waitable));
        things.push(&hostile);
        let (importer, exporter) = exchange::new_channel().unwrap();
        let _importer = importer.say(true, 1, [0; 5], ExVec::from_slice(b"mine").unwrap());
        let Ok((incoming, _raw)) = sip::channel::receive(Keeps::of(exporter)) else { panic!("closed") };
        KEPT.set(Some(incoming));
        let _ = sip::select::wait_any(&things, Deadline::PASSED);
        assert_eq!(*TAKEN.take().unwrap(), *b"mine");
    });
}

#[test]
fn code_of_the_program_does_not_run_between_an_answer_and_its_reading() {
    alone(|| {
        let (importer, exporter) = exchange::new_channel().unwrap();
        let importer = importer.read(ExVec::<u8>::from_slice(b"lent").unwrap());
        drop(exporter);
        // Words of a message that is not sent: they describe one returned block, at a forged address.
        let meddle = || drop(Outgoing::new().word(1).word(0x4141).word(0x4141_0000).word(4096));
        let hostile = Keeps { raw: TypedEndpoint::into_raw(importer), meddle };
        let Err(mut closed) = sip::channel::receive(hostile) else { panic!("not closed") };
        let home = closed.take_home();
        assert_eq!(home.iter().map(|block| block.byte_count()).collect::<Vec<_>>(), [4]);
        let Ok(block) = home.into_iter().next().unwrap().into_vec::<u8>() else { panic!("not bytes") };
        assert_eq!(*block, *b"lent");
    });
}
