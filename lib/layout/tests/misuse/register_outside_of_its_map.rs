//! A register that begins in the map and ends behind it.

#[layout::registers(bytes = 6)]
struct Port {
    #[at(0)]
    control: ReadWrite<u32>,
    #[at(4)]
    data: ReadWrite<u32>,
}

fn main() {}
