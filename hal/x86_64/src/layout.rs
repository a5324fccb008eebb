//! Where the kernel's own image lies, by the symbols of the linker script.

unsafe extern "C" {
    static kernel_start: u8;
    static kernel_readable_end: u8;
    static kernel_code: u8;
    static kernel_text_end: u8;
    static kernel_code_end: u8;
    static kernel_data: u8;
    static kernel_end: u8;
}

/// First address of the image; its read-only data follow.
pub(crate) fn start() -> u64 {
    (&raw const kernel_start).addr() as u64
}

/// First address of its code.
pub(crate) fn code() -> u64 {
    (&raw const kernel_code).addr() as u64
}

/// The address after its code.
pub(crate) fn code_end() -> u64 {
    (&raw const kernel_code_end).addr() as u64
}

/// First address of its data.
pub(crate) fn data() -> u64 {
    (&raw const kernel_data).addr() as u64
}

/// The address after it.
pub(crate) fn end() -> u64 {
    (&raw const kernel_end).addr() as u64
}

/// What of the image never changes: read-only data and code, as they stand in its file. Between and behind them is
/// what a boot loader left there.
pub(crate) fn constant_parts() -> [&'static [u8]; 2] {
    let part = |first: *const u8, end: *const u8| {
        // SAFETY: both symbols are of the linker script, in this order; what lies between them is mapped at all
        // times, is part of the image and is never written.
        unsafe { core::slice::from_raw_parts(first, end.addr() - first.addr()) }
    };
    [
        part(&raw const kernel_start, &raw const kernel_readable_end),
        part(&raw const kernel_code, &raw const kernel_text_end),
    ]
}

/// Whether an instruction there is the kernel's.
pub(crate) fn is_kernel_code(address: usize) -> bool {
    (code()..code_end()).contains(&(address as u64))
}
