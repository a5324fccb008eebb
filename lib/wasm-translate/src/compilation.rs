//! A module that is compiled in parts, which threads can share: each has a [`Compilation`] of the same module, and compiles
//! some of the parts. The result does not depend on who compiled what.

use alloc::vec::Vec;

use wasm_record::Imports;
use wasm_record::layout::Bounds;

use crate::backend::Backend;
use crate::module::{Body, Module};
use crate::separate::Separated;
use crate::translated::{Assembler, Translated};
use crate::{Error, function, limits, thunks};

/// A module that is valid but for its bodies, and a code generator for it.
pub struct Compilation<'a> {
    module: Module<'a>,
    /// Those that are not compiled yet.
    bodies: Vec<Option<Body<'a>>>,
    backend: Backend,
    bounds: Bounds,
}

/// A compiled part.
pub struct Part(Separated);

impl<'a> Compilation<'a> {
    /// Reads a module for a template that offers these imports, with these bounds of linear memory.
    ///
    /// # Errors
    /// The module is malformed, over a limit, uses what is not supported, or imports what the template does not offer.
    pub fn new(bytes: &'a [u8], imports: &Imports, bounds: Bounds) -> Result<Compilation<'a>, Error> {
        if bytes.len() > limits::MODULE_BYTES {
            return Err(Error::Limit { what: "bytes of the module", most: limits::MODULE_BYTES });
        }
        let (module, bodies) = Module::parse(bytes, imports, bounds)?;
        let bodies = bodies.into_iter().map(Some).collect();
        Ok(Compilation { module, bodies, backend: Backend::new()?, bounds })
    }

    /// Number of its parts: the functions, and behind them the entry of each signature.
    pub fn parts(&self) -> usize {
        self.module.functions.len() + self.module.signatures.len()
    }

    /// Compiles a part. A function's body is used up.
    ///
    /// # Errors
    /// The function is invalid, over a limit, uses what is not supported, or was compiled before; or there is no such part.
    pub fn compile(&mut self, number: usize) -> Result<Part, Error> {
        let none = || Error::Backend("a part that there is not".into());
        if let Some(body) = self.bodies.get_mut(number) {
            let body = body.take().ok_or_else(none)?;
            let named = |error: Error| error.in_function(self.module.functions[number].name, number as u32);
            return function::compile(&self.backend, &self.module, number as u32, body).map(Part).map_err(named);
        }
        let signature = self.module.signatures.get(number - self.bodies.len()).ok_or_else(none)?;
        let pending = (!self.module.tags.is_empty()).then(|| self.module.place_of_global(self.module.pending));
        thunks::entry(&self.backend, signature, pending).map(Part)
    }

    /// Puts all parts together, in their order.
    ///
    /// # Errors
    /// They do not fit together.
    pub fn finish(self, parts: impl IntoIterator<Item = Part>) -> Result<Translated, Error> {
        let mut assembler = Assembler::new(self.module.sealed.bytes());
        for (number, Part(part)) in parts.into_iter().enumerate() {
            if number < self.bodies.len() {
                assembler.add_function(part);
            } else {
                assembler.add_entry(part);
            }
        }
        let signatures = self.module.functions.iter().map(|function| function.signature).collect();
        let mut translated = assembler.finish(signatures, self.module.record().encode())?;
        translated.bounds = self.bounds;
        Ok(translated)
    }
}
