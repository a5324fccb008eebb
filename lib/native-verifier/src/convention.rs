//! How functions of a module are called: Cranelift's convention `tail` for x86-64.
//!
//! Integers are in `rdi rsi rdx rcx r8 r9`, floats and vectors in `xmm0` to `xmm7`, the rest on the stack, which the
//! callee releases. Results are in eight registers of either kind; if there are more, the first argument is the address
//! of an area of the caller's for them. The context is the next. `rbx rbp r12` to `r15` are preserved.

use wasm_record::{Signature, ValueType};

/// Number of a register: the order of x86-64, `rax rcx rdx rbx rsp rbp rsi rdi r8 …`.
pub type Register = u8;

pub const RBX: Register = 3;
pub const RSP: Register = 4;
pub const RBP: Register = 5;
pub const RSI: Register = 6;
pub const RDI: Register = 7;
/// Number of registers.
pub const REGISTERS: usize = 16;

/// Registers that calls preserve, apart from the stack pointer.
pub const PRESERVED: [Register; 6] = [RBX, RBP, 12, 13, 14, 15];

const INTEGER_ARGUMENTS: u32 = 6;
const FLOAT_ARGUMENTS: u32 = 8;
const INTEGER_RESULTS: u32 = 8;
const FLOAT_RESULTS: u32 = 8;
/// Alignment of the stack at calls, in bytes.
pub const STACK_ALIGNMENT: i64 = 16;

/// What a function expects of its caller, as far as safety depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Convention {
    /// Size of the arguments on the stack.
    pub stack_bytes: i64,
    /// Size of the area for results whose address is in `rdi`, if there is one.
    pub results_bytes: Option<i64>,
}

impl Convention {
    pub fn of(signature: &Signature) -> Convention {
        let results = spilled(&signature.results, 0, INTEGER_RESULTS, FLOAT_RESULTS);
        let results_bytes = (results > 0).then_some(results);
        // The context, and the address of the results.
        let first = 1 + u32::from(results_bytes.is_some());
        let stack_bytes = spilled(&signature.parameters, first, INTEGER_ARGUMENTS, FLOAT_ARGUMENTS);
        Convention { stack_bytes, results_bytes }
    }

    /// The register that has the context.
    pub fn context(self) -> Register {
        if self.results_bytes.is_some() { RSI } else { RDI }
    }
}

/// Size of those values for which there is no register.
fn spilled(types: &[ValueType], mut integers: u32, most_integers: u32, most_floats: u32) -> i64 {
    let mut floats = 0;
    let mut bytes = 0i64;
    for kind in types {
        let (used, most, size) = match kind {
            ValueType::I32 | ValueType::I64 | ValueType::FuncRef | ValueType::ExternRef => {
                (&mut integers, most_integers, 8)
            }
            ValueType::F32 | ValueType::F64 => (&mut floats, most_floats, 8),
            ValueType::V128 => (&mut floats, most_floats, 16),
        };
        if *used < most {
            *used += 1;
        } else {
            bytes = (bytes + size - 1) / size * size + size;
        }
    }
    (bytes + STACK_ALIGNMENT - 1) / STACK_ALIGNMENT * STACK_ALIGNMENT
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use ValueType::{F64, I32, I64, V128};

    fn of(parameters: &[ValueType], results: &[ValueType]) -> (i64, Option<i64>) {
        let signature = Signature { parameters: parameters.to_vec(), results: results.to_vec() };
        let convention = Convention::of(&signature);
        (convention.stack_bytes, convention.results_bytes)
    }

    #[test]
    fn what_has_no_register_is_on_the_stack() {
        assert_eq!(of(&[], &[]), (0, None));
        assert_eq!(of(&[I32; 5], &[I64; 8]), (0, None));
        assert_eq!(of(&[I32; 6], &[]), (16, None));
        assert_eq!(of(&[I32; 8], &[]), (32, None));
        assert_eq!(of(&[F64; 8], &[F64; 8]), (0, None));
        assert_eq!(of(&[F64; 9], &[F64; 9]), (16, Some(16)));
        // The address of the results takes the place of an argument.
        assert_eq!(of(&[I32; 5], &[I64; 9]), (16, Some(16)));
        let mut mixed = vec![V128; 8];
        mixed.extend([F64, V128]);
        assert_eq!(of(&mixed, &[]), (32, None));
    }
}
