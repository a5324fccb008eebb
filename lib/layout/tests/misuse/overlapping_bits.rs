//! A bit with two names, a run that ends beyond its number, and a field too narrow for its bits.

#[layout::bits(u16)]
struct Status {
    #[bits(0..=3)]
    count: u8,
    #[bit(3)]
    full: bool,
    #[bits(12..=16)]
    kind: u8,
    #[bits(4..=12)]
    level: u8,
    #[bits(4..=5)]
    both: bool,
    ready: bool,
}

fn main() {}
