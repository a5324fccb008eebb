//! CRC-32 as in IEEE 802.3, Ethernet, gzip and PNG.

const POLYNOMIAL: u32 = 0xedb8_8320;

const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut value = index as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { value >> 1 ^ POLYNOMIAL } else { value >> 1 };
            bit += 1;
        }
        table[index] = value;
        index += 1;
    }
    table
}

/// A checksum in the making.
pub struct Crc32 {
    state: u32,
}

impl Crc32 {
    /// Of no bytes.
    pub fn new() -> Crc32 {
        Crc32 { state: u32::MAX }
    }

    /// Of these bytes, too.
    pub fn update(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.state = TABLE[usize::from(self.state as u8 ^ byte)] ^ self.state >> 8;
        }
    }

    /// The checksum so far.
    pub fn value(&self) -> u32 {
        !self.state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_of_the_standard() {
        let mut sum = Crc32::new();
        sum.update(b"1234");
        sum.update(b"56789");
        assert_eq!(sum.value(), 0xcbf4_3926);
        assert_eq!(Crc32::new().value(), 0);
    }
}
