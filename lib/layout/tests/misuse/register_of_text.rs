//! A register that holds what no register holds.

#[layout::registers(bytes = 8)]
struct Port {
    #[at(0)]
    name: ReadOnly<&'static str>,
}

fn main() {}
