//! Runtime of WebAssembly programs. A *template* is a program of safe Rust that plays the host of a module: it makes an
//! [`Instance`] of it and performs what it imports. The compiled code of the module is added to the template's image
//! before the program is installed, so it is an image like any other.
//!
//! Key types: [`Module`], [`Instance`], [`Host`]; [`template!`](crate::template!) makes a crate's image a template.
//! Neighbours: `wasm-record` has what this crate and the compiler agree on. Deliberately not here: any import; compiling.
//! A trap ends the process, with an epitaph that names its kind and the function.
#![no_std]

extern crate alloc;

mod bulk;
mod caller;
#[doc(hidden)]
pub mod code;
mod context;
mod instance;
mod memory;
mod module;
mod tables;

pub use caller::Caller;
pub use instance::{Instance, StartError};
pub use module::Module;
#[doc(hidden)]
pub use sip;
#[doc(hidden)]
pub use wasm_record;
pub use wasm_record::{ExportKind, NULL, Record, Signature, ValueType, WASM_PAGE_BYTES};

/// Performs the imports of a module.
pub trait Host {
    /// Performs the import with this number: that of its line in the template's `IMPORTS`.
    ///
    /// # Errors
    /// The reason why the program cannot go on; it ends with this epitaph.
    fn call(&mut self, import: usize, caller: &mut Caller<'_>) -> Result<(), Trap>;
}

/// Why a host ends the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trap(pub alloc::string::String);

/// Makes the calling crate's image a template. `$program` is a crate or module with
///
/// - `const IMPORTS: &str`, the list of what it performs (see [`wasm_record::Imports`]),
/// - `Startup`, as `sip::startup!` generates it,
/// - `fn main(startup: Startup, module: sip_wasm::Module) -> i32`.
///
/// The crate must be `#![no_std]` and `#![no_main]`.
#[macro_export]
macro_rules! template {
    ($program:path) => {
        use $program as template_program;

        /// Read by the composer; see `wasm_record::layout`.
        #[used]
        static TEMPLATE: $crate::code::Description =
            $crate::code::Description::new(template_program::IMPORTS, $crate::code::host, $crate::code::builtin);

        unsafe extern "C" {
            /// The first page after the image, where the composer puts the header of what it adds.
            static __sing_module: $crate::code::Header;
        }

        fn main(startup: template_program::Startup) -> i32 {
            // The description is referenced, so that the linker keeps it.
            $crate::sip::rust_core::hint::black_box(&TEMPLATE);
            // SAFETY: what lies there was added by the composer, whose work is signed as a whole with this image.
            let module = unsafe { $crate::code::module(&raw const __sing_module) };
            template_program::main(startup, module)
        }

        $crate::sip::entry!(main);
    };
}
