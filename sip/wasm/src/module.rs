//! The module in this image.

use alloc::boxed::Box;

use wasm_record::Record;

use crate::code::Code;

/// The module that was added to this image.
#[derive(Clone, Copy)]
pub struct Module {
    pub(crate) code: Code,
    record: &'static Record<'static>,
}

impl Module {
    pub(crate) fn new(code: Code) -> Module {
        let record = match Record::parse(code.record) {
            Ok(record) => Box::leak(Box::new(record)),
            Err(error) => panic!("{error}"),
        };
        Module { code, record }
    }

    /// A module of the bundle that was added to this image; `None` if it is no bundle, or has no such module. Its record is
    /// read each time, and kept for as long as the process lives.
    pub fn part(&self, index: usize) -> Option<Module> {
        self.code.part(self.record, index).map(Module::new)
    }

    /// All that is known of it but its code.
    pub fn record(&self) -> &'static Record<'static> {
        self.record
    }
}
