//! The smallest Linux program: an ELF file of one segment whose code exits immediately.
//!
//! Layout (System V ABI, chapter 4): file header of 64 bytes, one program header of 56, code.

use std::ffi::CString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;

const HEADER_BYTES: u64 = 64 + 56;
const BASE: u64 = 0x40_0000;
/// `xor edi, edi; mov eax, 60 (exit); syscall`.
const CODE: [u8; 9] = [0x31, 0xff, 0xb8, 60, 0, 0, 0, 0x0f, 0x05];

fn bytes() -> Vec<u8> {
    let mut file = Vec::new();
    file.extend_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    for half in [2u16, 62] {
        file.extend_from_slice(&half.to_le_bytes());
    }
    file.extend_from_slice(&1u32.to_le_bytes());
    for word in [BASE + HEADER_BYTES, 64, 0] {
        file.extend_from_slice(&word.to_le_bytes());
    }
    file.extend_from_slice(&0u32.to_le_bytes());
    for half in [64u16, 56, 1, 0, 0, 0] {
        file.extend_from_slice(&half.to_le_bytes());
    }
    let size = HEADER_BYTES + CODE.len() as u64;
    // A loadable segment, readable and executable.
    for half in [1u32, 5] {
        file.extend_from_slice(&half.to_le_bytes());
    }
    for word in [0, BASE, BASE, size, size, 4096] {
        file.extend_from_slice(&word.to_le_bytes());
    }
    file.extend_from_slice(&CODE);
    file
}

/// Writes the program to a temporary file and returns its path.
pub fn write() -> Option<CString> {
    let path = std::env::temp_dir().join(format!("bench-linux-{}", std::process::id()));
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o700).open(&path).ok()?;
    file.write_all(&bytes()).ok()?;
    CString::new(path.as_os_str().as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linux_starts_it() {
        let path = write().expect("a file");
        assert!(crate::linux::spawn_and_wait(&path));
        std::fs::remove_file(path.to_str().expect("UTF-8")).expect("cleaning up");
    }
}
