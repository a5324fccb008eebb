//! Events as lines: seconds since boot, processor, process, event.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use abi::{DMA, DeviceOperation, StreamRecord, TraceKind};

use crate::{File, Flow, Names, Track, story};

/// Text has a line for each event; of the calls of a [`File`], only those about the trace itself reach it.
pub(crate) struct Text;

impl File for Text {
    fn track(&mut self, _out: &mut Vec<u8>, _track: Track, _name: &str, _process_name: &str) {}

    fn slice(&mut self, _out: &mut Vec<u8>, _track: Track, _name: &str, _span_ns: (u64, u64)) {}

    fn instant(&mut self, out: &mut Vec<u8>, _track: Track, name: &str, at_ns: u64, _flow: Option<Flow>) {
        out.extend_from_slice(format!("{} {name}\n", seconds(at_ns)).as_bytes());
    }

    fn finish(&mut self, _out: &mut Vec<u8>) {}
}

fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// Appends the line of an event.
pub(crate) fn line(out: &mut Vec<u8>, event: &StreamRecord, names: &Names) {
    let Some(kind) = event.event() else { return };
    let what = match kind {
        TraceKind::Sent => format!("send {} as {:x}", names.message(event), story::flow(event)),
        TraceKind::Received => format!("receive {} as {:x}", names.message(event), story::flow(event)),
        TraceKind::RequestBegun => {
            let operation = DeviceOperation::from_number(event.b).map_or("request", DeviceOperation::text);
            let operation = if event.b == DMA { "DMA" } else { operation };
            format!("{operation} {} bytes begun, block {:x}", event.c, event.a)
        }
        TraceKind::RequestDone => format!("request done, block {:x}", event.a),
        _ => story::about(kind, event, names),
    };
    let (time, processor, name) = (seconds(event.time_ns), event.processor(), names.process(event.runner));
    out.extend_from_slice(format!("{time} [{processor}] {name} ({}) {what}\n", event.runner).as_bytes());
}
