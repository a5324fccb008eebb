//! Which addresses are in use, and where there is room.

use alloc::vec::Vec;

/// A run of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first.
    pub base: u64,
    /// How many.
    pub bytes: u64,
}

impl Span {
    /// The first address behind it; `None` if that is none.
    pub fn end(self) -> Option<u64> {
        self.base.checked_add(self.bytes)
    }

    /// Whether all of `other` lies in it.
    pub fn contains(self, other: Span) -> bool {
        match (self.end(), other.end()) {
            (Some(end), Some(other_end)) => other.base >= self.base && other_end <= end,
            _ => false,
        }
    }

    /// Whether they have an address in common.
    pub fn overlaps(self, other: Span) -> bool {
        // Saturated ends are those of spans that reach beyond all addresses.
        let ends = |span: Span| span.base.saturating_add(span.bytes);
        self.base < ends(other) && other.base < ends(self)
    }

    /// What they have in common.
    fn intersection(self, other: Span) -> Option<Span> {
        let base = self.base.max(other.base);
        let end = self.end()?.min(other.end()?);
        (base < end).then(|| Span { base, bytes: end - base })
    }
}

/// Where functions may lie, and what is taken of it.
#[derive(Clone, Debug)]
pub struct Placement {
    windows: Vec<Span>,
    taken: Vec<Span>,
}

impl Placement {
    /// Nothing is taken.
    pub fn new(windows: Vec<Span>) -> Placement {
        Placement { windows, taken: Vec::new() }
    }

    /// The window that all of a span lies in: its index, and how far in.
    pub fn window_of(&self, span: Span) -> Option<(usize, u64)> {
        let index = self.windows.iter().position(|window| window.contains(span))?;
        Some((index, span.base - self.windows[index].base))
    }

    /// Takes what a function already answers to. False, and nothing is taken, if the span is empty, lies in no
    /// window, or overlaps one that is taken.
    pub fn take(&mut self, span: Span) -> bool {
        let free = span.bytes != 0 && self.window_of(span).is_some() && !self.is_taken(span);
        if free {
            self.taken.push(span);
        }
        free
    }

    /// Lets nobody be placed there, whatever lies there.
    pub fn avoid(&mut self, span: Span) {
        self.taken.push(span);
    }

    /// Whether a span that was taken or avoided overlaps no other one.
    pub fn is_alone(&self, span: Span) -> bool {
        self.taken.iter().filter(|taken| taken.overlaps(span)).count() == 1
    }

    /// Takes the first free span of a size, which is a power of two, aligned to it, that lies below `limit` and,
    /// if given, `within`.
    pub fn place(&mut self, bytes: u64, limit: u64, within: Option<Span>) -> Option<Span> {
        if !bytes.is_power_of_two() {
            return None;
        }
        let below = Span { base: 0, bytes: limit };
        let windows: Vec<Span> = self
            .windows
            .iter()
            .filter_map(|window| window.intersection(below))
            .filter_map(|window| within.map_or(Some(window), |within| window.intersection(within)))
            .collect();
        let placed = windows.into_iter().find_map(|window| self.place_in(window, bytes))?;
        self.taken.push(placed);
        Some(placed)
    }

    fn place_in(&self, window: Span, bytes: u64) -> Option<Span> {
        // Address 0 stands for none.
        let mut base = window.base.max(1).checked_next_multiple_of(bytes)?;
        // Each round gets past a span that is taken.
        for _ in 0..=self.taken.len() {
            let candidate = Span { base, bytes };
            if !window.contains(candidate) {
                return None;
            }
            match self.taken.iter().filter(|taken| taken.overlaps(candidate)).map(|taken| taken.end()).max() {
                None => return Some(candidate),
                Some(end) => base = end?.checked_next_multiple_of(bytes)?,
            }
        }
        None
    }

    fn is_taken(&self, span: Span) -> bool {
        self.taken.iter().any(|taken| taken.overlaps(span))
    }
}
