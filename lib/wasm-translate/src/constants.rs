//! Constant expressions. Imported globals are constants of the template, so all of them have a value.

use alloc::vec::Vec;

use wasm_record::{Global, NULL};
use wasmparser::{ConstExpr, Operator};

use crate::{Error, unsupported};

/// Evaluates an expression, which is valid; returns the bits of its value.
pub fn evaluate(expression: &ConstExpr<'_>, globals: &[Global]) -> Result<u128, Error> {
    let mut stack: Vec<u128> = Vec::new();
    let mut reader = expression.get_operators_reader();
    while !reader.eof() {
        let value = match reader.read()? {
            Operator::I32Const { value } => u128::from(value as u32),
            Operator::I64Const { value } => u128::from(value as u64),
            Operator::F32Const { value } => u128::from(value.bits()),
            Operator::F64Const { value } => u128::from(value.bits()),
            Operator::V128Const { value } => value.i128() as u128,
            Operator::RefNull { .. } => u128::from(NULL),
            Operator::RefFunc { function_index } => u128::from(function_index),
            Operator::GlobalGet { global_index } => {
                globals.get(global_index as usize).ok_or_else(|| unsupported("a later global"))?.value
            }
            Operator::End => continue,
            operator => binary(&operator, stack.pop().unwrap_or(0), stack.pop().unwrap_or(0))?,
        };
        stack.push(value);
    }
    stack.pop().ok_or_else(|| unsupported("an empty constant expression"))
}

fn binary(operator: &Operator<'_>, right: u128, left: u128) -> Result<u128, Error> {
    let (left32, right32) = (left as u32, right as u32);
    let (left64, right64) = (left as u64, right as u64);
    Ok(match operator {
        Operator::I32Add => u128::from(left32.wrapping_add(right32)),
        Operator::I32Sub => u128::from(left32.wrapping_sub(right32)),
        Operator::I32Mul => u128::from(left32.wrapping_mul(right32)),
        Operator::I64Add => u128::from(left64.wrapping_add(right64)),
        Operator::I64Sub => u128::from(left64.wrapping_sub(right64)),
        Operator::I64Mul => u128::from(left64.wrapping_mul(right64)),
        other => return Err(unsupported(other)),
    })
}
