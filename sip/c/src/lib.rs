//! Runtime of programs in C. Their code is linked into an image by an entry stub like any other program's, and calls
//! the kernel through the same table.
//!
//! Key item: [`program!`](crate::program!) makes a crate such an image. The rest of the runtime is `include/sing.h` and
//! the headers beside it. C code can do to its own process what it likes, so nothing here protects the program from
//! itself; what protects all others is the hardware domain that each of its processes has.
//!
//! Deliberately not here: compiling C, which the host tool does; the headers of functions and contracts, which the
//! contract compiler writes; and a C library. There is what freestanding code needs, and what most portable libraries
//! ask for.
#![no_std]

extern crate alloc;

#[doc(hidden)]
pub mod heap;

#[doc(hidden)]
pub use sip;

/// Makes the calling crate an image whose program is the function `int sing_main(void)` of a static library of this
/// name.
///
/// The crate must be `#![no_std]` and `#![no_main]`.
#[macro_export]
macro_rules! program {
    ($library:literal) => {
        #[link(name = $library, kind = "static")]
        unsafe extern "C" {
            fn sing_main() -> i32;
        }

        fn main(_: ()) -> i32 {
            // SAFETY: the program's own function, called once. Whatever it does happens to its own process: an image
            // with C code is marked as unsafe, and runs only where each process has a hardware domain of its own.
            unsafe { sing_main() }
        }

        $crate::sip::entry!(main);

        // SAFETY: the only symbols of these names, as the C headers declare them.
        #[unsafe(no_mangle)]
        extern "C" fn malloc(bytes: usize) -> *mut u8 {
            $crate::heap::allocate(bytes)
        }

        // SAFETY: as above.
        #[unsafe(no_mangle)]
        extern "C" fn calloc(count: usize, bytes: usize) -> *mut u8 {
            $crate::heap::allocate_zeroed(count, bytes)
        }

        // SAFETY: as above.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn realloc(block: *mut u8, bytes: usize) -> *mut u8 {
            // SAFETY: the C caller passes a block of this heap.
            unsafe { $crate::heap::reallocate(block, bytes) }
        }

        // SAFETY: as above.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn free(block: *mut u8) {
            // SAFETY: the C caller passes a block of this heap.
            unsafe { $crate::heap::free(block) }
        }
    };
}
