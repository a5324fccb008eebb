//! Tables, references and calls. A table holds numbers; what is called is looked up in read-only arrays beside the code.

use alloc::vec::Vec;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    ExtFuncData, ExternalName, FuncRef, InstBuilder, MemFlagsData, SigRef, TrapCode, UserExternalName, Value, types,
};
use wasm_record::layout::{self, Builtin};
use wasm_record::{NULL, Signature};
use wasmparser::Operator;

use super::{Region, Translator, signature, traps};
use crate::Error;
use crate::backend::{FUNCTIONS, Symbol};

impl Translator<'_, '_> {
    /// The null reference.
    pub fn null(&mut self) -> Value {
        self.builder.ins().iconst(types::I32, i64::from(NULL))
    }

    /// Performs an operator on tables, references or functions; returns whether it is one.
    pub fn tables(&mut self, operator: &Operator<'_>) -> Result<bool, Error> {
        match *operator {
            Operator::Call { function_index } => self.call(function_index)?,
            Operator::ReturnCall { function_index } => self.return_call(function_index)?,
            Operator::CallIndirect { type_index, table_index } => self.call_indirect(type_index, table_index)?,
            Operator::ReturnCallIndirect { type_index, table_index } => {
                let (callee, signature, arguments) = self.callee(type_index, table_index)?;
                self.builder.ins().return_call_indirect(signature, callee, &arguments);
                self.reachable = false;
            }
            Operator::RefNull { .. } => {
                let null = self.null();
                self.push(null);
            }
            Operator::RefFunc { function_index } => {
                let reference = self.builder.ins().iconst(types::I32, i64::from(function_index));
                self.push(reference);
            }
            Operator::RefIsNull => {
                let null = self.null();
                self.unary(|ins, value| ins.icmp(IntCC::Equal, value, null));
                self.unary(|ins, value| ins.uextend(types::I32, value));
            }
            Operator::TableGet { table } => {
                let index = self.pop();
                let entry = self.entry(table, index, traps::TABLE_BOUNDS);
                let flags = self.flags(Region::Tables);
                let value = self.builder.ins().load(types::I32, flags, entry, 0);
                self.push(value);
            }
            Operator::TableSet { table } => {
                let (index, value) = self.pop2();
                let entry = self.entry(table, index, traps::TABLE_BOUNDS);
                let flags = self.flags(Region::Tables);
                self.builder.ins().store(flags, value, entry, 0);
            }
            Operator::TableSize { table } => {
                let size = self.bound(layout::table(table) + 8);
                let size = self.builder.ins().ireduce(types::I32, size);
                self.push(size);
            }
            Operator::TableGrow { table } => {
                let (value, number) = self.pop2();
                let table = self.builder.ins().iconst(types::I64, i64::from(table));
                let (value, number) = (self.widen(value), self.widen(number));
                let former = self.call_builtin(Builtin::TableGrow, &[table, value, number]);
                let former = self.builder.ins().ireduce(types::I32, former);
                self.push(former);
            }
            Operator::TableFill { table } => self.bulk_call(Builtin::TableFill, Some(u64::from(table))),
            Operator::TableCopy { dst_table, src_table } => {
                self.bulk_call(Builtin::TableCopy, Some(u64::from(dst_table) | u64::from(src_table) << 32));
            }
            Operator::TableInit { elem_index, table } => {
                self.bulk_call(Builtin::TableInit, Some(u64::from(table) | u64::from(elem_index) << 32));
            }
            Operator::ElemDrop { elem_index } => {
                let segment = self.builder.ins().iconst(types::I64, i64::from(elem_index));
                self.call_builtin(Builtin::ElementDrop, &[segment]);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The address of an entry, whose index is checked.
    fn entry(&mut self, table: u32, index: Value, trap: TrapCode) -> Value {
        let index = self.widen(index);
        let size = self.bound(layout::table(table) + 8);
        let is_out = self.builder.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, index, size);
        self.builder.ins().trapnz(is_out, trap);
        let base = self.bound(layout::table(table));
        let offset = self.builder.ins().ishl_imm_u(index, 2);
        self.builder.ins().iadd(base, offset)
    }

    /// The address of an entry of a table that nothing changes, whose index is checked.
    fn sealed_entry(&mut self, (start, count): (u32, u32), index: Value) -> Value {
        let size = self.builder.ins().iconst(types::I32, i64::from(count));
        let is_out = self.builder.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, index, size);
        self.builder.ins().trapnz(is_out, traps::UNDEFINED_ELEMENT);
        let index = self.widen(index);
        let base = self.symbol(Symbol::SealedTables);
        let offset = self.builder.ins().ishl_imm_u(index, 2);
        let address = self.builder.ins().iadd(base, offset);
        if start == 0 { address } else { self.builder.ins().iadd_imm_s(address, i64::from(start)) }
    }

    fn function(&mut self, index: u32) -> FuncRef {
        if let Some(&function) = self.functions.get(&index) {
            return function;
        }
        let signature = self.builder.import_signature(signature(self.module.signature_of(index)));
        let name = UserExternalName { namespace: FUNCTIONS, index };
        let name = ExternalName::user(self.builder.func.declare_imported_user_function(name));
        let data = ExtFuncData { name, signature, colocated: true, patchable: false };
        let function = self.builder.import_function(data);
        self.functions.insert(index, function);
        function
    }

    /// The context, and as many values from the top as a signature has parameters.
    fn arguments(&mut self, signature: &Signature) -> Result<Vec<Value>, Error> {
        self.pass(signature.parameters.len() + signature.results.len())?;
        let mut arguments = alloc::vec![self.context];
        arguments.extend(self.take(signature.parameters.len()));
        Ok(arguments)
    }

    fn call(&mut self, index: u32) -> Result<(), Error> {
        let function = self.function(index);
        let arguments = self.arguments(self.module.signature_of(index))?;
        let call = self.builder.ins().call(function, &arguments);
        self.stack.extend_from_slice(self.builder.inst_results(call));
        // What the host implements throws nothing.
        if index >= self.module.imported {
            self.check_exception();
        }
        Ok(())
    }

    fn return_call(&mut self, index: u32) -> Result<(), Error> {
        let function = self.function(index);
        let arguments = self.arguments(self.module.signature_of(index))?;
        self.builder.ins().return_call(function, &arguments);
        self.reachable = false;
        Ok(())
    }

    fn call_indirect(&mut self, type_index: u32, table: u32) -> Result<(), Error> {
        let (callee, signature, arguments) = self.callee(type_index, table)?;
        let call = self.builder.ins().call_indirect(signature, callee, &arguments);
        self.stack.extend_from_slice(self.builder.inst_results(call));
        self.check_exception();
        Ok(())
    }

    /// Looks up what an indirect call calls: checks the index, that there is a function, and its signature.
    fn callee(&mut self, type_index: u32, table: u32) -> Result<(Value, SigRef, Vec<Value>), Error> {
        let index = self.pop();
        let sealed = MemFlagsData::trusted().with_readonly();
        let function = match self.module.sealed.place(table) {
            Some(place) => {
                let entry = self.sealed_entry(place, index);
                self.builder.ins().load(types::I32, sealed, entry, 0)
            }
            None => {
                let entry = self.entry(table, index, traps::UNDEFINED_ELEMENT);
                let flags = self.flags(Region::Tables);
                self.builder.ins().load(types::I32, flags, entry, 0)
            }
        };
        let number = self.builder.ins().iconst(types::I32, self.module.functions.len() as i64);
        // The null reference is no function's number either.
        let is_null = self.builder.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, function, number);
        self.builder.ins().trapnz(is_null, traps::NULL_CALL);
        let function = self.widen(function);
        let signatures = self.symbol(Symbol::SignatureTable);
        let offset = self.builder.ins().ishl_imm_u(function, 2);
        let address = self.builder.ins().iadd(signatures, offset);
        let found = self.builder.ins().load(types::I32, sealed, address, 0);
        let wanted = self.module.types[type_index as usize];
        let expected = self.builder.ins().iconst(types::I32, i64::from(wanted));
        let differs = self.builder.ins().icmp(IntCC::NotEqual, found, expected);
        self.builder.ins().trapnz(differs, traps::SIGNATURE);
        let functions = self.symbol(Symbol::FunctionTable);
        let offset = self.builder.ins().ishl_imm_u(function, 3);
        let address = self.builder.ins().iadd(functions, offset);
        let callee = self.builder.ins().load(types::I64, sealed, address, 0);
        let signature = self.signature(wanted);
        let arguments = self.arguments(&self.module.signatures[wanted as usize])?;
        Ok((callee, signature, arguments))
    }

    fn signature(&mut self, number: u32) -> SigRef {
        if let Some(&found) = self.signatures.get(&number) {
            return found;
        }
        let new = self.builder.import_signature(signature(&self.module.signatures[number as usize]));
        self.signatures.insert(number, new);
        new
    }
}
