//! Address space allocation.

use alloc::vec::Vec;

/// An address range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First address.
    pub base: u64,
    /// Number of addresses.
    pub bytes: u64,
}

impl Span {
    /// First address after it; `None` on overflow.
    pub fn end(self) -> Option<u64> {
        self.base.checked_add(self.bytes)
    }

    /// Whether it contains all of `other`.
    pub fn contains(self, other: Span) -> bool {
        match (self.end(), other.end()) {
            (Some(end), Some(other_end)) => other.base >= self.base && other_end <= end,
            _ => false,
        }
    }

    /// Whether they overlap.
    pub fn overlaps(self, other: Span) -> bool {
        // Ends saturate for spans beyond the address space.
        let ends = |span: Span| span.base.saturating_add(span.bytes);
        self.base < ends(other) && other.base < ends(self)
    }

    /// Their intersection.
    fn intersection(self, other: Span) -> Option<Span> {
        let base = self.base.max(other.base);
        let end = self.end()?.min(other.end()?);
        (base < end).then(|| Span { base, bytes: end - base })
    }
}

/// Windows for functions, and the parts in use.
#[derive(Clone, Debug)]
pub struct Placement {
    windows: Vec<Span>,
    taken: Vec<Span>,
}

impl Placement {
    /// Creates one with everything free.
    pub fn new(windows: Vec<Span>) -> Placement {
        Placement { windows, taken: Vec::new() }
    }

    /// Index of the window that contains a span, and the offset in it.
    pub fn window_of(&self, span: Span) -> Option<(usize, u64)> {
        let index = self.windows.iter().position(|window| window.contains(span))?;
        Some((index, span.base - self.windows[index].base))
    }

    /// Reserves a range that a function already decodes. Returns false without reserving if the span is empty, outside
    /// all windows, or overlaps a reserved one.
    pub fn take(&mut self, span: Span) -> bool {
        let free = span.bytes != 0 && self.window_of(span).is_some() && !self.is_taken(span);
        if free {
            self.taken.push(span);
        }
        free
    }

    /// Excludes a range from placement, regardless of overlap.
    pub fn avoid(&mut self, span: Span) {
        self.taken.push(span);
    }

    /// Whether a reserved or excluded span overlaps no other.
    pub fn is_alone(&self, span: Span) -> bool {
        self.taken.iter().filter(|taken| taken.overlaps(span)).count() == 1
    }

    /// Reserves the first free span of a size, which is a power of two, aligned to it, below `limit` and, if given,
    /// `within`.
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
        // Address 0 means unassigned.
        let mut base = window.base.max(1).checked_next_multiple_of(bytes)?;
        // Each iteration skips a reserved span.
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
