//! Scripts on a disk.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use contracts::file_io;
use contracts::namespace::Namespace;

/// The longest script, in bytes.
const SCRIPT_BYTES: u64 = 1 << 20;

/// Reads a script. An error is a phrase for people.
pub fn read_script(namespace: &mut Namespace, full: &str) -> Result<String, String> {
    let mut file = namespace.open_file(full).map_err(|error| error.to_string())?;
    let attributes = file.attributes().map_err(|error| error.to_string())?;
    if attributes.size_bytes > SCRIPT_BYTES {
        return Err(format!("it has {} bytes; a script has at most {SCRIPT_BYTES}", attributes.size_bytes));
    }
    let mut bytes = Vec::new();
    file_io::read_all(&mut file, |block, count| -> Result<_, contracts::access::AccessError> {
        bytes.extend_from_slice(&block[..count]);
        Ok(block)
    })
    .map_err(|error| error.to_string())?;
    let text = String::from_utf8(bytes)
        .map_err(|error| format!("it is no text: the byte at {} is not UTF-8", error.utf8_error().valid_up_to()))?;
    if text.contains('\0') {
        return Err("it is no text: there are zero bytes in it".to_string());
    }
    Ok(text)
}
