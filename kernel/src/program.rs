//! A program: its package, verified before anything of it runs, and its sealed image, mapped once and shared by all
//! instances. Deliberately not here: the table of programs (`installed`).
//!
//! An image has no page that instances could write to in common: what is writable in one of unsafe code is a template,
//! of which each process has a copy in its hardware domain.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use abi::limits::PAGE_BYTES;
use hal_api::Segment;
use manifest_model::{Digest, Manifest, PublicKey, Trust};
use package::Delivery;
use package_check::{Faults, Isolation, PackageError};

use crate::contract::{self, Contract, RegisterError};
use crate::installed;
use crate::lock::AtomicRef;
use crate::machine::machine;
use crate::preempt;

/// A program that manifests and users can name.
pub struct Program {
    /// Its manifest.
    pub manifest: Manifest,
    /// The manifest's bytes, for `program_manifest`.
    pub manifest_bytes: &'static [u8],
    /// `name.publisher`.
    pub principal: String,
    /// The package file, with its compiled image if it came with one.
    pub(crate) package: &'static [u8],
    /// The key that signed the package.
    pub key: PublicKey,
    /// Identity of the package: as listed in the head of the system image, or as verified at installation.
    pub(crate) identity: Digest,
    /// Whether processes can be created from it.
    pub(crate) installed: AtomicBool,
    pub(crate) loaded: AtomicRef<Loaded>,
    /// Whether a thread is verifying and mapping it.
    pub(crate) loading: AtomicBool,
}

/// A verified program, ready to run.
pub struct Loaded {
    /// Address of the first instruction.
    pub entry: usize,
    /// Address of its image.
    pub base: usize,
    /// What its image says of its faults.
    pub faults: Faults<'static>,
    /// The segments of its image that its instances share: address, bytes, whether it is code.
    pub segments: Vec<(usize, usize, bool)>,
    /// Those of which each has a copy, as address and bytes.
    pub data: Vec<(usize, usize)>,
    /// The contracts of its manifest, by index.
    pub contracts: Vec<&'static Contract>,
}

impl Loaded {
    /// Whether the address lies in the program's code.
    pub fn is_code(&self, address: usize) -> bool {
        self.code_at(address).is_some()
    }

    /// Returns the first address of the code segment that contains an address.
    pub fn code_at(&self, address: usize) -> Option<usize> {
        let holds = |&&(start, bytes, is_code): &&(usize, usize, bool)| is_code && address.wrapping_sub(start) < bytes;
        self.segments.iter().find(holds).map(|&(start, ..)| start)
    }

    /// Returns what its image says of a fault at an address: the function, and the kind of the trap.
    pub fn fault_at(&self, address: usize) -> Option<(&'static str, &'static str)> {
        self.code_at(address)?;
        let offset = address.wrapping_sub(self.base) as u64;
        Some((self.faults.function(offset)?, self.faults.trap(offset).unwrap_or("memory fault")))
    }

    /// Looks up the contract of the program with this name tag.
    #[inline(always)]
    pub fn contract(&self, tag: u64) -> Option<&'static Contract> {
        self.contracts.iter().copied().find(|contract| contract.tag == tag)
    }
}

/// The image arena, filled with images in the order of mapping.
static IMAGES: Room = Room(AtomicUsize::new(0));

/// Bytes allocated from the start of an arena.
struct Room(AtomicUsize);

impl Room {
    /// Allocates this many of `all` bytes and returns the offset. Allocates nothing if they do not fit.
    fn take(&self, bytes: usize, all: usize) -> Option<usize> {
        let more = |used: usize| used.checked_add(bytes).filter(|&sum| sum <= all);
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok()
    }

    /// Frees the last allocation. If more was allocated since, it stays allocated.
    fn give_back(&self, offset: usize, bytes: usize) {
        // Only address space is lost.
        let _ = self.0.compare_exchange(offset + bytes, offset, Ordering::AcqRel, Ordering::Relaxed);
    }
}

/// Places the next image at this address of the arena, for a replay.
///
/// # Errors
/// It is no page of the arena.
pub fn place_next_at(base: usize) -> Result<(), ()> {
    let arena = machine().layout().images;
    if !arena.contains(base) || !base.is_multiple_of(PAGE_BYTES) {
        return Err(());
    }
    IMAGES.0.store(base - arena.base, Ordering::Release);
    Ok(())
}

impl Program {
    /// Beginning of the identity of its package, as two little-endian words.
    pub fn identity_words(&self) -> [u64; 2] {
        let word = |first: usize| {
            let bytes = self.identity.iter().skip(first).take(size_of::<u64>());
            bytes.rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
        };
        [word(0), word(size_of::<u64>())]
    }

    /// Returns the image file of a template of WebAssembly programs; `None` for any other program.
    pub fn template_image(&self) -> Option<&'static [u8]> {
        let is_template = self.manifest.code.is_template();
        is_template.then(|| Delivery::parse(self.package).ok().map(|delivery| delivery.image()))?
    }

    /// Returns the program verified and mapped, doing so on first use. `trust` holds the accepted publishers;
    /// `isolation` is what contains its SIPs, always.
    pub fn load(&'static self, trust: &Trust, isolation: Isolation) -> Result<&'static Loaded, String> {
        // No lock: the thread that loads it may be preempted; others that need the program poll.
        while self.loading.swap(true, Ordering::Acquire) {
            preempt::let_others_go_first();
        }
        let result = match self.loaded.get() {
            Some(loaded) => Ok(loaded),
            None => self.verify_and_map(trust, isolation).map(|loaded| &*Box::leak(Box::new(loaded))),
        };
        self.loaded.set(result.as_ref().ok().copied());
        self.loading.store(false, Ordering::Release);
        result
    }

    fn verify_and_map(&self, trust: &Trust, isolation: Isolation) -> Result<Loaded, String> {
        let name = &self.manifest.name;
        if self.manifest.code.is_template() {
            return Err(format!(
                "program {name} is a template of WebAssembly programs, and cannot run by itself; start a program that is made of it"
            ));
        }
        let delivery = Delivery::parse(self.package).map_err(|error| format!("program {name}: {error}"))?;
        machine().boot_mark(&format!("{name} begun"));
        let verified =
            installed::verify(&delivery, trust, isolation).map_err(|error| format!("program {name}: {error}"))?;
        if verified.identity != self.identity {
            return Err(format!(
                "program {name}: its package is another than the head of the system image names; build the system again"
            ));
        }
        if verified.quarantined && isolation == Isolation::Software {
            return Err(format!(
                "program {name} is unsigned and in quarantine: it may run only in a hardware domain of its own, which this system does not have for it; have its publisher sign it, or give the system a domain with `each = true` for it"
            ));
        }
        machine().boot_mark(&format!("{name} verified"));
        let mut contracts = Vec::new();
        for used in &verified.manifest.contracts {
            let registered = contract::register(&used.automaton, used.fingerprint).map_err(|error| match error {
                RegisterError::Malformed(error) => {
                    format!("program {name}: contract {}: {} at byte {}", used.name, error.what, error.offset)
                }
                RegisterError::Differs => format!(
                    "program {name}: contract {} is not the one that programs started before it use; build them together",
                    used.name
                ),
            })?;
            contracts.push(registered);
        }
        let Some(image) = verified.image else {
            return Err(match self.manifest.code.template() {
                Some(_) => format!("program {name}: {}", PackageError::NotCompiled),
                None => format!("program {name} is a script; start it through the shell"),
            });
        };
        let arena = machine().layout().images;
        let bytes = image.bytes.next_multiple_of(PAGE_BYTES as u64) as usize;
        let offset = IMAGES
            .take(bytes, arena.bytes)
            .ok_or_else(|| format!("program {name}: no address space is left for its image of {bytes} bytes"))?;
        let base = arena.base + offset;
        let relocated = image.relocate(base as u64);
        let segments: Vec<Segment<'_>> = relocated
            .iter()
            .map(|segment| Segment {
                address: segment.address as usize,
                bytes: &segment.bytes,
                executable: segment.executable,
            })
            .collect();
        if machine().map_image(&segments).is_err() {
            IMAGES.give_back(offset, bytes);
            return Err(format!("program {name}: the machine could not map its image"));
        }
        singularity_image_loaded(name.as_ptr(), name.len(), base);
        let shared = relocated.iter().filter(|segment| !segment.writable);
        let shared =
            shared.map(|segment| (segment.address as usize, segment.bytes.len(), segment.executable)).collect();
        let data = relocated.iter().filter(|segment| segment.writable);
        let data = data.map(|segment| (segment.address as usize, segment.bytes.len())).collect();
        machine().boot_mark(&format!("{name} loaded"));
        Ok(Loaded { entry: base + image.entry as usize, base, faults: image.faults, segments: shared, data, contracts })
    }
}

/// Does nothing. A debugger with a breakpoint here gets each image's program name, as address and length, and load
/// address.
// SAFETY: nothing else of the program has this name.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn singularity_image_loaded(name: *const u8, name_length: usize, base: usize) {
    core::hint::black_box((name, name_length, base));
}

/// Whether an address lies in the image arena. Async-signal-safe.
pub fn is_image_address(address: usize) -> bool {
    let base = IMAGES_BASE.load(Ordering::Relaxed);
    let size = IMAGES_BYTES.load(Ordering::Relaxed);
    address.wrapping_sub(base) < size
}

static IMAGES_BASE: AtomicUsize = AtomicUsize::new(0);
static IMAGES_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Records the bounds of the image arena.
pub fn start() {
    let arena = machine().layout().images;
    IMAGES_BASE.store(arena.base, Ordering::Relaxed);
    IMAGES_BYTES.store(arena.bytes, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_or_is_given_back_takes_nothing() {
        let room = Room(AtomicUsize::new(0));
        assert_eq!(room.take(6, 10), Some(0));
        for _ in 0..5 {
            assert_eq!(room.take(5, 10), None);
            assert_eq!(room.take(usize::MAX, 10), None);
            assert_eq!(room.take(3, 10), Some(6));
            room.give_back(6, 3);
        }
        assert_eq!(room.take(4, 10), Some(6));
        // More was allocated since.
        room.give_back(0, 6);
        assert_eq!(room.take(1, 10), None);
    }
}
