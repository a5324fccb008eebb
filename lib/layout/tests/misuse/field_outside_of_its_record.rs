//! Fields beyond the end of their record.

#[derive(layout::Record)]
#[record(bytes = 8, order = "big")]
struct Header {
    kind: u32,
    sector: u64,
}

fn main() {}
