//! A register of which nobody says where it is.

#[layout::registers(bytes = 8)]
struct Port {
    data: ReadWrite<u16>,
}

fn main() {}
