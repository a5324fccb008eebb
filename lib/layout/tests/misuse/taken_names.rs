//! Registers and bits that are called like what every map and every number has.

#[layout::registers(bytes = 4)]
struct Port {
    #[at(0)]
    access: ReadOnly<u8>,
    #[at(1)]
    over: ReadOnly<u8>,
}

#[layout::bits(u8)]
struct Status {
    #[bit(0)]
    bits: bool,
    #[bit(1)]
    from_bits: bool,
    #[bit(2)]
    full: bool,
    #[bit(3)]
    with_full: bool,
}

fn main() {}
