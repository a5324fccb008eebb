//! A program that ran once more would free what it has into another heap.

fn main() {
    sip::entry::run(|()| 0);
}
