//! Well-formed responses that are late, long or truncated.

use alloc::string::String;
use alloc::vec;

use sip::Deadline;
use sip::executor::sleep_until;
use web_application::message::AnswerHead;
use web_application::{Answered, Exchange, Gone, Reply};

/// Size in bytes of a piece of a long response.
const PIECE_BYTES: usize = 32 * 1024;

fn plain() -> AnswerHead {
    AnswerHead::of_type("text/plain")
}

/// Responds after this many milliseconds.
pub async fn late(exchange: Exchange, milliseconds: u64) -> Result<Answered, Gone> {
    sleep_until(Deadline::after_ms(milliseconds)).await;
    exchange.reply(Reply::text(String::from("late\n"))).await
}

/// Responds in pieces with pauses between them.
pub async fn drip(exchange: Exchange, pieces: u64, milliseconds: u64) -> Result<Answered, Gone> {
    let mut answer = exchange.begin(200, &plain()).await?;
    for _ in 0..pieces {
        answer = answer.write(b"drip\n").await?;
        sleep_until(Deadline::after_ms(milliseconds)).await;
    }
    answer.end().await
}

/// Sends an endless response until the client is gone.
pub async fn endless(exchange: Exchange) -> Result<Answered, Gone> {
    let mut answer = exchange.begin(200, &plain()).await?;
    let piece = vec![b'.'; PIECE_BYTES];
    loop {
        answer = answer.write(&piece).await?;
    }
}

/// Responds with this many bytes without announcing the length.
pub async fn size(exchange: Exchange, bytes: u64) -> Result<Answered, Gone> {
    let mut answer = exchange.begin(200, &plain()).await?;
    let piece = vec![b'.'; PIECE_BYTES];
    let mut left = bytes;
    while left > 0 {
        let now = left.min(PIECE_BYTES as u64);
        answer = answer.write(&piece[..now as usize]).await?;
        left -= now;
    }
    answer.end().await
}

/// Starts a response and closes the channel after this many bytes.
pub async fn cut(exchange: Exchange, bytes: u64) -> Result<Answered, Gone> {
    let answer = exchange.begin(200, &plain()).await?;
    let answer = answer.write(&vec![b'.'; bytes.min(PIECE_BYTES as u64) as usize]).await?;
    Err(answer.cut_off())
}

/// Echoes the request body while it arrives.
pub async fn echo(mut exchange: Exchange) -> Result<Answered, Gone> {
    let mut whole = vec![];
    loop {
        match exchange.piece().await {
            Ok(Some((piece, count))) => whole.extend_from_slice(&piece[..count]),
            Ok(None) => break,
            Err(error) => return exchange.reply(error.reply()).await,
        }
    }
    let mut answer = exchange.begin(200, &plain()).await?;
    for piece in whole.chunks(PIECE_BYTES) {
        answer = answer.write(piece).await?;
    }
    answer.end().await
}
