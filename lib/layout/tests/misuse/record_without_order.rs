//! A record without a byte order.

#[derive(layout::Record)]
#[record(bytes = 8)]
struct Header {
    kind: u32,
}

fn main() {}
