//! Plan of failing requests.

use faulty_contract::faulty_disk::{FaultCounts, FaultPlan};

/// Outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is executed.
    Done,
    /// It fails.
    Fails,
    /// Half of it is executed, and then the process exits.
    Ends,
    /// It is executed, and then the power fails, before the reply.
    Last,
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A read of this many bytes at an offset.
    Read(u64, usize),
    /// A write of this many bytes at an offset.
    Write(u64, usize),
    /// A flush.
    Flush,
}

/// A plan, and the events since it was set.
#[derive(Clone, Copy)]
pub struct Progress {
    plan: FaultPlan,
    /// The counts; the number of unflushed writes is tracked elsewhere.
    pub counts: FaultCounts,
}

impl Progress {
    /// The start of a plan.
    pub fn new(plan: FaultPlan) -> Progress {
        let counts = FaultCounts {
            reads: 0,
            writes: 0,
            flushes: 0,
            failed: 0,
            bytes_read: 0,
            bytes_written: 0,
            unflushed_writes: 0,
            is_off: 0,
        };
        Progress { plan, counts }
    }

    /// The plan.
    pub fn plan(&self) -> &FaultPlan {
        &self.plan
    }

    /// Counts a request, and returns its outcome.
    pub fn ask(&mut self, asked: Asked) -> Fate {
        let (plan, counts) = (&self.plan, &mut self.counts);
        let is_off = counts.is_off != 0;
        let fails = match asked {
            Asked::Read(offset, bytes) => {
                counts.reads += 1;
                is_among(counts.reads, plan.fail_read, plan.fail_reads) || is_bad(plan, offset, bytes)
            }
            Asked::Write(offset, bytes) => {
                counts.writes += 1;
                is_among(counts.writes, plan.fail_write, plan.fail_writes) || is_bad(plan, offset, bytes)
            }
            Asked::Flush => {
                counts.flushes += 1;
                is_among(counts.flushes, plan.fail_flush, plan.fail_flushes)
            }
        };
        if fails || is_off {
            counts.failed += 1;
            return Fate::Fails;
        }
        match asked {
            Asked::Read(_, bytes) => counts.bytes_read += bytes as u64,
            Asked::Write(..) if counts.writes == plan.end_at_write => return Fate::Ends,
            Asked::Write(_, bytes) => {
                counts.bytes_written += bytes as u64;
                if counts.writes == plan.cut_after_writes {
                    return Fate::Last;
                }
            }
            Asked::Flush => {}
        }
        Fate::Done
    }
}

fn is_among(number: u64, first: u64, count: u64) -> bool {
    first != 0 && number >= first && number - first < count.max(1)
}

fn is_bad(plan: &FaultPlan, offset: u64, bytes: usize) -> bool {
    let (end, bad_end) = (offset.saturating_add(bytes as u64), plan.bad_offset.saturating_add(plan.bad_bytes));
    offset < bad_end && plan.bad_offset < end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none() -> FaultPlan {
        FaultPlan {
            fail_read: 0,
            fail_reads: 0,
            fail_write: 0,
            fail_writes: 0,
            fail_flush: 0,
            fail_flushes: 0,
            bad_offset: 0,
            bad_bytes: 0,
            cut_after_writes: 0,
            cut_seed: 0,
            end_at_write: 0,
            delay_us: 0,
        }
    }

    fn fates(plan: FaultPlan, asked: Asked) -> [Fate; 5] {
        let mut progress = Progress::new(plan);
        [(); 5].map(|()| progress.ask(asked))
    }

    #[test]
    fn requests_fail_by_number() {
        use Fate::{Done, Ends, Fails, Last};
        let write = Asked::Write(0, 512);
        assert_eq!(fates(none(), write), [Done; 5]);
        assert_eq!(fates(FaultPlan { fail_write: 2, ..none() }, write), [Done, Fails, Done, Done, Done]);
        let several = FaultPlan { fail_write: 2, fail_writes: u64::MAX, ..none() };
        assert_eq!(fates(several, write), [Done, Fails, Fails, Fails, Fails]);
        assert_eq!(fates(several, Asked::Read(0, 512)), [Done; 5]);
        assert_eq!(fates(FaultPlan { fail_flush: 1, fail_flushes: 2, ..none() }, Asked::Flush)[1..3], [Fails, Done]);
        assert_eq!(fates(FaultPlan { cut_after_writes: 3, ..none() }, write)[2], Last);
        assert_eq!(fates(FaultPlan { end_at_write: 1, ..none() }, write)[0], Ends);
    }

    #[test]
    fn requests_fail_by_place() {
        let plan = FaultPlan { bad_offset: 1024, bad_bytes: 512, ..none() };
        assert_eq!(fates(plan, Asked::Read(512, 512))[0], Fate::Done);
        assert_eq!(fates(plan, Asked::Read(512, 1024))[0], Fate::Fails);
        assert_eq!(fates(plan, Asked::Write(1536, 512))[0], Fate::Done);
    }

    #[test]
    fn without_power_all_fails() {
        let mut progress = Progress::new(none());
        progress.counts.is_off = 1;
        assert_eq!(
            [Asked::Read(0, 1), Asked::Write(0, 1), Asked::Flush].map(|asked| progress.ask(asked)),
            [Fate::Fails; 3]
        );
        assert_eq!((progress.counts.failed, progress.counts.bytes_written), (3, 0));
    }
}
