//! Scripts on a disk.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use contracts::access::AccessError;
use contracts::directory::NameError;
use contracts::namespace::Namespace;
use contracts::{file_io, path};
use principal::{Acl, Right};

/// The longest script, in bytes.
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
    file_io::read_all(&mut file, |block, count| -> Result<_, AccessError> {
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

/// Refuses a script that the list which decides about its file does not let the shell run.
fn check_execute(namespace: &mut Namespace, full: &str) -> Result<(), String> {
    let Some(list) = deciding_list(namespace, full).map_err(|error| format!("its access control list: {error}"))?
    else {
        return Ok(());
    };
    let list = Acl::from_bytes(list.as_bytes()).map_err(|error| format!("its access control list: {error}"))?;
    let own = sip::principal::own();
    if list.decide(&own, Right::Execute).allowed {
        return Ok(());
    }
    Err(format!("its access control list does not let {own} execute it; `acl` shows the list"))
}

/// The list that decides about what has this path, if one does.
fn deciding_list(namespace: &mut Namespace, full: &str) -> Result<Option<String>, AccessError> {
    let mut asked = full;
    loop {
        let (list, from) = match namespace.acl(asked) {
            // Whoever serves this knows no lists.
            Err(AccessError::Name(NameError::NotSupported)) => return Ok(None),
            answer => answer?,
        };
        if from != path::ABOVE_THE_ROOT {
            return Ok((!from.is_empty() || !list.is_empty()).then_some(list));
        }
        match path::split_last(asked) {
            Some((above, _)) => asked = above,
            None => return Ok(None),
        }
    }
}
