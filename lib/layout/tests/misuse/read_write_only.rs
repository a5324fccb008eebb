//! A register that is written is read.

struct Ports;

impl layout::Access<u8> for Ports {
    fn read(&self, _: u64) -> u8 {
        0
    }
    fn write(&self, _: u64, _: u8) {}
}

#[layout::registers(bytes = 8)]
struct Port {
    #[at(2)]
    command: WriteOnly<u8>,
}

fn main() {
    Port::over(Ports).command().read();
}
