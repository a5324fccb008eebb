#![no_std]
/// Reads any address.
pub fn peek(address: usize) -> u8 {
    unsafe { *(address as *const u8) }
}
