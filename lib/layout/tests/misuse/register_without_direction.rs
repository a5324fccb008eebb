//! A field that does not say what may be done with the register.

#[layout::registers(bytes = 8)]
struct Port {
    #[at(0)]
    data: u16,
}

fn main() {}
