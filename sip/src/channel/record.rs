//! The record by which an image declares the contracts it was compiled with.

/// First bytes of the record.
pub const CONTRACT_MAGIC: [u8; 16] = *b"SING-CONTRACT-V1";

/// Lies in the link section `.sing.contracts`, once per contract that the program uses; the installer compares the
/// records with the manifest.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContractRecord {
    /// [`CONTRACT_MAGIC`].
    pub magic: [u8; 16],
    /// SHA-256 of the automaton's canonical bytes.
    pub fingerprint: [u8; 32],
    /// [`abi::name_tag`] of the name, little-endian.
    pub name_tag: [u8; 8],
}

impl ContractRecord {
    /// Builds the record of a contract.
    pub const fn new(name: &str, fingerprint: [u8; 32]) -> ContractRecord {
        ContractRecord { magic: CONTRACT_MAGIC, fingerprint, name_tag: abi::name_tag(name).to_le_bytes() }
    }
}

/// Implements [`Contract`](crate::channel::Contract) for a type and defines its record. Generated code
/// invokes it with the name and the fingerprint of the contract.
///
/// The contents of its `unsafe` block and its attributes are fixed here: the arguments are an identifier and literals,
/// and paths begin with `$crate`, because the calling crate can redefine `::core`.
#[doc(hidden)]
#[macro_export]
macro_rules! contract {
    ($type:ident, $name:literal, [$($byte:literal),* $(,)?]) => {
        impl $crate::channel::Contract for $type {
            const NAME: &'static str = $name;
            const TAG: u64 = $crate::abi::name_tag($name);

            #[inline(always)]
            fn keep_record() {
                contract_record::keep()
            }
        }

        mod contract_record {
            // SAFETY: a read-only static of plain bytes may lie in any read-only section; this one
            // is read by the installer.
            #[unsafe(link_section = ".sing.contracts")]
            static RECORD: $crate::channel::ContractRecord =
                $crate::channel::ContractRecord::new($name, [$($byte),*]);

            #[inline(always)]
            pub(super) fn keep() {
                // SAFETY: no instruction; a relocation without effect, from which the linker sees that this code needs
                // the record.
                unsafe {
                    $crate::rust_core::arch::asm!(
                        ".reloc ., R_X86_64_NONE, {}",
                        sym RECORD,
                        options(nomem, nostack, preserves_flags)
                    )
                }
            }
        }
    };
}
