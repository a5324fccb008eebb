//! Script files.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use client::access::AccessError;
use client::namespace::Namespace;
use contracts::directory::NameError;
use principal::{Acl, Right};

/// Maximum size of a script in bytes.
const SCRIPT_BYTES: u64 = 1 << 20;

/// Reads a script that this shell may run. An error is a phrase for people.
pub fn read_script(namespace: &mut Namespace, full: &str) -> Result<String, String> {
    let mut file = namespace.open_file(full).map_err(|error| error.to_string())?;
    check_execute(namespace, full)?;
    let attributes = file.attributes().map_err(|error| error.to_string())?;
    if attributes.size_bytes > SCRIPT_BYTES {
        return Err(format!("it has {} bytes; a script has at most {SCRIPT_BYTES}", attributes.size_bytes));
    }
    let mut bytes = Vec::new();
    let mut pieces = file.pieces();
    while let Some(piece) = pieces.next().map_err(|error| error.to_string())? {
        bytes.extend_from_slice(piece);
    }
    let text = String::from_utf8(bytes)
        .map_err(|error| format!("it is no text: the byte at {} is not UTF-8", error.utf8_error().valid_up_to()))?;
    if text.contains('\0') {
        return Err("it is no text: there are zero bytes in it".to_string());
    }
    Ok(text)
}

/// Refuses a script whose governing ACL does not let the shell run it.
fn check_execute(namespace: &mut Namespace, full: &str) -> Result<(), String> {
    let of_list = |error: &dyn core::fmt::Display| format!("its access control list: {error}");
    let list = match namespace.acl(full) {
        // The server has no access control lists.
        Err(AccessError::Name(NameError::NotSupported)) | Ok(None) => return Ok(()),
        Ok(Some(list)) => Acl::parse(&list.text).map_err(|error| of_list(&error))?,
        Err(error) => return Err(of_list(&error)),
    };
    let own = sip::principal::own();
    if list.decide(&own, Right::Execute).allowed {
        return Ok(());
    }
    Err(format!("its access control list does not let {own} execute it; `acl` shows the list"))
}
