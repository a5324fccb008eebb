//! Arithmetic and comparison of float lanes, and conversions.

use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::{ConstantData, InstBuilder, Type, Value, types};
use cranelift_frontend::FuncInstBuilder;
use types::{F32X4, F64X2, I32X4, I64X2};
use wasmparser::Operator;

use super::super::Translator;

impl<'b> Translator<'_, 'b> {
    pub(super) fn vector_floats(&mut self, operator: &Operator<'_>) -> bool {
        self.float_lanes(operator) || self.float_comparison(operator) || self.lane_conversion(operator)
    }

    fn compare_float_lanes(&mut self, shape: Type, condition: FloatCC) -> bool {
        self.zip(shape, |ins, left, right| ins.fcmp(condition, left, right))
    }

    fn float_comparison(&mut self, operator: &Operator<'_>) -> bool {
        use FloatCC::{Equal, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual, NotEqual};
        match operator {
            Operator::F32x4Eq => self.compare_float_lanes(F32X4, Equal),
            Operator::F32x4Ne => self.compare_float_lanes(F32X4, NotEqual),
            Operator::F32x4Lt => self.compare_float_lanes(F32X4, LessThan),
            Operator::F32x4Gt => self.compare_float_lanes(F32X4, GreaterThan),
            Operator::F32x4Le => self.compare_float_lanes(F32X4, LessThanOrEqual),
            Operator::F32x4Ge => self.compare_float_lanes(F32X4, GreaterThanOrEqual),
            Operator::F64x2Eq => self.compare_float_lanes(F64X2, Equal),
            Operator::F64x2Ne => self.compare_float_lanes(F64X2, NotEqual),
            Operator::F64x2Lt => self.compare_float_lanes(F64X2, LessThan),
            Operator::F64x2Gt => self.compare_float_lanes(F64X2, GreaterThan),
            Operator::F64x2Le => self.compare_float_lanes(F64X2, LessThanOrEqual),
            Operator::F64x2Ge => self.compare_float_lanes(F64X2, GreaterThanOrEqual),
            _ => false,
        }
    }

    fn float_lanes(&mut self, operator: &Operator<'_>) -> bool {
        match operator {
            Operator::F32x4Ceil => self.map(F32X4, |ins, value| ins.ceil(value)),
            Operator::F32x4Floor => self.map(F32X4, |ins, value| ins.floor(value)),
            Operator::F32x4Trunc => self.map(F32X4, |ins, value| ins.trunc(value)),
            Operator::F32x4Nearest => self.map(F32X4, |ins, value| ins.nearest(value)),
            Operator::F32x4Abs => self.map(F32X4, |ins, value| ins.fabs(value)),
            Operator::F32x4Neg => self.map(F32X4, |ins, value| ins.fneg(value)),
            Operator::F32x4Sqrt => self.map(F32X4, |ins, value| ins.sqrt(value)),
            Operator::F32x4Add => self.zip(F32X4, |ins, left, right| ins.fadd(left, right)),
            Operator::F32x4Sub => self.zip(F32X4, |ins, left, right| ins.fsub(left, right)),
            Operator::F32x4Mul => self.zip(F32X4, |ins, left, right| ins.fmul(left, right)),
            Operator::F32x4Div => self.zip(F32X4, |ins, left, right| ins.fdiv(left, right)),
            Operator::F32x4Min => self.zip(F32X4, |ins, left, right| ins.fmin(left, right)),
            Operator::F32x4Max => self.zip(F32X4, |ins, left, right| ins.fmax(left, right)),
            Operator::F32x4PMin => self.pseudo(F32X4, |left, right| (right, left)),
            Operator::F32x4PMax => self.pseudo(F32X4, |left, right| (left, right)),
            Operator::F64x2Ceil => self.map(F64X2, |ins, value| ins.ceil(value)),
            Operator::F64x2Floor => self.map(F64X2, |ins, value| ins.floor(value)),
            Operator::F64x2Trunc => self.map(F64X2, |ins, value| ins.trunc(value)),
            Operator::F64x2Nearest => self.map(F64X2, |ins, value| ins.nearest(value)),
            Operator::F64x2Abs => self.map(F64X2, |ins, value| ins.fabs(value)),
            Operator::F64x2Neg => self.map(F64X2, |ins, value| ins.fneg(value)),
            Operator::F64x2Sqrt => self.map(F64X2, |ins, value| ins.sqrt(value)),
            Operator::F64x2Add => self.zip(F64X2, |ins, left, right| ins.fadd(left, right)),
            Operator::F64x2Sub => self.zip(F64X2, |ins, left, right| ins.fsub(left, right)),
            Operator::F64x2Mul => self.zip(F64X2, |ins, left, right| ins.fmul(left, right)),
            Operator::F64x2Div => self.zip(F64X2, |ins, left, right| ins.fdiv(left, right)),
            Operator::F64x2Min => self.zip(F64X2, |ins, left, right| ins.fmin(left, right)),
            Operator::F64x2Max => self.zip(F64X2, |ins, left, right| ins.fmax(left, right)),
            Operator::F64x2PMin => self.pseudo(F64X2, |left, right| (right, left)),
            Operator::F64x2PMax => self.pseudo(F64X2, |left, right| (left, right)),
            _ => false,
        }
    }

    /// `pmin` and `pmax`: the right operand where the ordered pair is ascending, else the left one. So the left one is the
    /// result where one is not a number, and of zeros.
    fn pseudo(&mut self, shape: Type, order: impl FnOnce(Value, Value) -> (Value, Value)) -> bool {
        let (right, left) = (self.pop_as(shape), self.pop_as(shape));
        let (lesser, greater) = order(left, right);
        let is_less = self.builder.ins().fcmp(FloatCC::LessThan, lesser, greater);
        let is_less = self.reshape(shape, is_less);
        let result = self.builder.ins().bitselect(is_less, right, left);
        self.push_vector(result)
    }

    fn lane_conversion(&mut self, operator: &Operator<'_>) -> bool {
        match operator {
            Operator::I32x4TruncSatF32x4S => self.map(F32X4, |ins, value| ins.fcvt_to_sint_sat(I32X4, value)),
            Operator::I32x4TruncSatF32x4U => self.map(F32X4, |ins, value| ins.fcvt_to_uint_sat(I32X4, value)),
            Operator::I32x4TruncSatF64x2SZero => {
                self.truncate_halves(|ins, value| ins.fcvt_to_sint_sat(I64X2, value), |ins, a, b| ins.snarrow(a, b))
            }
            Operator::I32x4TruncSatF64x2UZero => {
                self.truncate_halves(|ins, value| ins.fcvt_to_uint_sat(I64X2, value), |ins, a, b| ins.uunarrow(a, b))
            }
            Operator::F32x4ConvertI32x4S => self.map(I32X4, |ins, value| ins.fcvt_from_sint(F32X4, value)),
            Operator::F32x4ConvertI32x4U => self.map(I32X4, |ins, value| ins.fcvt_from_uint(F32X4, value)),
            Operator::F64x2ConvertLowI32x4S => {
                self.map(I32X4, |ins, value| ins.swiden_low(value));
                self.map(I64X2, |ins, value| ins.fcvt_from_sint(F64X2, value))
            }
            Operator::F64x2ConvertLowI32x4U => {
                self.map(I32X4, |ins, value| ins.uwiden_low(value));
                self.map(I64X2, |ins, value| ins.fcvt_from_uint(F64X2, value))
            }
            Operator::F32x4DemoteF64x2Zero => self.map(F64X2, |ins, value| ins.fvdemote(value)),
            Operator::F64x2PromoteLowF32x4 => self.map(F32X4, |ins, value| ins.fvpromote_low(value)),
            _ => false,
        }
    }

    /// Converts two lanes of 64 bits to integers of 32; the upper two are zero. The code generator knows this sequence as a
    /// whole alone.
    fn truncate_halves(
        &mut self,
        convert: impl FnOnce(FuncInstBuilder<'_, 'b>, Value) -> Value,
        narrow: impl FnOnce(FuncInstBuilder<'_, 'b>, Value, Value) -> Value,
    ) -> bool {
        let value = self.pop_as(F64X2);
        let value = convert(self.builder.ins(), value);
        let zero = self.builder.func.dfg.constants.insert(ConstantData::from([0; 16].as_slice()));
        let zero = self.builder.ins().vconst(I64X2, zero);
        let result = narrow(self.builder.ins(), value, zero);
        self.push_vector(result)
    }
}
