//! What simulated machines and the tool that connects them say to each other, so that all have one virtual time.
//!
//! Each machine is a process. It runs up to a horizon, then sends a [`Round`]: the frames that it has sent, and when it
//! goes on. When the tool has the rounds of all, it answers each with a [`Grant`]: the frames that arrive, and the next
//! horizon, before which no other frame can arrive, since a link takes a minimum of time. So what a machine does depends on
//! frames and their times alone, never on which process the host ran first. Neighbours: `hal-simulated` (the machine's
//! end), `sing simulate` (the link). Deliberately not here: what becomes of a frame on its way.
#![forbid(unsafe_code)]

use std::io::{self, Read, Write};

/// Maximum bytes of a frame.
pub const MAX_FRAME_BYTES: usize = 2048;
/// Maximum frames of a message. A machine sends no more between two horizons.
pub const MAX_FRAMES: usize = 1 << 16;
/// A time that never comes.
pub const NEVER_NS: u64 = u64::MAX;

/// Returns the hardware address of a station: locally administered.
pub fn address_of(station: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, station]
}

/// An Ethernet frame without its checksum.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Frame {
    /// When it is sent, or arrives, in nanoseconds of virtual time.
    pub time_ns: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// What a machine says at its horizon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    /// When it goes on, unless a frame arrives before; [`NEVER_NS`] if it would wait for ever.
    pub next_ns: u64,
    /// The frames that it has sent since its last round, in order.
    pub sent: Vec<Frame>,
}

/// What it is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Virtual time up to which it may go on, in nanoseconds; [`NEVER_NS`] if no frame will arrive any more.
    pub horizon_ns: u64,
    /// The frames that arrive, none before the horizon of the grant before.
    pub arriving: Vec<Frame>,
}

impl Round {
    /// Sends it.
    ///
    /// # Errors
    /// The other end is gone.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        write(to, self.next_ns, &self.sent)
    }

    /// Receives one.
    ///
    /// # Errors
    /// The other end is gone, or sends something else.
    pub fn read(from: &mut impl Read) -> io::Result<Round> {
        read(from).map(|(next_ns, sent)| Round { next_ns, sent })
    }
}

impl Grant {
    /// Sends it.
    ///
    /// # Errors
    /// The other end is gone.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        write(to, self.horizon_ns, &self.arriving)
    }

    /// Receives one.
    ///
    /// # Errors
    /// The other end is gone, or sends something else.
    pub fn read(from: &mut impl Read) -> io::Result<Grant> {
        read(from).map(|(horizon_ns, arriving)| Grant { horizon_ns, arriving })
    }
}

/// A time, a count, and for each frame its time, length and bytes, all numbers of eight bytes, lowest first. In one write,
/// so that a message costs one system call.
fn write(to: &mut impl Write, time_ns: u64, frames: &[Frame]) -> io::Result<()> {
    let mut message = Vec::new();
    message.extend(time_ns.to_le_bytes());
    message.extend((frames.len() as u64).to_le_bytes());
    for frame in frames {
        message.extend(frame.time_ns.to_le_bytes());
        message.extend((frame.bytes.len() as u64).to_le_bytes());
        message.extend(&frame.bytes);
    }
    to.write_all(&message)
}

fn read(from: &mut impl Read) -> io::Result<(u64, Vec<Frame>)> {
    let time_ns = number(from)?;
    let count = bounded(number(from)?, MAX_FRAMES)?;
    let mut frames = Vec::with_capacity(count.min(64));
    for _ in 0..count {
        let time_ns = number(from)?;
        let mut bytes = vec![0; bounded(number(from)?, MAX_FRAME_BYTES)?];
        from.read_exact(&mut bytes)?;
        frames.push(Frame { time_ns, bytes });
    }
    Ok((time_ns, frames))
}

fn number(from: &mut impl Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    from.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

fn bounded(number: u64, most: usize) -> io::Result<usize> {
    let fits = usize::try_from(number).ok().filter(|&number| number <= most);
    fits.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("{number} is more than {most}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_they_were_written() {
        let frames = vec![
            Frame { time_ns: 5, bytes: vec![1, 2, 3] },
            Frame { time_ns: NEVER_NS - 1, bytes: vec![0; MAX_FRAME_BYTES] },
        ];
        for sent in [Vec::new(), frames] {
            let round = Round { next_ns: 7, sent: sent.clone() };
            let mut bytes = Vec::new();
            round.write(&mut bytes).expect("a vector takes it");
            assert_eq!(Round::read(&mut &bytes[..]).expect("a round"), round);
            let grant = Grant { horizon_ns: NEVER_NS, arriving: sent };
            let mut bytes = Vec::new();
            grant.write(&mut bytes).expect("a vector takes it");
            assert_eq!(Grant::read(&mut &bytes[..]).expect("a grant"), grant);
            assert!(Grant::read(&mut &bytes[..bytes.len() - 1]).is_err());
        }
    }

    #[test]
    fn lengths_are_bounded() {
        for (count, length) in [(MAX_FRAMES as u64 + 1, 1), (1, MAX_FRAME_BYTES as u64 + 1), (1, u64::MAX)] {
            let bytes: Vec<u8> = [1, count, 1, length].into_iter().flat_map(u64::to_le_bytes).collect();
            let error = Round::read(&mut &bytes[..]).expect_err("too much");
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        }
    }
}
