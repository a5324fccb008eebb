//! Arithmetic and comparison of integer lanes.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Type, Value, types};
use cranelift_frontend::FuncInstBuilder;
use types::{I8X16, I16X8, I32X4, I64X2};
use wasmparser::Operator;

use super::super::Translator;

/// A half of a vector's lanes, made twice as wide.
#[derive(Clone, Copy)]
enum Half {
    LowSigned,
    LowUnsigned,
    HighSigned,
    HighUnsigned,
}

impl Half {
    fn widen(self, ins: FuncInstBuilder<'_, '_>, value: Value) -> Value {
        match self {
            Half::LowSigned => ins.swiden_low(value),
            Half::LowUnsigned => ins.uwiden_low(value),
            Half::HighSigned => ins.swiden_high(value),
            Half::HighUnsigned => ins.uwiden_high(value),
        }
    }
}

impl<'b> Translator<'_, 'b> {
    pub(super) fn vector_integers(&mut self, operator: &Operator<'_>) -> bool {
        self.vector_comparison(operator)
            || self.vector_arithmetic(operator)
            || self.vector_extrema(operator)
            || self.vector_shifts(operator)
            || self.vector_widening(operator)
            || self.vector_tests(operator)
    }

    fn compare_lanes(&mut self, shape: Type, condition: IntCC) -> bool {
        self.zip(shape, |ins, left, right| ins.icmp(condition, left, right))
    }

    fn vector_comparison(&mut self, operator: &Operator<'_>) -> bool {
        use IntCC::{
            Equal, NotEqual, SignedGreaterThan, SignedGreaterThanOrEqual, SignedLessThan, SignedLessThanOrEqual,
            UnsignedGreaterThan, UnsignedGreaterThanOrEqual, UnsignedLessThan, UnsignedLessThanOrEqual,
        };
        match operator {
            Operator::I8x16Eq => self.compare_lanes(I8X16, Equal),
            Operator::I8x16Ne => self.compare_lanes(I8X16, NotEqual),
            Operator::I8x16LtS => self.compare_lanes(I8X16, SignedLessThan),
            Operator::I8x16LtU => self.compare_lanes(I8X16, UnsignedLessThan),
            Operator::I8x16GtS => self.compare_lanes(I8X16, SignedGreaterThan),
            Operator::I8x16GtU => self.compare_lanes(I8X16, UnsignedGreaterThan),
            Operator::I8x16LeS => self.compare_lanes(I8X16, SignedLessThanOrEqual),
            Operator::I8x16LeU => self.compare_lanes(I8X16, UnsignedLessThanOrEqual),
            Operator::I8x16GeS => self.compare_lanes(I8X16, SignedGreaterThanOrEqual),
            Operator::I8x16GeU => self.compare_lanes(I8X16, UnsignedGreaterThanOrEqual),
            Operator::I16x8Eq => self.compare_lanes(I16X8, Equal),
            Operator::I16x8Ne => self.compare_lanes(I16X8, NotEqual),
            Operator::I16x8LtS => self.compare_lanes(I16X8, SignedLessThan),
            Operator::I16x8LtU => self.compare_lanes(I16X8, UnsignedLessThan),
            Operator::I16x8GtS => self.compare_lanes(I16X8, SignedGreaterThan),
            Operator::I16x8GtU => self.compare_lanes(I16X8, UnsignedGreaterThan),
            Operator::I16x8LeS => self.compare_lanes(I16X8, SignedLessThanOrEqual),
            Operator::I16x8LeU => self.compare_lanes(I16X8, UnsignedLessThanOrEqual),
            Operator::I16x8GeS => self.compare_lanes(I16X8, SignedGreaterThanOrEqual),
            Operator::I16x8GeU => self.compare_lanes(I16X8, UnsignedGreaterThanOrEqual),
            Operator::I32x4Eq => self.compare_lanes(I32X4, Equal),
            Operator::I32x4Ne => self.compare_lanes(I32X4, NotEqual),
            Operator::I32x4LtS => self.compare_lanes(I32X4, SignedLessThan),
            Operator::I32x4LtU => self.compare_lanes(I32X4, UnsignedLessThan),
            Operator::I32x4GtS => self.compare_lanes(I32X4, SignedGreaterThan),
            Operator::I32x4GtU => self.compare_lanes(I32X4, UnsignedGreaterThan),
            Operator::I32x4LeS => self.compare_lanes(I32X4, SignedLessThanOrEqual),
            Operator::I32x4LeU => self.compare_lanes(I32X4, UnsignedLessThanOrEqual),
            Operator::I32x4GeS => self.compare_lanes(I32X4, SignedGreaterThanOrEqual),
            Operator::I32x4GeU => self.compare_lanes(I32X4, UnsignedGreaterThanOrEqual),
            Operator::I64x2Eq => self.compare_lanes(I64X2, Equal),
            Operator::I64x2Ne => self.compare_lanes(I64X2, NotEqual),
            Operator::I64x2LtS => self.compare_lanes(I64X2, SignedLessThan),
            Operator::I64x2GtS => self.compare_lanes(I64X2, SignedGreaterThan),
            Operator::I64x2LeS => self.compare_lanes(I64X2, SignedLessThanOrEqual),
            Operator::I64x2GeS => self.compare_lanes(I64X2, SignedGreaterThanOrEqual),
            _ => false,
        }
    }

    fn vector_arithmetic(&mut self, operator: &Operator<'_>) -> bool {
        match operator {
            Operator::I8x16Abs => self.map(I8X16, |ins, value| ins.iabs(value)),
            Operator::I8x16Neg => self.map(I8X16, |ins, value| ins.ineg(value)),
            Operator::I8x16Add => self.zip(I8X16, |ins, left, right| ins.iadd(left, right)),
            Operator::I8x16Sub => self.zip(I8X16, |ins, left, right| ins.isub(left, right)),
            Operator::I8x16AddSatS => self.zip(I8X16, |ins, left, right| ins.sadd_sat(left, right)),
            Operator::I8x16AddSatU => self.zip(I8X16, |ins, left, right| ins.uadd_sat(left, right)),
            Operator::I8x16SubSatS => self.zip(I8X16, |ins, left, right| ins.ssub_sat(left, right)),
            Operator::I8x16SubSatU => self.zip(I8X16, |ins, left, right| ins.usub_sat(left, right)),
            Operator::I8x16AvgrU => self.zip(I8X16, |ins, left, right| ins.avg_round(left, right)),
            Operator::I16x8Abs => self.map(I16X8, |ins, value| ins.iabs(value)),
            Operator::I16x8Neg => self.map(I16X8, |ins, value| ins.ineg(value)),
            Operator::I16x8Add => self.zip(I16X8, |ins, left, right| ins.iadd(left, right)),
            Operator::I16x8Sub => self.zip(I16X8, |ins, left, right| ins.isub(left, right)),
            Operator::I16x8Mul => self.zip(I16X8, |ins, left, right| ins.imul(left, right)),
            Operator::I16x8AddSatS => self.zip(I16X8, |ins, left, right| ins.sadd_sat(left, right)),
            Operator::I16x8AddSatU => self.zip(I16X8, |ins, left, right| ins.uadd_sat(left, right)),
            Operator::I16x8SubSatS => self.zip(I16X8, |ins, left, right| ins.ssub_sat(left, right)),
            Operator::I16x8SubSatU => self.zip(I16X8, |ins, left, right| ins.usub_sat(left, right)),
            Operator::I16x8AvgrU => self.zip(I16X8, |ins, left, right| ins.avg_round(left, right)),
            Operator::I32x4Abs => self.map(I32X4, |ins, value| ins.iabs(value)),
            Operator::I32x4Neg => self.map(I32X4, |ins, value| ins.ineg(value)),
            Operator::I32x4Add => self.zip(I32X4, |ins, left, right| ins.iadd(left, right)),
            Operator::I32x4Sub => self.zip(I32X4, |ins, left, right| ins.isub(left, right)),
            Operator::I32x4Mul => self.zip(I32X4, |ins, left, right| ins.imul(left, right)),
            Operator::I64x2Abs => self.map(I64X2, |ins, value| ins.iabs(value)),
            Operator::I64x2Neg => self.map(I64X2, |ins, value| ins.ineg(value)),
            Operator::I64x2Add => self.zip(I64X2, |ins, left, right| ins.iadd(left, right)),
            Operator::I64x2Sub => self.zip(I64X2, |ins, left, right| ins.isub(left, right)),
            Operator::I64x2Mul => self.zip(I64X2, |ins, left, right| ins.imul(left, right)),
            Operator::I8x16Popcnt => self.map(I8X16, |ins, value| ins.popcnt(value)),
            Operator::I16x8Q15MulrSatS => self.zip(I16X8, |ins, left, right| ins.sqmul_round_sat(left, right)),
            Operator::I32x4DotI16x8S => self.dot(),
            _ => false,
        }
    }

    fn vector_extrema(&mut self, operator: &Operator<'_>) -> bool {
        match operator {
            Operator::I8x16MinS => self.zip(I8X16, |ins, left, right| ins.smin(left, right)),
            Operator::I8x16MinU => self.zip(I8X16, |ins, left, right| ins.umin(left, right)),
            Operator::I8x16MaxS => self.zip(I8X16, |ins, left, right| ins.smax(left, right)),
            Operator::I8x16MaxU => self.zip(I8X16, |ins, left, right| ins.umax(left, right)),
            Operator::I16x8MinS => self.zip(I16X8, |ins, left, right| ins.smin(left, right)),
            Operator::I16x8MinU => self.zip(I16X8, |ins, left, right| ins.umin(left, right)),
            Operator::I16x8MaxS => self.zip(I16X8, |ins, left, right| ins.smax(left, right)),
            Operator::I16x8MaxU => self.zip(I16X8, |ins, left, right| ins.umax(left, right)),
            Operator::I32x4MinS => self.zip(I32X4, |ins, left, right| ins.smin(left, right)),
            Operator::I32x4MinU => self.zip(I32X4, |ins, left, right| ins.umin(left, right)),
            Operator::I32x4MaxS => self.zip(I32X4, |ins, left, right| ins.smax(left, right)),
            Operator::I32x4MaxU => self.zip(I32X4, |ins, left, right| ins.umax(left, right)),
            _ => false,
        }
    }

    fn vector_shifts(&mut self, operator: &Operator<'_>) -> bool {
        match operator {
            Operator::I8x16Shl => self.shift(I8X16, |ins, value, by| ins.ishl(value, by)),
            Operator::I8x16ShrS => self.shift(I8X16, |ins, value, by| ins.sshr(value, by)),
            Operator::I8x16ShrU => self.shift(I8X16, |ins, value, by| ins.ushr(value, by)),
            Operator::I16x8Shl => self.shift(I16X8, |ins, value, by| ins.ishl(value, by)),
            Operator::I16x8ShrS => self.shift(I16X8, |ins, value, by| ins.sshr(value, by)),
            Operator::I16x8ShrU => self.shift(I16X8, |ins, value, by| ins.ushr(value, by)),
            Operator::I32x4Shl => self.shift(I32X4, |ins, value, by| ins.ishl(value, by)),
            Operator::I32x4ShrS => self.shift(I32X4, |ins, value, by| ins.sshr(value, by)),
            Operator::I32x4ShrU => self.shift(I32X4, |ins, value, by| ins.ushr(value, by)),
            Operator::I64x2Shl => self.shift(I64X2, |ins, value, by| ins.ishl(value, by)),
            Operator::I64x2ShrS => self.shift(I64X2, |ins, value, by| ins.sshr(value, by)),
            Operator::I64x2ShrU => self.shift(I64X2, |ins, value, by| ins.ushr(value, by)),
            _ => false,
        }
    }

    /// Shifts all lanes by the number on top, modulo their width.
    fn shift(&mut self, shape: Type, operation: impl FnOnce(FuncInstBuilder<'_, 'b>, Value, Value) -> Value) -> bool {
        let by = self.pop();
        let value = self.pop_as(shape);
        let result = operation(self.builder.ins(), value, by);
        self.push_vector(result)
    }

    fn vector_widening(&mut self, operator: &Operator<'_>) -> bool {
        match operator {
            Operator::I8x16NarrowI16x8S => self.zip(I16X8, |ins, low, high| ins.snarrow(low, high)),
            Operator::I8x16NarrowI16x8U => self.zip(I16X8, |ins, low, high| ins.unarrow(low, high)),
            Operator::I16x8NarrowI32x4S => self.zip(I32X4, |ins, low, high| ins.snarrow(low, high)),
            Operator::I16x8NarrowI32x4U => self.zip(I32X4, |ins, low, high| ins.unarrow(low, high)),
            Operator::I16x8ExtendLowI8x16S => self.map(I8X16, |ins, value| Half::LowSigned.widen(ins, value)),
            Operator::I16x8ExtMulLowI8x16S => self.multiply(I8X16, Half::LowSigned),
            Operator::I16x8ExtendHighI8x16S => self.map(I8X16, |ins, value| Half::HighSigned.widen(ins, value)),
            Operator::I16x8ExtMulHighI8x16S => self.multiply(I8X16, Half::HighSigned),
            Operator::I16x8ExtendLowI8x16U => self.map(I8X16, |ins, value| Half::LowUnsigned.widen(ins, value)),
            Operator::I16x8ExtMulLowI8x16U => self.multiply(I8X16, Half::LowUnsigned),
            Operator::I16x8ExtendHighI8x16U => self.map(I8X16, |ins, value| Half::HighUnsigned.widen(ins, value)),
            Operator::I16x8ExtMulHighI8x16U => self.multiply(I8X16, Half::HighUnsigned),
            Operator::I32x4ExtendLowI16x8S => self.map(I16X8, |ins, value| Half::LowSigned.widen(ins, value)),
            Operator::I32x4ExtMulLowI16x8S => self.multiply(I16X8, Half::LowSigned),
            Operator::I32x4ExtendHighI16x8S => self.map(I16X8, |ins, value| Half::HighSigned.widen(ins, value)),
            Operator::I32x4ExtMulHighI16x8S => self.multiply(I16X8, Half::HighSigned),
            Operator::I32x4ExtendLowI16x8U => self.map(I16X8, |ins, value| Half::LowUnsigned.widen(ins, value)),
            Operator::I32x4ExtMulLowI16x8U => self.multiply(I16X8, Half::LowUnsigned),
            Operator::I32x4ExtendHighI16x8U => self.map(I16X8, |ins, value| Half::HighUnsigned.widen(ins, value)),
            Operator::I32x4ExtMulHighI16x8U => self.multiply(I16X8, Half::HighUnsigned),
            Operator::I64x2ExtendLowI32x4S => self.map(I32X4, |ins, value| Half::LowSigned.widen(ins, value)),
            Operator::I64x2ExtMulLowI32x4S => self.multiply(I32X4, Half::LowSigned),
            Operator::I64x2ExtendHighI32x4S => self.map(I32X4, |ins, value| Half::HighSigned.widen(ins, value)),
            Operator::I64x2ExtMulHighI32x4S => self.multiply(I32X4, Half::HighSigned),
            Operator::I64x2ExtendLowI32x4U => self.map(I32X4, |ins, value| Half::LowUnsigned.widen(ins, value)),
            Operator::I64x2ExtMulLowI32x4U => self.multiply(I32X4, Half::LowUnsigned),
            Operator::I64x2ExtendHighI32x4U => self.map(I32X4, |ins, value| Half::HighUnsigned.widen(ins, value)),
            Operator::I64x2ExtMulHighI32x4U => self.multiply(I32X4, Half::HighUnsigned),
            Operator::I16x8ExtAddPairwiseI8x16S => self.add_pairs(I8X16, Half::LowSigned, Half::HighSigned),
            Operator::I16x8ExtAddPairwiseI8x16U => self.add_pairs(I8X16, Half::LowUnsigned, Half::HighUnsigned),
            Operator::I32x4ExtAddPairwiseI16x8S => self.add_pairs(I16X8, Half::LowSigned, Half::HighSigned),
            Operator::I32x4ExtAddPairwiseI16x8U => self.add_pairs(I16X8, Half::LowUnsigned, Half::HighUnsigned),
            _ => false,
        }
    }

    /// Widens half of the lanes of two vectors, and multiplies them.
    fn multiply(&mut self, shape: Type, half: Half) -> bool {
        let (right, left) = (self.pop_as(shape), self.pop_as(shape));
        let left = half.widen(self.builder.ins(), left);
        let right = half.widen(self.builder.ins(), right);
        let result = self.builder.ins().imul(left, right);
        self.push_vector(result)
    }

    /// Widens the lanes of a vector, and adds each two that are neighbours.
    fn add_pairs(&mut self, shape: Type, low: Half, high: Half) -> bool {
        let value = self.pop_as(shape);
        let low = low.widen(self.builder.ins(), value);
        let high = high.widen(self.builder.ins(), value);
        let result = self.builder.ins().iadd_pairwise(low, high);
        self.push_vector(result)
    }

    /// Multiplies lanes of 16 bits to 32, and adds each two that are neighbours.
    fn dot(&mut self) -> bool {
        let (right, left) = (self.pop_as(I16X8), self.pop_as(I16X8));
        let [low, high] = [Half::LowSigned, Half::HighSigned].map(|half| {
            let left = half.widen(self.builder.ins(), left);
            let right = half.widen(self.builder.ins(), right);
            self.builder.ins().imul(left, right)
        });
        let result = self.builder.ins().iadd_pairwise(low, high);
        self.push_vector(result)
    }

    /// Operators from a vector to a number.
    fn vector_tests(&mut self, operator: &Operator<'_>) -> bool {
        match operator {
            Operator::I8x16AllTrue => self.all_true(I8X16),
            Operator::I8x16Bitmask => self.bitmask(I8X16),
            Operator::I16x8AllTrue => self.all_true(I16X8),
            Operator::I16x8Bitmask => self.bitmask(I16X8),
            Operator::I32x4AllTrue => self.all_true(I32X4),
            Operator::I32x4Bitmask => self.bitmask(I32X4),
            Operator::I64x2AllTrue => self.all_true(I64X2),
            Operator::I64x2Bitmask => self.bitmask(I64X2),
            _ => false,
        }
    }

    fn all_true(&mut self, shape: Type) -> bool {
        let value = self.pop_as(shape);
        let result = self.builder.ins().vall_true(value);
        self.push(result);
        self.unary(|ins, value| ins.uextend(types::I32, value))
    }

    fn bitmask(&mut self, shape: Type) -> bool {
        let value = self.pop_as(shape);
        let result = self.builder.ins().vhigh_bits(types::I32, value);
        self.push(result);
        true
    }
}
