//! A field whose type has no fixed size.

#[derive(layout::Record)]
#[record(bytes = 8, order = "little")]
struct Header {
    name: String,
}

fn main() {}
