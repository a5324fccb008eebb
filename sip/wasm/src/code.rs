//! The boundary to compiled code: what a template tells the composer, what the composer adds, how code is entered, and
//! what it calls.
//!
//! Deliberately not here: what a builtin does ([`bulk`](crate::bulk)), in safe code.

use alloc::format;

use wasm_record::layout::{Bounds, Builtin, HEADER_MAGIC, TEMPLATE_MAGIC};
use wasm_record::{Export, ExportKind, View};

use crate::caller::Caller;
use crate::context::Active;
use crate::module::Module;
use crate::{Trap, bulk};

/// What code calls to perform an import: the context, the import's number.
pub type HostFunction = unsafe extern "C" fn(*mut u8, u32);
/// What code calls for a [`Builtin`]: the context, its number with that of the calling function in the upper half, and
/// its arguments.
pub type BuiltinFunction = unsafe extern "C" fn(*mut u8, u64, u64, u64, u64, u64) -> u64;
/// Entry of a signature: calls the function at the second address with arguments from the context's slots, and leaves
/// results there.
type Entry = unsafe extern "C" fn(*mut u8, usize);

/// A template's description in its image, with the layout of `wasm_record::layout`.
#[repr(C)]
pub struct Description {
    magic: [u8; 16],
    imports: *const u8,
    imports_bytes: usize,
    host: HostFunction,
    builtin: BuiltinFunction,
}

// SAFETY: read-only; the address is that of static text.
unsafe impl Sync for Description {}

impl Description {
    /// Describes a template with this list of imports.
    pub const fn new(imports: &'static str, host: HostFunction, builtin: BuiltinFunction) -> Description {
        Description { magic: *TEMPLATE_MAGIC, imports: imports.as_ptr(), imports_bytes: imports.len(), host, builtin }
    }
}

/// The header of what was added to the image, with the layout of `wasm_record::layout`.
#[repr(C)]
pub struct Header {
    magic: u64,
    record: *const u8,
    record_bytes: usize,
    functions: *const usize,
    function_count: usize,
    entries: *const usize,
    entry_count: usize,
    bounds: u64,
}

/// Code and record of a module in this image, for as long as the process lives.
#[derive(Clone, Copy)]
pub struct Code {
    pub(crate) record: &'static [u8],
    functions: &'static [usize],
    entries: &'static [usize],
    pub(crate) bounds: Bounds,
}

/// Reads the header. Panics if there is none.
///
/// # Safety
///
/// `header` is the address of what the composer has added to the image.
pub unsafe fn module(header: *const Header) -> Module {
    // SAFETY: a composed image has the header there; all of its addresses are of its own read-only segments.
    let code = unsafe {
        let header = &*header;
        assert!(header.magic == HEADER_MAGIC, "the image has no module");
        let Some(bounds) = Bounds::of(header.bounds) else { panic!("the header of the module is damaged") };
        Code {
            record: core::slice::from_raw_parts(header.record, header.record_bytes),
            functions: core::slice::from_raw_parts(header.functions, header.function_count),
            entries: core::slice::from_raw_parts(header.entries, header.entry_count),
            bounds,
        }
    };
    Module::new(code)
}

impl Code {
    /// The code of a module of this bundle; `None` if it is no bundle, or has no such module.
    pub(crate) fn part(self, record: &View<'static>, index: usize) -> Option<Code> {
        let part = record.parts.get(index).ok()??;
        let end = record.parts.get(index + 1).ok()?;
        let range = |start: u32, end: Option<u32>, all: &'static [usize]| {
            all.get(start as usize..end.map_or(all.len(), |end| end as usize))
        };
        Some(Code {
            record: part.record,
            functions: range(part.functions, end.as_ref().map(|end| end.functions), self.functions)?,
            entries: range(part.entries, end.map(|end| end.entries), self.entries)?,
            bounds: self.bounds,
        })
    }

    /// Calls a function of this signature with the arguments in the context's slots.
    ///
    /// # Safety
    ///
    /// `context` is that of an instance of the module, and `active` what its host functions reach, while the call lasts;
    /// nothing else refers to either. The signature is the function's.
    pub(crate) unsafe fn enter(self, function: u32, signature: u32, context: *mut u8, active: &mut Active<'_>) {
        let (Some(&code), Some(&entry)) = (self.functions.get(function as usize), self.entries.get(signature as usize))
        else {
            return;
        };
        // SAFETY: the composer made each entry for its signature. Code keeps to its instance: memory, tables and context;
        // that is the compiler's obligation.
        unsafe {
            let entry: Entry = core::mem::transmute(entry);
            let former = Active::install(context, active);
            entry(context, code);
            Active::restore(context, former);
        }
    }
}

/// Performs an import. See [`HostFunction`].
///
/// # Safety
///
/// Called by compiled code with its own context, within [`Code::enter`].
pub unsafe extern "C" fn host(context: *mut u8, import: u32) {
    // SAFETY: code runs only within `enter`, whose `active` nothing else uses until this returns.
    let active = unsafe { Active::of(context) };
    let Active { state, host } = active;
    let mut caller = Caller { state };
    if let Err(Trap(reason)) = host.call(import as usize, &mut caller) {
        sip::process::fail(format_args!("{reason}"));
    }
    state.publish();
}

/// Performs a builtin. See [`BuiltinFunction`].
///
/// # Safety
///
/// As for [`host`].
pub unsafe extern "C" fn builtin(context: *mut u8, number: u64, a: u64, b: u64, c: u64, d: u64) -> u64 {
    // SAFETY: as in `host`.
    let Active { state, .. } = unsafe { Active::of(context) };
    let Some(builtin) = Builtin::of(number as u32) else {
        trap("unknown builtin", state.module.record(), (number >> 32) as u32)
    };
    let result = bulk::perform(state, builtin, [a, b, c, d]);
    if !is_of_memory_alone(builtin) {
        state.publish();
    }
    match result {
        Ok(value) => value,
        Err(kind) => trap(kind, state.module.record(), (number >> 32) as u32),
    }
}

/// Whether a builtin reads and writes memory where it is, so that what the context has of memory and tables stays right.
fn is_of_memory_alone(builtin: Builtin) -> bool {
    matches!(builtin, Builtin::MemoryFill | Builtin::MemoryCopy | Builtin::MemoryInit | Builtin::DataDrop)
}

/// Ends the process with an epitaph that names the kind of the trap and the function.
fn trap(kind: &str, record: &View<'_>, function: u32) -> ! {
    let name = record.function(function).map_or("", |function| function.name);
    let is_it = |export: &Export<'_>| export.kind == ExportKind::Function && export.index == function;
    let exported = record.exports.iter().flatten().find(is_it);
    let name = match (name, exported) {
        ("", Some(export)) => export.name.into(),
        ("", None) => format!("function {function}"),
        (name, _) => name.into(),
    };
    sip::process::fail(format_args!("trap: {kind} in {name}"))
}
