//! Buses with arbitrary responses: enumeration ends soon, and results keep their invariants.

use pci::msix::{Memory, Message, Table};
use pci::virtio::Structures;
use pci::{Address, Bar, ConfigurationSpace, MAX_FUNCTIONS, Placement, Span, bars, capabilities, enumerate};
use proptest::prelude::*;

/// Responds from a cyclic byte string, with one of several write behaviours.
struct Nonsense {
    bytes: Vec<u8>,
    keeps: u8,
    written: std::collections::HashMap<(Address, u16), u32>,
    accesses: usize,
}

impl Nonsense {
    fn new(bytes: Vec<u8>, keeps: u8) -> Nonsense {
        Nonsense { bytes, keeps, written: Default::default(), accesses: 0 }
    }
}

impl ConfigurationSpace for Nonsense {
    fn read(&mut self, address: Address, offset: u16) -> u32 {
        assert!(offset < 256 && offset.is_multiple_of(4) && address.slot < 32 && address.function < 8);
        self.accesses += 1;
        let start = (address.memory_offset() >> 12) as usize * 7
            + usize::from(offset)
            + self.accesses * usize::from(self.keeps & 1);
        let byte = |index: usize| u32::from(self.bytes[(start + index) % self.bytes.len()]);
        let own = byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24;
        match (self.keeps >> 1 & 3, self.written.get(&(address, offset))) {
            (0, _) | (_, None) => own,
            (1, Some(&written)) => written,
            (_, Some(&written)) => written & own,
        }
    }

    fn write(&mut self, address: Address, offset: u16, value: u32) {
        assert!(offset < 256 && offset.is_multiple_of(4));
        self.accesses += 1;
        self.written.insert((address, offset), value);
    }
}

/// Allows only writes within given spans.
struct Guarded(Span);

impl Memory for Guarded {
    fn write32(&mut self, address: u64, _: u32) -> bool {
        assert!(self.0.contains(Span { base: address, bytes: 4 }));
        true
    }
}

fn look_at_everything(space: &mut Nonsense) {
    let found = enumerate(space);
    assert!(found.len() <= MAX_FUNCTIONS);
    let mut placement = Placement::new(vec![Span { base: 0xc000_0000, bytes: 0x3000_0000 }]);
    let mut taken: Vec<Span> = Vec::new();
    for function in found.iter().take(16) {
        let mut sized: Vec<Bar> = bars::size(space, function);
        for bar in &mut sized {
            assert!(bar.bytes.is_power_of_two() && bar.index < function.bar_count());
            let within = function.behind.and_then(|bridge| found[bridge].bridge).and_then(|bridge| bridge.memory);
            let span = if placement.take(bar.span()) {
                bar.span()
            } else {
                let Some(placed) = placement.place(bar.bytes, 1 << 32, within) else { continue };
                assert!(placed.base.is_multiple_of(bar.bytes) && placed.bytes == bar.bytes);
                bars::place(space, function.address, bar, placed.base);
                placed
            };
            assert!(placement.window_of(span).is_some());
            assert!(taken.iter().all(|other| !other.overlaps(span)));
            taken.push(span);
        }
        assert!(capabilities::list(space, function.address).len() <= 48);
        let inside = |span: Span| sized.iter().any(|bar| bar.is_memory() && bar.span().contains(span));
        if let Ok(structures) = Structures::find(space, function.address, &sized) {
            assert!(structures.spans().all(inside));
        }
        if let Some(table) = Table::find(space, function.address, &sized) {
            assert!(inside(table.span));
            let message = Message { address: 0xfee0_0000, data: 1 };
            assert!(table.set(space, &mut Guarded(table.span), function.address, &[message; 3]));
        }
    }
    assert!(space.accesses < 300_000, "{} accesses", space.accesses);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_bus_is_looked_at_in_bounded_time(bytes in prop::collection::vec(any::<u8>(), 1..600), keeps in 0u8..8) {
        look_at_everything(&mut Nonsense::new(bytes, keeps));
    }

    #[test]
    fn what_is_placed_lies_free_in_a_window(
        windows in prop::collection::vec((any::<u64>(), any::<u64>()), 0..4),
        taken in prop::collection::vec((any::<u64>(), any::<u64>()), 0..8),
        asked in prop::collection::vec((0u32..64, any::<u64>()), 1..16),
    ) {
        let span = |(base, bytes): (u64, u64)| Span { base, bytes };
        let windows: Vec<Span> = windows.into_iter().map(span).collect();
        let mut placement = Placement::new(windows.clone());
        let mut used: Vec<Span> = taken.iter().copied().map(span).collect();
        used.iter().for_each(|&taken| placement.avoid(taken));
        for (shift, limit) in asked {
            let Some(placed) = placement.place(1 << shift, limit, None) else { continue };
            prop_assert!(windows.iter().any(|window| window.contains(placed)));
            prop_assert!(placed.base != 0 && placed.base.is_multiple_of(placed.bytes));
            prop_assert!(placed.end().is_some_and(|end| end <= limit));
            prop_assert!(used.iter().all(|other| !other.overlaps(placed)));
            used.push(placed);
        }
    }
}

#[test]
fn a_bus_full_of_bridges_that_lead_in_circles_ends() {
    // All registers read the same, so all functions are bridges to one bus.
    for byte in 0..=255 {
        look_at_everything(&mut Nonsense::new(vec![byte], 0));
        look_at_everything(&mut Nonsense::new(vec![byte, 0x01], 2));
        look_at_everything(&mut Nonsense::new(vec![byte, 0x81, 0x01], 4));
    }
}
