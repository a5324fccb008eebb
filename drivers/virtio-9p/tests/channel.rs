//! Messages to a device and its replies, valid and invalid, on both transports.

use nine_p::{Reply, Request, Text, errno};
use sip_virtio::model::{Behaviour, Faults, Machine, Memory, Way};
use sip_virtio::{Core, DeviceError, Kind, Platform};
use virtio_9p::channel::Channel;

const BLOCK_BYTES: usize = 1024;

/// A device that answers each walk with an error, and nothing else.
struct Host {
    tag: &'static str,
    /// Bytes written beyond the end of the buffer.
    excess: usize,
}

impl Behaviour for Host {
    fn kind(&self) -> Kind {
        Kind::Folder
    }

    fn features(&self) -> u64 {
        1
    }

    fn configuration(&self) -> Vec<u8> {
        let mut configuration = (self.tag.len() as u16).to_le_bytes().to_vec();
        configuration.extend(self.tag.bytes());
        configuration
    }

    fn queues(&self) -> u16 {
        1
    }

    fn answer(&mut self, _queue: u16, readable: &[u8], room: usize) -> Option<Vec<u8>> {
        if self.excess > 0 {
            return Some(vec![0; room + self.excess]);
        }
        let (tag, Request::Walk { .. }) = Request::decode(readable)? else { return Some(Vec::new()) };
        let mut answer = vec![0; room];
        let bytes = Reply::Failed { error: errno::ENOENT }.encode(tag, &mut answer)?;
        answer.truncate(bytes);
        Some(answer)
    }
}

fn started(host: Host, way: Way) -> (Machine, Channel<Machine, Memory>) {
    let machine = Machine::new(host, way, Faults::none());
    let channel = Channel::start(machine.clone()).expect("a device");
    (machine, channel)
}

fn message(machine: &Machine, request: &Request<'_>, tag: u16) -> (Memory, usize) {
    let mut bytes = vec![0; BLOCK_BYTES];
    let length = request.encode(tag, &mut bytes).expect("room");
    let memory = machine.allocate(BLOCK_BYTES).expect("memory");
    memory.fill(&bytes);
    (memory, length)
}

#[test]
fn the_reply_follows_the_request() {
    for way in [Way::Mmio, Way::Pci] {
        let (machine, mut channel) = started(Host { tag: "work", excess: 0 }, way);
        assert_eq!(channel.name(), "work");
        let walk = Request::Walk { fid: 0, new_fid: 1, names: vec![Text(b"a-name-that-is-longer-than-a-header")] };
        let (memory, length) = message(&machine, &walk, 7);
        let Ok(key) = channel.send(memory, length) else { panic!("there is room") };
        assert!(channel.take(key).is_none() && channel.in_flight() == 1);
        machine.run();
        channel.serve().expect("a correct device");
        let (memory, bytes) = channel.take(key).expect("answered");
        let answer = &memory.to_vec()[length..length + bytes];
        assert_eq!(Reply::decode(answer), Some((7, Reply::Failed { error: errno::ENOENT })));
        assert!(channel.take(key).is_none(), "once");
    }
}

#[test]
fn an_empty_reply_is_returned_and_an_overlong_one_is_an_error() {
    let (machine, mut channel) = started(Host { tag: "", excess: 0 }, Way::Pci);
    let (memory, length) = message(&machine, &Request::Forget { fid: 0 }, 1);
    let Ok(key) = channel.send(memory, length) else { panic!("there is room") };
    machine.run();
    channel.serve().expect("a correct device");
    assert_eq!(channel.take(key).expect("answered").1, 0);

    let (machine, mut channel) = started(Host { tag: "x", excess: 1 }, Way::Mmio);
    let (memory, length) = message(&machine, &Request::Forget { fid: 0 }, 1);
    assert!(channel.send(memory, length).is_ok());
    machine.run();
    let room = (BLOCK_BYTES - length) as u32;
    assert_eq!(channel.serve().err(), Some(DeviceError::TooMuchWritten { room, written: room + 1 }));
}

#[test]
fn a_full_queue_returns_the_message() {
    let (machine, mut channel) = started(Host { tag: "x", excess: 0 }, Way::Mmio);
    let mut taken = 0;
    loop {
        let (memory, length) = message(&machine, &Request::Forget { fid: 0 }, 1);
        match channel.send(memory, length) {
            Ok(_) => taken += 1,
            Err(memory) => break assert_eq!(memory.to_vec().len(), BLOCK_BYTES),
        }
    }
    assert_eq!(taken, 32);
}
