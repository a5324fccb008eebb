//! Connections, as their contracts specify them.

use alloc::format;
use alloc::string::String;
use core::net::{IpAddr, Ipv4Addr};

use client::namespace::Namespace;
use contracts::tcp::TcpError;
use contracts::{FOR_EVER, SocketAddress, tcp_connection, tcp_writer};
use sip::time::monotonic;

use crate::ends::{
    End, Reading, abort, accept, block, connect, ended, fill, finish, listen, loopback, pair, pattern, read, read_all,
    write,
};
use crate::{Outcome, Test, answer, check};

/// Maximum bytes per read.
const MAX_READ: u32 = 1 << 20;

pub(crate) const TESTS: &[Test] = &[
    ("connections: bytes go both ways, and each end is told", both_ways),
    ("connections: one half goes on when the other has finished", half_open),
    ("connections: who aborts resets, and who goes without a word too", resets),
    ("connections: who does not read lets the other wait, and loses nothing", slow_reader),
    ("connections: a read waits as long as it is told", slow_writer),
    ("connections: a writer writes while a read waits", writer),
    ("connections: two pieces are one", two_pieces),
    ("connections: blocks that are given away are sent, and what comes next is read", sends),
    ("connections: a send without room gives its blocks back, and reads nothing", failing_sends),
    ("connections: who goes while a read after a send waits has finished", send_and_go),
    ("connections: both ends are told by name", names),
    ("connections: what cannot be connected or listened to is refused", refusals),
    ("connections: many come and go", many),
];

fn both_ways(namespace: &mut Namespace) -> Outcome {
    let (left, right) = pair(namespace)?;
    let sent = pattern(300_000);
    // A quarter of the loopback's capacity, so that it is accepted without a reader.
    let (written, left) = write(left, &sent[..100_000], 0)?;
    check!(written.is_ok(), "left: {written:?}");
    let (there, right) = read_all(right, 100_000)?;
    check!(there == sent[..100_000], "what came is not what was sent");
    let (written, right) = write(right, &sent[100_000..100_003], 0)?;
    check!(written.is_ok(), "right: {written:?}");
    let (back, left) = read_all(left, 3)?;
    check!(back == sent[100_000..100_003], "what came back is not what was sent");
    let (done, left) = finish(left)?;
    check!(done.is_ok(), "finish: {done:?}");
    let (end, right) = read(right, FOR_EVER)?;
    check!(end == Reading::End, "after the other end finished: {end:?}");
    let (end, right) = read(right, 0)?;
    check!(end == Reading::End, "asked once more: {end:?}");
    let (done, right) = finish(right)?;
    check!(done.is_ok(), "finish at the other end: {done:?}");
    let (end, left) = read(left, FOR_EVER)?;
    check!(end == Reading::End, "at the end of both: {end:?}");
    let (again, left) = finish(left)?;
    check!(again.is_ok(), "finished twice: {again:?}");
    let (written, left) = write(left, b"more", 0)?;
    check!(written == Err((TcpError::Closed, 0)), "written after the end: {written:?}");
    drop((left, right));
    Ok(())
}

fn half_open(namespace: &mut Namespace) -> Outcome {
    let (left, right) = pair(namespace)?;
    let (_, mut left) = finish(left)?;
    let (end, mut right) = read(right, FOR_EVER)?;
    check!(end == Reading::End, "after the other end finished: {end:?}");
    for _ in 0..20 {
        let sent = pattern(10_000);
        let (written, next) = write(right, &sent, 0)?;
        right = next;
        check!(written.is_ok(), "the half that goes on: {written:?}");
        let (there, next) = read_all(left, sent.len())?;
        left = next;
        check!(there == sent, "what came is not what was sent");
    }
    // The last bytes are sent although their sender closes immediately: both ends have finished then.
    let (written, right) = write(right, b"last", 0)?;
    check!(written.is_ok(), "{written:?}");
    drop(right);
    let (there, left) = read_all(left, 5)?;
    check!(there == b"last", "after the sender went: {there:?}");
    drop(left);
    Ok(())
}

/// The peer is notified of the reset, once it has read the data before it.
fn expect_reset(end: End) -> Outcome {
    let (mut reading, mut end) = read(end, FOR_EVER)?;
    while let Reading::Data(_) = reading {
        (reading, end) = read(end, FOR_EVER)?;
    }
    check!(reading == Reading::Failed(TcpError::Reset), "{reading:?} and not a reset");
    let (written, end) = write(end, b"x", 0)?;
    check!(matches!(written, Err((TcpError::Reset | TcpError::Closed, 0))), "written after a reset: {written:?}");
    let (again, end) = read(end, 0)?;
    check!(matches!(again, Reading::Failed(_) | Reading::End), "read after a reset: {again:?}");
    drop(end);
    Ok(())
}

fn resets(namespace: &mut Namespace) -> Outcome {
    let (left, right) = pair(namespace)?;
    let left = abort(left)?;
    expect_reset(right)?;
    let (reading, left) = read(left, FOR_EVER)?;
    check!(reading == Reading::Failed(TcpError::Closed), "who aborted reads: {reading:?}");
    let (written, left) = write(left, b"x", 0)?;
    check!(written == Err((TcpError::Closed, 0)), "who aborted writes: {written:?}");
    let left = abort(left)?;
    let (done, left) = finish(left)?;
    check!(done == Err(TcpError::Closed), "who aborted finishes: {done:?}");
    drop(left);

    let (left, right) = pair(namespace)?;
    drop(left);
    expect_reset(right)?;

    // With unread data.
    let (left, right) = pair(namespace)?;
    let (_, right) = write(right, b"unread", 0)?;
    drop(left);
    expect_reset(right)
}

fn slow_reader(namespace: &mut Namespace) -> Outcome {
    let (left, right) = pair(namespace)?;
    let (mut sent, left) = fill(left)?;
    check!(sent > 64 << 10, "only {sent} bytes were taken");
    let (none, left) = write(left, b"never", 1)?;
    check!(none == Err((TcpError::TimedOut, 0)), "written where there is no room: {none:?}");
    // A blocked write resumes when there is room.
    let piece = pattern(64 << 10);
    let waits = left.write(block(&piece)?, 0, piece.len() as u32, 0);
    let (mut found, right) = read_all(right, sent / 2)?;
    let (rest, right) = read_all(right, sent - found.len())?;
    found.extend_from_slice(&rest);
    let left = match answer!(waits) {
        tcp_connection::ImpReadyAfterWrite::Written { next, .. } => next,
        tcp_connection::ImpReadyAfterWrite::WriteFailed { error, written, .. } => {
            return Err(format!("a write that had to wait: {error:?} after {written}"));
        }
        tcp_connection::ImpReadyAfterWrite::ChannelClosed(_) => return Err(ended()),
    };
    sent += piece.len();
    let (rest, right) = read_all(right, sent - found.len())?;
    found.extend_from_slice(&rest);
    check!(found.len() == sent, "{} bytes came of {sent}", found.len());
    // Pieces were split where there was no room for them, except for the first and the last one.
    check!(found[..piece.len()] == piece, "the first piece is not what was sent");
    check!(found[sent - piece.len()..] == piece, "the last piece is not what was sent");
    let (reading, right) = read(right, 0)?;
    check!(reading == Reading::Nothing, "after the last byte: {reading:?}");
    drop((left, right));
    Ok(())
}

fn slow_writer(namespace: &mut Namespace) -> Outcome {
    let (left, right) = pair(namespace)?;
    let begin = monotonic();
    let (reading, right) = read(right, 0)?;
    check!(reading == Reading::Nothing, "{reading:?}");
    let (reading, right) = read(right, 20)?;
    let waited_ms = (monotonic() - begin) / 1_000_000;
    check!(reading == Reading::Nothing && waited_ms >= 19, "{reading:?} after {waited_ms} ms");
    let asked = right.read(100, FOR_EVER);
    crate::ends::let_it_be_taken();
    let (_, left) = write(left, b"at last", 0)?;
    let right = match answer!(asked) {
        tcp_connection::ImpReadyAfterRead::Data { data, count, next } => {
            check!(data[..count as usize] == *b"at last", "{:?}", &data[..count as usize]);
            next
        }
        _ => return Err(String::from("a read that waits was not answered with what came")),
    };
    // One piece at a time, and never more than requested.
    let (_, left) = write(left, &pattern(1000), 0)?;
    let mut right = right;
    for expected in pattern(1000).chunks(7) {
        right = match answer!(right.read(7, FOR_EVER)) {
            tcp_connection::ImpReadyAfterRead::Data { data, count, next } => {
                check!(data[..count as usize] == *expected, "a small read gave something else");
                next
            }
            _ => return Err(String::from("a small read gave nothing")),
        };
    }
    let right = match answer!(right.read(0, FOR_EVER)) {
        tcp_connection::ImpReadyAfterRead::NoData { next } => next,
        _ => return Err(String::from("a read of no bytes gave something")),
    };
    drop((left, right));
    Ok(())
}

fn open_writer(end: End) -> Result<(Result<tcp_writer::Imp<tcp_writer::states::Ready>, TcpError>, End), String> {
    match answer!(end.open_writer()) {
        tcp_connection::ImpReadyAfterOpenWriter::Writer { writer, next } => Ok((Ok(writer), next)),
        tcp_connection::ImpReadyAfterOpenWriter::Failed { error, next } => Ok((Err(error), next)),
        tcp_connection::ImpReadyAfterOpenWriter::ChannelClosed(_) => Err(ended()),
    }
}

fn writer(namespace: &mut Namespace) -> Outcome {
    let (left, right) = pair(namespace)?;
    let (writer, left) = open_writer(left)?;
    let writer = writer.map_err(|error| format!("no writer: {error:?}"))?;
    let (second, left) = open_writer(left)?;
    check!(second.err() == Some(TcpError::NotPermitted), "a second writer was not refused");
    let (written, left) = write(left, b"x", 0)?;
    check!(written == Err((TcpError::NotPermitted, 0)), "written past the writer: {written:?}");
    let asked = left.read(100, FOR_EVER);
    let writer = match answer!(writer.write(block(b"from the writer")?, 5, 10, 0)) {
        tcp_writer::ImpReadyAfterWrite::Written { data, next } if data.len() == 15 => next,
        _ => return Err(String::from("the writer does not write while a read waits")),
    };
    let (there, right) = read_all(right, 10)?;
    check!(there == b"the writer", "{there:?}");
    let (_, right) = write(right, b"answer", 0)?;
    let (reading, left) = crate::ends::reading(answer!(asked))?;
    check!(reading == Reading::Data(b"answer".to_vec()), "{reading:?}");
    // Dropping it closes it.
    drop(writer);
    let (end, right) = read(right, FOR_EVER)?;
    check!(end == Reading::End, "after the writer: {end:?}");
    drop((left, right));

    let (left, right) = pair(namespace)?;
    let (writer, left) = open_writer(left)?;
    let writer = writer.map_err(|error| format!("no writer: {error:?}"))?;
    let writer = match answer!(writer.finish()) {
        tcp_writer::ImpReadyAfterFinish::Done { next } => next,
        _ => return Err(String::from("the writer cannot finish")),
    };
    let (end, right) = read(right, FOR_EVER)?;
    check!(end == Reading::End, "after the writer finished: {end:?}");
    match answer!(writer.write(block(b"x")?, 0, 1, 0)) {
        tcp_writer::ImpReadyAfterWrite::WriteFailed { error: TcpError::Closed, written: 0, .. } => {}
        _ => return Err(String::from("a finished writer writes")),
    }
    drop((left, right));
    Ok(())
}

fn two_pieces(namespace: &mut Namespace) -> Outcome {
    let (mut left, mut right) = pair(namespace)?;
    let data = pattern(40_000);
    // Bytes of the head, total length, offset and length of the data; anything outside is omitted.
    let cases: [(usize, u32, u32, u32); 8] = [
        (100, 100, 0, 40_000),
        (100, 50, 10, 100),
        (100, 0, 0, 10),
        (100, 100, 0, 0),
        (20_000, 20_000, 5, 20_000),
        (100, 200, 39_990, 100),
        (1, 1, 40_000, 1),
        (100, u32::MAX, 1, u32::MAX),
    ];
    for (head_bytes, head_count, from, count) in cases {
        let head = pattern(head_bytes);
        left = match answer!(left.write_two(block(&head)?, head_count, block(&data)?, from, count, 0)) {
            tcp_connection::ImpReadyAfterWriteTwo::WrittenTwo { head: first, data: second, next } => {
                check!(first.len() == head.len() && second.len() == data.len(), "other blocks came back");
                next
            }
            tcp_connection::ImpReadyAfterWriteTwo::WriteTwoFailed { error, .. } => return Err(format!("{error:?}")),
            tcp_connection::ImpReadyAfterWriteTwo::ChannelClosed(_) => return Err(ended()),
        };
        let first = &head[..(head_count as usize).min(head.len())];
        let from = (from as usize).min(data.len());
        let second = &data[from..(from + count as usize).min(data.len())];
        let (found, next) = read_all(right, first.len() + second.len())?;
        right = next;
        check!(found[..first.len()] == *first && found[first.len()..] == *second, "two pieces are not what was sent");
    }
    let (reading, right) = read(right, 0)?;
    check!(reading == Reading::Nothing, "after all pieces: {reading:?}");
    drop((left, right));
    Ok(())
}

/// Result of a send and read: the reading, or the number of bytes sent and the length of the blocks that came back.
type SentAndRead = Result<Reading, (usize, usize)>;

/// Receives the answer of a send and read, of one block or of two.
macro_rules! after_send {
    ($reading:expr, $answer:ident, $unsent:ident { $($block:ident),* }) => {{
        use tcp_connection::$answer as Answer;
        let (sent, next): (SentAndRead, End) = match answer!($reading) {
            Answer::Data { data, count, next } => {
                let data = data.get(..count as usize).filter(|data| !data.is_empty());
                (Ok(Reading::Data(data.ok_or("data that is not in its block")?.to_vec())), next)
            }
            Answer::NoData { next } => (Ok(Reading::Nothing), next),
            Answer::EndOfData { next } => (Ok(Reading::End), next),
            Answer::Failed { error, next } => (Ok(Reading::Failed(error)), next),
            Answer::$unsent { $($block,)* sent, next } => (Err((sent as usize, 0 $(+ $block.len())*)), next),
            Answer::ChannelClosed(_) => return Err(ended()),
        };
        (sent, next)
    }};
}

fn after_send(
    reading: tcp_connection::Imp<tcp_connection::states::ReadyAfterSendAndRead>,
) -> Result<(SentAndRead, End), String> {
    Ok(after_send!(reading, ImpReadyAfterSendAndRead, Unsent { data }))
}

fn after_sending_two(
    reading: tcp_connection::Imp<tcp_connection::states::ReadyAfterSendTwoAndRead>,
) -> Result<(SentAndRead, End), String> {
    Ok(after_send!(reading, ImpReadyAfterSendTwoAndRead, UnsentTwo { head, data }))
}

fn sends(namespace: &mut Namespace) -> Outcome {
    let (mut left, mut right) = pair(namespace)?;
    // Bytes of the block, and how many of them are sent.
    for (bytes, count) in [(1000, 900), (4096, 4096), (100, u32::MAX), (10, 0), (50_000, 50_000)] {
        let data = pattern(bytes);
        let reading = left.send_and_read(block(&data)?, count, 100, FOR_EVER);
        let sent = &data[..bytes.min(count as usize)];
        let (there, next) = read_all(right, sent.len())?;
        check!(there == sent, "{count} of {bytes} bytes: {} came", there.len());
        right = write(next, b"and back", 0)?.1;
        let (back, next) = after_send(reading)?;
        check!(back == Ok(Reading::Data(b"and back".to_vec())), "{count} of {bytes} bytes: {back:?}");
        left = next;
    }
    for (head_bytes, head_count, bytes, count) in [(1000, 200, 20_000, 19_999), (10, u32::MAX, 1, 5), (9, 0, 9, 0)] {
        let (head, data) = (pattern(head_bytes), pattern(bytes));
        let reading = left.send_two_and_read(block(&head)?, head_count, block(&data)?, count, MAX_READ, 2000);
        let (head, data) = (&head[..head_bytes.min(head_count as usize)], &data[..bytes.min(count as usize)]);
        let (there, next) = read_all(right, head.len() + data.len())?;
        check!(there[..head.len()] == *head && there[head.len()..] == *data, "two pieces are not what was sent");
        // Longer than the blocks that were given away.
        let back = pattern(30_000);
        right = write(next, &back, 0)?.1;
        let (first, next) = after_sending_two(reading)?;
        let Ok(Reading::Data(mut all)) = first else { return Err(format!("{first:?}")) };
        let (rest, next) = read_all(next, back.len() - all.len())?;
        all.extend_from_slice(&rest);
        check!(all == back, "{} bytes of {} came back", all.len(), back.len());
        left = next;
    }
    // Never more than asked for, and no longer than asked for.
    let reading = left.send_and_read(block(&pattern(4096))?, 1, 3, FOR_EVER);
    let (_, next) = read_all(right, 1)?;
    right = write(next, b"abcde", 0)?.1;
    let (first, next) = after_send(reading)?;
    check!(first == Ok(Reading::Data(b"abc".to_vec())), "at most 3 bytes: {first:?}");
    let (second, next) = after_send(next.send_and_read(block(b"x")?, 1, MAX_READ, 0))?;
    check!(second == Ok(Reading::Data(b"de".to_vec())), "the rest: {second:?}");
    let begin = monotonic();
    let (third, next) = after_send(next.send_and_read(block(b"x")?, 1, MAX_READ, 20))?;
    let waited_ms = (monotonic() - begin) / 1_000_000;
    check!(third == Ok(Reading::Nothing) && waited_ms >= 19, "{third:?} after {waited_ms} ms");
    let (_, right) = finish(right)?;
    let (end, left) = after_send(next.send_and_read(block(b"x")?, 1, MAX_READ, FOR_EVER))?;
    check!(end == Ok(Reading::End), "after the other end finished: {end:?}");
    let (there, right) = read_all(right, 3)?;
    check!(there == b"xxx", "{there:?}");
    // The connection goes on as any other.
    drop(left);
    let (end, right) = read(right, FOR_EVER)?;
    check!(end == Reading::End, "both have finished: {end:?}");
    drop(right);
    Ok(())
}

fn failing_sends(namespace: &mut Namespace) -> Outcome {
    let (left, right) = pair(namespace)?;
    let (_, left) = finish(left)?;
    let (sent, left) = after_send(left.send_and_read(block(b"late")?, 4, MAX_READ, FOR_EVER))?;
    check!(sent == Err((0, 4)), "sent after the end: {sent:?}");
    let (sent, left) =
        after_sending_two(left.send_two_and_read(block(b"late")?, 4, block(b"r")?, 1, MAX_READ, FOR_EVER))?;
    check!(sent == Err((0, 5)), "two pieces after the end: {sent:?}");
    let (written, left) = write(left, b"late", 0)?;
    check!(written == Err((TcpError::Closed, 0)), "the reason: {written:?}");
    drop((left, right));

    let (left, right) = pair(namespace)?;
    let (writer, left) = open_writer(left)?;
    let (sent, left) = after_send(left.send_and_read(block(b"x")?, 1, MAX_READ, FOR_EVER))?;
    check!(sent == Err((0, 1)), "sent past the writer: {sent:?}");
    let (sent, left) = after_sending_two(left.send_two_and_read(block(b"x")?, 1, block(b"y")?, 1, MAX_READ, FOR_EVER))?;
    check!(sent == Err((0, 2)), "two pieces past the writer: {sent:?}");
    drop((writer, left, right));

    // Without room, the blocks come back, and what was not sent can be written.
    for is_two in [false, true] {
        let (left, right) = pair(namespace)?;
        let (filled, left) = fill(left)?;
        // Longer than what a host may find on a retry.
        let (head, data) = (pattern(if is_two { 100 } else { 0 }), pattern(1 << 20));
        let all = [&head[..], &data[..]].concat();
        let (count, bytes) = (data.len() as u32, all.len());
        let (sent, left) = if is_two {
            let reading = left.send_two_and_read(block(&head)?, 100, block(&data)?, count, MAX_READ, FOR_EVER);
            after_sending_two(reading)?
        } else {
            after_send(left.send_and_read(block(&data)?, count, MAX_READ, FOR_EVER))?
        };
        let Err((sent, back)) = sent else { return Err(format!("sent where there is no room: {sent:?}")) };
        check!(sent < bytes && back == bytes, "{sent} bytes sent of {bytes}, blocks of {back} came back");
        let rest = &all[sent..];
        let waits = left.write(block(rest)?, 0, rest.len() as u32, 0);
        let (found, right) = read_all(right, filled + bytes)?;
        check!(found.ends_with(&all), "{} bytes came of {}", found.len(), filled + bytes);
        let left = match answer!(waits) {
            tcp_connection::ImpReadyAfterWrite::Written { next, .. } => next,
            _ => return Err(String::from("the rest of a send cannot be written")),
        };
        drop((left, right));
    }

    // The peer resets while the read waits.
    let (left, right) = pair(namespace)?;
    let reading = left.send_and_read(block(b"x")?, 1, MAX_READ, FOR_EVER);
    let (_, right) = read_all(right, 1)?;
    drop(abort(right)?);
    let (reset, left) = after_send(reading)?;
    check!(reset == Ok(Reading::Failed(TcpError::Reset)), "{reset:?} and not a reset");
    let (sent, left) = after_send(left.send_and_read(block(b"x")?, 1, MAX_READ, FOR_EVER))?;
    check!(sent == Err((0, 1)), "sent after a reset: {sent:?}");
    drop(left);
    Ok(())
}

fn send_and_go(namespace: &mut Namespace) -> Outcome {
    for bytes in [5, 50_000] {
        // At once, and when the send was taken.
        for waits in [false, true] {
            let (left, right) = pair(namespace)?;
            let sent = pattern(bytes);
            let reading = left.send_and_read(block(&sent)?, bytes as u32, MAX_READ, FOR_EVER);
            if waits {
                crate::ends::let_it_be_taken();
            }
            drop(reading);
            let (there, right) = read_all(right, bytes + 1)?;
            check!(there == sent, "{} of {bytes} bytes came before the end", there.len());
            drop(right);
        }
    }
    // After an answer, closing is an abort again.
    let (left, right) = pair(namespace)?;
    let reading = left.send_and_read(block(b"x")?, 1, MAX_READ, FOR_EVER);
    let (_, right) = write(right, b"y", 0)?;
    let (_, left) = after_send(reading)?;
    drop(left);
    expect_reset(right)
}

fn names(namespace: &mut Namespace) -> Outcome {
    let failed = |error| format!("{error:?}");
    let (listener, local) = listen(namespace, loopback(0), 4)?.map_err(failed)?;
    check!(local.ip() == IpAddr::V4(Ipv4Addr::LOCALHOST) && local.port != 0, "listening at {local}");
    let (left, left_local) = connect(namespace, local, 1000)?.map_err(failed)?;
    let (right, right_remote, listener) = accept(listener)?;
    check!(left_local == right_remote, "{left_local} connected, and {right_remote} was accepted");
    let (ends, right) = match answer!(right.get_addresses()) {
        tcp_connection::ImpReadyAfterGetAddresses::Addresses { local, remote, next } => ((local, remote), next),
        tcp_connection::ImpReadyAfterGetAddresses::ChannelClosed(_) => return Err(ended()),
    };
    check!(ends == (local, left_local), "who accepted is told {} and {}", ends.0, ends.1);
    let (ends, left) = match answer!(left.get_addresses()) {
        tcp_connection::ImpReadyAfterGetAddresses::Addresses { local, remote, next } => ((local, remote), next),
        tcp_connection::ImpReadyAfterGetAddresses::ChannelClosed(_) => return Err(ended()),
    };
    check!(ends == (left_local, local), "who connected is told {} and {}", ends.0, ends.1);
    let mut left = left;
    for (no_delay, keep_alive_s) in [(true, 0), (false, 1), (true, u32::MAX)] {
        left = match answer!(left.set_options(no_delay, keep_alive_s)) {
            tcp_connection::ImpReadyAfterSetOptions::Done { next } => next,
            _ => return Err(format!("options {no_delay} and {keep_alive_s} were refused")),
        };
    }
    // Connections survive their listener.
    drop(listener);
    let (_, left) = write(left, b"still", 0)?;
    let (there, right) = read_all(right, 5)?;
    check!(there == b"still", "{there:?}");
    drop((left, right));
    Ok(())
}

fn refusals(namespace: &mut Namespace) -> Outcome {
    let failed = |error| format!("{error:?}");
    let (listener, local) = listen(namespace, loopback(0), 4)?.map_err(failed)?;
    let second = listen(namespace, local, 4)?;
    check!(second.as_ref().err() == Some(&TcpError::AddressInUse), "two listen at {local}");
    drop(listener);
    let mut refused = connect(namespace, local, 1000)?.map(|_| ());
    // The listener is closed slightly after its client.
    for _ in 0..100 {
        if refused.is_err() {
            break;
        }
        crate::ends::let_it_be_taken();
        refused = connect(namespace, local, 1000)?.map(|_| ());
    }
    check!(refused == Err(TcpError::ConnectionRefused), "nobody listens at {local}: {refused:?}");
    // An unassigned documentation address (RFC 5737).
    let foreign = SocketAddress::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 0);
    let elsewhere = listen(namespace, foreign, 4)?;
    check!(elsewhere.as_ref().err() == Some(&TcpError::BadAddress), "listening at {foreign}");
    let (again, _) = listen(namespace, local, 4)?.map_err(failed)?;
    drop(again);
    Ok(())
}

fn many(namespace: &mut Namespace) -> Outcome {
    let failed = |error| format!("{error:?}");
    let (mut listener, local) = listen(namespace, loopback(0), 128)?.map_err(failed)?;
    for round in 0..5 {
        let mut open = alloc::vec::Vec::new();
        for _ in 0..100 {
            open.push(connect(namespace, local, 0)?.map_err(failed)?.0);
        }
        let mut taken = alloc::vec::Vec::new();
        for _ in 0..100 {
            let (end, _, next) = accept(listener)?;
            listener = next;
            taken.push(end);
        }
        let mut ends = alloc::vec::Vec::new();
        for (number, end) in open.into_iter().enumerate() {
            ends.push(write(end, &[number as u8; 10], 0)?.1);
        }
        let mut seen = [0; 256];
        for end in taken {
            let (bytes, _end) = read_all(end, 10)?;
            check!(bytes.iter().all(|byte| *byte == bytes[0]), "bytes of several connections are mixed");
            seen[usize::from(bytes[0])] += 1;
        }
        check!(seen[..100].iter().all(|count| *count == 1), "round {round}: not each connection came once");
    }
    Ok(())
}
