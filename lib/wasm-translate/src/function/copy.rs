//! `memory.copy` of a few bytes, without a call.
//!
//! Programs copy short pieces in loops, where a call of the runtime takes longer than the copy. Both ends of a piece are loaded
//! before either is stored, so that pieces may overlap. An end that lies outside of memory is met by a guard: by a load
//! before anything is written, or by a store after a part was, which nobody sees, since a trap ends the process.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, Type, Value, types};
use wasm_record::layout::{Bounds, Builtin};

use super::{Region, Translator};

/// Sizes of loads, descending, each with which pieces are copied that are shorter than two of them.
const STEPS: [(Type, i64); 5] = [(types::I8X16, 16), (types::I64, 8), (types::I32, 4), (types::I16, 2), (types::I8, 1)];
/// Maximum bytes copied without a call. Twice the longest load would be one too many: the sum of a place and the distance
/// between two loads is taken modulo 2^32, and wraps only where the first load ends outside of the largest memory.
const MAX_BYTES: i64 = 2 * STEPS[0].1 - 1;

impl Translator<'_, '_> {
    /// Copies memory: to, from and length are on top.
    pub fn copy_memory(&mut self) {
        // Elsewhere it is not worth its code; and checked code would check each access.
        if self.loops == 0 || self.module.bounds == Bounds::Checked {
            return self.bulk_call(Builtin::MemoryCopy, None);
        }
        let (to, from, length) = self.pop3();
        let [short, long, done] = [(); 3].map(|()| self.builder.create_block());
        // That of no bytes is left to the runtime too, which says where it must not be.
        let less = self.builder.ins().iadd_imm_s(length, -1);
        let is_short = self.builder.ins().icmp_imm_u(IntCC::UnsignedLessThan, less, MAX_BYTES);
        self.builder.ins().brif(is_short, short, &[], long, &[]);
        self.enter(short);
        self.copy_short(to, from, length, done);
        self.builder.set_cold_block(long);
        self.enter(long);
        self.stack.extend([to, from, length]);
        self.bulk_call(Builtin::MemoryCopy, None);
        self.builder.ins().jump(done, &[]);
        self.enter(done);
    }

    fn copy_short(&mut self, to: Value, from: Value, length: Value, done: Block) {
        for (kind, bytes) in STEPS {
            if bytes > 1 {
                let [step, shorter] = [(); 2].map(|()| self.builder.create_block());
                let fits = self.builder.ins().icmp_imm_u(IntCC::UnsignedGreaterThanOrEqual, length, bytes);
                self.builder.ins().brif(fits, step, &[], shorter, &[]);
                self.enter(step);
                self.copy_ends(to, from, length, (kind, bytes));
                self.builder.ins().jump(done, &[]);
                self.enter(shorter);
            } else {
                let value = self.load_at(from, kind);
                self.store_at(to, value);
                self.builder.ins().jump(done, &[]);
            }
        }
    }

    /// Copies the first and the last bytes of a piece, which together are all of it.
    fn copy_ends(&mut self, to: Value, from: Value, length: Value, (kind, bytes): (Type, i64)) {
        let distance = self.builder.ins().iadd_imm_s(length, -bytes);
        let from_last = self.builder.ins().iadd(from, distance);
        let (first, last) = (self.load_at(from, kind), self.load_at(from_last, kind));
        let to_last = self.builder.ins().iadd(to, distance);
        self.store_at(to, first);
        self.store_at(to_last, last);
    }

    fn load_at(&mut self, index: Value, kind: Type) -> Value {
        let (address, offset) = self.address_at(index, 0, kind.bytes());
        let flags = self.flags(Region::Memory);
        self.builder.ins().load(kind, flags, address, offset)
    }

    fn store_at(&mut self, index: Value, value: Value) {
        let kind = self.builder.func.dfg.value_type(value);
        let (address, offset) = self.address_at(index, 0, kind.bytes());
        let flags = self.flags(Region::Memory);
        self.builder.ins().store(flags, value, address, offset);
    }
}
