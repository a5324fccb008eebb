//! Malformed responses, sent over the channel directly, because the library would not send them.

use alloc::format;
use alloc::string::String;

use contracts::http_exchange::{Imp, states};
use sip::exheap::ExVec;
use web_application::{Answered, Exchange, Gone};

/// Maximum size in bytes of all headers together; more than any server accepts.
const MAX_BYTES: u64 = 256 * 1024;

/// Responds with many or long headers.
pub async fn headers(exchange: Exchange, count: u64, bytes: u64) -> Result<Answered, Gone> {
    let value = "x".repeat(bytes.min(MAX_BYTES) as usize);
    let mut head = String::new();
    for number in 0..count {
        if head.len() as u64 > MAX_BYTES {
            break;
        }
        head += &format!("x-number-{number}: {value}\n");
    }
    say(exchange, 200, head.into_bytes(), b"many headers\n", None).await
}

/// Responds with a malformed head.
pub async fn bad_head(exchange: Exchange, kind: &str) -> Result<Answered, Gone> {
    let head: &[u8] = match kind {
        "colon" => b"no colon\n",
        "nul" => b"x-a: \0\n",
        "cr" => b"x-a: b\r\nset-cookie: injected=1\n",
        "blank" => b"x a: b\n",
        "text" => b"x-a: \xff\xfe\n",
        "lines" => b"\n\nx-a: b\n\n",
        "servers" => b"content-length: 3\ntransfer-encoding: chunked\nconnection: upgrade\n",
        _ => b": nameless\n",
    };
    say(exchange, 200, head.into(), b"a bad head\n", None).await
}

/// Responds with a status code that may be invalid.
pub async fn status(exchange: Exchange, code: u64) -> Result<Answered, Gone> {
    say(exchange, code as u16, b"content-type: text/plain\n".into(), b"a status\n", None).await
}

/// Responds with a longer announced length than it delivers.
pub async fn long_count(exchange: Exchange) -> Result<Answered, Gone> {
    say(exchange, 200, b"content-type: text/plain\n".into(), b"short\n", Some(u32::MAX)).await
}

async fn say(
    exchange: Exchange,
    status: u16,
    head: alloc::vec::Vec<u8>,
    body: &'static [u8],
    count: Option<u32>,
) -> Result<Answered, Gone> {
    exchange
        .with_channel(async move |_, channel: Imp<states::Ready>| {
            let (Ok(head), Ok(block)) = (ExVec::from_slice(&head), ExVec::from_slice(body)) else { return };
            // The server's reaction does not matter.
            drop(channel.reply(status, head, block, count.unwrap_or(body.len() as u32)).receive_async().await);
        })
        .await
}
