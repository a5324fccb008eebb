//! A map without a length.

#[layout::registers]
struct Port {
    #[at(0)]
    data: ReadWrite<u16>,
}

fn main() {}
