//! A field that has no bytes of its own.

#[derive(layout::Record)]
#[record(bytes = 8, order = "little")]
struct Header {
    name: String,
}

fn main() {}
