//! Linear memory: each access is checked against its size, which the context has.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, TrapCode, Type, Value, types};
use wasm_record::layout::{Bounds, Builtin, MEMORY_BASE, MEMORY_BYTES, WINDOW_BYTES};
use wasmparser::{MemArg, Operator};

use super::{Region, Translator};

/// log2 of the size of a page of WebAssembly.
const PAGE_SHIFT: i64 = 16;
/// In guard mode, an access whose offset and bytes end within this needs no check: what an instruction can add to an
/// address, and a window has behind the largest memory.
const GUARD_BYTES: u64 = 1 << 31;
const _: () = assert!((1 << 32) + GUARD_BYTES <= WINDOW_BYTES);

impl Translator<'_, '_> {
    /// Checks an access of this many bytes at the index on top, unless guards do; returns an address, and the offset to add
    /// to it.
    pub fn address(&mut self, argument: &MemArg, bytes: u32) -> (Value, i32) {
        let index = self.pop();
        self.address_at(index, argument.offset, bytes)
    }

    /// The same at an index.
    pub fn address_at(&mut self, index: Value, offset: u64, bytes: u32) -> (Value, i32) {
        let index = self.widen(index);
        if self.module.bounds == Bounds::Guarded && offset + u64::from(bytes) <= GUARD_BYTES {
            let base = self.memory_base();
            return (self.builder.ins().iadd(base, index), offset as i32);
        }
        // An index has 32 bits and an offset too, so the sum does not overflow.
        let end = self.builder.ins().iadd_imm_s(index, (offset + u64::from(bytes)) as i64);
        let size = self.bound(MEMORY_BYTES);
        let is_out = self.builder.ins().icmp(IntCC::UnsignedGreaterThan, end, size);
        self.builder.ins().trapnz(is_out, TrapCode::HEAP_OUT_OF_BOUNDS);
        let base = self.memory_base();
        let address = self.builder.ins().iadd(base, index);
        match i32::try_from(offset) {
            Ok(offset) => (address, offset),
            Err(_) => (self.builder.ins().iadd_imm_s(address, offset as i64), 0),
        }
    }

    /// The address of memory, which a window keeps for ever.
    fn memory_base(&mut self) -> Value {
        if self.module.bounds == Bounds::Checked {
            return self.bound(MEMORY_BASE);
        }
        let flags = self.flags(Region::Bounds).with_aligned().with_readonly().with_can_move();
        self.builder.ins().load(types::I64, flags, self.context, MEMORY_BASE as i32)
    }

    /// Loads a value of a type.
    pub fn load(&mut self, argument: &MemArg, kind: Type) -> bool {
        let (address, offset) = self.address(argument, kind.bytes());
        let flags = self.flags(Region::Memory);
        let value = self.builder.ins().load(kind, flags, address, offset);
        self.push(value);
        true
    }

    /// Loads an integer of fewer bytes, extended by the same instruction.
    fn load_part(&mut self, argument: &MemArg, part: Type, kind: Type, is_signed: bool) -> bool {
        let (address, offset) = self.address(argument, part.bytes());
        let flags = self.flags(Region::Memory);
        let ins = self.builder.ins();
        let value = match (part, is_signed) {
            (types::I8, false) => ins.uload8(kind, flags, address, offset),
            (types::I8, true) => ins.sload8(kind, flags, address, offset),
            (types::I16, false) => ins.uload16(kind, flags, address, offset),
            (types::I16, true) => ins.sload16(kind, flags, address, offset),
            // Those of 32 bits give 64.
            (_, false) => ins.uload32(flags, address, offset),
            (_, true) => ins.sload32(flags, address, offset),
        };
        self.push(value);
        true
    }

    /// Stores the value on top at the index below it.
    pub fn store(&mut self, argument: &MemArg) -> bool {
        let value = self.pop();
        let kind = self.builder.func.dfg.value_type(value);
        let (address, offset) = self.address(argument, kind.bytes());
        let flags = self.flags(Region::Memory);
        self.builder.ins().store(flags, value, address, offset);
        true
    }

    fn store_part(&mut self, argument: &MemArg, part: Type) -> bool {
        self.unary(|ins, value| ins.ireduce(part, value));
        self.store(argument)
    }

    /// Performs an operator on memory; returns whether it is one.
    pub fn memory(&mut self, operator: &Operator<'_>) -> bool {
        use types::{F32, F64, I8, I16, I32, I64};
        match operator {
            Operator::I32Load { memarg } => self.load(memarg, I32),
            Operator::I64Load { memarg } => self.load(memarg, I64),
            Operator::F32Load { memarg } => self.load(memarg, F32),
            Operator::F64Load { memarg } => self.load(memarg, F64),
            Operator::I32Load8S { memarg } => self.load_part(memarg, I8, I32, true),
            Operator::I32Load8U { memarg } => self.load_part(memarg, I8, I32, false),
            Operator::I32Load16S { memarg } => self.load_part(memarg, I16, I32, true),
            Operator::I32Load16U { memarg } => self.load_part(memarg, I16, I32, false),
            Operator::I64Load8S { memarg } => self.load_part(memarg, I8, I64, true),
            Operator::I64Load8U { memarg } => self.load_part(memarg, I8, I64, false),
            Operator::I64Load16S { memarg } => self.load_part(memarg, I16, I64, true),
            Operator::I64Load16U { memarg } => self.load_part(memarg, I16, I64, false),
            Operator::I64Load32S { memarg } => self.load_part(memarg, I32, I64, true),
            Operator::I64Load32U { memarg } => self.load_part(memarg, I32, I64, false),
            Operator::I32Store { memarg }
            | Operator::I64Store { memarg }
            | Operator::F32Store { memarg }
            | Operator::F64Store { memarg } => self.store(memarg),
            Operator::I32Store8 { memarg } | Operator::I64Store8 { memarg } => self.store_part(memarg, I8),
            Operator::I32Store16 { memarg } | Operator::I64Store16 { memarg } => self.store_part(memarg, I16),
            Operator::I64Store32 { memarg } => self.store_part(memarg, I32),
            _ => self.bulk(operator),
        }
    }

    fn bulk(&mut self, operator: &Operator<'_>) -> bool {
        match *operator {
            Operator::MemorySize { .. } => {
                let size = self.bound(MEMORY_BYTES);
                let pages = self.builder.ins().ushr_imm_u(size, PAGE_SHIFT);
                let pages = self.builder.ins().ireduce(types::I32, pages);
                self.push(pages);
            }
            Operator::MemoryGrow { .. } => {
                let pages = self.pop();
                let pages = self.widen(pages);
                let former = self.call_builtin(Builtin::MemoryGrow, &[pages]);
                let former = self.builder.ins().ireduce(types::I32, former);
                self.push(former);
            }
            Operator::MemoryFill { .. } => self.bulk_call(Builtin::MemoryFill, None),
            Operator::MemoryCopy { .. } => self.copy_memory(),
            Operator::MemoryInit { data_index, .. } => self.bulk_call(Builtin::MemoryInit, Some(u64::from(data_index))),
            Operator::DataDrop { data_index } => {
                let segment = self.builder.ins().iconst(types::I64, i64::from(data_index));
                self.call_builtin(Builtin::DataDrop, &[segment]);
            }
            _ => return false,
        }
        true
    }

    /// Calls a builtin with a number, and the three values on top.
    pub fn bulk_call(&mut self, builtin: Builtin, number: Option<u64>) {
        let (first, second, third) = self.pop3();
        let values = [first, second, third].map(|value| self.widen(value));
        let mut arguments = alloc::vec::Vec::with_capacity(4);
        arguments.extend(number.map(|number| self.builder.ins().iconst(types::I64, number as i64)));
        arguments.extend(values);
        self.call_builtin(builtin, &arguments);
    }
}
