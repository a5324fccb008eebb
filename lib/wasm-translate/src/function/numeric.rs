//! Numbers: constants, arithmetic, comparison, conversion (WebAssembly 2.0, section 4.3).

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::immediates::{Ieee32, Ieee64};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Type, Value, types};
use cranelift_frontend::FuncInstBuilder;
use wasmparser::Operator;

use super::Translator;

impl<'b> Translator<'_, 'b> {
    /// Replaces the value on top.
    pub fn unary(&mut self, operation: impl FnOnce(FuncInstBuilder<'_, 'b>, Value) -> Value) -> bool {
        let value = self.pop();
        let result = operation(self.builder.ins(), value);
        self.push(result);
        true
    }

    /// Replaces the two values on top.
    pub fn binary(&mut self, operation: impl FnOnce(FuncInstBuilder<'_, 'b>, Value, Value) -> Value) -> bool {
        let (left, right) = self.pop2();
        let result = operation(self.builder.ins(), left, right);
        self.push(result);
        true
    }

    fn compare(&mut self, condition: IntCC) -> bool {
        self.binary(|ins, left, right| ins.icmp(condition, left, right)) && self.flag()
    }

    fn compare_floats(&mut self, condition: FloatCC) -> bool {
        self.binary(|ins, left, right| ins.fcmp(condition, left, right)) && self.flag()
    }

    /// Widens the result of a comparison.
    fn flag(&mut self) -> bool {
        self.unary(|ins, value| ins.uextend(types::I32, value))
    }

    fn is_zero(&mut self) -> bool {
        let value = self.pop();
        let zero = self.builder.func.dfg.value_type(value);
        let zero = self.builder.ins().iconst(zero, 0);
        let result = self.builder.ins().icmp(IntCC::Equal, value, zero);
        self.push(result);
        self.flag()
    }

    fn constant(&mut self, kind: Type, value: i64) -> bool {
        let value = self.builder.ins().iconst(kind, value);
        self.push(value);
        true
    }

    /// Extends the low bits of the value on top, with their sign.
    fn extend(&mut self, from: Type, to: Type) -> bool {
        self.unary(|ins, value| ins.ireduce(from, value)) && self.unary(|ins, value| ins.sextend(to, value))
    }

    /// Performs an operator on numbers; returns whether it is one.
    pub fn numeric(&mut self, operator: &Operator<'_>) -> bool {
        self.constants(operator)
            || self.comparison(operator)
            || self.integers(operator)
            || self.floats(operator)
            || self.conversion(operator)
    }

    fn constants(&mut self, operator: &Operator<'_>) -> bool {
        match *operator {
            Operator::I32Const { value } => self.constant(types::I32, i64::from(value as u32)),
            Operator::I64Const { value } => self.constant(types::I64, value),
            Operator::F32Const { value } => {
                let value = self.builder.ins().f32const(Ieee32::with_bits(value.bits()));
                self.push(value);
                true
            }
            Operator::F64Const { value } => {
                let value = self.builder.ins().f64const(Ieee64::with_bits(value.bits()));
                self.push(value);
                true
            }
            _ => false,
        }
    }

    fn comparison(&mut self, operator: &Operator<'_>) -> bool {
        match operator {
            Operator::I32Eqz | Operator::I64Eqz => self.is_zero(),
            Operator::I32Eq | Operator::I64Eq => self.compare(IntCC::Equal),
            Operator::I32Ne | Operator::I64Ne => self.compare(IntCC::NotEqual),
            Operator::I32LtS | Operator::I64LtS => self.compare(IntCC::SignedLessThan),
            Operator::I32LtU | Operator::I64LtU => self.compare(IntCC::UnsignedLessThan),
            Operator::I32GtS | Operator::I64GtS => self.compare(IntCC::SignedGreaterThan),
            Operator::I32GtU | Operator::I64GtU => self.compare(IntCC::UnsignedGreaterThan),
            Operator::I32LeS | Operator::I64LeS => self.compare(IntCC::SignedLessThanOrEqual),
            Operator::I32LeU | Operator::I64LeU => self.compare(IntCC::UnsignedLessThanOrEqual),
            Operator::I32GeS | Operator::I64GeS => self.compare(IntCC::SignedGreaterThanOrEqual),
            Operator::I32GeU | Operator::I64GeU => self.compare(IntCC::UnsignedGreaterThanOrEqual),
            Operator::F32Eq | Operator::F64Eq => self.compare_floats(FloatCC::Equal),
            Operator::F32Ne | Operator::F64Ne => self.compare_floats(FloatCC::NotEqual),
            Operator::F32Lt | Operator::F64Lt => self.compare_floats(FloatCC::LessThan),
            Operator::F32Gt | Operator::F64Gt => self.compare_floats(FloatCC::GreaterThan),
            Operator::F32Le | Operator::F64Le => self.compare_floats(FloatCC::LessThanOrEqual),
            Operator::F32Ge | Operator::F64Ge => self.compare_floats(FloatCC::GreaterThanOrEqual),
            _ => false,
        }
    }

    fn integers(&mut self, operator: &Operator<'_>) -> bool {
        match operator {
            Operator::I32Clz | Operator::I64Clz => self.unary(|ins, value| ins.clz(value)),
            Operator::I32Ctz | Operator::I64Ctz => self.unary(|ins, value| ins.ctz(value)),
            Operator::I32Popcnt | Operator::I64Popcnt => self.unary(|ins, value| ins.popcnt(value)),
            Operator::I32Add | Operator::I64Add => self.binary(|ins, left, right| ins.iadd(left, right)),
            Operator::I32Sub | Operator::I64Sub => self.binary(|ins, left, right| ins.isub(left, right)),
            Operator::I32Mul | Operator::I64Mul => self.binary(|ins, left, right| ins.imul(left, right)),
            Operator::I32DivS | Operator::I64DivS => self.binary(|ins, left, right| ins.sdiv(left, right)),
            Operator::I32DivU | Operator::I64DivU => self.binary(|ins, left, right| ins.udiv(left, right)),
            Operator::I32RemS | Operator::I64RemS => self.binary(|ins, left, right| ins.srem(left, right)),
            Operator::I32RemU | Operator::I64RemU => self.binary(|ins, left, right| ins.urem(left, right)),
            Operator::I32And | Operator::I64And => self.binary(|ins, left, right| ins.band(left, right)),
            Operator::I32Or | Operator::I64Or => self.binary(|ins, left, right| ins.bor(left, right)),
            Operator::I32Xor | Operator::I64Xor => self.binary(|ins, left, right| ins.bxor(left, right)),
            Operator::I32Shl | Operator::I64Shl => self.binary(|ins, left, right| ins.ishl(left, right)),
            Operator::I32ShrS | Operator::I64ShrS => self.binary(|ins, left, right| ins.sshr(left, right)),
            Operator::I32ShrU | Operator::I64ShrU => self.binary(|ins, left, right| ins.ushr(left, right)),
            Operator::I32Rotl | Operator::I64Rotl => self.binary(|ins, left, right| ins.rotl(left, right)),
            Operator::I32Rotr | Operator::I64Rotr => self.binary(|ins, left, right| ins.rotr(left, right)),
            _ => false,
        }
    }

    fn floats(&mut self, operator: &Operator<'_>) -> bool {
        match operator {
            Operator::F32Abs | Operator::F64Abs => self.unary(|ins, value| ins.fabs(value)),
            Operator::F32Neg | Operator::F64Neg => self.unary(|ins, value| ins.fneg(value)),
            Operator::F32Ceil | Operator::F64Ceil => self.unary(|ins, value| ins.ceil(value)),
            Operator::F32Floor | Operator::F64Floor => self.unary(|ins, value| ins.floor(value)),
            Operator::F32Trunc | Operator::F64Trunc => self.unary(|ins, value| ins.trunc(value)),
            Operator::F32Nearest | Operator::F64Nearest => self.unary(|ins, value| ins.nearest(value)),
            Operator::F32Sqrt | Operator::F64Sqrt => self.unary(|ins, value| ins.sqrt(value)),
            Operator::F32Add | Operator::F64Add => self.binary(|ins, left, right| ins.fadd(left, right)),
            Operator::F32Sub | Operator::F64Sub => self.binary(|ins, left, right| ins.fsub(left, right)),
            Operator::F32Mul | Operator::F64Mul => self.binary(|ins, left, right| ins.fmul(left, right)),
            Operator::F32Div | Operator::F64Div => self.binary(|ins, left, right| ins.fdiv(left, right)),
            Operator::F32Min | Operator::F64Min => self.binary(|ins, left, right| ins.fmin(left, right)),
            Operator::F32Max | Operator::F64Max => self.binary(|ins, left, right| ins.fmax(left, right)),
            Operator::F32Copysign | Operator::F64Copysign => self.binary(|ins, left, right| ins.fcopysign(left, right)),
            _ => false,
        }
    }

    fn conversion(&mut self, operator: &Operator<'_>) -> bool {
        use types::{F32, F64, I8, I16, I32, I64};
        let bits = MemFlagsData::new;
        match operator {
            Operator::I32WrapI64 => self.unary(|ins, value| ins.ireduce(I32, value)),
            Operator::I64ExtendI32S => self.unary(|ins, value| ins.sextend(I64, value)),
            Operator::I64ExtendI32U => self.unary(|ins, value| ins.uextend(I64, value)),
            Operator::I32Extend8S => self.extend(I8, I32),
            Operator::I32Extend16S => self.extend(I16, I32),
            Operator::I64Extend8S => self.extend(I8, I64),
            Operator::I64Extend16S => self.extend(I16, I64),
            Operator::I64Extend32S => self.extend(I32, I64),
            Operator::I32TruncF32S | Operator::I32TruncF64S => self.unary(|ins, value| ins.fcvt_to_sint(I32, value)),
            Operator::I32TruncF32U | Operator::I32TruncF64U => self.unary(|ins, value| ins.fcvt_to_uint(I32, value)),
            Operator::I64TruncF32S | Operator::I64TruncF64S => self.unary(|ins, value| ins.fcvt_to_sint(I64, value)),
            Operator::I64TruncF32U | Operator::I64TruncF64U => self.unary(|ins, value| ins.fcvt_to_uint(I64, value)),
            Operator::I32TruncSatF32S | Operator::I32TruncSatF64S => {
                self.unary(|ins, value| ins.fcvt_to_sint_sat(I32, value))
            }
            Operator::I32TruncSatF32U | Operator::I32TruncSatF64U => {
                self.unary(|ins, value| ins.fcvt_to_uint_sat(I32, value))
            }
            Operator::I64TruncSatF32S | Operator::I64TruncSatF64S => {
                self.unary(|ins, value| ins.fcvt_to_sint_sat(I64, value))
            }
            Operator::I64TruncSatF32U | Operator::I64TruncSatF64U => {
                self.unary(|ins, value| ins.fcvt_to_uint_sat(I64, value))
            }
            Operator::F32ConvertI32S | Operator::F32ConvertI64S => {
                self.unary(|ins, value| ins.fcvt_from_sint(F32, value))
            }
            Operator::F32ConvertI32U | Operator::F32ConvertI64U => {
                self.unary(|ins, value| ins.fcvt_from_uint(F32, value))
            }
            Operator::F64ConvertI32S | Operator::F64ConvertI64S => {
                self.unary(|ins, value| ins.fcvt_from_sint(F64, value))
            }
            Operator::F64ConvertI32U | Operator::F64ConvertI64U => {
                self.unary(|ins, value| ins.fcvt_from_uint(F64, value))
            }
            Operator::F32DemoteF64 => self.unary(|ins, value| ins.fdemote(F32, value)),
            Operator::F64PromoteF32 => self.unary(|ins, value| ins.fpromote(F64, value)),
            Operator::I32ReinterpretF32 => self.unary(|ins, value| ins.bitcast(I32, bits(), value)),
            Operator::I64ReinterpretF64 => self.unary(|ins, value| ins.bitcast(I64, bits(), value)),
            Operator::F32ReinterpretI32 => self.unary(|ins, value| ins.bitcast(F32, bits(), value)),
            Operator::F64ReinterpretI64 => self.unary(|ins, value| ins.bitcast(F64, bits(), value)),
            _ => false,
        }
    }
}
