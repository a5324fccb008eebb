//! A client of a decoder in C, which it does not trust.
//!
//! The decoder is a child process, in a hardware domain of its own. The data that kills it comes back, and the next data
//! goes to a new one.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use decoder_contract::decoder::{self, Imp, ImpReadyAfterDecode, states};
use sip::exheap::ExVec;
use sip::process::Child;
use stdio::{Output, report};

sip::startup!();

const DECODER: &str = "careless-decoder";

/// Index of the decoder's only endpoint slot.
const CLIENT_SLOT: usize = 0;

/// Maximum bytes of a word's data.
const MAX_BYTES: usize = 1 << 20;

/// A running decoder.
struct Decoder {
    child: Child,
    endpoint: Imp<states::Ready>,
}

/// Has each word decoded, and prints what it says or what became of the decoder.
pub fn main(startup: Startup) -> i32 {
    let mut output = Output::new(startup.output);
    let mut decoder = None;
    for word in &startup.words {
        let told = data_of(word).and_then(|data| decode(&mut decoder, &data));
        match told {
            Ok(line) if output.write(format!("{word}: {line}\n").as_bytes()).is_ok() => {}
            Ok(_) => return 1,
            Err(reason) => {
                report::error(format_args!("`{word}` cannot be decoded: {reason}"));
                return output.finish_with(1);
            }
        }
    }
    output.finish_with(0)
}

/// The data of a word: pairs of hexadecimal digits, `xN` after all of them to repeat them.
fn data_of(word: &str) -> Result<Vec<u8>, String> {
    let (digits, times) = word.split_once('x').unwrap_or((word, "1"));
    let times: usize = times.parse().map_err(|_| "what follows `x` is no number".to_string())?;
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| {
        let pair = core::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
        u8::from_str_radix(pair, 16).ok()
    };
    let bytes: Option<Vec<u8>> = pairs.map(byte).collect();
    let bytes = bytes.ok_or_else(|| "it is not pairs of hexadecimal digits".to_string())?;
    if bytes.len().saturating_mul(times) > MAX_BYTES {
        return Err(format!("it is longer than {MAX_BYTES} bytes"));
    }
    Ok(bytes.repeat(times))
}

/// Has data decoded, by the running decoder or a new one.
fn decode(running: &mut Option<Decoder>, data: &[u8]) -> Result<String, String> {
    let said = |status: sip::Status| status.text().to_string();
    let Decoder { child, endpoint } = match running.take() {
        Some(decoder) => decoder,
        None => start()?,
    };
    let mut lent = ExVec::<u8>::new(data.len()).map_err(said)?;
    lent.copy_from_slice(data);
    match endpoint.decode(lent).receive() {
        ImpReadyAfterDecode::Decoded { text, next, .. } => {
            *running = Some(Decoder { child, endpoint: next });
            Ok(String::from_utf8_lossy(&text).into_owned())
        }
        ImpReadyAfterDecode::Malformed { position, next, .. } => {
            *running = Some(Decoder { child, endpoint: next });
            Ok(format!("malformed at byte {position}"))
        }
        ImpReadyAfterDecode::ChannelClosed(mut closed) => {
            let end = child.wait().map_err(said)?;
            let home = closed.take_home().into_iter().filter_map(|block| block.into_vec::<u8>().ok());
            let home: usize = home.map(|data| data.len()).sum();
            Ok(format!("the decoder ended: {end}; {home} bytes came home"))
        }
    }
}

fn start() -> Result<Decoder, String> {
    let said = |status: sip::Status| status.text().to_string();
    let child = sip::process::create(DECODER).map_err(|error| error.reason)?;
    let (importer, exporter) = decoder::new_channel().map_err(said)?;
    let child = child.endpoint(CLIENT_SLOT, exporter).and_then(Child::start).map_err(said)?;
    Ok(Decoder { child, endpoint: importer })
}
