//! The link between simulated machines: one virtual time for all, and frames that get lost, late, twice or damaged.
//!
//! Each machine is granted time up to a horizon: the earliest time at which any of them can send, plus the least time that a
//! frame takes. So what happens does not depend on how fast the host runs which machine. Key type: [`Faults`], the link's
//! own. Neighbours: `simulated-link` (the messages), `dhcp` (the third station). Deliberately not here: the machines.

use std::collections::BTreeSet;
use std::os::unix::net::UnixStream;

use simulated_link::{Frame, Grant, NEVER_NS, Round};

use super::dhcp;
use super::frames;
use super::random::Random;

/// Least time of a frame on its way, and the range above it, in nanoseconds.
const LATENCY_NS: u64 = 200_000;
const LATENCY_MORE_NS: u64 = 100_000;
/// Range of the additional time of a delayed frame, which later ones overtake.
const DELAY_NS: u64 = 300_000_000;
/// Range of the time for which a cut link loses everything.
const CUT_NS: u64 = 6_000_000_000;

/// Faults of links, with how many frames there are for each that is used, on average.
const KINDS: [(&str, u64); 5] =
    [("loss", 25), ("link-delay", 25), ("duplicate", 40), ("corrupt", 40), ("link-cut", 600)];

/// Which faults a link may have, by number of the frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Faults {
    every: [Option<u64>; KINDS.len()],
    exactly: BTreeSet<(usize, u64)>,
}

impl Faults {
    /// Takes the link's kinds out of a list of kinds, in which `link` and `all` stand for all of them; returns the rest, too.
    ///
    /// # Errors
    /// A word with a number that is none.
    pub fn of_kinds(list: &str) -> Result<(Faults, String), String> {
        let mut every = [None; KINDS.len()];
        let mut rest = Vec::new();
        for word in list.split(',') {
            let (name, number) = word.split_once('/').map_or((word, None), |(name, number)| (name, Some(number)));
            let chosen = |kind: &str| kind == name || matches!(name, "link" | "all");
            for (place, (kind, usual)) in every.iter_mut().zip(KINDS).filter(|(_, (kind, _))| chosen(kind)) {
                let number = number.map_or(Ok(usual), str::parse).ok().filter(|&number| number > 0);
                *place = Some(number.ok_or_else(|| format!("{word:?}: {kind} needs a number of frames"))?);
            }
            if name != "link" && !KINDS.iter().any(|(kind, _)| *kind == name) {
                rest.push(word);
            }
        }
        let rest = if rest.is_empty() { "none".to_owned() } else { rest.join(",") };
        Ok((Faults { every, exactly: BTreeSet::new() }, rest))
    }

    /// Takes the link's faults out of a list of faults.
    pub fn exactly(list: &[String]) -> Faults {
        let of_link = list.iter().filter_map(|fault| {
            let (name, number) = fault.split_once(':')?;
            Some((KINDS.iter().position(|(kind, _)| *kind == name)?, number.parse().ok()?))
        });
        Faults { every: [None; KINDS.len()], exactly: of_link.collect() }
    }
}

/// A machine at the link.
struct Station {
    machine: UnixStream,
    /// When it goes on; `None` once it has ended.
    next_ns: Option<u64>,
    arriving: Vec<Frame>,
}

/// The link.
pub struct Link {
    stations: Vec<Station>,
    seed: u64,
    faults: Faults,
    frames: u64,
    cut_until_ns: u64,
    used: Vec<String>,
    /// A line for each frame, if they are wanted.
    trace: Option<String>,
}

impl Link {
    /// Makes the link of these machines. Station 0 is the tool's, which gives addresses; a machine's number is its place
    /// plus 1.
    pub fn new(machines: Vec<UnixStream>, seed: u64, faults: Faults) -> Link {
        let station = |machine| Station { machine, next_ns: Some(0), arriving: Vec::new() };
        let stations = machines.into_iter().map(station).collect();
        Link { stations, seed, faults, frames: 0, cut_until_ns: 0, used: Vec::new(), trace: None }
    }

    /// Keeps a line for each frame.
    pub fn traced(self) -> Link {
        Link { trace: Some(String::new()), ..self }
    }

    /// Connects the machines until all have ended; returns the faults that were used, in order, and the trace.
    pub fn run(mut self) -> (Vec<String>, Option<String>) {
        while self.receive() {
            let of = |station: &Station| {
                let arrival = station.arriving.iter().map(|frame| frame.time_ns).min().unwrap_or(NEVER_NS);
                station.next_ns.map_or(NEVER_NS, |next| next.min(arrival))
            };
            let first = self.stations.iter().map(of).min().unwrap_or(NEVER_NS);
            // If nobody ever goes on, all are told so.
            let horizon_ns = first.saturating_add(LATENCY_NS);
            for station in self.stations.iter_mut().filter(|station| station.next_ns.is_some()) {
                let mut arriving = std::mem::take(&mut station.arriving);
                arriving.sort();
                // One that has ended is noticed when it sends nothing.
                let _ = Grant { horizon_ns, arriving }.write(&mut station.machine);
            }
        }
        (self.used, self.trace)
    }

    /// Receives what each machine has sent; false once all have ended.
    fn receive(&mut self) -> bool {
        let mut sent = Vec::new();
        for (number, station) in self.stations.iter_mut().enumerate().filter(|(_, station)| station.next_ns.is_some()) {
            match Round::read(&mut station.machine) {
                Ok(round) => {
                    station.next_ns = Some(round.next_ns);
                    sent.extend(round.sent.into_iter().map(|frame| (frame.time_ns, number, frame.bytes)));
                }
                Err(_) => station.next_ns = None,
            }
        }
        // Those of one machine are in order.
        sent.sort_by_key(|&(time_ns, number, _)| (time_ns, number));
        for (time_ns, number, bytes) in sent {
            self.carry(time_ns, number, bytes);
        }
        self.stations.iter().any(|station| station.next_ns.is_some())
    }

    /// Carries a frame from a machine to the others, or loses it.
    fn carry(&mut self, time_ns: u64, from: usize, mut bytes: Vec<u8>) {
        let [loss, delay, twice, damage, cut] = std::array::from_fn(|kind| self.fault(kind));
        let latency = LATENCY_NS + self.drawn(KINDS.len(), self.frames) % LATENCY_MORE_NS;
        if let Some(drawn) = cut {
            self.cut_until_ns = time_ns + drawn % CUT_NS;
        }
        let is_lost = loss.is_some() || time_ns < self.cut_until_ns;
        if let Some(trace) = &mut self.trace {
            let fates = [
                ("lost", is_lost),
                ("delayed", delay.is_some()),
                ("twice", twice.is_some()),
                ("damaged", damage.is_some()),
            ];
            let fate: String = fates.iter().filter(|(_, is_so)| *is_so).map(|(fate, _)| format!("; {fate}")).collect();
            trace.push_str(&frames::line(time_ns, self.frames, from + 1, &fate, &bytes));
        }
        self.frames += 1;
        if is_lost {
            return;
        }
        if let Some(drawn) = damage
            && let Some(byte) = bytes.get_mut(drawn as usize % 2048)
        {
            *byte ^= 1 << (drawn >> 32 & 7);
        }
        let arrives = time_ns + latency + delay.map_or(0, |drawn| drawn % DELAY_NS);
        let again = twice.map(|drawn| arrives + drawn % DELAY_NS);
        // The tool's station sees what machines see, and answers as soon as it does.
        let answer = dhcp::answer(&bytes);
        for arrives in [Some(arrives), again].into_iter().flatten() {
            for (number, station) in self.stations.iter_mut().enumerate() {
                let frame = if number == from { answer.as_ref() } else { Some(&bytes) };
                station.arriving.extend(frame.map(|bytes| Frame { time_ns: arrives, bytes: bytes.clone() }));
            }
        }
    }

    fn fault(&mut self, kind: usize) -> Option<u64> {
        let drawn = self.drawn(kind, self.frames);
        let by_chance = self.faults.every[kind].is_some_and(|every| drawn.is_multiple_of(every));
        let is_used = by_chance || self.faults.exactly.contains(&(kind, self.frames));
        is_used.then(|| {
            self.used.push(format!("{}:{}", KINDS[kind].0, self.frames));
            drawn >> 8
        })
    }

    fn drawn(&self, kind: usize, frame: u64) -> u64 {
        let mut random = Random::new(self.seed ^ (kind as u64 + 1) << 56 ^ frame << 20);
        random.below(usize::MAX) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_links_are_told_from_those_of_machines() {
        let (faults, rest) = Faults::of_kinds("harmless,loss/3,corrupt").expect("kinds");
        assert_eq!((faults.every, rest.as_str()), ([Some(3), None, None, Some(40), None], "harmless"));
        let (faults, rest) = Faults::of_kinds("link").expect("a group");
        assert_eq!((faults.every.iter().flatten().count(), rest.as_str()), (KINDS.len(), "none"));
        let (faults, rest) = Faults::of_kinds("all").expect("a group");
        assert_eq!((faults.every.iter().flatten().count(), rest.as_str()), (KINDS.len(), "all"));
        assert!(Faults::of_kinds("loss/0").is_err() && Faults::of_kinds("loss/x").is_err());
        let exactly = Faults::exactly(&["loss:7".into(), "1/kill:3".into(), "link-cut:2".into()]);
        assert_eq!(exactly.exactly, [(0, 7), (4, 2)].into());
    }

    /// Two stations that answer the link by hand: one sends a frame every millisecond, the other listens.
    fn arrivals(faults: &str, count: u64) -> (Vec<Frame>, Vec<String>) {
        let (faults, _) = Faults::of_kinds(faults).expect("kinds");
        let pairs = [0, 1].map(|_| UnixStream::pair().expect("a pair"));
        let [(mut sender, one), (mut listener, other)] = pairs;
        let link = std::thread::spawn(move || Link::new(vec![one, other], 3, faults).run().0);
        let mut arrived = Vec::new();
        for number in 0..count + 2_000 {
            let frame = Frame { time_ns: number * 1_000_000, bytes: vec![number as u8; 60] };
            let sent = if number < count { vec![frame] } else { Vec::new() };
            Round { next_ns: number * 1_000_000, sent }.write(&mut sender).expect("the link listens");
            Round { next_ns: NEVER_NS, sent: Vec::new() }.write(&mut listener).expect("the link listens");
            let horizon = Grant::read(&mut sender).expect("a grant").horizon_ns;
            let grant = Grant::read(&mut listener).expect("a grant");
            assert!(horizon <= number * 1_000_000 + LATENCY_NS && grant.horizon_ns == horizon);
            arrived.extend(grant.arriving);
        }
        drop((sender, listener));
        (arrived, link.join().expect("the link ends"))
    }

    #[test]
    fn a_good_link_carries_every_frame_and_a_bad_one_does_not() {
        let (frames, used) = arrivals("none", 300);
        assert!(frames.iter().enumerate().all(|(number, frame)| frame.bytes == vec![number as u8; 60]));
        assert_eq!((frames.len(), used.len()), (300, 0));
        let (frames, used) = arrivals("link", 300);
        assert_eq!((frames.clone(), used.clone()), arrivals("link", 300));
        assert!(frames.len() != 300 && used.iter().any(|fault| fault.starts_with("loss:")), "{used:?}");
    }
}
