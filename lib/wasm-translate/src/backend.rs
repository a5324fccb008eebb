//! Cranelift, set up for images: code of the baseline with SSE4.2, no relocations but relative ones, stack probes.

use alloc::string::ToString;

use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{Function, UserExternalName};
use cranelift_codegen::isa::{self, OwnedTargetIsa};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_codegen::{CodegenError, CompiledCode, Context};

use crate::Error;

/// Names of functions outside of the one that is compiled: those of the module, by index.
pub const FUNCTIONS: u32 = 0;
/// Names of everything else, by the numbers of [`Symbol`].
pub const SYMBOLS: u32 = 1;

/// What code refers to, beside functions of the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Symbol {
    /// The template's function that performs imports.
    Host = 0,
    /// The template's function that performs builtins.
    Builtin = 1,
    /// The addresses of all functions.
    FunctionTable = 2,
    /// The number of each function's signature (u32 each).
    SignatureTable = 3,
    /// The entries of tables that nothing changes (u32 each).
    SealedTables = 4,
}

impl Symbol {
    pub fn name(self) -> UserExternalName {
        UserExternalName { namespace: SYMBOLS, index: self as u32 }
    }
}

/// Settings of the code generator. Code that a verifier reads has to be plain: no spectre guards, which it would have to
/// see through, and no unwind tables, since nothing unwinds. Tail calls need frame pointers, which x86-64 has anyway.
/// Results for which there are no registers lie in an area of the caller's.
const SETTINGS: [(&str, &str); 12] = [
    ("opt_level", "speed"),
    ("enable_multi_ret_implicit_sret", "true"),
    ("is_pic", "false"),
    ("enable_verifier", "false"),
    ("unwind_info", "false"),
    ("preserve_frame_pointers", "true"),
    ("enable_probestack", "true"),
    ("probestack_strategy", "inline"),
    ("probestack_size_log2", "12"),
    ("machine_code_cfg_info", "true"),
    ("enable_heap_access_spectre_mitigation", "false"),
    ("enable_table_access_spectre_mitigation", "false"),
];

/// Instruction sets beyond the baseline: what images may contain.
const FEATURES: [&str; 5] = ["has_sse3", "has_ssse3", "has_sse41", "has_sse42", "has_popcnt"];

/// The code generator.
pub struct Backend {
    pub isa: OwnedTargetIsa,
}

impl Backend {
    pub fn new() -> Result<Backend, Error> {
        let failed = |error: &dyn core::fmt::Display| Error::Backend(error.to_string());
        let mut flags = settings::builder();
        for (name, value) in SETTINGS {
            flags.set(name, value).map_err(|error| failed(&error))?;
        }
        let triple = "x86_64-unknown-none-elf".parse::<target_lexicon::Triple>().map_err(|error| failed(&error))?;
        let mut builder = isa::lookup(triple).map_err(|error| failed(&error))?;
        for feature in FEATURES {
            builder.enable(feature).map_err(|error| failed(&error))?;
        }
        let isa = builder.finish(settings::Flags::new(flags)).map_err(|error| failed(&error))?;
        Ok(Backend { isa })
    }

    /// Compiles a function.
    pub fn compile(&self, function: Function) -> Result<(Function, CompiledCode), Error> {
        let mut context = Context::for_function(function);
        let compiled = context.compile(&*self.isa, &mut ControlPlane::default());
        compiled.map_err(|error| match error.inner {
            CodegenError::Unsupported(what) => Error::Unsupported { what },
            other => Error::Backend(other.to_string()),
        })?;
        let code = context.take_compiled_code().ok_or_else(|| Error::Backend("no code".to_string()))?;
        Ok((context.func, code))
    }
}
