//! Vectors of 128 bits (WebAssembly 2.0, section 4.3.4).

use cranelift_codegen::ir::{ConstantData, InstBuilder, Value, types};
use wasmparser::Operator;

use super::Translator;

impl Translator<'_, '_> {
    /// A vector of these bytes.
    pub fn vector_constant(&mut self, bytes: [u8; 16]) -> Value {
        let constant = self.builder.func.dfg.constants.insert(ConstantData::from(bytes.as_slice()));
        self.builder.ins().vconst(types::I8X16, constant)
    }

    /// Performs an operator on vectors; returns whether it is one.
    pub fn vector(&mut self, operator: &Operator<'_>) -> bool {
        match *operator {
            Operator::V128Load { ref memarg } => self.load(memarg, types::I8X16),
            Operator::V128Store { ref memarg } => self.store(memarg),
            Operator::V128Const { value } => {
                let value = self.vector_constant(*value.bytes());
                self.push(value);
                true
            }
            _ => false,
        }
    }
}
