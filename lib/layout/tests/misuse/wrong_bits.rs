//! The bits of another register are written.

struct Ports;

impl layout::Access<u8> for Ports {
    fn read(&self, _: u64) -> u8 {
        0
    }
    fn write(&self, _: u64, _: u8) {}
}

#[layout::bits(u8)]
struct Line {
    #[bit(0)]
    ready: bool,
}

#[layout::bits(u8)]
struct Modem {
    #[bit(0)]
    ready: bool,
}

#[layout::registers(bytes = 2)]
struct Port {
    #[at(0)]
    line: ReadWrite<Line>,
}

fn main() {
    Port::over(Ports).line().write(Modem::NONE.with_ready(true));
}
