//! The boot loader's information: free memory, the boot module, the command line and the location of the
//! firmware's tables. From PVH (Xen's `hvm_start_info`) or Multiboot2.
//!
//! Key type: [`Handover`]. Runs while the first 4 GiB are identity-mapped by the entry code. All of it is
//! read once and copied; afterwards only the module remains in the loader's memory.

use core::{ptr, slice};

use multiboot2::{BootInformation, BootInformationHeader, MemoryAreaType};

use crate::entry::MULTIBOOT2_MAGIC;
use crate::regions::{Region, Regions};

/// First word of `hvm_start_info`.
const PVH_MAGIC: u32 = 0x336e_c578;
/// Type of usable memory in a memory map.
const PVH_MEMORY: u32 = 1;
const MAX_MAP_ENTRIES: u32 = 1024;
const COMMAND_LINE_BYTES: usize = 1024;
/// End of the memory mapped while this runs.
const REACHABLE: u64 = 1 << 32;

/// Location of the firmware's tables.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FirmwareTables {
    /// Not given by the loader.
    Unknown,
    /// Address of the RSDP.
    RootPointer(usize),
    /// Revision and address of the RSDT or XSDT.
    RootTable(u8, usize),
}

/// The boot loader's information.
pub(crate) struct Handover {
    /// Free memory, without the boot module.
    pub free: Regions,
    /// The boot module.
    pub module: Region,
    /// Location of the firmware's tables.
    pub tables: FirmwareTables,
    command_line: [u8; COMMAND_LINE_BYTES],
    command_line_bytes: usize,
}

impl Handover {
    const fn empty() -> Self {
        Self {
            free: Regions::new(),
            module: Region { start: 0, end: 0 },
            tables: FirmwareTables::Unknown,
            command_line: [0; COMMAND_LINE_BYTES],
            command_line_bytes: 0,
        }
    }

    /// Returns the command line, cut at its maximum length; empty if it is not UTF-8.
    pub(crate) fn command_line(&self) -> &str {
        str::from_utf8(&self.command_line[..self.command_line_bytes]).unwrap_or_default()
    }

    fn keep_command_line(&mut self, text: &[u8]) {
        let bytes = text.len().min(COMMAND_LINE_BYTES);
        self.command_line[..bytes].copy_from_slice(&text[..bytes]);
        self.command_line_bytes = bytes;
    }

    /// Reads the loader's information.
    ///
    /// # Safety
    /// `magic` and `address` are those passed to the entry code, and the first 4 GiB are identity-mapped.
    pub(crate) unsafe fn read(magic: u32, address: u32) -> Result<Self, &'static str> {
        let mut handover = Self::empty();
        if magic == MULTIBOOT2_MAGIC {
            // SAFETY: by Multiboot2 the address is that of its information.
            unsafe { handover.read_multiboot2(address as usize)? };
        } else {
            // SAFETY: by PVH it is that of `hvm_start_info`.
            unsafe { handover.read_pvh(address as usize)? };
        }
        if handover.module.bytes() == 0 {
            return Err("there is no boot image: pass it as the first module (QEMU: -initrd)");
        }
        if handover.module.end > REACHABLE {
            return Err("the boot image lies above 4 GiB, where the kernel cannot read it yet");
        }
        handover.free.remove(handover.module);
        Ok(handover)
    }

    unsafe fn read_multiboot2(&mut self, address: usize) -> Result<(), &'static str> {
        let pointer = ptr::with_exposed_provenance::<BootInformationHeader>(address);
        // SAFETY: by the loader its information lies there; the library checks it.
        let information = unsafe { BootInformation::load(pointer) };
        let information = information.map_err(|_| "the boot loader's Multiboot2 information is damaged")?;
        let map = information.memory_map_tag().ok_or("the boot loader gives no memory map")?;
        for area in map.memory_areas() {
            if MemoryAreaType::from(area.typ()) == MemoryAreaType::Available {
                self.free.add(Region { start: area.start_address(), end: area.end_address() });
            }
        }
        if let Some(module) = information.module_tags().next() {
            self.module = Region { start: module.start_address().into(), end: module.end_address().into() };
        }
        if let Some(line) = information.command_line_tag().and_then(|tag| tag.cmdline().ok()) {
            self.keep_command_line(line.as_bytes());
        }
        self.tables = match (information.rsdp_v2_tag(), information.rsdp_v1_tag()) {
            (Some(tag), _) => FirmwareTables::RootTable(2, tag.xsdt_address()),
            (None, Some(tag)) => FirmwareTables::RootTable(0, tag.rsdt_address()),
            (None, None) => FirmwareTables::Unknown,
        };
        self.free.remove(Region { start: information.start_address() as u64, end: information.end_address() as u64 });
        Ok(())
    }

    unsafe fn read_pvh(&mut self, address: usize) -> Result<(), &'static str> {
        // SAFETY: by PVH, `hvm_start_info` lies there; its magic number is checked.
        let start = unsafe { ptr::with_exposed_provenance::<StartInfo>(address).read_unaligned() };
        if start.magic != PVH_MAGIC {
            return Err("entered neither by PVH nor by Multiboot2");
        }
        if start.version < 1 || start.memory_map_entries == 0 {
            return Err("the boot loader gives no memory map");
        }
        for index in 0..start.memory_map_entries.min(MAX_MAP_ENTRIES) as usize {
            let entry = ptr::with_exposed_provenance::<MapEntry>(start.memory_map as usize);
            // SAFETY: by the loader that many entries lie there.
            let entry = unsafe { entry.add(index).read_unaligned() };
            if entry.kind == PVH_MEMORY {
                self.free.add(Region { start: entry.address, end: entry.address.saturating_add(entry.bytes) });
            }
        }
        if start.modules > 0 {
            // SAFETY: by the loader a module entry lies there.
            let module =
                unsafe { ptr::with_exposed_provenance::<ModuleEntry>(start.module_list as usize).read_unaligned() };
            self.module = Region { start: module.address, end: module.address.saturating_add(module.bytes) };
        }
        if start.command_line != 0 {
            // SAFETY: by the loader a zero-terminated text lies there; memory within the maximum length is readable.
            let text = unsafe {
                slice::from_raw_parts(
                    ptr::with_exposed_provenance::<u8>(start.command_line as usize),
                    COMMAND_LINE_BYTES,
                )
            };
            let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
            self.keep_command_line(&text[..end]);
        }
        if start.root_pointer != 0 {
            self.tables = FirmwareTables::RootPointer(start.root_pointer as usize);
        }
        Ok(())
    }
}

/// `hvm_start_info` (Xen, public/arch-x86/hvm/start_info.h).
#[repr(C)]
struct StartInfo {
    magic: u32,
    version: u32,
    flags: u32,
    modules: u32,
    module_list: u64,
    command_line: u64,
    root_pointer: u64,
    memory_map: u64,
    memory_map_entries: u32,
    reserved: u32,
}

/// `hvm_modlist_entry`.
#[repr(C)]
struct ModuleEntry {
    address: u64,
    bytes: u64,
    command_line: u64,
    reserved: u64,
}

/// `hvm_memmap_table_entry`.
#[repr(C)]
struct MapEntry {
    address: u64,
    bytes: u64,
    kind: u32,
    reserved: u32,
}
