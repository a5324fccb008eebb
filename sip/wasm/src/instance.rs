//! An instance of the module: memory, tables, globals, and calls of its functions.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use sip::Status;
use wasm_record::layout::MAX_ARGUMENTS;
use wasm_record::{ExportKind, Malformed, Mode, View};

use crate::context::{Active, Context};
use crate::memory::LinearMemory;
use crate::module::Module;
use crate::tables::Entries;
use crate::{Host, bulk};

/// An instance of the module.
pub struct Instance {
    state: State,
}

/// What belongs to an instance, apart from its code.
pub(crate) struct State {
    pub(crate) module: Module,
    pub(crate) context: Context,
    pub(crate) memory: Option<LinearMemory>,
    pub(crate) tables: Vec<Entries>,
    pub(crate) dropped_data: Vec<bool>,
    pub(crate) dropped_elements: Vec<bool>,
}

/// Why an instance cannot be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartError {
    /// The quota does not suffice for memory.
    Memory {
        /// Pages of linear memory that the module begins with.
        pages: u64,
    },
    /// The code was made for memory with reserved addresses behind it, and there are none.
    Window(Status),
    /// The quota does not suffice for tables.
    Tables {
        /// Entries that they begin with.
        entries: u64,
    },
    /// A segment does not fit.
    Segment(&'static str),
    /// The module's record is malformed.
    Record(Malformed),
    /// The image has several modules, and this is none of them.
    Bundle,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Memory { pages } => write!(
                f,
                "the module begins with {pages} pages of memory (64 KiB each), more than its manifest's memory_kib allows"
            ),
            StartError::Window(Status::NotFound) => f.write_str(
                "the module was compiled for memory with reserved addresses (bounds = \"guarded\"), which this machine \
                 has none of; build it with bounds = \"checked\"",
            ),
            StartError::Window(status) => {
                write!(f, "no addresses can be reserved for the module's memory: {}", status.text())
            }
            StartError::Tables { entries } => {
                write!(
                    f,
                    "the module begins with {entries} entries of tables, more than its manifest's memory_kib allows"
                )
            }
            StartError::Segment(kind) => f.write_str(kind),
            StartError::Record(error) => write!(f, "{error}"),
            StartError::Bundle => f.write_str("the image has several modules, of which one is wanted"),
        }
    }
}

impl core::error::Error for StartError {}

impl State {
    /// Linear memory; empty if there is none.
    pub(crate) fn memory(&mut self) -> &mut [u8] {
        self.memory.as_mut().map_or(&mut [], LinearMemory::slice)
    }

    /// Tells code where memory and tables are.
    pub(crate) fn publish(&mut self) {
        if let Some(memory) = &self.memory {
            self.context.set_memory(memory.address(), memory.bytes());
        }
        for (index, table) in self.tables.iter_mut().enumerate() {
            let base = table.entries.as_mut_ptr().expose_provenance();
            self.context.set_table(index as u32, base, table.entries.len());
        }
    }
}

impl Instance {
    /// Makes an instance: memory and tables with their segments. Does not run the start function, which
    /// [`start`](Self::start) does.
    ///
    /// # Errors
    /// Not enough memory, a segment does not fit, or the module is a bundle.
    pub fn new(module: Module) -> Result<Instance, StartError> {
        let record = module.record();
        // A bundle's record names functions whose tables and globals only the parts' records have.
        if !record.parts.is_empty() {
            return Err(StartError::Bundle);
        }
        let memory = match record.memory {
            Some(limits) => Some(LinearMemory::new(module.code.bounds, limits)?),
            None => None,
        };
        let mut tables = Vec::with_capacity(record.tables.len());
        for table in record.tables.iter() {
            let table = table.map_err(StartError::Record)?;
            let entries = table.limits.min;
            tables.push(Entries::new(&table).ok_or(StartError::Tables { entries })?);
        }
        let mut context = Context::new(record.tables.len() as u32, record.globals.len() as u32);
        for (index, global) in record.globals.iter().enumerate() {
            context.set_global(index as u32, global.map_err(StartError::Record)?.value);
        }
        let mut state = State {
            module,
            context,
            memory,
            tables,
            dropped_data: vec![false; record.data.len()],
            dropped_elements: vec![false; record.elements.len()],
        };
        copy_segments(&mut state)?;
        state.publish();
        Ok(Instance { state })
    }

    /// Runs the start function, if the module has one.
    pub fn start(&mut self, host: &mut dyn Host) {
        if let Some(start) = self.state.module.record().start {
            // It has neither parameters nor results: the compiler has checked it.
            let _ = self.call_function(start, &[], host);
        }
    }

    /// Calls an exported function; returns the bits of its results. A trap ends the process.
    ///
    /// # Errors
    /// There is no such function, or it takes another number of arguments.
    pub fn call(&mut self, name: &str, arguments: &[u128], host: &mut dyn Host) -> Result<Vec<u128>, String> {
        let function = self.state.module.record().export(ExportKind::Function, name);
        let function = function.ok_or_else(|| format!("the module exports no function `{name}`"))?;
        self.call_function(function, arguments, host)
    }

    /// Calls a function by its index. See [`call`](Self::call).
    ///
    /// # Errors
    /// As there.
    pub fn call_function(
        &mut self,
        function: u32,
        arguments: &[u128],
        host: &mut dyn Host,
    ) -> Result<Vec<u128>, String> {
        let module = self.state.module;
        let record = module.record();
        let signature = record.signature(function).ok_or_else(|| format!("there is no function {function}"))?;
        let most = signature.parameters.len().max(signature.results.len());
        if signature.parameters.len() != arguments.len() || most > MAX_ARGUMENTS {
            return Err(format!(
                "function {function} is {signature}, which does not fit {} arguments",
                arguments.len()
            ));
        }
        for (index, argument) in arguments.iter().enumerate() {
            self.state.context.set_argument(index, *argument);
        }
        let context = self.state.context.address();
        let number = record.function(function).map_or(u32::MAX, |function| function.signature);
        let mut active = Active { state: &mut self.state, host };
        // SAFETY: the context is this instance's, which is borrowed for the call; the signature is the function's.
        unsafe { module.code.enter(function, number, context, &mut active) };
        Ok((0..signature.results.len()).map(|index| self.state.context.argument(index)).collect())
    }

    /// Linear memory; empty if the module has none.
    pub fn memory(&mut self) -> &mut [u8] {
        self.state.memory()
    }

    /// The bits of a global by its index.
    pub fn global_at(&self, index: u32) -> Option<u128> {
        let is_one = (index as usize) < self.state.module.record().globals.len();
        is_one.then(|| self.state.context.global(index))
    }

    /// The bits of an exported global.
    pub fn global(&self, name: &str) -> Option<u128> {
        let index = self.state.module.record().export(ExportKind::Global, name)?;
        Some(self.state.context.global(index))
    }
}

/// Copies active segments in their order, and drops them.
fn copy_segments(state: &mut State) -> Result<(), StartError> {
    let View { elements, data, .. } = *state.module.record();
    for (segment, element) in elements.iter().enumerate() {
        let element = element.map_err(StartError::Record)?;
        if let Mode::Active { target, offset } = element.mode {
            bulk::table_init(state, u64::from(target), segment, [offset, 0, element.items.len() as u64])
                .map_err(StartError::Segment)?;
        }
        if element.mode != Mode::Passive {
            state.dropped_elements[segment] = true;
        }
    }
    for (segment, data) in data.iter().enumerate() {
        let data = data.map_err(StartError::Record)?;
        if let Mode::Active { offset, .. } = data.mode {
            bulk::memory_init(state, segment, [offset, 0, data.bytes.len() as u64]).map_err(StartError::Segment)?;
            state.dropped_data[segment] = true;
        }
    }
    Ok(())
}
