//! Constants, and operators that move lanes.

use cranelift_codegen::ir::{ConstantData, InstBuilder, Type, Value, types};
use wasmparser::Operator;

use super::super::Translator;

impl Translator<'_, '_> {
    /// A vector of these bytes.
    pub fn vector_constant(&mut self, bytes: [u8; 16]) -> Value {
        let constant = self.builder.func.dfg.constants.insert(ConstantData::from(bytes.as_slice()));
        self.builder.ins().vconst(types::I8X16, constant)
    }

    pub(super) fn vector_lanes(&mut self, operator: &Operator<'_>) -> bool {
        use types::{F32X4, F64X2, I8X16, I16X8, I32X4, I64X2};
        match *operator {
            Operator::V128Const { value } => {
                let value = self.vector_constant(*value.bytes());
                self.push(value);
                true
            }
            Operator::I8x16Shuffle { lanes } => self.shuffle(lanes),
            Operator::I8x16Swizzle => self.binary(|ins, bytes, places| ins.swizzle(bytes, places)),
            Operator::I8x16Splat => self.splat(I8X16),
            Operator::I16x8Splat => self.splat(I16X8),
            Operator::I32x4Splat => self.splat(I32X4),
            Operator::I64x2Splat => self.splat(I64X2),
            Operator::F32x4Splat => self.splat(F32X4),
            Operator::F64x2Splat => self.splat(F64X2),
            Operator::I8x16ExtractLaneS { lane } => self.extract(I8X16, lane) && self.widen_lane(true),
            Operator::I8x16ExtractLaneU { lane } => self.extract(I8X16, lane) && self.widen_lane(false),
            Operator::I16x8ExtractLaneS { lane } => self.extract(I16X8, lane) && self.widen_lane(true),
            Operator::I16x8ExtractLaneU { lane } => self.extract(I16X8, lane) && self.widen_lane(false),
            Operator::I32x4ExtractLane { lane } => self.extract(I32X4, lane),
            Operator::I64x2ExtractLane { lane } => self.extract(I64X2, lane),
            Operator::F32x4ExtractLane { lane } => self.extract(F32X4, lane),
            Operator::F64x2ExtractLane { lane } => self.extract(F64X2, lane),
            Operator::I8x16ReplaceLane { lane } => self.replace(I8X16, lane),
            Operator::I16x8ReplaceLane { lane } => self.replace(I16X8, lane),
            Operator::I32x4ReplaceLane { lane } => self.replace(I32X4, lane),
            Operator::I64x2ReplaceLane { lane } => self.replace(I64X2, lane),
            Operator::F32x4ReplaceLane { lane } => self.replace(F32X4, lane),
            Operator::F64x2ReplaceLane { lane } => self.replace(F64X2, lane),
            _ => false,
        }
    }

    fn shuffle(&mut self, lanes: [u8; 16]) -> bool {
        let mask = self.builder.func.dfg.immediates.push(ConstantData::from(lanes.as_slice()));
        self.binary(|ins, left, right| ins.shuffle(left, right, mask))
    }

    /// Takes the number on top as a lane: lanes of 8 and 16 bits are the low bits of an `i32`.
    fn pop_lane(&mut self, lane: Type) -> Value {
        let value = self.pop();
        if lane.bits() < 32 { self.builder.ins().ireduce(lane, value) } else { value }
    }

    fn splat(&mut self, shape: Type) -> bool {
        let lane = self.pop_lane(shape.lane_type());
        let result = self.builder.ins().splat(shape, lane);
        self.push_vector(result)
    }

    fn extract(&mut self, shape: Type, lane: u8) -> bool {
        let vector = self.pop_as(shape);
        let result = self.builder.ins().extractlane(vector, lane);
        self.push(result);
        true
    }

    fn widen_lane(&mut self, is_signed: bool) -> bool {
        self.unary(|ins, lane| if is_signed { ins.sextend(types::I32, lane) } else { ins.uextend(types::I32, lane) })
    }

    fn replace(&mut self, shape: Type, lane: u8) -> bool {
        let value = self.pop_lane(shape.lane_type());
        let vector = self.pop_as(shape);
        let result = self.builder.ins().insertlane(vector, value, lane);
        self.push_vector(result)
    }
}
