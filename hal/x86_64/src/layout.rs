//! Location of the kernel's own image, from the symbols of the linker script.

unsafe extern "C" {
    static kernel_start: u8;
    static kernel_readable_end: u8;
    static kernel_code: u8;
    static kernel_text_end: u8;
    static crossing_start: u8;
    static crossing_end: u8;
    static kernel_code_end: u8;
    static kernel_data: u8;
    static kernel_end: u8;
}

/// Returns the first address of the image, which begins with its read-only data.
pub(crate) fn start() -> u64 {
    (&raw const kernel_start).addr() as u64
}

/// Returns the first address of its code.
pub(crate) fn code() -> u64 {
    (&raw const kernel_code).addr() as u64
}

/// Returns the address after its code.
pub(crate) fn code_end() -> u64 {
    (&raw const kernel_code_end).addr() as u64
}

/// Returns the pages of its code that are mapped in every domain: the way from and to it.
pub(crate) fn crossing() -> (usize, usize) {
    ((&raw const crossing_start).addr(), (&raw const crossing_end).addr())
}

/// Returns the first address of its data.
pub(crate) fn data() -> u64 {
    (&raw const kernel_data).addr() as u64
}

/// Returns the address after it.
pub(crate) fn end() -> u64 {
    (&raw const kernel_end).addr() as u64
}

/// Returns the constant parts of the image: read-only data and code, as in its file. The gaps between and after them
/// hold leftovers of the boot loader.
pub(crate) fn constant_parts() -> [&'static [u8]; 2] {
    let part = |first: *const u8, end: *const u8| {
        // SAFETY: both symbols are of the linker script, in this order; the bytes between them are always mapped,
        // part of the image and never written.
        unsafe { core::slice::from_raw_parts(first, end.addr() - first.addr()) }
    };
    [
        part(&raw const kernel_start, &raw const kernel_readable_end),
        part(&raw const kernel_code, &raw const kernel_text_end),
    ]
}

/// Returns whether an instruction address is in the kernel's code.
pub(crate) fn is_kernel_code(address: usize) -> bool {
    (code()..code_end()).contains(&(address as u64))
}
