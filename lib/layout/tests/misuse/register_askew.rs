//! A register that no access of its width reaches.

#[layout::registers(bytes = 8)]
struct Port {
    #[at(1)]
    data: ReadWrite<u16>,
}

fn main() {}
