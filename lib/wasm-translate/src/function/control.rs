//! Blocks, loops, conditions and branches.

use alloc::vec::Vec;

use cranelift_codegen::ir::{Block, BlockArg, BlockCall, InstBuilder, JumpTableData, Value};
use wasm_record::ValueType;
use wasmparser::{BlockType, BrTable, Operator};

use super::exceptions::{Caught, Landing};
use super::{Translator, traps, value_type};
use crate::{Error, limits, module};

/// An open block.
pub struct Frame {
    kind: Kind,
    /// Where control goes behind it.
    exit: Block,
    /// Number of its parameters.
    parameters: usize,
    /// Number of its results.
    results: usize,
    /// Number of values below its parameters.
    height: usize,
    exit_is_reached: bool,
}

impl Frame {
    /// The block to which exceptions go that are thrown here; `None` unless it is the body of a `try`.
    pub fn landing(&mut self) -> Option<&mut Landing> {
        match &mut self.kind {
            Kind::Try(landing) => Some(landing),
            _ => None,
        }
    }

    /// The exception that a handler has caught.
    pub fn caught(&self) -> Option<&Caught> {
        match &self.kind {
            Kind::Catch(caught) => Some(caught),
            _ => None,
        }
    }
}

enum Kind {
    Block,
    Loop {
        header: Block,
    },
    /// The first branch of a condition, with the parameters for the second.
    If {
        other: Block,
        parameters: Vec<Value>,
    },
    Else,
    /// The body of a `try`.
    Try(Landing),
    /// A handler.
    Catch(Caught),
}

fn arguments(values: &[Value]) -> Vec<BlockArg> {
    values.iter().map(|value| BlockArg::Value(*value)).collect()
}

impl Translator<'_, '_> {
    /// Performs an operator of control; returns whether it is one.
    pub fn control(&mut self, operator: &Operator<'_>) -> Result<bool, Error> {
        match operator {
            Operator::Block { .. } | Operator::Loop { .. } | Operator::If { .. } | Operator::Try { .. }
                if !self.reachable =>
            {
                self.dead_frames += 1;
            }
            Operator::Block { blockty } => self.open(*blockty, |_, _| Kind::Block)?,
            Operator::Loop { blockty } => self.open_loop(*blockty)?,
            Operator::If { blockty } => self.open_if(*blockty)?,
            Operator::Else if self.dead_frames == 0 => self.other_branch(),
            Operator::Else => {}
            Operator::End if self.dead_frames == 0 => self.close(),
            Operator::Delegate { relative_depth } if self.dead_frames == 0 => self.delegate(*relative_depth),
            Operator::End | Operator::Delegate { .. } => self.dead_frames -= 1,
            Operator::Try { blockty } => self.open(*blockty, |_, _| Kind::Try(Landing::default()))?,
            Operator::Catch { tag_index } if self.dead_frames == 0 => self.catch(Some(*tag_index))?,
            Operator::CatchAll if self.dead_frames == 0 => self.catch(None)?,
            Operator::Catch { .. } | Operator::CatchAll => {}
            _ if !self.reachable => return Ok(false),
            Operator::Br { relative_depth } => {
                self.branch(*relative_depth)?;
                self.reachable = false;
            }
            Operator::BrIf { relative_depth } => self.branch_if(*relative_depth)?,
            Operator::BrTable { targets } => self.branch_table(targets)?,
            Operator::Return => {
                let results = self.top(self.frames[0].results);
                self.builder.ins().return_(&results);
                self.reachable = false;
            }
            Operator::Unreachable => {
                self.builder.ins().trap(traps::UNREACHABLE);
                self.reachable = false;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Opens the block that is the whole function.
    pub fn open_function(&mut self, results: &[ValueType]) {
        let exit = self.block(results);
        let results = results.len();
        self.frames.push(Frame { kind: Kind::Block, exit, parameters: 0, results, height: 0, exit_is_reached: false });
    }

    fn block(&mut self, parameters: &[ValueType]) -> Block {
        let block = self.builder.create_block();
        for kind in parameters {
            self.builder.append_block_param(block, value_type(*kind));
        }
        block
    }

    fn types(&self, block: BlockType) -> Result<(Vec<ValueType>, Vec<ValueType>), Error> {
        Ok(match block {
            BlockType::Empty => (Vec::new(), Vec::new()),
            BlockType::Type(kind) => (Vec::new(), alloc::vec![module::value_type(kind)?]),
            BlockType::FuncType(index) => {
                let signature = self.module.signature_of_type(index);
                (signature.parameters.clone(), signature.results.clone())
            }
        })
    }

    fn open(&mut self, block: BlockType, kind: impl FnOnce(&mut Self, &[ValueType]) -> Kind) -> Result<(), Error> {
        let (parameters, results) = self.types(block)?;
        self.pass(parameters.len() + results.len())?;
        let exit = self.block(&results);
        let kind = kind(self, &parameters);
        self.frames.push(Frame {
            kind,
            exit,
            parameters: parameters.len(),
            results: results.len(),
            height: self.stack.len().saturating_sub(parameters.len()),
            exit_is_reached: false,
        });
        Ok(())
    }

    fn open_loop(&mut self, block: BlockType) -> Result<(), Error> {
        self.loops += 1;
        if self.loops * self.locals.len() > limits::LOOPED_LOCALS {
            return Err(Error::Limit { what: "locals times nested loops", most: limits::LOOPED_LOCALS });
        }
        self.open(block, |this, parameters| {
            let header = this.block(parameters);
            let values = this.take(parameters.len());
            this.builder.ins().jump(header, &arguments(&values));
            this.builder.switch_to_block(header);
            this.stack.extend_from_slice(this.builder.block_params(header));
            Kind::Loop { header }
        })
    }

    fn open_if(&mut self, block: BlockType) -> Result<(), Error> {
        let condition = self.pop();
        self.open(block, |this, parameters| {
            let (first, other) = (this.builder.create_block(), this.builder.create_block());
            this.builder.ins().brif(condition, first, &[], other, &[]);
            this.enter(first);
            Kind::If { other, parameters: this.top(parameters.len()) }
        })
    }

    /// Goes on in a block that has all of its predecessors.
    pub fn enter(&mut self, block: Block) {
        self.builder.switch_to_block(block);
        self.builder.seal_block(block);
    }

    fn other_branch(&mut self) {
        self.leave_to_exit();
        let Some(frame) = self.frames.last_mut() else { return };
        let Kind::If { other, parameters } = core::mem::replace(&mut frame.kind, Kind::Else) else { return };
        self.stack.truncate(frame.height);
        self.stack.extend(parameters);
        self.enter(other);
        self.reachable = true;
    }

    /// Goes to the exit of the innermost block, which a branch to a loop does not.
    fn leave_to_exit(&mut self) {
        if !self.reachable {
            return;
        }
        let Some(frame) = self.frames.last_mut() else { return };
        frame.exit_is_reached = true;
        let (exit, results) = (frame.exit, frame.results);
        let values = self.top(results);
        self.builder.ins().jump(exit, &arguments(&values));
    }

    /// Begins a handler of the innermost `try`: of exceptions with a tag, or of all.
    fn catch(&mut self, tag: Option<u32>) -> Result<(), Error> {
        self.leave_to_exit();
        self.reachable = false;
        let Some(frame) = self.frames.last_mut() else { return Ok(()) };
        self.stack.truncate(frame.height);
        let former = core::mem::replace(&mut frame.kind, Kind::Else);
        let next = match former {
            Kind::Try(landing) => landing.block,
            Kind::Catch(caught) => caught.next,
            _ => None,
        };
        let caught = self.handle(next, tag)?;
        if let Some(frame) = self.frames.last_mut() {
            frame.kind = Kind::Catch(caught);
        }
        Ok(())
    }

    /// Closes a `try` whose exceptions go to another one, as if they were thrown there.
    fn delegate(&mut self, depth: u32) {
        let end = self.frames.len().saturating_sub(1);
        let landing = self.frames.last_mut().and_then(Frame::landing).and_then(|landing| landing.block.take());
        self.leave_to_exit();
        self.pass_on(landing, end.saturating_sub(depth as usize));
        self.reachable = false;
        self.close();
    }

    /// Goes on to where exceptions of the outermost `end` frames are handled, from a block that may be there.
    fn pass_on(&mut self, block: Option<Block>, end: usize) {
        if let Some(block) = block {
            self.enter(block);
            self.raise(end);
        }
    }

    fn close(&mut self) {
        if let Some(Frame { kind: Kind::If { .. }, .. }) = self.frames.last() {
            // Without a second branch, parameters are results.
            self.other_branch();
        }
        self.leave_to_exit();
        let unhandled = match self.frames.last_mut().map(|frame| &mut frame.kind) {
            Some(Kind::Try(landing)) => landing.block.take(),
            Some(Kind::Catch(caught)) => caught.next.take(),
            _ => None,
        };
        self.pass_on(unhandled, self.frames.len() - 1);
        let Some(frame) = self.frames.pop() else { return };
        if let Kind::Loop { header } = frame.kind {
            self.loops -= 1;
            self.builder.seal_block(header);
        }
        self.stack.truncate(frame.height);
        self.reachable = frame.exit_is_reached;
        if !self.reachable {
            return;
        }
        self.enter(frame.exit);
        let results = self.builder.block_params(frame.exit).to_vec();
        if self.frames.is_empty() {
            self.builder.ins().return_(&results);
            self.reachable = false;
        } else {
            self.stack.extend(results);
        }
    }

    /// The target of a branch, and the number of values that it takes.
    fn target(&mut self, depth: u32) -> Result<(Block, usize), Error> {
        let at = self.frames.len() - 1 - depth as usize;
        let frame = &mut self.frames[at];
        let target = match frame.kind {
            Kind::Loop { header } => (header, frame.parameters),
            _ => {
                frame.exit_is_reached = true;
                (frame.exit, frame.results)
            }
        };
        self.pass(target.1)?;
        Ok(target)
    }

    fn branch(&mut self, depth: u32) -> Result<(), Error> {
        let (target, values) = self.target(depth)?;
        let values = self.top(values);
        self.builder.ins().jump(target, &arguments(&values));
        Ok(())
    }

    fn branch_if(&mut self, depth: u32) -> Result<(), Error> {
        let condition = self.pop();
        let (target, values) = self.target(depth)?;
        let values = self.top(values);
        let next = self.builder.create_block();
        self.builder.ins().brif(condition, target, &arguments(&values), next, &[]);
        self.enter(next);
        Ok(())
    }

    fn branch_table(&mut self, table: &BrTable<'_>) -> Result<(), Error> {
        let index = self.pop();
        let mut calls = Vec::with_capacity(table.len() as usize);
        for depth in table.targets() {
            calls.push(self.call_of_block(depth?)?);
        }
        let default = self.call_of_block(table.default())?;
        let table = self.builder.create_jump_table(JumpTableData::new(default, &calls));
        self.builder.ins().br_table(index, table);
        self.reachable = false;
        Ok(())
    }

    fn call_of_block(&mut self, depth: u32) -> Result<BlockCall, Error> {
        let (target, values) = self.target(depth)?;
        let values = arguments(&self.top(values));
        Ok(BlockCall::new(target, values, &mut self.builder.func.dfg.value_lists))
    }
}
