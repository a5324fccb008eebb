//! Functions that no module has: the entry of each signature, and those that stand for imports.

use cranelift_codegen::ir::{
    AbiParam, ExtFuncData, ExternalName, Function, InstBuilder, MemFlagsData, Signature as CraneSignature,
    UserFuncName, types,
};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use wasm_record::layout::{ARGUMENTS, MAX_ARGUMENTS, SLOT_BYTES};
use wasm_record::{Signature, ValueType};

use crate::Error;
use crate::backend::{Backend, Symbol};
use crate::function::{signature, traps, value_type};
use crate::separate::{Separated, separate};

/// Where an argument or result lies in the context.
fn slot(index: usize) -> i32 {
    (ARGUMENTS + index as u32 * SLOT_BYTES) as i32
}

/// Compiles the entry of a signature, `fn(context, function)` for the template: calls the function with arguments from
/// the context, and leaves results there. A signature with too many of either cannot be called from outside.
///
/// `pending` is where the context says that an exception is pending: one that reaches the template is a trap.
pub fn entry(backend: &Backend, wanted: &Signature, pending: Option<u32>) -> Result<Separated, Error> {
    let mut outer = CraneSignature::new(CallConv::SystemV);
    outer.params.extend([AbiParam::new(types::I64), AbiParam::new(types::I64)]);
    build(backend, outer, |builder, parameters| {
        if wanted.parameters.len().max(wanted.results.len()) > MAX_ARGUMENTS {
            builder.ins().trap(traps::UNREACHABLE);
            return;
        }
        let (context, callee) = (parameters[0], parameters[1]);
        let mut arguments = alloc::vec![context];
        for (index, kind) in wanted.parameters.iter().enumerate() {
            arguments.push(builder.ins().load(value_type(*kind), MemFlagsData::trusted(), context, slot(index)));
        }
        let inner = builder.import_signature(signature(wanted));
        let call = builder.ins().call_indirect(inner, callee, &arguments);
        let results = builder.inst_results(call).to_vec();
        if let Some(pending) = pending {
            let tag = builder.ins().load(types::I32, MemFlagsData::trusted(), context, pending as i32);
            builder.ins().trapnz(tag, traps::UNCAUGHT);
        }
        for (index, result) in results.into_iter().enumerate() {
            builder.ins().store(MemFlagsData::trusted(), result, context, slot(index));
        }
        builder.ins().return_(&[]);
    })
}

/// Compiles the function that stands for an import.
pub fn import(backend: &Backend, wanted: &Signature, number: u32) -> Result<Separated, Error> {
    build(backend, signature(wanted), |builder, parameters| {
        let context = parameters[0];
        for (index, &parameter) in parameters[1..].iter().enumerate() {
            builder.ins().store(MemFlagsData::trusted(), parameter, context, slot(index));
        }
        let mut host = CraneSignature::new(CallConv::SystemV);
        host.params.extend([AbiParam::new(types::I64), AbiParam::new(types::I32)]);
        let host = builder.import_signature(host);
        let name = builder.func.declare_imported_user_function(Symbol::Host.name());
        let name = ExternalName::user(name);
        let host = builder.import_function(ExtFuncData { name, signature: host, colocated: true, patchable: false });
        let number = builder.ins().iconst(types::I32, i64::from(number));
        builder.ins().call(host, &[context, number]);
        let load = |(index, kind): (usize, &ValueType)| {
            builder.ins().load(value_type(*kind), MemFlagsData::trusted(), context, slot(index))
        };
        let results: alloc::vec::Vec<_> = wanted.results.iter().enumerate().map(load).collect();
        builder.ins().return_(&results);
    })
}

fn build(
    backend: &Backend,
    signature: CraneSignature,
    body: impl FnOnce(&mut FunctionBuilder<'_>, &[cranelift_codegen::ir::Value]),
) -> Result<Separated, Error> {
    let mut function = Function::with_name_signature(UserFuncName::default(), signature);
    let mut context = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(&mut function, &mut context);
    let block = builder.create_block();
    builder.append_block_params_for_function_params(block);
    builder.switch_to_block(block);
    let parameters = builder.block_params(block).to_vec();
    body(&mut builder, &parameters);
    builder.seal_all_blocks();
    builder.finalize(backend.isa.frontend_config());
    let (function, code) = backend.compile(function)?;
    separate(&function, &code)
}
