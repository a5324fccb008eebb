//! A map that does not say how long it is.

#[layout::registers]
struct Port {
    #[at(0)]
    data: ReadWrite<u16>,
}

fn main() {}
