//! Two registers that have a byte in common.

#[layout::registers(bytes = 8)]
struct Port {
    #[at(0)]
    control: ReadWrite<u32>,
    #[at(2)]
    status: ReadOnly<u16>,
}

fn main() {}
