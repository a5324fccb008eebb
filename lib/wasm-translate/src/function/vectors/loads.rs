//! Loads and stores of vectors and their lanes.

use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Type, Value, types};
use cranelift_frontend::FuncInstBuilder;
use wasmparser::{MemArg, Operator};

use super::super::{Region, Translator};

impl<'b> Translator<'_, 'b> {
    pub(super) fn vector_memory(&mut self, operator: &Operator<'_>) -> bool {
        use types::{I8X16, I16X8, I32X4, I64X2};
        match *operator {
            Operator::V128Load { ref memarg } => self.load(memarg, I8X16),
            Operator::V128Store { ref memarg } => self.store(memarg),
            Operator::V128Load8x8S { ref memarg } => self.load_half(memarg, |ins, m, a, o| ins.sload8x8(m, a, o)),
            Operator::V128Load8x8U { ref memarg } => self.load_half(memarg, |ins, m, a, o| ins.uload8x8(m, a, o)),
            Operator::V128Load16x4S { ref memarg } => self.load_half(memarg, |ins, m, a, o| ins.sload16x4(m, a, o)),
            Operator::V128Load16x4U { ref memarg } => self.load_half(memarg, |ins, m, a, o| ins.uload16x4(m, a, o)),
            Operator::V128Load32x2S { ref memarg } => self.load_half(memarg, |ins, m, a, o| ins.sload32x2(m, a, o)),
            Operator::V128Load32x2U { ref memarg } => self.load_half(memarg, |ins, m, a, o| ins.uload32x2(m, a, o)),
            Operator::V128Load8Splat { ref memarg } => self.load_splat(memarg, I8X16),
            Operator::V128Load16Splat { ref memarg } => self.load_splat(memarg, I16X8),
            Operator::V128Load32Splat { ref memarg } => self.load_splat(memarg, I32X4),
            Operator::V128Load64Splat { ref memarg } => self.load_splat(memarg, I64X2),
            Operator::V128Load32Zero { ref memarg } => self.load_first(memarg, I32X4),
            Operator::V128Load64Zero { ref memarg } => self.load_first(memarg, I64X2),
            Operator::V128Load8Lane { ref memarg, lane } => self.load_lane(memarg, I8X16, lane),
            Operator::V128Load16Lane { ref memarg, lane } => self.load_lane(memarg, I16X8, lane),
            Operator::V128Load32Lane { ref memarg, lane } => self.load_lane(memarg, I32X4, lane),
            Operator::V128Load64Lane { ref memarg, lane } => self.load_lane(memarg, I64X2, lane),
            Operator::V128Store8Lane { ref memarg, lane } => self.store_lane(memarg, I8X16, lane),
            Operator::V128Store16Lane { ref memarg, lane } => self.store_lane(memarg, I16X8, lane),
            Operator::V128Store32Lane { ref memarg, lane } => self.store_lane(memarg, I32X4, lane),
            Operator::V128Store64Lane { ref memarg, lane } => self.store_lane(memarg, I64X2, lane),
            _ => false,
        }
    }

    /// Loads 8 bytes whose lanes become twice as wide.
    fn load_half(
        &mut self,
        argument: &MemArg,
        load: impl FnOnce(FuncInstBuilder<'_, 'b>, MemFlagsData, Value, i32) -> Value,
    ) -> bool {
        let (address, offset) = self.address(argument, 8);
        let flags = self.flags(Region::Memory);
        let value = load(self.builder.ins(), flags, address, offset);
        self.push_vector(value)
    }

    /// Loads a lane into all lanes.
    fn load_splat(&mut self, argument: &MemArg, shape: Type) -> bool {
        self.load(argument, shape.lane_type());
        let lane = self.pop();
        let value = self.builder.ins().splat(shape, lane);
        self.push_vector(value)
    }

    /// Loads the first lane; the others are zero.
    fn load_first(&mut self, argument: &MemArg, shape: Type) -> bool {
        self.load(argument, shape.lane_type());
        let lane = self.pop();
        let value = self.builder.ins().scalar_to_vector(shape, lane);
        self.push_vector(value)
    }

    /// Replaces a lane of the vector on top by one that is loaded from the index below it.
    fn load_lane(&mut self, argument: &MemArg, shape: Type, lane: u8) -> bool {
        let vector = self.pop_as(shape);
        self.load(argument, shape.lane_type());
        let value = self.pop();
        let result = self.builder.ins().insertlane(vector, value, lane);
        self.push_vector(result)
    }

    fn store_lane(&mut self, argument: &MemArg, shape: Type, lane: u8) -> bool {
        let vector = self.pop_as(shape);
        let value = self.builder.ins().extractlane(vector, lane);
        self.push(value);
        self.store(argument)
    }
}
