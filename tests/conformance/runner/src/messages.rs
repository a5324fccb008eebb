//! Messages when a process ends: sent ones arrive, then the end is reported, and nothing is lost.

use alloc::string::ToString;
use alloc::vec::Vec;

use conformance_contract::{errand, welcome};
use errand::{
    ExpReady, ExpReadyAfterFirst, ExpReadyAfterFirstThenSecond, ImpReadyAfterCall, ImpReadyAfterGive,
    ImpReadyAfterPass, ImpReadyAfterPassAny, ImpReadyAfterPassServer,
};
use sip::exheap::ExVec;

use crate::job::{attacker, channel, citizen, end_of, settle, stop_running};
use crate::{Outcome, Settings, Test, check, function};

/// Exits of a running citizen: by itself or killed.
pub(crate) const ENDINGS: [&str; 3] = ["exit", "panic", "wait"];

/// The tests of this module.
pub(crate) fn tests() -> Vec<Test> {
    alloc::vec![
        function("closed: a dead peer's messages are received first", queued_before_end),
        function("closed: after a contract violation too", queued_before_violation),
        function("death: with messages queued both ways", queued_both_ways),
        function("death: a block in flight is received or freed", block_in_flight),
        function("endpoint: serves two processes one after the other", endpoint_moves),
        function("endpoint: in flight when its receiver ends", in_flight_receiver_ends),
        function("endpoint: in flight when its peer closes", in_flight_peer_closes),
        function("endpoint: in flight when its sender ends", in_flight_sender_ends),
        function("endpoint: taken out of a message by a process that ends", taken_then_ended),
        function("endpoint: thousands in flight", many_in_flight),
        function("endpoint: the exporting end", server_end_moves),
        function("send: to a peer that is gone does not fail", send_to_the_dead),
        function("message: blocks arrive unchanged, of every size", block_sizes),
    ]
}

/// Ends a child that was started with one of [`ENDINGS`].
pub(crate) fn finish(child: &sip::process::Child, ending: &str) -> Outcome {
    if ending == "wait" {
        settle(child)?;
        stop_running(child)
    } else {
        end_of(child).map(drop)
    }
}

/// Whether a block equals the citizen's `patterned`.
pub(crate) fn is_patterned(block: &[u8], seed: u8) -> bool {
    block.iter().enumerate().all(|(place, &byte)| byte == seed.wrapping_add(place as u8))
}

fn receive_three(exporter: errand::Exp<errand::states::Ready>) -> Outcome {
    let ExpReady::First { data, next } = exporter.receive() else { return Err("the first message is lost".into()) };
    check!(data.len() == 4096 && is_patterned(&data, 7), "the block is not what was sent");
    let ExpReadyAfterFirst::Second { value: 2, next } = next.receive() else {
        return Err("the second message is lost".into());
    };
    let ExpReadyAfterFirstThenSecond::Third { value: 3, next } = next.receive() else {
        return Err("the third message is lost".into());
    };
    let ExpReady::ChannelClosed(_) = next.marked().receive() else {
        return Err("a dead peer's channel gave a message".into());
    };
    Ok(())
}

fn queued_before_end(_: &Settings) -> Outcome {
    for ending in ENDINGS {
        let (importer, exporter) = channel()?;
        let child = citizen("send-three").ending(ending).client(importer).start()?;
        finish(&child, ending)?;
        receive_three(exporter)?;
    }
    Ok(())
}

fn queued_before_violation(_: &Settings) -> Outcome {
    let (importer, exporter) = channel()?;
    let epitaph = attacker("send-then-violate").client(importer).run()?;
    check!(epitaph.kind == sip::process::EpitaphKind::ContractViolation, "{epitaph}");
    let ExpReady::Call { value: 12, next } = exporter.receive() else {
        return Err("what was sent before the violation is lost".into());
    };
    let ExpReady::ChannelClosed(_) = next.answer(1).receive() else {
        return Err("the violating message arrived".into());
    };
    Ok(())
}

fn queued_both_ways(_: &Settings) -> Outcome {
    for ending in ENDINGS {
        let (to_it, its_server) = channel()?;
        let (its_client, from_it) = channel()?;
        let waiting = to_it.give(ExVec::new(100_000).map_err(|status| status.text().to_string())?);
        let child = citizen("receive-nothing").ending(ending).server(its_server).client(its_client).start()?;
        finish(&child, ending)?;
        let ImpReadyAfterGive::ChannelClosed(_) = waiting.receive() else {
            return Err("a dead peer answered".into());
        };
        let ExpReady::Give { data, next } = from_it.receive() else { return Err("its message is lost".into()) };
        check!(data.len() == 70_000 && is_patterned(&data, 1), "the block is not what was sent");
        let ExpReady::ChannelClosed(_) = next.given_back(data).receive() else {
            return Err("a dead peer's channel gave a message".into());
        };
    }
    Ok(())
}

fn block_in_flight(_: &Settings) -> Outcome {
    for take in [true, false] {
        let (importer, exporter) = channel()?;
        citizen("send-block").number(300_000).client(importer).succeed()?;
        if take {
            let ExpReady::Give { data, .. } = exporter.receive() else { return Err("the block is lost".into()) };
            check!(is_patterned(&data, 7), "the block is not what was sent");
        }
    }
    Ok(())
}

fn endpoint_moves(_: &Settings) -> Outcome {
    let (mut importer, exporter) = channel()?;
    let server = citizen("serve").server(exporter).start()?;
    for _ in 0..3 {
        citizen("ask-often").number(100).client(importer).succeed()?;
        let (next, exporter) = channel()?;
        importer = next;
        let another = citizen("serve").server(exporter).start()?;
        drop(another);
    }
    end_of(&server).map(drop)
}

fn in_flight_receiver_ends(_: &Settings) -> Outcome {
    for ending in ENDINGS {
        let (carrier, its_server) = channel()?;
        let (its_client, _from_it) = channel()?;
        let (travelling, stays) = channel()?;
        let carrier = carrier.pass(travelling);
        let child = citizen("receive-nothing").ending(ending).server(its_server).client(its_client).start()?;
        finish(&child, ending)?;
        let ExpReady::ChannelClosed(_) = stays.receive() else { return Err("nobody has the other end".into()) };
        let ImpReadyAfterPass::ChannelClosed(_) = carrier.receive() else { return Err("a dead peer answered".into()) };
    }
    Ok(())
}

fn in_flight_peer_closes(_: &Settings) -> Outcome {
    let (carrier, arrival) = channel()?;
    let (travelling, stays) = channel()?;
    let _carrier = carrier.pass(travelling);
    drop(stays);
    let ExpReady::Pass { end, next } = arrival.receive() else { return Err("the endpoint is lost".into()) };
    let ImpReadyAfterCall::ChannelClosed(_) = end.call(1).receive() else { return Err("nobody answered".into()) };
    drop(next.marked());
    Ok(())
}

fn in_flight_sender_ends(_: &Settings) -> Outcome {
    for ending in ENDINGS {
        let (importer, exporter) = channel()?;
        let child = citizen("pass-and-end").ending(ending).client(importer).start()?;
        finish(&child, ending)?;
        let ExpReady::Pass { end, next } = exporter.receive() else { return Err("the endpoint is lost".into()) };
        let ImpReadyAfterCall::ChannelClosed(_) = end.call(1).receive() else { return Err("nobody answered".into()) };
        let ExpReady::ChannelClosed(_) = next.marked().receive() else { return Err("a dead peer spoke".into()) };
    }
    Ok(())
}

fn taken_then_ended(_: &Settings) -> Outcome {
    for ending in ENDINGS {
        let (carrier, its_server) = channel()?;
        let (travelling, stays) = channel()?;
        let carrier = carrier.pass(travelling);
        let child = citizen("keep-passed").ending(ending).server(its_server).start()?;
        let ExpReady::Call { value: 41, next } = stays.receive() else {
            return Err("the message over the endpoint that moved is lost".into());
        };
        finish(&child, ending)?;
        let ExpReady::ChannelClosed(_) = next.answer(42).receive() else { return Err("a dead peer spoke".into()) };
        let ImpReadyAfterPass::ChannelClosed(_) = carrier.receive() else { return Err("a dead peer answered".into()) };
    }
    Ok(())
}

/// Thousands of endpoints in unreceived messages are closed with their channels.
fn many_in_flight(_: &Settings) -> Outcome {
    let mut waiting = Vec::new();
    let mut arrivals = Vec::new();
    let mut left = Vec::new();
    for _ in 0..3000 {
        let (carrier, arrival) = channel()?;
        let (travelling, stays) = channel()?;
        waiting.push(carrier.pass(travelling));
        arrivals.push(arrival);
        left.push(stays);
    }
    drop(arrivals);
    for stays in left {
        let ExpReady::ChannelClosed(_) = stays.receive() else { return Err("nobody has the other end".into()) };
    }
    for carrier in waiting {
        let ImpReadyAfterPass::ChannelClosed(_) = carrier.receive() else { return Err("nobody answered".into()) };
    }
    Ok(())
}

fn server_end_moves(_: &Settings) -> Outcome {
    let (importer, exporter) = channel()?;
    let child = citizen("serve").server(exporter).start()?;
    let (hall, door) = welcome::new_channel().map_err(|status| status.text().to_string())?;
    let asking = importer.pass_server(door);
    let welcome::ImpStart::Success { next } = hall.receive() else { return Err("the server did not open".into()) };
    let welcome::ImpReadyAfterAsk::Told { value: 6, next } = next.ask(5).receive() else {
        return Err("the server did not answer".into());
    };
    drop(next);
    let ImpReadyAfterPassServer::Marked { next } = asking.receive() else { return Err("no answer".into()) };
    let (any, _other) = channel()?;
    let ImpReadyAfterPassAny::Marked { next } = next.pass_any(any).receive() else { return Err("no answer".into()) };
    drop(next);
    end_of(&child).map(drop)
}

fn send_to_the_dead(_: &Settings) -> Outcome {
    for _ in 0..100 {
        let (importer, exporter) = channel()?;
        drop(exporter);
        let (travelling, stays) = channel()?;
        let ImpReadyAfterPass::ChannelClosed(_) = importer.pass(travelling).receive() else {
            return Err("nobody answered".into());
        };
        let ExpReady::ChannelClosed(_) = stays.receive() else {
            return Err("an endpoint sent to nobody is open".into());
        };
    }
    Ok(())
}

fn block_sizes(_: &Settings) -> Outcome {
    let (mut importer, exporter) = channel()?;
    let child = citizen("serve").server(exporter).start()?;
    for bytes in [0usize, 1, 63, 64, 65, 4095, 4096, 4097, 65_536, 131_073, 1 << 20, 8 << 20] {
        let mut block = ExVec::<u8>::new(bytes).map_err(|status| alloc::format!("{bytes}: {}", status.text()))?;
        check!(block.iter().all(|&byte| byte == 0), "a new block of {bytes} bytes is not zero");
        for (place, byte) in block.iter_mut().enumerate() {
            *byte = (place as u8).wrapping_add(9);
        }
        let ImpReadyAfterGive::GivenBack { data, next } = importer.give(block).receive() else {
            return Err(alloc::format!("the block of {bytes} bytes is lost"));
        };
        check!(data.len() == bytes && is_patterned(&data, 9), "{bytes} bytes changed on their way");
        importer = next;
    }
    drop(importer);
    end_of(&child).map(drop)
}
