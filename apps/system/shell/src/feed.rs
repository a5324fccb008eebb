//! Sources of a program's standard input other than a program: a file, or the person at the console.

use alloc::vec::Vec;

use client::file_io::OpenFile;
use contracts::console::{self, LineKind};
use sip::exheap::ExVec;
use stdio::Output;

use crate::gate::{Access, Gate};
use crate::terminal::Endpoint;

const READ_BYTES: usize = 16 * 1024;

/// Writes a file to a pipe. On a read error the pipe is closed as truncated, which its reader detects.
pub fn from_file(mut file: OpenFile, mut output: Output) {
    let mut pieces = file.pieces();
    let copied = loop {
        match pieces.next() {
            Ok(Some(piece)) if output.write(piece).is_ok() => {}
            Ok(None) => break true,
            _ => break false,
        }
    };
    if copied {
        // Fails only if the reader has ended.
        let _ = output.finish();
    }
}

/// Writes console input line by line until Ctrl-D; waits while the job may not read.
pub fn from_person(mut console: Endpoint, mut output: Output, gate: &Gate) {
    while gate.wait_to_read() {
        let Ok(prompt) = ExVec::from_slice(&[]) else { return };
        let mut reading = console.read_line(LineKind::Text, prompt);
        let line = loop {
            match reading.receive() {
                console::ImpReading::Line { text, next } => break Some((Some(text), next)),
                // The shell took over the console for another job.
                console::ImpReading::Interrupted { next } if gate.access() != Access::Full => break Some((None, next)),
                console::ImpReading::EndOfInput { .. } => break None,
                console::ImpReading::Complete { next, .. } => match ExVec::from_slice(&[]) {
                    Ok(nothing) => reading = next.completions(0, nothing),
                    Err(_) => return,
                },
                console::ImpReading::Interrupted { .. }
                | console::ImpReading::Failed { .. }
                | console::ImpReading::ChannelClosed(_) => return,
            }
        };
        let Some((text, next)) = line else {
            // Fails only if the reader has ended.
            let _ = output.finish();
            return;
        };
        console = next;
        let Some(text) = text else { continue };
        let mut bytes: Vec<u8> = text.to_vec();
        bytes.push(b'\n');
        if output.write(&bytes).and_then(|()| output.flush()).is_err() {
            return;
        }
    }
}

/// Writes a byte stream as it arrives.
pub fn from_stream(mut console: Endpoint, mut output: Output) {
    loop {
        let Ok(block) = ExVec::<u8>::new(READ_BYTES) else { return };
        match console.read(block).receive() {
            console::ImpReadyAfterRead::ReadDone { count: 0, .. } => {
                // Fails only if the reader has ended.
                let _ = output.finish();
                return;
            }
            console::ImpReadyAfterRead::ReadDone { data, count, next } => {
                let count = (count as usize).min(data.len());
                if output.write(&data[..count]).and_then(|()| output.flush()).is_err() {
                    return;
                }
                console = next;
            }
            console::ImpReadyAfterRead::ReadFailed { .. } | console::ImpReadyAfterRead::ChannelClosed(_) => return,
        }
    }
}
