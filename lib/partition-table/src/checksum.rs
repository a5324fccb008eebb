//! CRC-32 as the UEFI specification uses it (section 5.3.2): polynomial 04C11DB7, reflected, as in Ethernet.

const REFLECTED: u32 = 0xEDB8_8320;

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut value = index as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { value >> 1 ^ REFLECTED } else { value >> 1 };
            bit += 1;
        }
        table[index] = value;
        index += 1;
    }
    table
};

/// The checksum of pieces, one after the other.
pub fn crc32<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> u32 {
    let mut value = u32::MAX;
    for &byte in pieces.into_iter().flatten() {
        value = value >> 8 ^ TABLE[usize::from(value as u8 ^ byte)];
    }
    !value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_of_the_catalogue() {
        assert_eq!(crc32([&b"12345"[..], b"6789"]), 0xCBF4_3926);
    }
}
