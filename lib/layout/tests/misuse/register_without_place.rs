//! A register without an offset.

#[layout::registers(bytes = 8)]
struct Port {
    data: ReadWrite<u16>,
}

fn main() {}
