//! Losing less time by lost segments than smoltcp does, which mends one loss of a window and waits a second and more for
//! the next, or for one at the end of all that is under way.
//!
//! Where the other end acknowledges a part of what was under way when a loss was seen, the segment behind that is lost,
//! too (RFC 6582). Where it acknowledges nothing for longer than it should, the first segment is sent again to see (after
//! RFC 8985, 7). Where few segments are under way, fewer acknowledgements of the same are taken to tell of a loss. All are done by letting smoltcp believe in repeated acknowledgements; see `Connection::stir`.
//! Deliberately not here: how much may be under way; that is smoltcp's.

use crate::packet::Segment;

/// As many acknowledgements of the same say that a segment is lost.
const REPEATED: u8 = 3;
/// Bytes of a segment, nearly: so it is guessed how many are under way.
const SEGMENT_BYTES: u32 = 1460;
/// Beside two times there and back, what the other end may take to acknowledge.
const DELAY_NS: u64 = 200_000_000;
/// smoltcp's own time comes no sooner than that.
const LONGEST_NS: u64 = 900_000_000;
/// So often it is looked whether a segment got lost, without an answer. After that smoltcp's own time comes, which lets
/// less be under way.
const MOST_PROBES: u8 = 2;

/// What is known of the segments of a connection that are under way.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    /// The number that was acknowledged last, and how often since.
    acknowledged: Option<u32>,
    /// The window that was said last: an acknowledgement that says another one tells of room, not of a loss.
    window: u16,
    repeated: u8,
    /// All up to there was under way when the last loss was seen.
    to: Option<u32>,
    /// Since when nothing new was acknowledged, though something is under way.
    since_ns: Option<u64>,
    probes: u8,
    /// Something that was sent once, up to this number, and when.
    timed: Option<(u32, u64)>,
    /// How long there and back takes.
    there_and_back_ns: u64,
    /// When a segment was sent again last.
    again_ns: Option<u64>,
    is_due: bool,
}

/// Whether a sequence number comes before another.
fn is_before(number: u32, other: u32) -> bool {
    (number.wrapping_sub(other) as i32) < 0
}

/// How many acknowledgements of the same say that a segment is lost where so many bytes are under way: where there are few
/// segments, no more can come (RFC 5827).
fn enough(bytes: u32) -> u8 {
    match bytes.div_ceil(SEGMENT_BYTES) {
        2 => 1,
        3 => 2,
        _ => REPEATED,
    }
}

impl Recovery {
    /// Takes note of a segment that came, after smoltcp has had it. `acknowledged` is what counts as acknowledged now,
    /// `sent_to` what was sent so far.
    pub(super) fn hear(&mut self, segment: &Segment, acknowledged: Option<u32>, sent_to: Option<u32>, now_ns: u64) {
        let (Some(acknowledged), Some(sent_to)) = (acknowledged, sent_to) else { return };
        let says_room = core::mem::replace(&mut self.window, segment.window) != segment.window;
        if self.acknowledged != Some(acknowledged) {
            self.acknowledged = Some(acknowledged);
            self.advance(acknowledged, now_ns);
            return;
        }
        let says_nothing_new = segment.is_ack && segment.acknowledged == acknowledged && segment.sequence_bytes() == 0;
        if says_nothing_new && !says_room && is_before(acknowledged, sent_to) {
            self.repeated = self.repeated.saturating_add(1);
            let enough = enough(sent_to.wrapping_sub(acknowledged));
            if self.repeated == enough && enough < REPEATED {
                self.is_due = true;
            } else if self.repeated == REPEATED {
                // smoltcp has counted, too, and sends the segment again.
                self.note_again(sent_to, now_ns);
            }
        }
    }

    fn advance(&mut self, acknowledged: u32, now_ns: u64) {
        (self.repeated, self.probes, self.since_ns) = (0, 0, Some(now_ns));
        if let Some((number, sent_ns)) = self.timed
            && !is_before(acknowledged, number)
        {
            let took_ns = now_ns.saturating_sub(sent_ns);
            let known_ns = self.there_and_back_ns;
            self.there_and_back_ns = if known_ns == 0 { took_ns } else { known_ns - known_ns / 8 + took_ns / 8 };
            self.timed = None;
        }
        match self.to {
            Some(to) if is_before(acknowledged, to) => {
                // An answer to what was sent again cannot be there sooner.
                let answer_ns = self.again_ns.map_or(0, |again_ns| again_ns + self.there_and_back_ns / 2);
                self.is_due = now_ns >= answer_ns;
            }
            _ => self.to = None,
        }
    }

    fn note_again(&mut self, sent_to: u32, now_ns: u64) {
        self.to = Some(sent_to);
        self.again_ns = Some(now_ns);
        // Nobody can tell which of the two an acknowledgement is for.
        self.timed = None;
    }

    /// Whether the first segment is to be sent again now. `sent_to`: what was sent so far.
    pub(super) fn take_due(&mut self, sent_to: Option<u32>, now_ns: u64) -> bool {
        let is_late = self.late_at_ns().is_some_and(|time_ns| now_ns >= time_ns);
        let Some(sent_to) = sent_to.filter(|_| self.is_due || is_late) else { return false };
        if is_late {
            self.probes += 1;
            self.since_ns = Some(now_ns);
        }
        self.is_due = false;
        self.note_again(sent_to, now_ns);
        true
    }

    /// Takes note of what was sent: `before` and now up to these numbers. `is_under_way`: some of it is not acknowledged.
    pub(super) fn sent(&mut self, before: Option<u32>, sent_to: Option<u32>, is_under_way: bool, now_ns: u64) {
        if !is_under_way {
            (self.since_ns, self.to, self.is_due) = (None, None, false);
            return;
        }
        self.since_ns = self.since_ns.or(Some(now_ns));
        if before != sent_to && self.timed.is_none() && self.to.is_none() {
            self.timed = sent_to.map(|number| (number, now_ns));
        }
    }

    /// When it is time to see whether the first segment was lost; never where that takes longer than smoltcp would.
    pub(super) fn late_at_ns(&self) -> Option<u64> {
        let wait_ns =
            (self.there_and_back_ns.saturating_mul(2).saturating_add(DELAY_NS)) << self.probes.min(MOST_PROBES);
        let since_ns = self.since_ns.filter(|_| self.probes < MOST_PROBES && wait_ns < LONGEST_NS)?;
        Some(since_ns.saturating_add(wait_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn acknowledgement(number: u32) -> Segment {
        let mut bytes = [0; 20];
        bytes[..4].copy_from_slice(&[0, 80, 0, 81]);
        bytes[8..12].copy_from_slice(&number.to_be_bytes());
        (bytes[12], bytes[13]) = (5 << 4, 1 << 4);
        Segment::read(&bytes).expect("a whole header")
    }

    fn hear(recovery: &mut Recovery, number: u32, now_ms: u64) {
        recovery.hear(&acknowledgement(number), Some(number), Some(9000), now_ms * MS);
    }

    #[test]
    fn the_next_loss_of_a_window_is_seen_at_once() {
        let mut recovery = Recovery::default();
        recovery.sent(Some(1000), Some(9000), true, 0);
        hear(&mut recovery, 2000, 10);
        assert!(!recovery.take_due(Some(9000), 10 * MS), "nothing is lost yet");
        (0..3).for_each(|_| hear(&mut recovery, 2000, 11));
        assert!(!recovery.take_due(Some(9000), 12 * MS), "smoltcp does that");
        hear(&mut recovery, 5000, 21);
        assert!(recovery.take_due(Some(9000), 21 * MS));
        assert!(!recovery.take_due(Some(9000), 21 * MS), "once");
        hear(&mut recovery, 9000, 31);
        assert!(!recovery.take_due(Some(9000), 31 * MS), "all is there");
    }

    #[test]
    fn room_is_no_loss() {
        let mut recovery = Recovery::default();
        recovery.sent(Some(1000), Some(9000), true, 0);
        hear(&mut recovery, 6200, 10);
        for window in [100, 200, 300, 400] {
            let update = Segment { window, ..acknowledgement(6200) };
            recovery.hear(&update, Some(6200), Some(9000), 11 * MS);
        }
        assert!(!recovery.take_due(Some(9000), 11 * MS), "each said another window");
    }

    #[test]
    fn few_segments_need_few_acknowledgements() {
        let mut recovery = Recovery::default();
        recovery.sent(Some(1000), Some(9000), true, 0);
        hear(&mut recovery, 6200, 10);
        hear(&mut recovery, 6200, 11);
        assert!(recovery.take_due(Some(9000), 11 * MS), "two are under way, and the second has arrived");
        assert_eq!([0, 1, 2920, 2921, 4380, 4381, 65535].map(enough), [3, 3, 1, 2, 2, 3, 3]);
    }

    #[test]
    fn what_gets_no_answer_is_tried_again_and_left_to_smoltcp_then() {
        let mut recovery = Recovery::default();
        recovery.sent(Some(1000), Some(2000), true, 0);
        assert_eq!(recovery.late_at_ns(), Some(200 * MS));
        assert!(!recovery.take_due(Some(2000), 199 * MS));
        assert!(recovery.take_due(Some(2000), 200 * MS));
        assert_eq!(recovery.late_at_ns(), Some(600 * MS));
        assert!(recovery.take_due(Some(2000), 600 * MS));
        assert_eq!(recovery.late_at_ns(), None);
    }

    #[test]
    fn a_long_way_is_given_its_time() {
        let mut recovery = Recovery::default();
        recovery.sent(Some(1000), Some(2000), true, 0);
        hear(&mut recovery, 2000, 300);
        recovery.sent(Some(2000), Some(3000), true, 300 * MS);
        assert_eq!(recovery.late_at_ns(), Some(1100 * MS));
        recovery.sent(Some(3000), Some(3000), false, 500 * MS);
        assert_eq!(recovery.late_at_ns(), None, "all is acknowledged");
    }
}
