//! A register without a direction.

#[layout::registers(bytes = 8)]
struct Port {
    #[at(0)]
    data: u16,
}

fn main() {}
