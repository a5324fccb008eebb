//! A client of the contract KnockAnswer in ordinary Rust: knocks at `/service/answer`, or the service that it is told.
#![forbid(unsafe_code)]

#[rustfmt::skip]
mod contracts;

use std::process::ExitCode;

use contracts::knock_answer::{ImpReadyAfterKnock, ImpStart, open};
use sing_guest::Status;
use sing_guest::exheap::ExVec;

/// Where the service is if no other is named.
const PATH: &str = "/service/answer";
const TEXT: &[u8] = b"knock";
const ROUNDS: u32 = 3;

fn main() -> ExitCode {
    let path = std::env::args().nth(1).unwrap_or_else(|| PATH.into());
    match knocks(&path) {
        Ok(answers) => {
            println!("{answers} answers from {path}");
            ExitCode::SUCCESS
        }
        Err(status) => {
            eprintln!("{path}: {}", status.text());
            ExitCode::FAILURE
        }
    }
}

/// Knocks, and counts the answers that are what was sent.
fn knocks(path: &str) -> Result<u32, Status> {
    let ImpStart::Success { next: mut service } = open(path)?.receive() else { return Err(Status::Closed) };
    // The same block is passed back and forth.
    let mut text = ExVec::from_slice(TEXT)?;
    let mut answers = 0;
    for round in 0..ROUNDS {
        match service.knock(round, text).receive() {
            ImpReadyAfterKnock::Answer { number, text: same, next } => {
                answers += u32::from(number == round && same.to_vec() == TEXT);
                (text, service) = (same, next);
            }
            ImpReadyAfterKnock::ChannelClosed(_) => return Err(Status::Closed),
        }
    }
    Ok(answers)
}
