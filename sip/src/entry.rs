//! The parts of an image besides its program: the entry point, the panic handler, the allocator and the
//! five memory functions that compiled code expects of its environment.
//!
//! [`entry!`](crate::entry!) defines all of them in the crate that calls it, so that a program's
//! library crate still compiles and tests on any host. Deliberately not here: the program's own
//! `main`.

use core::fmt::Write;
use core::panic::PanicInfo;

use abi::limits;

use crate::config::FromConfiguration;
use crate::{allocator, raw, thread_block};

/// Makes the calling crate an image whose program is the function `$main(startup) -> i32`.
///
/// The crate must be `#![no_std]` and `#![no_main]`.
#[macro_export]
macro_rules! entry {
    ($main:path) => {
        #[global_allocator]
        static ALLOCATOR: $crate::allocator::SipAllocator = $crate::allocator::SipAllocator;

        #[panic_handler]
        fn panicked(information: &::core::panic::PanicInfo<'_>) -> ! {
            $crate::entry::panicked(information)
        }

        // SAFETY: the only symbol of this name; the linker makes it the image's entry point.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn _start(_thread_block: u64) -> ! {
            let main = $main;
            // SAFETY: the kernel starts the process here, once, and nothing else calls this function.
            unsafe { $crate::entry::run(main) }
        }

        $crate::memory_functions!();
        $crate::unwind_symbols!();
    };
}

/// Runs a program: heap, typed configuration, `main`, exit status. Does not return.
///
/// # Safety
///
/// Called once, as the first code that the process runs: whatever the process allocated before would be freed into
/// another heap.
#[doc(hidden)]
pub unsafe fn run<Startup: FromConfiguration>(main: fn(Startup) -> i32) -> ! {
    if let Some(complaint) = complaint(thread_block::table().id) {
        end_as_panicked(format_args!("{complaint}"));
    }
    // SAFETY: nothing of this process has run before.
    if let Err(status) = unsafe { allocator::start() } {
        end_as_panicked(format_args!("got no memory to begin with: {}", status.text()));
    }
    match Startup::from_configuration() {
        Ok(startup) => crate::process::exit(main(startup)),
        Err(error) => end_as_panicked(format_args!("{error}")),
    }
}

/// Why an image cannot run with the kernel's table of this identity.
fn complaint(table: u64) -> Option<&'static str> {
    let is_other = table != abi::TABLE_ID;
    is_other.then_some("was built for other ABI functions than this system has; build and install it anew")
}

/// Ends the process with an epitaph that holds location and message of the panic.
#[doc(hidden)]
pub fn panicked(information: &PanicInfo<'_>) -> ! {
    match information.location() {
        Some(location) => end_as_panicked(format_args!(
            "panicked at {}:{}:{}: {}",
            location.file(),
            location.line(),
            location.column(),
            information.message()
        )),
        None => end_as_panicked(format_args!("panicked: {}", information.message())),
    }
}

pub(crate) fn end_as_panicked(message: core::fmt::Arguments<'_>) -> ! {
    let mut line = Line::new();
    // A message that does not fit is cut.
    let _ = line.write_fmt(message);
    // A line is at most as long as the buffer.
    let length = thread_block::put_bytes(line.as_bytes()).unwrap_or(0);
    loop {
        // Does not return.
        let _ = raw::value::process_panic(length);
    }
}

/// Text of at most a message buffer's size, on the stack, because the heap may have failed.
pub(crate) struct Line {
    bytes: [u8; limits::TEXT_BYTES],
    length: usize,
}

impl Line {
    pub(crate) fn new() -> Line {
        Line { bytes: [0; limits::TEXT_BYTES], length: 0 }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    pub(crate) fn clear(&mut self) {
        self.length = 0;
    }

    /// Appends the bytes that fit; returns the rest.
    pub(crate) fn push<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let (now, later) = bytes.split_at(bytes.len().min(limits::TEXT_BYTES - self.length));
        self.bytes[self.length..self.length + now.len()].copy_from_slice(now);
        self.length += now.len();
        later
    }
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        if self.push(text.as_bytes()).is_empty() { Ok(()) } else { Err(core::fmt::Error) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_for_other_functions_says_so() {
        assert_eq!(complaint(abi::TABLE_ID), None);
        assert!(complaint(abi::TABLE_ID ^ 1).is_some_and(|text| text.contains("build and install it anew")));
    }
}
