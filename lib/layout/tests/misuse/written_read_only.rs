//! A register that is read is written.

struct Ports;

impl layout::Access<u8> for Ports {
    fn read(&self, _: u64) -> u8 {
        0
    }
    fn write(&self, _: u64, _: u8) {}
}

#[layout::registers(bytes = 8)]
struct Port {
    #[at(5)]
    status: ReadOnly<u8>,
}

fn main() {
    Port::over(Ports).status().write(1);
}
