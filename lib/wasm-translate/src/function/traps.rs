//! Codes of the traps that Cranelift does not know.

use cranelift_codegen::ir::TrapCode;

/// `unreachable`.
pub const UNREACHABLE: TrapCode = TrapCode::unwrap_user(1);
/// A table access out of bounds.
pub const TABLE_BOUNDS: TrapCode = TrapCode::unwrap_user(2);
/// An indirect call of null.
pub const NULL_CALL: TrapCode = TrapCode::unwrap_user(3);
/// An indirect call of another signature.
pub const SIGNATURE: TrapCode = TrapCode::unwrap_user(4);
/// An indirect call of an entry out of bounds.
pub const UNDEFINED_ELEMENT: TrapCode = TrapCode::unwrap_user(5);
/// An exception that nothing caught.
pub const UNCAUGHT: TrapCode = TrapCode::unwrap_user(6);
