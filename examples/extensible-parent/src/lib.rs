//! A program that is extended by a child process: a crash of the extension costs its host nothing.
//!
//! The word lent to the extension is returned when it crashes, and a new extension takes over.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::string::String;

use client::namespace::block;
use extension_contract::extension::{self, Imp, ImpReadyAfterWork, states};
use sip::process::Child;
use stdio::{Output, report};

sip::startup!();

const EXTENSION: &str = "crashing-extension";

/// Index of the extension's only endpoint slot.
const HOST_SLOT: usize = 0;

/// A running extension.
struct Extension {
    child: Child,
    endpoint: Imp<states::Ready>,
}

/// Sends each word to the extension and prints the result.
pub fn main(startup: Startup) -> i32 {
    let mut output = Output::new(startup.output);
    let mut words = startup.words;
    if words.is_empty() {
        words = ["hello", "crash", "world"].map(String::from).into();
    }
    let mut extension = None;
    for word in &words {
        let told = run(&mut extension, word);
        match told {
            Ok(line) if output.write(line.as_bytes()).is_ok() => {}
            Ok(_) => return 1,
            Err(reason) => {
                report::error(format_args!("the extension `{EXTENSION}` cannot be used: {reason}"));
                return output.finish_with(1);
            }
        }
    }
    output.finish_with(0)
}

/// Processes one word, with the running extension or a new one.
fn run(running: &mut Option<Extension>, word: &str) -> Result<String, String> {
    let Extension { child, endpoint } = match running.take() {
        Some(extension) => extension,
        None => start()?,
    };
    let lent = block(word).map_err(|status| String::from(status.text()))?;
    match endpoint.work(lent).receive() {
        ImpReadyAfterWork::Done { text, next } => {
            *running = Some(Extension { child, endpoint: next });
            Ok(format!("{word} -> {}\n", text.to_text()))
        }
        ImpReadyAfterWork::ChannelClosed(mut closed) => {
            let end = child.wait().map_err(|status| String::from(status.text()))?;
            let home = closed.take_home().pop().and_then(|block| block.into_vec::<u8>().ok());
            let kept = home.map_or(String::from("nothing"), |text| format!("`{}`", text.to_text()));
            Ok(format!("{word} -> the extension ended: {end}; {kept} came home\n"))
        }
    }
}

fn start() -> Result<Extension, String> {
    let said = |status: sip::Status| String::from(status.text());
    let child = sip::process::create(EXTENSION).map_err(|error| error.reason)?;
    let (importer, exporter) = extension::new_channel().map_err(said)?;
    let child = child.endpoint(HOST_SLOT, exporter).and_then(Child::start).map_err(said)?;
    Ok(Extension { child, endpoint: importer })
}
