//! What a WebAssembly module says of the contracts that it was built for.
//!
//! Bindings put a record into the custom section `sing.contracts` of the module: the length of the contract's name in a
//! byte, the name, the fingerprint. It is a courtesy, not a defence: a module without records, or with false ones, is held
//! to its manifest's contracts by the kernel like any other. Deliberately not here: validating modules.

use manifest_model::{ContractUse, Digest};

use crate::PackageError;

/// Magic and version, in front of the sections.
const HEAD_BYTES: usize = 8;
/// Identifier of custom sections.
const CUSTOM: u8 = 0;
/// Name of the custom section.
const SECTION: &[u8] = b"sing.contracts";

/// Checks that the contracts that a module was built for are those of its manifest. Contracts that the manifest does not
/// list are left out: bindings may have records of contracts that the program does not use.
///
/// # Errors
/// [`PackageError::ModuleContract`]: it was built for another version of one. [`PackageError::ModuleRecords`]: the section
/// is damaged.
pub fn module_contracts(declared: &[ContractUse], module: &[u8]) -> Result<(), PackageError> {
    let mut rest = module.get(HEAD_BYTES..).unwrap_or_default();
    while let Some((kind, content)) = section(&mut rest) {
        let Some(records) = (kind == CUSTOM).then(|| records(content)).flatten() else { continue };
        compare(declared, records)?;
    }
    Ok(())
}

/// Takes the next section: its identifier and content. `None` at the end, and where the module is damaged, which its
/// validation reports.
fn section<'m>(rest: &mut &'m [u8]) -> Option<(u8, &'m [u8])> {
    let (kind, behind) = rest.split_first()?;
    *rest = behind;
    let length = number(rest)?;
    let (content, behind) = rest.split_at_checked(length)?;
    *rest = behind;
    Some((*kind, content))
}

/// The records of a custom section, if it is one of them.
fn records(mut content: &[u8]) -> Option<&[u8]> {
    let length = number(&mut content)?;
    let (name, records) = content.split_at_checked(length)?;
    (name == SECTION).then_some(records)
}

/// Takes a number of up to 32 bits in LEB128.
fn number(bytes: &mut &[u8]) -> Option<usize> {
    let mut value = 0u64;
    for shift in (0..35).step_by(7) {
        let (byte, behind) = bytes.split_first()?;
        *bytes = behind;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return u32::try_from(value).ok().map(|value| value as usize);
        }
    }
    None
}

fn compare(declared: &[ContractUse], mut records: &[u8]) -> Result<(), PackageError> {
    while let Some((length, behind)) = records.split_first() {
        let record = behind.split_at_checked(usize::from(*length));
        let fingerprint = record.and_then(|(name, behind)| Some((name, behind.split_first_chunk::<32>()?)));
        let (name, (module, behind)) = fingerprint.ok_or(PackageError::ModuleRecords)?;
        records = behind;
        let declared = declared.iter().find(|contract| contract.name.as_bytes() == name);
        if let Some(declared) = declared.filter(|declared| declared.fingerprint != *module) {
            let (contract, module): (_, Digest) = (declared.name.clone(), *module);
            return Err(PackageError::ModuleContract { contract, module, declared: declared.fingerprint });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use manifest_model::ContractSide;

    use super::*;

    fn declared() -> [ContractUse; 1] {
        let (name, automaton) = ("Tally".into(), Vec::new());
        [ContractUse { name, side: ContractSide::Import, fingerprint: [7; 32], automaton, waits_for: None }]
    }

    /// A module with a custom section of this name.
    fn module(name: &[u8], records: &[u8]) -> Vec<u8> {
        let content = [&[name.len() as u8], name, records].concat();
        [b"\0asm\x01\0\0\0\x01\x01\0\0", &[content.len() as u8][..], &content, b"\x03\x01\0"].concat()
    }

    fn record(name: &[u8], fingerprint: u8) -> Vec<u8> {
        [&[name.len() as u8], name, &[fingerprint; 32]].concat()
    }

    #[test]
    fn a_module_for_another_version_of_a_contract_is_refused_with_both_fingerprints() {
        let checked = |records: &[u8]| module_contracts(&declared(), &module(SECTION, records));
        assert_eq!(checked(&[]), Ok(()));
        assert_eq!(checked(&record(b"Tally", 7)), Ok(()));
        assert_eq!(checked(&[record(b"Other", 9), record(b"Tally", 7)].concat()), Ok(()));
        let refused = checked(&[record(b"Other", 9), record(b"Tally", 8)].concat()).expect_err("another version");
        let sentence = alloc::format!("{refused}");
        for part in ["`Tally`", "0808080808080808", "0707070707070707"] {
            assert!(sentence.contains(part), "{sentence}");
        }
    }

    #[test]
    fn damaged_records_are_refused_and_other_sections_are_not_read() {
        for cut in 1..record(b"Tally", 7).len() {
            let damaged = &record(b"Tally", 7)[..cut];
            assert_eq!(
                module_contracts(&declared(), &module(SECTION, damaged)),
                Err(PackageError::ModuleRecords),
                "{cut}"
            );
        }
        assert_eq!(module_contracts(&declared(), &module(b"name", &record(b"Tally", 8))), Ok(()));
    }

    #[test]
    fn a_module_that_is_cut_off_ends_the_search() {
        let whole = module(SECTION, &record(b"Tally", 8));
        for cut in 0..whole.len() - 3 {
            assert_eq!(module_contracts(&declared(), &whole[..cut]), Ok(()), "{cut}");
        }
        assert_eq!(module_contracts(&declared(), &[&whole[..8], &[0xff; 16]].concat()), Ok(()));
    }
}
