//! The runtime against the kernel double: messages arrive as sent, owned objects are released
//! once, and careless or hostile programs end in a panic, not in memory corruption.

mod double;

use std::sync::Mutex;

use double::{blocks_alive, endpoints_alive, run};
use sip::Deadline;
use sip::channel::{Incoming, Inline, Outgoing};
use sip::exheap::{ExBox, ExVec, Lent};

sip::contracts!("tests/exchange.contract");

use exchange::{ExpReady, ImpReadyAfterRead, ImpReadyAfterSay};

/// The tests count live objects, so they run one at a time.
static TURN: Mutex<()> = Mutex::new(());

fn alone<T>(body: impl FnOnce() -> T) -> T {
    let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let before = (blocks_alive(), endpoints_alive());
    let result = run(body);
    assert_eq!((blocks_alive(), endpoints_alive()), before, "blocks and endpoints alive");
    result
}

#[test]
fn a_message_arrives_as_it_was_sent() {
    alone(|| {
        let (importer, exporter) = exchange::new_channel().unwrap();
        let text = ExVec::from_slice(b"a text that moves").unwrap();
        let address = text.as_ptr();
        let importer = importer.say(true, -3, *b"12345", text);
        let ExpReady::Say { loud, degree, name, text, next } = exporter.receive() else { panic!("not Say") };
        assert_eq!((loud, degree, &name, &*text), (true, -3, b"12345", &b"a text that moves"[..]));
        assert_eq!(text.as_ptr(), address, "a block is not copied");
        let exporter = next.said(i64::MIN);
        let ImpReadyAfterSay::Said { when, next } = importer.receive() else { panic!("not Said") };
        assert_eq!(when, i64::MIN);
        drop(next);
        assert!(matches!(exporter.receive(), ExpReady::ChannelClosed(_)));
    });
}

#[test]
fn a_lent_block_comes_back_and_comes_home() {
    alone(|| {
        let (importer, exporter) = exchange::new_channel().unwrap();
        let importer = importer.read(ExVec::<u8>::new(100).unwrap());
        let ExpReady::Read { mut data, next } = exporter.receive() else { panic!("not Read") };
        data[99] = 7;
        let exporter = next.read_done(data, 100);
        let ImpReadyAfterRead::ReadDone { data, count, next } = importer.receive() else { panic!("not ReadDone") };
        assert_eq!((data[99], data.len(), count), (7, 100, 100));
        assert!(Lent::claim(data).is_err(), "it is the lender's own again");

        let importer = next.read(ExVec::<u8>::from_slice(&[5; 64]).unwrap());
        drop(exporter);
        let ImpReadyAfterRead::ChannelClosed(mut closed) = importer.receive() else { panic!("not closed") };
        let mut home = closed.take_home();
        assert_eq!(home.len(), 1);
        let block = home.remove(0);
        let block = block.into_vec::<u32>().expect_err("it was allocated as bytes");
        assert_eq!(*block.into_vec::<u8>().unwrap(), [5; 64]);
    });
}

#[test]
fn endpoints_move_and_tell_their_type() {
    alone(|| {
        let (importer, exporter) = exchange::new_channel().unwrap();
        let (first, _first_peer) = exchange::new_channel().unwrap();
        let (second, _second_peer) = exchange::new_channel().unwrap();
        let _importer = importer.take(first, second);
        let ExpReady::Take { other, unknown, next: _next } = exporter.receive() else { panic!("not Take") };
        drop(other);
        let unknown = unknown.downcast::<exchange::Exp<exchange::states::Ready>>().err().unwrap();
        assert!(unknown.downcast::<exchange::Imp<exchange::states::Ready>>().is_ok());
    });
}

#[test]
fn flags_come_as_they_were_sent() {
    use exchange::{Note, Tone};
    assert_eq!((Tone::LOW.bits(), Tone::NEAR_BY.bits(), Tone::all().bits()), (1, 4, 7));
    assert_eq!((Tone::from_bits(6), Tone::from_bits(8)), (Some(Tone::LOUD | Tone::NEAR_BY), None));
    assert!(Tone::empty().is_empty() && Tone::LOW.when(false).is_empty() && !Tone::LOW.when(true).is_empty());
    let mut tone = Tone::LOW;
    tone |= Tone::NEAR_BY;
    assert!(tone.contains(Tone::NEAR_BY) && !tone.contains(Tone::LOW | Tone::LOUD));
    alone(|| {
        let (importer, exporter) = exchange::new_channel().unwrap();
        let _importer = importer.play(tone, ExVec::from_slice(&[Note { tone: Tone::LOUD, length: 2 }]).unwrap());
        let ExpReady::Play { tone: received, notes, next: _next } = exporter.receive() else { panic!("not Play") };
        assert_eq!((received, notes[0].tone, notes[0].length), (tone, Tone::LOUD, 2));
    });
}

#[test]
fn unknown_flags_of_a_block_go_no_further() {
    use exchange::{Note, Tone};
    alone(|| {
        let (importer, exporter) = exchange::new_channel().unwrap();
        let raw = sip::channel::TypedEndpoint::into_raw(importer);
        // No check covers the content of a block.
        let notes = ExVec::from_slice(&[0xf9u8, 0]).unwrap();
        let raw = Outgoing::new().value(Tone::LOUD).block(notes).send(raw, 6);
        let ExpReady::Play { notes, next: _next, .. } = exporter.receive() else { panic!("not Play") };
        let Note { tone, .. } = notes[0];
        assert_eq!((tone.bits(), tone.contains(Tone::LOW)), (1, true));
        drop(raw);
    });
}

#[test]
fn a_block_too_short_for_its_type_reads_as_zeroes() {
    alone(|| {
        let (importer, exporter) = exchange::new_channel().unwrap();
        // A hostile peer with its own idea of the contract: three bytes for a ulong.
        let raw = sip::channel::TypedEndpoint::into_raw(importer);
        let short = ExVec::from_slice(&[1u8, 2, 3]).unwrap();
        let raw = Outgoing::new().block(short).send(raw, 4);
        let ExpReady::Point { point, next: _next } = exporter.receive() else { panic!("not Point") };
        assert_eq!(*point, 0x03_02_01);
        drop(raw);
    });
}

#[test]
fn deadlines_give_the_endpoint_back() {
    alone(|| {
        let (_importer, exporter) = exchange::new_channel().unwrap();
        let exporter = exporter.try_receive().err().unwrap();
        let exporter = exporter.receive_by(Deadline::after_ms(3)).err().unwrap();
        drop(exporter);
    });
}

/// A scalar whose `put` and `take` overwrite the message buffer.
#[derive(Clone, Copy)]
struct Meddler;

impl Inline for Meddler {
    fn put(self, outgoing: Outgoing) -> Outgoing {
        let _other = Outgoing::new().word(0xdead);
        outgoing.word(1)
    }
    fn take(incoming: &mut Incoming) -> Meddler {
        let _other = Outgoing::new().word(0xdead);
        let _ = incoming.word();
        Meddler
    }
}

#[test]
#[should_panic(expected = "used for something else")]
fn a_message_cannot_be_overwritten_while_it_is_written() {
    alone(|| {
        let _ = Outgoing::new().word(1).value(Meddler);
    });
}

#[test]
#[should_panic(expected = "used for something else")]
fn a_stale_message_cannot_write_into_a_newer_one() {
    alone(|| {
        let stale = Outgoing::new();
        let _newer = Outgoing::new().word(7);
        let _ = stale.word(0xdead);
    });
}

#[test]
#[should_panic(expected = "scalars, blocks, endpoints")]
fn a_message_is_written_in_its_order() {
    alone(|| {
        let block = ExVec::<u8>::new(8).unwrap();
        let _ = Outgoing::new().block(block).word(7);
    });
}

mod forged {
    //! A program's own decoder of a message.
    use sip::channel::{Closed, Incoming, RawEndpoint, Receiver, TypedEndpoint};
    use sip::exheap::ExVec;

    pub struct AsBlock(pub RawEndpoint);

    impl TypedEndpoint for AsBlock {
        type Contract = super::exchange::Exchange;
        const IMPORTER: bool = true;
        const STATE: u16 = 0;
        fn raw(&self) -> &RawEndpoint {
            &self.0
        }
        fn into_raw(self) -> RawEndpoint {
            self.0
        }
        fn from_raw(raw: RawEndpoint) -> AsBlock {
            AsBlock(raw)
        }
    }

    impl Receiver for AsBlock {
        type Event = ExVec<u64>;
        fn finish(self, mut incoming: Incoming) -> ExVec<u64> {
            incoming.block()
        }
        fn finish_closed(self, _: Closed) -> ExVec<u64> {
            panic!("closed")
        }
    }
}

#[test]
#[should_panic(expected = "not possible in this state")]
fn numbers_cannot_be_received_as_a_block() {
    alone(|| {
        let (importer, exporter) = exchange::new_channel().unwrap();
        let exporter = sip::channel::TypedEndpoint::into_raw(exporter);
        let _exporter = Outgoing::new().word(0x1000).word(0x7fff_0000_0000).word(4096).send(exporter, 3);
        // The memory of another process, if this succeeded.
        let stolen = sip::channel::receive(forged::AsBlock(sip::channel::TypedEndpoint::into_raw(importer)));
        println!("{}", stolen[0]);
    });
}

#[test]
fn what_is_not_taken_of_a_message_is_freed() {
    struct Careless(sip::channel::RawEndpoint);
    impl sip::channel::TypedEndpoint for Careless {
        type Contract = exchange::Exchange;
        const IMPORTER: bool = false;
        const STATE: u16 = 0;
        fn raw(&self) -> &sip::channel::RawEndpoint {
            &self.0
        }
        fn into_raw(self) -> sip::channel::RawEndpoint {
            self.0
        }
        fn from_raw(raw: sip::channel::RawEndpoint) -> Careless {
            Careless(raw)
        }
    }
    impl sip::channel::Receiver for Careless {
        type Event = ();
        fn finish(self, _: Incoming) {}
        fn finish_closed(self, _: sip::channel::Closed) {}
    }
    alone(|| {
        let (importer, exporter) = exchange::new_channel().unwrap();
        let importer = importer.say(false, 0, [0; 5], ExVec::new(10).unwrap());
        sip::channel::receive(Careless(sip::channel::TypedEndpoint::into_raw(exporter)));
        drop(importer);
        let (importer, exporter) = exchange::new_channel().unwrap();
        let (first, _first) = exchange::new_channel().unwrap();
        let (second, _second) = exchange::new_channel().unwrap();
        let _importer = importer.take(first, second);
        sip::channel::receive(Careless(sip::channel::TypedEndpoint::into_raw(exporter)));
    });
}

#[test]
fn blocks_split_and_carry_others() {
    alone(|| {
        let mut numbers = ExVec::<u32>::from_slice(&(0..100).collect::<Vec<u32>>()).unwrap();
        assert!(numbers.split_off(17).is_err(), "17 elements are not a multiple of 64 bytes");
        assert!(numbers.split_off(1600).is_err(), "past the end");
        let rest = numbers.split_off(16).unwrap();
        assert_eq!((numbers.len(), rest.len(), rest[0]), (16, 84, 16));
        let mut parent = ExBox::new(5u64).unwrap();
        parent.attach(numbers).unwrap();
        parent.attach(rest).unwrap();
        let last = parent.detach().unwrap().unwrap().into_vec::<u32>().unwrap();
        assert_eq!((last.len(), *parent), (84, 5));
    });
}

#[test]
fn a_wait_set_gives_whoever_is_ready() {
    alone(|| {
        let mut set = sip::select::WaitSet::new().unwrap();
        let mut peers = Vec::new();
        let mut keys = Vec::new();
        for _ in 0..20 {
            let (importer, exporter) = exchange::new_channel().unwrap();
            keys.push(set.insert(exporter));
            peers.push(Some(importer));
        }
        assert!(set.wait(Deadline::PASSED).is_none());
        let _sent = peers[13].take().unwrap().say(true, 1, [0; 5], ExVec::new(1).unwrap());
        let (key, event) = set.wait(Deadline::NEVER).unwrap();
        assert_eq!(key, keys[13]);
        let ExpReady::Say { next, .. } = event else { panic!("not Say") };
        drop(next);
        peers[4] = None;
        let (key, event) = set.wait(Deadline::NEVER).unwrap();
        assert!(key == keys[4] && matches!(event, ExpReady::ChannelClosed(_)));
        assert!(set.remove(keys[4]).is_none() && set.remove(keys[5]).is_some());
        assert_eq!(set.len(), 17);
    });
}

#[test]
fn select_takes_one_and_leaves_the_others() {
    alone(|| {
        let (importer, exporter) = exchange::new_channel().unwrap();
        let (other_importer, other_exporter) = exchange::new_channel().unwrap();
        let waiting = other_importer.say(true, 1, [0; 5], ExVec::new(1).unwrap());
        let late = sip::select! {
            by Deadline::after_ms(2) => true,
            _event = waiting => false,
        };
        assert!(late);
        let heard = sip::select! {
            _event = exporter => 0,
            event = other_exporter => match event {
                ExpReady::Say { degree, .. } => degree,
                _ => 0,
            },
        };
        assert_eq!(heard, 1);
        drop(importer);
    });
}

#[test]
fn a_mutex_lets_one_thread_at_a_time() {
    use std::sync::Arc;
    alone(|| {
        let counter = Arc::new(sip::sync::Mutex::new(0u64));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let counter = Arc::clone(&counter);
                std::thread::spawn(move || {
                    run(|| {
                        for _ in 0..20_000 {
                            *counter.lock() += 1;
                        }
                    })
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(*counter.lock(), 80_000);
    });
}

#[test]
fn a_thread_gives_its_result() {
    alone(|| {
        let (importer, exporter) = exchange::new_channel().unwrap();
        let thread = sip::thread::spawn(move || match exporter.receive() {
            ExpReady::Say { degree, .. } => degree,
            _ => 0,
        });
        let thread = thread.unwrap();
        let importer = importer.say(false, 42, [0; 5], ExVec::new(3).unwrap());
        assert_eq!(thread.join().unwrap(), 42);
        assert!(matches!(importer.receive(), ImpReadyAfterSay::ChannelClosed(_)));
    });
}

#[test]
fn tasks_take_turns_at_their_endpoints() {
    use sip::executor;
    alone(|| {
        let (importer, exporter) = exchange::new_channel().unwrap();
        let total = executor::block_on(async move {
            let server = executor::spawn(async move {
                let mut exporter = exporter;
                let mut heard = 0;
                loop {
                    exporter = match exporter.receive_async().await {
                        ExpReady::Say { degree, next, .. } => {
                            heard += 1;
                            next.said(i64::from(degree) * 2)
                        }
                        _ => return heard,
                    };
                }
            });
            let mut importer = importer;
            let mut sum = 0;
            for degree in 0..50 {
                let waiting = importer.say(false, degree, [0; 5], ExVec::new(1).unwrap());
                let ImpReadyAfterSay::Said { when, next } = waiting.receive_async().await else { panic!("closed") };
                sum += when;
                importer = next;
            }
            executor::sleep_until(Deadline::after_ms(2)).await;
            drop(importer);
            (sum, server.await)
        });
        assert_eq!(total.unwrap(), (49 * 50, 50));
    });
}

#[test]
fn a_dropped_wait_leaves_the_wait_set() {
    use sip::executor;
    use std::future::{Future, poll_fn};
    use std::pin::pin;
    use std::task::Poll;
    alone(|| {
        let (importer, exporter) = exchange::new_channel().unwrap();
        executor::block_on(async {
            {
                let mut waiting = pin!(exporter.receive_async());
                poll_fn(|context| {
                    assert!(waiting.as_mut().poll(context).is_pending());
                    Poll::Ready(())
                })
                .await;
            }
            drop(importer);
            executor::sleep_until(Deadline::after_ms(1)).await;
        })
        .unwrap();
    });
}

#[test]
fn a_place_in_the_wait_set_serves_the_next_wait() {
    use sip::executor;
    use std::future::{Future, poll_fn};
    use std::pin::Pin;
    use std::task::Poll;
    alone(|| {
        let (importer, exporter) = exchange::new_channel().unwrap();
        let (other_importer, other) = exchange::new_channel().unwrap();
        executor::block_on(async {
            let waiting = importer.say(false, 1, [0; 5], ExVec::new(1).unwrap());
            let ExpReady::Say { next, .. } = exporter.receive_async().await else { panic!("closed") };
            let mut gone = executor::gone(&next);
            poll_fn(|context| {
                assert!(Pin::new(&mut gone).poll(context).is_pending());
                Poll::Ready(())
            })
            .await;
            let member = gone.into_member();
            assert!(member.is_some());
            let exporter = next.said(2);
            let ImpReadyAfterSay::Said { next: importer, .. } = waiting.receive_async().await else { panic!("closed") };
            let said = executor::spawn(async move { importer.say(false, 3, [0; 5], ExVec::new(1).unwrap()) });
            let ExpReady::Say { degree: 3, next, .. } = executor::receive_as(exporter, member).await else {
                panic!("closed")
            };
            let importer = said.await;
            // The place of one endpoint is no place of another.
            let mut gone = executor::gone(&next);
            poll_fn(|context| {
                assert!(Pin::new(&mut gone).poll(context).is_pending());
                Poll::Ready(())
            })
            .await;
            drop(other_importer);
            let member = gone.into_member();
            assert!(matches!(executor::receive_as(other, member).await, ExpReady::ChannelClosed(_)));
            drop(importer);
        })
        .unwrap();
    });
}

#[test]
fn a_sleep_ends_at_its_deadline_and_not_before() {
    use sip::{executor, time};
    use std::future::{Future, poll_fn};
    use std::pin::pin;
    use std::task::Poll;
    alone(|| {
        executor::block_on(async {
            executor::sleep_until(Deadline::PASSED).await;
            let deadline = Deadline::after_ms(3);
            executor::sleep_until(deadline).await;
            assert!(time::monotonic() >= deadline.as_ns());
            // Over by what has been seen of the clock, so at once; and over without anybody having looked.
            for over in [deadline, Deadline::after_ms(0)] {
                let mut sleep = pin!(executor::sleep_until(over));
                let polled = poll_fn(|context| Poll::Ready(sleep.as_mut().poll(context))).await;
                assert!(polled.is_ready());
            }
            let soon = Deadline::after_ns(1);
            executor::sleep_until(soon).await;
            assert!(soon.has_passed());
        })
        .unwrap();
    });
}

#[test]
fn parameters_are_read_as_their_type_or_refused_clearly() {
    use sip::config;
    alone(|| {
        let long = "x".repeat(2000);
        for (index, value) in [(1, "-12"), (2, "twelve"), (3, &long), (4, "a\0b\0\0"), (5, "")] {
            double::give_parameter(index, value.as_bytes());
        }
        assert_eq!(config::required::<i64>(1, "lines"), Ok(-12));
        let error = config::required::<i64>(2, "lines").unwrap_err();
        assert_eq!(error.to_string(), "the parameter `lines` is `twelve`; it takes a whole number");
        assert_eq!(config::required::<String>(3, "text").unwrap(), long);
        assert_eq!(config::repeated::<String>(4, "paths").unwrap(), ["a", "b", ""]);
        assert_eq!(config::repeated::<String>(9, "paths").unwrap(), [""; 0]);
        assert_eq!(config::required::<String>(5, "text").unwrap(), "");
        assert_eq!(config::with_default::<bool>(9, "all", "true"), Ok(true));
        let error = config::required::<bool>(9, "all").unwrap_err();
        assert_eq!(error.to_string(), "the parameter `all` is missing");
        let error = config::endpoint::<exchange::Imp<exchange::states::Ready>>(0, "peer").err().unwrap();
        assert_eq!(error.to_string(), "the endpoint `peer` was not given");
    });
}
