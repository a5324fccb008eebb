//! Two fields of a record that have a byte in common.

#[derive(layout::Record)]
#[record(bytes = 16, order = "little")]
struct Header {
    #[at(0)]
    kind: u32,
    #[at(2)]
    sector: u64,
}

fn main() {}
