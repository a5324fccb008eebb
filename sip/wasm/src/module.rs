//! The module in this image.

use wasm_record::View;

use crate::code::Code;

/// The module that was added to this image.
#[derive(Clone, Copy)]
pub struct Module {
    pub(crate) code: Code,
    record: View<'static>,
}

impl Module {
    pub(crate) fn new(code: Code) -> Module {
        match View::parse(code.record) {
            Ok(record) => Module { code, record },
            Err(error) => panic!("{error}"),
        }
    }

    /// A module of the bundle that was added to this image; `None` if it is no bundle, or has no such module.
    pub fn part(&self, index: usize) -> Option<Module> {
        self.code.part(&self.record, index).map(Module::new)
    }

    /// All that is known of it but its code.
    pub fn record(&self) -> &View<'static> {
        &self.record
    }
}
