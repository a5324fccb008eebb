//! What an image says of its faults: the section `.sing.faults`, from which an epitaph names the kind of a trap and the
//! function. It is a claim of the image's own; nothing depends on it but that text.
//!
//! All numbers are little-endian u32: the number of functions, that of traps, then each function (address, offset of its
//! name), then each trap (address, offset of its kind), both ascending, then the texts, each with its length (u8) before
//! it. A trap holds for its address and those that follow, up to the next one.

use alloc::vec::Vec;

/// Maximum length of a text, in bytes.
const MAX_TEXT: usize = 120;

/// The section's content, not validated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults<'a>(&'a [u8]);

/// A function or trap: address, text.
pub type Place<'a> = (u32, &'a str);

impl<'a> Faults<'a> {
    /// Reads a section.
    pub fn new(bytes: &'a [u8]) -> Faults<'a> {
        Faults(bytes)
    }

    /// Returns the name of the function at an address of the image.
    pub fn function(&self, address: u64) -> Option<&'a str> {
        self.find(2, self.number(0)?, address)
    }

    /// Returns the kind of the trap at an address.
    pub fn trap(&self, address: u64) -> Option<&'a str> {
        self.find(2 + 2 * self.number(0)? as usize, self.number(1)?, address)
    }

    fn number(&self, index: usize) -> Option<u32> {
        let bytes = self.0.get(index.checked_mul(4)?..)?;
        bytes.first_chunk().map(|chunk| u32::from_le_bytes(*chunk))
    }

    /// The text of the last of `count` entries from `first` on that is not behind the address.
    fn find(&self, first: usize, count: u32, address: u64) -> Option<&'a str> {
        let (mut low, mut high) = (0usize, count as usize);
        while low < high {
            let middle = low + (high - low) / 2;
            if u64::from(self.number(first.checked_add(middle.checked_mul(2)?)?)?) <= address {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        self.text(self.number(first + low.checked_sub(1)? * 2 + 1)?)
    }

    fn text(&self, offset: u32) -> Option<&'a str> {
        let bytes = self.0.get(offset as usize..)?;
        let (&length, rest) = bytes.split_first()?;
        core::str::from_utf8(rest.get(..length as usize)?).ok()
    }
}

/// Writes a section of these functions and traps, each sorted by address. Long names are cut.
pub fn encode(functions: &[Place<'_>], traps: &[Place<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut texts = Vec::new();
    let base = 8 + 8 * (functions.len() + traps.len());
    let mut known: Vec<(&str, u32)> = Vec::new();
    out.extend_from_slice(&(functions.len() as u32).to_le_bytes());
    out.extend_from_slice(&(traps.len() as u32).to_le_bytes());
    let mut add = |text: &str| {
        let offset = (base + texts.len()) as u32;
        let cut = text.floor_char_boundary(MAX_TEXT.min(text.len()));
        texts.push(cut as u8);
        texts.extend_from_slice(&text.as_bytes()[..cut]);
        offset
    };
    for (address, name) in functions {
        out.extend_from_slice(&address.to_le_bytes());
        out.extend_from_slice(&add(name).to_le_bytes());
    }
    for (address, kind) in traps {
        // There are few kinds.
        let offset = match known.iter().find(|(text, _)| text == kind) {
            Some((_, offset)) => *offset,
            None => {
                let offset = add(kind);
                known.push((kind, offset));
                offset
            }
        };
        out.extend_from_slice(&address.to_le_bytes());
        out.extend_from_slice(&offset.to_le_bytes());
    }
    out.extend_from_slice(&texts);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_found_by_any_address_up_to_the_next() {
        let functions = [(0x100, "first"), (0x200, "second")];
        let bytes = encode(&functions, &[(0x120, "unreachable"), (0x130, "overflow"), (0x210, "unreachable")]);
        let faults = Faults::new(&bytes);
        for (address, function, trap) in [
            (0xff, None, None),
            (0x100, Some("first"), None),
            (0x120, Some("first"), Some("unreachable")),
            (0x1ff, Some("first"), Some("overflow")),
            (u64::MAX, Some("second"), Some("unreachable")),
        ] {
            assert_eq!((faults.function(address), faults.trap(address)), (function, trap), "{address:#x}");
        }
        assert_eq!(Faults::default().function(0), None);
    }

    #[test]
    fn damage_gives_a_wrong_text_or_none() {
        let bytes = encode(&[(1, "f")], &[(1, "t")]);
        for position in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[position] = 0xff;
            let faults = Faults::new(&changed);
            let _ = (faults.function(5), faults.trap(5));
            let _ = Faults::new(&bytes[..position]).trap(5);
        }
    }
}
