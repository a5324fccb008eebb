//! Which simulated processors can go on.
//!
//! Deliberately not here: their contexts, and who is chosen.

/// State of one processor.
#[derive(Clone, Copy, Debug, Default)]
struct Processor {
    /// The deadline until which it idles.
    idle_until_ns: Option<u64>,
    /// A wake that no idle has consumed.
    woken: bool,
    /// Whether it has to enter the kernel soon.
    interrupted: bool,
    /// When its quantum ends.
    quantum_ends_ns: u64,
}

/// The states of all processors.
#[derive(Debug)]
pub(crate) struct Processors {
    all: Vec<Processor>,
    standing: Option<Standing>,
}

/// A processor that stands still.
#[derive(Clone, Copy, Debug)]
struct Standing {
    number: usize,
    /// The number of ABI calls of the run after which it stands still no more.
    until_call: u64,
}

/// A processor's quantum, as on the other machines.
const QUANTUM_NS: u64 = 10_000_000;

impl Processors {
    pub(crate) fn new(count: usize) -> Processors {
        Processors { all: vec![Processor::default(); count], standing: None }
    }

    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }

    /// Begins to idle.
    pub(crate) fn begin_idle(&mut self, number: usize, until_ns: u64) {
        self.all[number].idle_until_ns = Some(until_ns);
    }

    /// Ends idling if there is a reason; returns whether there is.
    pub(crate) fn end_idle(&mut self, number: usize, now_ns: u64) -> bool {
        let is_over = self.can_run(number, now_ns);
        if is_over {
            self.all[number] = Processor {
                idle_until_ns: None,
                woken: false,
                interrupted: false,
                quantum_ends_ns: now_ns + QUANTUM_NS,
            };
        }
        is_over
    }

    /// Ends the idling of a processor, or its next.
    pub(crate) fn wake(&mut self, number: usize) {
        if let Some(processor) = self.all.get_mut(number) {
            processor.woken = true;
        }
    }

    /// Makes a processor enter the kernel soon; ends its idling, too.
    pub(crate) fn interrupt(&mut self, number: usize) {
        if let Some(processor) = self.all.get_mut(number) {
            processor.interrupted = true;
        }
    }

    /// Takes the interrupt of a processor.
    pub(crate) fn take_interrupt(&mut self, number: usize) -> bool {
        std::mem::take(&mut self.all[number].interrupted)
    }

    /// Whether the quantum of a processor is over; if so, the next one begins.
    pub(crate) fn take_end_of_quantum(&mut self, number: usize, now_ns: u64) -> bool {
        let processor = &mut self.all[number];
        let is_over = processor.quantum_ends_ns <= now_ns;
        if is_over {
            processor.quantum_ends_ns = now_ns + QUANTUM_NS;
        }
        is_over
    }

    /// Whether a processor is not idle, or has a reason not to be.
    pub(crate) fn can_run(&self, number: usize, now_ns: u64) -> bool {
        let processor = &self.all[number];
        processor.woken || processor.idle_until_ns.is_none_or(|deadline| deadline <= now_ns || processor.interrupted)
    }

    /// Returns the processors that can run, but this one and the one that stands still.
    pub(crate) fn others(&self, but: usize, now_ns: u64) -> Vec<usize> {
        let stands = |number| self.standing.is_some_and(|standing| standing.number == number);
        (0..self.count()).filter(|&number| number != but && !stands(number) && self.can_run(number, now_ns)).collect()
    }

    /// Lets a processor stand still until so many ABI calls of the run have ended; another may again go on that did.
    pub(crate) fn stand(&mut self, number: usize, until_call: u64) {
        self.standing = Some(Standing { number, until_call });
    }

    /// Ends the standing still whose calls have ended.
    pub(crate) fn pass_call(&mut self, calls: u64) {
        self.standing = self.standing.filter(|standing| calls < standing.until_call);
    }

    /// Ends the standing still, if there is one.
    pub(crate) fn go_on(&mut self) {
        self.standing = None;
    }

    /// Returns the first deadline of those that idle.
    pub(crate) fn next_deadline_ns(&self) -> Option<u64> {
        let finite = |deadline: &u64| *deadline != u64::MAX;
        self.all.iter().filter_map(|processor| processor.idle_until_ns).filter(finite).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_before_the_idling_is_not_lost_and_counts_once() {
        let mut processors = Processors::new(2);
        processors.wake(1);
        processors.begin_idle(1, u64::MAX);
        assert!(processors.end_idle(1, 0));
        processors.begin_idle(1, u64::MAX);
        assert!(!processors.end_idle(1, 0));
        assert_eq!((processors.others(0, 0), processors.next_deadline_ns()), (Vec::new(), None));
    }

    #[test]
    fn a_processor_stands_still_until_a_call() {
        let mut processors = Processors::new(3);
        processors.stand(1, 7);
        processors.pass_call(6);
        assert_eq!(processors.others(0, 0), vec![2]);
        processors.pass_call(7);
        assert_eq!(processors.others(0, 0), vec![1, 2]);
        processors.stand(2, 9);
        processors.go_on();
        assert_eq!(processors.others(0, 0), vec![1, 2]);
    }

    #[test]
    fn a_deadline_ends_the_idling() {
        let mut processors = Processors::new(2);
        processors.begin_idle(0, 50);
        processors.begin_idle(1, 40);
        assert_eq!(processors.next_deadline_ns(), Some(40));
        assert_eq!((processors.others(0, 39), processors.others(0, 40)), (vec![], vec![1]));
    }
}
