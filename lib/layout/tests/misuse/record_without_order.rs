//! A record that does not say which byte of a number comes first.

#[derive(layout::Record)]
#[record(bytes = 8)]
struct Header {
    kind: u32,
}

fn main() {}
