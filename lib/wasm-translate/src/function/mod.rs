//! Compiles a function: its operators become instructions of Cranelift's, one after the other.
//!
//! Key type: [`Translator`]. Numbers are values of their own types, a vector is `i8x16`, a reference is `i32`. Modules
//! beneath: [`control`] (blocks and branches), [`exceptions`], [`numeric`], [`memory`], [`tables`] (tables, calls, references),
//! [`vectors`]. Deliberately not here: validation, which `wasmparser` has done for the whole body before.

mod control;
mod copy;
mod exceptions;
mod memory;
mod numeric;
mod tables;
pub mod traps;
mod vectors;

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use cranelift_codegen::ir::{
    AbiParam, AliasRegion, AliasRegionData, Block, ExtFuncData, ExternalName, FuncRef, Function, GlobalValue,
    GlobalValueData, InstBuilder, MemFlagsData, SigRef, Signature as CraneSignature, TrapCode, Type, UserFuncName,
    Value, types,
};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use wasm_record::layout::{Bounds, Builtin};
use wasm_record::{Signature, ValueType};
use wasmparser::{FuncValidatorAllocations, FunctionBody, Operator};

use crate::backend::{Backend, Symbol};
use crate::module::{self, Body, Module};
use crate::separate::{Separated, separate};
use crate::{Error, limits, thunks, unsupported};

use control::Frame;

/// Kinds of memory that stores to another kind do not change.
#[derive(Clone, Copy)]
enum Region {
    /// Address and size of memory and tables in the context.
    Bounds = 0,
    /// Globals.
    Globals = 1,
    /// Linear memory.
    Memory = 2,
    /// Entries of tables.
    Tables = 3,
}

const REGIONS: [&str; 4] = ["bounds", "globals", "memory", "tables"];

/// Compiles a function of a module.
pub fn compile(backend: &Backend, module: &Module<'_>, index: u32, body: Body<'_>) -> Result<Separated, Error> {
    let signature = module.signature_of(index);
    let (body, to_validate) = match body {
        Body::Import(number) => return thunks::import(backend, signature, number),
        Body::Code(body, to_validate) => (body, to_validate),
    };
    to_validate.into_validator(FuncValidatorAllocations::default()).validate(&body)?;
    let mut function = Function::with_name_signature(UserFuncName::default(), self::signature(signature));
    let mut context = FunctionBuilderContext::new();
    let mut translator = Translator::new(FunctionBuilder::new(&mut function, &mut context), module, index);
    translator.begin(signature, &body)?;
    let mut operators = body.get_operators_reader()?;
    while !operators.eof() {
        translator.operator(&operators.read()?)?;
    }
    translator.close_unwind();
    translator.builder.seal_all_blocks();
    translator.builder.finalize(backend.isa.frontend_config());
    let incoming = |block| function.dfg.num_block_params(block).pow(2);
    if function.layout.blocks().map(incoming).sum::<usize>() > limits::PLACED_VALUES {
        return Err(Error::Limit {
            what: "values that come into blocks (sum of squares)",
            most: limits::PLACED_VALUES,
        });
    }
    let (function, code) = backend.compile(function)?;
    separate(&function, &code)
}

/// A signature as functions of a module have it: the context is the first parameter.
pub fn signature(signature: &Signature) -> CraneSignature {
    let mut out = CraneSignature::new(CallConv::Tail);
    out.params.push(AbiParam::new(types::I64));
    out.params.extend(signature.parameters.iter().map(|kind| AbiParam::new(value_type(*kind))));
    out.returns.extend(signature.results.iter().map(|kind| AbiParam::new(value_type(*kind))));
    out
}

/// The type of a value in code.
pub fn value_type(kind: ValueType) -> Type {
    match kind {
        ValueType::I32 | ValueType::FuncRef | ValueType::ExternRef => types::I32,
        ValueType::I64 => types::I64,
        ValueType::F32 => types::F32,
        ValueType::F64 => types::F64,
        ValueType::V128 => types::I8X16,
    }
}

/// The state of a function that is being compiled.
struct Translator<'a, 'b> {
    module: &'a Module<'a>,
    index: u32,
    builder: FunctionBuilder<'b>,
    context: Value,
    locals: Vec<Variable>,
    stack: Vec<Value>,
    frames: Vec<Frame>,
    /// Whether the current operator can be reached.
    reachable: bool,
    /// Number of blocks that were opened where nothing is reached.
    dead_frames: usize,
    /// Number of loops that are open.
    loops: usize,
    /// Number of values that blocks, branches and calls have passed.
    passed: usize,
    regions: [AliasRegion; 4],
    functions: BTreeMap<u32, FuncRef>,
    signatures: BTreeMap<u32, SigRef>,
    symbols: BTreeMap<u32, GlobalValue>,
    builtin: Option<FuncRef>,
    /// Where the function returns while an exception is pending, if it does.
    unwind: Option<Block>,
}

impl<'a, 'b> Translator<'a, 'b> {
    fn new(mut builder: FunctionBuilder<'b>, module: &'a Module<'a>, index: u32) -> Translator<'a, 'b> {
        let mut number = 0;
        let regions = REGIONS.map(|description| {
            let data = AliasRegionData { user_id: number, description: Cow::Borrowed(description) };
            number += 1;
            builder.func.dfg.alias_regions.insert(data)
        });
        let entry = builder.create_block();
        builder.append_block_params_for_function_params(entry);
        builder.switch_to_block(entry);
        builder.seal_block(entry);
        let context = builder.block_params(entry)[0];
        Translator {
            module,
            index,
            builder,
            context,
            locals: Vec::new(),
            stack: Vec::new(),
            frames: Vec::new(),
            reachable: true,
            dead_frames: 0,
            loops: 0,
            passed: 0,
            regions,
            functions: BTreeMap::new(),
            signatures: BTreeMap::new(),
            symbols: BTreeMap::new(),
            builtin: None,
            unwind: None,
        }
    }

    /// Declares locals, and opens the block of the function.
    fn begin(&mut self, signature: &Signature, body: &FunctionBody<'_>) -> Result<(), Error> {
        let Some(entry) = self.builder.current_block() else { return Err(unsupported("a function without an entry")) };
        let parameters = self.builder.block_params(entry)[1..].to_vec();
        for (kind, value) in signature.parameters.iter().zip(parameters) {
            let variable = self.builder.declare_var(value_type(*kind));
            self.builder.def_var(variable, value);
            self.locals.push(variable);
        }
        for local in body.get_locals_reader()? {
            let (count, kind) = local?;
            if self.locals.len() + count as usize > limits::LOCALS {
                return Err(Error::Limit { what: "locals", most: limits::LOCALS });
            }
            let kind = module::value_type(kind)?;
            let initial = self.default(kind);
            for _ in 0..count {
                let variable = self.builder.declare_var(value_type(kind));
                self.builder.def_var(variable, initial);
                self.locals.push(variable);
            }
        }
        self.open_function(&signature.results);
        Ok(())
    }

    /// The value of a local at the start.
    fn default(&mut self, kind: ValueType) -> Value {
        let ins = self.builder.ins();
        match kind {
            ValueType::I32 => ins.iconst(types::I32, 0),
            ValueType::I64 => ins.iconst(types::I64, 0),
            ValueType::F32 => ins.f32const(0.0),
            ValueType::F64 => ins.f64const(0.0),
            ValueType::V128 => self.vector_constant([0; 16]),
            ValueType::FuncRef | ValueType::ExternRef => self.null(),
        }
    }

    fn operator(&mut self, operator: &Operator<'_>) -> Result<(), Error> {
        if self.stack.len() > limits::STACK_VALUES {
            return Err(Error::Limit { what: "values on the stack", most: limits::STACK_VALUES });
        }
        if self.control(operator)? || !self.reachable {
            return Ok(());
        }
        let done = self.numeric(operator)
            || self.memory(operator)
            || self.tables(operator)?
            || self.exception(operator)?
            || self.variable(operator)
            || self.vector(operator);
        if done { Ok(()) } else { Err(unsupported(operator)) }
    }

    /// Locals, globals, and what only moves values.
    fn variable(&mut self, operator: &Operator<'_>) -> bool {
        match *operator {
            Operator::LocalGet { local_index } => {
                let value = self.builder.use_var(self.locals[local_index as usize]);
                self.push(value);
            }
            Operator::LocalSet { local_index } => {
                let value = self.pop();
                self.builder.def_var(self.locals[local_index as usize], value);
            }
            Operator::LocalTee { local_index } => {
                let value = self.top(1)[0];
                self.builder.def_var(self.locals[local_index as usize], value);
            }
            Operator::GlobalGet { global_index } => {
                let (kind, offset) = self.global(global_index);
                let flags = self.flags(Region::Globals);
                let value = self.builder.ins().load(kind, flags, self.context, offset);
                self.push(value);
            }
            Operator::GlobalSet { global_index } => {
                let (_, offset) = self.global(global_index);
                let flags = self.flags(Region::Globals);
                let value = self.pop();
                self.builder.ins().store(flags, value, self.context, offset);
            }
            Operator::Drop => {
                self.pop();
            }
            Operator::Select | Operator::TypedSelect { .. } => {
                let condition = self.pop();
                let (first, second) = self.pop2();
                let value = self.builder.ins().select(condition, first, second);
                self.push(value);
            }
            Operator::Nop => {}
            _ => return false,
        }
        true
    }

    /// Type of a global, and its place in the context.
    fn global(&self, index: u32) -> (Type, i32) {
        let kind = value_type(self.module.globals[index as usize].kind);
        (kind, self.module.place_of_global(index) as i32)
    }

    /// Counts values that are passed.
    fn pass(&mut self, values: usize) -> Result<(), Error> {
        self.passed += values;
        if self.passed > limits::PASSED_VALUES {
            return Err(Error::Limit {
                what: "values passed by blocks, branches and calls",
                most: limits::PASSED_VALUES,
            });
        }
        Ok(())
    }

    fn push(&mut self, value: Value) {
        self.stack.push(value);
    }

    /// The value on top. The body is valid, so there is one.
    fn pop(&mut self) -> Value {
        self.stack.pop().unwrap_or(self.context)
    }

    fn pop2(&mut self) -> (Value, Value) {
        let second = self.pop();
        (self.pop(), second)
    }

    fn pop3(&mut self) -> (Value, Value, Value) {
        let third = self.pop();
        let (first, second) = self.pop2();
        (first, second, third)
    }

    /// The topmost values, which stay.
    fn top(&self, number: usize) -> Vec<Value> {
        self.stack[self.stack.len().saturating_sub(number)..].to_vec()
    }

    /// Takes the topmost values.
    fn take(&mut self, number: usize) -> Vec<Value> {
        let at = self.stack.len().saturating_sub(number);
        self.stack.split_off(at)
    }

    /// Flags of an access that has been checked, or that guards check.
    fn flags(&self, region: Region) -> MemFlagsData {
        let is_guarded = matches!(region, Region::Memory) && self.module.bounds == Bounds::Guarded;
        let trap = is_guarded.then_some(TrapCode::HEAP_OUT_OF_BOUNDS);
        MemFlagsData::new().with_trap_code(trap).with_alias_region(Some(self.regions[region as usize]))
    }

    /// A word of the context that only a builtin, an import or a call changes.
    fn bound(&mut self, offset: u32) -> Value {
        let flags = self.flags(Region::Bounds).with_aligned();
        self.builder.ins().load(types::I64, flags, self.context, offset as i32)
    }

    fn widen(&mut self, value: Value) -> Value {
        self.builder.ins().uextend(types::I64, value)
    }

    /// Calls a builtin; returns its result.
    fn call_builtin(&mut self, builtin: Builtin, arguments: &[Value]) -> Value {
        let function = self.builtin_function();
        let number = u64::from(self.index) << 32 | builtin as u64;
        let number = self.builder.ins().iconst(types::I64, number as i64);
        let mut all = alloc::vec![self.context, number];
        all.extend_from_slice(arguments);
        while all.len() < 6 {
            all.push(self.builder.ins().iconst(types::I64, 0));
        }
        let call = self.builder.ins().call(function, &all);
        self.builder.inst_results(call)[0]
    }

    fn builtin_function(&mut self) -> FuncRef {
        if let Some(function) = self.builtin {
            return function;
        }
        let mut signature = CraneSignature::new(CallConv::SystemV);
        signature.params.extend([AbiParam::new(types::I64); 6]);
        signature.returns.push(AbiParam::new(types::I64));
        let signature = self.builder.import_signature(signature);
        let name = self.builder.func.declare_imported_user_function(Symbol::Builtin.name());
        let data = ExtFuncData { name: ExternalName::user(name), signature, colocated: true, patchable: false };
        let function = self.builder.import_function(data);
        self.builtin = Some(function);
        function
    }

    /// The address of an array beside the code.
    fn symbol(&mut self, symbol: Symbol) -> Value {
        let value = match self.symbols.get(&(symbol as u32)) {
            Some(&value) => value,
            None => {
                let name = self.builder.func.declare_imported_user_function(symbol.name());
                let value = self.builder.create_global_value(GlobalValueData::Symbol {
                    name: ExternalName::user(name),
                    offset: 0.into(),
                    colocated: true,
                    tls: false,
                });
                self.symbols.insert(symbol as u32, value);
                value
            }
        };
        self.builder.ins().symbol_value(types::I64, value)
    }
}
