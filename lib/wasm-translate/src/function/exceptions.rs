//! Exceptions, in the form that compilers write by default (`try`, `catch`, `rethrow`, `delegate`).
//!
//! Nothing unwinds the stack: an exception is pending while a global that the module does not see has the number of its
//! tag, and after each call code looks whether one is. If so it goes to the handlers of the innermost `try`, or returns.
//! The values of an exception lie in globals too. A module without tags has none of this. Deliberately not here:
//! references to exceptions, which would need a collector.

use alloc::vec::Vec;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, Value, types};
use wasmparser::Operator;

use super::control::Frame;
use super::{Region, Translator, value_type};
use crate::Error;

/// Where exceptions of a `try` go.
#[derive(Default)]
pub struct Landing {
    /// The block, once there is a way to it.
    pub block: Option<Block>,
}

/// The exception that a handler has caught.
#[derive(Default)]
pub struct Caught {
    /// Where exceptions go that this handler is not for; `None` if it is for all, or none get here.
    pub next: Option<Block>,
    /// What was pending: the number of the tag, and each global of values with what it held.
    pending: Option<Value>,
    values: Vec<(u32, Value)>,
}

impl Translator<'_, '_> {
    /// Performs an operator that throws; returns whether it is one.
    pub fn exception(&mut self, operator: &Operator<'_>) -> Result<bool, Error> {
        match *operator {
            Operator::Throw { tag_index } => {
                let globals = self.module.tags[tag_index as usize].globals.clone();
                self.pass(globals.len())?;
                let values = self.take(globals.len());
                let tag = self.builder.ins().iconst(types::I32, i64::from(tag_index) + 1);
                self.throw(tag, globals.zip(values));
            }
            Operator::Rethrow { relative_depth } => {
                let at = self.frames.len() - 1 - relative_depth as usize;
                let Some(caught) = self.frames[at].caught() else { return Ok(false) };
                let (Some(tag), values) = (caught.pending, caught.values.clone()) else { return Ok(false) };
                self.pass(values.len())?;
                self.throw(tag, values.into_iter());
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn throw(&mut self, tag: Value, values: impl Iterator<Item = (u32, Value)>) {
        for (global, value) in values {
            self.set_hidden(global, value);
        }
        let pending = self.module.pending;
        self.set_hidden(pending, tag);
        self.raise(self.frames.len());
        self.reachable = false;
    }

    /// Looks, after a call, whether an exception is pending.
    pub fn check_exception(&mut self) {
        if self.module.tags.is_empty() {
            return;
        }
        let pending = self.hidden(self.module.pending);
        let next = self.builder.create_block();
        let landing = self.landing(self.frames.len());
        self.builder.ins().brif(pending, landing, &[], next, &[]);
        self.builder.set_cold_block(landing);
        self.enter(next);
    }

    /// Goes to where exceptions of the outermost `end` frames are handled.
    pub fn raise(&mut self, end: usize) {
        let landing = self.landing(end);
        self.builder.ins().jump(landing, &[]);
    }

    /// Where exceptions of the outermost `end` frames go: to the handlers of the innermost `try`, or out of the function.
    fn landing(&mut self, end: usize) -> Block {
        let innermost = self.frames[..end].iter_mut().rev().find_map(Frame::landing);
        let block = innermost.map_or(&mut self.unwind, |landing| &mut landing.block);
        *block.get_or_insert_with(|| self.builder.create_block())
    }

    /// Makes the way out of the function, if there is one: results that nobody looks at.
    pub fn close_unwind(&mut self) {
        let Some(unwind) = self.unwind else { return };
        self.enter(unwind);
        let kinds = &self.module.signature_of(self.index).results;
        let results: Vec<Value> = kinds.iter().map(|kind| self.default(*kind)).collect();
        self.builder.ins().return_(&results);
    }

    /// Begins a handler in the block to which exceptions come; pushes what it gets.
    pub fn handle(&mut self, block: Option<Block>, tag: Option<u32>) -> Result<Caught, Error> {
        let Some(block) = block else { return Ok(Caught::default()) };
        self.enter(block);
        let pending = self.hidden(self.module.pending);
        let next = tag.map(|tag| {
            let is_it = self.builder.ins().icmp_imm_u(IntCC::Equal, pending, i64::from(tag) + 1);
            let (body, next) = (self.builder.create_block(), self.builder.create_block());
            self.builder.ins().brif(is_it, body, &[], next, &[]);
            self.enter(body);
            next
        });
        let globals = match tag {
            Some(tag) => self.module.tags[tag as usize].globals.clone(),
            None => self.module.exception_values(),
        };
        self.pass(globals.len())?;
        let values: Vec<(u32, Value)> = globals.map(|global| (global, self.hidden(global))).collect();
        let none = self.builder.ins().iconst(types::I32, 0);
        self.set_hidden(self.module.pending, none);
        if tag.is_some() {
            self.stack.extend(values.iter().map(|(_, value)| *value));
        }
        self.reachable = true;
        Ok(Caught { next, pending: Some(pending), values })
    }

    fn hidden(&mut self, global: u32) -> Value {
        let (kind, offset) = self.global(global);
        let flags = self.flags(Region::Globals);
        self.builder.ins().load(kind, flags, self.context, offset)
    }

    fn set_hidden(&mut self, global: u32, value: Value) {
        debug_assert_eq!(
            self.builder.func.dfg.value_type(value),
            value_type(self.module.globals[global as usize].kind)
        );
        let (_, offset) = self.global(global);
        let flags = self.flags(Region::Globals);
        self.builder.ins().store(flags, value, self.context, offset);
    }
}
