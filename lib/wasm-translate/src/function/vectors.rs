//! Vectors of 128 bits (WebAssembly 2.0, sections 4.3.3 and 4.3.4).
//!
//! A vector is `i8x16` between operators; an operator takes it in the shape that it works on. Modules beneath:
//! [`lanes`] (constants, lanes, shuffles), [`loads`] (memory), [`integers`], [`floats`] (floats and conversions).

mod floats;
mod integers;
mod lanes;
mod loads;

use cranelift_codegen::ir::{Endianness, InstBuilder, MemFlagsData, Type, Value, types};
use cranelift_frontend::FuncInstBuilder;
use wasmparser::Operator;

use super::Translator;

impl<'b> Translator<'_, 'b> {
    /// Performs an operator on vectors; returns whether it is one.
    pub fn vector(&mut self, operator: &Operator<'_>) -> bool {
        self.vector_memory(operator)
            || self.vector_lanes(operator)
            || self.vector_bits(operator)
            || self.vector_integers(operator)
            || self.vector_floats(operator)
    }

    /// Takes the vector on top in a shape.
    fn pop_as(&mut self, shape: Type) -> Value {
        let value = self.pop();
        self.reshape(shape, value)
    }

    /// Pushes a vector of any shape.
    fn push_vector(&mut self, value: Value) -> bool {
        let value = self.reshape(types::I8X16, value);
        self.push(value);
        true
    }

    /// The same bits in another shape; the first lane is at the lowest address, as in memory.
    fn reshape(&mut self, shape: Type, value: Value) -> Value {
        if self.builder.func.dfg.value_type(value) == shape {
            return value;
        }
        let flags = MemFlagsData::new().with_endianness(Endianness::Little);
        self.builder.ins().bitcast(shape, flags, value)
    }

    /// Replaces the vector on top.
    fn map(&mut self, shape: Type, operation: impl FnOnce(FuncInstBuilder<'_, 'b>, Value) -> Value) -> bool {
        let value = self.pop_as(shape);
        let result = operation(self.builder.ins(), value);
        self.push_vector(result)
    }

    /// Replaces the two vectors on top.
    fn zip(&mut self, shape: Type, operation: impl FnOnce(FuncInstBuilder<'_, 'b>, Value, Value) -> Value) -> bool {
        let right = self.pop_as(shape);
        let left = self.pop_as(shape);
        let result = operation(self.builder.ins(), left, right);
        self.push_vector(result)
    }

    /// Operators on the bits of a vector, whatever its shape.
    fn vector_bits(&mut self, operator: &Operator<'_>) -> bool {
        match operator {
            Operator::V128Not => self.unary(|ins, value| ins.bnot(value)),
            Operator::V128And => self.binary(|ins, left, right| ins.band(left, right)),
            Operator::V128AndNot => self.binary(|ins, left, right| ins.band_not(left, right)),
            Operator::V128Or => self.binary(|ins, left, right| ins.bor(left, right)),
            Operator::V128Xor => self.binary(|ins, left, right| ins.bxor(left, right)),
            Operator::V128Bitselect => {
                let (first, second, mask) = self.pop3();
                let result = self.builder.ins().bitselect(mask, first, second);
                self.push_vector(result)
            }
            Operator::V128AnyTrue => {
                self.unary(|ins, value| ins.vany_true(value));
                self.unary(|ins, value| ins.uextend(types::I32, value))
            }
            _ => false,
        }
    }
}
