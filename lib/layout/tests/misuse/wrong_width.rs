//! A register that is wider than the access.

struct Ports;

impl layout::Access<u8> for Ports {
    fn read(&self, _: u64) -> u8 {
        0
    }
    fn write(&self, _: u64, _: u8) {}
}

#[layout::registers(bytes = 8)]
struct Port {
    #[at(0)]
    address: ReadWrite<u64>,
}

fn main() {
    Port::over(Ports).address().write(0);
}
